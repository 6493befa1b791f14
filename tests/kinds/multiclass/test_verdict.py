"""The decision for class probabilities: laws, slow loops, known deviations, and small simulations."""

import json
import math
import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import poisson

from calibrant._support.errors import InputError
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.kinds.binary.verdict import decide
from calibrant.kinds.multiclass.components import _bounded, class_shifts, skewed_two_sided
from calibrant.kinds.multiclass.confusions import _grouped, _variance, confusions
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.kinds.multiclass.verdict import ClassTests, decide_classes
from calibrant.tables.score_table import ScoreTable

SETTINGS = (range(9), 0.1, 0.05, 0.95)  # names of classes, margin, alpha and confidence level


def softmax(x):
    x = np.exp(x - x.max(axis=1, keepdims=True))
    return x / x.sum(axis=1, keepdims=True)


def predictions(rng, rows, classes, deviation=1.5):
    return softmax(deviation * rng.standard_normal((rows, classes)))


def labels(rng, q):
    """Draw one label per row with these probabilities."""
    cumulative = np.cumsum(q, axis=1)
    return np.sum(cumulative < rng.random((len(q), 1)) * cumulative[:, -1:], axis=1)


def calibrated(seed, rows, classes, deviation=1.5):
    rng = np.random.default_rng(seed)
    p = predictions(rng, rows, classes, deviation)
    return p, labels(rng, p)


def shifted(seed, rows, shifts, temperature=1.0):
    """Predictions, and labels of a truth with shifted classes and another temperature."""
    rng = np.random.default_rng(seed)
    p = predictions(rng, rows, len(shifts))
    return p, labels(rng, softmax(np.log(p) / temperature + shifts))


def rows_of(p, code, weight=None, cluster=None):
    return ClassRows.from_arrays(p, code, weight, None, cluster)


# Two classes


@pytest.mark.parametrize(("shift", "slope"), [(0.0, 1.0), (0.3, 1.0), (0.0, 1.4), (-2.0, 1.0)])
@pytest.mark.parametrize("rows", [500, 5_000])
def test_two_classes_agree_with_the_binary_decision(shift, slope, rows):
    rng = np.random.default_rng(rows)
    x = rng.normal(-1, 1.3, rows)
    y = (rng.random(rows) < expit(slope * x + shift)).astype(int)
    tests = BinaryTests.from_design(Design(ScoreTable.from_arrays(y, expit(x))))
    binary, binary_estimate = decide(tests, margin=0.1, alpha=0.05, confidence_level=0.95)
    found = decide_classes(np.stack([expit(-x), expit(x)], axis=1), y)
    slope_test, temperature = binary.omnibus.components["slope"], found.verdict.omnibus.components["temperature"]
    assert temperature.statistic == pytest.approx(slope_test.statistic, rel=0.05, abs=0.05)
    sampling_error = binary_estimate.information**-0.5
    assert found.estimate.error.value == pytest.approx(binary_estimate.error.value, abs=1.2 * sampling_error)
    assert found.estimate.information == pytest.approx(binary_estimate.information, rel=1e-3)
    assert found.verdict.deviation.within == binary.deviation.within
    assert (found.verdict.pvalue <= 0.05) == (binary.pvalue <= 0.05)
    assert found.classes[1].pvalue == pytest.approx(binary.pvalue, rel=0.2, abs=1e-12)
    if binary.pvalue <= 0.001:
        assert set(binary.direction.split(", ")) <= set(found.verdict.direction.split(", "))


# Laws


def shown(judged, direction):
    """Return the classes for which a direction is shown."""
    return tuple(c.label for c in judged.classes if c.direction(0.05) == direction)


def same(a, b, tolerance=1e-8):
    assert a.verdict.pvalue == pytest.approx(b.verdict.pvalue, rel=tolerance)
    assert list(a.verdict.omnibus.components) == list(b.verdict.omnibus.components)
    for name, test in a.verdict.omnibus.components.items():
        assert test.pvalue == pytest.approx(b.verdict.omnibus.components[name].pvalue, rel=tolerance)
    assert a.estimate.error.value == pytest.approx(b.estimate.error.value, rel=tolerance, abs=tolerance)
    assert a.estimate.error.high == pytest.approx(b.estimate.error.high, rel=tolerance)
    assert a.verdict.deviation.pvalue == pytest.approx(b.verdict.deviation.pvalue, rel=tolerance)
    assert a.n_confusions == b.n_confusions


