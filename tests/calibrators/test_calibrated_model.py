"""Models on features: calibrated models, the automatic choice, trees, class proportions, scorers."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import calibrant as cb
from calibrant.calibrators.proportion_rules import best_threshold, best_weights

X, Y = make_classification(1500, n_informative=5, n_redundant=10, flip_y=0.1, weights=[0.7], random_state=0)
X3, Y3 = make_classification(1500, n_informative=6, n_classes=3, flip_y=0.1, random_state=0)


# CalibratedModel


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


# Ensembles


@pytest.mark.parametrize(("rows", "y"), [(X, Y), (X3, Y3)])
@pytest.mark.parametrize("cal", [cb.Isotonic(), cb.Platt(on="score")], ids=repr)
def test_an_ensemble_averages_the_calibrated_models_of_folds(rows, y, cal):
    folds = StratifiedKFold(4)
    model = cb.CalibratedModel(GaussianNB(), cal, cv=folds).fit(rows, y)
    held_out = cross_val_predict(GaussianNB(), rows, y, cv=folds, method="predict_proba")
    several = len(np.unique(y)) > 2
    one = cb.OneVsRest(cal).fit(held_out, y) if several else clone(cal).fit(held_out[:, 1], y)
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


# AutoCalibrator


def test_auto_recalibrates_a_miscalibrated_model():
    model = cb.AutoCalibrator(GaussianNB(), n_resamples=199).fit(X, Y)
    ranking = model.ranking_
    assert model.chosen_ != "uncalibrated"
    assert ranking.candidates[0].name == model.chosen_
    assert [c.value for c in ranking.candidates] == sorted(c.value for c in ranking.candidates)
    binary = {name for name, kind in cb.CALIBRATORS.items() if kind.kind == "binary"}
    assert {c.name for c in ranking.candidates} == {"uncalibrated", *binary} - {"prior_shift", "cats", "caps"}
    for c in ranking.candidates:
        assert c.low <= c.value <= c.high
        if c.name != "uncalibrated":
            assert c.gain_low <= c.gain <= c.gain_high
    assert f"use {model.chosen_}" in repr(ranking)
    assert ranking.to_dict()["chosen"] == model.chosen_
    p = GaussianNB().fit(X, Y).predict_proba(X)[:, 1]
    assert np.array_equal(model.predict_proba(X)[:, 1], model.calibrator_(p))


def test_auto_keeps_a_calibrated_model():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3000, 2))
    y = rng.random(3000) < 1 / (1 + np.exp(-rows[:, 0] - 0.5 * rows[:, 1]))
    model = cb.AutoCalibrator(LogisticRegression(), n_resamples=199).fit(rows, y)
    assert model.chosen_ == "uncalibrated"
    assert isinstance(model.calibrator_, cb.calibrators.Identity)
    assert "leave it alone" in repr(model.ranking_)
    assert np.array_equal(model.predict_proba(rows), LogisticRegression().fit(rows, y).predict_proba(rows))


def test_no_row_is_scored_by_a_model_fitted_on_it():
    """A classifier that remembers its rows would look perfect if any fold leaked."""

    class Parrot(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.known_ = {row.tobytes(): label for row, label in zip(np.asarray(X), y, strict=True)}
            return self

        def predict_proba(self, X):
            event = np.array([{1: 0.99, 0: 0.01}.get(self.known_.get(row.tobytes()), 0.5) for row in np.asarray(X)])
            return np.column_stack([1 - event, event])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        model = cb.AutoCalibrator(Parrot(), {"platt": cb.Platt()}, n_resamples=199).fit(X, Y)
    uncalibrated = next(c for c in model.ranking_.candidates if c.name == "uncalibrated")
    assert uncalibrated.value == pytest.approx(np.log(2))


def test_costs_can_decide():
    metric = cb.ECC(cost=cb.LinearCost(over=1, under=5))
    model = cb.AutoCalibrator(GaussianNB(), scoring=metric, n_resamples=199, cv=3).fit(X, Y)
    assert model.ranking_.metric == "ECC"
    assert {"cats", "caps"} <= {c.name for c in model.ranking_.candidates}
    assert model.chosen_ != "uncalibrated"


def test_a_finite_log_loss_is_preferred_to_an_infinite_one():
    model = cb.AutoCalibrator(
        DecisionTreeClassifier(random_state=0), {"isotonic": cb.Isotonic()}, scoring="log_loss", n_resamples=199, cv=3
    ).fit(X, Y)
    assert model.chosen_ == "isotonic"
    assert model.ranking_.candidates[-1].value == np.inf
    assert model.ranking_.to_dict()["candidates"][-1]["value"] is None


def test_several_classes_margins_frozen_models_and_splits():
    multi = cb.AutoCalibrator(GaussianNB(), cv=3, n_resamples=199).fit(X3, Y3)
    assert multi.predict_proba(X3).shape == (len(X3), 3)
    margins = cb.AutoCalibrator(LinearSVC(), cv=3, n_resamples=199).fit(X, Y)
    assert margins.ranking_.baseline == "platt"
    assert margins.chosen_ == margins.ranking_.candidates[0].name
    frozen = FrozenEstimator(GaussianNB().fit(X[:500], Y[:500]))
    assert cb.AutoCalibrator(frozen, cv=3, n_resamples=199).fit(X[500:], Y[500:]).chosen_ != "uncalibrated"
    splits = list(StratifiedKFold(3).split(X, Y))
    by_splits = cb.AutoCalibrator(GaussianNB(), cv=splits, n_resamples=199).fit(X, Y)
    assert by_splits.chosen_ != "uncalibrated"


def test_the_best_significant_gain_is_chosen():
    rng = np.random.default_rng(1)
    truth = rng.random(4000)
    y = (rng.random(4000) < truth).astype(int)
    shown = np.clip(truth + np.where(truth > 0.5, 0.05, -0.05), 0, 1)
    model = cb.AutoCalibrator(GaussianNB(), {"wild": cb.Platt(), "sure": cb.Beta()}, n_resamples=199)
    noisy = np.clip(truth + rng.normal(0, 0.02, 4000) * (rng.random(4000) < 0.02), 0, 1)
    rows = type("Rows", (), {"code": y, "classes": np.array([0, 1]), "weight": None, "split_params": {}})
    scored = {"uncalibrated": shown, "wild": noisy, "sure": truth}
    scored = {name: np.column_stack([1 - q, q]) for name, q in scored.items()}
    ranking = model._rank(scored, rows, np.arange(4000), {}, cb.METRICS["brier"](), 1.0)
    sure = [c for c in ranking.candidates if c.gain > 0 and c.pvalue <= 0.05]
    assert ranking.chosen == min(sure, key=lambda c: c.value).name


@pytest.mark.parametrize(
    "cv",
    [
        None,
        np.int64(3),
        [(train.tolist(), test.tolist()) for train, test in StratifiedKFold(3).split(X, Y)],
        StratifiedKFold(3).split(X, Y),
    ],
)
def test_folds_of_every_legal_kind(cv):
    model = cb.AutoCalibrator(GaussianNB(), {"beta": cb.Beta()}, cv=cv, n_resamples=49)
    assert model.fit(X, Y).chosen_ in ("beta", "uncalibrated")


def test_too_few_given_splits_are_refused():
    for cv, words in (([], "at least one fold"), (list(StratifiedKFold(2).split(X, Y)), "at least three")):
        with pytest.raises(cb.InputError, match=words):
            cb.AutoCalibrator(GaussianNB(), {"beta": cb.Beta()}, cv=cv, n_resamples=49).fit(X, Y)


def test_groups_are_plotted_in_one_figure():
    again = np.repeat(np.arange(300), 5)
    rows, y = X[again], Y[again]
    options = {"calibrators": {"beta": cb.Beta()}, "scoring": "brier", "n_resamples": 399}
    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(3).set_split_request(groups=True)
        grouped = cb.AutoCalibrator(GaussianNB(), cv=splitter, **options).fit(rows, y, groups=again).ranking_
    # The same folds: how groups of equal size are divided depends on the versions of NumPy and scikit-learn.
    folds = list(GroupKFold(3).split(X[:300], Y[:300], np.arange(300)))
    once = cb.AutoCalibrator(GaussianNB(), cv=folds, **options).fit(X[:300], Y[:300]).ranking_
    widths = [r.candidates[0].high - r.candidates[0].low for r in (grouped, once)]
    assert widths[0] == pytest.approx(widths[1], rel=0.3)  # not a fifth of the variance


def three_classes(heat, size=2000):
    """Class probabilities with logits `heat` times too large, and labels."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 1.2, (size, 3))
    y = (softmax(logits, axis=1).cumsum(axis=1) > rng.random((size, 1))).argmax(axis=1)
    return softmax(heat * logits, axis=1), y


