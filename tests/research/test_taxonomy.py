"""The experiment on the chapter's taxonomy: its rules, and the pure and impure measures of real models."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")

from research.reproduction import taxonomy, taxonomy_cases
from research.reproduction.sources import NoDataError
from research.reproduction.taxonomy import Effect, Finding
from research.reproduction.taxonomy_cases import Measure

ERROR = Measure("error", lambda y, f: 0.0, "calibration", 0.0)
BETTER = Effect(0.3, 0.1, 0.2, 0.1, 0.3)
UNSURE = Effect(0.3, 0.2, 0.1, -0.1, 0.3)
SAME = Effect(0.3, 0.3, 0.0, 0.0, 0.0)


def finding(*effects, informative=0.0, uninformative=0.0):
    return Finding(ERROR, 0.1, effects, informative, uninformative)


def test_a_calibration_measure_improves_for_each_distortion():
    assert finding(BETTER, BETTER).sensitivity == taxonomy.CALIBRATION
    assert finding(BETTER, UNSURE).sensitivity == taxonomy.PARTIAL
    assert finding(BETTER, SAME).sensitivity == taxonomy.PARTIAL
    assert finding(SAME, SAME).sensitivity == taxonomy.INSENSITIVE


def test_a_pure_measure_has_one_value_for_calibrated_forecasts():
    assert finding(BETTER).purity == "pure"
    assert finding(BETTER, informative=0.2).purity == "impure"
    assert finding(SAME, informative=0.2).purity == ""


def test_an_improvement_is_towards_the_ideal_value():
    assert Measure("ratio", ERROR.value, ideal=1.0).improvement(1.3, 0.9) == pytest.approx(0.2)
    assert Measure("accuracy", ERROR.value, higher=True).improvement(0.7, 0.9) == pytest.approx(0.2)
    assert Measure("loss", ERROR.value).improvement(0.7, 0.9) == pytest.approx(-0.2)


def test_the_parts_of_a_split_have_no_row_in_common():
    parts = taxonomy_cases.split(100, 50, 20, 10)
    assert [part.size for part in parts] == [50, 20, 10]
    assert np.unique(np.concatenate(parts)).size == 80


@pytest.fixture(scope="module")
def kinds():
    try:
        cases = list(taxonomy_cases.cases())
    except NoDataError as error:
        pytest.skip(str(error))
    return {case.kind: (case, {f.measure.name: f for f in taxonomy.findings(case, 2)}) for case in cases}


PURE = {
    "CD: labels": {"class proportions", "class proportions by group"},
    "CP: probabilities": {"CalLoss", taxonomy_cases.HULL, "ECE"},
    "CP: class probabilities": {"CalLoss", taxonomy_cases.HULL, "ECE", "ECE of the top label"},
    "RD: points": {"average error, E(f - y)", "ratio of the means, E(f) / E(y)", "bias by bin"},
    "RP: distributions": {"Anderson-Darling A2", "coverage error", "average error, E(f - y)"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PURE)
def test_pure_measures_are_those_of_the_page(kinds, kind):
    assert {name for name, found in kinds[kind][1].items() if found.purity == "pure"} == PURE[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["CD: labels", "CP: probabilities", "CP: class probabilities", "RD: points"])
def test_pure_measures_of_calibrated_forecasts_are_ideal_up_to_rounding(kinds, kind):
    for name in PURE[kind]:
        found = kinds[kind][1][name]
        assert [found.informative, found.uninformative] == pytest.approx([found.measure.ideal] * 2, abs=1e-9)


@pytest.mark.slow
def test_ranking_and_decisions_are_insensitive_to_increasing_maps(kinds):
    found = kinds["CP: probabilities"][1]
    assert {name for name, each in found.items() if each.sensitivity == taxonomy.INSENSITIVE} == {
        "AUC",
        "accuracy",
        "mean F-measure",
    }


@pytest.mark.slow
def test_scores_are_insensitive_to_the_threshold(kinds):
    found = kinds["CD: labels"][1]
    assert {name for name, each in found.items() if each.sensitivity == taxonomy.INSENSITIVE} == {
        "AUC",
        taxonomy_cases.BRIER,
        "log loss",
    }


@pytest.mark.slow
def test_macro_averaged_accuracy_falls_when_a_class_predicted_too_often_is_recalibrated(kinds):
    rare, often, _ = kinds["CD: labels"][1]["macro-averaged accuracy"].effects
    assert rare.after > rare.before
    assert often.after < often.before - 0.05


@pytest.mark.slow
def test_average_errors_miss_a_bias_that_cancels(kinds):
    found = kinds["RD: points"][1]
    assert abs(found["average error, E(f - y)"].effects[2].before) < 0.01
    assert found["bias by bin"].effects[2].before > 0.1


@pytest.mark.slow
def test_the_mean_is_insensitive_to_variance_scaling(kinds):
    for name in ("MSEr", "MAE", "average error, E(f - y)", "relative error, E(f / y)"):
        assert [effect.unchanged for effect in kinds["RP: distributions"][1][name].effects] == [True, True, False]


@pytest.mark.slow
def test_calloss_of_distinct_scores_is_the_brier_score(kinds):
    found = kinds["CP: probabilities"][1]
    for loss, score in zip(found["CalLoss"].effects, found[taxonomy_cases.BRIER].effects, strict=True):
        assert loss.before == pytest.approx(score.before, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PURE)
def test_recalibration_lowers_the_local_deviation_of_each_distortion(kinds, kind):
    case = kinds[kind][0]
    for change in case.changes:
        before, after = (case.local(case.y, each) for each in (change.distorted, change.recalibrated))
        assert after < before + 0.001


def test_numbers_of_tables_have_no_negative_zero():
    assert [taxonomy.number(x) for x in (-1e-9, 0.12345, -12.34)] == ["0.0000", "0.1235", "-12.3"]
