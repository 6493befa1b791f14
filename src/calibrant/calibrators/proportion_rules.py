"""Class proportions (calibration of type CD): predict each class as often as it occurs, overall or in each group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import InputError, Note, check_count
from calibrant.calibrators import models
from calibrant.calibrators.calibrator import are_labels, check_column_count, label_array, plain_labels, restore_labels
from calibrant.metrics.labels import Proportions
from calibrant.tables.class_table import ClassProbabilities
from calibrant.tables.rows import GROUP_HINT, Rows, group_columns, observed_groups

# A threshold of the score of the second class, or a weight for each class.
Rule: TypeAlias = "float | Floats"


_ROUNDS = 50
_PATIENCE = 5  # rounds without a gain


@dataclass(eq=False, repr=False)
class ProportionThreshold(models.ModelOnFeatures):
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

    estimator: Any
    _: KW_ONLY
    target: Mapping[Any, float] | None = None
    cv: Any = 5
    n_jobs: int | None = None

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
        rows = models.TrainingRows.read(self, X, y, sample_weight, params)
        method = models.response_method(self.estimator)
        if method == "decision_function" and len(rows.classes) > 2:
            raise InputError(
                "For more than two classes ProportionThreshold needs predict_proba.",
                hint="Wrap the classifier in CalibratedModel.",
                argument="estimator",
            )
        splits = [] if models.is_frozen(self.estimator) else rows.splits(self.cv)
        held_out = models.out_of_fold(self.estimator, rows, splits, method, self.n_jobs)
        weight = np.ones(held_out.code.size) if held_out.weight is None else held_out.weight
        scores = _Scores(held_out.scores, held_out.code, weight, rows.classes.tolist())
        self._rule = scores.fit(self.target)
        self.threshold_: float | None = self._rule if isinstance(self._rule, float) else None
        self.weights_ = None if isinstance(self._rule, float) else self._rule
        self.before_, self.after_ = scores.compare(self._rule, 0.5 if method == "predict_proba" else 0.0)
        self.accuracy_cost_: float = self.before_.accuracy - self.after_.accuracy
        self.calibrator_ = None
        self._keep(models.fit_on(self.estimator, rows), rows.classes, method)
        return self

    @available_if(lambda model: hasattr(model.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
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
        return models.class_columns(models.response(self.estimator_, X, self._method, self.classes_))

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
        scores = models.response(self.estimator_, X, self._method, self.classes_)
        return np.asarray(self.classes_[_choose(scores, self._rule)])


def _target_shares(target: Mapping[Any, float] | None, code: Ints, weight: Floats, classes: list[Any]) -> Floats:
    """Return the target share of each class: as given, else that of the rows."""
    if target is None:
        return np.asarray(np.bincount(code, weights=weight, minlength=len(classes)) / weight.sum())
    if not isinstance(target, Mapping) or set(target) != set(classes):
        raise InputError(f"target must have a share for each of {classes}; got {target!r}.")
    share = np.array([float(target[label]) for label in classes])
    if not ((share >= 0).all() and abs(share.sum() - 1) < 1e-9):
        raise InputError(f"target must have non-negative shares with sum 1; got {share.tolist()}.")
    return share


def _compare_classes(code: Ints, predicted: Ints, classes: list[Any], weight: Floats) -> Proportions:
    """Compare predicted and actual classes; real weights are scaled to the effective number of rows."""
    size = len(classes)
    counts = np.bincount(code * size + predicted, weights=weight, minlength=size * size).reshape(size, size)
    notes: tuple[Note, ...] = ()
    if not (weight == np.rint(weight)).all():
        counts = counts * (weight.sum() / np.square(weight).sum())
        notes = (Note("effective_rows", 1, "Weights are not whole: counts are those of effective rows, rounded."),)
    return Proportions(classes, np.rint(counts).astype(np.int64), MappingProxyType({}), notes)


def best_threshold(scores: Floats, weight: Floats, share: float) -> float:
    """Return the score from which on the share of rows is nearest to the given one; infinite for none."""
    value, place = np.unique(scores, return_inverse=True)
    total = np.bincount(place, weights=weight)
    above = np.append(np.cumsum(total[::-1])[::-1], 0.0) / weight.sum()  # share of rows at or above each value
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
                # The weight at which the class ties with the best other one.
                needed = np.where(proba[:, c] > 0, rival / proba[:, c], np.inf)
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
    value, upto = needed[order], np.cumsum(weight[order]) / weight.sum()
    ends = np.flatnonzero(np.append(value[1:] != value[:-1], True))
    shares, values = np.append(0.0, upto[ends]), np.append(0.0, value[ends])
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


@dataclass(eq=False, repr=False, kw_only=True)
class ProportionRule(BaseEstimator):  # type: ignore[misc]
    """A rule from scores to classes that predicts each class as often as it occurs, overall or in each group.

    With two classes, the second is predicted if its score is at least a threshold; with more, the class with the
    greatest w_c p_c is predicted. Each group has a threshold, or weights, of its own: the local kind of class
    calibration of Bella et al., where proportions are met in each region of the inputs and not only overall. For a
    classifier on features see `ProportionThreshold`.

    Parameters
    ----------
    target : mapping of label to share, optional
        Target proportions of each group; by default those of its fitted rows.
    min_rows : int, default=50
        A group with fewer fitted rows, or a group that was not fitted, has the rule of all rows.

    Attributes
    ----------
    classes_ : ndarray
    rule_ : float or ndarray
        For two classes the lowest score at which the second one is predicted; for more the weight of each class.
    group_rules_ : dict
        The same for each group with enough rows.
    before_, after_ : Proportions
        Predicted and actual classes of the fitted rows, overall and by group; `before_` predicts the most probable
        class. None after `calibrant.load`.

    See Also
    --------
    ProportionThreshold

    Notes
    -----
    Fit it on scores of rows that the model was not fitted on. Equal scores of one group have the same class, so
    proportions may not be met exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> region = np.repeat(["north", "south"], 1000)
    >>> p = rng.uniform(0, 0.6, 2000)
    >>> y = rng.random(2000) < np.where(region == "north", 0.5 * p, 1.2 * p)
    >>> rule = ProportionRule().fit(p, y, by=region)
    >>> {region: float(abs(group.difference[1]).round(3)) for region, group in rule.after_.groups.items()}
    {'north': 0.0, 'south': 0.0}
    """

    kind: ClassVar[str] = "labels"

    target: Mapping[Any, float] | None = None
    min_rows: int = 50

    def fit(
        self,
        X: Any,
        y: Column,
        sample_weight: Column | None = None,
        *,
        by: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Fit the rule of all rows, and that of each group.

        Parameters
        ----------
        X : column of n scores of the second class, or (n, K) class probabilities
        y : column of n labels
        sample_weight : column, optional
        by : column, several columns or frame, optional
            Group of each row.
        classes : sequence of labels, optional
            The classes, in the order of the columns; by default the names of a frame's columns, else the sorted labels.

        Returns
        -------
        self
        """
        least = check_count("min_rows", self.min_rows)
        forecast = _read_scores(X)
        rows = Rows.read(y, {"X": forecast}, sample_weight=sample_weight, by=by, outcome="y")
        names = self._class_names(forecast, rows.y, classes)
        whole = _Scores.from_rows(rows, names)
        groups = {key: _Scores.from_rows(group, names) for key, group in rows.split().items() if not group.is_empty}
        self.classes_: NDArray[Any] = label_array(names)
        self.rule_: Rule = whole.fit(self.target)
        self.group_rules_: dict[Any, Rule] = {
            key: group.fit(self.target) for key, group in groups.items() if group.code.size >= least
        }
        compared = {key: group.compare(self.group_rules_.get(key, self.rule_)) for key, group in groups.items()}
        before, after = ({key: pair[i] for key, pair in compared.items()} for i in (0, 1))
        first, second = whole.compare(self.rule_)
        if after:  # the whole has the rules of the groups: its confusions are the sums of theirs
            second = Proportions(names, np.sum([group.confusion for group in after.values()], axis=0), {})
        self.before_: Proportions | None = _with_groups(first, before)
        self.after_: Proportions | None = _with_groups(second, after)
        return self

    @staticmethod
    def _class_names(forecast: Any, y: _columns.ColumnData, classes: Sequence[Any] | None) -> list[Any]:
        _columns.refuse_missing([y])
        named = getattr(forecast, "names", None)
        names = list(named or _columns.classes(y)) if classes is None else _columns.check_classes(classes)
        count = 2 if isinstance(forecast, _columns.ColumnData) else forecast.matrix.shape[1]
        if len(names) != count:
            raise InputError(
                f"X must have one column for each class; got {count} {'classes' if count == 2 else 'columns'} for the "
                f"labels {names[:5]}.",
                hint="Pass classes=, the class of each column in order, if y lacks one.",
                argument="X",
            )
        return names

    def __call__(self, X: Any, *, by: Any = None) -> NDArray[Any]:
        """Return the class of each row; `by` as in the fit.

        Parameters
        ----------
        X : column of n scores or (n, K) class probabilities
            Scores, as in the fit.
        by : column, several columns or frame, optional
            Group of each row; needed if the fit had groups. The rows of a group without a rule of its own get the rule
            of all rows.

        Returns
        -------
        array
            One label per row.
        """
        check_is_fitted(self)
        scores = _matrix(_read_scores(X))
        check_column_count(scores.shape[1] if scores.ndim == 2 else len(self.classes_), len(self.classes_))
        if by is None and self.group_rules_:
            raise InputError("by must be given, as in the fit; it is missing.")
        code = _choose(scores, self.rule_)
        columns = tuple(_columns.read(column, name, hint=GROUP_HINT) for name, column in group_columns(by).items())
        if columns:
            _columns.check_lengths([_columns.ColumnData("X", scores), *columns])
        for key, rows in observed_groups(columns) if columns else []:
            code[rows] = _choose(scores[rows], self.group_rules_.get(key, self.rule_))
        return np.asarray(self.classes_[code])

    def predict(self, X: Any, *, by: Any = None) -> NDArray[Any]:
        """Return the same as a call.

        Parameters
        ----------
        X : column of n scores or (n, K) class probabilities
            Scores, as in the fit.
        by : column, several columns or frame, optional
            Group of each row; needed if the fit had groups. The rows of a group without a rule of its own get the rule
            of all rows.

        Returns
        -------
        array
            One label per row.
        """
        return self(X, by=by)

    def to_state(self) -> dict[str, Any]:
        """Return the fitted rules as plain data for JSON.

        Returns
        -------
        dict
            The part of the file of `calibrant.save` that holds the fit.
        """
        groups = [
            {"group": list(key) if isinstance(key, tuple) else key, "rule": _plain_rule(rule)}
            for key, rule in self.group_rules_.items()
        ]
        keys = [key for group in groups for key in np.atleast_1d(np.array(group["group"], dtype=object)).tolist()]
        if not are_labels(keys):
            raise InputError(f"Groups must be text or numbers to be saved; got {keys!r}.", hint="Encode them first.")
        return plain_labels(self.classes_) | {"rule": _plain_rule(self.rule_), "groups": groups}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore what `to_state` returns; anything else is an error.

        Parameters
        ----------
        state : dict
            What `to_state` returned; its keys are removed.
        """
        self.classes_ = restore_labels(state)
        size = len(self.classes_)
        self.rule_ = _rule(state.pop("rule", None), size)
        groups = state.pop("groups", None)
        if not isinstance(groups, list) or not all(isinstance(g, dict) and set(g) == {"group", "rule"} for g in groups):
            raise InputError("groups of ProportionRule must be a list of objects with group and rule.")
        keys = [tuple(g["group"]) if isinstance(g["group"], list) else g["group"] for g in groups]
        self.group_rules_ = {key: _rule(g["rule"], size) for key, g in zip(keys, groups, strict=True)}
        self.before_ = self.after_ = None


class _Scores:
    """Scores, classes and weights of rows that are used."""

    def __init__(self, scores: Floats, code: Ints, weight: Floats, names: list[Any]) -> None:
        self.scores, self.code, self.weight, self.names = scores, code, weight, names

    @classmethod
    def from_rows(cls, rows: Rows, names: list[Any]) -> "_Scores":
        used = rows.check(lambda column: column, _columns.finite).select()
        code = _columns.codes(used.y, names)
        weight = np.ones(code.size) if used.weight is None else used.weight.values.astype(np.float64)
        return cls(_matrix(used.forecasts[0]), code, weight, names)

    def fit(self, target: Mapping[Any, float] | None) -> Rule:
        """Return the rule whose predictions have the target shares."""
        share = _target_shares(target, self.code, self.weight, self.names)
        if self.scores.ndim == 2 and len(self.names) > 2:
            return best_weights(self.scores, self.weight, share)
        return best_threshold(_of_second(self.scores), self.weight, float(share[1]))

    def compare(self, rule: Rule, even: float = 0.5) -> tuple[Proportions, Proportions]:
        """Return the proportions of the most probable classes, and of those that the rule predicts.

        `even` is the score of the second class at which both of two are equally probable.
        """
        usual = (self.scores > even).astype(np.int64) if self.scores.ndim == 1 else self.scores.argmax(axis=1)
        before, after = (
            _compare_classes(self.code, predicted, self.names, self.weight)
            for predicted in (usual, _choose(self.scores, rule))
        )
        return before, after


def _read_scores(X: Any) -> Any:
    """Read one column of scores, or class probabilities."""
    if hasattr(type(X), "columns") or np.ndim(X) == 2:
        return ClassProbabilities.read(X, "X")
    return _columns.read(X, "X")


def _matrix(forecast: Any) -> Floats:
    if isinstance(forecast, ClassProbabilities):
        return forecast.matrix
    column = _columns.finite(forecast)
    _columns.refuse_missing([column])
    return np.asarray(column.values)


def _choose(scores: Floats, rule: Rule) -> Ints:
    """Return the position of the predicted class of each row."""
    if isinstance(rule, np.ndarray):
        return np.asarray((scores * rule).argmax(axis=1))
    return np.asarray(_of_second(scores) >= rule).astype(np.int64)


def _of_second(scores: Floats) -> Floats:
    """Return the scores of the second of two classes."""
    return scores if scores.ndim == 1 else scores[:, 1]


def _with_groups(whole: Proportions, groups: Mapping[Any, Proportions]) -> Proportions:
    return Proportions(whole.labels, whole.confusion, MappingProxyType(dict(groups)), whole.notes)


def _plain_rule(rule: Rule) -> Any:
    if isinstance(rule, np.ndarray):
        return rule.tolist()
    return None if math.isinf(rule) else rule


def _rule(value: Any, size: int) -> Rule:
    """Return the rule of plain data; None is a threshold that no score reaches."""
    if size == 2 and (value is None or (isinstance(value, float) and math.isfinite(value))):
        return math.inf if value is None else value
    numbers = isinstance(value, list) and len(value) == size and all(isinstance(v, float) for v in value)
    if size > 2 and numbers and all(0 < v <= 1 for v in value):
        return np.array(value)
    raise InputError(
        f"a rule of ProportionRule must be a threshold, or a positive weight for each class; got {value!r}."
    )