def test_auto_chooses_among_multiclass_calibrators_by_log_loss():
    proba, y = three_classes(heat=2.0)
    auto = cb.AutoCalibrator(cv=3, n_resamples=199).fit(proba, y)
    ranking = auto.ranking_
    assert ranking.metric == "log loss"
    multiclass = {name for name, kind in cb.CALIBRATORS.items() if kind.kind == "multiclass"}
    assert {c.name for c in ranking.candidates} == {"uncalibrated", "isotonic", "beta", *multiclass}
    assert not ranking.failed
    assert auto.chosen_ == ranking.candidates[0].name != "uncalibrated"
    for c in ranking.candidates:
        assert c.low <= c.value <= c.high
    # The cross-fitted log loss of a candidate, by hand.
    losses = []
    for train, test in StratifiedKFold(3).split(proba, y):
        q = cb.SoftmaxTemperature().fit(proba[train], y[train])(proba[test])
        losses.append(-np.log(q[np.arange(len(test)), y[test]]))
    (found,) = (c.value for c in ranking.candidates if c.name == "softmax_temperature")
    assert found == pytest.approx(np.concatenate(losses).mean(), abs=1e-12)
    assert auto.predict_proba(proba) == pytest.approx(clone(auto.calibrator_).fit(proba, y)(proba), abs=1e-12)


