"""Bias by bins of point predictions, against a slow oracle, SciPy and laws."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import equal_size_bins
from scipy import stats
from strategies import point_columns, point_rows

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import InputError


@given(point_rows, st.integers(1, 6))
def test_bins_of_a_merged_table_are_those_of_its_rows(pairs, n_bins):
    table = rg.MeanTable.from_arrays(*point_columns(pairs))
    by_rows, merged = (rg.bias_by_bin(t, n_bins=n_bins).per_bin for t in (table, table.merged()))
    for name in ("lower", "upper", "n", "bias", "mean_outcome"):
        assert merged[name] == pytest.approx(by_rows[name], abs=1e-12)


def test_equal_importance_weights_change_no_value(skewed):
    y, p = skewed
    same = np.full(y.size, 0.37)
    one, two = rg.bias_by_bin(y, p).per_bin, rg.bias_by_bin(y, p, sample_weight=same).per_bin
    for name in ("bias", "low", "high", "pvalue"):
        assert two[name] == pytest.approx(one[name], rel=1e-9), name
    plain, weighted = rg.slope_intercept(y, p), rg.slope_intercept(y, p, sample_weight=same)
    assert weighted.slope.standard_error == pytest.approx(plain.slope.standard_error, rel=1e-9)


@given(point_rows, st.integers(1, 8))
def test_bins_are_those_of_the_slow_oracle(pairs, n_bins):
    y, p = point_columns(pairs)
    labels = equal_size_bins(p, n_bins)
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
    labels = equal_size_bins(p, 5)
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

    from calibrant.metrics.point_costs import bin_means

    table = rg.MeanTable.from_arrays(*skewed)
    d = table.prediction - table.mean
    means = bin_means(cb.bins.EqualSize(4)(table), lambda run: d[run])
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
    labels = equal_size_bins(p, 6)
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
    edges = rg.bias_by_bin(y, p, bins=cb.bins.Edges([0, 2, 5, 100]))
    assert edges.per_bin["n"].sum() == 600
    assert edges.per_bin["lower"].tolist() == [0, 2, 5]
    assert edges.per_bin["n"][1] == np.count_nonzero((p >= 2) & (p < 5))
    blocks = rg.bias_by_bin(y, p, bins=cb.bins.PAVA())
    assert (np.diff(blocks.per_bin["mean_outcome"]) > 0).all()
    limited = rg.bias_by_bin(y, p, bins=cb.bins.PAVABC())
    assert limited.per_bin["n"].min() >= 30
    assert limited.per_bin["n"].max() <= 120 + 30
    with pytest.raises(InputError, match="within the edges"):
        rg.bias_by_bin(y, p, bins=cb.bins.Edges([0, 1]))
    assert len(rg.bias_by_bin(y, p, bins=cb.bins.EqualWidth(3))) == 3
    with pytest.raises(InputError, match="bins must be an object such as"):
        rg.bias_by_bin(y, p, bins=3)
    with pytest.raises(InputError, match="must not be given together"):
        rg.bias_by_bin(y, p, bins=cb.bins.EqualSize(3), n_bins=3)


def test_isotonic_blocks_are_those_of_the_best_rising_map(skewed):
    y, p = skewed
    blocks = rg.bias_by_bin(y, p, bins=cb.bins.PAVA())
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
    assert cb.evaluate([1.0, 2.0], cb.Point([1.0, 1.0])).details.line is None


def test_one_extreme_prediction_does_not_change_the_mean_outcome(skewed):
    y, p = skewed
    wild = p.copy()
    wild[np.argmax(p)] = 1e17
    assert rg.bias_by_bin(y, wild, n_bins=3).per_bin["mean_outcome"] == pytest.approx(
        rg.bias_by_bin(y, p, n_bins=3).per_bin["mean_outcome"]
    )
