"""Intervals, the null, equivalence, for any metric."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

import calibrant as cb
from calibrant.inference.intervals import Spread, alternative_of, method_of


def table(size=2000, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    return cb.ScoreTable.from_arrays(rng.random(size) < p**power, p)


@pytest.mark.parametrize("name", cb.METRICS)
def test_every_metric_has_an_interval_and_a_null(name):
    metric = cb.METRICS[name]()
    if name == "calbin":
        metric = cb.CalBin(window=20)
    data = table(300)
    found = cb.interval(metric, data, n_resamples=60, random_state=1)
    assert found.low <= found.value <= found.high or found.method == "percentile"
    assert found.value == metric(data).value
    assert (found.level, found.n_resamples) == (0.95, 60)
    right = cb.null(metric, data, n_resamples=60, random_state=1)
    assert right.low <= right.expected <= right.high
    assert right.excess == right.value - right.expected
    assert 1 / 61 <= right.pvalue <= 1
    for result in (found, right):
        json.dumps(result.to_dict(), allow_nan=False)
        assert result.to_dict()["spec"] == metric.spec


def test_the_same_seed_gives_the_same_interval_and_wider_levels_contain_narrower_ones():
    data = table(power=1.2)
    for metric in (cb.ECE(), cb.TCE(), cb.Bias()):
        one = cb.interval(metric, data, random_state=5, n_resamples=199)
        assert one == cb.interval(metric, data, random_state=5, n_resamples=199)
        assert one != cb.interval(metric, data, random_state=6, n_resamples=199)
        narrow = cb.interval(metric, data, random_state=5, n_resamples=199, confidence_level=0.8)
        assert one.low <= narrow.low <= narrow.high <= one.high


def test_rows_and_table_give_the_same():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    data = cb.ScoreTable.from_arrays(y, p)
    for function in (cb.interval, cb.null, cb.consistency):
        assert function(cb.ECE(), y, p, random_state=0, n_resamples=50) == function(
            cb.ECE(), data, random_state=0, n_resamples=50
        )


def test_frequencies_are_rows_in_intervals_too():
    rng = np.random.default_rng(0)
    p = rng.random(200).round(2)
    y, w = rng.random(200) < p, rng.integers(1, 4, 200)
    counted = cb.interval(cb.TCE(), y, p, frequency=w, random_state=0, n_resamples=50)
    repeated = cb.interval(cb.TCE(), np.repeat(y, w), np.repeat(p, w), random_state=0, n_resamples=50)
    assert (counted.low, counted.high) == (repeated.low, repeated.high)


def test_importance_weights_widen_the_interval():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    weights = rng.exponential(size=2000) ** 2
    plain = cb.interval(cb.Bias(), y, p, random_state=0, n_resamples=200)
    weighted = cb.interval(cb.Bias(), y, p, sample_weight=weights, random_state=0, n_resamples=200)
    ratio = (weighted.high - weighted.low) / (plain.high - plain.low)
    effective = weights.sum() ** 2 / np.sum(weights**2)
    assert ratio == pytest.approx(np.sqrt(2000 / effective), rel=0.25)


def test_clusters_of_copies_count_once():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    once = cb.interval(cb.Bias(), y, p, random_state=0, n_resamples=400)
    copies = cb.interval(
        cb.Bias(), np.tile(y, 5), np.tile(p, 5), cluster=np.tile(np.arange(200), 5), random_state=0, n_resamples=400
    )
    naive = cb.interval(cb.Bias(), np.tile(y, 5), np.tile(p, 5), random_state=0, n_resamples=400)
    assert copies.high - copies.low == pytest.approx(once.high - once.low, rel=0.15)
    assert naive.high - naive.low < 0.6 * (once.high - once.low)


def test_a_table_has_no_clusters():
    with pytest.raises(cb.InputError, match="no longer knows"):
        cb.interval(cb.ECE(), table(50), cluster=np.zeros(50))


def test_the_interval_of_a_mean_is_that_of_theory():
    """The bias is a mean of p - y, so its interval is known."""
    data = table(5000, power=1.3)
    found = cb.interval(cb.Bias(), data, random_state=0, n_resamples=1999)
    deviation = np.sqrt(cb.brier(data) - found.value**2)
    assert found.low == pytest.approx(found.value - 1.96 * deviation / np.sqrt(5000), abs=0.001)
    assert found.high == pytest.approx(found.value + 1.96 * deviation / np.sqrt(5000), abs=0.001)


def test_the_kind_of_interval_follows_from_the_metric():
    kinds = {name: method_of(cb.METRICS[name]()) for name in cb.METRICS}
    assert {name for name, kind in kinds.items() if kind == "centred"} == {"tce"}
    percentile = {"bias", "oe_ratio", "debiased_sce", "brier", "stratified_brier", "log_loss", "auc"}
    assert {name for name, kind in kinds.items() if kind == "percentile"} == percentile
    two_sided = percentile - {"debiased_sce"}
    assert {name for name in kinds if alternative_of(cb.METRICS[name]()) == "two-sided"} == two_sided


# no bin without events, or with events only
MANY = cb.ScoreTable.from_counts([0.5], [100_000], [50_000])


def spread(metric, value, bootstrap, null, table=MANY):
    return Spread(metric, value, np.asarray(bootstrap, float), np.asarray(null, float), table)


def test_an_anchored_interval_by_hand():
    """Upper quantiles 0.2 of the null and 0.5 of the bootstrap, value 0.4."""
    boot, null = np.linspace(0.3, 0.5, 201), np.linspace(0.0, 0.2, 201)
    low, high = spread(cb.ECE(), 0.4, boot, null).limits(0.95)
    u0, u1 = 0.195, 0.495
    assert low == pytest.approx(0.4 * np.sqrt((0.4**2 - u0**2) / (u1**2 - u0**2)))
    assert high == pytest.approx(0.4 + 0.4 - 0.305)  # both tails are equally long
    assert spread(cb.ECE(), 0.19, boot, null).limits(0.95)[0] == 0


def test_the_upper_limit_reaches_as_far_as_the_longer_tail():
    """A bootstrap that is folded at 0, as that of one bin: its lower tail is short."""
    folded = np.abs(np.linspace(-1, 1, 2001)) ** 0.5
    _, high = spread(cb.ECE(), 0.1, folded**4, [0.0] * 9).limits(0.95)
    low, up = np.quantile(folded**4, (0.025, 0.975))
    assert up - np.mean(folded**4) > np.mean(folded**4) - low
    assert high == pytest.approx(0.1 + up - np.mean(folded**4))


def test_what_pure_bins_may_hide_is_added():
    """Ten of 30 rows lie in a bin without an event, ten in one with events only: exact limits, by their shares."""
    table = cb.ScoreTable.from_counts([0.1, 0.5, 0.9], [10, 10, 10], [0, 5, 10])
    plain = 0.0667
    still = spread(cb.ECE(), plain, [plain] * 99, [0.0] * 99, table)
    limit = binomtest(0, 10).proportion_ci(0.95).high  # two-sided 95 %: a tail of 0.025
    assert still.limits(0.95)[1] == pytest.approx(plain + 2 * limit / 3)
    assert spread(cb.TCE(), 10.0, [10.0] * 99, [0.0] * 99, table).limits(0.95)[1] == pytest.approx(10)


def test_nothing_is_shown_by_a_bootstrap_that_cannot_move():
    for y, p in (([0], [0.001]), ([0] * 100, [0.0001] * 100), ([0, 1], [0, 1])):
        assert not cb.equivalence(cb.ACE(), y, p, margin=0.01, random_state=0).within
    assert cb.equivalence(cb.ACE(), [0] * 1000, [0.0001] * 1000, margin=0.01, random_state=0).within


def test_a_centred_interval_by_hand():
    boot = np.linspace(20, 60, 401)
    angle = np.arcsin(np.sqrt(boot / 100))
    offset = angle - angle.mean()
    reach = 1.2 * max(-np.quantile(offset, 0.025), np.quantile(offset, 0.975))
    value = np.arcsin(np.sqrt(0.30))
    low, high = spread(cb.TCE(), 30.0, boot, []).limits(0.95)
    assert (low, high) == pytest.approx((100 * np.sin(value - reach) ** 2, 100 * np.sin(value + reach) ** 2))
    assert spread(cb.TCE(), 0.0, boot, []).limits(0.95)[0] == 0
    assert spread(cb.TCE(), 100.0, boot, []).limits(0.95)[1] == 100


def test_p_values_by_hand():
    null = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert spread(cb.ECE(), 8, [], null).null_pvalue("greater") == 3 / 10
    assert spread(cb.Bias(), 8, [], null).null_pvalue("two-sided") == 6 / 10
    assert spread(cb.Bias(), 0.5, [], null).null_pvalue("two-sided") == 2 / 10
    assert spread(cb.Bias(), 5, [], null).null_pvalue("two-sided") == 1


@pytest.mark.parametrize("metric", [cb.ECE(), cb.TCE(), cb.Bias(), cb.METRICS["debiased_sce"]()])
def test_within_the_margin_is_an_upper_limit_below_it(metric):
    data = table(3000, power=1.05)
    bound = cb.equivalence(metric, data, margin=1, random_state=0, n_resamples=499).bound
    for factor, within in ((0.97, False), (1.03, True)):
        found = cb.equivalence(metric, data, margin=bound * factor, random_state=0, n_resamples=499)
        assert found.within is within, (metric.name, found)
        assert found.to_dict()["within"] is within


def test_equivalence_of_a_bias_looks_at_both_sides():
    right = table(4000, seed=3)
    low = right.map(lambda p: np.maximum(p - 0.05, 0))
    assert cb.equivalence(cb.Bias(), right, margin=0.03, random_state=0).within
    assert not cb.equivalence(cb.Bias(), low, margin=0.03, random_state=0).within


def test_p_values_of_right_models_are_uniform():
    found = [cb.null(cb.ACE(), table(200, seed=s), n_resamples=39, random_state=s).pvalue for s in range(300)]
    assert np.mean(np.array(found) <= 0.25) == pytest.approx(0.25, abs=0.08)
    assert np.mean(np.array(found) <= 0.75) == pytest.approx(0.75, abs=0.08)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 1}, "confidence_level must lie between 0 and 1; it is 1"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1; it is 0"),
        ({"n_resamples": float("nan")}, "n_resamples must be a whole number of at least 1; it is nan"),
        ({"random_state": -3}, "random_state must be None"),
    ],
)
def test_bad_options_are_named(options, message):
    for function in (cb.interval, cb.null):
        with pytest.raises(cb.InputError, match=message):
            function(cb.ECE(), table(50), **options)


@pytest.mark.parametrize("metric", [cb.ece, "ece", cb.ECE, None])
def test_a_metric_must_be_an_object(metric):
    with pytest.raises(cb.InputError, match="metric must be a metric object"):
        cb.interval(metric, table(50))


def test_bad_margins_and_alternatives_are_named():
    with pytest.raises(cb.InputError, match="margin must be positive; it is 0"):
        cb.equivalence(cb.ECE(), table(50), margin=0)
    with pytest.raises(cb.InputError, match=r"alpha must lie below 0.5; it is 0.7"):
        cb.equivalence(cb.ECE(), table(50), margin=0.1, alpha=0.7)
    with pytest.raises(cb.InputError, match="alternative must be"):
        cb.null(cb.ECE(), table(50), alternative="less")


def test_an_infinite_log_loss_has_an_infinite_interval():
    data = cb.ScoreTable.from_counts([0.0, 0.5], [10, 100], [3, 50])
    metric = cb.METRICS["log_loss"]()
    found, right = cb.interval(metric, data, random_state=0, n_resamples=50), cb.null(metric, data, n_resamples=50)
    assert found.value == found.high == np.inf
    json.dumps(found.to_dict(), allow_nan=False)
    json.dumps(right.to_dict(), allow_nan=False)


def test_notes_travel():
    data = cb.ScoreTable.from_arrays([0, 1, 1, None], [0.2, 0.4, 0.8, 0.1], missing="drop")
    found = cb.interval(cb.ECE(), data, n_resamples=20, random_state=0)
    assert "missing" in [note.code for note in found.notes]
