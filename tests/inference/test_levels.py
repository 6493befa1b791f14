"""Levels of calibration in evaluations of probabilities."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.inference import calibration_curve


def simulated(size=4000, slope=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-1, 1.2, size))
    return (rng.random(size) < expit(slope * logit(p))).astype(int), p


@pytest.fixture(scope="module")
def evaluation():
    return cb.evaluate(*simulated(slope=0.6), n_resamples=99)


def test_levels_are_those_of_their_functions(evaluation):
    y, p = simulated(slope=0.6)
    levels = evaluation.details.levels
    assert levels.mean.value == pytest.approx(cb.metrics.oe_ratio(y, p))
    slope = next(each for each in levels.weak if each.name == "calibration slope")
    assert slope.value == pytest.approx(cb.metrics.slope_intercept(y, p).slope)
    curve = calibration_curve(y, p)
    assert levels.moderate.estimate == pytest.approx(curve.estimate)
    assert levels.contains_diagonal is curve.contains_diagonal is False


def test_interval_of_observed_over_expected_is_that_of_the_number_of_events():
    """Var(O) is the sum of q (1 - q), q the scores shifted to the event rate; ln O/E has the error root(V) / O."""
    y, p = simulated()
    shift = cb.evaluate(y, p, n_resamples=99)
    found = shift.details.levels.mean
    large = next(c for c in shift.coefficients if c.name == "calibration in the large")
    q = expit(logit(p) + large.value)
    error = np.sqrt(np.sum(q * (1 - q))) / y.sum()
    assert np.log(found.high / found.value) == pytest.approx(1.96 * error, rel=0.02)
    assert found.low < 1 < found.high


def test_text_and_json_have_a_line_of_levels(evaluation):
    text = str(evaluation)
    assert "Levels of calibration: mean, O/E" in text
    assert "band excludes the diagonal; strong, not tested without groups (by=)." in text
    found = json.loads(evaluation.to_json())["details"]["levels"]
    assert found["moderate"]["contains_diagonal"] is False
    assert found["mean"]["name"] == "O/E"


def test_groups_count_for_strong_calibration():
    y, p = simulated()
    group = np.arange(y.size) % 2
    off = np.where(group, p, expit(logit(p) + 1))
    found = cb.evaluate(y, off, by=group, n_resamples=99)
    assert "strong, 1 of 2 groups miscalibrated and groups differ" in str(found)
    assert all("levels" not in each["details"] for each in found.to_dict()["groups"])


def test_curve_has_fewer_knots_where_outcomes_do_not_determine_five():
    """Few events among the lowest scores: the tail of a spline with five knots separates them."""
    score = [0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.12, 0.2, 0.3, 0.5, 0.7, 0.9]
    n = [293, 288, 219, 148, 134, 86, 83, 56, 28, 60, 60, 60, 60, 30]
    table = cb.ScoreTable.from_counts(score, n, [0, 0, 0, 0, 0, 0, 0, 1, 1, 8, 20, 45, 58, 30])
    with pytest.raises(cb.InputError, match="fewer knots"):
        calibration_curve(table, n_knots=5)
    curve = calibration_curve(table)
    assert [note.code for note in curve.notes] == ["logit_clipped", "fewer_knots"]
    levels = cb.evaluate(table, n_resamples=99).details.levels
    assert levels.moderate.settings["knots"] == curve.settings["knots"]
    assert len(levels.moderate.settings["knots"]) < 5


def test_constant_scores_have_no_curve():
    levels = cb.evaluate(np.arange(200) % 2, np.full(200, 0.5), n_resamples=99).details.levels
    assert levels.moderate is None
    assert levels.mean.value == 1.0
