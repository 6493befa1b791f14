"""Rows in time order: blocks of consecutive times are clusters, as long as errors depend on each other."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import t as student

import calibrant as cb
from tests.kinds.cases import KINDS, draw, each_kind

FEW = {"n_resamples": 39}
METRIC = {"binary": "brier", "multiclass": "log_loss", "ordinal": "rps", "point": "mse", "distribution": "crps"}


def blocks(time, found):
    """The block of each row, literally: times in order, cut into runs whose lengths differ by at most one."""
    order = sorted(set(time))
    assert len(order) == found.n_times
    return np.array([order.index(each) * found.n_blocks // len(order) for each in time])


def autoregressive(rng, size, rho):
    x = np.empty(size)
    x[0] = rng.normal()
    for i, e in enumerate(rng.normal(size=size - 1) * np.sqrt(1 - rho**2), 1):
        x[i] = rho * x[i - 1] + e
    return x


def dependent_errors(size, rho, seed=0):
    """Return outcomes and point predictions whose errors are autoregressive."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=size)
    return x + autoregressive(rng, size, rho), x


def without_time(data):
    """JSON without what states the blocks."""
    if isinstance(data, dict):
        return {key: without_time(value) for key, value in data.items() if key != "serial_dependence"}
    if isinstance(data, list):
        return [
            without_time(each) for each in data if not (isinstance(each, dict) and each.get("code") == "time_blocks")
        ]
    return data


@each_kind
def test_times_give_the_results_of_their_blocks_as_clusters(kind):
    y, right, _, make = draw(kind, size=400)
    time = np.arange(400) // 3
    found = cb.evaluate(y, make(right), time=time, **FEW)
    cluster = blocks(time, found.serial_dependence)
    by_cluster = cb.evaluate(y, make(right), cluster=cluster, **FEW)
    assert without_time(found.to_dict()) == by_cluster.to_dict()


@pytest.mark.parametrize("kind", METRIC)
def test_intervals_of_metrics_use_the_same_blocks(kind):
    y, right, _, make = draw(kind, size=300)
    metric = {"multiclass": cb.metrics.MulticlassLogLoss()}.get(kind, METRIC[kind])
    time = np.arange(300)
    cluster = blocks(time, cb.evaluate(y, make(right), time=time, **FEW).serial_dependence)
    found = cb.interval(metric, y, make(right), time=time, n_resamples=99)
    by_cluster = cb.interval(metric, y, make(right), cluster=cluster, n_resamples=99)
    assert (found.low, found.high) == (by_cluster.low, by_cluster.high)
    assert "time_blocks" in [note.code for note in found.notes]


@each_kind
def test_order_of_rows_does_not_matter(kind):
    y, right, _, make = draw(kind, size=300)
    time = np.arange(300) // 2
    shuffled = np.random.default_rng(1).permutation(300)
    found = cb.evaluate(y, make(right), time=time, **FEW)
    other = cb.evaluate(y[shuffled], make(right[shuffled]), time=time[shuffled], **FEW)
    assert found.serial_dependence == other.serial_dependence
    assert found.verdict == other.verdict
    assert found.pvalue == pytest.approx(other.pvalue, rel=1e-9)


def test_forms_of_times_are_equivalent():
    y, p, _, _ = draw("binary", size=300)
    days = np.arange(300) // 3
    start = datetime(2025, 1, 30)
    moments = [start + timedelta(days=int(day)) for day in days]
    zoned = [moment.replace(tzinfo=timezone(timedelta(hours=-5))) for moment in moments]
    forms = [days, days * 0.5, [str(day) for day in days], moments, np.array(moments, dtype="datetime64[s]"), zoned]
    forms += [[moment.date() for moment in moments], [moment.isoformat() for moment in moments]]
    forms += [pd.Series(moments), pd.Series(pd.to_datetime(zoned)), days - 1000]
    results = [cb.evaluate(y, p, time=form, **FEW).to_json() for form in forms]
    assert set(results) == {results[0]}


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (["01.02.2025"] * 60, "time must hold numbers, or times alone; row 0 is '01.02.2025'"),
        ([1] * 59 + [date(2025, 1, 1)], "time must hold numbers, or times alone"),
        (np.r_[np.arange(59.0), np.nan], "time has 1 missing value"),
        (np.r_[np.arange(59.0), np.inf], "time must hold finite numbers"),
        (np.arange(60) // 10, "time must have at least 10 distinct values for inference; got 6"),
        (np.arange(50), "time has 50 rows"),
        (np.arange(60) > 3, "time must hold numbers, or times alone"),
    ],
)
def test_times_that_cannot_be_used_are_errors(time, message):
    y, p, _, _ = draw("binary", size=60)
    with pytest.raises(cb.InputError, match=message):
        cb.evaluate(y, p, time=time)


