"""Ordered classes: the verdict, its directions, and its numbers against independent formulas."""

import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.kinds.ordinal.verdict import decide
from calibrant.metrics.ordinal import RPS, CumulativeMetric, cumulative_tables
from calibrant.tables.class_table import ClassTable

CUTS = np.array([-1.5, -0.3, 0.8, 2.0])
CLASSES = list("ABCDE")


def probabilities(logits):
    below = 1 / (1 + np.exp(-logits))
    return np.diff(np.hstack([np.zeros((len(below), 1)), below, np.ones((len(below), 1))]), axis=1)


def draw(n, seed=0, shift=0.0, slope=1.0):
    """Return classes, and forecasts whose cumulative log-odds are moved."""
    rng = np.random.default_rng(seed)
    logits = CUTS - 1.2 * rng.normal(size=(n, 1))
    y = (1 / (1 + np.exp(-logits)) < rng.random((n, 1))).sum(axis=1)
    return np.array(CLASSES)[y], cb.Ordinal(probabilities(slope * logits + shift), classes=CLASSES)


def judge(y, forecast, **options):
    return cb.evaluate(y, forecast, n_resamples=19, **options)


@pytest.mark.parametrize(
    ("moved", "direction"),
    [
        ({"shift": 0.4}, "underestimates"),
        ({"shift": -0.4}, "overestimates"),
        ({"slope": 1.4}, "overconfident"),
        ({"slope": 0.7}, "underconfident"),
    ],
)
def test_the_direction_of_a_deviation_is_named(moved, direction):
    result = judge(*draw(4000, **moved))
    assert result.verdict == "miscalibrated"
    assert direction in result.direction.split(", ")
    opposite = {"underestimates": "overestimates", "overconfident": "underconfident"}
    opposite |= {b: a for a, b in opposite.items()}
    assert opposite[direction] not in result.direction.split(", ")


def test_a_shift_towards_low_classes_underestimates_the_mean_class():
    result = judge(*draw(4000, shift=0.4))
    predicted, observed = result.details.mean_class
    assert predicted < observed


def test_a_calibrated_model_is_shown_within_the_margin():
    result = judge(*draw(40_000))
    assert result.verdict == "calibrated"
    assert result.equivalence.bound <= 0.1
    assert result.direction == ""


def test_the_margin_is_not_shown_at_a_shift_of_its_size():
    within = [judge(*draw(20_000, seed, shift=0.1)).is_within_margin for seed in range(20)]
    assert sum(within) <= 3


def test_the_cumulative_log_odds_error_of_a_shift_is_the_shift():
    assert judge(*draw(50_000, shift=0.5)).log_odds_error.value == pytest.approx(0.5, abs=0.04)


def slow_scores(proba, code):
    """Score of a shift and of a slope of all cumulative log-odds, by differences of the log-likelihood."""
    step = 1e-5

    def likelihood(shift, slope):
        below = np.cumsum(proba, axis=1)[:, :-1]
        moved = probabilities(slope * np.log(below / (1 - below)) + shift)
        return np.log(moved[np.arange(code.size), code])

    shift = (likelihood(step, 1) - likelihood(-step, 1)) / (2 * step)
    slope = (likelihood(0, 1 + step) - likelihood(0, 1 - step)) / (2 * step)
    return shift, slope


def test_the_score_tests_agree_with_derivatives_of_the_likelihood():
    y, forecast = draw(500, seed=3)
    code = np.array([CLASSES.index(label) for label in y])
    proba = forecast.proba
    expected = np.zeros((2, 2))
    for c in range(5):
        scores = np.stack(slow_scores(proba, np.full(code.size, c)))
        expected += (scores * proba[:, c]) @ scores.T
    sums = np.array([each.sum() for each in slow_scores(proba, code)])
    ratio = expected[0, 1] / expected[0, 0]
    z = sums[0] / expected[0, 0] ** 0.5, (sums[1] - ratio * sums[0]) / (expected[1, 1] - ratio * expected[0, 1]) ** 0.5
    tests = judge(y, forecast).tests
    assert (tests["shift"].statistic, tests["slope"].statistic) == pytest.approx(z, rel=1e-5)


def test_the_ranked_probability_score_equals_an_independent_formula():
    rng = np.random.default_rng(0)
    proba, code = rng.dirichlet(np.ones(6), 300), rng.integers(0, 6, 300)
    weight = rng.random(300)
    # Half the mean absolute difference of two classes less the mean distance to the outcome (Gneiting, Raftery 2007).
    distance = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    losses = (proba * distance[code]).sum(axis=1) - np.einsum("ij,jk,ik->i", proba, distance, proba) / 2
    table = ClassTable(tuple(range(6)), proba, code)
    assert RPS().value(table) == pytest.approx(losses.mean(), rel=1e-12)
    weighted = ClassTable(tuple(range(6)), proba, code, weight)
    assert RPS().value(weighted) == pytest.approx(np.average(losses, weights=weight), rel=1e-12)
    assert RPS().row_losses(table)(code) == pytest.approx(losses, rel=1e-12, abs=1e-14)


def test_replicates_and_values_agree():
    """The kernel adds up tables of thresholds; the value of a table is computed from its rows."""
    y, forecast = draw(300)
    for metric in (cb.METRICS["rps"](), CumulativeMetric(cb.ECE())):
        interval = cb.interval(metric, y, forecast, n_resamples=49, random_state=0)
        assert interval.low < interval.value < interval.high
        code = np.array([CLASSES.index(label) for label in y])
        assert interval.value == pytest.approx(
            metric.value(ClassTable(tuple(CLASSES), forecast.proba, code)), rel=1e-12
        )


