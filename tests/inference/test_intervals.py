"""Intervals, the null, equivalence, for any metric."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence
from scipy.special import expit
from scipy.stats import binomtest, norm
from scipy.stats import t as student
from strategies import tables

import calibrant as cb
from calibrant.inference.intervals import (
    CLOSED_METHODS,
    default_alternative,
    interval_limits,
    interval_method,
    null_pvalue,
)
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resampling import Replicates, resample_metrics
from calibrant.inference.table_sample import TableSample

BINARY = cb.metrics.metric_names("binary")


def table(size=2000, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    return cb.ScoreTable.from_arrays(rng.random(size) < p**power, p)


@pytest.mark.parametrize("name", BINARY)
def test_every_metric_has_an_interval_and_a_null(name):
    metric = cb.METRICS[name]()
    if name == "calbin":
        metric = cb.metrics.CalBin(window=20)
    data = table(300) if name != "calloss" else table(300).round(1)
    found = cb.interval(metric, data, n_resamples=60, random_state=1)
    assert metric.range[0] <= found.low <= found.value <= found.high <= metric.range[1]
    assert found.value == metric(data).value
    assert (found.level, found.n_resamples) == (0.95, 0 if found.method in CLOSED_METHODS else 60)
    right = cb.null(metric, data, n_resamples=60, random_state=1)
    assert right.low <= right.expected <= right.high
    assert right.excess == right.value - right.expected
    assert 1 / 61 <= right.pvalue <= 1
    for result in (found, right):
        json.dumps(result.to_dict(), allow_nan=False)
        assert result.to_dict()["spec"] == metric.spec


def test_the_same_seed_gives_the_same_interval_and_wider_levels_contain_narrower_ones():
    data = table(power=1.2)
    for metric in (cb.ECE(), cb.TCE(), cb.metrics.Bias()):
        one = cb.interval(metric, data, random_state=5, n_resamples=199)
        assert one == cb.interval(metric, data, random_state=5, n_resamples=199)
        is_drawn = one.method not in CLOSED_METHODS
        assert (one != cb.interval(metric, data, random_state=6, n_resamples=199)) is is_drawn
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
    plain = cb.interval(cb.metrics.Bias(), y, p, random_state=0, n_resamples=200)
    weighted = cb.interval(cb.metrics.Bias(), y, p, sample_weight=weights, random_state=0, n_resamples=200)
    ratio = (weighted.high - weighted.low) / (plain.high - plain.low)
    effective = weights.sum() ** 2 / np.sum(weights**2)
    assert ratio == pytest.approx(np.sqrt(2000 / effective), rel=0.25)


def test_clusters_of_copies_count_once():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    once = cb.interval(cb.metrics.Bias(), y, p, random_state=0, n_resamples=400)
    copies = cb.interval(
        cb.metrics.Bias(),
        np.tile(y, 5),
        np.tile(p, 5),
        cluster=np.tile(np.arange(200), 5),
        random_state=0,
        n_resamples=400,
    )
    naive = cb.interval(cb.metrics.Bias(), np.tile(y, 5), np.tile(p, 5), random_state=0, n_resamples=400)
    assert copies.high - copies.low == pytest.approx(once.high - once.low, rel=0.15)
    assert naive.high - naive.low < 0.6 * (once.high - once.low)


def test_a_table_has_no_clusters():
    with pytest.raises(cb.InputError, match="cluster must be given with y_true and forecast; got a ScoreTable"):
        cb.interval(cb.ECE(), table(50), cluster=np.zeros(50))


def test_the_interval_of_a_mean_is_that_of_theory():
    """The bias is a mean of p - y, so its interval is known."""
    data = table(5000, power=1.3)
    found = cb.interval(cb.metrics.Bias(), data, random_state=0, n_resamples=1999)
    deviation = np.sqrt(cb.brier(data) - found.value**2)
    assert found.low == pytest.approx(found.value - 1.96 * deviation / np.sqrt(5000), abs=0.001)
    assert found.high == pytest.approx(found.value + 1.96 * deviation / np.sqrt(5000), abs=0.001)


def test_the_kind_of_interval_follows_from_the_metric():
    kinds = {name: interval_method(cb.METRICS[name]()) for name in BINARY}

    def of_kind(kind):
        return {name for name in kinds if kinds[name] == kind}

    assert of_kind("arcsine") == {"tce"}
    assert of_kind("centred") == {"debiased_sce"}
    assert of_kind("triangle") == {"mce", "rmsce", "emax", "mcb", "calloss", "smooth_ece"}
    assert of_kind("influence") == {"brier", "stratified_brier", "log_loss", "auc"}
    assert (of_kind("bias"), of_kind("ratio")) == ({"bias"}, {"oe_ratio"})
    two_sided = {name for name in kinds if default_alternative(cb.METRICS[name]()) == "two-sided"}
    assert two_sided == {*of_kind("influence"), "bias", "oe_ratio"}


class MeanScoreOfEvents(cb.metrics.UnbinnedMetric):
    """A metric without a closed form of its interval."""

    name = "mean_score_of_events"

    def value(self, table):
        return float(table.k @ table.score / table.k.sum())


# no bin without events, or with events only
MANY = cb.ScoreTable.from_counts([0.5], [100_000], [50_000])


def replicates(metric, value, bootstrap, null, table=MANY):
    return Replicates(metric, value, np.asarray(bootstrap, float), np.asarray(null, float), TableSample(table))


def limits(*arguments):
    return interval_limits(replicates(*arguments), 0.95)


SAFETY = 1 + 1 / np.sqrt(50_000)  # of reaches, with as many events and non-events as MANY has


def test_an_anchored_interval_by_hand():
    """Upper quantiles 0.195 of the null and 0.495 of the bootstrap, value 0.4."""
    boot, null = np.linspace(0.3, 0.5, 201), np.linspace(0.0, 0.2, 201)
    low, high = limits(cb.ECE(), 0.4, boot, null)
    u0, u1, reach = 0.195, 0.495, SAFETY * 0.095
    assert low == pytest.approx(min(0.4 - reach, 0.4 * np.sqrt((0.4**2 - u0**2) / (u1**2 - u0**2))))
    assert high == pytest.approx(0.4 + reach)  # both tails are equally long
    assert limits(cb.ECE(), 0.19, boot, null)[0] == 0
    # a bootstrap with an upward bias of 0.05: the lower limit lies lower by as much
    assert limits(cb.ECE(), 0.35, boot, null)[0] <= 0.35 - 0.05 - reach + 1e-9


def test_a_triangle_interval_by_hand():
    """The value less the upper quantile of the noise; of squared gaps on the scale of their roots."""
    boot, null = np.linspace(0.3, 0.5, 201), np.linspace(0.0, 0.2, 201)
    assert limits(cb.metrics.MCE(), 0.4, boot, null) == pytest.approx((0.4 - 0.195, 0.4 + SAFETY * 0.095))
    squared = limits(cb.METRICS["mcb"](), 0.16, boot**2, null**2)
    assert squared == pytest.approx(((0.4 - 0.195) ** 2, (0.4 + SAFETY * 0.095) ** 2))


def test_outcomes_that_vary_more_than_expected_lower_the_lower_limit():
    """Half of the rows have the event, a tenth was predicted: the noise has sqrt(0.41 / 0.09) times the deviation."""
    low_scores = cb.ScoreTable.from_counts([0.1], [100_000], [50_000])
    boot, null = np.full(99, 0.4), np.full(99, 0.05)
    low, _ = limits(cb.metrics.MCE(), 0.4, boot, null, low_scores)
    assert low == pytest.approx(0.4 - 0.05 * np.sqrt((0.5 * 0.81 + 0.5 * 0.01) / 0.09))


def test_few_events_widen_limits():
    boot = np.linspace(0.01, 0.03, 201)
    many, few = (
        limits(MeanScoreOfEvents(), 0.02, boot, [], cb.ScoreTable.from_counts([0.1], [n], [k]))
        for n, k in ((100_000, 10_000), (1_000, 4))
    )
    assert many == pytest.approx((0.02 - 1.01 * 0.0095, 0.02 + 1.01 * 0.0095))
    factor = student.ppf(0.975, 3) / norm.ppf(0.975)
    assert few[1] == pytest.approx(0.02 + factor * 0.0095)


def test_the_upper_limit_reaches_as_far_as_the_longer_tail():
    """A bootstrap that is folded at 0, as that of one bin: its lower tail is short."""
    folded = np.abs(np.linspace(-1, 1, 2001)) ** 0.5
    extreme = cb.ScoreTable.from_counts([0.0], [100_000], [50_000])  # its scores allow gaps up to 1
    _, high = limits(cb.ECE(), 0.1, folded**4, [0.0] * 9, extreme)
    low, up = np.quantile(folded**4, (0.025, 0.975))
    assert up - np.mean(folded**4) > np.mean(folded**4) - low
    assert high == pytest.approx(0.1 + SAFETY * (up - np.mean(folded**4)))


def test_pure_bins_widen_the_limit():
    """Ten of 30 rows lie in a bin without an event, ten in one with events only: exact limits, by their shares."""
    table = cb.ScoreTable.from_counts([0.1, 0.5, 0.9], [10, 10, 10], [0, 5, 10])
    plain = 0.0667
    limit = binomtest(0, 10).proportion_ci(0.95).high  # two-sided 95 %: a tail of 0.025
    for metric, hidden in (
        (cb.ECE(), 2 * limit / 3),
        (cb.metrics.RMSCE(), limit * np.sqrt(2 / 3)),
        (cb.metrics.MCE(), limit),
        (cb.metrics.ECC(cb.costs.LinearCost(over=1, under=5)), 6 * limit / 3),
    ):
        assert limits(metric, plain, [plain] * 99, [0.0] * 99, table)[1] == pytest.approx(plain + hidden)


def test_a_degenerate_bootstrap_of_tce_allows_for_unseen_bins():
    assert limits(cb.TCE(), 100.0, [100.0] * 99, []) == pytest.approx((100 * 0.025, 100))  # one bin


@pytest.mark.parametrize("name", BINARY)
def test_one_class_does_not_prove_its_rate(name):
    """Ten rows without an event do not show a rate below 10 %."""
    data = cb.ScoreTable.from_counts([0.001, 0.002], [5, 5], [0, 0])
    metric = cb.METRICS[name]()
    if not metric.measures_gaps or metric.unit == "%" or name == "debiased_sce":
        return
    found = cb.interval(metric, data, random_state=0, n_resamples=50)
    limit = 0.1 if metric.degree == 1 else 0.01
    assert found.high > limit


def test_a_degenerate_bootstrap_shows_neither_deviation_nor_equivalence():
    for y, p in (([0], [0.001]), ([0] * 100, [0.0001] * 100), ([0, 1], [0, 1])):
        assert not cb.equivalence(cb.metrics.ACE(), y, p, margin=0.01, random_state=0).within
    assert cb.equivalence(cb.metrics.ACE(), [0] * 1000, [0.0001] * 1000, margin=0.01, random_state=0).within


def test_a_centred_interval_by_hand():
    boot = np.linspace(20, 60, 401)
    angle = np.arcsin(np.sqrt(boot / 100))
    offset = angle - angle.mean()
    reach = 1.2 * max(-np.quantile(offset, 0.025), np.quantile(offset, 0.975))
    value = np.arcsin(np.sqrt(0.30))
    low, high = limits(cb.TCE(), 30.0, boot, [])
    assert (low, high) == pytest.approx((100 * np.sin(value - reach) ** 2, 100 * np.sin(value + reach) ** 2))
    assert limits(cb.TCE(), 0.0, boot, [])[0] == 0
    assert limits(cb.TCE(), 100.0, boot, [])[1] == 100


def test_p_values_by_hand():
    null = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert null_pvalue(replicates(cb.ECE(), 8, [], null), "greater") == 3 / 10
    assert null_pvalue(replicates(cb.metrics.Bias(), 8, [], null), "two-sided") == 6 / 10
    assert null_pvalue(replicates(cb.metrics.Bias(), 0.5, [], null), "two-sided") == 2 / 10
    assert null_pvalue(replicates(cb.metrics.Bias(), 5, [], null), "two-sided") == 1


@pytest.mark.parametrize(
    "metric",
    [cb.ECE(), cb.metrics.MCE(), cb.TCE(), cb.metrics.Bias(), cb.METRICS["debiased_sce"](), cb.METRICS["mcb"]()],
)
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
    assert cb.equivalence(cb.metrics.Bias(), right, margin=0.03, random_state=0).within
    assert not cb.equivalence(cb.metrics.Bias(), low, margin=0.03, random_state=0).within


@pytest.mark.slow
def test_p_values_of_calibrated_models_are_uniform():
    found = [cb.null(cb.metrics.ACE(), table(200, seed=s), n_resamples=39, random_state=s).pvalue for s in range(300)]
    assert np.mean(np.array(found) <= 0.25) == pytest.approx(0.25, abs=0.08)
    assert np.mean(np.array(found) <= 0.75) == pytest.approx(0.75, abs=0.08)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 1}, "confidence_level must lie between 0 and 1; got 1"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1; got 0"),
        ({"n_resamples": float("nan")}, "n_resamples must be a whole number of at least 1; got nan"),
        ({"random_state": -3}, "random_state must be None"),
    ],
)
def test_bad_options_are_named(options, message):
    for function in (cb.interval, cb.null):
        with pytest.raises(cb.InputError, match=message):
            function(cb.ECE(), table(50), **options)


@pytest.mark.parametrize("metric", ["ECEX", cb.GCE, None, abs])
def test_a_metric_must_be_known(metric):
    with pytest.raises(cb.InputError, match="metric must be a metric object"):
        cb.interval(metric, table(50))


def test_bad_margins_and_alternatives_are_named():
    with pytest.raises(cb.InputError, match="margin must be a positive number; got 0"):
        cb.equivalence(cb.ECE(), table(50), margin=0)
    with pytest.raises(cb.InputError, match=r"alpha must lie below 0.5; got 0.7"):
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


def test_notes_are_carried_to_results():
    data = cb.ScoreTable.from_arrays([0, 1, 1, None], [0.2, 0.4, 0.8, 0.1], missing="drop")
    found = cb.interval(cb.ECE(), data, n_resamples=20, random_state=0)
    assert "missing" in [note.code for note in found.notes]


# Laws


@given(tables, st.integers(0, 2**32 - 1), st.sampled_from(sorted(set(BINARY) - {"smooth_ece"})))
@settings(max_examples=3 * settings().max_examples)
def test_an_interval_lies_in_the_range_and_contains_the_value(data, seed, name):
    metric = cb.METRICS[name]()
    try:
        found = cb.interval(metric, data, n_resamples=20, random_state=seed)
    except cb.InputError:
        return  # one class, too few rows, scores without ties
    low, high = metric.range
    assert found.low <= found.value <= found.high
    assert low <= found.low or found.low == found.value  # a debiased estimate can be negative
    assert found.high <= high or found.high == found.value


# Declared properties


def mine(partition):
    return np.abs(partition.mean_score - partition.rate)


mine.measures_gaps = True
mine.needs_sums_only = True


@pytest.mark.parametrize("bins", [cb.bins.EqualSize(10), cb.bins.EqualWidth(10)])
def test_a_loss_with_the_same_properties_gets_the_same_inference(bins):
    data = table(1500, power=1.1)
    ours = cb.GCE(bins, cb.losses.absolute_gap, cb.norms.weighted_l1)
    own = cb.GCE(bins, mine, cb.norms.weighted_l1)
    common = {"random_state": 3, "n_resamples": 99}
    a, b = (cb.interval(metric, data, **common) for metric in (ours, own))
    assert (a.value, a.low, a.high, a.method) == (b.value, b.low, b.high, b.method)
    a, b = (cb.null(metric, data, **common) for metric in (ours, own))
    assert (a.expected, a.low, a.high, a.pvalue, a.alternative) == (b.expected, b.low, b.high, b.pvalue, b.alternative)
    a, b = (cb.equivalence(metric, data, margin=0.03, **common) for metric in (ours, own))
    assert (a.pvalue, a.bound) == (b.pvalue, b.bound)
    # In an evaluation, verdict, interval and null are equal too.
    a, b = (cb.evaluate(data, metrics={"mine": metric}, **common) for metric in (ours, own))
    assert (a.verdict, a.direction, a.pvalue) == (b.verdict, b.direction, b.pvalue)
    for part in ("interval", "null"):
        one, two = (getattr(each["mine"], part).to_dict() | {"spec": None} for each in (a, b))
        assert one | {"metric": ""} == two | {"metric": ""}


def test_a_declared_method_and_range_are_used():
    class Cubed:
        measures_gaps, needs_sums_only, degree, range, interval_method = True, True, 3, (0.0, 0.001), "triangle"

        def __call__(self, partition):
            return mine(partition) ** 3

    metric = cb.GCE(cb.bins.EqualSize(5), Cubed(), cb.norms.weighted_l1)
    found = cb.interval(metric, table(200), n_resamples=50, random_state=0)
    assert found.method == "triangle"
    assert found.high == max(0.001, found.value)


def test_a_loss_that_declares_nothing_gets_the_defaults():
    metric = cb.GCE(cb.bins.EqualSize(10), lambda partition: 1.0 * mine(partition), cb.norms.weighted_l1)
    assert (metric.measures_gaps, metric.needs_sums_only, metric.interval_method) == (False, False, "symmetric")
    assert cb.null(metric, table(100), n_resamples=20, random_state=0).alternative == "two-sided"
    data = table(500)
    found = cb.interval(metric, data, n_resamples=99, random_state=0)
    anchored = cb.interval(cb.metrics.ACE(), data, n_resamples=99, random_state=0)
    assert found.high >= anchored.high


def test_signed_losses_measure_gaps_under_norms_of_absolute_values():
    signed = cb.losses.signed_gap
    assert cb.GCE(cb.bins.EqualSize(5), signed, cb.norms.sup).measures_gaps
    assert cb.GCE(cb.bins.EqualSize(5), signed, cb.norms.Lp(3)).measures_gaps
    assert not cb.metrics.Bias().measures_gaps
    assert cb.GCE(cb.bins.EqualSize(5), signed, cb.norms.weighted_l1).range == (0, 1)


def test_a_metric_that_declares_no_null_has_none():
    class Costs:
        has_null = False

        def __call__(self, partition):
            return partition.rate

    metric = cb.GCE(cb.bins.EqualSize(5), Costs(), cb.norms.weighted_mean, name="costs")
    assert cb.interval(metric, table(50), n_resamples=20, random_state=0).value == metric(table(50)).value
    with pytest.raises(cb.InputError, match="metric must have a null distribution; got costs"):
        cb.null(metric, table(50), n_resamples=20)


def test_an_unknown_method_is_named():
    class Odd:
        interval_method = "magic"

        def __call__(self, partition):
            return partition.rate

    with pytest.raises(cb.InputError, match=r"interval_method must be one of inversion, .*got 'magic'"):
        cb.interval(cb.GCE(cb.bins.EqualSize(5), Odd(), cb.norms.weighted_l1), table(50), n_resamples=20)


# Refusals


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("calloss", table(200), r"calloss needs tied scores for an interval; got 100 % .* Use mcb or ace"),
        (
            "auc",
            cb.ScoreTable.from_counts([0.1, 0.2], [50, 50], [4, 5]),
            "AUC needs rows of each class for an interval, at least 10; got 9",
        ),
        (
            "stratified_brier",
            cb.ScoreTable.from_counts([0.1], [50], [19]),
            "rows of each class for an interval, at least 20; got 19",
        ),
        (
            "log_loss",
            cb.ScoreTable.from_counts([0.1], [50], [0]),
            "rows of each class for an interval, at least 1; got 0",
        ),
    ],
)
def test_a_metric_without_a_valid_interval_refuses_one(name, data, message):
    metric = cb.METRICS[name]()
    with pytest.raises(cb.InputError, match=message):
        cb.interval(metric, data, n_resamples=20)
    with pytest.raises(cb.InputError, match=message):
        cb.equivalence(metric, data, margin=0.1, n_resamples=20)
    assert cb.null(metric, data, n_resamples=20).value == metric(data).value if name != "auc" else True


def test_an_evaluation_keeps_the_value_and_the_null_of_a_metric_without_an_interval():
    found = cb.evaluate(
        table(300), metrics={"calloss": cb.METRICS["calloss"](), "ACE": cb.metrics.ACE()}, n_resamples=50
    )
    line = found["calloss"]
    assert line.interval.method == "none"
    assert np.isnan([line.interval.low, line.interval.high]).all()
    assert 0 < line.null.pvalue <= 1
    assert "no_interval" in [note.code for note in line.interval.notes]
    json.dumps(found.to_dict(), allow_nan=False)


# Clusters and weights


def clustered(rng, clusters=200, size=10):
    """Calibrated scores; a shared normal effect of deviation 1 per cluster."""
    x = rng.normal(-1, 1.3, clusters * size)
    cluster = np.repeat(np.arange(clusters), size)
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    p = (expit(x[:, None] + nodes) * weights).sum(axis=1) / weights.sum()
    return (rng.random(x.size) < expit(x + rng.normal(size=clusters)[cluster])).astype(int), p, cluster


def thinned(rng):
    """Calibrated scores; one event in four is kept, with four times the weight."""
    p = expit(rng.normal(-1, 1.3, 2000))
    y = rng.random(2000) < p
    kept = ~y | (rng.random(2000) < 0.25)
    return y[kept].astype(int), p[kept], np.where(y, 1.0, 0.25)[kept]


@pytest.mark.slow
def test_intervals_of_calibrated_models_contain_0_with_clusters_and_weights():
    excluded = {"cluster": 0, "sample_weight": 0}
    for seed in range(60):
        for option, sample in (("cluster", clustered), ("sample_weight", thinned)):
            y, p, column = sample(np.random.default_rng(seed))
            found = cb.interval(cb.metrics.ACE(), y, p, n_resamples=99, random_state=seed, **{option: column})
            excluded[option] += found.low > 0
    assert max(excluded.values()) <= 5  # 2.5 % are expected


@pytest.mark.slow
def test_p_values_of_clustered_calibrated_models_are_uniform():
    found = []
    for seed in range(80):
        y, p, cluster = clustered(np.random.default_rng(seed), 60, 10)
        found.append(cb.null(cb.metrics.ACE(), y, p, cluster=cluster, n_resamples=39, random_state=seed).pvalue)
        assert (
            cb.consistency(cb.metrics.ACE(), y, p, cluster=cluster, n_resamples=39, random_state=seed).pvalue
            == found[-1]
        )
    assert np.mean(np.array(found) <= 0.1) <= 0.2
    assert np.mean(np.array(found) <= 0.5) == pytest.approx(0.5, abs=0.18)


def test_fewer_than_ten_clusters_are_refused():
    y, p, _ = clustered(np.random.default_rng(0), 7, 20)
    cluster = np.arange(140) % 7
    message = "cluster must have at least 10 distinct values for inference; got 7"
    for function in (cb.interval, cb.null, cb.consistency):
        with pytest.raises(cb.InputError, match=message):
            function(cb.metrics.ACE(), y, p, cluster=cluster)
    with pytest.raises(cb.InputError, match=message):
        cb.equivalence(cb.metrics.ACE(), y, p, cluster=cluster, margin=0.1)


def test_few_clusters_widen_limits_at_least_by_students_quantile():
    rng = np.random.default_rng(1)
    y, p, cluster = clustered(rng, 12, 40)
    sample = TableSample(cb.ScoreTable.from_arrays(y, p), PairedRows.read(y, [p], cluster=cluster)[0])
    (found,) = resample_metrics([MeanScoreOfEvents()], sample, seed=SeedSequence(0), n_resamples=199)
    low, high = np.quantile(found.bootstrap, (0.025, 0.975))
    reach = max(high - found.value, found.value - low)
    assert interval_limits(found, 0.95)[1] - found.value >= reach * student.ppf(0.975, 11) / norm.ppf(0.975) - 1e-12


@pytest.mark.parametrize("name", ["tce", "calbin"])
def test_a_metric_that_needs_counts_has_no_null_under_clusters(name):
    y, p, cluster = clustered(np.random.default_rng(0), 30, 10)
    found = cb.null(cb.METRICS[name](), y, p, cluster=cluster, n_resamples=20, random_state=0)
    assert np.isnan([found.expected, found.low, found.high, found.pvalue]).all()
    assert [note.code for note in found.notes] == ["no_null"]
    json.dumps(found.to_dict(), allow_nan=False)


def test_limits_of_both_kernels_agree():
    code = "import sys; sys.path[:0] = ['tests', 'tests/inference']; import test_intervals as t; print(t.some_limits())"
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CALIBRANT_KERNEL": "reference"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(child.stdout or "null") == pytest.approx(some_limits(), rel=1e-10, abs=1e-12), child.stderr


def some_limits():
    y, p, cluster = clustered(np.random.default_rng(5), 40, 5)
    options = ({}, {"cluster": cluster}, {"sample_weight": p + 0.3})
    metrics = [cb.METRICS[name]() for name in ("ace", "mce", "mcb", "debiased_sce", "brier")]
    found = [cb.interval(m, y, p, n_resamples=30, random_state=2, **rows) for m in metrics for rows in options]
    return [limit for i in found for limit in (i.low, i.high)]
