"""Rows in groups, and models by name: what frames and files split alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError
from calibrant._support.typing import Ints
from calibrant.ingest.counting import Adder, Counter, Guard, Options, Reader, Sums, Weighting
from calibrant.tables.collection import Tables, in_order
from calibrant.tables.score_table import ScoreTable, all_zero

__all__ = ["Split", "named"]

_MOST_GROUPS = 100_000


def named(names: str | Sequence[str], argument: str) -> list[str]:
    """One name, or several, each once."""
    found = [names] if isinstance(names, str) else list(names) if isinstance(names, Iterable) else [names]
    if not found or len(set(map(str, found))) < len(found) or not all(isinstance(name, str) for name in found):
        raise InputError(
            f"{argument} must name at least one column, each once; it is {names!r}.", argument=argument, value=names
        )
    return found


class Split:
    """Counts columns that come in batches, by model and group."""

    def __init__(
        self,
        y: str,
        models: list[str],
        keys: list[str],
        weighting: Weighting | None,
        options: Options,
        max_memory: int | None = None,
    ) -> None:
        self.y, self.models, self.keys, self.weighting, self.options = y, models, keys, weighting, options
        weights = [] if weighting is None else [weighting.name]
        self.names = list(dict.fromkeys([y, *models, *keys, *weights]))
        self.numbers = list(dict.fromkeys([*models, *weights]))
        self._readers = {model: Reader(options, weighting) for model in models}
        self._counters: dict[tuple[str, Any], Counter | Adder] = {}
        self._guard = Guard(max_memory)
        self.expected: int | None = None  # rows of all batches, where somebody knows

    def add(self, batch: Mapping[str, _columns.ColumnData]) -> None:
        """Count a batch; columns are looked at before they are split, so that an error names the row."""
        w = None if self.weighting is None else batch[self.weighting.name]
        rows = {model: self._readers[model](batch[self.y], batch[model], w) for model in self.models}
        for group, places in _groups([batch[key] for key in self.keys], len(batch[self.y])):
            for model in self.models:
                self._counter(model, group).add(rows[model], places)

    def add_counted(
        self,
        model: str,
        y: _columns.ColumnData,
        p: _columns.ColumnData,
        w: _columns.ColumnData | None,
        keys: list[_columns.ColumnData],
        sums: Sums,
    ) -> None:
        """Add distinct rows of one model that an engine counted."""
        rows = replace(self._readers[model](y, p, w), sums=sums)
        for group, places in _groups(keys, len(y)):
            self._counter(model, group, counted=True).add(rows, places)

    def _counter(self, model: str, group: Any, *, counted: bool = False) -> Counter | Adder:
        if (model, group) not in self._counters:
            if len(self._counters) >= _MOST_GROUPS * len(self.models):
                raise InputError(
                    Argument("by") + f" makes more than {_MOST_GROUPS:,} groups.",
                    hint="Round times to days or weeks, and numbers to groups.",
                    argument="by",
                )
            self._counters[model, group] = self._new_counter(counted)
        return self._counters[model, group]

    def _new_counter(self, counted: bool) -> Counter | Adder:
        if counted:
            return Adder(self.options.resolution, weighting=self.weighting, guard=self._guard)
        return Counter(
            self.options.resolution,
            weighting=self.weighting,
            cells=not self.keys,
            guard=self._guard,
            expected=None if self.keys else self.expected,
        )

    def tables(self) -> Tables:
        """The tables of all batches; a group without a row that counts has an empty one."""
        for reader in self._readers.values():
            reader.finish(self.y)
        found = {key: counter.table(notes=self._readers[key[0]].notes) for key, counter in self._counters.items()}
        if not any(len(table) for table in found.values()):
            self._refuse_nothing(found)
        return Tables({key: found[key] for key in in_order(found, self.models)}, tuple(self.keys))

    def _refuse_nothing(self, found: Mapping[Any, ScoreTable]) -> None:
        if self.weighting is not None and any(table.n_in for table in found.values()):
            raise all_zero(self.weighting.name)
        raise InputError(
            f"{self.y} and {self.models[0]} hold no rows that count; at least one is needed.", argument=self.y
        )


def _groups(keys: list[_columns.ColumnData], size: int) -> list[tuple[Any, Any]]:
    """The groups in order, each with the places of its rows."""
    if not keys:
        return [(None, slice(None))]
    _columns.refuse_missing(keys, hint="Give such rows a group of their own.")
    encoded = [class_labels.encode(key) for key in keys]
    code: Ints = np.zeros(size, dtype=np.int64)
    for names, own in encoded:
        code = code * len(names) + own
    order = np.argsort(code, kind="stable")
    present, start = np.unique(code[order], return_index=True)
    bounds = np.append(start, size)
    found = []
    for i, number in enumerate(present.tolist()):
        values = _names_of(number, [names for names, _ in encoded])
        found.append((values[0] if len(values) == 1 else tuple(values), order[bounds[i] : bounds[i + 1]]))
    return found


def _names_of(number: int, names: list[list[Any]]) -> list[Any]:
    """The values behind a code, of which the last changes fastest; dates and times as Python has them."""
    values: list[Any] = []
    for own in reversed(names):
        number, place = divmod(number, len(own))
        value = own[place]
        values.insert(0, value.astype(object) if isinstance(value, (np.datetime64, np.timedelta64)) else value)
    return values
