"""`ProportionRule`: class proportions overall and by group, in JSON too."""

import json

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone

import calibrant as cb
from calibrant.calibrators import ProportionRule
from calibrant.calibrators.proportion_rules import best_threshold, best_weights

RNG = np.random.default_rng(8)
SIZE = 1500
REGION = RNG.choice(["east", "north", "south"], SIZE)
SCORE = RNG.beta(2, 5, SIZE)
Y = np.where(RNG.random(SIZE) < np.select([REGION == "east", REGION == "north"], [0.4, 1.5], 1.0) * SCORE, "yes", "no")
PROBA = RNG.dirichlet([4, 2, 1], SIZE)
TILTED = PROBA * np.where((REGION == "east")[:, None], [0.5, 1.0, 2.0], 1.0)
TILTED /= TILTED.sum(axis=1, keepdims=True)
Y3 = np.array(["a", "b", "c"])[(TILTED.cumsum(axis=1) < RNG.random(SIZE)[:, None]).sum(axis=1)]


def test_each_group_is_predicted_in_its_observed_proportions():
    rule = ProportionRule().fit(SCORE, Y, by=REGION)
    predicted = rule(SCORE, by=REGION)
    for region in ("east", "north", "south"):
        own = region == REGION
        assert np.sum(predicted[own] == "yes") == np.sum(Y[own] == "yes")
        assert rule.after_.groups[region].size == own.sum()
    assert np.abs(rule.after_.difference).max() == 0
    overall = ProportionRule().fit(SCORE, Y)
    assert np.sum(overall(SCORE) == "yes") == np.sum(Y == "yes")
    # One threshold meets the total proportions, but not those of the regions.
    alone = cb.metrics.proportions(Y, overall(SCORE), by=REGION)
    assert max(abs(alone.groups["east"].difference[1]), abs(alone.groups["north"].difference[1])) > 0.05
    assert cb.evaluate(Y, cb.Labels(overall(SCORE)), by=REGION).groups["east"].verdict == "miscalibrated"


def test_before_and_after_are_the_proportions_of_the_fitted_rows():
    rule = ProportionRule().fit(SCORE, Y, by=REGION)
    usual = cb.metrics.proportions(Y, np.where(SCORE > 0.5, "yes", "no"), by=REGION)
    chosen = cb.metrics.proportions(Y, rule(SCORE, by=REGION), by=REGION)
    for found, expected in ((rule.before_, usual), (rule.after_, chosen)):
        assert found.confusion.tolist() == expected.confusion.tolist()
        assert {k: g.confusion.tolist() for k, g in found.groups.items()} == {
            k: g.confusion.tolist() for k, g in expected.groups.items()
        }


def test_several_classes_have_weights_in_each_group():
    rule = ProportionRule().fit(PROBA, Y3, by=REGION)
    assert set(rule.group_rules_) == {"east", "north", "south"}
    for region, weights in rule.group_rules_.items():
        own = region == REGION
        share = np.array([np.mean(Y3[own] == label) for label in "abc"])
        assert weights.tolist() == best_weights(PROBA[own], np.ones(own.sum()), share).tolist()
        assert np.abs(rule.after_.groups[region].difference).max() < 0.01
    assert np.abs(rule.before_.groups["east"].difference).max() > 0.05
    two = ProportionRule().fit(np.column_stack([1 - SCORE, SCORE]), Y)
    assert (
        two.rule_ == ProportionRule().fit(SCORE, Y).rule_ == best_threshold(SCORE, np.ones(SIZE), np.mean(Y == "yes"))
    )


def test_small_and_new_groups_have_the_rule_of_all_rows():
    few = np.where(np.arange(SIZE) < 20, "few", REGION)
    rule = ProportionRule().fit(SCORE, Y, by=few)
    assert set(rule.group_rules_) == {"east", "north", "south"}
    assert set(rule.after_.groups) == {"east", "few", "north", "south"}
    overall = ProportionRule().fit(SCORE, Y)
    for name in ("few", "never seen"):
        assert (rule(SCORE[:50], by=np.full(50, name)) == overall(SCORE[:50])).all()
    none = ProportionRule(min_rows=10_000).fit(SCORE, Y, by=REGION)
    assert (none(SCORE, by=REGION) == overall(SCORE)).all()
    assert "few" in ProportionRule(min_rows=10).fit(SCORE, Y, by=few).group_rules_


