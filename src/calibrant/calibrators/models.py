"""`CalibratedModel`: a classifier with a calibrator fitted on scores of rows that the classifier was not fitted on."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError, KnownKeywords
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.multiclass import OneVsRest, ProbabilityMap
from calibrant.calibrators.registry import as_calibrator
from calibrant.calibrators.responses import (
    Responses,
    TrainingRows,
    fit_on,
    is_frozen,
    join_folds,
    models_of_folds,
    out_of_fold,
    response,
    response_method,
    routing,
)
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.sigmoid import Platt, Temperature
from calibrant.calibrators.softmax_scaling import SoftmaxTemperature
from calibrant.tables.score_table import ScoreTable

__all__ = ["CalibratedModel", "ModelWithCalibrator"]


class ModelWithCalibrator(KnownKeywords, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The base of models on features: a fitted classifier and its calibrator, or None for no calibration."""

    estimator: Any
    cv: Any
    estimator_: Any
    calibrator_: ScoreMap | ProbabilityMap | None
    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated probabilities, one column per class in the order of `classes_`.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as in the fit.

        Returns
        -------
        array of shape (n, K)
            Columns in the order of `classes_`; each row sums to 1.
        """
        check_is_fitted(self)
        classifiers = self._classifiers()
        total: Floats | float = 0.0
        for each in classifiers:
            total = total + apply_calibrator(self._calibrator_in_use(), response(each, X, self._method, self.classes_))
        return np.asarray(total / len(classifiers))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row; the first of equally probable ones.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as in the fit.

        Returns
        -------
        array
            One label per row.
        """
        likeliest = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[likeliest]
        return labels

    def _calibrator_in_use(self) -> ScoreMap | ProbabilityMap | None:
        """Return the calibrator that predictions use; None for no calibration."""
        return self.calibrator_

    def _classifiers(self) -> list[Any]:
        """Return the classifiers whose calibrated probabilities are averaged."""
        return [self.estimator_]

    def _keep(self, estimator: Any, classes: NDArray[Any], method: str) -> None:
        self.estimator_, self.classes_, self._method = estimator, classes, method
        self._keep_features(estimator)

    def _keep_features(self, estimator: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))

    def get_metadata_routing(self) -> Any:
        """Return how metadata reach the classifier and the splitter.

        Returns
        -------
        MetadataRouter
            As scikit-learn's metadata routing asks for it.
        """
        return routing(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            return tags
        own = get_tags(self.estimator)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.pairwise = own.input_tags.pairwise
        return tags


class CalibratedModel(ModelWithCalibrator):
    """A classifier and a calibrator of its scores, fitted by cross-validation.

    The calibrator is fitted on out-of-fold scores: each row is scored by a classifier that was fitted on the other
    folds. With an ensemble (the default), predictions are means over the classifiers of the folds, each calibrated;
    otherwise one more classifier is fitted on all rows, and the calibrator is applied to its scores.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`, or else with ``decision_function``. Wrap a fitted one in
        ``sklearn.frozen.FrozenEstimator``: then all rows given to `fit` serve the calibrator, and must be new to it.
    calibrator : calibrator or its name in `CALIBRATORS`, optional
        By default `Isotonic`. With more than two classes a binary calibrator is used one class against the rest
        (`OneVsRest`), and `Temperature` becomes `SoftmaxTemperature`. ``"platt"`` is fitted on logits of probabilities
        or on margins as they are.
    ensemble : bool, default=True
        Whether predictions are means over the classifiers of the folds. A frozen classifier is the only one.
    cv : int, splitter or iterable, default=5
        The folds; an int means that many, stratified.
    n_jobs : int, optional
        Folds fitted at once, as in scikit-learn.

    Attributes
    ----------
    calibrator_
        The calibrator, fitted on out-of-fold scores; it can be saved and exported.
    estimators_ : list
        With an ensemble: the classifier of each fold.
    estimator_
        Without an ensemble: the classifier, fitted on all rows.
    classes_ : ndarray of labels
        The classes of all rows, whether or not each fold has them.
    table_ : ScoreTable or None
        For two classes and probabilities: the out-of-fold scores before calibration, for `calibrant.evaluate`.

    See Also
    --------
    AutoCalibrator, Isotonic, Platt

    Notes
    -----
    Weights go to the calibrator, and to the classifier if it takes them. With scikit-learn's metadata routing enabled
    they go where they are requested; `groups` can then reach the splitter.

    An ensemble costs one prediction per fold. It usually lowers Brier score and log loss, most for step functions such
    as `Isotonic`. scikit-learn's ``CalibratedClassifierCV(ensemble=True)`` fits a calibrator per fold instead, on
    the rows of that fold. The page on scikit-learn among the studies compares them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = CalibratedModel(GaussianNB(), "isotonic").fit(X, y)
    >>> model.predict_proba(X[:3]).shape, len(model.estimators_), model.calibrator_
    ((3, 2), 5, Isotonic())
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: ScoreMap | ProbabilityMap | str | None = None,
        *,
        ensemble: bool = True,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.ensemble = ensemble
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit classifier and calibrator; `params` go to the classifier's fit, or where routing sends them.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as the classifier takes them.
        y : column of n labels
        sample_weight : column of n weights, optional
            Importance of each row; weights go to the classifier too, if it takes them.
        **params
            Further arguments of the classifier's fit, or metadata to route.

        Returns
        -------
        self
        """
        rows = TrainingRows.read(self, X, y, sample_weight, params)
        method = response_method(self.estimator)
        calibrator = calibrator_for(self.calibrator, method, len(rows.classes))
        for name in ("estimator_", "estimators_"):  # of an earlier fit, which may have been of the other form
            self.__dict__.pop(name, None)
        splits = [] if is_frozen(self.estimator) else rows.splits(self.cv)
        if splits and self.ensemble:
            self.estimators_, parts = models_of_folds(self.estimator, rows, splits, method, self.n_jobs)
            held_out = join_folds(parts, rows, splits)
            self._keep_features(self.estimators_[0])
        else:
            held_out = out_of_fold(self.estimator, rows, splits, method, self.n_jobs)
            self.estimator_ = fit_on(self.estimator, rows)
            self._keep_features(self.estimator_)
        self.calibrator_ = fit_calibrator(calibrator, held_out, rows.classes)
        self.classes_, self._method = rows.classes, method
        self.table_ = binary_table(held_out) if method == "predict_proba" else None
        return self

    def _classifiers(self) -> list[Any]:
        return list(self.estimators_) if hasattr(self, "estimators_") else super()._classifiers()


def calibrator_for(calibrator: Any, method: str, n_classes: int) -> ScoreMap | ProbabilityMap:
    """Return an unfitted calibrator for the given kind of scores and number of classes."""
    on_logits = method == "predict_proba"
    if calibrator is None:
        calibrator = Isotonic()
    elif calibrator == "platt":
        calibrator = Platt(on="logit" if on_logits else "score")
    chosen = clone(as_calibrator(calibrator))
    if not on_logits and not chosen.accepts_any_score:
        raise InputError(
            f"calibrator must accept margins: the classifier has no predict_proba; got {type(chosen).__name__}.",
            hint="Use Platt(on='score'), Isotonic() or BinningAverage().",
            argument="calibrator",
        )
    if n_classes > 2 and isinstance(chosen, ScoreMap):
        chosen = SoftmaxTemperature(eps=chosen.eps) if isinstance(chosen, Temperature) else OneVsRest(chosen)
    suited: ScoreMap | ProbabilityMap = chosen
    return suited


def fit_calibrator(
    calibrator: ScoreMap | ProbabilityMap, scored: Responses, classes: NDArray[Any]
) -> ScoreMap | ProbabilityMap:
    """Return the calibrator, fitted on scored rows."""
    if isinstance(calibrator, ScoreMap):
        calibrator.fit(scored.scores, scored.code, scored.weight)
    else:
        calibrator.fit(class_columns(scored.scores), scored.code, scored.weight, classes=range(len(classes)))
    calibrator.classes_ = classes
    return calibrator


def apply_calibrator(calibrator: ScoreMap | ProbabilityMap | None, scores: Floats) -> Floats:
    """Return probabilities of all classes, calibrated unless `calibrator` is None."""
    if calibrator is None:
        return class_columns(scores)
    return calibrator.predict_proba(scores if isinstance(calibrator, ScoreMap) else class_columns(scores))


def class_columns(scores: Floats) -> Floats:
    """Return one column per class, also for two classes."""
    return scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])


def binary_table(scored: Responses) -> ScoreTable | None:
    """Return the table of the scores of two classes."""
    if scored.scores.ndim == 2:
        return None
    return ScoreTable.from_arrays(scored.code, scored.scores, sample_weight=scored.weight)
