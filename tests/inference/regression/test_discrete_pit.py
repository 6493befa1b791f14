"""PIT values of counts without random numbers, against enumeration and simulation."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cb
from calibrant.inference.regression.discrete_pit import Shares, calibrated_covariance, pit_shares
from calibrant.inference.regression.distribution_components import discrete_components

LEVELS = np.array([0.05, 0.3, 0.5, 0.9, 0.95])


def test_shares_are_probabilities_of_a_random_number_in_the_interval():
    rng = np.random.default_rng(0)
    low = rng.random(50) * 0.9
    high = low + rng.random(50) * 0.1
    drawn = low[:, None] + rng.random((50, 40_000)) * (high - low)[:, None]
    expected = (drawn[:, :, None] <= LEVELS).mean(axis=1)
    np.testing.assert_allclose(pit_shares(low, high, LEVELS), expected, atol=0.012)
    np.testing.assert_array_equal(pit_shares(low, low, LEVELS), low[:, None] <= LEVELS)


@pytest.mark.parametrize("forecast", [cb.Poisson([0.085, 0.5, 3.0, 40.0]), cb.NegativeBinomial([0.3, 6.0], 1.5)])
def test_the_covariance_equals_the_sum_over_all_counts(forecast):
    """Oracle: moments of the shares of every possible count, weighted by its probability."""
    first, second = np.zeros(LEVELS.size), np.zeros((LEVELS.size, LEVELS.size))
    for row in range(len(forecast)):
        one = forecast[row]
        for k in range(400):
            y = np.array([float(k)])
            share, probability = pit_shares(*one.cells(y), LEVELS)[0], float(np.exp(one.log_density(y))[0])
            first += probability * share / len(forecast)
            second += probability * np.outer(share, share) / len(forecast)
    np.testing.assert_allclose(first, LEVELS, atol=1e-9)
    expected = second - np.outer(LEVELS, LEVELS)
    np.testing.assert_allclose(calibrated_covariance(forecast, LEVELS), expected, atol=1e-9)


def test_shares_are_added_up_by_cluster():
    rng = np.random.default_rng(1)
    rate, cluster = rng.gamma(2, 1, 300), np.arange(300) % 20
    low, high = cb.Poisson(rate).cells(rng.poisson(rate).astype(float))
    found = Shares.from_cells(low, high, LEVELS, cluster)
    share = pit_shares(low, high, LEVELS)
    np.testing.assert_allclose(found.mean, share.mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(share.T))
    np.testing.assert_allclose(found.by_cluster[3], (share - LEVELS)[cluster == 3].sum(axis=0))


@pytest.mark.parametrize("mean", [0.085, 2.0])
def test_the_tests_of_counts_hold_their_level(mean):
    rng = np.random.default_rng(2)
    rejected = np.zeros(2)
    for _ in range(200):
        rate = mean * np.exp(0.5 * rng.normal(size=300))
        forecast = cb.Poisson(rate)
        tests = discrete_components(*forecast.cells(rng.poisson(rate).astype(float)), forecast, None, 0.05)
        rejected += [test.pvalue <= 0.05 for test in tests]
    assert (rejected <= 20).all()  # 10 expected, sd 3.1
    assert (rejected >= 2).all()


def test_expected_coverage_of_counts_is_that_of_simulated_outcomes():
    rng = np.random.default_rng(3)
    rate = 0.085 * np.exp(0.4 * rng.normal(size=40_000))
    coverage = cb.evaluate(rng.poisson(rate), cb.Poisson(rate), n_resamples=0).breakdowns["coverage"].per_level
    again = rng.poisson(rate)
    for level, expected in zip(coverage["level"], coverage["expected"], strict=True):
        low, high = stats.poisson(rate).interval(level)
        assert expected == pytest.approx(np.mean((again >= low) & (again <= high)), abs=0.004)
        assert expected > level
    assert (coverage["pvalue"] > 0.01).all()
    assert coverage["observed"] == pytest.approx(coverage["expected"], abs=0.01)


def test_coverage_error_of_calibrated_counts_is_small():
    rng = np.random.default_rng(4)
    rate = rng.gamma(2.0, 0.3, 20_000)
    assert cb.metrics.coverage_error(rng.poisson(rate), cb.Poisson(rate)) < 0.01
    assert cb.metrics.coverage_error(rng.poisson(rate), cb.Poisson(3 * rate)) > 0.03


def test_results_do_not_depend_on_the_seed():
    rng = np.random.default_rng(5)
    rate = rng.gamma(2.0, 0.5, 2000)
    y = rng.poisson(rate)
    p = [cb.evaluate(y, cb.Poisson(rate), n_resamples=0, random_state=seed).pvalue for seed in (0, 1)]
    assert p[0] == p[1]


def test_counts_that_are_all_zero_have_bounds():
    rare, common = (cb.evaluate(np.zeros(500), cb.Poisson(np.full(500, mean)), n_resamples=0) for mean in (0.002, 1.0))
    assert (rare.verdict, common.verdict) == ("inconclusive", "miscalibrated")
    deviation = rare.details.deviations[0]
    assert 0 < deviation.value < deviation.bound
