"""Rows that a monitor receives, read once: outcomes and forecasts with times and groups, predictions, counts."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from calibrant._support import columns as _columns
from calibrant._support.arrays import Ints
from calibrant._support.errors import Argument, InputError
from calibrant._support.plain_data import label as json_label
from calibrant.kinds.windows import EventRows
from calibrant.monitor.time_windows import read_time, read_times
from calibrant.tables.rows import group_columns, observed_groups
from calibrant.tables.score_table import ScoreTable, count_checked

NO_GROUP = ""
NO_EVENT = ""  # the event of binary scores, and the rates that other kinds show
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")
_SCALARS = (str, bytes, bool, int, float, date, np.generic)

_CellTable: TypeAlias = tuple[int, tuple[str, str], ScoreTable]  # a window, the keys of group and event, and the table


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Rows of one call with their times in microseconds and their groups.

    Attributes
    ----------
    rows : EventRows
    times : ndarray of int64
    codes : ndarray of int64
        Position of the group of each row in `groups`.
    groups : list of str
        Keys of groups; see `group_key`.
    """

    rows: EventRows
    times: Ints
    codes: Ints
    groups: Sequence[str]

    @classmethod
    def read(cls, rows: EventRows, time: Any, group: Any) -> "RowChunk":
        """Read times and groups of rows whose outcomes and forecasts were read."""
        return cls(rows, read_times(time, len(rows)), *read_groups(group, len(rows)))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def sizes(self) -> Ints:
        """Number of rows at each time."""
        return np.ones(self.n_rows, dtype=np.int64)

    def tables(self, windows: Ints) -> list[_CellTable]:
        """Return the table of each cell; `windows` has the window of each row."""
        events = {
            NO_EVENT if label is None else group_key(label): rows
            for label, rows in self.rows.events(self._random).items()
        }
        return [
            (window, (group, event), count_checked(rows if places.size == self.n_rows else rows.part(places)))
            for window, group, places in self._cells(windows)
            for event, rows in events.items()
        ]

    def _cells(self, windows: Ints) -> Iterator[tuple[int, str, Ints]]:
        """Yield the window, the group and the positions of the rows of each cell."""
        keys, position = np.unique(windows, return_inverse=True)
        code = position * len(self.groups) + self.codes
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        for places in np.split(order, starts[1:]):
            window, group = divmod(int(code[places[0]]), len(self.groups))
            yield int(keys[window]), self.groups[group], places

    def _random(self) -> Generator:
        # The rows are the seed, so that the same stream always gives the same evidence, and no two batches share
        # random numbers.
        return np.random.default_rng(int(self.sha256()[:32], 16))

    def sha256(self) -> str:
        """Return the checksum of the rows in any order."""
        order = np.lexsort((*self.rows.sort_keys, self.codes, self.times))
        columns = (self.times, self.codes, *self.rows.content)
        return _digest(list(self.groups), *(column[order] for column in columns))


@dataclass(frozen=True, eq=False)
class CountedChunk:
    """A table of one time and group that was counted elsewhere; its rows stay in one window."""

    table: ScoreTable
    times: Ints
    groups: Sequence[str]

    @classmethod
    def read(cls, table: Any, time: Any, group: Any) -> "CountedChunk":
        """Check a table of counts, its time and its group."""
        if not isinstance(table, ScoreTable) or table.importance:
            got = "importance weights" if isinstance(table, ScoreTable) else type(table).__name__
            raise InputError(
                Argument("table") + f" must be a ScoreTable of counts; got {got}.",
                hint="Count rows with cb.from_query, cb.from_frame or cb.ScoreTable.from_counts.",
            )
        if not len(table):
            raise InputError(Argument("table") + " must have at least one row; got none.")
        return cls(table, np.array([read_time(time)], dtype=np.int64), [_one_group(group)])

    @property
    def n_rows(self) -> int:
        """Number of rows that were counted."""
        return int(self.table.size)

    @property
    def sizes(self) -> Ints:
        """The number 0: the rows of a table are not spread over windows."""
        return np.zeros(1, dtype=np.int64)

    def tables(self, windows: Ints) -> list[_CellTable]:
        """Return the table in its window."""
        return [(int(windows[0]), (self.groups[0], NO_EVENT), self.table)]

    def sha256(self) -> str:
        """Return the checksum of the table, its time and its group."""
        return _digest([self.groups[0], int(self.times[0])], self.table.score, self.table.n, self.table.k)


Chunk: TypeAlias = RowChunk | CountedChunk


