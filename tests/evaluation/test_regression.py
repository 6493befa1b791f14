"""Predicted numbers: measures of bias against slow oracles, other libraries, and laws."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import CalibrantWarning, InputError
from calibrant.forecasts.kinds import forecast_kind
from calibrant.inference.multiplicity import holm

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "numbers.json").read_text())
FROZEN = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}

numbers = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 7.5])
rows = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30)


def evaluate(y, p=None, **options):
    """Evaluate numbers as point predictions, and forecasts as they are."""
    numbers = p is not None and forecast_kind(y, p) != "distribution"
    return cb.evaluate(y, cb.Point(p) if numbers else p, **options)


def test_frequencies_of_too_many_rows_are_refused_before_rows_are_repeated():
    words = "frequency must add up to at most 134,217,728 rows, which are tested one by one; got 21,000,000,000. Pass"
    with pytest.raises(InputError, match=words):
        evaluate([1.0, 2.0, 3.0], [1.0, 2.5, 2.9], frequency=[7 * 10**9] * 3, n_resamples=19)


def test_pit_values_at_the_end_are_counted_once(rng):
    y = rng.normal(size=100)
    y[:7] = 50
    found = evaluate(y, rg.Gaussian(np.zeros(100), np.ones(100)), n_resamples=0)
    assert [note.count for note in found.notes if note.code == "pit_at_end"] == [7]


def columns(pairs):
    return np.array(pairs, dtype=float).T


@pytest.fixture
def skewed(rng):
    """600 rows of predictions that spread too widely, with errors as prices have them."""
    p = rng.gamma(3, 2, 600)
    return 1 + 0.8 * p + rng.gamma(2, 1, 600) - 2, p


# The chapter's two models


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


# Plain measures


def test_measures_agree_with_other_libraries():
    y, p = FROZEN["y"], FROZEN["mean"]
    assert rg.mse(y, p) == pytest.approx(GOLDEN["sklearn"]["mse"], abs=1e-9)
    assert rg.relative_mse(y, p) == pytest.approx(GOLDEN["sklearn"]["relative_mse"], abs=1e-9)
    assert rg.pinball(y, p, level=0.8) == pytest.approx(GOLDEN["sklearn"]["pinball"], abs=1e-9)
    accuracy = GOLDEN["uncertainty_toolbox"]["accuracy"]
    assert rg.mae(y, p) == pytest.approx(accuracy["mae"], abs=1e-9)
    assert math.sqrt(rg.mse(y, p)) == pytest.approx(accuracy["rmse"], abs=1e-9)
    assert rg.error_tolerance(y, p, share=0.5) == pytest.approx(accuracy["mdae"], rel=0.05)  # theirs is a midpoint


def test_the_ratio_and_the_quotient_handle_zeros():
    assert rg.ratio([0.0, 2.0], [1.0, 3.0]) == 2.0
    with pytest.raises(InputError, match="mean of y_true must not be 0"):
        rg.ratio([-1.0, 1.0], [1.0, 3.0])
    with pytest.raises(InputError, match="the first is row 1"):
        rg.mean_quotient([1.0, 0.0], [2.0, 3.0])
    with pytest.warns(CalibrantWarning, match="outcome is 0, which has no quotient: 1"):
        assert rg.mean_quotient([1.0, 0.0], [2.0, 3.0], zeros="drop") == 2.0
    with pytest.raises(InputError, match="must not be 0"):
        rg.mean_quotient([0.0, 0.0], [2.0, 3.0], zeros="drop")
    with pytest.raises(InputError, match="y_true must hold different outcomes"):
        rg.relative_mse([1.0, 1.0], [2.0, 3.0])


def test_the_line_of_outcomes_on_predictions_is_that_of_statsmodels():
    fit = rg.slope_intercept(FROZEN["y"], FROZEN["mean"])
    frozen = GOLDEN["statsmodels"]
    assert [fit.intercept.value, fit.slope.value] == pytest.approx(frozen["coefficients"], abs=1e-9)
    assert [fit.intercept.standard_error, fit.slope.standard_error] == pytest.approx(frozen["errors"], abs=1e-9)
    shown = [[e.low, e.high] for e in (fit.intercept, fit.slope)]
    assert np.array(shown) == pytest.approx(np.array(frozen["intervals"]), abs=1e-9)
    assert tuple(fit.test) == pytest.approx((frozen["f"], frozen["f_pvalue"]), abs=1e-9)


@given(rows)
def test_the_squared_error_is_the_sum_of_its_parts(pairs):
    y, p = columns(pairs)
    parts = rg.mse_decomposition(y, p)
    assert parts.mse == pytest.approx(rg.mse(y, p), abs=1e-12)
    assert parts.mcb >= -1e-12
    assert parts.dsc >= -1e-12
    assert parts.bias + parts.slope <= parts.mcb + 1e-9
    assert parts.bias == pytest.approx(rg.mean_error(y, p) ** 2, abs=1e-12)


@given(rows, st.sampled_from(["absolute", "squared"]))
def test_the_area_over_the_rec_curve_is_the_mean_error(pairs, loss):
    y, p = columns(pairs)
    curve = rg.rec_curve(y, p, loss=loss)
    steps = np.concatenate([[0.0], curve.accuracy[:-1]])
    area = float(np.sum((1 - steps) * np.diff(np.concatenate([[0.0], curve.tolerance]))))
    assert area == pytest.approx(curve.area_over, abs=1e-12)
    assert curve.area_over == pytest.approx((rg.mae if loss == "absolute" else rg.mse)(y, p), abs=1e-12)
    assert curve.at(curve.tolerance[-1]) == 1
    assert curve.needed(1) == curve.tolerance[-1]
    assert curve.at(-1) == 0


# Tables


@given(rows, rows)
def test_tables_add_up_and_ignore_the_order_of_rows(left, right):
    def table(pairs):
        return rg.MeanTable.from_arrays(*columns(pairs))

    both = table(left + right)
    assert table(left) + table(right) == both
    assert table((left + right)[::-1]) == both
    assert both.merged() == both
    assert both.merged().size == both.size == len(left) + len(right)
    for measure in (rg.mse, rg.mean_error):
        assert measure(both.merged()) == pytest.approx(measure(both), abs=1e-12)


@given(rows, st.integers(1, 6))
def test_bins_of_a_merged_table_are_those_of_its_rows(pairs, n_bins):
    table = rg.MeanTable.from_arrays(*columns(pairs))
    by_rows, merged = (rg.bias_by_bin(t, n_bins=n_bins).per_bin for t in (table, table.merged()))
    for name in ("lower", "upper", "n", "bias", "mean_outcome"):
        assert merged[name] == pytest.approx(by_rows[name], abs=1e-12)


@given(rows, st.integers(1, 6))
def test_frequencies_are_counts_of_rows(pairs, n_bins):
    y, p = columns(pairs)
    times = 1 + np.arange(y.size) % 3
    again = np.repeat(y, times), np.repeat(p, times)
    for measure in (rg.mse, rg.mean_error, rg.mae):
        for option in ("frequency", "sample_weight"):
            assert measure(y, p, **{option: times}) == pytest.approx(measure(*again), abs=1e-12)
    one = rg.bias_by_bin(y, p, n_bins=n_bins, frequency=times).per_bin
    two = rg.bias_by_bin(*again, n_bins=n_bins).per_bin
    for name in one:
        assert one[name] == pytest.approx(two[name], abs=1e-9, nan_ok=True), name


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


def test_equal_importance_weights_change_no_value(skewed):
    y, p = skewed
    same = np.full(y.size, 0.37)
    one, two = rg.bias_by_bin(y, p).per_bin, rg.bias_by_bin(y, p, sample_weight=same).per_bin
    for name in ("bias", "low", "high", "pvalue"):
        assert two[name] == pytest.approx(one[name], rel=1e-9), name
    plain, weighted = rg.slope_intercept(y, p), rg.slope_intercept(y, p, sample_weight=same)
    assert weighted.slope.standard_error == pytest.approx(plain.slope.standard_error, rel=1e-9)


def test_a_table_copies_the_arrays_of_the_user(skewed):
    y, p = (a.copy() for a in skewed)
    table = rg.MeanTable.from_arrays(y, p)
    before = rg.mse(table)
    y[:] = 0
    assert rg.mse(table) == before
    with pytest.raises(ValueError, match="read-only"):
        table.prediction[0] = 1


def test_moments_of_a_query_make_the_table(skewed):
    y, p = np.round(skewed[0], 1), np.round(skewed[1])
    values, place = np.unique(p, return_inverse=True)
    n = np.bincount(place)
    mean = np.bincount(place, weights=y) / n
    m2 = np.bincount(place, weights=(y - mean[place]) ** 2)
    table = rg.MeanTable.from_moments(values, n, mean, m2)
    assert table == rg.MeanTable.from_arrays(y, p)
    assert rg.relative_mse(table) == pytest.approx(rg.relative_mse(y, p))
    with pytest.raises(InputError, match="needs outcomes row by row"):
        rg.mae(table)
    with pytest.raises(InputError, match="n must be whole numbers"):
        rg.MeanTable.from_moments([1.0], [0.5], [1.0], [0.0])


# Bias by bins


def slow_bins(p, n_bins):
    """Row by row: bin b begins at rank floor(b N / B), ties stay with their first."""
    order = np.argsort(p, kind="stable")
    starts = {b * len(p) // n_bins for b in range(n_bins)}
    labels, current = np.empty(len(p), dtype=int), -1
    pending = False
    for rank, row in enumerate(order):
        pending |= rank in starts
        if pending and (rank == 0 or p[row] != p[order[rank - 1]]):
            current, pending = current + 1, False
        labels[row] = current
    return labels


@given(rows, st.integers(1, 8))
def test_bins_are_those_of_the_slow_oracle(pairs, n_bins):
    y, p = columns(pairs)
    labels = slow_bins(p, n_bins)
    found = rg.bias_by_bin(y, p, n_bins=n_bins).per_bin
    assert found["n"].tolist() == np.bincount(labels).tolist()
    for b in range(labels.max() + 1):
        own = labels == b
        assert found["bias"][b] == pytest.approx(np.mean(p[own] - y[own]), abs=1e-12)
        assert found["mean_outcome"][b] == pytest.approx(y[own].mean(), abs=1e-12)
        assert found["upper"][b] == p[own].max()


def test_without_skewness_the_test_is_scipys_t_test(rng):
    p = rng.normal(size=300)
    half = rng.normal(size=150)
    y = p + 0.1 + np.concatenate([half, -half])[rng.permutation(300)]
    found = rg.bias_by_bin(y, p, n_bins=1)
    t = stats.ttest_1samp(p - y, 0)
    assert found.per_bin["pvalue"][0] == pytest.approx(t.pvalue, rel=1e-6)
    low, high = t.confidence_interval(0.95)
    assert (found.per_bin["low"][0], found.per_bin["high"][0]) == pytest.approx((low, high), rel=1e-6)


def test_skewness_is_corrected_by_the_formula_of_hall(skewed):
    y, p = skewed
    found = rg.bias_by_bin(y, p, n_bins=5).per_bin
    labels = slow_bins(p, 5)
    d = p - y
    skew = np.median([stats.skew(d[labels == b]) for b in range(5)])
    for b in range(5):
        own = d[labels == b]
        t = own.mean() / (own.std(ddof=1) / np.sqrt(own.size))
        a = skew / (3 * np.sqrt(own.size))
        g = t + a * t**2 + a**2 * t**3 / 3 + skew / (6 * np.sqrt(own.size))
        assert found["pvalue"][b] == pytest.approx(2 * stats.t.sf(abs(g), own.size - 1), rel=1e-9)


def test_an_interval_contains_the_values_that_the_test_accepts(skewed):
    from dataclasses import replace

    from calibrant.metrics.bin_means import bin_means

    table = rg.MeanTable.from_arrays(*skewed)
    d = table.prediction - table.mean
    means = bin_means(cb.Quantile(4)(table), lambda run: d[run])
    assert abs(means.skewness) > 0.5
    for end in means.limits(0.9):
        assert means.pvalue(end) == pytest.approx(np.full(4, 0.1), abs=1e-9)
    straight = replace(means, skewness=0.0)
    low, high = straight.limits(0.9)
    assert means.mean - low == pytest.approx(high - means.mean)


@pytest.mark.slow
def test_tests_of_bins_keep_their_level(rng):
    """Skewed and heavy-tailed errors, 50 rows per bin (docs/studies/regression_error_rates.csv)."""
    draws = {"gamma": lambda n: rng.gamma(1, 1, n) - 1, "t": lambda n: rng.standard_t(3, n)}
    for name, draw in draws.items():
        rejected = 0
        for _ in range(400):
            p = rng.normal(size=500)
            rejected += rg.bias_by_bin(p + draw(500), p).test.pvalue <= 0.05
        assert 5 <= rejected <= 40, name


def test_tce_counts_predictions_that_a_t_test_rejects(skewed):
    y, p = skewed
    bins = rg.bias_by_bin(y, p, n_bins=6, alpha=0.1)
    labels = slow_bins(p, 6)
    skew = np.median([stats.skew(y[labels == b]) for b in range(6)])
    rejected = 0
    for b in range(6):
        own = y[labels == b]
        a = skew / (3 * np.sqrt(own.size))
        t = (own.mean() - p[labels == b]) / (own.std(ddof=1) / np.sqrt(own.size))
        g = t + a * t**2 + a**2 * t**3 / 3 + a / 2
        rejected += np.count_nonzero(2 * stats.t.sf(np.abs(g), own.size - 1) <= 0.1)
    assert bins.tce == pytest.approx(100 * rejected / 600)
    assert rg.tce(y, p, n_bins=6, alpha=0.1) == bins.tce


def test_tce_of_a_calibrated_model_is_about_alpha_and_of_a_miscalibrated_one_grows(rng):
    p = rng.uniform(0, 10, 20_000)
    y = p + rng.normal(size=p.size) * (1 + 0.2 * p)
    assert rg.tce(y, p) < 12
    assert rg.tce(y, 1.1 * p) > 40


def test_edges_and_blocks_are_bins_too(skewed):
    y, p = skewed
    edges = rg.bias_by_bin(y, p, bins=cb.Edges([0, 2, 5, 100]))
    assert edges.per_bin["n"].sum() == 600
    assert edges.per_bin["lower"].tolist() == [0, 2, 5]
    assert edges.per_bin["n"][1] == np.count_nonzero((p >= 2) & (p < 5))
    blocks = rg.bias_by_bin(y, p, bins=cb.PAVA())
    assert (np.diff(blocks.per_bin["mean_outcome"]) > 0).all()
    limited = rg.bias_by_bin(y, p, bins=cb.PAVABC())
    assert limited.per_bin["n"].min() >= 30
    assert limited.per_bin["n"].max() <= 120 + 30
    with pytest.raises(InputError, match="within the edges"):
        rg.bias_by_bin(y, p, bins=cb.Edges([0, 1]))
    assert len(rg.bias_by_bin(y, p, bins=cb.EqualWidth(3))) == 3
    with pytest.raises(InputError, match="bins must be an object such as"):
        rg.bias_by_bin(y, p, bins=3)
    with pytest.raises(InputError, match="must not be given together"):
        rg.bias_by_bin(y, p, bins=cb.Quantile(3), n_bins=3)


def test_isotonic_blocks_are_those_of_the_best_rising_map(skewed):
    y, p = skewed
    blocks = rg.bias_by_bin(y, p, bins=cb.PAVA())
    best = rg.mse_decomposition(y, p)
    left = rg.mse(y, p) - best.mcb
    outcome = np.repeat(blocks.per_bin["mean_outcome"], blocks.per_bin["n"].astype(int))
    order = np.argsort(p)
    assert np.mean((y[order] - outcome) ** 2) == pytest.approx(left)


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_a_far_origin_loses_no_precision(skewed, shift):
    y, p = skewed
    near, far = rg.bias_by_bin(y, p), rg.bias_by_bin(y + shift, p + shift)
    for name in ("bias", "low", "high"):
        assert far.per_bin[name] == pytest.approx(near.per_bin[name], abs=1e-6), name
    assert rg.relative_mse(y + shift, p + shift) == pytest.approx(rg.relative_mse(y, p), rel=1e-6)
    fit = rg.slope_intercept(y + shift, p + shift)
    assert fit.slope.value == pytest.approx(rg.slope_intercept(y, p).slope.value, rel=1e-6)
    merged = rg.MeanTable.from_arrays(y + shift, p + shift).merged()
    assert rg.mse(merged) == pytest.approx(rg.mse(y, p), rel=1e-6)


def test_small_and_constant_data_work_or_raise_with_a_reason():
    one = rg.bias_by_bin([1.0], [2.0])
    assert one.per_bin["bias"].tolist() == [1.0]
    assert math.isnan(one.per_bin["low"][0])
    assert not one.significant.any()
    assert "unknown" in repr(one)
    json.dumps(one.to_dict(), allow_nan=False)
    same = rg.bias_by_bin([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    assert np.isnan(same.per_bin["pvalue"]).all()  # how outcomes vary is not known
    right = rg.bias_by_bin([2.0, 2.0, 2.0], [2.0, 2.0, 2.0])
    assert right.per_bin["pvalue"].tolist() == [1.0]
    assert right.tce == 0
    with pytest.raises(InputError, match="y_pred must hold different predictions"):
        rg.slope_intercept([1.0, 2.0], [1.0, 1.0])
    assert evaluate([1.0, 2.0], [1.0, 1.0]).details.line is None


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e7, 0.0), (1.0, 1e5), (1e80, 0.0), (1e-80, 0.0)])
def test_neither_unit_nor_origin_changes_a_test(skewed, scale, shift):
    y, p = skewed
    moved = scale * (y + shift), scale * (p + shift)
    plain, other = rg.slope_intercept(y, p), rg.slope_intercept(*moved)
    assert other.test.pvalue == pytest.approx(plain.test.pvalue, rel=1e-4)
    assert other.slope.standard_error == pytest.approx(plain.slope.standard_error, rel=1e-6)
    one, two = rg.bias_by_bin(y, p), rg.bias_by_bin(*moved)
    assert two.per_bin["pvalue"] == pytest.approx(one.per_bin["pvalue"], rel=1e-4)
    parts = rg.mse_decomposition(*moved)
    assert parts.slope / scale**2 == pytest.approx(rg.mse_decomposition(y, p).slope, rel=1e-6)


def test_rounding_does_not_reject_calibrated_predictions(rng):
    q = rng.uniform(size=50)
    for origin in (0.0, 1e9):
        fit = rg.slope_intercept(q + origin, q + origin)
        assert tuple(fit.test) == (0.0, 1.0)
    steps = np.cumsum(np.r_[0, np.full(199, 0.1)])
    assert evaluate(np.arange(200) * 0.1, steps, n_resamples=0).verdict == "calibrated"
    line = rg.slope_intercept(2 * q, q)
    assert tuple(line.test) == (math.inf, 0.0)


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


def test_an_untestable_line_is_noted(rng):
    y = [0.0] * 10 + [1, 2, 3, 2, 1, 4, 2, 2, 1, 3]
    fit = rg.slope_intercept(y, [0.1] * 10 + [2.0] * 10)
    assert math.isnan(fit.test.pvalue)
    assert fit.test.notes[-1].code == "no_line_test"


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


def test_leverage_counts_the_weight_of_its_own_row(rng):
    """A far row of little weight hardly moves the line; HC3 of weighted least squares by hand."""
    x = np.append(rng.normal(size=200), 50.0)
    y = np.append(x[:-1] + rng.normal(size=200), 53.0)
    w = np.append(np.full(200, 1.5), 0.1)
    X = np.column_stack([np.ones(201), x])
    bread = np.linalg.inv(X.T @ (w[:, None] * X))
    left = y - X @ (bread @ (X.T @ (w * y)))
    h = w * np.einsum("ij,jk,ik->i", X, bread, X)
    cover = bread @ (X.T * (w * left / (1 - h)) ** 2) @ X @ bread
    fit = rg.slope_intercept(y, x, sample_weight=w)
    assert fit.slope.standard_error == pytest.approx(np.sqrt(cover[1, 1]), rel=1e-9)


def test_tests_of_merged_importance_weights_are_refused(skewed, rng):
    y, p = skewed
    table = rg.MeanTable.from_arrays(y, np.round(p), sample_weight=rng.uniform(0.5, 2, 600)).merged()
    for measure in (rg.bias_by_bin, rg.slope_intercept):
        with pytest.raises(InputError, match="needs outcomes row by row"):
            measure(table)


def test_one_extreme_prediction_does_not_change_the_mean_outcome(skewed):
    y, p = skewed
    wild = p.copy()
    wild[np.argmax(p)] = 1e17
    assert rg.bias_by_bin(y, wild, n_bins=3).per_bin["mean_outcome"] == pytest.approx(
        rg.bias_by_bin(y, p, n_bins=3).per_bin["mean_outcome"]
    )


def test_tables_of_different_values_are_not_equal():
    table = rg.MeanTable.from_arrays
    assert table([1e-10, 2e-10], [1.0, 2.0]) != table([5e-9, -5e-9], [1.0, 2.0])
    assert table([1.0, 2.0], [1.0, 2.0]) != table([1.0, 2.1], [1.0, 2.0])
    far = np.random.default_rng(0).normal(1e9, 1, 200)
    place = np.repeat(np.arange(20.0), 10)
    whole = table(far, place)
    assert table(far[:95], place[:95]).merged() + table(far[95:], place[95:]).merged() == whole


def test_maps_of_tables_are_checked():
    table = rg.MeanTable.from_arrays([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    own = np.array([5.0, 6.0, 7.0])
    moved = table.map(lambda _: own)
    own[0] = 99
    assert moved.prediction.tolist() == [5.0, 6.0, 7.0]
    for f in (lambda p: p[:1], lambda p: p * np.nan):
        with pytest.raises(InputError, match="f must return a finite number for each"):
            table.map(f)
    assert rg.mae(rg.MeanTable.from_arrays([0.1] * 3, [1.0] * 3).merged()) == pytest.approx(0.9)


def test_values_with_infinite_squares_are_refused():
    for unit in (1e160, 1e-160):
        with pytest.raises(InputError, match="Use another unit"):
            rg.mse([unit, 2 * unit], [unit, unit])


# Costs


@given(rows, st.sampled_from([(1, 1), (1, 3), (5, 1), (0, 1)]))
def test_the_shift_of_linear_costs_is_a_quantile_and_no_other_is_cheaper(pairs, units):
    y, p = columns(pairs)
    cost = cb.LinearCost(over=units[0], under=units[1])
    found = rg.cost_by_bin(y, p, cost=cost, n_bins=1)
    shift = found.per_bin["shift"][0]
    grid = np.concatenate([y - p, [0.0]])
    cheapest = min(np.mean(cost(p + s, y)) for s in grid)
    assert np.mean(cost(p + shift, y)) == pytest.approx(cheapest, abs=1e-9)
    assert found.value == pytest.approx(np.mean(cost(p, y)), abs=1e-12)
    assert found.avoidable == pytest.approx(found.value - cheapest, abs=1e-9)


def test_other_costs_are_minimised_too(skewed):
    y, p = skewed

    def squared(p, a):
        return np.where(p > a, 1.0, 4.0) * (p - a) ** 2

    found = rg.cost_by_bin(y, p, cost=squared, n_bins=3)
    labels = slow_bins(p, 3)
    for b in range(3):
        own = labels == b
        tries = np.linspace(-5, 5, 4001)
        best = min(np.mean(squared(p[own] + s, y[own])) for s in tries)
        assert found.per_bin["least"][b] <= best + 1e-9


# Evaluation


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
    assert (error.value, error.null.pvalue) == pytest.approx((np.mean(p - y), t.pvalue))
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
    assert (found.low, found.high) == pytest.approx((np.mean(p - y) - reach, np.mean(p - y) + reach))


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
    assert found.headline().startswith("Verdict: calibrated overall; 2 of 7 groups are not: ")
    assert [name for name, part in found.groups.items() if part.verdict == "miscalibrated"] == [1, 2]
    assert [found.groups[i].direction for i in (0, 1, 2)] == ["", "overestimates", "underestimates"]


def test_bins_of_an_evaluation_hold_fifty_rows(skewed):
    y, p = skewed
    found = [evaluate(y[:n], p[:n], n_resamples=0) for n in (30, 120, 600)]
    assert [len(each.breakdowns["bias by bin"]) for each in found] == [1, 2, 10]
    assert len(evaluate(y[:30], p[:30], n_bins=5, n_resamples=0).breakdowns["bias by bin"]) == 5


# Input


HAZARDS = {
    "missing prediction": ([1.0, 2.0], [1.0, float("nan")], "y_pred has 1 missing value"),
    "missing outcome": ([1.0, None], [1.0, 2.0], "y_true has 1 missing value"),
    "infinite": ([1.0, 2.0], [1.0, float("inf")], "finite numbers"),
    "text": (["a", "b"], [1.0, 2.0], "must hold numbers"),
    "lengths": ([1.0, 2.0], [1.0], "has 1 rows, y_true has 2"),
    "empty": ([], [], "hold no rows"),
    "two columns": ([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]], "one dimension"),
    "complex": ([1.0, 2.0], [1j, 2.0], "must hold numbers"),
}
MEASURES = [rg.mean_error, rg.ratio, rg.mse, rg.mae, rg.relative_mse, rg.bias_by_bin, rg.tce, rg.rec_curve]
MEASURES += [
    rg.mse_decomposition,
    rg.slope_intercept,
    rg.cost_by_bin,
    rg.mean_quotient,
    evaluate,
    rg.error_tolerance,
]


@pytest.mark.parametrize("hazard", HAZARDS)
def test_bad_input_is_refused_with_value_and_place(hazard):
    y, p, words = HAZARDS[hazard]
    with pytest.raises(InputError, match=words):
        rg.MeanTable.from_arrays(y, p)


@pytest.mark.parametrize("hazard", ["missing prediction", "lengths"])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)
def test_every_function_of_rows_reads_them_with_the_shared_reader(measure, hazard):
    y, p, words = HAZARDS[hazard]
    with pytest.raises(InputError, match=words):
        measure(y, p)


@pytest.mark.parametrize("kind", ["point", "gaussian", "quantiles", "samples", "frozen"])
def test_an_evaluation_drops_rows_with_missing_values_and_slices_the_forecasts(kind, rng):
    from scipy import stats

    p = rng.uniform(0, 10, 300)
    y = p + rng.normal(size=300)
    forecast = {
        "point": lambda p: p,
        "gaussian": lambda p: rg.Gaussian(p, 1.0),
        "quantiles": lambda p: rg.Quantiles([0.1, 0.5, 0.9], p[:, None] + [-1.3, 0.0, 1.3]),
        "samples": lambda p: rg.Samples(p[:, None] + np.linspace(-2, 2, 9)),
        "frozen": lambda p: stats.norm(p, 1.0),
    }[kind]
    group, cluster = np.arange(300) % 2, (np.arange(300) % 60).astype(float)
    missing = y.copy()
    missing[20:30] = np.nan
    cluster[100:105] = np.nan
    kept = np.ones(300, dtype=bool)
    kept[20:30] = kept[100:105] = False
    with pytest.raises(InputError, match=r"y_true has 10 missing values \(first at row 20\)\. Pass missing='drop'"):
        evaluate(missing, forecast(p), by=group, cluster=cluster)
    found = evaluate(missing, forecast(p), by=group, cluster=cluster, missing="drop", n_resamples=0)
    alone = evaluate(y[kept], forecast(p[kept]), by=group[kept], cluster=cluster[kept], n_resamples=0)
    assert (found.table.n_in, found.table.n_dropped) == (300, 15)
    assert {note.code: note.count for note in found.notes}["missing"] == 15
    assert found.pvalue == alone.pvalue
    assert [metric.value for metric in found.metrics.values()] == [metric.value for metric in alone.metrics.values()]
    assert {key: own.pvalue for key, own in found.groups.items()} == {key: o.pvalue for key, o in alone.groups.items()}
    assert sum(own.table.n_dropped for own in found.groups.values()) == 15


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


@pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)
def test_input_is_never_changed(measure, skewed):
    y, p = (a.copy() for a in skewed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(y + 5, p)
        measure(y := y + 5, p)
    assert np.array_equal(y, skewed[0] + 5)
    assert np.array_equal(p, skewed[1])


def test_missing_rows_are_dropped_on_request_and_counted():
    y, p = [1.0, None, 3.0], [1.0, 2.0, 5.0]
    table = rg.MeanTable.from_arrays(y, p, missing="drop")
    assert (table.n_in, table.n_dropped, table.size) == (3, 1, 2)
    with pytest.warns(CalibrantWarning, match="Rows dropped because a value is missing: 1"):
        assert rg.mean_error(y, p, missing="drop") == 1.0
    assert rg.bias_by_bin(y, p, missing="drop").notes[0].count == 1
    for option in ("sample_weight", "frequency"):
        with pytest.raises(InputError, match=f"{option} must be positive in at least one row; got zero in every row"):
            rg.mse([1.0], [1.0], **{option: [0.0]})
    with pytest.raises(InputError, match=r"frequency must be a whole number of rows, 0 or more; got 0.5 \(row 1\)"):
        rg.mse([1.0, 2.0], [1.0, 2.0], frequency=[1, 0.5])
    with pytest.raises(InputError, match="must not be given together"):
        rg.mse([1.0], [1.0], frequency=[1], sample_weight=[1])
    dropped = evaluate([1.0, 2.0, 3.0, 5.0], [1.0, 2.5, 3.0, 4.0], frequency=[0, 2, 1, 3], by=list("abaa"))
    assert {name: group.table.size for name, group in dropped.groups.items()} == {"a": 4, "b": 2}
    with pytest.raises(InputError, match="No row is left"):
        rg.mse([1.0, None], [1.0, 2.0], sample_weight=[0.0, 1.0], missing="drop")
    with pytest.raises(InputError, match="y_pred must be omitted with a MeanTable"):
        rg.mse(table, p)
    with pytest.raises(InputError, match="y_pred is missing"):
        rg.mse(y)
    with pytest.raises(TypeError, match="has no argument 'colour'"):
        rg.mse([1.0], [1.0], colour="red")
    with pytest.raises(InputError, match="no argument 'y_prob'. Did you mean 'y_pred'"):
        rg.mse([1.0], y_prob=[1.0])
    with pytest.raises(TypeError, match="needs y_true"):
        rg.mse()
    with pytest.raises(InputError, match="confidence_level"):
        rg.slope_intercept([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], confidence_level=95)
    with pytest.raises(InputError, match="alpha"):
        rg.bias_by_bin([1.0, 2.0], [1.0, 2.0], alpha="a")
    with pytest.raises(InputError, match="a number for each row"):
        rg.cost_by_bin([1.0, 2.0], [1.0, 2.0], cost=lambda p, a: 1.0)
    assert rg.mse(y_true=[1.0], y_pred=[2.0]) == 1.0


def test_pandas_indexes_must_agree():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    y, p = pd.Series([1.0, 2.0], index=[0, 1]), pd.Series([1.0, 2.0], index=[1, 0])
    for measure in (rg.mse, evaluate, rg.bias_by_bin):
        with pytest.raises(InputError, match="indexes"):
            measure(y, p)
    assert rg.mse(y, pd.Series([1.0, 3.0])) == 0.5


# Metrics that users choose


def test_chosen_metrics_replace_the_panel_but_for_the_mean_error():
    rng = np.random.default_rng(3)
    mean = rng.normal(10, 2, 400)
    y = mean + rng.normal(size=400)
    found = cb.evaluate(y, cb.Point(mean), metrics=["mae", rg.RMSE], n_resamples=99)
    assert list(found.metrics) == ["mean error", "mae", "rmse"]
    interval = cb.interval("mae", y, mean, n_resamples=99, random_state=0)
    assert (found["mae"].value, found["mae"].interval.low) == (rg.mae(y, mean), interval.low)
    assert np.isnan(found["mae"].null.expected)
    assert found.verdict == cb.evaluate(y, cb.Point(mean), n_resamples=99).verdict
    assert found.to_dict()["settings"]["metrics"] == {"mae": {"name": "mae"}, "rmse": {"name": "rmse"}}
    forecast = cb.Gaussian(mean, 1.5)
    of_sd = cb.evaluate(y, forecast, metrics={"score": rg.crps, "coverage": "coverage_error"}, n_resamples=99)
    assert list(of_sd.metrics) == ["mean error", "score", "coverage"]
    null = cb.null("crps", y, forecast, n_resamples=99, random_state=0)
    assert (of_sd["score"].null.expected, of_sd["score"].null.pvalue) == (null.expected, null.pvalue)
    assert of_sd["score"].pvalue >= of_sd.pvalue
    for result in (found, of_sd):
        assert "mae" in repr(result) or "score" in repr(result)
        assert len(result.to_dict()["metrics"]) == 3


def test_chosen_metrics_of_groups_have_intervals():
    rng = np.random.default_rng(3)
    mean = rng.normal(10, 2, 400)
    y, group, cluster = (
        mean + rng.normal(size=400),
        np.repeat([0, 1], 200),
        np.repeat(np.arange(24), [8] * 22 + [112] * 2),
    )
    found = cb.evaluate(y, cb.Point(mean), metrics=["mae"], by=group, n_resamples=49)
    for key, own in found.groups.items():
        expected = cb.interval("mae", y[group == key], mean[group == key], n_resamples=49, random_state=0)
        assert own["mae"].interval.low == expected.low
    few = cb.evaluate(y, cb.Gaussian(mean, 1.0), metrics=["crps"], by=group, cluster=cluster, n_resamples=49)
    assert [np.isnan(own["crps"].interval.low) for own in few.groups.values()] == [False, True]  # 23 and 2 clusters
    quick = cb.evaluate(y, cb.Point(mean), metrics=["mae"], n_resamples=0)
    assert quick["mae"].value == rg.mae(y, mean)
    assert quick["mae"].interval.method == "none"


def test_metrics_of_quantiles_without_a_null_keep_their_interval():
    rng = np.random.default_rng(3)
    mean = rng.normal(10, 2, 400)
    forecast = cb.Quantiles([0.1, 0.5, 0.9], mean[:, None] + [-1.28, 0.0, 1.28])
    y = mean + rng.normal(size=400)
    found = cb.evaluate(y, forecast, metrics=["crps", "coverage_error"], n_resamples=49)
    assert np.isnan(found["crps"].null.expected)
    assert found["crps"].interval.low < found["crps"].value
    assert found["coverage_error"].null.expected > 0


@pytest.mark.parametrize(
    ("forecast", "metrics", "text"),
    [
        (cb.Point([1.0, 2.0]), ["crps"], "metrics must measure forecasts of kind 'point'; got crps, whose kind is"),
        (cb.Gaussian([1.0, 2.0], 1.0), ["mae"], "metrics must measure forecasts of kind 'distribution'; got mae"),
        (cb.Point([1.0, 2.0]), ["ece"], "got ECE, whose kind is 'binary'. Metrics of this kind are mean_error"),
        (cb.Point([1.0, 2.0]), [], "metrics must be a list of metrics or a mapping"),
    ],
)
def test_metrics_of_another_kind_are_refused(forecast, metrics, text):
    with pytest.raises(cb.InputError, match=text):
        cb.evaluate([1.0, 2.5], forecast, metrics=metrics)


def test_bins_of_points_are_options_of_the_front_door():
    rng = np.random.default_rng(0)
    p = rng.normal(size=400)
    y = p + rng.normal(size=400)
    for forecast in (cb.Point(p), cb.Gaussian(p, 1.0)):
        assert len(cb.evaluate(y, forecast, n_bins=4, n_resamples=0).breakdowns["bias by bin"]) == 4
        found = cb.evaluate(y, forecast, bins=cb.EqualWidth(3), n_resamples=0)
        assert len(found.breakdowns["bias by bin"]) == 3
        assert found.settings.bins == cb.EqualWidth(3)
        with pytest.raises(InputError, match="n_bins"):
            cb.evaluate(y, forecast, n_bins=4, bins=cb.EqualWidth(3))
    for other in (np.full(400, 0.5), cb.Labels(np.zeros(400))):
        with pytest.raises(InputError, match="n_bins must be omitted for forecasts of kind"):
            cb.evaluate(np.arange(400) % 2, other, n_bins=4)


def test_skewed_ensembles_are_not_called_miscalibrated():
    """Fifty members show how skewed outcomes are; a hundred outcomes do not."""
    rng = np.random.default_rng(5)
    bad = 0
    for _ in range(60):
        mean = rng.normal(size=100)
        draws = np.exp(mean[:, None] + 1.5 * rng.normal(size=(100, 51)))
        found = cb.evaluate(draws[:, 0], cb.Samples(draws[:, 1:]), n_resamples=0)
        bad += found.verdict == "miscalibrated"
    assert bad <= 6


def test_quantiles_without_the_median_name_their_levels():
    with pytest.raises(cb.InputError, match="must have the level 0.5, or levels on both sides of it.*got 0.8, 0.9"):
        cb.evaluate([1.0, 2.0], cb.Quantiles([0.8, 0.9], [[1, 2], [2, 3]]))


# Few rows


def two_rows(kind, rng):
    m = rng.normal(size=2)
    forecasts = {
        "point": lambda: cb.Point(m),
        "gaussian": lambda: cb.Gaussian(m, np.ones(2)),
        "samples": lambda: cb.Samples(m[:, None] + rng.normal(size=(2, 20))),
    }
    return m + rng.normal(size=2), forecasts[kind]()


@pytest.mark.parametrize("kind", ["point", "gaussian", "samples"])
def test_two_rows_of_a_calibrated_model_are_rarely_miscalibrated(kind):
    """Two points always lie on a line, so the slope was significant in all of these data sets."""
    rng = np.random.default_rng(3)
    found = [cb.evaluate(*two_rows(kind, rng), n_resamples=0) for _ in range(100)]
    assert sum(each.verdict == "miscalibrated" for each in found) <= 11  # P = 0.004 at a rate of 5 %
    assert all("few_rows_for_slope" in [note.code for note in each.notes] for each in found)
    assert all("nan" not in str(each) for each in found)


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
    assert math.isnan(found.details.decision.components["slope"].pvalue)
    assert found.verdict == "inconclusive"


def test_few_counts_on_a_line_are_not_tested():
    """Three rows of counts often lie on a line by chance."""
    assert cb.evaluate([0, 2, 4], cb.Point([1.0, 2.0, 3.0])).verdict == "inconclusive"
    assert math.isnan(rg.slope_intercept([0, 2, 4], [1.0, 2.0, 3.0]).test.pvalue)
    assert rg.slope_intercept([1, 2, 3], [1.0, 2.0, 3.0]).test.pvalue == 1
    many = np.arange(1.0, 9.0)
    assert rg.slope_intercept(2 * many, many).test.pvalue == 0
    assert cb.evaluate(2 * many - many.mean(), cb.Point(many)).verdict == "miscalibrated"


def test_few_equal_errors_of_counts_decide_nothing():
    """Two errors of counts are often equal: their standard error is not 0 but unknown."""
    for y in ([2, 3], [1, 2], [1, 4, 2], [2, 5, 3]):
        found = cb.evaluate(y, cb.Point([1.0, 2.0] if len(y) == 2 else [1.0, 4.0, 2.0]))
        assert found.verdict == "inconclusive"
        assert "nan" not in str(found)
    assert cb.evaluate([2, 3, 4, 5, 6, 7], cb.Point([1, 2, 3, 4, 5, 6])).verdict == "miscalibrated"


# Units

POWERS = {"y": 1, "y^2": 2}
SHAPES = {
    "point": lambda m, s: cb.Point(m * s),
    "gaussian": lambda m, s: cb.Gaussian(m * s, np.full(m.size, s)),
    "samples": lambda m, s: cb.Samples((m[:, None] + np.linspace(-2, 2, 9)) * s),
    "quantiles": lambda m, s: cb.Quantiles([0.1, 0.5, 0.9], (m[:, None] + [-1.3, 0, 1.3]) * s),
}


@given(
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from([2, 7, 120]),
    st.integers(-290, 290),
    st.booleans(),
    st.integers(0, 9),
)
def test_verdict_and_pvalues_are_equal_in_all_units_and_values_scale(kind, n, power, clustered, seed):
    """Powers of the numbers overflowed from 1e60 on, and vanished below 1e-60, with another verdict."""
    rng = np.random.default_rng(seed)
    m, unit = rng.normal(size=n), 2.0**power
    y = m + rng.gamma(2, 0.7, n) - 1.2
    options = {"n_resamples": 9, "cluster": np.arange(n) % 12 if clustered and n > 12 else None}
    one, other = (cb.evaluate(y * s, SHAPES[kind](m, s), **options) for s in (1.0, unit))
    assert (other.verdict, other.direction) == (one.verdict, one.direction)
    tests, others = ([test.pvalue for test in e.details.decision.components.values()] for e in (one, other))
    np.testing.assert_array_equal(tests, others)
    for name, metric in one.metrics.items():
        again, scale = other.metrics[name], unit ** POWERS.get(metric.interval.unit, 0)
        shift = power * math.log(2) if name == "NLL" else 0.0
        for field in ("value", "low", "high"):
            expected = scale * getattr(metric.interval, field) + shift
            assert getattr(again.interval, field) == pytest.approx(expected, rel=1e-12, nan_ok=True), (name, field)
        assert again.null.pvalue == pytest.approx(metric.null.pvalue, rel=0, abs=0, nan_ok=True)
