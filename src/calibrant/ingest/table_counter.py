"""`TableCounter`: counting by model and group, for frames, files and queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError
from calibrant.ingest.counting import (
    BatchReader,
    CountAdder,
    CountedTable,
    CountOptions,
    EngineSums,
    MemoryGuard,
    RowCounter,
    Weighting,
)
from calibrant.tables.collection import Tables, in_order
from calibrant.tables.groups import observed_groups
from calibrant.tables.rows import zero_weight_error
from calibrant.tables.score_table import ScoreTable

__all__ = ["TableCounter", "check_name", "check_names"]

# Tables of groups are small; more groups than this are a column that was not rounded.
_MAX_TABLES = 100_000


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
        self._counters: dict[tuple[str, Any], Any] = {}
        self._guard = MemoryGuard(max_memory)
        self.expected: int | None = None  # number of rows of all batches, if known

    def add(self, batch: Mapping[str, ColumnData]) -> None:
        """Count a batch; columns are validated before they are split, so that errors have the right row."""
        w = None if self.weighting is None else batch[self.weighting.name]
        checked = {model: self._readers[model](batch[self.y], batch[model], w) for model in self.models}
        for group, rows in _groups([batch[key] for key in self.keys]):
            for model in self.models:
                self._counter(model, group).add(checked[model], rows)

    def add_counted(
        self, model: str, y: ColumnData, p: ColumnData, w: ColumnData | None, keys: list[ColumnData], sums: EngineSums
    ) -> None:
        """Add distinct rows of one model that an engine counted."""
        checked = replace(self._readers[model](y, p, w), sums=sums)
        for group, rows in _groups(keys):
            self._counter(model, group, counted=True).add(checked, rows)

    def add_table(self, model: str, table: ScoreTable) -> None:
        """Add the table of all rows of one model, where they are not split into groups."""
        if self.options.resolution is None:
            self._guard.add(len(table), False)
        self._counters[model, None] = CountedTable(table)

    def _counter(self, model: str, group: Any, *, counted: bool = False) -> Any:
        if (model, group) not in self._counters:
            if len(self._counters) >= _MAX_TABLES * len(self.models):
                raise InputError(
                    Argument("by") + f" must have at most {_MAX_TABLES:,} groups; got more.",
                    hint="Round times to days or weeks, and numbers to groups.",
                )
            self._counters[model, group] = self._new_counter(counted)
        return self._counters[model, group]

    def _new_counter(self, counted: bool) -> RowCounter | CountAdder:
        if counted:
            return CountAdder(self.options.resolution, weighting=self.weighting, guard=self._guard)
        return RowCounter(
            self.options.resolution,
            weighting=self.weighting,
            cells=not self.keys,
            guard=self._guard,
            expected=None if self.keys else self.expected,
        )

    def tables(self) -> Tables:
        """Return the tables of all batches; a group of dropped rows has an empty one."""
        for reader in self._readers.values():
            reader.finish(self.y)
        found = {key: counter.table(notes=self._readers[key[0]].notes) for key, counter in self._counters.items()}
        if not any(len(table) for table in found.values()):
            raise self._no_rows(found)
        return Tables({key: found[key] for key in in_order(found, self.models)}, tuple(self.keys))

    def _no_rows(self, found: Mapping[Any, ScoreTable]) -> InputError:
        if self.weighting is not None and any(table.n_in for table in found.values()):
            return zero_weight_error(self.weighting.name)
        text = f"{self.y} and {self.models[0]} hold no rows that count; at least one is needed."
        return InputError(text, argument=self.y)


def _groups(keys: list[ColumnData]) -> list[tuple[Any, Any]]:
    """Return the key and the rows of each group; all rows with the key None if there are no columns."""
    if not keys:
        return [(None, slice(None))]
    return [(_python_key(key), rows) for key, rows in observed_groups(keys)]


def _python_key(key: Any) -> Any:
    """Return the key with dates and times of Python in the place of NumPy's."""
    if isinstance(key, tuple):
        return tuple(map(_python_key, key))
    return key.astype(object) if isinstance(key, (np.datetime64, np.timedelta64)) else key
