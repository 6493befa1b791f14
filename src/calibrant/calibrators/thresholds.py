"""Class proportions (calibration of type CD): predict each class as often as it occurs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import InputError, Note
from calibrant.calibrators.models import ModelWithCalibrator, class_columns
from calibrant.calibrators.responses import TrainingRows, fit_on, is_frozen, out_of_fold, response, response_method
from calibrant.metrics.labels import Proportions

__all__ = ["ProportionThreshold"]

_ROUNDS = 50
_PATIENCE = 5  # rounds without a gain


def _has_probabilities(model: Any) -> bool:
    return hasattr(model.estimator, "predict_proba")


class ProportionThreshold(ModelWithCalibrator):
    r"""A classifier that predicts each class as often as it occurs, by a threshold or by class weights.

    With two classes, the second is predicted if its score is at least a threshold. With more, the class with the
    greatest w_c p_c is predicted. Threshold and weights minimise the difference between predicted and observed
    proportions of out-of-fold scores, as in `CalibratedModel`. Probabilities do not change.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`, or, for two classes, ``decision_function``. Wrap a fitted one in
        ``sklearn.frozen.FrozenEstimator``.
    target : mapping of label to share, optional
        Target proportions; by default those of the fitted rows.
    cv : int, splitter or iterable, default=5
    n_jobs : int, optional

    Attributes
    ----------
    threshold_ : float or None
        For two classes: the lowest score at which the second one is predicted.
    weights_ : ndarray or None
        For more classes: the weight of each class; the greatest is 1.
    before_, after_ : Proportions
        Predicted and actual classes of the out-of-fold rows, with accuracy and a test.
    accuracy_cost_ : float
        Accuracy before minus accuracy after; negative if the accuracy increases.

    See Also
    --------
    proportions, ProportionRule, Labels

    Notes
    -----
    Equal scores have the same class, so proportions may not be met exactly; of two equally good thresholds the higher
    one is used. Weights are optimised class by class (Lachiche & Flach): given the others, each is set so that its
    class has its target proportion, in turns, until nothing changes; the best weights are used. `before_` predicts the
    most probable class. `after_` is measured on the rows that determine the threshold.

    References
    ----------
    .. [1] Lachiche & Flach (2003), "Improving accuracy and cost of two-class and multi-class probabilistic classifiers
       using ROC curves".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.1, random_state=0)
    >>> model = ProportionThreshold(LogisticRegression()).fit(X, y)
    >>> model.before_.difference.round(3)[1] < -0.02  # the rare class is underrepresented
    np.True_
    >>> abs(model.after_.difference[1]) < 0.001
    np.True_
    """

    def __init__(
        self,
        estimator: Any,
        *,
        target: Mapping[Any, float] | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.target = target
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the classifier, and the threshold or weights on its out-of-fold scores.

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
        if method == "decision_function" and len(rows.classes) > 2:
            raise InputError(
                "For more than two classes ProportionThreshold needs predict_proba.",
                hint="Wrap the classifier in CalibratedModel.",
                argument="estimator",
            )
        splits = [] if is_frozen(self.estimator) else rows.splits(self.cv)
        held_out = out_of_fold(self.estimator, rows, splits, method, self.n_jobs)
        weight = np.ones(held_out.code.size) if held_out.weight is None else held_out.weight
        share = target_shares(self.target, held_out.code, weight, rows.classes.tolist())
        self.threshold_: float | None = None
        self.weights_: Floats | None = None
        if len(rows.classes) == 2:
            before = held_out.scores > (0.5 if method == "predict_proba" else 0.0)
            self.threshold_ = best_threshold(held_out.scores, weight, float(share[1]))
        else:
            before = held_out.scores.argmax(axis=1)
            self.weights_ = best_weights(held_out.scores, weight, share)
        self.before_, self.after_ = (
            compare_classes(held_out.code, predicted, rows.classes.tolist(), weight)
            for predicted in (before.astype(np.int64), self._choose_classes(held_out.scores))
        )
        self.accuracy_cost_ = self.before_.accuracy - self.after_.accuracy
        self.calibrator_ = None
        self._keep(fit_on(self.estimator, rows), rows.classes, method)
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classifier, unchanged.

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
        return class_columns(response(self.estimator_, X, self._method, self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return classes in about their observed proportions.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as in the fit.

        Returns
        -------
        array
            One label per row.
        """
        check_is_fitted(self)
        scores = response(self.estimator_, X, self._method, self.classes_)
        labels: NDArray[Any] = self.classes_[self._choose_classes(scores)]
        return labels

    def _choose_classes(self, scores: Floats) -> Ints:
        if self.threshold_ is not None:
            return (scores >= self.threshold_).astype(np.int64)
        assert self.weights_ is not None
        return np.asarray((scores * self.weights_).argmax(axis=1))


def target_shares(target: Mapping[Any, float] | None, code: Ints, weight: Floats, classes: list[Any]) -> Floats:
    """Return the target share of each class: as given, else that of the rows."""
    if target is None:
        return np.asarray(np.bincount(code, weights=weight, minlength=len(classes)) / weight.sum())
    if not isinstance(target, Mapping) or set(target) != set(classes):
        raise InputError(f"target must have a share for each of {classes}; got {target!r}.", argument="target")
    share = np.array([float(target[label]) for label in classes])
    if not ((share >= 0).all() and abs(share.sum() - 1) < 1e-9):
        raise InputError(f"target must have non-negative shares with sum 1; got {share.tolist()}.", argument="target")
    return share


def compare_classes(code: Ints, predicted: Ints, classes: list[Any], weight: Floats) -> Proportions:
    """Compare predicted and actual classes; real weights are scaled to the effective number of rows."""
    size = len(classes)
    held = np.bincount(code * size + predicted, weights=weight, minlength=size * size).reshape(size, size)
    notes: tuple[Note, ...] = ()
    if not (weight == np.rint(weight)).all():
        held = held * (weight.sum() / np.square(weight).sum())
        notes = (Note("effective_rows", 1, "Weights are not whole: counts are those of effective rows, rounded."),)
    return Proportions(classes, np.rint(held).astype(np.int64), MappingProxyType({}), notes)


def best_threshold(scores: Floats, weight: Floats, share: float) -> float:
    """Return the score from which on the share of rows is nearest to the given one; infinite for none."""
    value, place = np.unique(scores, return_inverse=True)
    held = np.bincount(place, weights=weight)
    above = np.append(np.cumsum(held[::-1])[::-1], 0.0) / weight.sum()  # share of rows at or above each value
    off = np.abs(above - share)
    nearest = np.flatnonzero(off <= off.min() + 1e-12)[-1]  # the highest of equally good ones
    return float(np.append(value, np.inf)[nearest])


def best_weights(proba: Floats, weight: Floats, share: Floats) -> Floats:
    """Return class weights whose predictions are nearest to the shares in total variation."""
    weights = np.ones(proba.shape[1])
    best, least = weights.copy(), _distance(proba * weights, weight, share)
    since = 0
    for _ in range(_ROUNDS):
        since += 1
        for c in range(weights.size):
            rival = np.delete(proba * weights, c, axis=1).max(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = np.where(
                    proba[:, c] > 0, rival / proba[:, c], np.inf
                )  # the weight at which the class ties with the best other one
            weights[c] = _weight_for(needed, weight, float(share[c]))
            off = _distance(proba * weights, weight, share)
            if off < least - 1e-15:
                best, least, since = weights.copy(), off, 0
        weights = weights / weights.max()
        if least == 0 or since >= _PATIENCE:
            break
    return np.asarray(best / best.max())


def _weight_for(needed: Floats, weight: Floats, share: float) -> float:
    """Return a class weight between the values that the given share of rows needs and that the others need."""
    # A class is predicted for a row if its weight exceeds the needed one.
    order = np.argsort(needed, kind="stable")
    value, held = needed[order], np.cumsum(weight[order]) / weight.sum()
    ends = np.flatnonzero(np.append(value[1:] != value[:-1], True))
    shares, values = np.append(0.0, held[ends]), np.append(0.0, value[ends])
    finite = np.flatnonzero(np.isfinite(values))
    at = finite[np.argmin(np.abs(shares[finite] - share))]
    lower = values[at]
    upper = values[at + 1] if at + 1 < values.size else np.inf
    if not np.isfinite(upper):
        return float(2 * lower) or 1.0
    middle = float(np.sqrt(lower * upper)) if lower > 0 else float(upper / 2)
    return middle if lower < middle < upper else float(np.nextafter(lower, np.inf))


def _distance(scores: Floats, weight: Floats, share: Floats) -> float:
    predicted = np.bincount(scores.argmax(axis=1), weights=weight, minlength=share.size) / weight.sum()
    return float(np.abs(predicted - share).sum() / 2)