def test_times_and_clusters_exclude_each_other():
    y, p, _, _ = draw("binary", size=60)
    for call in (cb.evaluate, lambda *a, **k: cb.compare(a[0], {"a": a[1], "b": a[1]}, **k)):
        with pytest.raises(cb.InputError, match="time must not be given with cluster; got both"):
            call(y, p, time=np.arange(60), cluster=np.arange(60))


def test_tables_have_no_times():
    table = cb.ScoreTable.from_counts([0.2, 0.7], [50, 50], [10, 35])
    for call in (lambda **k: cb.evaluate(table, **k), lambda **k: cb.interval("ece", table, **k)):
        with pytest.raises(cb.InputError, match="time must be given with rows; got a ScoreTable"):
            call(time=np.arange(2))
    with pytest.raises(cb.InputError, match="time must be given with rows; got a dict"):
        cb.evaluate({"a": table}, time=np.arange(2))


def test_rows_without_a_time_are_dropped_and_counted():
    y, p, _, _ = draw("binary", size=200)
    time = np.arange(200.0)
    time[::10] = np.nan
    kept = ~np.isnan(time)
    found = cb.evaluate(y, p, time=time, missing="drop", **FEW)
    same = cb.evaluate(y[kept], p[kept], time=time[kept], **FEW)
    assert (found.n_rows, found.pvalue) == (180, same.pvalue)
    assert [(note.code, note.count) for note in found.notes if note.code == "missing"] == [("missing", 20)]


def test_frequencies_are_repeated_rows():
    y, p, _, _ = draw("binary", size=200)
    frequency = np.random.default_rng(0).integers(0, 4, 200)
    again = np.repeat(np.arange(200), frequency)
    found = cb.evaluate(y, p, time=np.arange(200), frequency=frequency, **FEW)
    repeated = cb.evaluate(y[again], p[again], time=again, **FEW)
    assert found.pvalue == repeated.pvalue
    limits = [(each["Brier"].interval.low, each["Brier"].interval.high) for each in (found, repeated)]
    assert limits[0] == limits[1]


def test_groups_have_the_blocks_of_all_rows():
    y, p, _, _ = draw("binary", size=600)
    time, group = np.arange(600) // 2, np.arange(600) % 2
    found = cb.evaluate(y, p, time=time, by=group, **FEW)
    cluster = blocks(time, found.serial_dependence)
    same = cb.evaluate(y, p, cluster=cluster, by=group, **FEW)
    for key in (0, 1):
        assert found.groups[key].decision.own_pvalue == same.groups[key].decision.own_pvalue


def test_dependence_makes_blocks_longer():
    def length(rho):
        y, x = dependent_errors(2000, rho)
        return cb.evaluate(y, cb.Point(x), time=np.arange(2000)).serial_dependence.block_length

    assert length(0.0) < 5 < length(0.6) < length(0.9)


def test_the_reach_is_that_of_an_autoregressive_process():
    y, x = dependent_errors(20_000, 0.6)
    found = cb.evaluate(y, cb.Point(x), time=np.arange(20_000)).serial_dependence
    assert found.autocorrelation == pytest.approx(0.6, abs=0.03)
    assert 1 <= found.reach / (2 * 0.6 / (1 - 0.6**2)) < 1.5  # sums over several times overestimate it a little
    assert found.block_length == pytest.approx(max(6 * found.reach, (found.reach**2 * 20_000) ** (1 / 3)), rel=0.05)


