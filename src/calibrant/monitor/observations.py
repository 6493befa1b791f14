"""Rows that a monitor receives: outcomes, scores, times and groups, read once and cut into tables by window."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Ints
from calibrant._support.errors import Argument, InputError
from calibrant._support.plain_data import label as json_label
from calibrant.monitor.time_windows import read_time, read_times
from calibrant.tables.rows import Rows, group_columns, observed_groups
from calibrant.tables.score_table import ScoreTable, check_scores, count_checked

__all__ = [
    "NO_EVENT",
    "NO_GROUP",
    "Chunk",
    "CountedChunk",
    "RowChunk",
    "check_name",
    "check_text",
    "group_key",
    "group_label",
    "read_groups",
    "split_rows",
]

NO_GROUP = ""
NO_EVENT = ""  # of binary scores, and of the rates that other kinds show
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")
_SCALARS = (str, bytes, bool, int, float, date, np.generic)


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Rows of one call: validated outcomes and scores, times in microseconds, and the group of each row.

    Attributes
    ----------
    rows : Rows
    times : ndarray of int64
    codes : ndarray of int64
        Position of the group of each row in `groups`.
    groups : list of str
        Keys of groups; see `group_key`.
    """

    rows: Rows
    times: Ints
    codes: Ints
    groups: Sequence[str]

    @classmethod
    def read(cls, y: Any, p: Any, time: Any, group: Any, *, pos_label: object = None) -> "RowChunk":
        """Read outcomes and scores of a call; single values are one row."""
        y, p = (([value] if np.ndim(value) == 0 else value) for value in (y, p))
        read = Rows.read(y, {"p": p}, outcome="y", pos_label=pos_label)
        _columns.refuse_missing(read.columns, hint="Leave such rows out first.")
        rows = check_scores(read)
        return cls(rows, read_times(time, len(rows)), *read_groups(group, len(rows)))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def group_keys(self) -> Sequence[str]:
        """Keys of the groups."""
        return self.groups

    @property
    def sizes(self) -> Ints:
        """Number of rows at each time."""
        return np.ones(self.times.size, dtype=np.int64)

    def tables(self, windows: Ints) -> list[tuple[int, tuple[str, str], ScoreTable]]:
        """Return the window, the keys of group and event, and the table of each cell."""
        whole = len(self.rows)
        return [
            (window, (group, NO_EVENT), count_checked(self.rows if len(rows) == whole else self.rows.part(rows)))
            for window, group, rows in split_rows(windows, self.codes, self.groups)
        ]

    def sha256(self) -> str:
        """Return the checksum of the rows in any order."""
        y, p = (column.values.astype(np.float64) for column in (self.rows.y, self.rows.forecasts[0]))
        order = np.lexsort((y, p, self.codes, self.times))
        digest = hashlib.sha256(json.dumps(list(self.groups)).encode())
        for array in (self.times, self.codes, p, y):
            digest.update(np.ascontiguousarray(array[order]).data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class CountedChunk:
    """The table of one window and group that was counted elsewhere."""

    table: ScoreTable
    times: Ints
    group: str

    @classmethod
    def read(cls, table: Any, time: Any, group: Any) -> "CountedChunk":
        """Check a table of counts, its time and its group."""
        if not isinstance(table, ScoreTable) or table.importance:
            found = "importance weights" if isinstance(table, ScoreTable) else type(table).__name__
            raise InputError(
                Argument("table") + f" must be a ScoreTable of counts; got {found}.",
                hint="Count rows with cb.from_query, cb.from_frame or cb.ScoreTable.from_counts.",
            )
        if not len(table):
            raise InputError(Argument("table") + " must have at least one row; got none.")
        return cls(table, np.array([read_time(time)], dtype=np.int64), _one_group(group))

    @property
    def n_rows(self) -> int:
        """Number of rows that were counted."""
        return int(self.table.size)

    @property
    def group_keys(self) -> Sequence[str]:
        """Key of the group."""
        return [self.group]

    @property
    def sizes(self) -> Ints:
        """Number of rows of the table, whose rows stay in one window."""
        return np.zeros(1, dtype=np.int64)

    def tables(self, windows: Ints) -> list[tuple[int, tuple[str, str], ScoreTable]]:
        """Return the window, the keys of group and event, and the table."""
        return [(int(windows[0]), (self.group, NO_EVENT), self.table)]

    def sha256(self) -> str:
        """Return the checksum of the table, its time and its group."""
        digest = hashlib.sha256(json.dumps([self.group, int(self.times[0])]).encode())
        for array in (self.table.score, self.table.n, self.table.k):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


class Chunk(Protocol):
    """Rows of one call, of any kind of forecast."""

    @property
    def times(self) -> Ints:
        """Times of rows in microseconds."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def group_keys(self) -> Sequence[str]:
        """Keys of the groups."""

    @property
    def sizes(self) -> Ints:
        """Number of rows at each time; 0 for rows that were counted elsewhere and stay in one window."""

    def tables(self, windows: Ints) -> list[tuple[int, tuple[str, str], ScoreTable]]:
        """Return the window, the keys of group and event, and the table of each cell.

        `windows` has the window of each row.
        """

    def sha256(self) -> str:
        """Return the checksum of the rows in any order."""


def split_rows(windows: Ints, codes: Ints, groups: Sequence[str]) -> Iterator[tuple[int, str, Ints]]:
    """Yield the window, the group and the positions of the rows of each cell."""
    keys, position = np.unique(windows, return_inverse=True)
    code = position * len(groups) + codes
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    for chosen in np.split(order, starts[1:]):
        window, group = divmod(int(code[chosen[0]]), len(groups))
        yield int(keys[window]), groups[group], chosen


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
