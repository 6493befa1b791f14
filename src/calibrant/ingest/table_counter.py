"""`TableCounter`: counting by model and group, for frames, files and queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._kernels import Codes
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError
from calibrant.ingest.counting import (
    BatchReader,
    CountAdder,
    CountedTable,
    CountOptions,
    EngineSums,
    MemoryGuard,
    Weighting,
)
from calibrant.ingest.row_counter import RowCounter
from calibrant.tables.collection import Tables, in_order
from calibrant.tables.groups import check_group_count, encode_groups, observed_groups
from calibrant.tables.rows import zero_weight_error
from calibrant.tables.score_table import ScoreTable

__all__ = ["TableCounter", "check_name", "check_names"]

# Tables of groups are small; more groups than this are a column that was not rounded.
_MAX_TABLES = 100_000
# Many groups of fewer rows than this, on average, are a column of ids. Tables of small groups can be added up, so fewer
# rows suffice than for their evaluation.
_FEWEST_ROWS = 2
_FINER = ("ns", "ps", "fs", "as")  # units of time that Python does not have


def check_names(names: str | Sequence[str], argument: str) -> list[str]:
    """Return one name or several as a list; each may occur once."""
    found = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    if not found or len(set(map(str, found))) < len(found) or not all(isinstance(name, str) for name in found):
        raise InputError(
            f"{argument} must name at least one column, each once; got {names!r}.", argument=argument, value=names
        )
    return found


def check_name(name: object, argument: str) -> None:
    """Raise an error if a name is not that of one column."""
    if not isinstance(name, str):
        raise InputError(f"{argument} must name one column; got {name!r}.", argument=argument, value=name)


class TableCounter:
    """Counts columns that come in batches, by model and group."""

    def __init__(
        self,
        y: str,
        models: list[str],
        keys: list[str],
        weighting: Weighting | None,
        options: CountOptions,
        max_memory: int | None = None,
    ) -> None:
        self.y, self.models, self.keys, self.weighting, self.options = y, models, keys, weighting, options
        weights = [] if weighting is None else [weighting.name]
        self.names = list(dict.fromkeys([y, *models, *keys, *weights]))
        self.numbers = list(dict.fromkeys([*models, *weights]))
        self._readers = {model: BatchReader(options, weighting) for model in models}
        self._groups: dict[Any, int] = {} if keys else {None: 0}  # numbers, in order of appearance
        self._rows: dict[str, RowCounter] = {}  # by model
        self._counters: dict[tuple[str, Any], CountAdder | CountedTable] = {}
        self._guard = MemoryGuard(max_memory)
        self.expected: int | None = None  # number of rows of all batches, if known

    def add(self, batch: Mapping[str, ColumnData]) -> None:
        """Count a batch; columns are validated before they are split, so that errors have the right row."""
        w = None if self.weighting is None else batch[self.weighting.name]
        checked = {model: self._readers[model](batch[self.y], batch[model], w) for model in self.models}
        code = self._codes([batch[key] for key in self.keys]) if self.keys else None
        for model in self.models:
            if model not in self._rows:
                self._rows[model] = self._new_counter()
            self._rows[model].add(checked[model], code, len(self._groups))

    def _codes(self, keys: list[ColumnData]) -> Codes:
        """Return the number of the group of each row."""
        labels, code = encode_groups(keys)
        self._check_groups(len(labels))
        numbers = [self._groups.setdefault(_python_key(label), len(self._groups)) for label in labels]
        self._check_groups(len(self._groups))
        return np.array(numbers, dtype=np.int32)[code]

    def add_counted(
        self, model: str, y: ColumnData, p: ColumnData, w: ColumnData | None, keys: list[ColumnData], sums: EngineSums
    ) -> None:
        """Add distinct rows of one model that an engine counted."""
        checked = replace(self._readers[model](y, p, w), sums=sums)
        for group, rows in observed_groups(keys) if keys else [(None, slice(None))]:
            self._adder(model, _python_key(group)).add(checked, rows)

    def add_table(self, model: str, table: ScoreTable) -> None:
        """Add the table of all rows of one model, where they are not split into groups."""
        if self.options.resolution is None:
            self._guard.add(len(table), False)
        self._counters[model, None] = CountedTable(table)

    def _adder(self, model: str, group: Any) -> Any:
        if (model, group) not in self._counters:
            self._check_groups(len(self._counters) // len(self.models) + 1)
            adder = CountAdder(self.options.resolution, weighting=self.weighting, guard=self._guard)
            self._counters[model, group] = adder
        return self._counters[model, group]

    def _check_groups(self, count: int) -> None:
        if count > _MAX_TABLES:
            raise InputError(
                Argument("by") + f" must have at most {_MAX_TABLES:,} groups; got more.",
                hint="Round times to days or weeks, and numbers to groups.",
            )

    def _new_counter(self) -> RowCounter:
        return RowCounter(
            self.options.resolution,
            weighting=self.weighting,
            grouped=bool(self.keys),
            guard=self._guard,
            expected=self.expected,
        )

    def tables(self) -> Tables:
        """Return the tables of all batches; a group of dropped rows has an empty one."""
        for reader in self._readers.values():
            reader.finish(self.y)
        found = {key: counter.table(self._readers[key[0]].notes) for key, counter in self._counters.items()}
        groups = list(self._groups)
        for model, counter in self._rows.items():
            for code, table in counter.tables(self._readers[model].notes).items():
                found[model, groups[code]] = table
        if not any(len(table) for table in found.values()):
            raise self._no_rows(found)
        rows = sum(table.n_in for table in found.values())
        check_group_count(len(found) // len(self.models), rows // len(self.models), fewest=_FEWEST_ROWS, way_out="")
        return Tables({key: found[key] for key in in_order(found, self.models)}, tuple(self.keys))

    def _no_rows(self, found: Mapping[Any, ScoreTable]) -> InputError:
        if self.weighting is not None and any(table.n_in for table in found.values()):
            return zero_weight_error(self.weighting.name)
        text = f"{self.y} and {self.models[0]} hold no rows that count; at least one is needed."
        return InputError(text, argument=self.y)


def _python_key(key: Any) -> Any:
    """Return the key with dates and times of Python in the place of NumPy's, where Python has them.

    Python's times end at microseconds and in the year 9999; NumPy would convert others to integers.
    """
    if isinstance(key, tuple):
        return tuple(map(_python_key, key))
    if not isinstance(key, (np.datetime64, np.timedelta64)):
        return key
    micro = key.astype(f"{key.dtype.kind}8[us]")
    value = (micro if micro == key and np.datetime_data(key.dtype)[0] in _FINER else key).astype(object)
    return key if isinstance(value, int) else value