@dataclass(frozen=True, eq=False)
class Predictions:
    """Ids, scores, times and groups of predictions whose outcomes are not known yet."""

    ids: list[str]
    scores: list[float]
    times: Ints
    codes: Ints
    keys: Sequence[str]

    @classmethod
    def read(cls, id: Any, p: Any, time: Any, group: Any) -> "Predictions":
        """Read the columns of a call; single values are one row."""
        ids = _read_ids(id)
        scores = _columns.scores(_columns.read([p] if np.ndim(p) == 0 else p, "p"))
        _check_rows(ids, scores)
        codes, keys = read_groups(group, len(ids))
        return cls(ids, scores.values.tolist(), read_times(time, len(ids)), codes, keys)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.ids)

    @property
    def groups(self) -> list[str]:
        """The key of the group of each row."""
        return [self.keys[code] for code in self.codes]

    def sha256(self) -> str:
        """Return the checksum of the predictions in any order."""
        return _digest(sorted(zip(self.ids, self.scores, self.times.tolist(), self.groups, strict=True)))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Ids and outcomes, 0 and 1, of earlier predictions."""

    ids: list[str]
    events: list[int]

    @classmethod
    def read(cls, id: Any, y: Any, pos_label: object = None) -> "Outcomes":
        """Read the columns of a call; single values are one row."""
        ids = _read_ids(id)
        outcomes = _columns.events(_columns.read([y] if np.ndim(y) == 0 else y, "y"), pos_label)
        _check_rows(ids, outcomes)
        return cls(ids, [int(event) for event in outcomes.values])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def sha256(self) -> str:
        """Return the checksum of the outcomes in any order."""
        return _digest(sorted(zip(self.ids, self.events, strict=True)))


def _read_ids(id: Any) -> list[str]:
    if np.ndim(id) == 0:
        return [check_name("id", _whole(id.item() if isinstance(id, np.generic) else id))]
    column = _columns.read(id, "id")
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError(Argument("id") + " must have at least one row; got none.")
    return [check_name("id", _whole(value)) for value in column.values.tolist()]


def _whole(value: Any) -> Any:
    """Return a whole number as an int, so that the ids 1 and 1.0 are one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_rows(ids: list[str], column: _columns.ColumnData) -> None:
    _columns.check_lengths([_columns.ColumnData("id", np.array(ids, dtype=object)), column])
    _columns.refuse_missing([column])


def _digest(values: Any, *columns: Any) -> str:
    """Return the checksum of plain values and of arrays."""
    digest = hashlib.sha256(json.dumps(values).encode())
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def read_groups(group: Any, n_rows: int) -> tuple[Ints, list[str]]:
    """Return the position of the group of each row, and the keys of the groups."""
    codes = np.zeros(n_rows, dtype=np.int64)
    if group is None or isinstance(group, _SCALARS):
        return codes, [_one_group(group)]
    columns = [_columns.read(column, name) for name, column in group_columns(group, "group").items()]
    for column in columns:
        if len(column) != n_rows:
            raise InputError(
                Argument("group") + f" must be one label or have {n_rows:,} rows, as the other columns; got "
                f"{len(column):,}."
            )
    found = observed_groups(columns)
    for position, (_, rows) in enumerate(found):
        codes[rows] = position
    return codes, [group_key(label) for label, _ in found]


def _one_group(group: Any) -> str:
    """Return the key of the group of all rows; a missing label, such as NaN, is an error as it is in a column."""
    for part in group if isinstance(group, tuple) else (group,):
        if _is_missing(part):
            raise InputError(
                Argument("group") + f" must be a label; got {part!r}, a missing value.",
                hint="Leave the group out for rows without one, or give them a group of their own.",
            )
    return NO_GROUP if group is None else group_key(group)


def _is_missing(value: object) -> bool:
    return isinstance(value, (float, date, np.generic)) and not bool(value == value)  # noqa: PLR0124  (NaN and NaT)


def group_key(label: Any) -> str:
    """Return a group as text for the store, which differs between 1 and "1".

    >>> group_key("north"), group_key(("north", 3))
    ('"north"', '["north", 3]')
    """
    if isinstance(label, tuple):
        return json.dumps([_plain(each) for each in label])
    return json.dumps(_plain(label))


def _plain(label: Any) -> Any:
    """Return a label for JSON; labels that are equal in Python, such as 1 and 1.0, become one, and bools text."""
    label = label.item() if isinstance(label, np.generic) and label.dtype.kind not in "Mm" else label
    if isinstance(label, bool):
        return str(label)
    if isinstance(label, float) and label.is_integer():
        return int(label)
    if isinstance(label, str):
        check_text("group", label)
    return json_label(label)


def group_label(key: str) -> Any:
    """Return the label of a group from its key in the store."""
    label = json.loads(key)
    return tuple(label) if isinstance(label, list) else label


def check_name(name: str, value: object) -> str:
    """Return a name for the store as text; it must not be empty or hold control characters."""
    if isinstance(value, Collection) and not isinstance(value, str):
        raise InputError(Argument(name) + f" must be text or a number; got {value!r:.40}.", value=value)
    text = str(value)
    if _is_missing(value) or (not isinstance(value, str) and _ADDRESS.search(text)):
        raise InputError(
            Argument(name) + f" must be text or a number; got {text[:80]}.",
            hint="A missing value, or the address of an object in memory, names nothing.",
        )
    check_text(name, text)
    if not text.strip() or not text.isprintable():
        raise InputError(
            Argument(name) + f" must be text of 1 to 500 printable characters; got {text[:40]!r}.", value=value
        )
    return text


def check_text(name: str, text: str) -> None:
    """Check that the store can hold a text: no lone surrogate, at most 500 characters."""
    if len(text) > 500 or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(
            Argument(name) + f" must be text of at most 500 characters without lone surrogates; got {text[:40]!a}.",
            value=text,
        )