def test_auto_keeps_calibrated_class_probabilities():
    proba, y = three_classes(heat=1.0)
    names = ["softmax_temperature", "vector", "dirichlet", "isotonic"]
    auto = cb.AutoCalibrator(calibrators=names, cv=3, n_resamples=199).fit(proba, y)
    assert auto.chosen_ == "uncalibrated"
    assert np.allclose(auto.calibrator_(proba), proba, rtol=1e-15, atol=0)
    assert np.array_equal(auto.predict_proba(proba), proba)


def test_auto_takes_scores_without_a_model():
    p = GaussianNB().fit(X[:700], Y[:700]).predict_proba(X[700:])[:, 1]
    auto = cb.AutoCalibrator(cv=3, n_resamples=199).fit(p, Y[700:])
    assert auto.chosen_ != "uncalibrated"
    assert np.array_equal(auto.predict_proba(p)[:, 1], auto.calibrator_(p))
    column = cb.AutoCalibrator(cv=3, n_resamples=199).fit(p.reshape(-1, 1), Y[700:])
    assert column.chosen_ == auto.chosen_
    with pytest.raises(cb.InputError, match="lie in"):
        cb.AutoCalibrator(cv=3, n_resamples=199).fit(10 * p, Y[700:])
    with pytest.raises(cb.InputError, match="one column for each"):
        cb.AutoCalibrator(cv=3, n_resamples=199).fit(three_classes(1.0)[0], np.arange(2000) % 4)


def test_names_and_mappings_of_names_are_candidates():
    for given in (["platt", "beta"], {"platt": "platt", "beta": cb.Beta()}, "beta"):
        auto = cb.AutoCalibrator(GaussianNB(), given, cv=3, n_resamples=199).fit(X, Y)
        assert {c.name for c in auto.ranking_.candidates} <= {"uncalibrated", "platt", "beta"}
    with pytest.raises(cb.InputError, match="Did you mean 'platt'"):
        cb.AutoCalibrator(GaussianNB(), ["plat"], cv=3, n_resamples=199).fit(X, Y)