def test_groups_are_combinations_of_columns():
    year = RNG.integers(2024, 2026, SIZE)
    rule = ProportionRule().fit(SCORE, Y, by={"region": REGION, "year": year})
    assert ("east", 2024) in rule.group_rules_
    own = (REGION == "east") & (year == 2024)
    predicted = rule(SCORE[own], by=[REGION[own], year[own]])
    assert np.sum(predicted == "yes") == np.sum(Y[own] == "yes")


def test_weights_count_as_rows_and_targets_replace_observed_shares():
    times = RNG.integers(1, 4, SIZE)
    weighted = ProportionRule().fit(SCORE, Y, times, by=REGION)
    repeated = ProportionRule().fit(np.repeat(SCORE, times), np.repeat(Y, times), by=np.repeat(REGION, times))
    assert weighted.group_rules_ == repeated.group_rules_
    half = ProportionRule(target={"no": 0.5, "yes": 0.5}).fit(SCORE, Y, by=REGION)
    for region in ("east", "north"):
        own = region == REGION
        assert np.mean(half(SCORE[own], by=REGION[own]) == "yes") == pytest.approx(0.5, abs=0.002)


@pytest.mark.parametrize(
    ("make", "X", "y", "by"),
    [
        (ProportionRule, SCORE, Y, None),
        (ProportionRule, SCORE, Y, REGION),
        (ProportionRule, PROBA, Y3, {"region": REGION, "half": np.arange(SIZE) % 2}),
        (lambda: ProportionRule(target={"no": 0.9, "yes": 0.1}, min_rows=5), SCORE, Y, REGION),
        (ProportionRule, SCORE / 2, np.where(Y == "yes", 1, 0), REGION),
    ],
)
def test_a_rule_is_saved_and_loaded_bitwise(make, X, y, by, tmp_path):
    rule = make().fit(X, y, by=by)
    path = tmp_path / "rule.json"
    cb.save(rule, path)
    again = cb.load(path)
    assert (again(X, by=by) == rule(X, by=by)).all()
    assert again.get_params() == rule.get_params()
    assert again.classes_.dtype == rule.classes_.dtype
    assert set(again.group_rules_) == set(rule.group_rules_)
    assert again.after_ is None
    cb.save(again, tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_text() == path.read_text()


def test_a_threshold_that_no_score_reaches_is_saved(tmp_path):
    rule = ProportionRule(target={0: 1.0, 1: 0.0}).fit([0.2, 0.4, 0.6], [0, 1, 0])
    assert rule.rule_ == np.inf
    cb.save(rule, tmp_path / "rule.json")
    assert cb.load(tmp_path / "rule.json")([0.9, 1.0]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rule": [0.5, 1.0]}, "a rule of ProportionRule must be a threshold"),
        ({"groups": [{"group": "a"}]}, "groups of ProportionRule must be a list"),
        ({"classes": ["yes", "yes"]}, "classes must be a list of different labels"),
        ({"more": 1}, "no field 'more'"),
    ],
)
def test_a_changed_file_is_refused(change, text):
    from calibrant.export import calibrator_files

    data = json.loads(json.dumps(calibrator_files.calibrator_to_dict(ProportionRule().fit(SCORE, Y))))
    with pytest.raises(cb.InputError, match=text):
        calibrator_files.calibrator_from_dict(data | change)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ProportionRule().fit(SCORE, Y, by=REGION)(SCORE), "by must be given, as in the fit"),
        (lambda: ProportionRule().fit(SCORE, Y3), "X must have one column for each class; got 2 classes"),
        (lambda: ProportionRule().fit(PROBA, Y3)(PROBA[:, :2] / PROBA[:, :2].sum(1)[:, None]), "3 classes; got 2"),
        (lambda: ProportionRule(min_rows=0).fit(SCORE, Y), "min_rows must be"),
        (lambda: ProportionRule(target={"yes": 1.0}).fit(SCORE, Y), "target must have a share for each"),
        (lambda: ProportionRule().fit(np.where(SCORE > 0.9, np.nan, SCORE), Y[:, None][:, 0][:3]), "rows"),
        (lambda: ProportionRule().fit(SCORE, Y, by=REGION[:-1]), "by has 1,499 rows"),
    ],
)
def test_bad_input_is_refused(call, text):
    with pytest.raises(cb.InputError, match=text):
        call()


def test_a_rule_is_cloned_as_an_estimator():
    rule = ProportionRule(target={"no": 0.5, "yes": 0.5}, min_rows=7)
    assert clone(rule).get_params() == rule.get_params()
    assert repr(ProportionRule(min_rows=7)) == "ProportionRule(min_rows=7)"
