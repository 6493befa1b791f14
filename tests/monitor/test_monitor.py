"""`Monitor` on SQLite and PostgreSQL: windows, late rows, batches, groups, alarms, results."""

import json
import math
import threading
import uuid
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

import calibrant as cb
from calibrant import InputError

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def stream(n, seed=0, shift=0.0):
    """Return outcomes and scores of rows whose log-odds are off by `shift`."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.6, n).round(2)
    odds = p / (1 - p) * np.exp(shift)
    return (rng.random(n) < odds / (1 + odds)).astype(int), p


def fill(monitor, days, n=200, shift=0.0, first=0, group=None):
    """Observe `n` rows on each of several days; return all outcomes and scores."""
    found = []
    for day in range(first, first + days):
        y, p = stream(n, day, shift)
        monitor.observe(y, p, time=START + day * DAY, group=group)
        found.append((y, p))
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def evidence(monitor):
    return [(w.start, w.n_rows, w.n_events, w.log_e_value) for w in monitor.history().windows if w.closed]


def test_a_calibrated_stream_has_no_alarm_and_a_shifted_one_has(store):
    calm, shifted = cb.Monitor(store, model="calm"), cb.Monitor(store, model="shifted")
    fill(calm, 30)
    fill(shifted, 30, shift=1.0, n=500)
    assert not calm.status().alarm
    assert "no alarm" in repr(calm.status())
    status = shifted.status()
    assert status.alarm
    assert status.headline == "Status: alarm for model 'shifted' (all rows)"
    (alarm,) = status.alarms
    assert alarm.group is None
    assert alarm.log_e_value >= status.threshold == pytest.approx(math.log(2 / (0.75 * 0.05)))
    assert (status.n_rows, status.n_windows, status.n_open_windows) == (15_000, 29, 1)
    assert status.last_window == START + 28 * DAY
    assert status.observed > status.predicted
    assert status.confidence_sequence.low <= status.confidence_sequence.estimate <= status.confidence_sequence.high
    assert calm.models() == ["calm", "shifted"]


def test_the_evaluation_equals_that_of_all_rows(store):
    monitor = cb.Monitor(store)
    y, p = fill(monitor, 5)
    found, expected = monitor.evaluate(n_resamples=19), cb.evaluate(y, p, n_resamples=19)
    assert found.to_dict() == expected.to_dict()
    later = monitor.evaluate(since=START + 2 * DAY, until=START + 4 * DAY, n_resamples=19)
    assert later.table == cb.ScoreTable.from_arrays(y[400:800], p[400:800])
    with pytest.raises(InputError, match="There must be at least one row in the windows to evaluate; got none."):
        monitor.evaluate(since="2030-01-01")


def test_a_window_closes_when_the_newest_time_reaches_its_end(store):
    monitor = cb.Monitor(store, window="hour")
    y, p = stream(10)
    assert monitor.observe(y, p, time="2026-01-01T08:10").n_closed == 0
    assert monitor.observe(y, p, time="2026-01-01T08:59:59.999999").n_closed == 0
    assert monitor.observe(y, p, time="2026-01-01T09:00").n_closed == 1
    assert [w.closed for w in monitor.history().windows] == [True, False]
    assert monitor.history().windows[0].n_rows == 20


def test_a_maturity_delay_keeps_windows_open(store):
    monitor = cb.Monitor(store, maturity=timedelta(days=2))
    y, p = stream(10)
    for day in range(3):
        assert monitor.observe(y, p, time=START + day * DAY).n_closed == 0
    receipt = monitor.observe(y, p, time=START + 3 * DAY)
    assert receipt.n_closed == 1
    assert monitor.observe(y, p, time=START + DAY).n_late == 0
    assert monitor.observe(y, p, time=START).n_late == 10


def test_late_rows_enter_the_oldest_open_window(store):
    monitor = cb.Monitor(store)
    fill(monitor, 3, n=50)
    before = evidence(monitor)
    y, p = stream(7, 99)
    receipt = monitor.observe(y, p, time=START)
    assert (receipt.n_rows, receipt.n_late) == (7, 7)
    assert evidence(monitor) == before
    assert [w.n_rows for w in monitor.history().windows] == [50, 50, 57]
    notes = {note.code: note for note in monitor.status().notes}
    assert notes["late"].count == 7
    assert "closed, counted in the next open window: 7" in notes["late"].text


def test_one_call_with_many_days_equals_one_call_per_day(store):
    daily, once = cb.Monitor(store, model="daily"), cb.Monitor(store, model="once")
    y, p = fill(daily, 12, n=40, shift=0.4)
    time = np.repeat([START + day * DAY for day in range(12)], 40)
    order = np.random.default_rng(0).permutation(y.size)
    receipt = once.observe(y[order], p[order], time=time[order].tolist())
    assert receipt.n_closed == 11
    assert evidence(once) == evidence(daily)


def test_windows_can_be_closed_by_hand(store):
    monitor = cb.Monitor(store, maturity=timedelta(days=5))
    fill(monitor, 3, n=20)
    assert monitor.close(until=START + 2 * DAY - timedelta(hours=1)).n_closed == 1
    assert monitor.close(until=START + 2 * DAY).n_closed == 1
    assert monitor.close().n_closed == 1
    assert monitor.close().n_closed == 0
    assert monitor.observe(*stream(5), time=START + 2 * DAY).n_late == 5


def test_windows_of_a_number_of_rows_are_filled_in_order_of_time(store):
    monitor = cb.Monitor(store, window=30)
    y, p = stream(100)
    time = [START + i * timedelta(minutes=1) for i in range(100)]
    assert monitor.observe(y[:50], p[:50], time=time[:50]).n_closed == 1
    rest = np.random.default_rng(0).permutation(np.arange(50, 100))
    assert monitor.observe(y[rest], p[rest], time=[time[i] for i in rest]).n_closed == 2
    windows = monitor.history().windows
    assert [w.n_rows for w in windows] == [30, 30, 30, 10]
    assert [w.n_events for w in windows] == [int(y[i : i + 30].sum()) for i in range(0, 100, 30)]
    assert [w.start for w in windows] == time[::30]
    assert monitor.close().n_closed == 1
    monitor.add_table(cb.ScoreTable.from_arrays(y, p), time=time[-1])
    assert [w.n_rows for w in monitor.history().windows] == [30, 30, 30, 10, 100]
    with pytest.raises(InputError, match="until must be omitted for windows of a number of rows"):
        monitor.close(until=START)


def test_a_batch_is_stored_once(store):
    monitor = cb.Monitor(store)
    y, p = stream(50)
    first = monitor.observe(y, p, time=START, batch="a-1")
    order = np.random.default_rng(1).permutation(50)
    again = monitor.observe(y[order], p[order], time=START, batch="a-1")
    assert (first.n_rows, first.repeated_batch) == (50, False)
    assert (again.n_rows, again.repeated_batch) == (0, True)
    assert monitor.status().n_rows == 50
    other = y.copy()
    other[0] = 1 - other[0]
    for rows, time in (((other, p), START), ((y, p), START + DAY), ((y[:-1], p[:-1]), START)):
        with pytest.raises(InputError, match="batch must be a new id or come with the same rows as before; got 'a-1'"):
            monitor.observe(*rows, time=time, batch="a-1")
    assert monitor.status().n_rows == 50
    cb.Monitor(store, model="other").observe(y, p, time=START, batch="a-1")


def test_a_table_counts_as_its_rows(store):
    rows, tables = cb.Monitor(store, model="rows"), cb.Monitor(store, model="tables")
    for day in range(4):
        y, p = stream(100, day)
        rows.observe(y, p, time=START + day * DAY, group="x")
        tables.add_table(cb.ScoreTable.from_arrays(y, p), time=START + day * DAY, group="x", batch=day)
        assert tables.add_table(
            cb.ScoreTable.from_arrays(y, p), time=START + day * DAY, group="x", batch=day
        ).repeated_batch
    assert evidence(rows) == evidence(tables)
    assert rows.status().to_frame().equals(tables.status().to_frame())
    late = tables.add_table(cb.ScoreTable.from_arrays(y, p), time=START)
    assert (late.n_rows, late.n_late) == (100, 100)
    weighted = cb.ScoreTable.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1.5, 2])
    for bad, found in ((weighted, "importance weights"), ([0.5], "list")):
        with pytest.raises(InputError, match=f"table must be a ScoreTable of counts; got {found}"):
            tables.add_table(bad, time=START)
    with pytest.raises(InputError, match="table must have at least one row; got none"):
        tables.add_table(cb.ScoreTable.empty(), time=START)


def test_the_state_survives_a_restart_after_any_call(store):
    whole, restarted = cb.Monitor(store, model="whole"), "restarted"
    fill(whole, 8, n=60, shift=0.3, group="g")
    for day in range(8):
        monitor = cb.Monitor(store, model=restarted)
        monitor.observe(*stream(60, day, 0.3), time=START + day * DAY, group="g")
    assert evidence(monitor) == evidence(whole)
    assert monitor.history("g").to_dict()["windows"] == whole.history("g").to_dict()["windows"]
    ours, theirs = (m.status().to_dict() for m in (monitor, whole))
    for name in ("log_e_value", "confidence_sequence", "groups", "n_rows", "last_window"):
        assert ours[name] == theirs[name]


def test_only_the_miscalibrated_group_raises_an_alarm(store):
    monitor = cb.Monitor(store)
    for day in range(40):
        parts = [stream(200, 3 * day + i, 1.2 if i == 2 else 0.0) for i in range(3)]
        y, p = map(np.concatenate, zip(*parts, strict=True))
        monitor.observe(y, p, time=START + day * DAY, group=np.repeat(["a", "b", "c"], 200))
    status = monitor.status()
    assert {alarm.group for alarm in status.alarms} - {None} == {"c"}
    assert next(iter(status.groups)) == "c"
    assert [name for name, group in status.groups.items() if group.alarm] == ["c"]
    assert sum(group.n_rows for group in status.groups.values()) == 39 * 600
    assert [group.weight for group in status.groups.values()] == [1 / 6] * 3
    assert monitor.history("c").windows[-2].alarm
    assert not monitor.history("a").windows[-2].alarm
    assert set(monitor.evaluate(n_resamples=19).groups) == {"a", "b", "c"}
    with pytest.raises(InputError, match="group must be a group of the model, which has 'a', 'b', 'c'; got 'd'"):
        monitor.history("d")


def test_the_whole_is_the_sum_of_its_groups_and_of_rows_without_one(store):
    grouped, plain = cb.Monitor(store, model="grouped"), cb.Monitor(store, model="plain")
    for day in range(4):
        y, p = stream(90, day, 0.5)
        labels = np.array(["n", "s", "w"])[np.arange(90) % 3]
        grouped.observe(y[:60], p[:60], time=START + day * DAY, group=labels[:60])
        grouped.observe(y[60:], p[60:], time=START + day * DAY)
        plain.observe(y, p, time=START + day * DAY)
    assert evidence(grouped) == evidence(plain)
    assert set(grouped.status().groups) == {"n", "s", "w"}
    assert set(grouped.evaluate(n_resamples=19).groups) == {"n", "s", "w", "(no group)"}


def test_groups_are_labels_or_combinations_of_labels(store):
    monitor = cb.Monitor(store)
    y, p = stream(4)
    monitor.observe(y, p, time=START, group={"land": ["a", "a", "b", "b"], "year": [1, 2, 1, 2]})
    monitor.observe(y, p, time=START, group=7)
    monitor.observe(y, p, time=START, group=["x\x00y", "7", "x\x00y", "7"])
    monitor.observe(y, p, time=START + DAY)
    groups = monitor.status().groups
    assert set(groups) == {("a", 1), ("a", 2), ("b", 1), ("b", 2), 7, "7", "x\x00y"}
    assert groups[7].n_rows == 4
    json.loads(monitor.status().to_json())
    with pytest.raises(InputError, match=r"group has 1 missing value \(first at row 2\)"):
        monitor.observe(y, p, time=START, group=["a", "a", None, "b"])
    with pytest.raises(InputError, match="group must be one label or have 4 rows, as the other columns; got 3"):
        monitor.observe(y, p, time=START, group=["a", "a", "b"])


@pytest.mark.parametrize("group", [math.nan, np.float32("nan"), np.datetime64("NaT")])
def test_a_missing_label_of_all_rows_is_no_group(path, group):
    monitor = cb.Monitor(path)
    table = cb.ScoreTable.from_arrays([0, 1], [0.2, 0.8])
    with pytest.raises(InputError, match="group must be a label; got .*, a missing value"):
        monitor.observe([0, 1], [0.2, 0.8], time=START, group=group)
    for each in (group, ("a", group)):
        with pytest.raises(InputError, match="group must be a label; got .*, a missing value"):
            monitor.add_table(table, time=START, group=each)
    assert monitor.status().n_rows == 0


@pytest.mark.parametrize("batch", [object(), stream, math.nan, iter([1])])
def test_the_id_of_a_batch_names_it_in_other_processes(path, batch):
    monitor = cb.Monitor(path)
    with pytest.raises(InputError, match="batch must be text or a number; got"):
        monitor.observe([0, 1], [0.2, 0.8], time=START, batch=batch)
    assert monitor.status().n_rows == 0
    for good in (7, "7 at 0x1f>", date(2026, 1, 1), np.int64(3), uuid.UUID(int=1)):
        assert monitor.observe([0, 1], [0.2, 0.8], time=START, batch=good).n_rows == 2


def test_new_groups_share_the_weight_of_their_cohort(store):
    monitor = cb.Monitor(store)
    for day, groups in enumerate((["a", "b"], ["a", "b"], ["c"], ["a", "d", "e"], ["a"])):
        for i, group in enumerate(groups):
            monitor.observe(*stream(20, 10 * day + i), time=START + day * DAY, group=group)
    weights = {name: group.weight for name, group in monitor.status().groups.items()}
    assert weights == pytest.approx({"a": 1 / 4, "b": 1 / 4, "c": 1 / 6, "d": 1 / 24, "e": 1 / 24})


def test_settings_are_stored_and_a_clash_names_both_values(store):
    cb.Monitor(store, window="week", alpha=0.01, maturity=timedelta(days=1), resolution=2**-10)
    again = cb.Monitor(store)
    assert (again.settings.window, again.settings.alpha, again.settings.resolution) == ("week", 0.01, 2**-10)
    cb.Monitor(store, alpha=0.01, window="week")
    with pytest.raises(InputError, match=r"alpha must be 0.01, the value stored for model 'default'; got 0.05"):
        cb.Monitor(store, alpha=0.05)
    with pytest.raises(
        InputError, match=r"maturity must be datetime.timedelta\(days=1\), .*; got datetime.timedelta\(0\)"
    ):
        cb.Monitor(store, maturity=timedelta(0))
    with pytest.raises(TypeError, match="unexpected keyword argument 'windows'"):
        cb.Monitor(store, windows="day")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, "alpha must lie between 0 and 1"),
        ({"alpha": 1e-320}, "alpha must be at least 1e-12"),
        ({"window": 2**70}, "at most 1,000,000,000,000; got 1180591620717411303424"),
        ({"window": "month"}, "window must be 'hour'"),
        ({"resolution": 3}, "resolution must lie between"),
        ({"model": ""}, "model must be text of 1 to 500 printable characters"),
        ({"maturity": 3}, "maturity must be a timedelta"),
        ({"maturity": timedelta(days=3_000_000)}, "maturity must lie between 0 and 365,000 days; got 3,000,000 days"),
        ({"maturity": timedelta.max}, "maturity must lie between 0 and 365,000 days; got 1,000,000,000 days"),
    ],
)
def test_bad_settings_create_no_store(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        cb.Monitor(tmp_path / "store.db", **options)
    assert not (tmp_path / "store.db").exists()


def test_the_longest_maturity_can_be_stored_and_read(path):
    monitor = cb.Monitor(path, maturity=timedelta(days=365_000))
    monitor.observe([0, 1], [0.2, 0.8], time="1900-01-01")
    assert monitor.observe([0, 1], [0.2, 0.8], time="2026-01-01").n_closed == 0
    assert cb.Monitor(path).status().n_open_rows == 4


def test_one_row_at_a_time(store):
    monitor = cb.Monitor(store)
    assert monitor.observe(1, 0.3, time=date(2026, 1, 1), group="a").n_rows == 1
    assert monitor.observe(False, np.float32(0.5), time=np.datetime64("2026-01-02")).n_closed == 1
    assert monitor.status().n_rows == 2


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 2], [0.1, 0.2], "y must hold 0 and 1"),
        ([0, 1], [0.1, 1.2], r"p must lie in \[0, 1\]"),
        ([0, 1], [0.1, math.nan], "p has 1 missing value"),
        ([0], [0.1, 0.2], "p has 2 rows, y has 1"),
        ([], [], "hold no rows"),
    ],
)
def test_bad_rows_store_nothing(store, y, p, message):
    monitor = cb.Monitor(store)
    with pytest.raises(InputError, match=message):
        monitor.observe(y, p, time=START, batch=1)
    assert monitor.status().n_rows == 0
    monitor.observe([0, 1], [0.1, 0.2], time=START, batch=1)


def test_resolution_rounds_the_stored_scores(store):
    rng = np.random.default_rng(0)
    monitor = cb.Monitor(store, resolution=2**-6)
    p = rng.random(1000)
    monitor.observe(rng.random(1000) < p, p, time=START)
    assert len(monitor.evaluate(n_resamples=19).table) <= 65


def test_an_alarm_is_acknowledged_with_a_reason(store):
    monitor = cb.Monitor(store)
    fill(monitor, 25, n=500, shift=1.0)
    (alarm,) = monitor.status().alarms
    monitor.acknowledge(alarm, "the labels of March were wrong")
    fill(monitor, 3, n=500, shift=1.0, first=25)
    status = cb.Monitor(store).status()
    assert not status.alarm
    assert status.alarms[0].reason == "the labels of March were wrong"
    assert "acknowledged: the labels of March were wrong" in repr(status)
    with pytest.raises(InputError, match=f"alarm must be an alarm of the model, which has {alarm.id}; got 99"):
        monitor.acknowledge(99, "no")


def test_a_new_version_has_its_own_evidence_and_a_smaller_share_of_alpha(store):
    monitor = cb.Monitor(store)
    fill(monitor, 20, n=500, shift=1.0)
    assert monitor.status().alarm
    for day in range(20, 26):
        monitor.observe(*stream(500, day), time=START + day * DAY, version="2026-b")
    status = monitor.status()
    assert (status.version, status.n_windows) == ("2026-b", 5)
    assert status.log_e_value < 3
    assert status.threshold == pytest.approx(math.log(2 * 8 / 0.05))
    assert status.alarm, "the alarm of the first version is not acknowledged"
    assert monitor.status(version="1").n_windows == 20, "the clock of later versions closes windows of earlier ones"
    assert monitor.evaluate(n_resamples=19).n_rows == 3000
    assert monitor.evaluate(version="1", n_resamples=19).n_rows == 10_000
    with pytest.raises(InputError, match="version must be a version of the model, which has '1', '2026-b'; got 'c'"):
        monitor.status(version="c")


def test_a_deleted_model_leaves_no_rows(store):
    import sqlalchemy as sa

    from calibrant.monitor import schema

    monitor, other = cb.Monitor(store, model="old"), cb.Monitor(store, model="kept")
    for each in (monitor, other):
        fill(each, 25, n=300, shift=1.0, group="g")
        each.predict("a", 0.3, time=START)
        each.observe([1], [0.5], time=START, batch="b")
    before = evidence(other)
    monitor.delete("old")
    assert monitor.models() == ["kept"]
    assert evidence(other) == before
    with other.store.read() as connection:
        (left,) = connection.execute(sa.select(schema.models.c.id)).scalars()
        assert set(connection.execute(sa.select(schema.versions.c.model_id)).scalars()) == {left}
        (version,) = connection.execute(sa.select(schema.versions.c.id)).scalars()
        for table in (schema.windows, schema.cells, schema.streams, schema.evidence, schema.alarms, schema.pending):
            assert set(connection.execute(sa.select(table.c.version_id)).scalars()) == {version}, table.name
        assert set(connection.execute(sa.select(schema.batches.c.model_id)).scalars()) == {left}
    with pytest.raises(InputError, match="Model 'old' was deleted from the store"):
        monitor.status()
    with pytest.raises(InputError, match=r"model must be a model of the store, which has \['kept'\]; got 'old'"):
        other.delete("old")
    assert cb.Monitor(store, model="old").status().n_rows == 0


def test_forgotten_windows_keep_their_evidence(store):
    monitor, kept = cb.Monitor(store, model="a"), cb.Monitor(store, model="b")
    for each in (monitor, kept):
        fill(each, 10, n=50, shift=0.5, group="g")
    before = evidence(monitor)
    assert monitor.forget(START + 6 * DAY) == 6
    assert evidence(monitor) == before
    assert monitor.evaluate(n_resamples=19).table == kept.evaluate(n_resamples=19).table
    since = START + 6 * DAY
    assert monitor.evaluate(since, n_resamples=19).table == kept.evaluate(since, n_resamples=19).table
    with pytest.raises(InputError, match=r"since must not lie in windows that forget\(\) merged"):
        monitor.evaluate(since=START + 3 * DAY)
    for each in (monitor, kept):
        fill(each, 5, n=50, shift=0.5, group="g", first=10)
    assert evidence(monitor) == evidence(kept)
    assert monitor.forget(START + 8 * DAY) == 3
    assert monitor.forget(START + 8 * DAY) == 0
    assert monitor.evaluate(n_resamples=19).table == kept.evaluate(n_resamples=19).table


def test_compacting_rounds_closed_windows_only(store):
    rng = np.random.default_rng(0)
    monitor = cb.Monitor(store)
    for day in range(3):
        p = rng.random(500)
        monitor.observe(rng.random(500) < p, p, time=START + day * DAY)
    before = evidence(monitor)
    distinct, rounded = monitor.compact(2**-5)
    assert (distinct, rounded <= 66) == (1000, True)
    assert evidence(monitor) == before
    assert len(monitor.evaluate(since=START + 2 * DAY, n_resamples=19).table) == 500


def test_an_export_holds_all_counts(store, tmp_path):
    import pyarrow.parquet as pq

    monitor = cb.Monitor(store)
    fill(monitor, 25, n=300, shift=1.0, group="g")
    y, p = stream(40, 77)
    monitor.observe(y, p, time=START + 24 * DAY)
    paths = monitor.export(tmp_path / "out")
    assert sorted(path.name for path in paths) == [
        "alarms.parquet",
        "history.parquet",
        "settings.json",
        "tables.parquet",
    ]
    counts = pq.read_table(tmp_path / "out" / "tables.parquet").to_pandas()
    for name, key in (("g", "g"), ("(no group)", "")):
        part = counts[counts["group"] == key]
        table = cb.ScoreTable.from_counts(*(part[column].to_numpy() for column in ("score", "n", "k")))
        assert table == monitor.evaluate(n_resamples=19).groups[name].table
    history = pq.read_table(tmp_path / "out" / "history.parquet").to_pandas()
    whole = history[history["group"] == ""]
    assert whole["log_e"].tolist() == [w[3] for w in evidence(monitor)]
    assert len(pq.read_table(tmp_path / "out" / "alarms.parquet")) == len(monitor.status().alarms) > 0
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert settings["settings"]["window"] == "day"
    with pytest.raises(InputError, match="folder must be a new or empty folder; 'out' is not"):
        monitor.export(tmp_path / "out")


def test_an_empty_monitor_has_a_status(store, tmp_path):
    monitor = cb.Monitor(store)
    status = monitor.status()
    assert (status.alarm, status.n_rows, status.last_window) == (False, 0, None)
    assert "No window is closed" in repr(status)
    assert "no windows" in repr(monitor.history())
    assert json.loads(status.to_json())["alarm"] is False
    assert len(status.to_frame()) == 1
    assert monitor.close().n_closed == 0
    assert len(monitor.export(tmp_path / "out")) == 4


def test_results_are_frames_json_and_html(store):
    monitor = cb.Monitor(store)
    fill(monitor, 4, n=50, group="<b>")
    status, history = monitor.status(), monitor.history()
    assert status.to_frame("polars")["group"].to_list() == ["all", "<b>"]
    assert json.loads(status.to_json())["groups"][0]["group"] == "<b>"
    assert "&lt;b&gt;" in status._repr_html_()
    frame = history.to_frame("polars")
    assert frame["n_rows"].to_list() == [50] * 4
    assert frame["closed"].to_list() == [True, True, True, False]
    windows = json.loads(history.to_json())["windows"]
    assert windows[-1]["log_e_value"] is None
    assert windows[0]["observed"] == windows[0]["n_events"] / 50


def test_two_writers_lose_nothing(store):
    monitors = [cb.Monitor(store) for _ in range(2)]
    failures = []

    def write(monitor, writer):
        try:
            for i in range(15):
                y, p = stream(10, 100 * writer + i)
                monitor.observe(y, p, time=START + (i // 5) * DAY, group=f"w{writer}", batch=f"{writer}-{i}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(monitor, i)) for i, monitor in enumerate(monitors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert monitors[0].status().n_rows == 300
    table = monitors[1].evaluate(n_resamples=19).table
    rows = [stream(10, 100 * writer + i) for writer in range(2) for i in range(15)]
    assert table == cb.ScoreTable.from_arrays(*map(np.concatenate, zip(*rows, strict=True)))


def test_two_processes_can_create_a_store_and_a_model_at_once(store):
    failures, found = [], []

    def create():
        try:
            found.append(cb.Monitor(store, model="m").settings)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(found) == 4


def test_a_recalibrated_version_is_monitored_beside_the_old_one(path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    monitor = cb.Monitor(path)
    y, p = fill(monitor, 15, n=400, shift=1.0)
    assert monitor.table() == cb.ScoreTable.from_arrays(y, p)
    assert monitor.table(since=START + 10 * DAY) == cb.ScoreTable.from_arrays(y[4000:], p[4000:])
    calibrator = cb.Platt().fit(monitor.table())
    for day in range(15, 45):
        y, p = stream(400, day, 1.0)
        for version, scores in (("1", p), ("2", calibrator(p))):
            monitor.observe(y, scores, time=START + day * DAY, version=version)
    assert {alarm.version for alarm in monitor.status().alarms} == {"1"}
    new = monitor.status(version="2")
    assert (new.n_windows, new.n_rows) == (29, 30 * 400)
    assert monitor.status(version="1").n_rows == 45 * 400
    assert abs(new.observed - new.predicted) < 0.02


def test_a_model_is_recalibrated_since_its_change(tmp_path):
    rng = np.random.default_rng(12)
    monitor = cb.Monitor(tmp_path / "m.db")
    with pytest.raises(cb.InputError, match="since"):
        monitor.recalibrate()
    for day in range(60):
        p = rng.uniform(0.05, 0.5, 600)
        odds = p / (1 - p) * (1 if day < 20 else 2.5)
        monitor.observe(rng.random(600) < odds / (1 + odds), p, time=datetime(2026, 1, 1) + timedelta(days=day))
    assert monitor.status().alarm
    score = np.array([0.1, 0.3])
    expected = 2.5 * score / (1 - score)
    assert monitor.recalibrate()(score) == pytest.approx(expected / (1 + expected), abs=0.02)
    assert isinstance(monitor.recalibrate("platt", since="2026-02-01"), cb.Platt)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.05, 0.05, ""),
        (0.02, 0.06, "It excludes 0 but lies within the margin of 0.1, so there is no alarm."),
        (-0.3, -0.02, "It excludes 0 but not all shifts within the margin of 0.1, so there is no alarm."),
        (0.2, 0.4, "It lies beyond the margin of 0.1; the log e-value has not reached the alarm."),
    ],
)
def test_the_status_names_the_margin_beside_a_confidence_sequence_without_0(low, high, words, tmp_path):
    monitor = cb.Monitor(tmp_path / "m.db", model="m")
    for day in (1, 2):
        monitor.observe([0, 1, 0], [0.2, 0.6, 0.4], time=f"2026-01-0{day}")
    status = monitor.status()
    sequence = replace(status.confidence_sequence, estimate=(low + high) / 2, low=low, high=high)
    (line,) = (each for each in replace(status, confidence_sequence=sequence).sentences() if "in the large" in each)
    assert line.endswith(f"{low:+.3f} to {high:+.3f}." + f" {words}".rstrip())
