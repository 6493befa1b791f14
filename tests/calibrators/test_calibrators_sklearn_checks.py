"""scikit-learn's own checks of estimators.

They run on every model as it is. Calibrators of one column get that column of the features from a wrapper, because
scikit-learn checks no estimator of one column (its own IsotonicRegression neither). The checks that need no data run
on the calibrators themselves.
"""

import inspect

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from packaging.version import Version
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import calibrant as cb
from calibrant import regression as rg


class OneColumn(ClassifierMixin, BaseEstimator):
    """A score map as a classifier of features: it is fed one column inside [0, 1]."""

    def __init__(self, calibrator):
        self.calibrator = calibrator

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y)
        self.calibrator_ = clone(self.calibrator).fit(self._column(X), y, sample_weight)
        self.classes_ = self.calibrator_.classes_
        return self

    def _column(self, X):
        # Of both ends of [0, 1] too: far values squash to 0 and 1 exactly.
        return 1 / (1 + np.exp(-np.clip(X[:, 0].astype(float), -700, 700)))

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict_proba(self._column(validate_data(self, X, reset=False)))

    def predict(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict(self._column(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one column of the features is all it sees
        return tags


class ClassColumns(ClassifierMixin, BaseEstimator):
    """A calibrator of class probabilities as a classifier of features: it is fed a softmax of a few columns."""

    def __init__(self, calibrator):
        self.calibrator = calibrator

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"Classifier can't train when only one class is present: {self.classes_}")
        self.calibrator_ = clone(self.calibrator).fit(
            self._columns(X), y, sample_weight, classes=self.classes_.tolist()
        )
        return self

    def _columns(self, X):
        logits = np.zeros((len(X), len(self.classes_)))
        for j in range(1, len(self.classes_)):
            logits[:, j] = np.clip(X[:, j % X.shape[1]].astype(float), -30, 30) / 10
        return softmax(logits, axis=1)

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict_proba(self._columns(validate_data(self, X, reset=False)))

    def predict(self, X):
        check_is_fitted(self)
        return self.calibrator_.predict(self._columns(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # few columns of the features are all it sees
        return tags


class FirstFeature(RegressorMixin, BaseEstimator):
    """A recalibrator of point predictions as a regressor of features: it gets the first one."""

    def __init__(self, recalibrator):
        self.recalibrator = recalibrator

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, y_numeric=True)
        self.recalibrator_ = clone(self.recalibrator).fit(X[:, 0].astype(float), y, sample_weight)
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.recalibrator_.predict(validate_data(self, X, reset=False)[:, 0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one column of the features is all it sees
        return tags


MAPS = {
    "binning_average": cb.calibrators.BinningAverage(),
    "isotonic": cb.Isotonic(),
    "isotonic, plain": cb.Isotonic(extremes=True),
    "isotonic, strict": cb.Isotonic(strict=True),
    "platt": cb.Platt(),
    "platt on scores": cb.Platt(on="score"),
    "temperature": cb.calibrators.Temperature(),
    "beta": cb.Beta(),
    "venn_abers": cb.calibrators.VennAbers(),
    "prior_shift": cb.calibrators.PriorShift(prevalence=0.2),
    "cats": cb.calibrators.CATS(cb.costs.LinearCost(1, 5)),
    "caps": cb.calibrators.CAPS(cb.costs.LinearCost(1, 5)),
}
# Without VectorScaling and the default Dirichlet: the checks' classes are separated, which both refuse.
CLASSES = {
    "one_vs_rest": cb.calibrators.OneVsRest(),
    "pairwise": cb.calibrators.PairwiseCoupling(),
    "cumulative": cb.calibrators.Cumulative(),
    "softmax_temperature": cb.calibrators.SoftmaxTemperature(),
    "matrix, l2": cb.calibrators.MatrixScaling(l2=1.0),
    "dirichlet, l2": cb.calibrators.Dirichlet(penalty="l2"),
    "spline": cb.calibrators.Spline(),
    "spline, classwise": cb.calibrators.Spline(on="classwise"),
}
MODELS = {
    "CalibratedModel": cb.CalibratedModel(LogisticRegression(C=1), cv=2),
    "CalibratedModel, one calibrator": cb.CalibratedModel(LogisticRegression(C=1), ensemble=False, cv=2),
    "CalibratedModel, isotonic": cb.CalibratedModel(LogisticRegression(C=1), cb.Isotonic(), cv=2),
    "AutoCalibrator": cb.AutoCalibrator(
        LogisticRegression(C=1), {"platt": cb.Platt(), "isotonic": cb.Isotonic()}, cv=2, n_resamples=39
    ),
    "MetaCal": cb.calibrators.MetaCal(DecisionTreeClassifier(random_state=0), n_bootstrap=5, random_state=0),
    "TreeSmoothing": cb.calibrators.TreeSmoothing(DecisionTreeClassifier(random_state=0)),
    "TreeSmoothing, forest": cb.calibrators.TreeSmoothing(
        RandomForestClassifier(5, random_state=0), method="curtailment"
    ),
    "ProportionThreshold": cb.calibrators.ProportionThreshold(LogisticRegression(C=1), cv=2),
    "Multicalibrator": cb.Multicalibrator(LogisticRegression(C=1), backend="sklearn", max_rounds=2, cv=2),
}
POINTS = {
    "linear": rg.LinearRecalibrator(),
    "isotonic, points": rg.IsotonicRecalibrator(),
    "local": rg.LocalRecalibrator(cv=None),
    "cost": rg.CostRecalibrator(cb.costs.LinearCost(1, 5)),
}
REGRESSORS = {
    "RecalibratedModel": rg.RecalibratedModel(Ridge(), cv=2),
    "RecalibratedModel, isotonic": rg.RecalibratedModel(Ridge(), rg.IsotonicRecalibrator(), cv=2),
}
ESTIMATORS = {name: OneColumn(each) for name, each in MAPS.items()} | MODELS
ESTIMATORS |= {name: ClassColumns(each) for name, each in CLASSES.items()}
ESTIMATORS |= {name: FirstFeature(each) for name, each in POINTS.items()} | REGRESSORS

# Other settings of classes above, and CAPS, which has the interface of CATS: they fit otherwise, and tests of
# calibrators show what; the checks of the interface repeat those of the class.
VARIANTS = (
    *("isotonic, plain", "isotonic, strict", "platt on scores", "caps", "spline, classwise"),
    *("CalibratedModel, isotonic", "TreeSmoothing, forest", "RecalibratedModel, isotonic"),
)

# Each with its reason; a check that passes in spite of it fails the test.
EXPECTED = {
    "local": dict.fromkeys(
        (
            "check_estimators_dtypes",
            "check_sample_weights_pandas_series",
            "check_sample_weights_not_an_array",
            "check_sample_weights_shape",
            "check_sample_weights_not_overwritten",
            "check_fit2d_1sample",
        ),
        "a smooth curve needs five distinct predictions, and says so",
    ),
    "AutoCalibrator": {
        "check_fit2d_1feature": "ten rows do not suffice for nested folds, and the classifier says so",
    },
    "MetaCal": {
        "check_sample_weight_equivalence_on_dense_data": "it draws rows with equal chances, whatever their weights",
        "check_sample_weight_equivalence_on_sparse_data": "it draws rows with equal chances, whatever their weights",
    },
    "TreeSmoothing, forest": {
        "check_sample_weight_equivalence_on_dense_data": "a forest draws rows: scikit-learn's own fails this too",
        "check_sample_weight_equivalence_on_sparse_data": "a forest draws rows: scikit-learn's own fails this too",
    },
    "Multicalibrator": {
        "check_sample_weight_equivalence_on_dense_data": "folds and leaves count rows, whatever their weights",
    },
    "ProportionThreshold": {
        "check_classifiers_train": "it asks for the likeliest class; to predict others is what this one is for",
    },
}
# Runs only with SCIPY_ARRAY_API set before SciPy is loaded; arrays of other libraries are not promised.
LEFT_OUT = {"check_array_api_input"}
# Faults of the checks before scikit-learn 1.7: the labels of two classes depend on the order of the rows, which differs
# between the two fits that are compared; sparse data must be refused with a TypeError.
BEFORE_1_7 = {
    (OneColumn, "check_sample_weight_equivalence_on_dense_data"),
    (cb.Multicalibrator, "check_sample_weight_equivalence_on_sparse_data"),
}
IS_BEFORE_1_7 = Version(sklearn.__version__) < Version("1.7")


def _name(check):
    return getattr(check, "func", check).__name__


def expected(estimator):
    (name,) = (name for name, each in ESTIMATORS.items() if each is estimator)
    return EXPECTED.get(name, {})


def is_left_out(estimator, check):
    return _name(check) in LEFT_OUT or (IS_BEFORE_1_7 and (type(estimator), _name(check)) in BEFORE_1_7)


def run_check(estimator, check):
    if not is_left_out(estimator, check):
        check(estimator)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [each for name, each in ESTIMATORS.items() if name not in VARIANTS], expected_failed_checks=expected
)
def test_scikit_learns_check(estimator, check):
    run_check(estimator, check)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ESTIMATORS[name] for name in VARIANTS], expected_failed_checks=expected)
def test_scikit_learns_check_of_other_settings(estimator, check):
    run_check(estimator, check)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_at_least_fifty_checks_must_pass(name):
    estimator = ESTIMATORS[name]
    checks = [
        check for _, check in estimator_checks_generator(estimator, mark=None) if not is_left_out(estimator, check)
    ]
    assert len([each for each in checks if _name(each) not in EXPECTED.get(name, {})]) >= 50


DISTRIBUTIONS = {
    "variance": rg.VarianceScaling(level=0.8),
    "PIT": rg.PITRecalibrator(n_knots=10),
    "quantile": rg.QuantileRecalibrator(levels=[0.1, 0.9]),
    "Pareto": rg.ParetoRecalibrator(choice="sharp"),
}
WITHOUT_DATA = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_fit_score_takes_y",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", WITHOUT_DATA)
@pytest.mark.parametrize("name", [*MAPS, *POINTS, *DISTRIBUTIONS])
def test_calibrators_pass_the_checks_that_need_no_data(name, check):
    estimator = (MAPS | POINTS | DISTRIBUTIONS)[name]
    if check == "check_fit_score_takes_y" and name in DISTRIBUTIONS:
        assert list(inspect.signature(estimator.fit).parameters) == ["X", "y", "sample_weight"]
        return
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)
