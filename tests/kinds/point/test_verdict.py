"""Evaluations of point predictions: verdicts, their error rates, groups, clusters and weights."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import InputError
from calibrant.inference.multiplicity import holm


def evaluate(y, p=None, **options):
    """Evaluate point predictions, or a table of them."""
    return cb.evaluate(y, None if p is None else cb.Point(p), **options)


def test_frequencies_of_too_many_rows_are_refused_before_rows_are_repeated():
    words = "frequency must add up to at most 134,217,728 rows, which are tested one by one; got 21,000,000,000. Pass"
    with pytest.raises(InputError, match=words):
        evaluate([1.0, 2.0, 3.0], [1.0, 2.5, 2.9], frequency=[7 * 10**9] * 3, n_resamples=19)


def test_the_two_models_of_the_chapter_have_the_same_mae_but_only_one_is_calibrated_by_a_shift():
    """R1 predicts the truth plus 1; R2 is right but for one of n rows, where it is off by n (Bella et al., page 2)."""
    n = 50
    truth = np.random.default_rng(0).normal(20, 5, n)
    r1, r2 = truth + 1, truth.copy()
    r2[7] += n
    assert rg.mae(truth, r1) == pytest.approx(1)
    assert rg.mae(truth, r2) == pytest.approx(1)
    # Both have E(y_est) = E(y) + 1 ...
    assert rg.mean_error(truth, r1) == pytest.approx(1)
    assert rg.mean_error(truth, r2) == pytest.approx(1)
    # ... but the error of the first is reliable, of the second not: every bin says so.
    first, second = (rg.bias_by_bin(truth, r, n_bins=5) for r in (r1, r2))
    assert first.significant.all()
    assert not second.significant.any()
    assert first.per_bin["high"] - first.per_bin["low"] == pytest.approx(np.zeros(5), abs=1e-9)
    # Subtracting 1 calibrates R1 and nothing else than R2's one row is wrong.
    repaired = rg.bias_by_bin(truth, r1 - 1, n_bins=5)
    assert repaired.mean_absolute == pytest.approx(0, abs=1e-12)
    assert rg.mse(truth, r1 - 1) == pytest.approx(0, abs=1e-20)
    assert rg.mse(truth, r2 - 1) > rg.mse(truth, r1 - 1) + 40
    assert evaluate(truth, r1, n_resamples=0).verdict == "miscalibrated"
    assert evaluate(truth, r1, n_resamples=0).direction == "overestimates"
    assert evaluate(truth, r2, n_resamples=0).verdict == "inconclusive"


def test_the_scale_of_importance_weights_has_no_effect(skewed, rng):
    y, p = skewed
    weight = rng.gamma(2, 1, y.size)
    one, two = (rg.bias_by_bin(y, p, sample_weight=c * weight).per_bin for c in (1.0, 1e-6))
    for name in one:
        if name not in ("n", "rejected"):
            assert two[name] == pytest.approx(one[name], rel=1e-9), name
    one, two = (evaluate(y, p, sample_weight=c * weight, n_resamples=0) for c in (1.0, 1e-6))
    for name, metric in one.metrics.items():
        limits = metric.interval.low, metric.interval.high
        assert (two[name].interval.low, two[name].interval.high) == pytest.approx(limits, rel=1e-9)
    fits = [rg.slope_intercept(y, p, sample_weight=c * weight).slope for c in (1.0, 1e-6)]
    assert fits[0].standard_error == pytest.approx(fits[1].standard_error, rel=1e-9)


RARE = {
    "tied rates, 100 rows": lambda rng: rng.choice(np.linspace(0.05, 0.5, 10), 100),
    "rates of 2 %, 500 rows": lambda rng: 0.02 * rng.uniform(0.8, 1.2, 500),
    "rates of 10 %, 500 rows": lambda rng: 0.1 * rng.uniform(0.8, 1.2, 500),
    "gamma rates, 200 rows": lambda rng: rng.gamma(2, 0.02, 200),
    "gamma rates, 1,000 rows": lambda rng: rng.gamma(2, 0.02, 1000),
}


@pytest.mark.parametrize("design", RARE)
@pytest.mark.slow
def test_rare_counts_do_not_prove_bias(design, rng):
    wrong = 0
    for _ in range(150):
        p = RARE[design](rng)
        wrong += evaluate(rng.poisson(p).astype(float), p, n_resamples=0).pvalue <= 0.05
    assert wrong <= 16


def test_outcomes_that_never_vary_leave_the_verdict_open():
    found = evaluate(np.zeros(20), np.full(20, 0.05))
    assert found.verdict == "inconclusive"
    assert math.isnan(found.pvalue)
    assert "do not allow a test" in found.headline()
    assert math.isnan(found["mean error"].interval.low)
    json.dumps(found.to_dict(), allow_nan=False)
    assert evaluate(np.full(20, 0.05), np.full(20, 0.05)).pvalue == 1


def test_fewer_than_ten_clusters_are_refused_and_untested_in_groups(rng):
    p = rng.normal(size=210)
    y = p + rng.normal(size=210)
    with pytest.raises(InputError, match=r"at least 10 distinct values for inference; got 7\. Use"):
        evaluate(y, p, cluster=np.arange(210) // 30)
    found = evaluate(y, p + 1, cluster=np.arange(210) // 10, by=np.arange(210) < 60, n_resamples=0)
    assert found.verdict == "miscalibrated"
    few = found.groups[True]
    assert few.verdict == "inconclusive"
    assert math.isnan(few.pvalue)
    assert few.notes[-1].code == "few_clusters"
    assert found.groups[False].verdict == "miscalibrated"


@pytest.mark.slow
def test_tests_of_few_clusters_keep_their_level(rng):
    rejected = 0
    for _ in range(300):
        shop = np.repeat(np.arange(10), 10)
        p = rng.normal(size=100)
        y = p + rng.normal(size=10)[shop] + rng.normal(size=100)
        rejected += evaluate(y, p, cluster=shop, n_resamples=0).pvalue <= 0.05
    assert rejected <= 24


def test_an_evaluation_has_intervals_a_verdict_and_groups(skewed):
    y, p = skewed
    group = np.where(p > 6, "dear", "cheap")
    found = evaluate(y, p, by=group, n_resamples=49)
    assert found.verdict == "miscalibrated"
    assert found.direction == "overestimates, overconfident"
    assert repr(found).startswith("Verdict: miscalibrated (overestimates, overconfident) overall; ")
    assert list(found.groups) == ["cheap", "dear"]
    assert sum(part.table.size for part in found.groups.values()) == 600
    assert found["TCE"].null.expected < 15
    t = stats.ttest_1samp(p - y, 0)
    error = found["mean error"]
    assert error.value == pytest.approx(np.mean(p - y))
    assert t.pvalue <= error.null.pvalue < 2 * t.pvalue  # allows for skewness
    assert error.pvalue == found.tests["mean error"].adjusted_pvalue > t.pvalue
    json.dumps(found.to_dict(), allow_nan=False)
    assert "mean error" in repr(found)
    assert "<table" in found._repr_html_()
    with pytest.raises(KeyError, match="'bias' is not a metric of this evaluation; it has mean error, ratio, MSE"):
        found["bias"]


@pytest.mark.slow
def test_intervals_of_averages_cover(rng):
    """90 % intervals of the ratio and of the relative squared error, over 400 samples of 200 rows."""
    hits = {"ratio": 0, "relative MSE": 0, "mean error": 0}
    # E (0.1 mean)^2 = 0.01 (36 + 3)
    truth = {"ratio": 1.1, "relative MSE": (0.25 + 0.39) / 3.25, "mean error": 0.6}
    for _ in range(400):
        mean = rng.gamma(12, 0.5, 200)
        y, p = mean + rng.normal(0, 0.5, 200), 1.1 * mean
        found = evaluate(y, p, confidence_level=0.9, n_resamples=0)
        for name in hits:
            hits[name] += found[name].interval.low <= truth[name] <= found[name].interval.high
    assert all(335 <= hit <= 385 for hit in hits.values()), hits


def test_clusters_widen_intervals(rng):
    shop = np.repeat(np.arange(60), 20)
    effect = rng.normal(size=60)[shop]
    p = rng.normal(size=1200)
    y = p + effect + rng.normal(size=1200) / 2
    alone, together = evaluate(y, p, n_resamples=0), evaluate(y, p, cluster=shop, n_resamples=0)
    width = [e["mean error"].interval.high - e["mean error"].interval.low for e in (alone, together)]
    assert width[1] > 2.5 * width[0]
    assert together.details.n_clusters == 60
    by_hand = np.array([np.sum((p - y)[shop == s]) for s in range(60)]) / 1200
    error = np.sqrt(60 / 59 * np.sum((by_hand - by_hand.mean()) ** 2))
    found = together["mean error"].interval
    reach = stats.t(59).ppf(0.975) * error
    assert found.low <= np.mean(p - y) - reach + 1e-12 < np.mean(p - y) + reach - 1e-12 <= found.high
    assert found.high - found.low < 1.15 * 2 * reach  # one side reaches further if errors of clusters are skewed


def test_clusters_reach_the_line(rng):
    shop = np.repeat(np.arange(200), 2)  # every row twice
    p = rng.normal(size=200)[shop]
    y = p + rng.normal(size=200)[shop]
    once = evaluate(y[::2], p[::2], cluster=np.arange(200), n_resamples=0).details.line
    twice = evaluate(y, p, cluster=shop, n_resamples=0).details.line
    assert twice.slope.standard_error == pytest.approx(once.slope.standard_error)
    assert twice.test.pvalue == pytest.approx(once.test.pvalue)


def test_the_null_of_tce_is_that_of_repeated_rows_in_any_order(skewed):
    y, p = (a[:150] for a in skewed)
    one = evaluate(y, p, frequency=np.full(150, 4), n_resamples=19)["TCE"].null
    two = evaluate(np.repeat(y, 4)[::-1], np.repeat(p, 4)[::-1], n_resamples=19)["TCE"].null
    assert one == two


@pytest.mark.slow
def test_the_null_of_tce_keeps_its_level(rng):
    low = 0
    for seed in range(60):
        p = rng.uniform(0, 5, 400)
        y = p + (1 + p / 3) * (rng.gamma(2, 1, 400) - 2)
        low += evaluate(y, p, n_resamples=59, random_state=seed)["TCE"].null.pvalue <= 0.1
    assert low <= 14


def test_a_table_is_evaluated_too(skewed):
    y, p = skewed
    table = rg.MeanTable.from_arrays(y, p)
    assert repr(evaluate(table)) == repr(evaluate(y, p))
    with pytest.raises(InputError, match="by must be omitted with a MeanTable; got both"):
        evaluate(table, by=y)
    with pytest.raises(InputError, match="row by row"):
        evaluate(rg.MeanTable.from_arrays(y, np.round(p)).merged())
    with pytest.raises(InputError, match="y_pred is missing"):
        cb.evaluate(y, cb.Point(None))
    with pytest.raises(InputError, match="got a mapping"):
        evaluate(y, {"a": p})


def test_the_four_verdicts_follow_from_significance_and_margin(rng):
    p = rng.normal(size=20_000)
    y = p + 0.5 * rng.normal(size=20_000)
    assert evaluate(y, p, n_resamples=0).verdict == "calibrated"
    small = evaluate(y, p + 0.02, n_resamples=0)
    assert (small.verdict, small.direction) == ("negligible", "overestimates")
    assert evaluate(y, p + 0.02, margin=0.01, n_resamples=0).verdict == "miscalibrated"
    assert evaluate(y, 0.8 * p, n_resamples=0).direction == "underconfident"
    assert evaluate(y + 0.2 * (p**2 - 1), p, n_resamples=0).direction == "local"
    few = evaluate(y[:300], p[:300], n_resamples=0)
    assert few.verdict == "inconclusive"
    assert "more rows would decide" in few.headline()
    assert "standard deviations of the outcome" in few.headline()
    for margin in (0, -1.0, math.nan, "wide"):
        with pytest.raises(InputError, match="margin must be a positive number"):
            evaluate(y, p, margin=margin)


def test_printed_p_values_are_adjusted_and_raw_ones_are_stored(skewed):
    found = evaluate(*skewed, n_resamples=0)
    raw = [test.pvalue for test in found.tests.values()]
    assert [test.adjusted_pvalue for test in found.tests.values()] == pytest.approx(holm(raw).tolist())
    assert found.pvalue == min(test.adjusted_pvalue for test in found.tests.values())
    assert f"{found.tests['slope'].adjusted_pvalue:.2g}" in repr(found)
    assert list(found.tests) == ["mean error", "bias by bins", "slope"]


def test_the_bias_by_bin_and_its_bound_are_in_units_of_the_outcome(rng):
    p = rng.normal(size=50_000)
    y = p + rng.normal(size=50_000)
    shifted = evaluate(y, p + 0.3, n_resamples=0).equivalence
    assert shifted.value == pytest.approx(0.3 / y.std(), rel=0.05)
    assert shifted.low < shifted.value < shifted.high < 1.1 * shifted.value
    moved = evaluate(1000 * y, 1000 * (p + 0.3), n_resamples=0).equivalence
    assert (moved.low, moved.high) == pytest.approx((shifted.low, shifted.high), rel=1e-4)


def test_the_upper_bound_is_never_zero_by_chance():
    """Errors that cancel in each bin: less deviation than chance gives."""
    p = np.repeat(np.linspace(-1, 1, 500), 2)
    found = evaluate(p + np.tile([0.5, -0.5], 500), p, n_resamples=0).equivalence
    assert found.value == 0
    assert found.high > 0.01


@pytest.mark.slow
def test_a_deviation_at_the_margin_is_rarely_called_within_it(rng):
    within = 0
    for _ in range(200):
        p = rng.normal(size=5000)
        y = p + rng.normal(size=5000)
        within += evaluate(y, p + 0.05 * math.sqrt(2), n_resamples=0).equivalence.within
    assert within <= 20


SKEWED = {
    "lognormal, sigma 2, 200 rows": (200, lambda rng, n: np.exp(2 * rng.normal(size=n) - 2)),
    "lognormal, sigma 2, 1,000 rows": (1000, lambda rng, n: np.exp(2 * rng.normal(size=n) - 2)),
    "3 % non-zero, 1,000 rows": (1000, lambda rng, n: (rng.random(n) < 0.03) * np.exp(rng.normal(size=n) - 0.5) / 0.03),
}


@pytest.mark.parametrize("design", SKEWED)
@pytest.mark.slow
def test_skewed_outcomes_do_not_prove_miscalibration(design, rng):
    n, draw = SKEWED[design]
    wrong = noted = 0
    for _ in range(200):
        p = np.exp(0.5 * rng.normal(size=n))
        found = evaluate(p * draw(rng, n), p, n_resamples=0)
        wrong += found.pvalue <= 0.05
        noted += any(note.code == "skewed" for note in found.notes)
    assert wrong <= 16
    assert noted >= 190


def test_underestimated_skewed_outcomes_are_found(rng):
    p = np.exp(0.5 * rng.normal(size=5000))
    y = p * (rng.random(5000) < 0.03) * np.exp(rng.normal(size=5000) - 0.5) / 0.03
    found = evaluate(y, p / 2, n_resamples=0)
    assert found.verdict == "miscalibrated"
    assert "underestimates" in found.direction
    assert evaluate(y, 4 * p, n_resamples=0).direction.startswith("overestimates")


@pytest.mark.slow
def test_groups_are_adjusted_for_their_number(rng):
    wrong = 0
    for _ in range(60):
        p = rng.normal(size=1000)
        found = evaluate(p + rng.normal(size=1000), p, by=np.arange(1000) % 10, n_resamples=0)
        wrong += any(group.pvalue <= 0.05 for group in found.groups.values())
    assert wrong <= 8
    rng = np.random.default_rng(1)
    group = np.arange(21_000) % 7
    p = rng.normal(size=21_000)
    y = p + rng.normal(size=21_000)
    found = evaluate(y, p + np.select([group == 1, group == 2], [0.2, -0.2]), by=group, n_resamples=0)
    assert found.headline().startswith("Verdict: calibrated overall; 2 of 7 groups are miscalibrated")
    assert [name for name, part in found.groups.items() if part.verdict == "miscalibrated"] == [1, 2]
    assert [found.groups[i].direction for i in (0, 1, 2)] == ["", "overestimates", "underestimates"]


def test_bins_of_an_evaluation_hold_fifty_rows(skewed):
    y, p = skewed
    found = [evaluate(y[:n], p[:n], n_resamples=0) for n in (30, 120, 600)]
    assert [len(each.breakdowns["bias by bin"]) for each in found] == [1, 2, 10]
    assert len(evaluate(y[:30], p[:30], n_bins=5, n_resamples=0).breakdowns["bias by bin"]) == 5


def test_groups_of_several_columns_and_groups_without_rows(rng):
    p = rng.uniform(0, 10, 300)
    by = {"region": np.resize(["n", "s"], 300), "old": p > 5}
    found = evaluate(p + rng.normal(size=300), p, by=by, n_resamples=0)
    assert found.by == "region, old"
    assert list(found.groups) == [("n", False), ("n", True), ("s", False), ("s", True)]
    weight = (by["region"] == "n").astype(float)
    found = evaluate(p, p + 1, by=by["region"], sample_weight=weight, n_resamples=0)
    assert list(found.groups) == ["n"]
    assert "Groups in which no row is used: s." in repr(found)


def test_groups_of_two_rows_are_not_all_miscalibrated():
    rng = np.random.default_rng(0)
    m = rng.normal(size=60)
    found = cb.evaluate(m + rng.normal(size=60), cb.Point(m), by=np.repeat(np.arange(30), 2))
    assert [group.verdict for group in found.groups.values()] == ["inconclusive"] * 30


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (50, {"sample_weight": np.r_[1.0, 1.0, np.zeros(48)]}),
        (2, {"frequency": [50, 50]}),
        (3, {"missing": "drop"}),
    ],
)
def test_the_slope_of_two_rows_is_not_tested_however_they_are_given(rows, options):
    y, p = np.r_[1.9, 1.1, np.full(rows - 2, np.nan if "missing" in options else 1.0)], np.arange(rows) + 1.0
    found = cb.evaluate(y, cb.Point(p), **options)
    assert math.isnan(found.decision.omnibus.components["slope"].pvalue)
    assert found.verdict == "inconclusive"


def test_few_equal_errors_of_counts_decide_nothing():
    """Two errors of counts are often equal: their standard error is not 0 but unknown."""
    for y in ([2, 3], [1, 2], [1, 4, 2], [2, 5, 3]):
        found = cb.evaluate(y, cb.Point([1.0, 2.0] if len(y) == 2 else [1.0, 4.0, 2.0]))
        assert found.verdict == "inconclusive"
        assert "nan" not in str(found)
    assert cb.evaluate([2, 3, 4, 5, 6, 7], cb.Point([1, 2, 3, 4, 5, 6])).verdict == "miscalibrated"
