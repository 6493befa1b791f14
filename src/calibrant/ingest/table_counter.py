"""`TableCounter`: counting by model and group, for frames, files and queries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._kernels import Codes, GroupTables
from calibrant._support.arrays import Floats, Ints
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError, join_notes
from calibrant.ingest.counting import (
    FINEST_GRID,
    BatchReader,
    CheckedBatch,
    CountAdder,
    CountedTable,
    CountOptions,
    EngineSums,
    TableNotes,
    Weighting,
    grid_cells,
    grid_table,
)
from calibrant.ingest.memory import MemoryGuard, rows_bytes
from calibrant.tables.collection import Tables, in_order
from calibrant.tables.rows import (
    Rows,
    check_group_count,
    encode_groups,
    missing_note,
    observed_groups,
    zero_weight_error,
    zero_weight_note,
)
from calibrant.tables.score_table import ScoreTable, count_rows

# Rows are kept until there are so many, at least, and then counted into the table: memory follows the table.
_FOLD = 1 << 20
# Rows with few ties take less memory than their table, and one sort of all is faster: they are kept.
_ROWS_PER_SCORE = 4
# Bytes of a table per score while rows are added: the table, the table of the rows, and the sum.
_BYTES_PER_SCORE = 72
_CHUNK = 1 << 16  # rows that are hashed at a time
_SAMPLED = 64  # one in so many scores is looked at to estimate their number
_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)  # multiplication by these hashes


class RowCounter:
    """Counts the validated rows of one model in all groups.

    Rows are kept until there are `_FOLD` of them. If they have few distinct scores, they are counted into the table and
    dropped; otherwise more rows are kept, and their scores are looked at again when their number has doubled. Once
    there is a table, rows are added to it when they are twice as many as its scores, so that an addition costs no more
    than counting the rows. Sums of importance weights depend on the order of the rows, so these rows are kept to the
    end, except on a grid.
    """

    def __init__(
        self,
        step: float | None,
        *,
        weighting: Weighting | None,
        grouped: bool,
        guard: MemoryGuard,
        expected: int | None = None,
    ) -> None:
        self.step = step
        self.weighting = weighting
        self.guard = guard
        self._grouped = grouped
        self._n_in: Ints = np.zeros(1, dtype=np.int64)  # rows of each group
        self._used: Ints = np.zeros(1, dtype=np.int64)  # those without a missing value
        self._clipped: Ints = np.zeros(1, dtype=np.int64)  # those whose score was clipped
        self._held, self._expected = _HeldRows(), expected  # number of rows, if it is known
        self._budget, self._reserved = _FOLD, 0
        self._table: GroupTables | None = None  # of rows that have no weights
        self._tables: dict[int, ScoreTable] = {}  # of rows that have weights
        fits = step is not None and 1 / step <= FINEST_GRID
        self._grid = _Grid(step) if fits and not grouped and step is not None and weighting is None else None

    def add(self, batch: CheckedBatch, code: Codes | None = None, groups: int = 1) -> None:
        """Count the rows of a batch; `code` is the number of the group of each, below `groups`."""
        self._n_in = _add_sizes(self._n_in, batch.score.size, code, groups)
        if batch.clipped is not None:
            own = None if code is None else code[batch.clipped]
            self._clipped = _add_sizes(self._clipped, int(batch.clipped.sum()), own, groups)
        event, score = batch.event, batch.score
        columns = [event if event.dtype == np.int8 else event.astype(np.int8), score]
        columns += [column for column in (batch.weight, code) if column is not None]
        if batch.complete is not None:
            columns = [column[batch.complete] for column in columns]
        self._used = _add_sizes(self._used, columns[0].size, None if code is None else columns[-1], groups)
        if self._grid is not None:
            self._grid.add(*columns[:2])
            return
        if self.step is not None and self.weighting is None:
            columns[1] = np.minimum(np.rint(columns[1].astype(np.float64) / self.step) * self.step, 1.0)
        self._held.add(columns)
        if self._held.size >= self._budget:
            self._look()
        if self.step is None:
            self._reserve()

    def tables(self, notes: TableNotes) -> dict[int, ScoreTable]:
        """Return the table of each group that has rows, by its number; empty ones if all rows were dropped."""
        self._fold()
        self._held = _HeldRows()
        found = {}
        for code in np.flatnonzero(self._n_in).tolist():
            table = self._group(code)
            dropped = int(self._n_in[code] - self._used[code])
            own = notes(int(self._clipped[code]) if code < self._clipped.size else 0)
            own = join_notes(own, [missing_note(dropped)]) if dropped else own
            lost = dropped + table.n_dropped  # the latter have weight or frequency 0
            found[code] = replace(table.with_notes(own), n_in=int(self._n_in[code]), n_dropped=lost)
        return found

    def _group(self, code: int) -> ScoreTable:
        """Return the table of one group; arrays of all groups share their memory."""
        if self._grid is not None:
            return self._grid.table() if self._used[code] else ScoreTable.empty()
        if self.weighting is not None:
            return self._tables.get(code, ScoreTable.empty())
        if self._table is None or not self._used[code]:
            return ScoreTable.empty()
        start, score, n, k = self._table
        own = slice(start[code], start[code + 1])
        table = ScoreTable(score[own], n[own], k[own])
        return table if self.step is None else table.round(self.step)

    @property
    def _importance(self) -> bool:
        return self.weighting is not None and self.weighting.importance

    def _look(self) -> None:
        """Count the rows that are kept if that frees memory."""
        if self._folds():
            self._fold()
        else:
            self._budget = 2 * self._held.size
            self._held.expect(self._expected or 0)

    def _folds(self) -> bool:
        if self.step is not None or self._importance:
            return self.step is not None
        if self._table is not None or self._tables:
            return True
        held = self._held.columns()
        distinct = _estimate_distinct(held[1], held[-1] if self._grouped else None)
        return distinct * _ROWS_PER_SCORE <= self._held.size

    def _fold(self) -> None:
        """Count the rows that are kept, and add them to the tables."""
        if not self._held.size:
            return
        columns = self._held.take()
        if self.weighting is None:
            self._add_counts(*columns)
        else:
            self._add_weights(*columns)
        self._budget = max(_FOLD, 2 * self._n_scores())

    def _add_counts(self, event: NDArray[Any], score: NDArray[Any], code: Codes | None = None) -> None:
        groups = self._n_in.size
        event, score = (np.require(column, requirements=["C", "A"]) for column in (event, score))
        counted = _count(event, score, code, groups)
        if self._table is not None:
            start, scores, n, k = self._table
            start = np.pad(start, (0, groups + 1 - start.size), mode="edge")  # new groups have no rows in it
            counted = _kernels.merge_groups((start, scores, n, k), counted)
        self._table = counted

    def _add_weights(self, event: NDArray[Any], score: Floats, weight: Floats, code: Codes | None = None) -> None:
        if code is None:
            parts: list[tuple[int, Any]] = [(0, slice(None))]
        else:
            order = np.argsort(code, kind="stable")
            start = np.flatnonzero(np.diff(code[order], prepend=-1))
            parts = [(int(code[rows[0]]), rows) for rows in np.split(order, start[1:])]
        for group, rows in parts:
            table = self._weighted(event[rows], score[rows], weight[rows])
            table = table if self.step is None else table.round(self.step)
            self._tables[group] = self._tables[group] + table if group in self._tables else table

    def _weighted(self, event: NDArray[Any], score: Floats, weight: Floats) -> ScoreTable:
        if not weight.any():
            note = zero_weight_note(event.size, self._importance)
            return replace(ScoreTable.empty().with_notes((note,)), n_dropped=event.size)
        y, p, w = (ColumnData(name, each) for name, each in (("y", event), ("p", score), ("weight", weight)))
        return count_rows(Rows(y, (p,), w, self._importance, n_in=len(y)))

    def _n_scores(self) -> int:
        counted = 0 if self._table is None else self._table[1].size
        return counted + sum(map(len, self._tables.values()))

    def _reserve(self) -> None:
        """Reserve memory for the rows that are kept and the tables; rows are counted first if there is too little."""
        if not self.guard.allows(self._bytes() - self._reserved) and self._held.size and self._folds():
            self._fold()
        needed = self._bytes()
        self.guard.reserve(needed - self._reserved)
        self._reserved = needed

    def _bytes(self) -> int:
        return rows_bytes(self._held.size, self.weighting is not None) + _BYTES_PER_SCORE * self._n_scores()


class _HeldRows:
    """Columns of rows that are kept; once their number is expected, they are written into arrays of that size."""

    def __init__(self) -> None:
        self.size = 0
        self._whole: list[NDArray[Any]] = []
        self._batches: list[list[NDArray[Any]]] = []

    def expect(self, rows: int) -> None:
        """Move all rows into arrays for so many rows, if they fit."""
        if rows > self.size and not self._whole:
            columns, self._batches = self.columns(), []
            self._whole = [np.empty(rows, dtype=column.dtype) for column in columns]
            for column, place in zip(columns, self._whole, strict=True):
                place[: self.size] = column

    def add(self, columns: list[NDArray[Any]]) -> None:
        first, self.size = self.size, self.size + columns[0].size
        fits = bool(self._whole) and self.size <= self._whole[0].size
        if fits and all(a.dtype == b.dtype for a, b in zip(columns, self._whole, strict=True)):
            for column, place in zip(columns, self._whole, strict=True):
                place[first : self.size] = column
            return
        if self._whole:  # more rows than expected, or of other types
            self._batches, self._whole = [[column[:first] for column in self._whole]], []
        self._batches.append(columns)

    def columns(self) -> list[NDArray[Any]]:
        """Return the columns of all rows."""
        if self._whole:
            return [column[: self.size] for column in self._whole]
        if len(self._batches) > 1:
            self._batches = [[self._joined(place) for place in range(len(self._batches[0]))]]
        return self._batches[0]

    def take(self) -> list[NDArray[Any]]:
        """Return the columns of all rows, which are no longer kept."""
        columns = self.columns()
        self.size, self._batches = 0, []
        return columns

    def _joined(self, place: int) -> NDArray[Any]:
        """Return one column of all batches and free its parts, so that no row is kept twice."""
        joined = np.concatenate([batch[place] for batch in self._batches])
        for batch in self._batches:
            batch[place] = joined[:0]
        return joined


class _Grid:
    """Numbers of rows and events in each cell of a grid of scores."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.n: Ints = np.zeros(grid_cells(step), dtype=np.int64)
        self.k: Ints = np.zeros(grid_cells(step), dtype=np.int64)

    def add(self, event: NDArray[Any], score: Floats) -> None:
        place = np.rint(score.astype(np.float64) / self.step).astype(np.int64)
        self.n += np.bincount(place, minlength=self.n.size)
        self.k += np.bincount(place[event == 1], minlength=self.k.size)

    def table(self) -> ScoreTable:
        return grid_table(self.n, self.k, self.step)


