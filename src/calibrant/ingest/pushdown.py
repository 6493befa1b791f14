"""Count rows inside an engine, which returns each distinct row once, and read the counts into tables.

The engine groups rows by group, outcome and score and counts them: ::

    SELECT g0, y, score, count(*) AS n FROM (SELECT country AS g0, y, CAST(p AS DOUBLE) AS score FROM ...) GROUP BY ...

Values (missing cells, labels, scores outside [0, 1]) are validated afterwards by the shared reader. The engine only
does casts, comparisons and roundings that are bitwise identical in all engines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.columns import LEAST_WEIGHT
from calibrant._support.sql_dialects import Dialect
from calibrant.ingest.counting import EngineSums
from calibrant.ingest.table_counter import TableCounter

__all__ = ["CountQuery"]

_LARGEST, _ALL_WHOLE = np.finfo(np.float64).max.item(), 2.0**53
# Sums of weights in this range do not overflow, where some engines fail; sums beyond 2**53 are refused later.
_FAR = 1e280


@dataclass(frozen=True)
class CountQuery:
    """SQL expressions of an engine for the counts that a `TableCounter` needs."""

    counter: TableCounter
    dialect: Dialect
    text: frozenset[str] = frozenset()  # columns of text, which are compared by bytes, not by collation

    @property
    def shared(self) -> list[str]:
        """The expressions that all models share: groups, outcome, weight."""
        counter = self.counter
        columns = [f"{self._label(key)} AS g{i}" for i, key in enumerate(counter.keys)]
        columns.append(f"{self._label(counter.y)} AS y")
        if counter.weighting is not None:
            weight = self._number(counter.weighting.name)
            columns += [f"{weight} AS w", f"{self._sort(weight)} AS sort"]
        return columns

    @property
    def scores(self) -> list[str]:
        """The score of each model, on the grid if there is one."""
        return [self._number(model, self.counter.options.resolution) for model in self.counter.models]

    @property
    def keys(self) -> list[str]:
        """The names that rows are grouped by."""
        sort = [] if self.counter.weighting is None else ["sort"]
        model = ["model"] if len(self.counter.models) > 1 else []
        return [*(f"g{i}" for i in range(len(self.counter.keys))), "y", *sort, *model, "score"]

    @property
    def sums(self) -> dict[str, str]:
        """The sums over equal rows, by name.

        Rows with and without the event are grouped apart, so that these are sums of w y and of w^2 y too. Sums of
        frequencies are exact as doubles: whole numbers below 2**53 are, and a larger sum is refused.
        """
        sql, weighting = self.dialect, self.counter.weighting
        if weighting is None:
            return {"n": "count(*)"}
        sums = {"n": "count(*)", "total": f"sum({sql.between('w', -_FAR, _FAR)})", "least": "min(w)"}
        if weighting.importance:
            usual = f"w >= {sql.number(LEAST_WEIGHT)} AND w <= {sql.number(_ALL_WHOLE)}"
            sums["square"] = f"sum(CASE WHEN {usual} THEN w * w ELSE {sql.number(0)} END)"
        return sums

    def _label(self, column: str) -> str:
        name = self.dialect.name(column)
        return self.dialect.bytewise.format(x=name) if column in self.text else name

    def _number(self, column: str, step: float | None = None) -> str:
        """Return a column as doubles; values that are not numbers stay as they are and are refused by the reader."""
        sql, name = self.dialect, self.dialect.name(column)
        value = x = sql.as_double(name)
        if step is not None:
            rounded = f"({sql.nearest.format(x=f'{x} / {sql.number(step)}')}) * {sql.number(step)}"
            inside = f"{x} >= {sql.number(0)} AND {x} <= {sql.number(1)}"
            value = f"CASE WHEN {inside} THEN {sql.least}({rounded}, {sql.number(1)}) ELSE {x} END"
        if sql.is_number:
            value = f"CASE WHEN {sql.is_number.format(x=name)} THEN {value} ELSE {name} END"
        return value

    def _sort(self, w: str) -> str:
        """Return the class of a weight: missing, 0, negative, too small, infinite, valid; or a fractional frequency.

        Only weights of one class are added up, so the least weight of a class shows whether all of them are valid.
        """
        sql, weighting = self.dialect, self.counter.weighting
        whole = f"WHEN {w} >= {sql.number(_ALL_WHOLE)} THEN 5 WHEN {w} = {sql.nearest.format(x=w)} THEN 5 ELSE 6"
        if weighting is not None and weighting.importance:
            whole = "ELSE 5"
        return (
            f"CASE WHEN {w} IS NULL THEN 0 WHEN {w} = {sql.number(0)} THEN 1 "
            f"WHEN {w} < {sql.number(0)} THEN 2 WHEN {w} < {sql.number(LEAST_WEIGHT)} THEN 3 "
            f"WHEN {w} > {sql.number(_LARGEST)} THEN 4 {whole} END"
        )

    def take(self, answer: Mapping[str, _columns.ColumnData]) -> None:
        """Add the rows of a result, or of a part of it, to the tables."""
        counter = self.counter
        for place, model in enumerate(counter.models):
            own = np.arange(len(answer["n"]))
            if "model" in answer:
                own = np.flatnonzero(answer["model"].values == place)
            if not own.size:
                continue
            rows = answer["n"].values[own].astype(np.int64)
            cut = {name: replace(column.part(own), counts=rows) for name, column in answer.items()}
            sums, w = EngineSums(rows), None
            if counter.weighting is not None:
                added = (_columns.numbers(cut[name]) for name in ("total", "square") if name in cut)
                sums = EngineSums(rows, *(column.values.astype(np.float64) for column in added))
                w = replace(cut["least"], name=counter.weighting.name)
            keys = [replace(cut[f"g{i}"], name=key) for i, key in enumerate(counter.keys)]
            y, p = replace(cut["y"], name=counter.y), replace(cut["score"], name=model)
            counter.add_counted(model, y, p, w, keys, sums)
