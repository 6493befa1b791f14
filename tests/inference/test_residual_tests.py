"""t tests of sums of independent terms: few effective rows, and the range of coverage errors."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.inference.residual_tests import IndependentTerms
from calibrant.kinds.distribution.verdict import PITValues, coverage_deviation


def weighted_sets(n, sets=100):
    for seed in range(sets):
        rng = np.random.default_rng(1000 * seed + n)
        mean = rng.normal(size=n)
        yield mean + rng.normal(size=n), mean, np.exp(2 * rng.normal(size=n))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_very_unequal_weights_of_few_rows_do_not_make_calibrated_predictions_miscalibrated(n):
    options = {"n_resamples": 19, "random_state": 0}
    found = [cb.evaluate(y, cb.Point(mean), sample_weight=w, **options).verdict for y, mean, w in weighted_sets(n)]
    assert found.count("miscalibrated") <= 8  # of 100; up to 38 if each row counts as one


def test_a_single_effective_unit_is_not_tested():
    terms = IndependentTerms(3.0, np.array([1.0, -1.0]), np.ones(2), effective=1.01)
    assert np.isnan(terms.test()[1])
    assert IndependentTerms(3.0, np.array([1.0, -1.0]), np.ones(2)).test()[1] < 1


@pytest.mark.parametrize("u", [[0.4, 0.6], [0.02, 0.98, 0.99]])
def test_bounds_of_the_coverage_error_lie_in_its_range(u):
    forecast = cb.Gaussian(np.zeros(len(u)), np.ones(len(u)))
    values = np.array(u)
    deviation = coverage_deviation(PITValues(values, values, values, 0), forecast, None, 0.1, 0.05)
    assert 0 <= deviation.low <= deviation.value <= deviation.high <= 1