def _count(event: NDArray[Any], score: NDArray[Any], code: Codes | None, groups: int) -> GroupTables:
    if code is not None:
        tables = _kernels.count_groups(score, event, code, groups)
        assert tables is not None  # rows are valid
        return tables
    table = _kernels.count(score, event)
    assert table is not None
    return np.array([0, table[0].size]), *table


def _add_sizes(total: Ints, rows: int, code: Codes | None, groups: int) -> Ints:
    """Return the numbers of rows of all groups with those of a batch added."""
    if code is None:
        return total + rows
    sizes = np.bincount(code, minlength=groups)
    sizes[: total.size] += total
    return sizes


def _estimate_distinct(score: NDArray[Any], code: Codes | None) -> int:
    """Estimate the number of distinct scores of all groups: those with a small hash are a sample of known share."""
    found = []
    for first in range(0, score.size, _CHUNK):
        rows = slice(first, first + _CHUNK)
        bits = score[rows].view(f"u{score.itemsize}").astype(np.uint64)
        if code is not None:
            bits += code[rows].astype(np.uint64) * _ODD[1]
        bits *= _ODD[0]
        found.append(bits[bits < np.uint64(2**64 // _SAMPLED)])
    return _SAMPLED * np.unique(np.concatenate(found)).size


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
        self.y = y
        self.models = models
        self.keys = keys
        self.weighting = weighting
        self.options = options
        weights = [] if weighting is None else [weighting.name]
        self.names: list[str] = list(dict.fromkeys([y, *models, *keys, *weights]))
        self.numbers: list[str] = list(dict.fromkeys([*models, *weights]))
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
