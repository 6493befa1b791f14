"""`RecalibratedModel`: a regressor with a recalibrator of its predictions."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from calibrant._support import columns as _columns
from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError
from calibrant.calibrators.point import LinearRecalibrator
from calibrant.calibrators.point_map import PointMap
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable

__all__ = ["RecalibratedModel"]


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

    def __init__(
        self, estimator: Any, recalibrator: PointMap | None = None, *, cv: Any = 5, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit regressor and recalibrator; weights go to both, to the regressor if it takes them.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as the regressor takes them.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Importance of each row.

        Returns
        -------
        self
        """
        if y is None:
            raise InputError("RecalibratedModel requires y to be passed, but the target y is None.", argument="y")
        recalibrator = LinearRecalibrator() if self.recalibrator is None else self.recalibrator
        if not isinstance(recalibrator, PointMap):
            raise InputError(
                Argument("recalibrator") + f" must be a recalibrator of point predictions; got {recalibrator!r}.",
                hint="For example calibrant.regression.LinearRecalibrator().",
                value=recalibrator,
            )
        outcomes = _read_outcomes(y)
        weight = None if sample_weight is None else _columns.read_weights(sample_weight, outcomes)
        predicted = self._fit_estimator(X, outcomes.values, weight)
        self.table_ = MeanTable.from_arrays(outcomes.values, predicted, sample_weight=weight)
        self.recalibrator_ = clone(recalibrator).fit(self.table_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _fit_estimator(self, X: Any, y: Floats, weight: Floats | None) -> Floats:
        """Fit the regressor and return predictions by copies that were not fitted on the row."""
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_ = self.estimator
            predicted: Floats = self.estimator.predict(X)
            return predicted
        takes = weight is not None and has_fit_parameter(self.estimator, "sample_weight")
        params = {"sample_weight": weight} if takes else {}
        predicted = cross_val_predict(self.estimator, X, y, cv=self.cv, n_jobs=self.n_jobs, params=params or None)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return predicted

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
        recalibrated: Floats = self.recalibrator_.predict(self.estimator_.predict(X))
        return recalibrated

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags


def _read_outcomes(y: Any) -> Any:
    y = column_or_1d(y, warn=True)
    if np.iscomplexobj(y):
        raise InputError("Complex data not supported: y must hold real numbers.", argument="y")
    column = _columns.finite(_columns.read(y, "y", hint=ONE_COLUMN))
    _columns.refuse_missing([column])
    return column