def test_a_higher_brier_score_is_a_warning():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    y = (rng.random(2000) < truth).astype(int)

    class Coarse(cb.BinningAverage):
        """One bin for all: a finite log loss, and a high Brier score."""

    p = truth.copy()
    p[:9], y[:9] = 0.0, 1  # an infinite log loss
    with pytest.warns(cb.CalibrantWarning, match="raises the cross-fitted Brier score from 0.1.* to 0.2"):
        auto = cb.AutoCalibrator(calibrators={"coarse": Coarse(n_bins=1)}, scoring="log_loss", cv=3).fit(p, y)
    assert auto.chosen_ == "coarse"


def test_a_candidate_that_fails_is_named():
    y = np.zeros(60, dtype=int)
    y[::10] = 1
    rows = np.column_stack([y * 10.0, np.arange(60)])
    candidates = {"platt": cb.Platt(), "raw": cb.Platt(smoothing=False)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cb.AutoCalibrator(GaussianNB(), candidates, cv=3, n_resamples=199).fit(rows, y)
    assert "separates" in model.ranking_.failed["raw"]
    assert "raw not fitted" in repr(model.ranking_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scoring": "bias"}, "got bias, whose best value is 0"),
        ({"scoring": "accuracy"}, "scoring must be"),
        ({"calibrators": {}}, "calibrators"),
        ({"calibrators": {"uncalibrated": cb.Platt()}}, "uncalibrated"),
        ({"alpha": 2}, "alpha"),
        ({"n_resamples": 50}, "at least 119"),
    ],
)
def test_arguments_of_auto_are_checked(options, words):
    with pytest.raises(cb.InputError, match=words):
        cb.AutoCalibrator(GaussianNB(), **options).fit(X, Y)


def test_rankings_become_frames():
    pd = pytest.importorskip("pandas")
    ranking = cb.AutoCalibrator(GaussianNB(), cv=2, n_resamples=199).fit(X, Y).ranking_
    frame = ranking.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["name"]) == [c.name for c in ranking.candidates]


# Trees


def leaf_counts(tree, rows, y, classes):
    """Rows of each class in the leaf of every row, counted from the rows themselves."""
    leaf = tree.apply(rows)
    return np.array([[np.sum((leaf == own) & (y == c)) for c in classes] for own in leaf])


def test_smoothed_leaves_by_their_formulas():
    tree = DecisionTreeClassifier(min_samples_leaf=3, random_state=0).fit(X, Y)
    k = leaf_counts(tree, X, Y, [0, 1])
    n, base = k.sum(axis=1), Y.mean()
    frozen = FrozenEstimator(tree)
    laplace = cb.TreeSmoothing(frozen, "laplace").fit(X, Y).predict_proba(X)[:, 1]
    assert laplace == pytest.approx((k[:, 1] + 1) / (n + 2))
    m_estimate = cb.TreeSmoothing(frozen).fit(X, Y)
    assert m_estimate.m_ * base == pytest.approx(10)
    assert m_estimate.predict_proba(X)[:, 1] == pytest.approx((k[:, 1] + 10) / (n + 10 / base))
    assert cb.TreeSmoothing(frozen, m=0).fit(X, Y).predict_proba(X) == pytest.approx(tree.predict_proba(X))


def test_curtailment_climbs_to_a_node_with_enough_rows():
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    smoothed = cb.TreeSmoothing(FrozenEstimator(tree), "curtailment", min_rows=50).fit(X, Y).predict_proba(X)[:, 1]
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
        smooth = cb.TreeSmoothing(tree, method).fit(rows[:half], y[:half]).predict_proba(rows[half:])
        assert smooth.sum(axis=1) == pytest.approx(np.ones(len(smooth)))
        actual = np.eye(plain.shape[1])[y[half:]]
        assert np.mean((smooth - actual) ** 2) < np.mean((plain - actual) ** 2)


def test_a_forest_is_the_mean_of_its_smoothed_trees():
    for kind in (RandomForestClassifier, ExtraTreesClassifier):
        forest = kind(7, random_state=0).fit(X, Y)
        model = cb.TreeSmoothing(FrozenEstimator(forest), "laplace").fit(X, Y)
        each = [cb.TreeSmoothing(FrozenEstimator(tree), "laplace").fit(X, Y) for tree in forest.estimators_]
        assert model.predict_proba(X) == pytest.approx(np.mean([one.predict_proba(X) for one in each], axis=0))
        untouched = cb.TreeSmoothing(FrozenEstimator(forest), m=0).fit(X, Y)
        assert untouched.predict_proba(X) == pytest.approx(forest.predict_proba(X))