@pytest.mark.parametrize("classes", [3, 40])
def test_the_order_of_rows_does_not_matter(classes):
    p, y = shifted(1, 800, 0.4 * np.arange(classes) / classes)
    order = np.random.default_rng(0).permutation(len(y))
    same(decide_classes(p, y), decide_classes(p[order], y[order]), 1e-6)


@pytest.mark.parametrize("classes", [3, 40])
def test_a_permutation_of_the_classes_permutes_the_table_alone(classes):
    p, y = shifted(2, 1_500, np.linspace(-0.6, 0.6, classes))
    p = np.round(p, 2)  # many ties, also of the highest probability
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.abs(p)
    order = np.random.default_rng(0).permutation(classes)
    place = np.argsort(order)
    a, b = decide_classes(p, y), decide_classes(p[:, order], place[y])
    same(a, b, 1e-6)
    assert {int(order[each]) for each in shown(b, "overestimates")} == set(shown(a, "overestimates"))
    for each in b.classes:
        other = a.classes[order[each.label]]
        assert each.adjusted_pvalue == pytest.approx(other.adjusted_pvalue, rel=1e-6)
        assert each.log_odds_error == pytest.approx(other.log_odds_error, rel=1e-6, abs=1e-9)
    pairs = {(int(order[each.label]), int(order[each.predicted_label])) for each in b.confusions}
    assert pairs == {(each.label, each.predicted_label) for each in a.confusions}


def test_a_frequency_equals_repeated_rows():
    p, y = shifted(3, 400, np.array([0.5, 0.0, -0.5, 0.0]))
    times = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = decide_classes(np.repeat(p, times, axis=0), np.repeat(y, times))
    same(decide_classes(p, y, frequency=times), repeated)
    cluster = np.arange(len(y)) % 40
    clustered = decide_classes(p, y, frequency=times, cluster=cluster)
    same(clustered, decide_classes(np.repeat(p, times, axis=0), np.repeat(y, times), cluster=np.repeat(cluster, times)))


def test_the_scale_of_importance_weights_does_not_matter():
    p, y = shifted(4, 600, np.array([0.5, 0.0, -0.5]))
    weight = np.random.default_rng(0).exponential(size=len(y))
    same(decide_classes(p, y, weight=weight), decide_classes(p, y, weight=1e6 * weight), 1e-4)


def test_rows_of_weight_zero_do_not_count():
    p, y = calibrated(5, 300, 4)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    same(decide_classes(p, y, weight=weight), decide_classes(p[kept], y[kept], weight=weight[kept]))


def test_single_precision_changes_hardly_anything():
    p, y = shifted(6, 2_000, np.linspace(-0.3, 0.3, 12))
    same(decide_classes(p.astype(np.float32).astype(np.float64), y), decide_classes(p.astype(np.float32), y), 1e-6)


def test_the_result_is_plain_data():
    p, y = shifted(7, 3_000, np.array([0.5, 0.0, -0.5]))
    judged = decide_classes(p, y)
    found = json.loads(json.dumps([part.to_dict() for part in (*judged.classes, *judged.confusions, judged.verdict)]))
    assert [part["label"] for part in found[:3]] == [0, 1, 2]
    assert found[3]["adjusted_pvalue"] <= 0.05


# Slow loops


def slow_covariance(p, cells_of_row, cells):
    """Covariance of the residual sums of cells, row by row; a cell is a bin of a class."""
    found = np.zeros((cells, cells))
    for row, places in zip(p, cells_of_row, strict=True):
        own = np.zeros((row.size, cells))
        own[np.arange(row.size), places] = 1
        found += own.T @ (np.diag(row) - np.outer(row, row)) @ own
    return found