def test_the_decomposition_sums_to_the_score():
    result = judge(*draw(1000, shift=0.3))
    corp, murphy = (result.details.decompositions[name] for name in ("corp", "murphy"))
    assert corp["mcb"] - corp["dsc"] + corp["unc"] == pytest.approx(result["rps"].value, rel=1e-12)
    sums = murphy["reliability"] - murphy["resolution"] + murphy["uncertainty"]
    total = sums + murphy["within_variance"] + murphy["within_covariance"]
    assert total == pytest.approx(result["rps"].value, rel=1e-9)


def test_a_frequency_equals_repeated_rows():
    y, forecast = draw(600)
    times = np.random.default_rng(1).integers(1, 4, 600)
    counted = judge(y, forecast, frequency=times)
    repeated = judge(np.repeat(y, times), cb.Ordinal(np.repeat(forecast.proba, times, axis=0), classes=CLASSES))
    for name, test in counted.tests.items():
        assert test.pvalue == pytest.approx(repeated.tests[name].pvalue, rel=1e-9)
    assert counted.equivalence.bound == pytest.approx(repeated.equivalence.bound, rel=1e-7)
    assert counted["rps"].value == pytest.approx(repeated["rps"].value, rel=1e-12)


def test_equal_weights_change_no_estimate_and_the_order_of_rows_nothing():
    y, forecast = draw(600)
    order = np.random.default_rng(2).permutation(600)
    one, other = judge(y, forecast), judge(y[order], forecast[order])
    weighted = judge(y, forecast, sample_weight=np.full(600, 2.5))
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)
    assert weighted.log_odds_error.value == pytest.approx(one.log_odds_error.value, abs=0.02)


def test_repeated_rows_in_clusters_are_no_evidence():
    y, forecast = draw(200, shift=0.25)
    again = np.repeat(np.arange(200), 10)
    alone = judge(y, forecast)
    clustered = judge(y[again], forecast[again], cluster=again)
    independent = judge(y[again], forecast[again])
    assert independent.pvalue < 1e-4 < clustered.pvalue
    assert clustered.pvalue == pytest.approx(alone.pvalue, abs=0.3)


def test_an_impossible_outcome_decides():
    y, forecast = draw(500)
    proba = forecast.proba.copy()
    proba[0] = [0, 0, 0, 0.5, 0.5]
    y = y.copy()
    y[0] = "A"
    result = judge(y, cb.Ordinal(proba, classes=CLASSES))
    assert (result.verdict, result.pvalue) == ("miscalibrated", 0.0)
    assert "contradicts its score of 0" in " ".join(result.sentences())


def test_certain_forecasts_that_come_true_are_not_tested():
    y = np.array(list("ABC") * 50)
    proba = (y[:, None] == np.array(list("ABC"))).astype(float)
    result = judge(y, cb.Ordinal(proba, classes=list("ABC")))
    assert result.verdict == "inconclusive"


def test_groups_comparison_audit_and_json():
    y, right = draw(2000)
    wrong = draw(2000, slope=1.6)[1]
    group = np.repeat(["a", "b"], 1000)
    result = judge(y, right, by=group)
    assert set(result.groups) == {"a", "b"}
    assert json.loads(result.to_json())["kind"] == "ordinal"
    comparison = cb.compare(y, {"right": right, "wrong": wrong}, n_resamples=19)
    assert comparison.verdict == "wrong is worse calibrated than right"
    half, planted = np.arange(2000) < 1000, y.copy()
    planted[half & (np.random.default_rng(1).random(2000) < 0.3)] = "E"
    assert cb.audit(planted, right, {"half": half.astype(int)}).segments[0].rule == "half = 1"
    assert cb.audit(y, right, {"half": np.arange(2000) % 2}).segments == ()


@pytest.mark.parametrize(
    ("forecast", "message"),
    [
        (cb.Ordinal(np.full((4, 2), 0.5)), "at least three ordered classes"),
        (cb.Ordinal(np.full((4, 3), 0.5)), "sum to 1"),
    ],
)
def test_bad_forecasts_are_refused(forecast, message):
    with pytest.raises(cb.InputError, match=message):
        judge([0, 1, 0, 1], forecast)


def test_labels_outside_the_classes_are_refused():
    with pytest.raises(cb.InputError, match="classes"):
        judge(["A", "X", "B"], cb.Ordinal(np.full((3, 3), 1 / 3), classes=list("ABC")))


def test_models_must_share_the_order_of_classes():
    y, forecast = draw(100)
    other = cb.Ordinal(forecast.proba[:, ::-1], classes=CLASSES[::-1])
    with pytest.raises(cb.InputError, match="same order"):
        cb.compare(y, {"a": forecast, "b": other}, n_resamples=9)


def test_cumulative_tables_have_one_event_per_threshold():
    table = ClassTable(("low", "mid", "high"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]))
    first, second = cumulative_tables(table)
    assert (first.score.tolist(), first.k.tolist()) == ([0.1, 0.7], [0, 1])
    assert second.score.tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.slow
def test_the_size_and_the_power_of_the_verdict():
    rejected = {0.0: 0, 0.3: 0}
    for shift in rejected:
        for seed in range(300):
            y, forecast = draw(1000, seed, shift=shift)
            code = np.array([CLASSES.index(label) for label in y])
            table = ClassTable(tuple(CLASSES), forecast.proba, code)
            judged = decide(table, None, margin=0.1, alpha=0.05, confidence_level=0.95)
            rejected[shift] += judged.verdict.is_significant
    assert rejected[0.0] <= 27
    assert rejected[0.3] >= 250
