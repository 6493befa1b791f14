"""The event rate of rows without outcomes: the algorithms of the papers, intervals, the check, and errors."""

import json

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cb
from calibrant.inference import estimate_event_rate


def drawn(seed, rate, size=4000, lower=0.0):
    rng = np.random.default_rng(seed)
    y = rng.random(size) < rate
    return y.astype(int), expit(rng.normal(-2 + (2 - lower) * y, 1))


def expectation_maximisation(p, reference, steps=5000):
    """Saerens et al. (2002), equations (2.8) and (2.9), as printed: posteriors, then their mean."""
    rate = reference
    for _ in range(steps):
        odds = p * rate / reference
        rate = np.mean(odds / (odds + (1 - p) * (1 - rate) / (1 - reference)))
    return rate


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.6])
def test_em_equals_the_iteration_of_saerens(rate):
    y, p = drawn(0, 0.2)
    _, new = drawn(1, rate)
    found = estimate_event_rate(y, p, new_scores=new, recalibrate=False)
    assert found.value == pytest.approx(expectation_maximisation(new, y.mean()), abs=1e-6)
    line = cb.metrics.slope_intercept(y, p)
    moved = expit(line.intercept + line.slope * np.log(new / (1 - new)))
    again = estimate_event_rate(y, p, new_scores=new)
    assert again.value == pytest.approx(expectation_maximisation(moved, y.mean()), abs=1e-6)


def test_bbse_inverts_the_confusion_matrix():
    """Lipton et al. (2018): the joint shares of decision and outcome, inverted, times the shares of new decisions."""
    y, p = drawn(0, 0.2)
    _, new = drawn(1, 0.4)
    act = p >= 0.3
    joint = np.array(
        [[np.mean(act & (y == 1)), np.mean(act & (y == 0))], [np.mean(~act & (y == 1)), np.mean(~act & (y == 0))]]
    )
    weights = np.linalg.solve(joint, [np.mean(new >= 0.3), np.mean(new < 0.3)])
    found = estimate_event_rate(y, p, new_scores=new, method="bbse", threshold=0.3)
    assert found.value == pytest.approx(weights[0] * y.mean(), abs=1e-12)


@pytest.mark.parametrize("method", ["em", "bbse"])
@pytest.mark.parametrize("rate", [0.04, 0.2, 0.8])
def test_intervals_contain_the_truth(method, rate):
    y, p = drawn(0, 0.2)
    covered = 0
    for seed in range(20):
        truth, new = drawn(100 + seed, rate)
        found = estimate_event_rate(y, p, new_scores=new, method=method, confidence_level=0.99)
        covered += found.low <= truth.mean() <= found.high
    assert covered >= 18


def test_check_rejects_if_the_scores_of_events_moved():
    y, p = drawn(0, 0.2)
    assert estimate_event_rate(y, p, new_scores=drawn(1, 0.4)[1]).check.pvalue > 0.01
    assert estimate_event_rate(y, p, new_scores=drawn(1, 0.4, lower=1.0)[1]).check.pvalue < 1e-4


def test_no_new_event_gives_an_interval_that_starts_at_zero():
    y, p = drawn(0, 0.2)
    new = p[y == 0][:800]
    found = estimate_event_rate(y, p, new_scores=new)
    assert found.low == 0.0
    assert found.value < 0.02
    assert 0 < found.high < 0.1


def test_prior_shift_is_fed_by_the_estimate():
    y, p = drawn(0, 0.2)
    truth, new = drawn(1, 0.5)
    with pytest.warns(cb.CalibrantWarning, match="reference rows are miscalibrated"):
        shift = cb.calibrators.PriorShift.from_scores(y, p, new_scores=new)
    rate = shift.event_rate_
    plain = cb.calibrators.PriorShift(prevalence=rate.value, trained_prevalence=y.mean()).fit(p, y)
    assert shift(new) == pytest.approx(plain(new), abs=1e-15)
    calibrated = cb.Platt().fit(p, y)
    assert cb.calibrators.PriorShift.from_scores(y, calibrated(p), new_scores=calibrated(new))(
        calibrated(new)
    ).mean() == pytest.approx(truth.mean(), abs=0.03)


def test_prior_shift_warns_if_the_assumption_fails():
    y, p = drawn(0, 0.2)
    with pytest.warns(cb.CalibrantWarning, match="have changed"):
        cb.calibrators.PriorShift.from_scores(y, p, new_scores=drawn(1, 0.4, lower=1.0)[1])


def test_rows_and_tables_give_identical_results():
    y, p = drawn(0, 0.2)
    new = drawn(1, 0.4)[1]
    first = estimate_event_rate(y, p, new_scores=new)
    again = estimate_event_rate(cb.ScoreTable.from_arrays(y, p), new_scores=new[::-1])
    assert first.to_dict() == again.to_dict()
    assert json.dumps(first.to_dict(), allow_nan=False)
    assert "check of the assumption" in repr(first)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "mean"}, "method"),
        ({"new_scores": []}, "new_scores"),
        ({"new_scores": [0.2, 1.4]}, "new_scores"),
        ({"sample_weight": np.ones(4000)}, "sample_weight"),
        ({"method": "bbse", "threshold": 1e-9}, "threshold"),
    ],
)
def test_bad_options_are_named(options, words):
    y, p = drawn(0, 0.2)
    with pytest.raises(cb.InputError, match=words):
        estimate_event_rate(y, p, **({"new_scores": p} | options))


def test_one_class_has_no_estimate():
    with pytest.raises(cb.InputError, match="only one class"):
        estimate_event_rate([0, 0], [0.2, 0.3], new_scores=[0.5])


def test_miscalibrated_reference_scores_are_noted_and_warned_of():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(2, 4_000))
    y = rng.random(4_000) < expit(x - 2.2)  # a model of balanced rows
    rate = estimate_event_rate(y, expit(x), new_scores=expit(new))
    assert rate.miscalibrated_reference
    with pytest.warns(cb.CalibrantWarning, match=r"miscalibrated: mean score 49\.6 %.* Calibrate them first"):
        cb.calibrators.PriorShift.from_scores(y, expit(x), new_scores=expit(new))
    assert not estimate_event_rate(y, expit(x - 2.2), new_scores=expit(new - 2.2)).miscalibrated_reference


def test_an_estimate_at_an_end_is_an_error_that_names_it():
    rng = np.random.default_rng(0)
    y = rng.random(2_000) < 0.1
    p = expit(rng.normal(-2.5 + 2 * y, 1))
    lost = pytest.raises(cb.InputError, match="strictly between 0 and 1; got 0, with the interval 0 to")
    with lost, pytest.warns(cb.CalibrantWarning):
        cb.calibrators.PriorShift.from_scores(y, p, new_scores=np.full(2_000, 1e-4))


def test_a_check_that_is_not_possible_says_so():
    rng = np.random.default_rng(0)
    y = np.arange(400) < 11
    p = expit(rng.normal(-3.5 + 2 * y, 1))
    rate = estimate_event_rate(y, p, new_scores=p)
    assert "check of the assumption: not possible, too few rows" in repr(rate)
    with pytest.warns(cb.CalibrantWarning, match="cannot be checked"):
        cb.calibrators.PriorShift.from_scores(y, p, new_scores=p)