@pytest.mark.parametrize("estimator", [LogisticRegression(), GradientBoostingClassifier(n_estimators=3)])
def test_estimators_without_classification_trees_are_refused(estimator):
    with pytest.raises(cb.InputError, match="estimator must be a decision tree"):
        cb.TreeSmoothing(estimator).fit(X, Y)


def test_smoothing_takes_the_sum_of_weights_as_the_number_of_rows():
    tree = DecisionTreeClassifier(min_weight_fraction_leaf=0.02, random_state=0)
    plain = cb.TreeSmoothing(tree, "laplace").fit(X, Y).predict_proba(X)
    again = np.repeat(np.arange(len(Y)), 4)
    quarters = cb.TreeSmoothing(tree, "laplace").fit(X[again], Y[again], sample_weight=np.full(4 * len(Y), 0.25))
    assert quarters.predict_proba(X) == pytest.approx(plain, abs=1e-9)
    with pytest.raises(cb.InputError, match="estimator must be fitted if it is frozen"):
        cb.TreeSmoothing(FrozenEstimator(tree)).fit(X, Y)


def test_settings_of_smoothing_are_checked():
    for options in ({"method": "magic"}, {"m": -1}, {"min_rows": np.nan}):
        with pytest.raises(cb.InputError, match="must be"):
            cb.TreeSmoothing(DecisionTreeClassifier(), **options).fit(X, Y)


# Class proportions


def test_classes_are_predicted_as_often_as_they_occur():
    model = cb.ProportionThreshold(LogisticRegression()).fit(X, Y)
    assert model.after_.predicted == pytest.approx(model.after_.actual, abs=1 / len(Y))
    assert model.accuracy_cost_ == pytest.approx(model.before_.accuracy - model.after_.accuracy)
    assert model.predict(X).mean() == pytest.approx(Y.mean(), abs=0.03)
    assert np.array_equal(model.predict_proba(X), LogisticRegression().fit(X, Y).predict_proba(X))
    margins = cb.ProportionThreshold(LinearSVC()).fit(X, Y)
    assert margins.after_.predicted == pytest.approx(margins.after_.actual, abs=1 / len(Y))
    assert not hasattr(margins, "predict_proba")


def test_weights_count_in_proportions_as_rows_do():
    weight = np.where(Y == 1, 3, 1)
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    again = np.repeat(np.arange(len(Y)), weight)
    weighted, repeated = cb.ProportionThreshold(frozen), cb.ProportionThreshold(frozen)
    weighted.fit(X, Y, sample_weight=weight)
    repeated.fit(X[again], Y[again])
    assert weighted.threshold_ == repeated.threshold_
    assert np.array_equal(weighted.after_.confusion, repeated.after_.confusion)
    assert weighted.accuracy_cost_ == repeated.accuracy_cost_
    half = cb.ProportionThreshold(frozen).fit(X, Y, sample_weight=weight / 7)
    assert half.after_.predicted == pytest.approx(weighted.after_.predicted, abs=0.03)


def test_other_proportions_can_be_asked_for():
    model = cb.ProportionThreshold(LogisticRegression(), target={0: 0.5, 1: 0.5}).fit(X, Y)
    assert model.after_.predicted[1] == pytest.approx(0.5, abs=0.001)
    for target in ({0: 0.5}, {0: 0.5, 1: 0.6}, {0: 1.5, 1: -0.5}, 0.3):
        with pytest.raises(cb.InputError, match="target"):
            cb.ProportionThreshold(LogisticRegression(), target=target).fit(X, Y)


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
    model = cb.ProportionThreshold(GaussianNB(), cv=3).fit(X3, Y3)
    assert np.abs(model.after_.difference).max() < 0.003
    assert np.abs(model.before_.difference).max() > 0.003
    assert set(model.predict(X3)) <= {0, 1, 2}


# Scorers


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
        GaussianNB(), {"var_smoothing": [1e-9, 1e-1]}, scoring=cb.scorers.of(cb.ECC(cost=cb.LinearCost(1, 5))), cv=3
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
