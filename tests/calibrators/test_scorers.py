"""Scorers of metrics for scikit-learn."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

import calibrant as cb

X, Y = make_classification(1500, n_informative=5, n_redundant=10, flip_y=0.1, weights=[0.7], random_state=0)
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("name", cb.metrics.metric_names("binary"))
def test_every_metric_scores(name):
    for y in (Y, np.array(["no", "yes"])[Y]):
        found = cross_val_score(GaussianNB(), X, y, scoring=cb.scorers[name], cv=3, error_score="raise")
        assert np.isfinite(found).all()
    fold = next(StratifiedKFold(3).split(X, Y))
    p = GaussianNB().fit(X[fold[0]], Y[fold[0]]).predict_proba(X[fold[1]])[:, 1]
    value = cb.METRICS[name]().value(cb.ScoreTable.from_arrays(Y[fold[1]], p))
    direction = cb.METRICS[name]().direction
    assert direction == {"auc": "higher", "bias": 0.0, "oe_ratio": 1.0}.get(name, "lower")
    expected = {"lower": -value, "higher": value}
    expected = expected[direction] if direction in expected else -abs(value - direction)
    assert found[0] == pytest.approx(expected)


def test_scorers_know_the_event_from_the_model():
    model = GaussianNB().fit(X, np.where(Y == 1, 2, 1))
    only = np.flatnonzero(Y == 0)[:50]
    expected = np.mean(model.predict_proba(X[only])[:, 1] ** 2)
    assert cb.scorers.brier(model, X[only], np.ones(50, dtype=int)) == pytest.approx(-expected)


def test_scorers_search_and_take_weights():
    search = GridSearchCV(
        GaussianNB(),
        {"var_smoothing": [1e-9, 1e-1]},
        scoring=cb.scorers.of(cb.metrics.ECC(cost=cb.costs.LinearCost(1, 5))),
        cv=3,
    ).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = GaussianNB().fit(X, Y)
    weight = np.where(Y == 1, 2.0, 1.0)
    weighted = cb.scorers.brier(model, X, Y, sample_weight=weight)
    table = cb.ScoreTable.from_arrays(Y, model.predict_proba(X)[:, 1], sample_weight=weight)
    assert weighted == pytest.approx(-cb.METRICS["brier"]().value(table))
    times = weight.astype(int)
    repeated = cb.scorers.brier(model, np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert cb.scorers.brier(model, X, Y, frequency=times) == repeated
    with pytest.raises(AttributeError, match="no attribute 'accuracy'; its metrics are ece"):
        cb.scorers.accuracy  # noqa: B018
    with pytest.raises(cb.InputError, match="two classes"):
        cb.scorers.brier(GaussianNB().fit(X3, Y3), X3, Y3)
