"""Calibrated models: out-of-fold scores, ensembles, metadata."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import calibrant as cb

X, Y = make_classification(1500, n_informative=5, n_redundant=10, flip_y=0.1, weights=[0.7], random_state=0)
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)


def test_the_calibrator_is_fitted_on_out_of_fold_scores():
    folds = StratifiedKFold(5)
    model = cb.CalibratedModel(GaussianNB(), cb.Isotonic(), ensemble=False, cv=folds).fit(X, Y)
    p = cross_val_predict(GaussianNB(), X, Y, cv=folds, method="predict_proba")[:, 1]
    by_hand = cb.Isotonic().fit(p, Y)
    own = GaussianNB().fit(X, Y).predict_proba(X)[:, 1]
    assert np.array_equal(model.predict_proba(X)[:, 1], by_hand(own))
    assert model.table_ == cb.ScoreTable.from_arrays(Y, p)
    assert cb.brier(Y, by_hand(p)) < cb.brier(Y, p)


def test_a_frozen_model_is_left_as_it_is():
    fitted = GaussianNB().fit(X[:700], Y[:700])
    before = fitted.predict_proba(X)
    model = cb.CalibratedModel(FrozenEstimator(fitted), cb.Platt()).fit(X[700:], Y[700:])
    assert np.array_equal(fitted.predict_proba(X), before)
    expected = cb.Platt().fit(before[700:, 1], Y[700:])(before[:, 1])
    assert np.array_equal(model.predict_proba(X)[:, 1], expected)
    with pytest.raises(cb.InputError, match="estimator must be fitted if it is frozen"):
        cb.CalibratedModel(FrozenEstimator(GaussianNB())).fit(X, Y)


def test_margins_are_calibrated_too():
    model = cb.CalibratedModel(LinearSVC(), cv=3).fit(X, Y)
    assert isinstance(model.calibrator_, cb.Isotonic)
    assert cb.CalibratedModel(LinearSVC(), "platt", cv=3).fit(X, Y).calibrator_.on == "score"
    assert model.table_ is None
    assert cb.evaluate(Y, model.predict_proba(X)[:, 1], n_resamples=199).metrics
    with pytest.raises(cb.InputError, match="margins"):
        cb.CalibratedModel(LinearSVC(), cb.Beta()).fit(X, Y)
    multi = cb.CalibratedModel(LinearSVC(), cv=3).fit(X3, Y3)
    assert multi.predict_proba(X3).sum(axis=1) == pytest.approx(np.ones(len(X3)))


def test_labels_of_any_kind_and_sparse_rows():
    sparse = pytest.importorskip("scipy.sparse")
    names = np.array(["no", "yes"])[Y]
    model = cb.CalibratedModel(LogisticRegression(), cv=3).fit(sparse.csr_matrix(X), names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(sparse.csr_matrix(X), names) > 0.7
    plain = cb.CalibratedModel(LogisticRegression(), cv=3).fit(X, Y)
    assert model.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-6)


class Remembers(ClassifierMixin, BaseEstimator):
    """Says the shares of the classes that it saw, and keeps what it was given."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        Remembers.seen.append((len(y), None if sample_weight is None else np.array(sample_weight)))
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


