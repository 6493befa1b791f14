"""What operators do: delete and create again, mix labels, forget, repeat batches, close too much, repeat an hour."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import sqlalchemy as sa

import calibrant as cb
from calibrant.inference.sequential.e_values import e_bh
from calibrant.monitor import recording, schema
from calibrant.monitor.evidence import group_thresholds

START = datetime(2026, 1, 5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "monitor.db"


def test_a_deleted_model_is_not_written_through_its_id(path):
    old = cb.Monitor(path, model="a")
    old.observe([0, 1], [0.1, 0.2], time=START)
    old.delete("a")
    new = cb.Monitor(path, model="b", window="week")
    with pytest.raises(cb.InputError, match="was deleted"):
        old.observe([1] * 50, [0.1] * 50, time=START)
    assert new.status().n_rows == 0


def test_labels_that_are_equal_in_python_are_one_group(path):
    monitor = cb.Monitor(path)
    monitor.observe([0, 1] * 50, [0.1, 0.2] * 50, time=START, group=1)
    monitor.observe([0, 1] * 30, [0.1, 0.2] * 30, time=START, group=1.0)
    monitor.observe([1], [0.5], time=START, group=True)
    found = monitor.evaluate(n_resamples=19)
    assert found.n_rows == monitor.table().size == 161
    assert set(found.groups) == {1, "True"}


def test_a_group_may_be_called_as_rows_without_one(path):
    monitor = cb.Monitor(path)
    monitor.observe([0, 1] * 50, [0.1, 0.2] * 50, time=START)
    monitor.observe([0, 1] * 30, [0.1, 0.2] * 30, time=START, group="(no group)")
    assert monitor.evaluate(n_resamples=19).n_rows == 160


def test_predictions_of_open_windows_are_not_forgotten(path):
    monitor = cb.Monitor(path, maturity=timedelta(days=30))
    monitor.predict(["a", "b"], [0.1, 0.2], time=START)
    monitor.forget(before=START + timedelta(days=1))
    assert monitor.outcome(["a", "b"], [0, 1]).n_rows == 2


def test_merged_windows_are_not_cut(path):
    monitor = cb.Monitor(path)
    for day in range(20):
        monitor.observe([0, 1] * 50, [0.2] * 100, time=START + timedelta(days=day), group="a")
    assert monitor.table(until=START + timedelta(days=5)).size == 500
    monitor.forget(before=START + timedelta(days=10))
    with pytest.raises(cb.InputError, match="until must not lie in windows that forget"):
        monitor.table(until=START + timedelta(days=5))
    assert monitor.table(until=START + timedelta(days=10)).size == 1_000


def test_windows_of_the_future_cannot_be_closed(path):
    monitor = cb.Monitor(path)
    monitor.observe([0], [0.1], time=START)
    with pytest.raises(cb.InputError, match="future"):
        monitor.close(until="2126-01-01")
    monitor.close()


def test_late_rows_of_a_table_are_all_counted(path):
    monitor = cb.Monitor(path)
    monitor.observe([0], [0.1], time=START + timedelta(days=5))
    assert monitor.add_table(cb.ScoreTable.from_counts([0.5], [1_000], [500]), time=START).n_late == 1_000
    assert [note.count for note in monitor.status().notes if note.code == "late"] == [1_000]


def test_the_hour_that_a_clock_repeats_is_two_hours(path):
    berlin = ZoneInfo("Europe/Berlin")
    monitor = cb.Monitor(path, window="hour")
    first = datetime(2025, 10, 26, 2, 30, tzinfo=berlin)
    monitor.observe([0, 1], [0.1, 0.2], time=[first, first.replace(fold=1)])
    assert [record.n_rows for record in monitor.history().windows] == [1, 1]


@pytest.mark.parametrize("model", ["a\x1b[2J", "a\nb", "\ud800", ""])
def test_names_must_be_printable(path, model):
    with pytest.raises(cb.InputError, match="model"):
        cb.Monitor(path, model=model)


def test_groups_that_cannot_be_stored_are_refused(path):
    for group in ("\ud800", "x" * 501):
        with pytest.raises(cb.InputError, match="group"):
            cb.Monitor(path).observe([0], [0.1], time=START, group=group)


def test_times_far_away_are_refused(path):
    with pytest.raises(cb.InputError, match="time"):
        cb.Monitor(path).observe([0], [0.1], time=datetime(9999, 12, 31))
    for method, first in (("observe", [0]), ("predict", ["a"])):  # the zero of other languages
        with pytest.raises(cb.InputError, match="time must not lie before 1900; got 0001-01-01 00:00 UTC"):
            getattr(cb.Monitor(path), method)(first, [0.1], time="0001-01-01")


def test_a_missing_score_is_refused_with_advice_that_works(path):
    with pytest.raises(cb.InputError, match="Leave such rows out"):
        cb.Monitor(path).observe([0, 1], [0.1, np.nan], time=START)


def test_two_versions_predict_the_same_rows(path):
    monitor = cb.Monitor(path)
    monitor.predict(["a", "b"], [0.1, 0.2], time=START)
    assert monitor.predict(["a", "b"], [0.3, 0.4], time=START, version="2").n_duplicates == 0
    assert monitor.outcome(["a", "b"], [0, 1]).n_rows == 4
    assert monitor.outcome(np.array(["a"]), [0]).n_duplicates == 1
    assert [monitor.table(version=version).score.tolist() for version in ("1", "2")] == [[0.1, 0.2], [0.3, 0.4]]


def test_each_version_has_its_own_batches(path):
    monitor = cb.Monitor(path)
    for version, scores in ((None, [0.1, 0.2]), ("2", [0.3, 0.4])):
        assert monitor.observe([0, 1], scores, time=START, batch="b", version=version).n_rows == 2
    assert monitor.observe([0, 1], [0.1, 0.2], time=START, batch="b", version="1").repeated_batch


@pytest.mark.parametrize("method", ["observe", "predict"])
def test_a_batch_without_a_version_is_stored_once_though_a_new_version_appears(path, method):
    monitor = cb.Monitor(path)
    send = getattr(monitor, method)
    send([1, 0], [0.4, 0.6], time=START, batch="b1")
    assert send([1, 0], [0.3, 0.7], time=START, batch="b1", version="2").n_rows == 2
    assert send([1, 0], [0.4, 0.6], time=START, batch="b1").repeated_batch
    with pytest.raises(cb.InputError, match="batch must be a new id or come with the same rows"):
        send([1, 0], [0.1, 0.6], time=START, batch="b1")


def test_whole_numbers_are_one_id(path):
    monitor = cb.Monitor(path)
    monitor.predict([1, 2], [0.1, 0.2], time=START)
    assert monitor.outcome(np.array([1.0, 2.0]), [0, 1]).n_rows == 2


def test_windows_of_rows_take_no_predictions(path):
    with pytest.raises(cb.InputError, match="window must be a time"):
        cb.Monitor(path, window=10).predict("a", 0.1, time=START)


def test_alarms_of_windows_of_rows_begin_at_their_window(path):
    rng = np.random.default_rng(3)
    monitor = cb.Monitor(path, window=200)
    for batch in range(40):
        monitor.observe(rng.random(200) < (0.2 if batch < 10 else 0.5), np.full(200, 0.2), time=START)
    records = monitor.history().windows
    flags = [record.alarm for record in records]
    assert not any(flags[:10])
    assert flags[-1]
    assert flags == sorted(flags)


def test_the_status_counts_open_rows_apart(path):
    monitor = cb.Monitor(path)
    for day in range(3):
        monitor.observe([0, 1], [0.2, 0.4], time=START + timedelta(days=day), group="a")
    status = monitor.status()
    assert (status.n_rows, status.n_open_rows) == (6, 2)
    assert "4 rows in 2 closed windows" in repr(status)
    assert "2 rows in 1 open" in repr(status)
    assert status.groups["a"].n_rows == 4


def test_outcomes_may_be_labels_with_the_label_of_the_event(path):
    monitor = cb.Monitor(path)
    with pytest.raises(cb.InputError, match="pos_label='yes'"):
        monitor.observe(["no", "yes"], [0.1, 0.2], time=START)
    monitor.observe(["no", "yes", "yes"], [0.1, 0.2, 0.3], time=START, pos_label="yes")
    monitor.predict(["a", "b"], [0.4, 0.5], time=START)
    with pytest.raises(cb.InputError, match="pos_label='yes'"):
        monitor.outcome(["a", "b"], ["yes", "no"])
    monitor.outcome(["a", "b"], ["yes", "no"], pos_label="yes")
    table = monitor.table()
    assert table.score[table.k == 1] == pytest.approx([0.2, 0.3, 0.4])


def test_forgotten_predictions_stay_in_the_unlabelled_share(path):
    monitor = cb.Monitor(path)
    ids = [str(i) for i in range(100)]
    monitor.predict(ids, [0.2] * 100, time=START)
    monitor.outcome(ids[:70], [0, 1] * 35)
    monitor.predict("later", 0.5, time=START + timedelta(days=3))
    before = monitor.status()
    assert (before.n_unlabelled, before.unlabelled) == (31, pytest.approx(31 / 101))
    monitor.forget(before=START + timedelta(days=2))
    after = monitor.status()
    assert (after.n_unlabelled, after.unlabelled) == (before.n_unlabelled, before.unlabelled)
    assert after.notes == before.notes
    assert monitor.outcome(ids[70:], [0] * 30).n_unknown == 30


def test_times_of_the_future_are_refused_unless_allowed(path):
    future = datetime.now() + timedelta(days=30)
    monitor = cb.Monitor(path)
    monitor.observe([0, 1], [0.1, 0.2], time=START)
    table = cb.ScoreTable.from_counts([0.5], [2], [1])
    for call in (
        lambda: monitor.observe([0, 1], [0.1, 0.2], time=[START, future]),
        lambda: monitor.predict("a", 0.2, time=future),
        lambda: monitor.outcome("a", 1, time=future),
        lambda: monitor.add_table(table, time=future),
    ):
        with pytest.raises(cb.InputError, match="time must not lie more than a day in the future"):
            call()
    assert monitor.status().n_rows == 2
    assert monitor.observe([0], [0.1], time=datetime.now(UTC) + timedelta(hours=1)).n_closed == 1
    assert cb.Monitor(path, allow_future=True).observe([0], [0.1], time=future).n_closed == 1
    assert [note.code for note in monitor.status().notes] == ["future"]
    rows = cb.Monitor(path, model="rows", window=10)
    assert rows.observe([0], [0.1], time=future).n_rows == 1, "times do not close windows of rows"


def test_groups_of_open_windows_are_listed(path):
    monitor = cb.Monitor(path)
    monitor.observe([0, 1, 1], [0.1, 0.2, 0.3], time=START, group=["x", "y", "x"])
    monitor.observe([0, 1], [0.1, 0.2], time=START, group=3)
    assert sorted(map(str, monitor.groups())) == ["3", "x", "y"]


@pytest.mark.parametrize("method", ["observe", "predict"])
def test_the_number_of_groups_is_limited(path, method, monkeypatch):
    monkeypatch.setattr(recording, "MOST_GROUPS", 3)
    send = getattr(cb.Monitor(path), method)
    cb.Monitor(path).observe([1, 0], [0.4, 0.6], time=START, group=["a", "b"])
    cb.Monitor(path).observe([1, 0], [0.4, 0.6], time=START + timedelta(days=1), group=["b", "c"])
    with pytest.raises(cb.InputError, match="group must have at most 3 different labels .* got 1 new ones beside 3"):
        send([1, 0], [0.4, 0.6], time=START + timedelta(days=1), group=["a", "d"])
    assert send([1, 0], [0.4, 0.6], time=START + timedelta(days=1), group=["a", "c"]).n_rows == 2
    monkeypatch.setattr(recording, "MOST_GROUPS", 1)  # a store with more groups than allowed goes on
    assert cb.Monitor(path).observe([1, 0], [0.3, 0.6], time=START, group=["a", "c"]).n_rows == 2


def test_thresholds_of_groups_equal_those_of_e_bh_with_other_evidence(path):
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(1, 12))
        weights, log_e = rng.dirichlet(np.ones(n)), rng.normal(4, 3, n).round(1)
        found = group_thresholds(log_e, weights, 0.025)
        for i in range(n):
            for change, alarm in ((1e-9, True), (-1e-9, False)):
                other = np.where(np.arange(n) == i, found[i] + change, log_e)
                assert e_bh(other, weights, 0.025)[i] == alarm
    assert group_thresholds(np.zeros(50_000), np.full(50_000, 2e-5), 0.025).size == 50_000


def test_the_change_lies_before_the_alarm_though_the_stream_returns_to_normal(path):
    monitor, rng = cb.Monitor(path), np.random.default_rng(0)
    day = np.repeat(np.arange(80), 400)
    p = rng.uniform(0.05, 0.6, day.size).round(2)
    odds = p / (1 - p) * np.where((day >= 30) & (day < 45), 2.2, 1.0)
    monitor.observe(
        rng.random(day.size) < odds / (1 + odds), p, time=np.datetime64(START) + day * np.timedelta64(1, "D")
    )
    status = monitor.status()
    (alarm,) = status.alarms
    assert status.change_point.window <= alarm.window
    assert abs(status.change_point.window.replace(tzinfo=None) - START - timedelta(days=30)) <= timedelta(days=2)
    assert monitor.history().change_point == status.change_point


@pytest.mark.parametrize(("score", "step", "noted"), [(0.001, 2**-10, True), (0.001, 2**-20, False), (0.3, 0.1, True)])
def test_a_resolution_that_is_too_coarse_for_the_scores_is_noted(path, score, step, noted):
    monitor = cb.Monitor(path, resolution=step)
    monitor.observe(np.zeros(50), np.full(50, score), time=START)
    monitor.close()
    notes = [note.text for note in monitor.status().notes if note.code == "resolution"]
    assert len(notes) == noted
    assert all("false alarms are likely" in text for text in notes)


def test_forgetting_deletes_the_ids_of_batches_that_arrived_before(path):
    monitor = cb.Monitor(path)
    monitor.observe([1, 0], [0.4, 0.6], time=START, batch="b1")
    monitor.forget(START)  # the batch arrived later
    assert monitor.observe([1, 0], [0.4, 0.6], time=START, batch="b1").repeated_batch
    monitor.forget(datetime.now(UTC) + timedelta(days=1))
    with monitor.store.read() as connection:
        assert connection.execute(sa.select(schema.batches)).all() == []


def test_a_second_acknowledgement_keeps_the_first_reason(path):
    monitor = cb.Monitor(path, dependence="independent")
    for version in ("1", "2"):
        for day in range(3):
            time = START + timedelta(days=day)
            monitor.observe([1, 0] * 100, [0.01] * 200, time=time, version=version)
    assert monitor.status().headline.endswith("(all rows)")  # of both versions
    first = monitor.alarms()[0]
    monitor.acknowledge(first, "new price list")
    known = monitor.alarms()[0]
    monitor.acknowledge(first, "new price list")  # a repeated call
    with pytest.raises(cb.InputError, match="alarm must not be acknowledged yet; alarm 1 was at .*: new price list"):
        monitor.acknowledge(first, "other")
    assert monitor.alarms()[0] == known
    with pytest.raises(cb.InputError, match="reason must be text"):
        monitor.acknowledge(monitor.alarms()[1], " ")


def test_other_databases_are_refused_before_their_driver_is_looked_for(path):
    with pytest.raises(cb.InputError, match="store must be SQLite or PostgreSQL; got mysql"):
        cb.Monitor("mysql://user@host/database")
