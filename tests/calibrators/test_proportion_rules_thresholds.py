"""Thresholds and weights of classifiers by class proportions."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import calibrant as cb
from calibrant.calibrators.proportion_rules import best_threshold, best_weights

X, Y = make_classification(1500, n_informative=5, n_redundant=10, flip_y=0.1, weights=[0.7], random_state=0)
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)


def test_classes_are_predicted_as_often_as_they_occur():
    model = cb.calibrators.ProportionThreshold(LogisticRegression()).fit(X, Y)
    assert model.after_.predicted == pytest.approx(model.after_.actual, abs=1 / len(Y))
    assert model.accuracy_cost_ == pytest.approx(model.before_.accuracy - model.after_.accuracy)
    assert model.predict(X).mean() == pytest.approx(Y.mean(), abs=0.03)
    assert np.array_equal(model.predict_proba(X), LogisticRegression().fit(X, Y).predict_proba(X))
    margins = cb.calibrators.ProportionThreshold(LinearSVC()).fit(X, Y)
    assert margins.after_.predicted == pytest.approx(margins.after_.actual, abs=1 / len(Y))
    assert not hasattr(margins, "predict_proba")


def test_weights_count_in_proportions_as_rows_do():
    weight = np.where(Y == 1, 3, 1)
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    again = np.repeat(np.arange(len(Y)), weight)
    weighted, repeated = cb.calibrators.ProportionThreshold(frozen), cb.calibrators.ProportionThreshold(frozen)
    weighted.fit(X, Y, sample_weight=weight)
    repeated.fit(X[again], Y[again])
    assert weighted.threshold_ == repeated.threshold_
    assert np.array_equal(weighted.after_.confusion, repeated.after_.confusion)
    assert weighted.accuracy_cost_ == repeated.accuracy_cost_
    half = cb.calibrators.ProportionThreshold(frozen).fit(X, Y, sample_weight=weight / 7)
    assert half.after_.predicted == pytest.approx(weighted.after_.predicted, abs=0.03)


def test_other_proportions_can_be_asked_for():
    model = cb.calibrators.ProportionThreshold(LogisticRegression(), target={0: 0.5, 1: 0.5}).fit(X, Y)
    assert model.after_.predicted[1] == pytest.approx(0.5, abs=0.001)
    for target in ({0: 0.5}, {0: 0.5, 1: 0.6}, {0: 1.5, 1: -0.5}, 0.3):
        with pytest.raises(cb.InputError, match="target"):
            cb.calibrators.ProportionThreshold(LogisticRegression(), target=target).fit(X, Y)


def test_the_threshold_is_the_best_there_is(rng):
    for _ in range(50):
        scores = rng.integers(0, 12, 40) / 12
        weight = rng.integers(1, 4, 40).astype(float)
        share = rng.random()
        found = best_threshold(scores, weight, share)
        off = [abs(weight[scores >= t].sum() / weight.sum() - share) for t in [*np.unique(scores), np.inf]]
        assert abs(weight[scores >= found].sum() / weight.sum() - share) == pytest.approx(min(off))


def test_weights_of_several_classes_meet_their_shares(rng):
    for n_classes in (3, 5, 10):
        proba = rng.dirichlet(rng.uniform(0.3, 3, n_classes), 3000)
        share = rng.dirichlet(np.full(n_classes, 5))
        weights = best_weights(proba, np.ones(3000), share)
        predicted = np.bincount((proba * weights).argmax(axis=1), minlength=n_classes) / 3000
        assert np.abs(predicted - share).sum() / 2 < 0.003
        assert weights.max() == 1
    model = cb.calibrators.ProportionThreshold(GaussianNB(), cv=3).fit(X3, Y3)
    assert np.abs(model.after_.difference).max() < 0.003
    assert np.abs(model.before_.difference).max() > 0.003
    assert set(model.predict(X3)) <= {0, 1, 2}