@pytest.mark.parametrize("classes", [2, 4])
def test_covariances_between_bins_of_classes_equal_a_loop_over_rows(classes):
    p, y = calibrated(8, 300, classes)
    rows = rows_of(p, y)
    tests = ClassTests.from_rows(rows, *SETTINGS)
    cells = tests.coarse
    starts = np.searchsorted(cells.owner, np.arange(classes))
    places = np.stack([each.coarse.labels for each in tests.each], axis=1) + starts
    slow = slow_covariance(p, places, len(cells))
    assert cells.bins.variance == pytest.approx(np.diag(slow), rel=1e-3)  # scores are rounded to cells of the logit
    away = cells.owner[:, None] != cells.owner
    expected = float(np.sum(np.outer(cells.scale, cells.scale) * slow**2 * away))
    assert cells.off_diagonal == pytest.approx(expected, rel=1e-9)
    assert _bounded(rows, cells.owner, cells.bins.variance, cells.scale) >= 0.999 * expected
    # Eigenvalues of the normalized covariance are at most 2.
    root = np.sqrt(np.diag(slow))
    assert np.linalg.eigvalsh(slow / np.outer(root, root))[-1] <= 2 + 1e-9


def test_the_form_has_expectation_zero_and_the_stated_variance_if_calibrated():
    rng = np.random.default_rng(9)
    p = predictions(rng, 6, 3, 0.5)
    forms, chances = [], []
    for code in product(range(3), repeat=6):
        whole = ClassTests.from_rows(rows_of(p, np.array(code)), *SETTINGS).whole
        forms.append(whole.form)
        chances.append(np.prod(p[np.arange(6), code]))
    mean = np.dot(chances, forms)
    assert mean == pytest.approx(0, abs=1e-3)  # but for the rounding of scores to cells of the logit
    assert np.dot(chances, np.square(forms)) == pytest.approx(whole.moments[1], rel=0.05)


def test_the_covariance_of_weighted_classes_equals_a_loop_over_rows():
    p, y = calibrated(10, 200, 3)
    weight = np.where(y == 0, 4.0, 1.0) * np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    rows = rows_of(p, y, weight)
    slow = np.zeros((3, 3))
    for row, w in zip(p, weight, strict=True):
        for c in range(3):
            residual = np.eye(3)[c] - row
            slow += w * row[c] * rows.mean_weights[c] * np.outer(residual, residual)
    assert rows.class_covariance == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_confusions_equal_a_loop_over_rows(weighted):
    p, y = calibrated(11, 150, 4)
    weight = np.random.default_rng(0).exponential(size=len(y)) if weighted else None
    rows = rows_of(p, y, weight)
    happened, squared = _grouped(rows)
    excess, model, robust = np.zeros((3, 4, 4))
    for row, code, w in zip(p, y, np.ones(len(y)) if weight is None else weight, strict=True):
        residual = np.eye(4)[code] - row
        excess += w * np.outer(residual, row)
        model += w * np.outer(rows.mean_weights * row * (1 - row), row**2)
        robust += w**2 * np.outer(residual, row) ** 2
    assert happened - rows.products == pytest.approx(excess, abs=1e-9)
    assert _variance(rows, squared) == pytest.approx(np.maximum(model, robust), rel=1e-4)


def test_class_shifts_are_recovered():
    shifts = np.array([1.0, -0.5, 0.0, -1.5, 1.0])
    p, y = shifted(12, 100_000, shifts)
    rows = rows_of(p, y)
    found = class_shifts(rows, ClassTests.from_rows(rows, *SETTINGS).whole, np.ones(5, dtype=bool))
    assert found - found.mean() == pytest.approx(shifts - shifts.mean(), abs=0.05)


@pytest.mark.parametrize("mean", [5.0, 30.0, 200.0])
def test_the_skewed_tail_is_that_of_a_poisson_count(mean):
    counts = np.unique(np.round(mean + np.sqrt(mean) * np.array([-3, -2.5, -2, 2, 2.5, 3, 4])))
    for count in counts[counts >= 0]:
        exact = 2 * (poisson.cdf(count, mean) if count < mean else poisson.sf(count - 1, mean))
        middle = exact - poisson.pmf(count, mean)  # half of the mass at the count itself
        found = skewed_two_sided((count - mean) / np.sqrt(mean), mean**-0.5)
        assert found == pytest.approx(middle, rel=0.35)


# Known deviations


def test_calibrated_probabilities_are_shown_within_the_margin():
    found = decide_classes(*calibrated(13, 50_000, 5))
    assert found.verdict.pvalue > 0.05
    assert found.verdict.deviation.within
    assert found.verdict.deviation.bound < 0.1
    assert found.verdict.direction == ""
    assert not found.confusions


def test_shifted_classes_are_named_without_a_temperature():
    found = decide_classes(*shifted(14, 10_000, np.array([0.8, 0.0, -0.8])))
    assert 0 in shown(found, "underestimates")
    assert 2 in shown(found, "overestimates")
    assert "confident" not in found.verdict.direction
    assert not found.verdict.deviation.within


