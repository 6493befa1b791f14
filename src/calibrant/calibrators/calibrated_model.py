"""Models with a calibrator of their predictions: `CalibratedModel` (classifiers), `RecalibratedModel` (regressors)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from calibrant._support import columns as _columns
from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError
from calibrant.calibrators import models
from calibrant.calibrators.calibrator import need_target
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.logit_scaling import Platt, Temperature
from calibrant.calibrators.multiclass import OneVsRest, ProbabilityMap
from calibrant.calibrators.point import LinearRecalibrator, PointMap
from calibrant.calibrators.registry import as_calibrator
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.softmax_scaling import SoftmaxTemperature
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable
from calibrant.tables.score_table import ScoreTable


@dataclass(eq=False, repr=False)
class CalibratedModel(models.ModelOnFeatures):
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

    estimator: Any
    calibrator: ScoreMap | ProbabilityMap | str | None = None
    _: KW_ONLY
    ensemble: bool = True
    cv: Any = 5
    n_jobs: int | None = None

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
        rows = models.TrainingRows.read(self, X, y, sample_weight, params)
        method = models.response_method(self.estimator)
        calibrator = calibrator_for(self.calibrator, method, len(rows.classes))
        for name in ("estimator_", "estimators_"):  # of an earlier fit, which may have been of the other form
            self.__dict__.pop(name, None)
        splits = [] if models.is_frozen(self.estimator) else rows.splits(self.cv)
        if splits and self.ensemble:
            self.estimators_, parts = models.models_of_folds(self.estimator, rows, splits, method, self.n_jobs)
            held_out = models.join_folds(parts, rows, splits)
            models.copy_features(self.estimators_[0], self)
        else:
            held_out = models.out_of_fold(self.estimator, rows, splits, method, self.n_jobs)
            self.estimator_ = models.fit_on(self.estimator, rows)
            models.copy_features(self.estimator_, self)
        self.calibrator_ = held_out.fit(calibrator, rows.classes)
        self.classes_ = rows.classes
        self._method = method
        self.table_: ScoreTable | None = held_out.table if method == "predict_proba" else None
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
    chosen: ScoreMap | ProbabilityMap = clone(as_calibrator(calibrator))
    if not on_logits and not chosen.accepts_any_score:
        raise InputError(
            f"calibrator must accept margins: the classifier has no predict_proba; got {type(chosen).__name__}.",
            hint="Use Platt(on='score'), Isotonic() or BinningAverage().",
        )
    if n_classes == 2 or chosen.takes == "classes":
        return chosen
    return SoftmaxTemperature(eps=chosen.eps) if isinstance(chosen, Temperature) else OneVsRest(chosen)


@dataclass(eq=False, repr=False)
class RecalibratedModel(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor and a recalibrator of its predictions, fitted together on the same rows.

    The recalibrator is fitted on out-of-fold predictions: each row is predicted by a copy of the regressor that was
    fitted on other rows. The final regressor is fitted on all rows.

    Parameters
    ----------
    estimator : regressor
        A fitted one goes into ``sklearn.frozen.FrozenEstimator``. Then all rows given to `fit` serve the recalibrator;
        the regressor must not have been fitted on them.
    recalibrator : recalibrator of point predictions, default=LinearRecalibrator()
    cv : int, splitter or iterable, default=5
        Folds that test each row once.
    n_jobs : int, optional

    Attributes
    ----------
    estimator_, recalibrator_
        Both fitted. ``recalibrator_.trade_off_`` has the change of squared error and bias.
    table_ : MeanTable
        The out-of-fold predictions before recalibration.

    See Also
    --------
    LinearRecalibrator, IsotonicRecalibrator, CalibratedModel

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = RecalibratedModel(RandomForestRegressor(20, random_state=0)).fit(X, y)
    >>> bool(model.recalibrator_.slope_ > 1)  # forests shrink towards the mean
    True
    """

    estimator: Any
    recalibrator: PointMap | None = None
    _: KW_ONLY
    cv: Any = 5
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Fit regressor and recalibrator; weights go to both, to the regressor if it takes them.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as the regressor takes them.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Importance of each row.
        groups : column of n groups, optional
            For a splitter of groups, such as ``GroupKFold``.

        Returns
        -------
        self
        """
        need_target(y, "RecalibratedModel")
        recalibrator = LinearRecalibrator() if self.recalibrator is None else self.recalibrator
        if not isinstance(recalibrator, PointMap):
            raise InputError(
                Argument("recalibrator") + f" must be a recalibrator of point predictions; got {recalibrator!r}.",
                hint="For example calibrant.regression.LinearRecalibrator().",
                value=recalibrator,
            )
        y = column_or_1d(y, warn=True)
        if np.iscomplexobj(y):
            raise InputError("Complex data not supported: y must hold real numbers.", argument="y")
        outcomes = _columns.finite(_columns.read(y, "y", hint=ONE_COLUMN))
        _columns.refuse_missing([outcomes])
        weight = None if sample_weight is None else _columns.read_weights(sample_weight, outcomes)
        predicted = self._fit_estimator(X, outcomes.values, weight, groups)
        self.table_: MeanTable = MeanTable.from_arrays(outcomes.values, predicted, sample_weight=weight)
        self.recalibrator_ = clone(recalibrator).fit(self.table_)
        models.copy_features(self.estimator_, self)
        return self

    def _fit_estimator(self, X: Any, y: Floats, weight: Floats | None, groups: Any) -> Floats:
        """Fit the regressor and return predictions by copies that were not fitted on the row."""
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_: Any = self.estimator
            return np.asarray(self.estimator.predict(X))
        takes = weight is not None and has_fit_parameter(self.estimator, "sample_weight")
        params = {"sample_weight": weight} if takes else {}
        # The folds, not `params`, get the groups: metadata routing has other rules for them than for weights.
        folds = list(check_cv(self.cv, y).split(X, y, groups))
        predicted = cross_val_predict(self.estimator, X, y, cv=folds, n_jobs=self.n_jobs, params=params or None)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return np.asarray(predicted)

    def predict(self, X: Any) -> Floats:
        """Return the recalibrated predictions.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as in the fit.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        return np.asarray(self.recalibrator_.predict(self.estimator_.predict(X)))

    def __sklearn_tags__(self) -> Any:
        tags, inside = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = inside.input_tags.sparse
        tags.input_tags.allow_nan = inside.input_tags.allow_nan
        return tags
