"""Counting rows that come in batches: exactly, or on a grid of scores that somebody named."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError, Note, join_notes
from calibrant._support.option_checks import check_option
from calibrant._support.typing import Bools, Floats, Ints
from calibrant.ingest.memory import available_memory
from calibrant.tables.score_table import (
    Missing,
    ScoreTable,
    added_up,
    check_resolution,
    count,
    left_out,
    no_frequency,
    no_weight,
)

__all__ = ["Adder", "Counter", "Guard", "Options", "Reader", "Rows", "Sums", "Weighting"]

# What counting a row exactly takes at most: itself, its sorted key with scratch, and its place in the result; a weight
# is sorted along, and squared.
_BYTES_A_ROW, _BYTES_OF_A_WEIGHT = 32, 64
_SHARE_OF_MEMORY = 0.8
_FINEST_GRID = 2**22  # cells that are kept as one array
_FOLD = 1 << 21  # rows on a grid that are kept before they are counted


@dataclass(frozen=True)
class Options:
    """How rows are read and counted."""

    pos_label: object = None
    missing: Missing = "raise"
    resolution: float | None = None

    def __post_init__(self) -> None:
        check_option("missing", self.missing, ("raise", "drop"))
        if self.resolution is not None:
            check_resolution(self.resolution)
            object.__setattr__(self, "resolution", float(self.resolution))


@dataclass(frozen=True)
class Weighting:
    """The column that says how much each row counts: by importance weights, or by numbers of equal rows."""

    name: str
    importance: bool

    @classmethod
    def named(cls, sample_weight: str | None, frequency: str | None) -> "Weighting | None":
        """By the columns that were named, at most one of them."""
        _columns.one_kind_of_weight(sample_weight, frequency)
        if sample_weight is not None:
            return cls(sample_weight, importance=True)
        return None if frequency is None else cls(frequency, importance=False)

    def checked(self, column: _columns.ColumnData) -> _columns.ColumnData:
        return _columns.weights(column) if self.importance else _columns.frequencies(column)

    def dropped(self, rows: int) -> Note:
        """So many rows count nothing."""
        return no_weight(rows) if self.importance else no_frequency(rows)


@dataclass(frozen=True)
class Sums:
    """What an engine added up of equal rows: how many there are, their weights and the squares of these.

    Of frequencies there are no squares.
    """

    rows: Ints
    weight: Floats | None = None
    square: Floats | None = None


@dataclass(frozen=True)
class Rows:
    """Rows that were looked at: events, scores and weights, and which of them count."""

    event: NDArray[Any]
    score: NDArray[Any]
    weight: Floats | None
    kept: Bools | None  # None: all
    sums: Sums | None = None  # None: each is one row


class Reader:
    """Looks at columns of one model, batch by batch, and remembers what was seen of all of them."""

    def __init__(self, options: Options, weighting: Weighting | None = None) -> None:
        self.options, self.weighting = options, weighting
        self.notes: tuple[Note, ...] = ()
        self._labels: set[Any] = set()

    def __call__(self, y: _columns.ColumnData, p: _columns.ColumnData, w: _columns.ColumnData | None = None) -> Rows:
        """The rows of one batch; what is wrong with any is an error."""
        if w is None and self._clean(y, p):
            return Rows(y.values, p.values, None, None)
        columns = [self._events(y), _columns.scores(p)]
        if w is not None and self.weighting is not None:
            columns.append(self.weighting.checked(w))
        _columns.check_lengths(columns)
        if self.options.missing == "raise":
            _columns.refuse_missing(columns, hint=_columns.DROP)
        kept = None
        if any(column.missing is not None for column in columns):
            kept = ~np.logical_or.reduce([column.mask for column in columns])
        noted = [note for column in columns for note in column.notes if note.code in ("clipped", "float16")]
        self.notes = join_notes(self.notes, noted)
        weight = None if w is None else columns[2].values
        clipped = any(note.code == "clipped" for note in columns[1].notes)
        # As the values were given: float32 ones take half the room, and are sorted in half the time.
        score = columns[1].values if clipped or p.values.dtype.kind != "f" else p.values
        return Rows(columns[0].values == 1, score, weight, kept)

    def _clean(self, y: _columns.ColumnData, p: _columns.ColumnData) -> bool:
        """Whether these are plain numbers with nothing wrong or missing: two looks at each, and no copy."""
        plain = y.missing is None and p.missing is None and len(y) == len(p) > 0 and self.options.pos_label is None
        if not plain or y.values.dtype.kind not in "bi" or p.values.dtype not in (np.float32, np.float64):
            return False
        events = y.values.dtype.kind == "b" or (y.values.min() >= 0 and y.values.max() <= 1)
        return bool(events and p.values.min() >= 0 and p.values.max() <= 1)  # not so where one is NaN

    def _events(self, y: _columns.ColumnData) -> _columns.ColumnData:
        if self.options.pos_label is None:
            return class_labels.events(y)
        # Which labels there are is known when all batches are: each may have only one.
        self._labels |= set(class_labels.classes(y))
        if len(self._labels) > 2:
            shown = ", ".join(sorted(map(repr, self._labels)))
            raise y.error(f"has more than two labels: {shown}.", hint="A binary measure needs two.")
        values = np.zeros(len(y), dtype=np.int8)
        present = ~y.mask
        values[present] = y.values[present] == self.options.pos_label
        return replace(y, values=values)

    def finish(self, name: str) -> None:
        """What can be said only of all rows together."""
        wanted = self.options.pos_label
        if wanted is None or any(label == wanted for label in self._labels):
            return
        if len(self._labels) == 2:
            raise class_labels.unknown_pos_label(name, sorted(self._labels, key=repr), wanted)
        text = f"No row has the label of the event, {wanted!r}."
        self.notes = join_notes(self.notes, [Note("event_absent", 1, text)])


class Guard:
    """Stops before counting so many rows exactly would take all memory; one for all tables that are counted at once."""

    def __init__(self, most: int | None = None) -> None:
        self.needed, self._most = 0, most  # None: what is free

    def add(self, rows: int, weighted: bool) -> None:
        self.needed += rows * (_BYTES_A_ROW + weighted * _BYTES_OF_A_WEIGHT)
        free = available_memory() if self._most is None else int(self._most / _SHARE_OF_MEMORY)
        if free is not None and self.needed > _SHARE_OF_MEMORY * free:
            limit = f"{_bytes(free)} are free" if self._most is None else f"{_bytes(self._most)} may be taken"
            raise InputError(
                f"Counting these rows exactly may take {_bytes(self.needed)}, and {limit}.",
                hint="Pass "
                + Argument("resolution", "2**-20", python="resolution=2**-20")
                + ": scores are then rounded to that grid, each by at most 4.8e-07.",
                argument="resolution",
            )


def _bytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


class Counter:
    """Takes rows that were looked at and gives their table in the end; on a grid it never keeps many."""

    def __init__(
        self,
        step: float | None,
        *,
        weighting: Weighting | None,
        cells: bool,
        guard: Guard,
        expected: int | None = None,
    ) -> None:
        self.step, self.weighting, self.guard = step, weighting, guard
        self._expected = expected  # rows, where somebody knows: then each is written to its place at once
        self._whole: list[NDArray[Any]] = []
        self.n_in = self.used = self._held = 0
        self._kept: list[list[NDArray[Any]]] = []
        self._folded = ScoreTable.empty()
        fits = step is not None and 1 / step <= _FINEST_GRID
        self._cells = _Cells(step) if cells and fits and step is not None and weighting is None else None

    def add(self, rows: Rows, places: Any = slice(None)) -> None:
        """Count some more rows: those at these places."""
        own = np.arange(rows.score.size)[places] if not isinstance(places, slice) else places
        n_in = rows.score.size if isinstance(own, slice) else own.size
        if rows.kept is not None:
            own = np.flatnonzero(rows.kept) if isinstance(own, slice) else own[rows.kept[own]]
        event, score = rows.event[own], rows.score[own]
        self.n_in += n_in
        self.used += score.size
        if self._cells is not None:
            self._cells.add(event, score)
            return
        weight = [] if rows.weight is None else [rows.weight[own]]
        self._keep([event.astype(np.int8, copy=False), score, *weight])
        if self.step is None:
            self.guard.add(score.size, self.weighting is not None)
        elif self._held >= _FOLD:
            self._fold()

    def table(self, *, notes: tuple[Note, ...] = ()) -> ScoreTable:
        """The table of all rows. Of no rows, an empty one."""
        if self._cells is not None and self.used:
            table = self._cells.table()
        elif self.step is not None:
            self._fold()
            table = self._folded
        else:
            table = self._counted() if self.used else ScoreTable.empty()
        dropped = self.n_in - self.used
        if dropped:
            notes = join_notes(notes, [left_out(dropped)])
        lost = dropped + table.n_dropped  # and rows of weight or frequency 0
        return replace(table.with_notes(notes), n_in=self.n_in, n_dropped=lost)

    def _keep(self, some: list[NDArray[Any]]) -> None:
        first, self._held = self._held, self._held + some[0].size
        if self.step is None and self._expected is not None and not first:
            self._whole = [np.empty(self._expected, dtype=column.dtype) for column in some]
        fits = bool(self._whole) and self._held <= self._whole[0].size
        if fits and all(a.dtype == b.dtype for a, b in zip(some, self._whole, strict=True)):
            for column, place in zip(some, self._whole, strict=True):
                place[first : self._held] = column
            return
        if self._whole:  # more rows, or others, than were announced
            self._kept, self._whole = [[column[:first] for column in self._whole]], []
            self._expected = None
        self._kept.append(some)

    def _counted(self) -> ScoreTable:
        names = ("y", "p", "weight")
        if self._whole:
            columns = [_columns.ColumnData(names[i], a[: self._held]) for i, a in enumerate(self._whole)]
        else:
            columns = [_columns.ColumnData(names[i], self._joined(i)) for i in range(len(self._kept[0]))]
        self._kept, self._whole, self._held = [], [], 0
        if self.weighting is None:
            return count(*columns)
        y, p, w = columns
        if not w.values.any():
            nothing = ScoreTable.empty().with_notes((self.weighting.dropped(len(y)),))
            return replace(nothing, n_dropped=len(y))
        return count(y, p, w) if self.weighting.importance else count(y, p, None, w)

    def _fold(self) -> None:
        """Rows on a grid as a table."""
        if self._held and self.step is not None:
            some = self._counted()
            lost = self._folded.n_dropped + some.n_dropped
            self._folded = replace(self._folded + some.round(self.step), n_dropped=lost)

    def _joined(self, place: int) -> NDArray[Any]:
        """One column of all batches; what is joined is let go, so that no row is kept twice."""
        joined = np.concatenate([batch[place] for batch in self._kept])
        for batch in self._kept:
            batch[place] = joined[:0]
        return joined


class Adder:
    """Takes distinct rows that an engine counted, and adds up those of equal score."""

    def __init__(self, step: float | None, *, weighting: Weighting | None, guard: Guard) -> None:
        self.step, self.weighting, self.guard = step, weighting, guard
        self.n_in = self._missing = self._weightless = 0
        self._kept: list[list[NDArray[Any]]] = []

    def add(self, rows: Rows, places: Any = slice(None)) -> None:
        """Add some more: those at these places."""
        sums = rows.sums
        assert sums is not None
        own = np.arange(rows.score.size)[places]
        self.n_in += int(sums.rows[own].sum())
        if rows.kept is not None:
            self._missing += int(sums.rows[own[~rows.kept[own]]].sum())
            own = own[rows.kept[own]]
        size: Ints | Floats = sums.rows
        if sums.weight is not None:
            nothing = sums.weight[own] == 0
            self._weightless += int(sums.rows[own[nothing]].sum())
            own = own[~nothing]
            size = sums.weight
        some = [rows.score[own].astype(np.float64), rows.event[own] == 1, size[own]]
        self._kept.append(some if sums.square is None else [*some, sums.square[own].astype(np.float64)])
        if self.step is None:
            self.guard.add(own.size, self.weighting is not None)

    def table(self, *, notes: tuple[Note, ...] = ()) -> ScoreTable:
        """The table of all rows. Of no rows, an empty one."""
        lost = [left_out(self._missing)] if self._missing else []
        lost += [self.weighting.dropped(self._weightless)] if self.weighting and self._weightless else []
        table = self._added() if any(some[0].size for some in self._kept) else ScoreTable.empty()
        dropped = self._missing + self._weightless
        return replace(table.with_notes(join_notes(notes, lost)), n_in=self.n_in, n_dropped=dropped)

    def _added(self) -> ScoreTable:
        columns = [np.concatenate([some[i] for some in self._kept]) for i in range(len(self._kept[0]))]
        self._kept = []
        table = added_up(*columns)
        return table if self.step is None else table.round(self.step)


class _Cells:
    """Counts of rows and events in every cell of a grid."""

    def __init__(self, step: float) -> None:
        self.step = step
        size = int(np.floor(1 / step)) + 2
        self.n: Ints = np.zeros(size, dtype=np.int64)
        self.k: Ints = np.zeros(size, dtype=np.int64)

    def add(self, event: NDArray[Any], score: Floats) -> None:
        place = np.rint(score.astype(np.float64) / self.step).astype(np.int64)
        self.n += np.bincount(place, minlength=self.n.size)
        self.k += np.bincount(place[event == 1], minlength=self.k.size)

    def table(self) -> ScoreTable:
        used = np.flatnonzero(self.n)
        # The last cell may lie beyond 1, where no score is.
        score = np.minimum(used * self.step, 1.0).astype(np.float64)
        return ScoreTable(score, self.n[used], self.k[used]).round(self.step)