@pytest.mark.parametrize(("temperature", "direction"), [(1.4, "overconfident"), (0.7, "underconfident")])
@pytest.mark.parametrize("classes", [3, 30])
def test_a_temperature_is_named(temperature, direction, classes):
    found = decide_classes(*shifted(15, 2_000, np.zeros(classes), temperature))
    assert direction in found.verdict.direction.split(", ")


@pytest.mark.parametrize("shift", [0.3, 1.0])
def test_the_log_odds_error_of_a_shifted_class_is_read_right(shift):
    p, y = shifted(16, 40_000, np.array([shift, 0.0]))
    assert decide_classes(p, y).estimate.error.value == pytest.approx(shift, rel=0.1)


def test_confused_classes_are_listed():
    rng = np.random.default_rng(17)
    p = predictions(rng, 20_000, 6)
    q = p.copy()
    q[:, 1] = (p[:, 1] + p[:, 4]) * expit(np.log(p[:, 1] / p[:, 4]) + 0.5)
    q[:, 4] = p[:, 1] + p[:, 4] - q[:, 1]
    found = decide_classes(p, labels(rng, q))
    assert (found.confusions[0].label, found.confusions[0].predicted_label) == (1, 4)
    assert found.confusions[0].observed > found.confusions[0].predicted
    assert {each.label for each in found.confusions} == {1}


def test_an_impossible_outcome_decides():
    p, y = calibrated(18, 20_000, 3)
    p[y != 2, 2] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    first = int(np.flatnonzero(y == 2)[0])
    p[first] = [0.5, 0.5, 0.0]
    found = decide_classes(p, y)
    assert found.verdict.omnibus.components["impossible outcomes"].pvalue == 0.0
    assert found.verdict.pvalue == 0.0
    assert not found.verdict.deviation.within
    assert found.verdict.deviation.bound == float("inf")


def test_probabilities_of_zero_and_one_that_come_true_deviate_nowhere():
    y = np.arange(60) % 3
    found = decide_classes(np.eye(3)[y], y)
    assert math.isnan(found.verdict.pvalue)  # nothing is tested
    assert found.estimate.error.value == 0.0
    assert not found.verdict.deviation.within


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows_decide_nothing(rows):
    found = decide_classes(*calibrated(19, rows, 3))
    assert found.verdict.pvalue > 0.05
    assert not found.verdict.deviation.within


def test_classes_that_hardly_occur_do_not_decide():
    p = np.tile([1e-12, 1e-7, 1 - 1e-7 - 1e-12], (1_000, 1))
    assert decide_classes(p, np.full(1_000, 2)).verdict.pvalue == 1.0
    found = decide_classes(p, np.where(np.arange(1_000) < 3, 1, 2))
    assert found.verdict.pvalue < 1e-6
    assert shown(found, "underestimates") == (1,)


def test_equal_probabilities_have_no_temperature():
    y = np.random.default_rng(20).integers(0, 4, 400)
    assert list(decide_classes(np.full((400, 4), 0.25), y).verdict.omnibus.components) == ["calibration in the large"]


def test_nothing_is_significant_unless_the_joint_test_is():
    p, y = calibrated(21, 2_000, 8)
    found = decide_classes(p, y)
    assert all(each.adjusted_pvalue >= found.verdict.pvalue for each in found.classes)
    assert all(each.in_the_large >= found.verdict.pvalue for each in found.classes)
    assert confusions(rows_of(p, y), 0.06, 0.05) == []


def test_errors_that_cancel_inside_bins_are_not_within():
    rng = np.random.default_rng(22)
    p = predictions(rng, 60_000, 3)
    wave = 0.5 * np.sign(np.sin(60 * p[:, :1]))
    found = decide_classes(p, labels(rng, softmax(np.log(p) + wave * np.array([1.0, 0.0, 0.0]))))
    assert found.verdict.pvalue <= 0.05
    assert not found.verdict.deviation.within


def test_the_equivalence_test_agrees_with_its_bound():
    for seed in range(8):
        found = decide_classes(*calibrated(seed, 6_000, 3)).verdict.deviation
        assert found.within == (found.bound <= 0.1)


# Dependence