def test_a_fold_that_lacks_a_class_keeps_the_columns_of_all():
    y = np.array([0] * 20 + [1] * 20 + [2] * 20)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    rows = np.zeros((60, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        model = cb.CalibratedModel(Remembers(), cv=folds).fit(rows, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(rows).shape == (60, 3)


def test_weights_reach_classifier_and_calibrator():
    weight = np.where(Y == 1, 3.0, 1.0)
    model = cb.CalibratedModel(LogisticRegression(), cv=3).fit(X, Y, sample_weight=weight)
    doubled = np.repeat(np.arange(len(Y)), weight.astype(int))
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(Y[doubled].mean(), abs=0.1)
    assert model.table_.size == weight.sum()
    Remembers.seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        for ensemble, sizes in ((True, [750, 750]), (False, [750, 750, 1500])):
            Remembers.seen.clear()
            cb.CalibratedModel(Remembers(), ensemble=ensemble, cv=2).fit(X, Y, sample_weight=weight)
            assert [size for size, _ in Remembers.seen] == sizes
            assert all(len(given) == size for size, given in Remembers.seen)


def test_a_classifier_without_weights_gets_a_note():
    class NoWeights(GaussianNB):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.warns(cb.CalibrantWarning, match="takes no sample_weight"):
        cb.CalibratedModel(NoWeights(), cv=2).fit(X, Y, sample_weight=np.ones(len(Y)))


def test_metadata_are_routed():
    groups = np.arange(len(Y)) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(3).set_split_request(groups=True)
        inner = LogisticRegression().set_fit_request(sample_weight=False)
        model = cb.CalibratedModel(inner, cv=splitter).set_fit_request(sample_weight=True)
        model.fit(X, Y, sample_weight=np.ones(len(Y)), groups=groups)
    p = cross_val_predict(LogisticRegression(), X, Y, groups=groups, cv=GroupKFold(3), method="predict_proba")[:, 1]
    assert model.table_.score == pytest.approx(np.unique(p), abs=1e-9)


@pytest.mark.xdist_group("jobs")  # one pool of processes serves them
def test_the_number_of_jobs_has_no_effect():
    one, two = (cb.CalibratedModel(GaussianNB(), cv=3, n_jobs=n).fit(X, Y).predict_proba(X) for n in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("estimator", "calibrator", "words"),
    [
        (RidgeClassifier(), "isotone", "Did you mean 'isotonic'"),
        (RidgeClassifier(), RidgeClassifier(), "calibrant's calibrators"),
        (BaseEstimator(), None, "must have predict_proba or decision_function"),
    ],
)
def test_uncalibratable_estimators_raise_with_a_reason(estimator, calibrator, words):
    with pytest.raises(cb.InputError, match=words):
        cb.CalibratedModel(estimator, calibrator).fit(X, Y)
    with pytest.raises(cb.InputError, match="one class"):
        cb.CalibratedModel(GaussianNB()).fit(X, np.zeros(len(Y)))


def test_a_calibrated_model_goes_into_a_grid_search():
    search = GridSearchCV(
        cb.CalibratedModel(GaussianNB(), cv=2),
        {"calibrator": [cb.Platt(), cb.Isotonic()], "estimator__var_smoothing": [1e-9, 1e-3]},
        scoring=cb.scorers.brier,
        cv=3,
    ).fit(X, Y)
    assert search.best_score_ < 0


def test_a_frozen_models_classes_are_its_own():
    frozen = FrozenEstimator(GaussianNB().fit(X3, Y3))
    some = Y3 < 2
    with pytest.warns(cb.CalibrantWarning, match="outcomes are equal"):  # of the class that no row has
        cb.CalibratedModel(frozen, "platt").fit(X3[some], Y3[some])
    model = cb.CalibratedModel(frozen).fit(X3[some], Y3[some])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X3).shape == (len(X3), 3)
    with pytest.raises(cb.InputError, match="labels of the classes"):
        cb.CalibratedModel(frozen).fit(X3, Y3.astype(str))
    binary = FrozenEstimator(GaussianNB().fit(X, Y))
    few = cb.CalibratedModel(binary, cb.Isotonic(), cv=GroupKFold(3)).fit(X[:5], Y[:5])  # no folds are asked for
    assert few.predict_proba(X).shape == (len(X), 2)
    ones = cb.CalibratedModel(binary, cb.Isotonic()).fit(X[Y == 1], Y[Y == 1])
    assert ones.predict_proba(X)[:, 1].min() > 0.9


@pytest.mark.slow
def test_rows_tested_twice_count_once():
    from sklearn.model_selection import RepeatedStratifiedKFold

    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
    model = cb.CalibratedModel(GaussianNB(), cv=folds).fit(X, Y)
    assert model.table_.size == len(Y)
    once = cb.AutoCalibrator(LogisticRegression(), {"beta": cb.Beta()}, n_resamples=199).fit(X, Y).ranking_
    often = cb.AutoCalibrator(LogisticRegression(), {"beta": cb.Beta()}, n_resamples=199, cv=folds).fit(X, Y).ranking_
    widths = [r.candidates[0].high - r.candidates[0].low for r in (once, often)]
    assert widths[1] == pytest.approx(widths[0], rel=0.3)


def test_indexes_that_differ_are_refused():
    pd = pytest.importorskip("pandas")
    frame, y = pd.DataFrame(X), pd.Series(Y)
    for options in ({"y": y.iloc[::-1]}, {"y": y, "sample_weight": pd.Series(np.ones(len(Y))).iloc[::-1]}):
        with pytest.raises(cb.InputError, match="indexes"):
            cb.CalibratedModel(GaussianNB()).fit(frame, **options)
    assert cb.CalibratedModel(GaussianNB(), cv=2).fit(frame, y).predict_proba(frame).shape == (len(Y), 2)


@pytest.mark.parametrize(("rows", "y"), [(X, Y), (X3, Y3)])
@pytest.mark.parametrize("cal", [cb.Isotonic(), cb.Platt(on="score")], ids=repr)
def test_an_ensemble_averages_the_calibrated_models_of_folds(rows, y, cal):
    folds = StratifiedKFold(4)
    model = cb.CalibratedModel(GaussianNB(), cal, cv=folds).fit(rows, y)
    held_out = cross_val_predict(GaussianNB(), rows, y, cv=folds, method="predict_proba")
    several = len(np.unique(y)) > 2
    one = cb.calibrators.OneVsRest(cal).fit(held_out, y) if several else clone(cal).fit(held_out[:, 1], y)
    parts = []
    for train, _ in folds.split(rows, y):
        scores = GaussianNB().fit(rows[train], y[train]).predict_proba(rows)
        parts.append(one(scores) if several else np.column_stack([1 - one(scores[:, 1]), one(scores[:, 1])]))
    assert model.predict_proba(rows) == pytest.approx(np.mean(parts, axis=0), abs=1e-12)
    assert len(model.estimators_) == 4
    assert not hasattr(model, "estimator_")


def test_the_default_calibrator_is_isotonic():
    for classifier in (GaussianNB(), LinearSVC()):
        assert isinstance(cb.CalibratedModel(classifier, cv=3).fit(X, Y).calibrator_, cb.Isotonic)
        several = cb.CalibratedModel(classifier, cv=3).fit(X3, Y3).calibrator_
        assert isinstance(several.calibrators_[0], cb.Isotonic)


def test_an_ensemble_has_a_table_of_out_of_fold_scores():
    folds = StratifiedKFold(5)
    one, many = (cb.CalibratedModel(GaussianNB(), ensemble=each, cv=folds).fit(X, Y) for each in (False, True))
    assert one.table_ == many.table_
    again = many.set_params(ensemble=False).fit(X, Y)
    assert np.array_equal(again.predict_proba(X), one.predict_proba(X))
    assert not hasattr(again, "estimators_")


def test_a_frozen_model_has_one_calibrator_in_any_case():
    frozen = FrozenEstimator(GaussianNB().fit(X[:700], Y[:700]))
    one, many = (cb.CalibratedModel(frozen, ensemble=each).fit(X[700:], Y[700:]) for each in (False, True))
    assert np.array_equal(one.predict_proba(X), many.predict_proba(X))
    assert not hasattr(many, "estimators_")


@pytest.mark.xdist_group("jobs")
def test_the_number_of_jobs_has_no_effect_on_an_ensemble():
    one, two = (cb.CalibratedModel(GaussianNB(), "beta", cv=3, n_jobs=n).fit(X3, Y3).predict_proba(X3) for n in (1, 2))
    assert np.array_equal(one, two)


def test_an_ensemble_of_isotonic_maps_has_a_lower_log_loss():
    gains = []
    for seed in range(6):
        rows, y = make_classification(3000, n_informative=5, n_redundant=10, flip_y=0.1, random_state=seed)
        losses = []
        for ensemble in (False, True):
            model = cb.CalibratedModel(
                DecisionTreeClassifier(max_depth=8, random_state=0), "isotonic", ensemble=ensemble
            )
            losses.append(cb.log_loss(y[1000:], model.fit(rows[:1000], y[:1000]).predict_proba(rows[1000:])[:, 1]))
        gains.append(losses[0] - losses[1])
    assert min(gains) > 0
