"""The smallest deviation that a bin detects."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import calibrant as cb


def power(n, rate, true, alpha):
    """By the definition: the chance of all counts that scipy's test rejects."""
    rejected = [k for k in range(n + 1) if binomtest(k, n, rate).pvalue <= alpha]
    return binom.pmf(rejected, n, true).sum()


@given(
    st.integers(1, 60), st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 0.92, 1.0]), st.sampled_from([0.01, 0.05, 0.2, 0.6])
)
def test_deviations_are_those_at_which_power_is_reached(n, rate, alpha):
    found = cb.detectable(n, rate, alpha=alpha, power=0.8)
    for sign, deviation, end in ((1, found.above, 1.0), (-1, found.below, 0.0)):
        if deviation == 0:
            assert power(n, rate, rate, alpha) >= 0.8
            continue
        if np.isnan(deviation):
            assert rate == end or power(n, rate, end, alpha) < 0.8
            continue
        true = rate + sign * deviation
        assert power(n, rate, true, alpha) == pytest.approx(0.8, abs=1e-9)
        assert power(n, rate, rate + sign * deviation * 0.98, alpha) < 0.8


def test_a_border_case_of_power():
    """With alpha so large that the test rejects right predictions often enough, no deviation is needed."""
    assert cb.detectable(30, 0.5, alpha=0.9, power=0.1).above == 0


def test_more_rows_detect_less():
    above = [cb.detectable(n, 0.3).above for n in (100, 1_000, 10_000, 1_000_000)]
    assert above == sorted(above, reverse=True)
    assert above[3] == pytest.approx(2.8 * np.sqrt(0.21 / 1e6), rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 0.5), {}, "n must be a whole number"),
        ((2.5, 0.5), {}, "n must be a whole number"),
        ((10, 1.5), {}, "rate must lie in"),
        ((10, 0.5), {"alpha": 0}, "alpha must lie between"),
        ((10, 0.5), {"power": 1}, "power must lie between"),
    ],
)
def test_bad_arguments_are_named(arguments, options, message):
    with pytest.raises(cb.InputError, match=message):
        cb.detectable(*arguments, **options)