def test_repeated_rows_count_once_if_they_are_clusters():
    p, y = calibrated(23, 100, 4)
    found = decide_classes(np.repeat(p, 20, axis=0), np.repeat(y, 20), cluster=np.repeat(np.arange(100), 20))
    alone = decide_classes(np.repeat(p, 20, axis=0), np.repeat(y, 20))
    assert alone.verdict.pvalue < 0.01
    assert found.verdict.pvalue > 0.05
    assert found.estimate.n_clusters == 100


def test_fewer_than_ten_clusters_are_refused():
    p, y = calibrated(24, 90, 3)
    with pytest.raises(InputError, match="cluster must have at least 10"):
        decide_classes(p, y, cluster=np.arange(90) % 9)


def test_weights_that_depend_on_the_class_do_not_look_like_a_deviation():
    rejected = 0
    for seed in range(40):
        p, y = calibrated(seed, 1_000, 3)
        kept = (y != 0) | (np.random.default_rng([seed, 1]).random(len(y)) < 0.25)
        rejected += decide_classes(p[kept], y[kept], weight=np.where(y == 0, 4.0, 1.0)[kept]).verdict.pvalue <= 0.05
    assert rejected <= 5


def test_memory_stays_far_below_twice_the_probabilities():
    p, y = shifted(25, 20_000, np.linspace(-0.3, 0.3, 200))
    tracemalloc.start()
    decide_classes(p, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * p.nbytes + 2**25


# Small simulations


def rejections(simulate, count):
    found = [simulate(seed) for seed in range(count)]
    return {name: np.mean([each[name] for each in found]) for name in found[0]}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "classes"), [(500, 3), (500, 10), (5_000, 10)])
def test_calibrated_probabilities_are_rejected_in_about_five_percent(rows, classes):
    def simulate(seed):
        found = decide_classes(*calibrated([seed, rows, classes], rows, classes))
        return {
            "joint": found.verdict.pvalue <= 0.05,
            "class": any(each.adjusted_pvalue <= 0.05 for each in found.classes),
            "temperature": "confident" in found.verdict.direction,
        }

    rate = rejections(simulate, 400)
    assert 0.015 <= rate["joint"] <= 0.075
    assert rate["class"] <= 0.07
    assert rate["temperature"] <= 0.04


@pytest.mark.slow
def test_an_error_at_the_margin_is_rarely_within():
    # Two classes: a shift of 0.1 of one is a log-odds error of 0.1 of both.
    rate = rejections(
        lambda seed: {"within": decide_classes(*shifted(seed, 20_000, np.array([0.1, 0.0]))).verdict.deviation.within},
        150,
    )
    assert rate["within"] <= 0.09


@pytest.mark.slow
def test_shifted_classes_are_rarely_called_a_temperature():
    shifts = np.array([1.0, -1.0, 0.5, 0.0, -0.5, 0.3])

    def simulate(seed):
        direction = decide_classes(*shifted(seed, 2_000, shifts)).verdict.direction
        return {"temperature": "confident" in direction, "classes": "underestimates" in direction}

    rate = rejections(simulate, 200)
    assert rate["temperature"] <= 0.09
    assert rate["classes"] == 1.0


@pytest.mark.slow
def test_calibrated_clusters_are_rejected_in_about_five_percent():
    def simulate(seed):
        rng = np.random.default_rng(seed)
        p = predictions(rng, 1_000, 3)
        cluster = np.arange(1_000) % 50
        latent = np.sqrt(0.6) * rng.standard_normal(50)[cluster] + np.sqrt(0.4) * rng.standard_normal(1_000)
        y = np.sum(np.cumsum(p, axis=1)[:, :-1] < ndtr(latent)[:, None], axis=1)
        return {
            "clustered": decide_classes(p, y, cluster=cluster).verdict.pvalue <= 0.05,
            "independent": decide_classes(p, y).verdict.pvalue <= 0.05,
        }

    rate = rejections(simulate, 200)
    assert rate["clustered"] <= 0.09
    assert rate["independent"] > 0.3


def test_a_class_decision_names_its_side_only_if_shown():
    found = decide_classes(*shifted(26, 5_000, np.array([0.8, 0.0, -0.8]))).classes[0]
    assert found.direction(0.05) == "underestimates"
    assert replace(found, in_the_large=0.06).direction(0.05) == ""
    assert found.direction(0.05, factor=1e300) == ""
