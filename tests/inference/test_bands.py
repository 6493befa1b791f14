"""Bands of diagrams, against slow simulations and against the tests that they picture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import calibrant as cb
from calibrant.inference.bands import consistency_band, cumulative_band
from calibrant.inference.paired_rows import PairedRows
from calibrant.metrics.significance import clopper_pearson


@given(st.integers(1, 300), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_clopper_pearson_is_scipys_exact_interval(n, share, level):
    k = round(share * n)
    low, high = clopper_pearson(k, n, confidence_level=level)
    expected = binomtest(k, n).proportion_ci(confidence_level=level)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_clopper_pearson_takes_arrays_and_effective_sizes():
    low, high = clopper_pearson([0, 2.5, 7.25], [3, 5.5, 7.25])
    assert (low[0], high[2]) == (0, 1)
    assert ((low <= [0, 2.5 / 5.5, 1]) & (high >= [0, 2.5 / 5.5, 1])).all()


@pytest.mark.parametrize("level", [0, 1, 1.5, float("nan")])
def test_an_invalid_level_is_refused(level):
    with pytest.raises(cb.InputError, match="confidence_level must lie between 0 and 1"):
        clopper_pearson(1, 2, confidence_level=level)


def test_the_interval_of_a_bin_is_that_of_its_counts(rng):
    p = rng.random(300)
    breakdown = cb.ECE()(rng.random(300) < p, p)
    low, high = breakdown.rate_interval(0.9)
    for i, (k, n) in enumerate(zip(breakdown.partition.k, breakdown.partition.n, strict=True)):
        expected = binomtest(int(k), int(n)).proportion_ci(confidence_level=0.9)
        assert (low[i], high[i]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_importance_weights_widen_the_interval_of_a_bin(rng):
    p = rng.random(300)
    y, w = rng.random(300) < p, rng.exponential(size=300)
    plain, weighted = (cb.ECE(n_bins=2)(y, p, **o).rate_interval() for o in ({}, {"sample_weight": w}))
    assert (weighted[1] - weighted[0] > plain[1] - plain[0]).all()


def test_the_consistency_band_of_one_score_is_binomial():
    """A bin of one score has a binomial count under the null, whose quantiles are known."""
    table = cb.ScoreTable.from_counts([0.2, 0.7], [80, 50], [20, 30])
    band = consistency_band(cb.ECE()(table), n_resamples=4000, confidence_level=0.9)
    for i, (n, p) in enumerate(((80, 0.2), (50, 0.7))):
        ends = binom.ppf([0.05, 0.95], n, p) / n
        assert (band.low[i], band.high[i]) == pytest.approx(ends, abs=1.01 / n)


@pytest.mark.parametrize("bins", [cb.bins.PAVA(), cb.bins.PAVABC(), cb.bins.EqualSize(4)])
def test_the_consistency_band_is_that_of_data_binned_anew(bins, rng):
    """The same simulation row by row: draw, bin, read the rate of the bin that holds a bin's mean score."""
    p = np.round(rng.random(120), 2)
    gce = cb.GCE(bins, cb.losses.absolute_gap, cb.norms.weighted_l1)
    breakdown = gce(rng.random(120) < p, p)
    band = consistency_band(breakdown, n_resamples=1500, confidence_level=0.8)
    read = []
    for _ in range(1500):
        drawn = bins(cb.ScoreTable.from_arrays(rng.random(120) < p, p))
        read.append([drawn.rate[np.flatnonzero(drawn.min_score <= m)[-1]] for m in breakdown.partition.mean_score])
    low, high = np.quantile(read, (0.1, 0.9), axis=0)
    assert np.abs(band.low - low).max() < 0.06
    assert np.abs(band.high - high).max() < 0.06


def test_a_mean_score_that_rounding_moved_out_of_its_bin_still_finds_it():
    table = cb.ScoreTable.from_counts([0.1, 0.3], [10, 3], [1, 1])
    third = cb.ScoreTable.from_arrays([0, 1, 0] * 100, [0.1 + 0.2] * 300) + table
    breakdown = cb.GCE(cb.bins.Edges([0, 0.2, 1]), cb.losses.absolute_gap, cb.norms.weighted_l1)(third)
    band = consistency_band(breakdown, n_resamples=50)
    assert band.low[1] > 0.15


@pytest.mark.parametrize("slope", [0.9, 1.0, 1.1, 1.3])
def test_a_curve_leaves_the_cumulative_band_exactly_when_the_test_rejects(slope, rng):
    p = rng.random(2000)
    table = cb.ScoreTable.from_arrays(rng.random(2000) < p**slope, p)
    for level in (0.5, 0.9, 0.99, 0.999999):
        reach = cumulative_band(table, confidence_level=level).high[0]
        assert (cb.metrics.ecce_mad(table) > reach) == (cb.inference.ecce_test(table, kind="mad").pvalue < 1 - level)


def test_the_cumulative_band_of_weights_that_are_all_one_is_that_of_counts(rng):
    p = rng.random(50)
    y = rng.random(50) < p
    tables = [cb.ScoreTable.from_arrays(y, p, sample_weight=w) for w in (None, np.ones(50))]
    # a robust variance in the place of the scores' own
    assert cumulative_band(tables[0]).high[0] == pytest.approx(cumulative_band(tables[1]).high[0], rel=0.1)


def test_clusters_widen_both_bands(rng):
    """Ten copies of each row are one observation each: bands as of the rows without copies."""
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    rows, (table,) = PairedRows.read(np.repeat(y, 10), [np.repeat(p, 10)], cluster=np.repeat(np.arange(300), 10))
    once = cb.ScoreTable.from_arrays(y, p)
    alike = [cumulative_band(table, rows=rows).high[0], cumulative_band(once).high[0]]
    assert alike[0] == pytest.approx(alike[1], rel=0.2)
    wide, narrow, single = (
        consistency_band(cb.ECE()(t), rows=r) for t, r in ((table, rows), (table, None), (once, None))
    )
    assert np.mean(wide.high - wide.low) == pytest.approx(np.mean(single.high - single.low), rel=0.25)
    assert np.mean(narrow.high - narrow.low) < 0.5 * np.mean(wide.high - wide.low)
