"""The smallest deviation that a bin detects, and sample sizes."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import calibrant as cb
from calibrant.inference.binary_components import binary_components
from calibrant.inference.decision import decide
from calibrant.inference.design import Design
from calibrant.inference.equivalence_power import equivalence_power, information_needed, rows_to_decide

SCORES = np.random.default_rng(0).beta(1, 9, 2_000)


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


@pytest.mark.parametrize("kind", ["shift", "slope"])
def test_larger_deviations_and_margins_need_fewer_rows_and_more_power_needs_more(kind):
    sizes = [cb.sample_size(SCORES, deviation=d, margin=d, kind=kind) for d in (0.05, 0.1, 0.2, 0.4, 0.8)]
    assert [s.detect for s in sizes] == sorted((s.detect for s in sizes), reverse=True)
    assert [s.equivalence for s in sizes] == sorted((s.equivalence for s in sizes), reverse=True)
    sizes = [cb.sample_size(SCORES, power=power, kind=kind) for power in (0.5, 0.8, 0.9, 0.99)]
    assert [s.detect for s in sizes] == sorted(s.detect for s in sizes)
    assert [s.equivalence for s in sizes] == sorted(s.equivalence for s in sizes)


def simulated(goal, rows, true=SCORES, times=200):
    """Share of data sets of so many rows that reach the goal."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(times):
        at = rng.integers(0, SCORES.size, rows)
        table = cb.ScoreTable.from_arrays(rng.random(rows) < true[at], SCORES[at])
        found.append(goal(Design(table)))
    return np.mean(found)


def is_detected(design):
    tests = binary_components(design)
    return len(tests) * min(test.pvalue for test in tests) <= 0.05


def moved(scores, slope, shift):
    odds = np.exp(slope * np.log(scores / (1 - scores)) + shift)
    return odds / (1 + odds)


def test_a_shift_is_detected_with_the_planned_power():
    rows = cb.sample_size(SCORES, deviation=0.3).detect
    assert 0.72 < simulated(is_detected, rows, moved(SCORES, 1, -0.3)) < 0.9
    assert simulated(is_detected, rows, moved(SCORES, 1, 0.3)) > 0.75


def test_a_slope_is_detected_with_the_planned_power():
    rows = cb.sample_size(SCORES, deviation=0.3, kind="slope").detect
    shifts = np.linspace(-2, 2, 4_001)
    powers = []
    for slope in (0.7, 1.3):
        gaps = [abs(moved(SCORES, slope, shift).mean() - SCORES.mean()) for shift in shifts]
        powers.append(simulated(is_detected, rows, moved(SCORES, slope, shifts[np.argmin(gaps)])))
    assert 0.72 < min(powers) < 0.9


def test_calibrated_models_are_shown_within_the_margin_with_the_planned_power():
    rows = cb.sample_size(SCORES, margin=0.3).equivalence
    share = simulated(
        lambda d: decide(d, margin=0.3, alpha=0.05, confidence_level=0.95).equivalence.pvalue <= 0.05, rows
    )
    assert 0.74 < share < 0.88


def test_the_information_needed_has_the_planned_power():
    for score in (0.0, 0.1, 0.5):
        needed = information_needed(0.1, power=0.9, scores=score)
        assert equivalence_power(score, needed, 0.1, 0.05) == pytest.approx(0.9, abs=0.01)
    assert information_needed(0.1, scores=0.0) > information_needed(0.1, scores=0.5)
    assert information_needed(0.1) == pytest.approx(2_000, rel=0.1)


def test_an_event_rate_alone_gives_a_lower_limit():
    table = cb.ScoreTable.from_arrays(np.zeros(SCORES.size), SCORES)
    known, alone = cb.sample_size(table), cb.sample_size(event_rate=SCORES.mean())
    assert alone.at_least
    assert not known.at_least
    assert alone.detect < known.detect
    assert alone.equivalence < known.equivalence
    assert alone.event_rate == pytest.approx(known.event_rate)
    assert known == cb.sample_size(SCORES)


def test_events_and_other_rows_need_the_same():
    rare, frequent = cb.sample_size(event_rate=0.03), cb.sample_size(event_rate=0.97)
    assert rare.detect == frequent.detect
    assert rare.equivalence == pytest.approx(frequent.equivalence, abs=1)


def test_a_constant_score_has_one_test():
    """Calibration in the large alone, at the full level: (1.96 + 0.84)^2 / (0.25 * 0.2^2) rows at 50 %."""
    found = cb.sample_size([0.5, 0.5])
    assert found.detect == pytest.approx(785, rel=0.02)
    assert found.detect < cb.sample_size(event_rate=0.5).detect


def test_sample_sizes_are_described_in_words():
    found = cb.sample_size(event_rate=0.05)
    assert repr(found).splitlines() == [
        "To detect odds that are off by 22 % with 80 % power: 6,800 rows (340 events).",
        "To show that the odds of a calibrated model are accurate to within 10 % with 80 % power: "
        "43,000 rows (2,200 events).",
        "These are lower limits: scores with spread need more rows.",
    ]
    assert "<br>To show that the odds" in found._repr_html_()
    assert "a slope of 0.8 or 1.2 with" in repr(cb.sample_size(SCORES, kind="slope"))
    assert found.to_dict()["detect_events"] == found.detect_events == np.ceil(0.05 * found.detect)


def test_plans_ask_for_no_more_information_than_they_need(monkeypatch):
    asked = []

    def recorded(scores, information, margin, alpha):
        asked.append(information)
        return equivalence_power(scores, information, margin, alpha)

    monkeypatch.setattr("calibrant.inference.equivalence_power.equivalence_power", recorded)
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


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "scores or event_rate must be given, and not both; got neither. Pass"),
        (([0.1],), {"event_rate": 0.1}, "got both"),
        ((), {"event_rate": 0}, "event_rate must lie between 0 and 1; got 0"),
        (([0.0, 1.0],), {}, "scores must have a score between 0 and 1; got none"),
        (([0.1, 1.5],), {}, "scores must lie in"),
        (([0.1, np.nan],), {}, "scores has 1 missing value"),
        ((), {"event_rate": 0.1, "deviation": -0.2}, "deviation must be above 0 and at most 2; got -0.2. Give"),
        ((), {"event_rate": 0.1, "margin": np.nan}, "margin must be above 0"),
        ((), {"event_rate": 0.1, "alpha": 5}, "alpha must lie between 0 and 1; got 5"),
        ((), {"event_rate": 0.1, "power": 1}, "power must lie between 0 and 1; got 1"),
        ((), {"event_rate": 0.1, "kind": "bend"}, "kind must be 'shift' or 'slope'; got 'bend'"),
        ((), {"event_rate": 0.1, "kind": "slope"}, "at least two distinct values"),
        (([0.3, 0.3],), {"kind": "slope"}, "at least two distinct values"),
        (([0.3, 0.4],), {"kind": "slope", "deviation": 1}, "deviation must be below 1 for kind='slope'; got 1"),
    ],
)
def test_bad_arguments_of_sample_size_are_named(arguments, options, message):
    with pytest.raises(cb.InputError, match=message):
        cb.sample_size(*arguments, **options)


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


def test_a_margin_or_deviation_that_needs_too_many_rows_is_an_error():
    for name in ("margin", "deviation"):
        with pytest.raises(cb.InputError, match=f"{name} must be one for which 2\\*\\*53 rows are enough; got 1e-09"):
            cb.sample_size(event_rate=0.1, **{name: 1e-9})
