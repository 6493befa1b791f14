"""The smallest deviation that a bin detects, and the information that shows a model to lie within a margin."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import calibrant as cb
from calibrant.inference.power import equivalence_power, information_needed, rows_to_decide

SCORES = np.random.default_rng(0).beta(1, 9, 2_000)


def power(n, rate, true, alpha):
    """By the definition: the chance of all counts that scipy's test rejects."""
    rejected = [k for k in range(n + 1) if binomtest(k, n, rate).pvalue <= alpha]
    return binom.pmf(rejected, n, true).sum()


@given(
    st.integers(1, 60), st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 0.92, 1.0]), st.sampled_from([0.01, 0.05, 0.2, 0.6])
)
def test_deviations_are_those_at_which_power_is_reached(n, rate, alpha):
    found = cb.inference.detectable(n, rate, alpha=alpha, power=0.8)
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
    assert cb.inference.detectable(30, 0.5, alpha=0.9, power=0.1).above == 0


def test_more_rows_detect_less():
    above = [cb.inference.detectable(n, 0.3).above for n in (100, 1_000, 10_000, 1_000_000)]
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
        cb.inference.detectable(*arguments, **options)


def test_the_information_needed_has_the_planned_power():
    for score in (0.0, 0.1, 0.5):
        needed = information_needed(0.1, power=0.9, scores=score)
        assert equivalence_power(score, needed, 0.1, 0.05) == pytest.approx(0.9, abs=0.01)
    assert information_needed(0.1, scores=0.0) > information_needed(0.1, scores=0.5)
    assert information_needed(0.1) == pytest.approx(2_000, rel=0.1)


def test_plans_ask_for_no_more_information_than_they_need(monkeypatch):
    asked = []

    def recorded(scores, information, margin, alpha):
        asked.append(information)
        return equivalence_power(scores, information, margin, alpha)

    monkeypatch.setattr("calibrant.inference.power.equivalence_power", recorded)
    needed = information_needed(0.01)
    assert needed <= max(asked) < 2 * needed
    assert math.isinf(information_needed(1e-9))
    assert max(asked) == pytest.approx(2**53)


def test_rows_to_decide_are_those_that_the_rows_at_hand_lack():
    assert rows_to_decide(10_000, 2_500, 0.1, 0.05) == 0
    more = rows_to_decide(1_000, 90, 0.1, 0.05)
    assert more == pytest.approx(information_needed(0.1, scores=0.1) / 0.09 - 1_000, rel=0.1)
    assert more % 1_000 == 0
    assert rows_to_decide(1_000, 0.1, 0.1, 0.05) > 100 * more


@pytest.mark.parametrize("margin", [1e-4, 1e-6, 1e-10, 1e-300])
def test_a_tiny_margin_takes_less_than_a_second_of_processor_time(margin):
    """The numbers of events of a bin were enumerated, which did not end."""
    begin = time.process_time()
    needed = information_needed(margin, scores=0.3)
    more = rows_to_decide(200, 30.0, margin, 0.05)
    assert time.process_time() - begin < 1
    assert (more is None) == (margin < 1e-5)
    assert math.isinf(needed) == (margin < 1e-6)


def test_the_information_needed_is_continuous_where_bins_are_taken_as_normal():
    """With many bins the information follows the margin to the power -2.5: bins increase with its power 0.4."""
    margins = np.geomspace(2e-3, 2e-5, 9)
    needed = np.array([information_needed(margin, scores=0.5) for margin in margins])
    power = np.diff(np.log(needed)) / np.diff(np.log(margins))
    assert (power > -2.52).all()
    assert (power < -2.35).all()
