"""The comparison with scikit-learn: shared fits, criteria, paired differences and resumption."""

import inspect

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")

import pandas as pd
from scipy import stats
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import calibrant as cb
from research.studies import scikit_learn as study


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC(random_state=0)], ids=["probabilities", "margins"])
def test_shared_fits_change_no_prediction(estimator, n_classes):
    X, y = make_classification(300, n_informative=5, n_classes=n_classes, random_state=0)
    shared = study.SharedFit(estimator, {})
    for make in (cb.CalibratedModel, CalibratedClassifierCV):
        ours, plain = (make(each).fit(X, y).predict_proba(X) for each in (shared, estimator))
        assert np.array_equal(ours, plain)
    assert len([key for key in shared.fits if len(key) == 16]) == 5


def test_each_set_of_rows_is_fitted_once():
    X, y = make_classification(200, random_state=0)
    shared = study.SharedFit(GaussianNB(), {})
    first, again = (shared.__sklearn_clone__().fit(X, y) for _ in range(2))
    other = shared.__sklearn_clone__().fit(X[:150], y[:150])
    assert first.fitted_ is again.fitted_
    assert other.fitted_ is not first.fitted_


@pytest.mark.skipif(
    "labels" not in inspect.signature(metrics.brier_score_loss).parameters,
    reason="scikit-learn before 1.7 has no Brier score of several classes",
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_criteria_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 100)
    proba = rng.dirichlet(np.ones(n_classes), 100)
    proba[0] = np.eye(n_classes)[(y[0] + 1) % n_classes]
    brier, log_loss, infinite = study.criteria(proba, y)
    labels = range(n_classes)
    scores = proba[:, 1] if n_classes == 2 else proba
    assert brier == pytest.approx(metrics.brier_score_loss(y, scores, labels=labels), rel=1e-12)
    assert log_loss == pytest.approx(metrics.log_loss(y, proba, labels=labels), rel=1e-12)
    assert infinite == 1


def test_paired_differences_without_overlap_are_those_of_the_t_test():
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    found, expected = study.paired(a - b, 0.0), stats.ttest_rel(a, b)
    low, high = expected.confidence_interval(0.95)
    assert found["p"] == found["p without correction"] == pytest.approx(expected.pvalue)
    assert (found["low"], found["high"]) == pytest.approx((low, high))


def test_overlap_of_splits_widens_the_interval():
    differences = np.random.default_rng(0).normal(size=10)
    plain, corrected = (study.paired(differences, ratio) for ratio in (0.0, 0.5))
    widths = [found["high"] - found["low"] for found in (plain, corrected)]
    assert widths[1] == pytest.approx(widths[0] * np.sqrt(1 + 10 * 0.5))


def test_equal_methods_do_not_differ():
    found = study.paired(np.zeros(5), 0.5)
    assert found["difference"] == 0
    assert np.isnan(found["p"])


def values(better):
    rng = np.random.default_rng(0)
    rows = []
    for name in ("one", "two"):
        for seed in range(8):
            row = {"set": name, "model": "model", "split": seed, "train": 300, "test": 200}
            for method in ("CalibratedModel()", "Isotonic", *study.SCIKIT_LEARN, "sigmoid, ensemble"):
                worse = 0.0 if method.startswith(("Calibrated", "Isotonic")) else better
                row |= {f"{method} | {c}": 0.2 + worse + 1e-3 * rng.random() for c in study.CRITERIA}
                row[f"{method} | infinite"] = 0
            for theirs in ("isotonic, ensemble", "temperature, ensemble"):
                row |= {f"{theirs} | {c}": row[f"sigmoid, ensemble | {c}"] for c in (*study.CRITERIA, "infinite")}
            rows.append(row)
    return pd.DataFrame(rows)


def test_comparisons_adjust_over_all_cells_of_a_pair():
    compared = study.comparisons(values(better=0.05))
    own = compared[(compared["ours"] == "CalibratedModel()") & (compared["scikit-learn"] == "sigmoid")]
    assert len(own) == 2 * len(study.CRITERIA)
    assert (own["adjusted p"] >= own["p"]).all()
    assert (own["difference"] < 0).all()
    assert (own["adjusted p"] <= 0.05).all()


def test_the_page_counts_where_the_default_is_worse():
    assert "shown to be worse in 0 of 24 comparisons" in study.page(values(better=0.05))
    assert "shown to be worse in 24 of 24 comparisons" in study.page(values(better=-0.05))
    assert "has not been run" in study.page(None)


def test_finished_splits_are_not_computed_again(tmp_path, monkeypatch):
    seen = []

    def fake(work, tasks, what):
        seen.extend(tasks)
        return (
            dict.fromkeys(study.columns(), 0.0) | dict(zip(("set", "model", "split"), t, strict=True)) for t in tasks
        )

    monkeypatch.setattr(study, "spread_over_cores", fake)
    tasks = [("a", "m", 0), ("a", "m", 1), ("b", "m", 0)]
    study.run(tasks[:2], tmp_path / "values.csv")
    found = study.run(tasks, tmp_path / "values.csv")
    assert seen == tasks
    assert list(found["split"]) == [0, 1, 0]
