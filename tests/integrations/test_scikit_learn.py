"""Calibrant in scikit-learn: scorers, metadata routing, pipelines, HTML, diagrams."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cb
from calibrant.metrics import metric_names

X, Y = make_classification(600, flip_y=0.1, random_state=0)
TARGET = np.exp(X[:, 0] / 2) + 5 + 0.3 * np.random.default_rng(0).normal(size=600)
FOLDS = KFold(3)


def expected_scores(model, names, y, forecast):
    """Values of metrics on each fold, with the sign of scorers."""
    found = {name: [] for name in names}
    for train, test in FOLDS.split(X):
        fitted = sklearn.clone(model).fit(X[train], y[train])
        for name in names:
            metric = cb.METRICS[name]()
            value = float(metric(y[test], forecast(fitted, X[test])))
            direction = getattr(metric, "direction", "lower")
            signed = {"lower": -value, "higher": value}
            found[name].append(signed[direction] if direction in signed else -abs(value - direction))
    return found


MODELS = {
    "binary": (GaussianNB(), Y, lambda model, new: model.predict_proba(new)[:, 1]),
    "point": (LinearRegression(), TARGET, lambda model, new: cb.Point(model.predict(new))),
    "distribution": (BayesianRidge(), TARGET, lambda model, new: cb.Gaussian(*model.predict(new, return_std=True))),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_metric_scores_by_name_in_cross_validate(kind):
    model, y, forecast = MODELS[kind]
    names = metric_names(kind)
    found = cross_validate(model, X, y, scoring=cb.scorers.select(*names), cv=FOLDS, error_score="raise")
    for name, values in expected_scores(model, names, y, forecast).items():
        assert found[f"test_{name}"] == pytest.approx(values, rel=1e-12), name


def test_the_kinds_of_scorers_are_all_kinds_of_metrics():
    assert {name for kind in MODELS for name in metric_names(kind)} == set(cb.METRICS) - set(metric_names("ordinal"))
    with pytest.raises(cb.InputError, match="names must be among ece.*got 'brer'"):
        cb.scorers.select("ece", "brer")


def test_every_metric_function_makes_a_scorer():
    model = GaussianNB().fit(X, Y)
    weight = np.random.default_rng(1).random(600)
    for name in metric_names("binary"):
        function = getattr(cb.metrics, name)
        scorer = make_scorer(function, response_method="predict_proba", greater_is_better=name == "auc")
        sign = 1 if name == "auc" else -1
        assert scorer(model, X, Y) == sign * function(Y, model.predict_proba(X)[:, 1]), name
    scorer = make_scorer(cb.brier, response_method="predict_proba", greater_is_better=False)
    assert scorer(model, X, Y, sample_weight=weight) == cb.scorers.brier(model, X, Y, sample_weight=weight)
    points = LinearRegression().fit(X, TARGET)
    for name in metric_names("point"):
        function = getattr(cb.metrics, name)
        assert make_scorer(function)(points, X, TARGET) == function(TARGET, points.predict(X)), name


def test_weights_are_routed_to_scorers():
    weight = np.random.default_rng(1).random(600)
    with sklearn.config_context(enable_metadata_routing=True):
        scoring = {
            "weighted": cb.scorers.brier.set_score_request(sample_weight=True),
            "plain": cb.scorers.brier.set_score_request(sample_weight=False),
        }
        model = GaussianNB().set_fit_request(sample_weight=False)
        found = cross_validate(model, X, Y, scoring=scoring, cv=FOLDS, params={"sample_weight": weight})
        search = GridSearchCV(model, {"var_smoothing": [1e-9, 1.0]}, scoring=scoring["weighted"], cv=FOLDS)
        search.fit(X, Y, sample_weight=weight)
    for fold, (train, test) in enumerate(FOLDS.split(X)):
        fitted = GaussianNB().fit(X[train], Y[train])
        p = fitted.predict_proba(X[test])[:, 1]
        assert found["test_weighted"][fold] == pytest.approx(-cb.brier(Y[test], p, sample_weight=weight[test]))
        assert found["test_plain"][fold] == pytest.approx(-cb.brier(Y[test], p))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(found["test_weighted"].mean())


def test_weights_reach_metrics_of_points_and_are_refused_for_distributions():
    weight = np.random.default_rng(1).integers(1, 4, 600)
    model = BayesianRidge().fit(X, TARGET)
    scorer = cb.scorers.rmse
    repeated = scorer(model, np.repeat(X, weight, axis=0), np.repeat(TARGET, weight))
    assert scorer(model, X, TARGET, frequency=weight) == pytest.approx(repeated, rel=1e-12)
    assert scorer(model, X, TARGET, sample_weight=weight) != scorer(model, X, TARGET)
    with pytest.raises(cb.InputError, match="sample_weight must be None for CRPS"):
        cb.scorers.crps(model, X, TARGET, sample_weight=weight)


class QuantileModel(RegressorMixin, BaseEstimator):
    """A model whose predict returns quantiles."""

    def fit(self, X, y):
        self.shifts_ = np.quantile(y, [0.1, 0.5, 0.9])
        return self

    def predict(self, X):
        return cb.Quantiles([0.1, 0.5, 0.9], np.tile(self.shifts_, (len(X), 1)))


def test_distributions_come_from_pipelines_and_from_forecasts():
    kernel = ConstantKernel() + WhiteKernel()
    process = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, optimizer=None)).fit(
        X[:100], TARGET[:100]
    )
    forecast = cb.Gaussian(*process.predict(X[:100], return_std=True))
    assert cb.scorers.nll(process, X[:100], TARGET[:100]) == -cb.metrics.nll(TARGET[:100], forecast)
    model = QuantileModel().fit(X, TARGET)
    assert cb.scorers.crps(model, X, TARGET) == -cb.metrics.crps(TARGET, model.predict(X))
    with pytest.raises(cb.InputError, match="must predict distributions for CRPS; got ndarray"):
        cb.scorers.crps(LinearRegression().fit(X, TARGET), X, TARGET)


def test_frames_pass_through_a_pipeline_with_set_output():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    pipeline = make_pipeline(StandardScaler(), cb.CalibratedModel(GaussianNB(), cv=3)).set_output(transform="pandas")
    pipeline.fit(frame, Y)
    assert pipeline[-1].feature_names_in_.tolist() == frame.columns.tolist()
    plain = make_pipeline(StandardScaler(), cb.CalibratedModel(GaussianNB(), cv=3)).fit(X, Y)
    assert np.array_equal(pipeline.predict_proba(frame), plain.predict_proba(X))


def test_estimators_have_html_with_their_parts():
    for fitted in (False, True):
        model = cb.CalibratedModel(GaussianNB(), cb.Platt(), cv=3)
        html = (model.fit(X, Y) if fitted else model)._repr_html_()
        assert "GaussianNB" in html
        assert "Platt" in html
        assert ("<span>Fitted</span>" in html) == fitted
    for name in cb.calibrators.CALIBRATORS:
        assert "sk-estimator" in cb.calibrators.CALIBRATORS[name]()._repr_html_()


def test_the_reliability_diagram_overlays_models_as_scikit_learn_does():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.figure import Figure

    from calibrant.plots import ReliabilityDisplay

    models = {"naive": GaussianNB().fit(X, Y), "logistic": LogisticRegression().fit(X, Y)}
    ours = ReliabilityDisplay.from_estimator(models, X, Y, fig=Figure())
    theirs = Figure().subplots()
    for name, model in models.items():
        drawn = CalibrationDisplay.from_estimator(model, X, Y, n_bins=10, ax=theirs, name=name)
        bins = ours.breakdowns[name].per_bin
        assert np.allclose(bins["mean_score"], drawn.prob_pred)
        assert np.allclose(bins["rate"], drawn.prob_true)
    labels = {text.get_text() for text in ours.ax_.get_legend().get_texts()}
    assert any("naive" in label for label in labels)
    assert any("logistic" in label for label in labels)


@pytest.mark.parametrize(("method", "calibrator"), [("sigmoid", cb.Platt(on="score")), ("isotonic", "isotonic")])
def test_a_calibrated_model_takes_the_place_of_calibrated_classifier_cv(method, calibrator):
    theirs = CalibratedClassifierCV(GaussianNB(), method=method, cv=3).fit(X, Y)
    ours = cb.CalibratedModel(GaussianNB(), calibrator, cv=3).fit(X, Y)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.predict_proba(X).shape == theirs.predict_proba(X).shape
    assert np.corrcoef(ours.predict_proba(X)[:, 1], theirs.predict_proba(X)[:, 1])[0, 1] > 0.99
    for model in (ours, theirs):
        search = GridSearchCV(model, {"estimator__var_smoothing": [1e-9, 1e-2]}, scoring="neg_brier_score", cv=2)
        assert search.fit(X, Y).best_score_ > -0.2


def test_unknown_scorers_name_the_known_ones_and_the_nearest():
    with pytest.raises(KeyError) as found:
        cb.scorers["ECE"]
    assert str(found.value).startswith(f"scorers has no metric 'ECE'; its metrics are {', '.join(cb.scorers)}.")
    assert "Did you mean 'ece'" in str(found.value)
    with pytest.raises(AttributeError, match="scorers has no attribute 'brierr'.* Did you mean 'brier'"):
        cb.scorers.brierr  # noqa: B018
    assert "ECE" not in cb.scorers
    assert cb.scorers.get("ECE") is None