def test_weak_and_persistent_dependence_of_days_is_seen():
    """Rows of one day hardly depend on each other, but their sums do, over many days."""
    rng = np.random.default_rng(0)
    shock = np.repeat(0.3 * autoregressive(rng, 1000, 0.9), 40)
    x = rng.normal(size=shock.size)
    y = (rng.random(shock.size) < expit(x + shock)).astype(int)
    found = cb.evaluate(y, expit(x), time=np.arange(shock.size) // 40, **FEW).serial_dependence
    assert 5 < found.reach < 30


def test_series_with_fewer_than_ten_blocks_are_inconclusive():
    y, x = dependent_errors(120, 0.97, seed=3)
    found = cb.evaluate(y, cb.Point(x), time=np.arange(120))
    assert found.serial_dependence.n_blocks < 10
    assert found.verdict == "inconclusive"
    with pytest.raises(cb.InputError, match="time must cover at least 10 blocks"):
        cb.interval("mse", y, cb.Point(x), time=np.arange(120))
    with pytest.raises(cb.InputError, match="time must cover at least 10 blocks"):
        cb.compare(y, {"a": cb.Point(x), "b": cb.Point(x + 1)}, time=np.arange(120))


@each_kind
def test_losses_in_time_order_are_compared_by_the_test_of_diebold_and_mariano(kind):
    y, right, wrong, make = draw(kind, size=400)
    found = cb.compare(y, {"a": make(right), "b": make(wrong)}, time=np.arange(400), **FEW)
    tested = {d.metric for d in found.differences if d.test == "Diebold-Mariano test"}
    assert tested
    assert not [d for d in found.differences if d.test == "paired t test"]
    assert "time_blocks" in [note.code for note in found.notes]


def test_the_diebold_mariano_test_is_a_t_test_of_the_sums_of_blocks():
    y, x = dependent_errors(600, 0.5)
    other = x + 0.3 * np.random.default_rng(9).normal(size=600)
    found = cb.compare(y, {"a": cb.Point(x), "b": cb.Point(other)}, time=np.arange(600))
    count = next(note.count for note in found.notes if note.code == "time_blocks")
    d = (y - other) ** 2 - (y - x) ** 2
    sums = [d[np.arange(600) * count // 600 == block].sum() for block in range(count)]
    away = np.array(sums) - d.mean() * np.bincount(np.arange(600) * count // 600)
    error = np.sqrt(np.sum(away**2) * count / (count - 1)) / 600
    difference = next(each for each in found.differences if each.metric == "MSE")
    assert difference.value == pytest.approx(d.mean())
    assert difference.pvalue == pytest.approx(2 * student.sf(abs(d.mean()) / error, count - 1))


def test_equally_good_forecasts_with_dependent_losses_differ_in_about_5_percent():
    """Loss differences with autocorrelation 0.6; a t test of rows rejects in 33 %."""
    from calibrant.inference.paired import mean_difference
    from calibrant.inference.time_blocks import in_time_blocks
    from calibrant.kinds.point.sample import errors
    from calibrant.tables.mean_table import check_means
    from calibrant.tables.rows import Rows

    rejected = np.zeros(2)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        level, difference = 10 + rng.normal(size=500), autoregressive(rng, 500, 0.6)
        sign = rng.choice([-1.0, 1.0], 500)
        one, other = (sign * np.sqrt(level + way * difference / 2) for way in (1, -1))
        rows = Rows.read(np.zeros(500), {"a": -one, "b": -other}, time=np.arange(500))
        clustered, _ = in_time_blocks(rows, check_means, errors)
        found = (mean_difference(one**2, other**2, cluster=c) for c in (clustered.cluster_codes, None))
        rejected += [each.pvalue <= 0.05 for each in found]
    assert rejected[0] <= 24  # exceeded with a probability of 0.5 % where the size is 7 %
    assert rejected[1] >= 40


def test_the_result_states_its_blocks():
    y, p, _, _ = draw("binary", size=300)
    found = cb.evaluate(y, p, time=np.arange(300), **FEW)
    data = found.to_dict()["serial_dependence"]
    assert data["n_blocks"] * data["block_length"] == pytest.approx(data["n_times"])
    assert any(note["code"] == "time_blocks" for note in found.to_dict()["notes"])
    assert "serial_dependence" not in cb.evaluate(y, p, **FEW).to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.3, 0.6])
def test_autoregressive_errors_are_not_called_miscalibrated(rho):
    """Without times the mean error of 500 rows is rejected in 15 and 33 % at the level of 5 %."""
    wrong = [
        cb.evaluate(y, cb.Point(x), time=np.arange(500)).verdict == "miscalibrated"
        for y, x in (dependent_errors(500, rho, seed) for seed in range(200))
    ]
    assert np.mean(wrong) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


def test_every_kind_has_a_metric_here():
    assert set(METRIC) == set(KINDS) - {"labels"}
