"""Smoothed probabilities of trees and forests."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import calibrant as cb

X, Y = make_classification(1500, n_informative=5, n_redundant=10, flip_y=0.1, weights=[0.7], random_state=0)
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)


def leaf_counts(tree, rows, y, classes):
    """Rows of each class in the leaf of every row, counted from the rows themselves."""
    leaf = tree.apply(rows)
    return np.array([[np.sum((leaf == own) & (y == c)) for c in classes] for own in leaf])


def test_smoothed_leaves_by_their_formulas():
    tree = DecisionTreeClassifier(min_samples_leaf=3, random_state=0).fit(X, Y)
    k = leaf_counts(tree, X, Y, [0, 1])
    n, base = k.sum(axis=1), Y.mean()
    frozen = FrozenEstimator(tree)
    laplace = cb.calibrators.TreeSmoothing(frozen, "laplace").fit(X, Y).predict_proba(X)[:, 1]
    assert laplace == pytest.approx((k[:, 1] + 1) / (n + 2))
    m_estimate = cb.calibrators.TreeSmoothing(frozen).fit(X, Y)
    assert m_estimate.m_ * base == pytest.approx(10)
    assert m_estimate.predict_proba(X)[:, 1] == pytest.approx((k[:, 1] + 10) / (n + 10 / base))
    assert cb.calibrators.TreeSmoothing(frozen, m=0).fit(X, Y).predict_proba(X) == pytest.approx(tree.predict_proba(X))


def test_curtailment_climbs_to_a_node_with_enough_rows():
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    smoothed = (
        cb.calibrators.TreeSmoothing(FrozenEstimator(tree), "curtailment", min_rows=50).fit(X, Y).predict_proba(X)[:, 1]
    )
    reached = tree.decision_path(X).toarray().astype(bool)
    size = reached.sum(axis=0)
    for row in range(0, len(X), 37):
        above = [node for node in np.flatnonzero(reached[row]) if size[node] >= 50]
        node = min(above, key=lambda each: size[each])  # sizes fall on the way down
        assert smoothed[row] == pytest.approx(Y[reached[:, node]].mean())


@pytest.mark.parametrize("method", ["m-estimate", "laplace", "curtailment"])
def test_smoothing_helps_trees_and_several_classes(method):
    for rows, y in ((X, Y), (X3, Y3)):
        half = len(y) // 2
        tree = DecisionTreeClassifier(random_state=0)
        plain = tree.fit(rows[:half], y[:half]).predict_proba(rows[half:])
        smooth = cb.calibrators.TreeSmoothing(tree, method).fit(rows[:half], y[:half]).predict_proba(rows[half:])
        assert smooth.sum(axis=1) == pytest.approx(np.ones(len(smooth)))
        actual = np.eye(plain.shape[1])[y[half:]]
        assert np.mean((smooth - actual) ** 2) < np.mean((plain - actual) ** 2)


def test_a_forest_is_the_mean_of_its_smoothed_trees():
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        forest = kind(7, random_state=0).fit(X, Y)
        model = cb.calibrators.TreeSmoothing(FrozenEstimator(forest), "laplace").fit(X, Y)
        each = [cb.calibrators.TreeSmoothing(FrozenEstimator(tree), "laplace").fit(X, Y) for tree in forest.estimators_]
        assert model.predict_proba(X) == pytest.approx(np.mean([one.predict_proba(X) for one in each], axis=0))
        untouched = cb.calibrators.TreeSmoothing(FrozenEstimator(forest), m=0).fit(X, Y)
        assert untouched.predict_proba(X) == pytest.approx(forest.predict_proba(X))


@pytest.mark.parametrize("estimator", [LogisticRegression(), GradientBoostingClassifier(n_estimators=3)])
def test_estimators_without_classification_trees_are_refused(estimator):
    with pytest.raises(cb.InputError, match="estimator must be a decision tree"):
        cb.calibrators.TreeSmoothing(estimator).fit(X, Y)


def test_smoothing_takes_the_sum_of_weights_as_the_number_of_rows():
    tree = DecisionTreeClassifier(min_weight_fraction_leaf=0.02, random_state=0)
    plain = cb.calibrators.TreeSmoothing(tree, "laplace").fit(X, Y).predict_proba(X)
    again = np.repeat(np.arange(len(Y)), 4)
    quarters = cb.calibrators.TreeSmoothing(tree, "laplace").fit(
        X[again], Y[again], sample_weight=np.full(4 * len(Y), 0.25)
    )
    assert quarters.predict_proba(X) == pytest.approx(plain, abs=1e-9)
    with pytest.raises(cb.InputError, match="estimator must be fitted if it is frozen"):
        cb.calibrators.TreeSmoothing(FrozenEstimator(tree)).fit(X, Y)


def test_settings_of_smoothing_are_checked():
    for options in ({"method": "magic"}, {"m": -1}, {"min_rows": np.nan}):
        with pytest.raises(cb.InputError, match="must be"):
            cb.calibrators.TreeSmoothing(DecisionTreeClassifier(), **options).fit(X, Y)
