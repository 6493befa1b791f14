"""Validating rows that come in batches, and adding up the counts of engines."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError, Note, check_option, join_notes
from calibrant.ingest.memory import MemoryGuard
from calibrant.ingest.text_files import parse_number
from calibrant.tables.rows import Missing, Rows, missing_note, zero_weight_note
from calibrant.tables.score_table import ScoreTable, add_up, check_resolution

TableNotes: TypeAlias = Callable[[int], tuple[Note, ...]]  # the notes of a table with so many clipped scores

FINEST_GRID = 2**22  # cells of a grid that is kept as one array


@dataclass(frozen=True)
class CountOptions:
    """Options for reading and counting rows."""

    pos_label: object = None
    missing: Missing = "raise"
    resolution: float | None = None

    def __post_init__(self) -> None:
        check_option("missing", self.missing, ("raise", "drop"))
        if self.resolution is not None:
            check_resolution(self.resolution)
            object.__setattr__(self, "resolution", float(self.resolution))


class TableOptions(TypedDict, total=False):
    """Options of functions that count outside data, as type checkers see them."""

    sample_weight: str | None
    frequency: str | None
    pos_label: object
    missing: Missing
    resolution: float | None


@dataclass(frozen=True)
class Weighting:
    """The name of the column of importance weights or of frequencies."""

    name: str
    importance: bool

    @classmethod
    def named(cls, sample_weight: str | None, frequency: str | None) -> "Weighting | None":
        """Return the weighting by the named column; at most one may be named."""
        _columns.check_one_weight(sample_weight, frequency)
        if sample_weight is not None:
            return cls(sample_weight, importance=True)
        return None if frequency is None else cls(frequency, importance=False)

    def checked(self, column: ColumnData) -> ColumnData:
        """Validate the weights or frequencies."""
        return _columns.sizes(column, self.importance)


@dataclass(frozen=True)
class EngineSums:
    """Sums over equal rows that an engine computed: rows, weights and squared weights (frequencies have no squares)."""

    rows: Ints
    weight: Floats | None = None
    square: Floats | None = None


@dataclass(frozen=True)
class CheckedBatch:
    """Validated rows of one model: events, scores, weights, and the mask of complete rows."""

    event: NDArray[Any]
    score: NDArray[Any]
    weight: Floats | None
    complete: Bools | None  # None: all
    sums: EngineSums | None = None  # None: each is one row
    clipped: Bools | None = None  # rows whose score was clipped; None: no row


class BatchLabels:
    """The events of batches of outcomes. A batch may have one of two labels, so those of all batches are collected."""

    def __init__(self, pos_label: object) -> None:
        self.pos_label = pos_label
        self._labels: set[Any] = set()

    def events(self, y: ColumnData) -> ColumnData:
        """Return the outcomes of a batch as 0 and 1."""
        if self.pos_label is None:
            return _columns.events(y)
        self._labels |= set(_columns.classes(y))
        if len(self._labels) > 2:
            raise self._too_many(y)
        if isinstance(self.pos_label, str) and len(self._labels) == 2 and _differ_in_writing(*self._labels):
            raise self._no_text(y)
        values = np.zeros(len(y), dtype=np.int8)
        present = ~y.mask
        values[present] = y.values[present] == self.pos_label
        return replace(y, values=values)

    def finish(self, name: str) -> list[Note]:
        """Check the labels of all batches against `pos_label`; a note where no row has it."""
        if self.pos_label is None or any(label == self.pos_label for label in self._labels):
            return []
        if len(self._labels) == 2:
            raise _columns.unknown_pos_label(name, sorted(self._labels, key=repr), self.pos_label)
        return [Note("event_absent", 1, f"No row has the label of the event, {self.pos_label!r}.")]

    def _too_many(self, y: ColumnData) -> InputError:
        numbers = set(map(_meaning, self._labels))
        if isinstance(self.pos_label, str) and len(numbers) <= 2 and None not in numbers:
            return self._no_text(y)
        return y.error(f"must have two labels; got {self._shown}.", hint="A binary metric needs two labels.")

    @property
    def _shown(self) -> str:
        return ", ".join(sorted(map(repr, self._labels)))

    def _no_text(self, y: ColumnData) -> InputError:
        kind = "truth value" if any(isinstance(_meaning(label), bool) for label in self._labels) else "number"
        return InputError(
            Argument("pos_label") + f" must be a {kind} to compare labels as {kind}s; got the text {self.pos_label!r}.",
            hint=f"As text, {y.name} has the labels {self._shown}.",
            value=self.pos_label,
        )


def _meaning(label: Any) -> Any:
    """Return the truth value or the number that a text denotes, or None; other labels denote themselves."""
    if not isinstance(label, str):
        return label
    truth = {"true": True, "false": False}.get(label.lower())
    return parse_number(label.strip()) if truth is None else truth


def _differ_in_writing(one: Any, other: Any) -> bool:
    """Return whether two labels are of one kind, but written in two ways; a text such as 01 is a code.

    >>> _differ_in_writing("1", 1), _differ_in_writing("1", "1.0"), _differ_in_writing("1", "01")
    (True, True, False)
    >>> _differ_in_writing("1", 0), _differ_in_writing("1", "0"), _differ_in_writing("fraud", 1)
    (True, False, False)
    """
    meant = _meaning(one), _meaning(other)
    if None in meant or isinstance(meant[0], bool) != isinstance(meant[1], bool):
        return False
    if isinstance(one, str) != isinstance(other, str):
        return True
    is_code = any(isinstance(label, str) and re.match(r"\s*[+-]?0[0-9]", label) for label in (one, other))
    return bool(meant[0] == meant[1]) and not is_code


class BatchReader:
    """Validates the columns of one model, batch by batch, and collects notes and labels over all batches."""

    def __init__(self, options: CountOptions, weighting: Weighting | None = None) -> None:
        self.options = options
        self.weighting = weighting
        self._notes: tuple[Note, ...] = ()
        self._labels = BatchLabels(options.pos_label)
        self._name, self._excess = "", 0.0  # of scores that were clipped

    def __call__(self, y: ColumnData, p: ColumnData, w: ColumnData | None = None) -> CheckedBatch:
        """Validate one batch."""
        if w is None and self._is_plain(y, p):
            return CheckedBatch(y.values, p.values, None, None)
        importance = self.weighting is not None and self.weighting.importance
        _columns.check_lengths([y, p] if w is None else [y, p, w])
        rows = Rows(y, (p,), w, importance, missing=self.options.missing).check(self._labels.events, _columns.scores)
        complete = rows.complete()
        self._notes = join_notes(self._notes, [note for note in rows.notes if note.code == "float16"])
        clipped = self._clipped(p, rows.forecasts[0])
        # float32 scores stay float32: they take half the memory and half the time to sort.
        narrow = p.values.dtype == np.float32 and clipped is None
        score = p.values if narrow else rows.forecasts[0].values
        weight = None if rows.weight is None else rows.weight.values
        return CheckedBatch(rows.y.values == 1, score, weight, complete, clipped=clipped)

    def _clipped(self, given: ColumnData, checked: ColumnData) -> Bools | None:
        """Return the mask of scores that the check has clipped; None if there are none."""
        if all(note.code != "clipped" for note in checked.notes):
            return None
        excess = np.where(given.mask, 0.0, np.abs(_columns.numbers(given).values.astype(np.float64) - checked.values))
        self._name, self._excess = given.name, max(self._excess, float(excess.max()))
        return excess > 0

    def _is_plain(self, y: ColumnData, p: ColumnData) -> bool:
        """Return whether the batch holds valid plain numbers; this takes two passes over each column and no copy."""
        plain = y.missing is None and p.missing is None and len(y) == len(p) > 0 and self.options.pos_label is None
        if not plain or y.values.dtype.kind not in "bi" or p.values.dtype not in (np.float32, np.float64):
            return False
        events = y.values.dtype.kind == "b" or (y.values.min() >= 0 and y.values.max() <= 1)
        return bool(events and p.values.min() >= 0 and p.values.max() <= 1)  # False if one is NaN

    def finish(self, name: str) -> None:
        """Check the labels of all batches."""
        self._notes = join_notes(self._notes, self._labels.finish(name))

    def notes(self, clipped: int) -> tuple[Note, ...]:
        """Return the notes of a table of these rows in which so many scores were clipped."""
        return ((_columns.clipped_note(self._name, clipped, self._excess),) if clipped else ()) + self._notes


class CountAdder:
    """Adds up the counts of distinct rows that an engine computed."""

    def __init__(self, step: float | None, *, weighting: Weighting | None, guard: MemoryGuard) -> None:
        self.step = step
        self.weighting = weighting
        self.guard = guard
        self.n_in = self._missing = self._zero = self._clipped = 0
        self._kept: list[list[NDArray[Any]]] = []

    def add(self, batch: CheckedBatch, rows: Any = slice(None)) -> None:
        """Add distinct rows of a batch: a slice, or their positions."""
        sums = batch.sums
        assert sums is not None
        own = np.arange(batch.score.size)[rows]
        self.n_in += int(sums.rows[own].sum())
        if batch.clipped is not None:
            self._clipped += int(sums.rows[own[batch.clipped[own]]].sum())
        if batch.complete is not None:
            self._missing += int(sums.rows[own[~batch.complete[own]]].sum())
            own = own[batch.complete[own]]
        size: Ints | Floats = sums.rows
        if sums.weight is not None:
            zero = sums.weight[own] == 0
            self._zero += int(sums.rows[own[zero]].sum())
            own = own[~zero]
            size = sums.weight
        some = [batch.score[own].astype(np.float64), batch.event[own] == 1, size[own]]
        self._kept.append(some if sums.square is None else [*some, sums.square[own].astype(np.float64)])
        if self.step is None:
            self.guard.add(own.size, self.weighting is not None)

    def table(self, notes: TableNotes) -> ScoreTable:
        """Return the table of all rows; an empty one if there are none."""
        lost = [missing_note(self._missing)] if self._missing else []
        if self.weighting and self._zero:
            lost.append(zero_weight_note(self._zero, self.weighting.importance))
        table = self._added() if any(some[0].size for some in self._kept) else ScoreTable.empty()
        dropped = self._missing + self._zero
        return replace(table.with_notes(join_notes(notes(self._clipped), lost)), n_in=self.n_in, n_dropped=dropped)

    def _added(self) -> ScoreTable:
        columns = [np.concatenate([some[i] for some in self._kept]) for i in range(len(self._kept[0]))]
        self._kept = []
        table = add_up(*columns)
        return table if self.step is None else table.round(self.step)


@dataclass(frozen=True)
class CountedTable:
    """The table of rows that an engine counted, with the notes about them."""

    counted: ScoreTable

    def table(self, notes: TableNotes) -> ScoreTable:
        """Return the table, with further notes."""
        return self.counted.with_notes(notes(0))


def grid_cells(step: float) -> int:
    """Return the number of multiples of a step from 0 to 1, and one beyond, for scores that are rounded up."""
    return math.floor(1 / step) + 2


def grid_table(n: Ints, k: Ints, step: float) -> ScoreTable:
    """Return the table of the numbers of rows and events at each multiple of a step."""
    used = np.flatnonzero(n)
    # The last cell may lie beyond 1, where no score is.
    score = np.minimum(used * step, 1.0).astype(np.float64)
    return ScoreTable(score, n[used], k[used]).round(step)
