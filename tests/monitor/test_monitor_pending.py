"""Predictions now, outcomes later."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import calibrant as cb
from calibrant import InputError

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(2)
    return [f"{seed}-{i}" for i in range(n)], p, (rng.random(n) < p).astype(int)


def test_predictions_with_outcomes_equal_observed_rows(store):
    late, direct = cb.Monitor(store, model="late", maturity=3 * DAY), cb.Monitor(store, model="direct")
    for day in range(8):
        ids, p, y = rows(60, day)
        group = np.array(["a", "b"])[np.arange(60) % 2]
        late.predict(ids, p, time=START + day * DAY, group=group)
        direct.observe(y, p, time=START + day * DAY, group=group)
        if day >= 2:
            order = np.random.default_rng(day).permutation(60)
            known, _, outcomes = rows(60, day - 2)
            late.outcome([known[i] for i in order], outcomes[order])
    assert late.status().n_windows == 4
    expected = direct.history().windows[:4]
    assert late.history().windows[:4] == expected
    assert late.history("a").windows[:4] == direct.history("a").windows[:4]
    assert late.status().unlabelled == 120 / 480
    assert late.status().n_unlabelled == 120
    assert "Predictions without an outcome: 120 of 480." in repr(late.status())


def test_unknown_and_repeated_ids_are_counted_and_not_fatal(store):
    monitor = cb.Monitor(store)
    ids, p, y = rows(10)
    first = monitor.predict([*ids, ids[0]], [*p, 0.99], time=START)
    assert (first.n_rows, first.n_duplicates) == (10, 1)
    again = monitor.predict(ids[:4], p[:4], time=START)
    assert (again.n_rows, again.n_duplicates) == (0, 4)
    receipt = monitor.outcome([*ids[:5], ids[0], "stranger"], [*y[:5], 1, 1])
    assert (receipt.n_rows, receipt.n_duplicates, receipt.n_unknown) == (5, 1, 1)
    receipt = monitor.outcome(ids[:6], y[:6])
    assert (receipt.n_rows, receipt.n_duplicates, receipt.n_unknown) == (1, 5, 0)
    status = monitor.status()
    assert status.n_rows == 6
    assert monitor.evaluate(n_resamples=19).table == cb.ScoreTable.from_arrays(y[:6], p[:6])
    counts = {note.code: note.count for note in status.notes}
    assert (counts["duplicates"], counts["unknown"], counts["unlabelled"]) == (11, 1, 4)


def test_a_window_waits_for_outcomes_until_it_is_mature(store):
    monitor = cb.Monitor(store, maturity=2 * DAY)
    for day in range(3):
        ids, p, _ = rows(20, day)
        monitor.predict(ids, p, time=START + day * DAY)
    ids, p, y = rows(20, 0)
    assert monitor.outcome(ids[:15], y[:15]).n_closed == 0
    ids, p, y = rows(20, 3)
    assert monitor.predict(ids, p, time=START + 3 * DAY).n_closed == 1
    ids, p, y = rows(20, 0)
    receipt = monitor.outcome(ids[15:], y[15:])
    assert (receipt.n_rows, receipt.n_late) == (5, 5)
    assert [w.n_rows for w in monitor.history().windows] == [15, 5]


def test_the_time_of_outcomes_closes_windows(store):
    monitor = cb.Monitor(store, maturity=2 * DAY)
    ids, p, y = rows(20)
    monitor.predict(ids, p, time=START)
    assert monitor.outcome(ids[:10], y[:10], time=START + DAY).n_closed == 0
    assert monitor.outcome(ids[10:], y[10:], time=START + 3 * DAY).n_closed == 1
    assert monitor.status().n_windows == 1
    assert monitor.history().windows[0].n_rows == 20


def test_the_number_of_unlabelled_rows_of_a_closed_window_is_exported(store, tmp_path):
    import pyarrow.parquet as pq

    monitor = cb.Monitor(store)
    ids, p, y = rows(20)
    monitor.predict(ids, p, time=START)
    monitor.outcome(ids[:12], y[:12])
    monitor.predict("next", 0.5, time=START + DAY)
    monitor.export(tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "history.parquet")["n_unlabelled"].to_pylist() == [8]


def test_outcomes_follow_the_version_of_their_prediction(store):
    monitor = cb.Monitor(store)
    monitor.predict(["a", "b"], [0.2, 0.4], time=START, version="old")
    monitor.predict(["c"], [0.6], time=START, version="new")
    monitor.outcome(["a", "c", "b"], [0, 1, 1])
    assert monitor.status(version="old").n_rows == 2
    assert monitor.status(version="new").n_rows == 1
    table = monitor.evaluate(version="old", n_resamples=19).table
    assert table == cb.ScoreTable.from_arrays([0, 1], [0.2, 0.4])


def test_ids_may_be_numbers_and_many(store):
    monitor = cb.Monitor(store)
    rng = np.random.default_rng(0)
    p = rng.random(1700)
    y = rng.random(1700) < p
    assert monitor.predict(np.arange(1700), p, time=START).n_rows == 1700
    assert monitor.outcome(np.arange(1700)[::-1], y[::-1]).n_rows == 1700
    assert monitor.evaluate(n_resamples=19).table == cb.ScoreTable.from_arrays(y, p)
    monitor.predict(5000, 0.3, time=START)
    assert monitor.outcome("5000", True).n_rows == 1


def test_forgetting_deletes_predictions(store):
    monitor = cb.Monitor(store)
    monitor.predict(["a", "b"], [0.2, 0.4], time=START)
    monitor.outcome("a", 1)
    monitor.predict("c", 0.2, time=START + 2 * DAY)
    monitor.forget(START + DAY)
    assert monitor.outcome(["a", "b", "c"], [1, 1, 1]).n_unknown == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.predict(["a", "b"], [0.2], time=START), "p has 1 rows, id has 2"),
        (lambda m: m.predict(["a"], [1.5], time=START), r"p must lie in \[0, 1\]"),
        (lambda m: m.predict(["a"], [math.nan], time=START), "p has 1 missing value"),
        (lambda m: m.predict(["a", None], [0.1, 0.2], time=START), "id has 1 missing value"),
        (lambda m: m.predict("a\x00", 0.1, time=START), "id must be text of 1 to 500 printable characters"),
        (lambda m: m.predict({"a": 1}, 0.1, time=START), "id must be text or a number; got {.a.: 1}"),
        (lambda m: m.predict("a", 0.1, time=START, version=["1"]), "version must be text or a number"),
        (lambda m: m.predict("a", 0.1, time=START, batch=b"1"), "batch must be text or a number"),
        (lambda m: m.predict([], [], time=START), "id must have at least one row; got none"),
        (lambda m: m.outcome([], []), "id must have at least one row; got none"),
        (lambda m: m.outcome(["a"], [2]), "y must hold 0 and 1"),
        (lambda m: m.outcome(["a"], [0, 1]), "y has 2 rows, id has 1"),
    ],
)
def test_bad_predictions_and_outcomes_are_errors(path, call, message):
    with pytest.raises(InputError, match=message):
        call(cb.Monitor(path))
