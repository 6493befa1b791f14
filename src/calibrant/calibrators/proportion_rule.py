"""Class proportions by group (local calibration of type CD): predict each class as often as it occurs in each group."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import InputError, check_count
from calibrant.calibrators.score_map import label_array
from calibrant.calibrators.thresholds import best_threshold, best_weights, compare_classes, target_shares
from calibrant.metrics.labels import Proportions
from calibrant.tables.class_table import ClassProbabilities
from calibrant.tables.rows import GROUP_HINT, Rows, group_columns, observed_groups

__all__ = ["ProportionRule"]

# A threshold of the score of the second class, or a weight for each class.
Rule: TypeAlias = "float | Floats"


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
    >>> {group: float(abs(found.difference[1]).round(3)) for group, found in rule.after_.groups.items()}
    {'north': 0.0, 'south': 0.0}
    """

    kind: ClassVar[str] = "labels"

    def __init__(self, *, target: Mapping[Any, float] | None = None, min_rows: int = 50) -> None:
        self.target = target
        self.min_rows = min_rows

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
        groups = {key: _Scores.from_rows(own, names) for key, own in rows.split().items() if not own.is_empty}
        self.classes_ = label_array(names)
        self.rule_: Rule = whole.fit(self.target)
        self.group_rules_ = {key: own.fit(self.target) for key, own in groups.items() if own.code.size >= least}
        compared = {key: own.compare(self.group_rules_.get(key, self.rule_)) for key, own in groups.items()}
        before, after = ({key: pair[i] for key, pair in compared.items()} for i in (0, 1))
        first, second = whole.compare(self.rule_)
        if after:  # the whole has the rules of the groups: its confusions are the sums of theirs
            second = Proportions(names, np.sum([own.confusion for own in after.values()], axis=0), {})
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
        if scores.ndim == 2 and scores.shape[1] != len(self.classes_):
            raise InputError(
                f"X must have one column for each of {len(self.classes_)} classes; got {scores.shape[1]}.", argument="X"
            )
        if by is None and self.group_rules_:
            raise InputError("by must be given, as in the fit; it is missing.", argument="by")
        code = _choose(scores, self.rule_)
        columns = tuple(_columns.read(column, name, hint=GROUP_HINT) for name, column in group_columns(by).items())
        if columns:
            _columns.check_lengths([_columns.ColumnData("X", scores), *columns])
        for key, rows in observed_groups(columns) if columns else []:
            code[rows] = _choose(scores[rows], self.group_rules_.get(key, self.rule_))
        labels: NDArray[Any] = self.classes_[code]
        return labels

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
        return {"rule": _plain_rule(self.rule_), "groups": groups}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore what `to_state` returns; anything else is an error.

        Parameters
        ----------
        state : dict
            What `to_state` returned; its keys are removed.
        """
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
        share = target_shares(target, self.code, self.weight, self.names)
        if self.scores.ndim == 2 and len(self.names) > 2:
            return best_weights(self.scores, self.weight, share)
        second = self.scores if self.scores.ndim == 1 else self.scores[:, 1]
        return best_threshold(second, self.weight, float(share[1]))

    def compare(self, rule: Rule) -> tuple[Proportions, Proportions]:
        """Return the proportions of the most probable classes, and of those that the rule predicts."""
        usual = (self.scores > 0.5).astype(np.int64) if self.scores.ndim == 1 else self.scores.argmax(axis=1)
        before, after = (
            compare_classes(self.code, each, self.names, self.weight) for each in (usual, _choose(self.scores, rule))
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
    values: Floats = column.values
    return values


def _choose(scores: Floats, rule: Rule) -> Ints:
    """Return the position of the predicted class of each row."""
    if isinstance(rule, np.ndarray):
        return np.asarray((scores * rule).argmax(axis=1))
    second = scores if scores.ndim == 1 else scores[:, 1]
    return np.asarray(second >= rule).astype(np.int64)


def _with_groups(found: Proportions, groups: Mapping[Any, Proportions]) -> Proportions:
    return Proportions(found.labels, found.confusion, MappingProxyType(dict(groups)), found.notes)


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
