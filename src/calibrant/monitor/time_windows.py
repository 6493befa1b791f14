"""Times as microseconds since 1970 in UTC, and the windows that they fall in."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant._support import columns as _columns
from calibrant._support.arrays import Ints
from calibrant._support.errors import Argument, InputError

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
FIRST_TIME = int((datetime(1900, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND)  # older ones stand for missing times
MOST_ROWS = 10**12  # of a window
_MOST_DAYS = 365_000  # of a maturity delay: the time before which windows are closed lies after the year 1
_LENGTHS = {"hour": DAY // 24, "day": DAY, "week": 7 * DAY}
# 1970-01-01 is a Thursday; weeks begin on Monday, as in ISO 8601.
_FIRST_MONDAY = 4 * DAY
_HINT = "Pass a datetime, a date, a column of them, or text such as '2026-01-31T08:00:00+01:00'."


@dataclass(frozen=True)
class WindowRule:
    """The windows of a stream: an hour, a day, a week, or a number of rows.

    The key of a window is its start in microseconds; for windows of rows it is its number, from 0.

    Attributes
    ----------
    window : {"hour", "day", "week"} or int
    maturity : int
        Microseconds that a window stays open after its end.
    """

    window: str | int
    maturity: int = 0

    def __post_init__(self) -> None:
        whole = isinstance(self.window, int) and not isinstance(self.window, bool) and 1 <= self.window <= MOST_ROWS
        if not whole and self.window not in _LENGTHS:
            raise InputError(
                Argument("window")
                + " must be 'hour', 'day', 'week' or a whole number of rows of at least 1 and at most "
                f"{MOST_ROWS:,}; got {self.window!r}.",
                value=self.window,
            )
        if self.counts_rows and self.maturity:
            raise InputError(
                Argument("maturity") + " must be 0 for windows of a number of rows; got a delay.",
                hint="Use windows of an hour, a day or a week.",
            )
        if not 0 <= self.maturity <= _MOST_DAYS * DAY:
            raise InputError(
                Argument("maturity")
                + f" must lie between 0 and {_MOST_DAYS:,} days; got {self.maturity / DAY:,.0f} days.",
                hint="A window closes, and is tested, when this time has passed.",
            )

    @property
    def counts_rows(self) -> bool:
        """Whether a window is a number of rows."""
        return isinstance(self.window, int)

    @property
    def n_rows(self) -> int:
        """Number of rows of a window."""
        assert isinstance(self.window, int)
        return self.window

    @property
    def length(self) -> int:
        """Length of a window in microseconds; 0 for windows of rows."""
        return 0 if isinstance(self.window, int) else _LENGTHS[self.window]

    def starts(self, times: Ints) -> Ints:
        """Return the starts of the windows that contain the times."""
        offset = _FIRST_MONDAY if self.window == "week" else 0
        return (times - offset) // self.length * self.length + offset

    def start(self, time: int) -> int:
        """Return the start of the window that contains a time."""
        return int(self.starts(np.array([time], dtype=np.int64))[0])


def read_time(value: Any, name: str = "time") -> int:
    """Return one time in microseconds; naive times are UTC."""
    return int(read_times(value, 1, name)[0])


def read_times(value: Any, n_rows: int, name: str = "time") -> Ints:
    """Return the times of rows in microseconds: one time for all rows, or a column; naive times are UTC."""
    if isinstance(value, (str, date, np.datetime64)):
        found = _from_cells(_columns.ColumnData(name, np.array([value], dtype=object)))
        return np.full(n_rows, found[0], dtype=np.int64)
    if value is None or isinstance(value, (int, float, np.generic)):
        raise InputError(Argument(name) + f" must be a time or a column of times; got {value!r}.", hint=_HINT)
    column = _columns.read(_naive(value, name), name)
    if len(column) != n_rows:
        raise InputError(
            Argument(name) + f" must be one time or have {n_rows:,} rows, as the other columns; got {len(column):,}."
        )
    _columns.refuse_missing([column])
    if column.values.dtype.kind == "M":
        return _from_numpy(column)
    if column.values.dtype.kind in "OUT":
        return _from_cells(column)
    raise column.error(f"must hold times; got type {column.values.dtype}.", hint=_HINT)


def _naive(value: Any, name: str) -> Any:
    """Return a column of times with time zones as naive times in UTC; other columns stay as they are."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return value
    import narwhals as nw

    series: Any = nw.from_native(value, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return value
    if series.dtype == nw.Date:
        try:
            series = series.cast(nw.Datetime("us"))
        except ValueError as error:  # Arrow has dates up to the year 5,881,580
            raise InputError(Argument(name) + f" must lie in the years 1 to {LAST_YEAR}; got others.") from error
    elif series.dtype == nw.Datetime and getattr(series.dtype, "time_zone", None):
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return series.to_native()


LAST_YEAR = 8999  # so that the end of each window is a time, too


def _from_numpy(column: _columns.ColumnData) -> Ints:
    values = column.values
    if np.datetime_data(values.dtype)[0] in ("ps", "fs", "as"):  # all lie near 1970; NumPy has no years of them
        values = values.astype("datetime64[us]")
    years = values.astype("datetime64[Y]").astype(np.int64) + 1970
    bad = (years < 1) | (years > LAST_YEAR)
    if bad.any():
        row = int(np.argmax(bad))
        raise column.error(
            f"must lie in the years 1 to {LAST_YEAR}; {column.place(row)} is {column.values[row]}.", hint=_HINT, row=row
        )
    return values.astype("datetime64[us]").astype(np.int64)


def _from_cells(column: _columns.ColumnData) -> Ints:
    """Convert cells of Python; equal cells are converted once."""
    known: dict[Any, int] = {}
    found = np.empty(len(column), dtype=np.int64)
    for row, cell in enumerate(column.values):
        if not isinstance(cell, (str, date, np.datetime64)):  # others may have no hash
            _refuse(cell, column, row)
        key = cell, getattr(cell, "fold", 0)  # the hour that a clock repeats: equal cells, other times
        if key not in known:
            known[key] = _microseconds(cell, column, row)
        found[row] = known[key]
    return found


def _microseconds(cell: Any, column: _columns.ColumnData, row: int) -> int:
    if isinstance(cell, np.datetime64):
        return int(_from_numpy(_columns.ColumnData(column.name, np.array([cell])))[0])
    try:
        moment = datetime.fromisoformat(cell.strip()) if isinstance(cell, str) else cell
        if not isinstance(moment, datetime):
            moment = datetime.combine(moment, time())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if moment.year > LAST_YEAR:
            raise OverflowError
        return int((moment - _EPOCH) // _MICROSECOND)
    except (TypeError, ValueError, OverflowError) as error:
        _refuse(cell, column, row, error)


def _refuse(cell: Any, column: _columns.ColumnData, row: int, cause: Exception | None = None) -> NoReturn:
    raise column.error(f"must hold times; {column.place(row)} is {cell!r}.", hint=_HINT, row=row) from cause


def read_duration(value: Any, name: str) -> int:
    """Return a duration in microseconds; it must be a timedelta that is not negative."""
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise InputError(
            Argument(name) + f" must be a timedelta that is not negative; got {value!r}.",
            hint="For two days pass datetime.timedelta(days=2).",
            value=value,
        )
    return value // _MICROSECOND


def to_datetime(time: int) -> datetime:
    """Return microseconds as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=time)


def window_text(start: datetime, window: str | int) -> str:
    """Return the start of a window as text: the day alone for days and weeks."""
    return f"{start:%Y-%m-%d}" if window in ("day", "week") else f"{start:%Y-%m-%d %H:%M}"


def time_array(times: list[int]) -> NDArray[np.datetime64]:
    """Return microseconds as an array of datetime64."""
    return np.array(times, dtype="datetime64[us]")
