"""Counting rows that come in batches: exactly, or on a grid of scores that somebody named."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _columns
from calibrant._typing import Floats, Ints
from calibrant.errors import InputError, Note, join_notes
from calibrant.ingest.memory import available_memory
from calibrant.table import Missing, ScoreTable, check_resolution, count

__all__ = ["Counter", "Options"]

# What counting a row exactly takes at most: itself, its sorted key with scratch, and its place in the result.
_BYTES_A_ROW = 32
_SHARE_OF_MEMORY = 0.8
_FINEST_GRID = 2**24  # cells that are kept as one array
_DROP = "Pass missing='drop' to leave such rows out; they will be counted in the result."


@dataclass(frozen=True)
class Options:
    """How rows are read and counted."""

    pos_label: object = None
    missing: Missing = "raise"
    importance: bool = False
    resolution: float | None = None

    def __post_init__(self) -> None:
        if self.missing not in ("raise", "drop"):
            raise InputError(f"missing must be 'raise' or 'drop'; it is {self.missing!r}.", argument="missing")
        if self.resolution is not None:
            check_resolution(self.resolution)


class Counter:
    """Takes batches of rows and gives their table in the end; on a grid, without weights, it keeps no rows."""

    def __init__(self, options: Options, *, weighted: bool = False) -> None:
        self.options = options
        self.rows = self.dropped = 0
        self.whole = True  # whether all weights so far are whole numbers
        self._notes: tuple[Note, ...] = ()
        self._labels: set[Any] = set()
        self._kept: list[list[NDArray[Any]]] = []
        step = options.resolution
        on_grid = step is not None and 1 / step <= _FINEST_GRID and not weighted and not options.importance
        self._cells = _Cells(step) if on_grid and step is not None else None

    def add(self, y: _columns.Column, p: _columns.Column, w: _columns.Column | None = None) -> None:
        """Count some more rows; what is wrong with any is an error at once, and nothing of the batch is counted."""
        rows = [y.values, p.values] if w is None and self._clean(y, p) else self._checked(y, p, w)
        self.rows += len(y)
        if w is not None and self.whole:
            self.whole = bool((rows[2] == np.rint(rows[2])).all())
        if self._cells is not None:
            self._cells.add(rows[0], rows[1])
        else:
            self._kept.append([rows[0].astype(np.int8, copy=False), *rows[1:]])
            _check_memory(self.rows)

    def _clean(self, y: _columns.Column, p: _columns.Column) -> bool:
        """Whether these are plain numbers with nothing wrong or missing: two looks at each, and no copy."""
        plain = y.missing is None and p.missing is None and len(y) == len(p) > 0 and self.options.pos_label is None
        if not plain or y.values.dtype.kind not in "bi" or p.values.dtype not in (np.float32, np.float64):
            return False
        events = y.values.dtype.kind == "b" or (y.values.min() >= 0 and y.values.max() <= 1)
        return bool(events and p.values.min() >= 0 and p.values.max() <= 1)  # not so where one is NaN

    def _checked(self, y: _columns.Column, p: _columns.Column, w: _columns.Column | None) -> list[NDArray[Any]]:
        """The rows that count: every cell looked at, so that an error can say what is wrong and where."""
        columns = [self._events(y), _columns.scores(p), *([] if w is None else [_columns.weights(w)])]
        _columns.check_lengths(columns)
        if self.options.missing == "raise":
            _columns.refuse_missing(columns, hint=_DROP)
        kept: Any = slice(None)
        if any(column.missing is not None for column in columns):
            kept = ~np.logical_or.reduce([column.mask for column in columns])
            self.dropped += int(len(y) - np.count_nonzero(kept))
        noted = [note for column in columns for note in column.notes if note.code in ("clipped", "float16")]
        self._notes = join_notes(self._notes, noted)
        clipped = any(note.code == "clipped" for note in columns[1].notes)
        # As the values were given: float32 ones take half the room, and are sorted in half the time.
        score = columns[1].values if clipped or p.values.dtype.kind != "f" else p.values
        return [columns[0].values[kept].astype(np.int8), score[kept], *(column.values[kept] for column in columns[2:])]

    def _events(self, y: _columns.Column) -> _columns.Column:
        if self.options.pos_label is not None:  # of two labels, no batch sees more than its own
            self._labels |= set(_columns.classes(y))
            if len(self._labels) > 2:
                shown = ", ".join(sorted(map(repr, self._labels)))
                raise y.error(f"has more than two labels: {shown}.", hint="A binary measure needs two.")
        return _columns.labels(y, self.options.pos_label)

    def table(self, names: list[str], *, importance: bool = False) -> ScoreTable:
        """The table of all rows; with `importance`, weights are importance weights whatever they are."""
        if self.rows == self.dropped:
            raise InputError(f"{names[0]} and {names[1]} hold no rows; at least one is needed.", argument=names[0])
        table = self._exact(names, importance) if self._cells is None else self._cells.table()
        if self.dropped:
            text = "Rows left out because a value is missing: {count}."
            self._notes = join_notes(self._notes, [Note("missing", self.dropped, text)])
        lost = self.dropped + table.n_dropped  # and rows of weight 0
        return replace(table.with_notes(self._notes), n_in=self.rows, n_dropped=lost)

    def _exact(self, names: list[str], importance: bool) -> ScoreTable:
        columns = [_columns.Column(name, self._joined(i)) for i, name in enumerate(names)]
        self._kept = []
        table = count(*columns, importance=importance or self.options.importance)
        return table if self.options.resolution is None else table.round(self.options.resolution)

    def _joined(self, place: int) -> NDArray[Any]:
        """One column of all batches; what is joined is let go, so that no row is kept twice."""
        joined = np.concatenate([batch[place] for batch in self._kept])
        for batch in self._kept:
            batch[place] = joined[:0]
        return joined


def _check_memory(rows: int) -> None:
    """Stop before counting that many rows exactly would take all memory."""
    needed, free = rows * _BYTES_A_ROW, available_memory()
    if free is not None and needed > _SHARE_OF_MEMORY * free:
        raise InputError(
            f"Counting {rows:,} rows exactly may take {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free.",
            hint="Pass resolution=2**-20: scores are then rounded to that grid, which moves each by at most 4.8e-07.",
            argument="resolution",
        )


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
