"""Times of all libraries, and the windows they fall in."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from calibrant import InputError
from calibrant.monitor.time_windows import WindowRule, read_duration, read_time, read_times, to_datetime

BERLIN = timezone(timedelta(hours=1))
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("unit", ["ps", "fs", "as"])
def test_units_below_nanoseconds_are_times_near_1970(unit):
    times = np.array([0, 5_000_000], dtype="datetime64[us]").astype(f"datetime64[{unit}]")
    assert read_times(times, 2).tolist() == [0, 5_000_000]
    assert read_time(times[1]) == 5_000_000
    with pytest.raises(InputError, match="time"):
        read_time(np.datetime64("NaT", unit))


@pytest.mark.parametrize(
    "value",
    [
        NOON,
        datetime(2026, 1, 31, 12),
        datetime(2026, 1, 31, 13, tzinfo=BERLIN),
        np.datetime64("2026-01-31T12:00:00"),
        np.datetime64("2026-01-31T12:00:00.000000999", "ns"),
        "2026-01-31T12:00:00",
        "2026-01-31 13:00:00+01:00",
        "2026-01-31T12:00:00Z",
    ],
)
def test_naive_times_are_utc_and_aware_times_are_converted(value):
    assert to_datetime(read_time(value)) == NOON
    assert read_times(value, 3).tolist() == [read_time(NOON)] * 3


def test_a_date_is_its_first_moment():
    assert to_datetime(read_time(date(2026, 1, 31))) == datetime(2026, 1, 31, tzinfo=UTC)


def test_columns_of_all_libraries_give_the_same_times():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    naive = [datetime(2026, 3, 29, 0, 30), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2026, 10, 25, 2)]
    utc = [each.replace(tzinfo=UTC) for each in naive]
    expected = [read_time(each) for each in naive]
    tokyo = pd.Series(utc).dt.tz_convert("Asia/Tokyo")
    columns = [
        naive,
        utc,
        [each.isoformat() for each in naive],
        np.array(naive, dtype="datetime64[us]"),
        pd.Series(naive),
        pd.Series(utc),
        tokyo,
        pd.DatetimeIndex(tokyo),
        pd.Series([each.isoformat() for each in utc]),
        pl.Series(naive),
        pl.Series(utc).dt.convert_time_zone("Asia/Tokyo"),
        pa.chunked_array([pa.array(utc, type=pa.timestamp("us", tz="Asia/Tokyo"))]),
    ]
    for column in columns:
        assert read_times(column, 3).tolist() == expected, type(column)


def test_a_column_of_dates_is_read():
    pl = pytest.importorskip("polars")
    days = [date(2026, 1, 1), date(2026, 1, 2)]
    expected = [read_time(day) for day in days]
    assert read_times(pl.Series(days), 2).tolist() == expected
    assert read_times(days, 2).tolist() == expected


def test_dates_of_arrow_outside_the_calendar_are_an_error():
    pa = pytest.importorskip("pyarrow")
    for day in (2**31 - 1, -(2**31)):
        with pytest.raises(InputError, match="time must lie in the years 1 to 8999"):
            read_times(pa.chunked_array([pa.array([day], pa.int32()).cast(pa.date32())]), 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("yesterday", r"time must hold times; row 0 is 'yesterday'. Pass a datetime"),
        ([1.5, 2.5], "time must hold times; got type float64"),
        ([NOON], "time must be one time or have 2 rows, as the other columns; got 1"),
        ([NOON, None], r"time has 1 missing value \(first at row 1\)"),
        ([NOON, 7], "time must hold times; row 1 is 7"),
        ([NOON, {}], "time must hold times; row 1 is {}"),
        (np.array(["2026-01-01", "99999-01-01"], dtype="datetime64[D]"), "must lie in the years 1 to 8999; row 1"),
    ],
)
def test_other_values_are_an_error_that_names_the_row(value, message):
    with pytest.raises(InputError, match=message):
        read_times(value, 2)


@pytest.mark.parametrize(
    ("window", "time", "start"),
    [
        ("hour", "2026-01-31T12:59:59.999999", "2026-01-31T12:00:00"),
        ("hour", "2026-01-31T13:00:00", "2026-01-31T13:00:00"),
        ("day", "2026-01-31T23:59:59.999999", "2026-01-31"),
        ("day", "1969-12-31T23:00:00", "1969-12-31"),
        ("week", "2026-02-01T23:59:59", "2026-01-26"),
        ("week", "2026-02-02", "2026-02-02"),
        ("week", "1969-12-28", "1969-12-22"),
    ],
)
def test_a_window_contains_its_start_and_not_its_end(window, time, start):
    found = to_datetime(WindowRule(window).start(read_time(time)))
    assert found == datetime.fromisoformat(start).replace(tzinfo=UTC)


def test_weeks_are_those_of_iso_8601(rng):
    for day in rng.integers(-30_000, 30_000, 200).tolist():
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
        start = to_datetime(WindowRule("week").start(read_time(moment)))
        assert start.isocalendar()[:2] == moment.isocalendar()[:2]
        assert start.isoweekday() == 1


@pytest.mark.parametrize("window", ["month", 0, -5, True, 1.5, None])
def test_other_windows_are_an_error(window):
    with pytest.raises(InputError, match="window must be 'hour', 'day', 'week' or a whole number of rows"):
        WindowRule(window)


def test_windows_of_rows_have_no_maturity():
    with pytest.raises(InputError, match="maturity must be 0 for windows of a number of rows"):
        WindowRule(100, 1)


@pytest.mark.parametrize("value", [2, "2 days", timedelta(seconds=-1)])
def test_a_duration_is_a_timedelta(value):
    with pytest.raises(InputError, match="maturity must be a timedelta that is not negative"):
        read_duration(value, "maturity")
    assert read_duration(np.timedelta64(2, "h"), "maturity") == read_duration(timedelta(hours=2), "maturity")
