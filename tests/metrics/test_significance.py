"""The tests of one probability, at their borders and against independent implementations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calibrant as cb
from calibrant import significance

TESTS = [significance.binomial, significance.t, significance.score, significance.bayes]
ALL_TESTS = pytest.mark.parametrize("test", TESTS, ids=[t.__name__ for t in TESTS])

cases = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.floats(0, 1)))


@ALL_TESTS
@pytest.mark.parametrize("n", [1, 2, 50, 10_000])
def test_borders(test, n):
    assert test(0, n, 0.0) == 1
    assert test(n, n, 1.0) == 1
    assert test(1, n, 0.0) == 0
    assert test(n - 1, n, 1.0) == 0


@ALL_TESTS
@given(case=cases)
def test_pvalues_are_probabilities_and_symmetric(test, case):
    k, n, p = case
    value = test(k, n, p)
    assert 0 <= value <= 1
    if 1 - (1 - p) == p:  # 1 - p is exact
        assert test(n - k, n, 1 - p) == pytest.approx(value, abs=1e-12)


@ALL_TESTS
def test_arrays_are_broadcast(test):
    value = test(np.array([[1], [2]]), 10, np.array([0.1, 0.2, 0.5]))
    assert value.shape == (2, 3)
    assert value[1, 2] == test(2, 10, 0.5)


@ALL_TESTS
@pytest.mark.parametrize(
    ("k", "n", "p"),
    [(2, 1, 0.5), (-1, 5, 0.5), (1, 5, 1.5), (1, 5, np.nan), (0, 0, 0.5), (1, 1e20, 0.5), (1, np.inf, 0.5)],
)
def test_impossible_arguments_are_refused(test, k, n, p):
    with pytest.raises(cb.InputError, match="k, n and p must satisfy 0 <= k <= n"):
        test(k, n, p)


@ALL_TESTS
def test_masked_cells_are_refused(test):
    with pytest.raises(cb.InputError, match="masked"):
        test(np.ma.masked_array([1, 2], mask=[0, 1]), 10, 0.5)


def test_the_weighted_test_by_hand():
    """Four rows: weights 1, 2, 3, 4, events at 2 and 4, against 0.4."""
    w, y, p = np.array([1.0, 2, 3, 4]), np.array([0, 1, 0, 1]), 0.4
    found = significance.weighted((w * y).sum(), w.sum(), p, w2=(w**2).sum(), k2=(w**2 * y).sum())
    statistic = (w * (y - p)).sum() / np.sqrt((w**2 * (y - p) ** 2).sum())
    assert found == pytest.approx(2 * stats.t.sf(abs(statistic), w.sum() ** 2 / (w**2).sum() - 1))


@given(cases, st.floats(0.001, 1000))
def test_the_weighted_test_has_its_borders_symmetry_and_no_scale(case, scale):
    k, n, p = case
    one = significance.weighted(k, n, p, w2=n, k2=k)
    assert 0 <= one <= 1
    sums = [scale * k, scale * n], {"w2": scale**2 * n, "k2": scale**2 * k}
    assert significance.weighted(*sums[0], p, **sums[1]) == pytest.approx(one, rel=1e-6, abs=1e-9)
    if 1 - (1 - p) == p:
        assert significance.weighted(n - k, n, 1 - p, w2=n, k2=n - k) == pytest.approx(one, abs=1e-9)
    assert significance.weighted(k, n, 0.0, w2=n, k2=k) == (k == 0)
    assert significance.weighted(k, n, 1.0, w2=n, k2=k) == (k == n)


def test_the_weighted_test_accounts_for_rare_events():
    """Without an event the variance of the residuals alone would reject any p."""
    assert significance.weighted(0, 100, 0.001, w2=100, k2=0) > 0.5
    assert significance.weighted(0, 100, 0.2, w2=100, k2=0) < 1e-4
    assert significance.weighted(3.0, 3.0, 0.2, w2=9, k2=9) == 1  # one row says nothing of the spread


@pytest.mark.parametrize("squares", [{"w2": 0, "k2": 0}, {"w2": 2, "k2": 3}, {"w2": 2, "k2": -1}])
def test_impossible_sums_of_squares_are_refused(squares):
    with pytest.raises(cb.InputError, match="0 <= k2 <= w2"):
        significance.weighted(1, 2, 0.5, **squares)


@pytest.mark.parametrize("thinned", [0, 1], ids=["others thinned", "events thinned"])
@pytest.mark.parametrize(("size", "rate"), [(1000, 0.2), (5000, 0.02)])
def test_the_weighted_test_keeps_its_level_where_weights_depend_on_the_outcome(rng, thinned, size, rate):
    y = rng.random((600, size)) < rate
    w = np.where(y == thinned, 4.0 * (rng.random(y.shape) < 0.25), 1.0)
    k, n, w2, k2 = ((each).sum(axis=1) for each in (w * y, w, w**2, w**2 * y))
    assert 0.01 < (significance.weighted(k, n, rate, w2=w2, k2=k2) <= 0.05).mean() < 0.09


def test_binomial_needs_integers():
    with pytest.raises(cb.InputError, match="significance.weighted"):
        significance.binomial(1.5, 10, 0.2)


@given(cases.filter(lambda case: 0 < case[0] < case[1]))
def test_t_is_the_one_sample_t_test_of_the_labels(case):
    k, n, p = case
    labels = np.r_[np.ones(k), np.zeros(n - k)]
    if 0 < p < 1:
        assert significance.t(k, n, p) == pytest.approx(stats.ttest_1samp(labels, p).pvalue, rel=1e-9)


def test_t_of_equal_labels_accepts_only_their_value_and_of_one_row_everything():
    assert significance.t([0, 10, 10], 10, [0.2, 0.2, 1.0]).tolist() == [0, 0, 1]
    assert significance.t([0, 1, 1], 1, [0.2, 0.7, 0.01]).tolist() == [1, 1, 1]


@given(cases)
def test_the_score_test_accepts_the_scores_in_the_wilson_interval(case):
    k, n, p = case
    low, high = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    pvalue = significance.score(k, n, p)
    if abs(p - low) > 1e-9 and abs(p - high) > 1e-9:
        assert (pvalue > 0.05) == (low < p < high)


@given(cases)
def test_bayes_accepts_the_scores_in_the_jeffreys_interval(case):
    k, n, p = case
    posterior = stats.beta(k + 0.5, n - k + 0.5)
    low = 0 if k == 0 else posterior.ppf(0.025)
    high = 1 if k == n else posterior.ppf(0.975)
    if abs(p - low) > 1e-9 and abs(p - high) > 1e-9 and 0 < p < 1:
        assert (significance.bayes(k, n, p) > 0.05) == (low < p < high)
