"""`CalibratedModel`: a classifier whose probabilities are repaired by what it says of rows it did not learn from."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats
from calibrant.calibrators.multiclass import OneVsRest, ProbabilityMap, SoftmaxTemperature
from calibrant.calibrators.responses import (
    Responses,
    Rows,
    fit_on,
    is_frozen,
    method_of,
    out_of_fold,
    response,
    routing,
)
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.sigmoid import Platt, Temperature
from calibrant.tables.score_table import ScoreTable

__all__ = ["CalibratedModel", "Repaired"]


class Repaired(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier with, perhaps, a calibrator behind it: what models on features predict with."""

    estimator: Any
    cv: Any
    estimator_: Any
    calibrator_: ScoreMap | ProbabilityMap | None
    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, one column a class in the order of `classes_`."""
        check_is_fitted(self)
        scores = response(self.estimator_, X, self._method, self.classes_)
        return repaired(self.calibrator_, scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of every row; the first of equally likely ones."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[likeliest]
        return labels

    def _keep(self, estimator: Any, classes: NDArray[Any], method: str) -> None:
        self.estimator_, self.classes_, self._method = estimator, classes, method
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))

    def get_metadata_routing(self) -> Any:
        """How metadata reach the classifier and the splitter."""
        return routing(self)

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        tags.input_tags.pairwise = own.input_tags.pairwise
        return tags


class CalibratedModel(Repaired):
    """A classifier and a calibrator of its scores, fitted together on the same rows without cheating.

    The calibrator learns from out-of-fold scores: every row is scored by a copy of the classifier that did not learn
    from it. All these scores serve one calibrator; the classifier used in the end learns from all rows.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`, or else with `decision_function`. One that is already fitted goes into
        ``sklearn.frozen.FrozenEstimator``: then all rows given to `fit` serve the calibrator, and must be new to it.
    calibrator : score map or calibrator of several classes, optional
        By default `Platt`, on logits of probabilities or on margins as they are. With more than two classes a score
        map is used one class against the rest (`OneVsRest`), and `Temperature` becomes `SoftmaxTemperature`.
    cv : int, splitter or iterable, default=5
        The folds; an int means that many, stratified.
    n_jobs : int, optional
        Folds fitted at once, as in scikit-learn.

    Attributes
    ----------
    estimator_ : the classifier, fitted on all rows
    calibrator_ : the calibrator, fitted on out-of-fold scores
    classes_ : labels, those of all rows whatever a fold lacks
    table_ : ScoreTable or None
        For two classes and probabilities: the out-of-fold scores before repair, for `calibrant.evaluate`.

    Notes
    -----
    Weights go to the calibrator, and to the classifier if it takes them. With scikit-learn's metadata routing switched
    on they go where they are requested; `groups` can then reach the splitter.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = CalibratedModel(GaussianNB()).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: ScoreMap | ProbabilityMap | None = None,
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit classifier and calibrator; `params` go to the classifier's fit, or where routing sends them."""
        rows = Rows.read(self, X, y, sample_weight, params)
        method = method_of(self.estimator)
        calibrator = calibrator_for(self.calibrator, method, len(rows.classes))
        splits = [] if is_frozen(self.estimator) else rows.splits(self.cv)
        held_out = out_of_fold(self.estimator, rows, splits, method, self.n_jobs)
        self.calibrator_ = fit_calibrator(calibrator, held_out, rows.classes)
        self.table_ = table_of(held_out) if method == "predict_proba" else None
        self._keep(fit_on(self.estimator, rows), rows.classes, method)
        return self


def calibrator_for(calibrator: Any, method: str, n_classes: int) -> ScoreMap | ProbabilityMap:
    """An unfitted calibrator that suits such scores and so many classes."""
    chosen = Platt(on="logit" if method == "predict_proba" else "score") if calibrator is None else calibrator
    if not isinstance(chosen, (ScoreMap, ProbabilityMap)):
        raise InputError(
            f"calibrator must be one of calibrant's calibrators; it is {chosen!r}.",
            argument="calibrator",
            value=calibrator,
        )
    chosen = clone(chosen)
    if method == "decision_function" and not chosen.takes_any_score:
        raise InputError(
            f"{type(chosen).__name__} needs probabilities, and the classifier gives margins only.",
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
    """The calibrator, fitted on scored rows."""
    if isinstance(calibrator, ScoreMap):
        calibrator.fit(scored.scores, scored.code, scored.weight)
        calibrator.classes_ = classes
        return calibrator
    calibrator.fit(both_columns(scored.scores), scored.code, scored.weight, classes=range(len(classes)))
    calibrator.classes_ = classes
    return calibrator


def repaired(calibrator: ScoreMap | ProbabilityMap | None, scores: Floats) -> Floats:
    """Probabilities of all classes from scores, as they are or calibrated."""
    if calibrator is None:
        return both_columns(scores)
    return calibrator.predict_proba(scores if isinstance(calibrator, ScoreMap) else both_columns(scores))


def both_columns(scores: Floats) -> Floats:
    """One column a class, of two classes too."""
    return scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])


def table_of(scored: Responses) -> ScoreTable | None:
    """The table of the scores of two classes."""
    if scored.scores.ndim == 2:
        return None
    return ScoreTable.from_arrays(scored.code, scored.scores, sample_weight=scored.weight)
