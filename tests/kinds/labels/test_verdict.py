"""Limits of class proportions with few mistakes, and the equivalence test at the margin."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cb


@pytest.mark.parametrize("n", [50, 200, 300, 1000])
def test_without_mistakes_the_upper_limit_is_the_exact_one(n):
    y = np.arange(n) % 3
    found = cb.evaluate(y, cb.Labels(y)).equivalence
    assert found.value == 0
    assert found.high == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)
    assert found.low == 0


def test_one_sided_mistakes_have_the_exact_limit_of_their_share():
    y = np.repeat([0, 1, 2], [180, 60, 60])
    predicted = y.copy()
    predicted[:2] = 1
    found = cb.evaluate(y, cb.Labels(predicted)).equivalence
    assert found.value == pytest.approx(2 / 300)
    assert found.high >= stats.binomtest(2, 300).proportion_ci(0.90, method="exact").high - 1e-12


@pytest.mark.parametrize("n", [200, 500])
def test_a_difference_at_the_margin_is_rarely_shown_within_it(n):
    rng = np.random.default_rng(n)
    within = 0
    for _ in range(200):
        y = rng.choice(3, n, p=[0.97, 0.015, 0.015])
        predicted = np.where((y == 1) & (rng.random(n) < 0.01 / 0.015), 0, y)
        within += cb.evaluate(y, cb.Labels(predicted)).equivalence.within
    assert within <= 18  # 5 %, and three standard errors


def test_intervals_of_differences_contain_them_and_those_of_frequencies_equal_rows():
    y, predicted = np.repeat([0, 1, 2, 0], [50, 40, 30, 3]), np.repeat([0, 1, 2, 1], [50, 40, 30, 3])
    rows = cb.evaluate(y, cb.Labels(predicted))
    once = np.unique(np.stack([y, predicted]), axis=1)
    n = [np.count_nonzero((y == a) & (predicted == b)) for a, b in once.T]
    counted = cb.evaluate(once[0], cb.Labels(once[1]), frequency=n)
    for a, b in zip(rows.details.classes, counted.details.classes, strict=True):
        assert a.low <= a.difference <= a.high
        assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=1e-12)
