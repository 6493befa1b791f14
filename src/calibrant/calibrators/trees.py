"""Smoothed probabilities of decision trees and forests."""

from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats, Ints
from calibrant.calibrators.models import ModelWithCalibrator
from calibrant.calibrators.responses import Rows, fit_on, is_frozen

__all__ = ["TreeSmoothing"]

METHODS = ("m-estimate", "laplace", "curtailment")
_EVENTS = 10  # Zadrozny & Elkan's b m, and the events that a node of b v rows can be expected to hold


class TreeSmoothing(ModelWithCalibrator):
    r"""Better probabilities for the leaves of scikit-learn's trees and forests, without other data.

    A leaf with k of n training rows in a class says k / n, which for small leaves is far too sure. Instead:

    * ``"m-estimate"``: (k + b m) / (n + m), with b the base rate of the class;
    * ``"laplace"``: (k + 1) / (n + C) for C classes;
    * ``"curtailment"``: k / n of the nearest node above the leaf (or itself) that holds at least `min_rows` rows.

    A forest averages its smoothed trees.

    Parameters
    ----------
    estimator : DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier or ExtraTreesClassifier
        Fitted by `fit`; one that is already fitted goes into ``sklearn.frozen.FrozenEstimator``.
    method : {"m-estimate", "laplace", "curtailment"}
    m : float, optional
        Weight of the base rate. By default b m = 10, with b the base rate of the second of two classes; 10 C for C > 2
        classes, which is the same for classes of equal size.
    min_rows : float, optional
        For curtailment. By default as many rows as hold 10 events on average, the same number as `m`.

    Attributes
    ----------
    estimator_ : the fitted tree or forest, unchanged
    m_, min_rows_ : float or None
        What was used.

    Notes
    -----
    Rows are counted as the tree counted them: by weight (the sum of weights plays the number of rows), and in a forest
    with bootstrap as often as drawn. Base rates are those at the root.

    References
    ----------
    .. [1] Zadrozny & Elkan (2001), "Obtaining calibrated probability estimates from decision trees and naive Bayesian
       classifiers".
    .. [2] Provost & Domingos (2000), "Well-trained PETs: improving probability estimation trees".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_classification(500, flip_y=0.2, random_state=0)
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> set(tree.fit(X, y).predict_proba(X)[:, 1])  # a full tree is sure of everything
    {np.float64(0.0), np.float64(1.0)}
    >>> round(float(TreeSmoothing(tree, method="laplace").fit(X, y).predict_proba(X).max()), 2)
    0.99
    """

    cv = None  # no folds: the tree's own counts serve

    def __init__(
        self,
        estimator: Any,
        method: Literal["m-estimate", "laplace", "curtailment"] = "m-estimate",
        *,
        m: float | None = None,
        min_rows: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.m = m
        self.min_rows = min_rows

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the tree or forest (unless frozen) and smooth the counts of its leaves."""
        if self.method not in METHODS:
            raise InputError(
                f"method must be one of {', '.join(METHODS)}; it is {self.method!r}.",
                argument="method",
                value=self.method,
            )
        for name in ("m", "min_rows"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise InputError(f"{name} must be a number from 0 on; it is {value!r}.", argument=name, value=value)
        rows = None if is_frozen(self.estimator) else Rows.read(self, X, y, sample_weight, params)
        fitted = fit_on(self.estimator, rows)
        self._keep(fitted, fitted.classes_, "apply")
        trees = trees_of(fitted)
        n_classes = len(self.classes_)
        rates = [_counts(tree.tree_)[0] for tree in trees]
        base = np.mean([root / root.sum() for root in rates], axis=0)
        if n_classes == 2 and base[1] == 0:
            raise InputError("TreeSmoothing needs both classes; the second has no weight.", argument="sample_weight")
        usual = _EVENTS / float(base[1]) if n_classes == 2 else float(_EVENTS * n_classes)
        self.m_ = (usual if self.m is None else float(self.m)) if self.method == "m-estimate" else None
        curtails = self.method == "curtailment"
        self.min_rows_ = (usual if self.min_rows is None else float(self.min_rows)) if curtails else None
        self._values = [self._smoothed(tree.tree_) for tree in trees]
        return self

    def _smoothed(self, tree: Any) -> Floats:
        """Probabilities of every node, of which leaves are asked."""
        k = _counts(tree)
        n = k.sum(axis=1, keepdims=True)
        if self.min_rows_ is not None:
            return np.asarray((k / n)[_populated(tree, n[:, 0], self.min_rows_)])
        if self.m_ is not None:
            return np.asarray((k + self.m_ * k[0] / n[0]) / (n + self.m_))
        return np.asarray((k + 1) / (n + k.shape[1]))

    def predict_proba(self, X: Any) -> Floats:
        """Smoothed probabilities, one column a class."""
        check_is_fitted(self)
        leaves = np.asarray(_inside(self.estimator_).apply(X))
        columns = leaves[:, None] if leaves.ndim == 1 else leaves
        total = sum(values[column] for values, column in zip(self._values, columns.T, strict=True))
        return np.asarray(total / len(self._values))


def _inside(estimator: Any) -> Any:
    return estimator.estimator if is_frozen(estimator) else estimator


def trees_of(estimator: Any) -> list[Any]:
    """The fitted trees of a tree or a forest of classifiers."""
    inside = _inside(estimator)
    trees = [inside] if hasattr(inside, "tree_") else list(getattr(inside, "estimators_", []))
    one_target = isinstance(getattr(inside, "classes_", None), np.ndarray)
    if not trees or not all(hasattr(tree, "tree_") for tree in trees) or not one_target or not hasattr(inside, "apply"):
        raise InputError(
            f"TreeSmoothing needs a decision tree or a forest of them, for one target; it is {inside!r}.",
            hint="For other classifiers use CalibratedModel.",
            argument="estimator",
        )
    if len(_counts(trees[0].tree_)[0]) != len(inside.classes_):
        raise InputError(
            f"TreeSmoothing needs trees that count classes; those of {type(inside).__name__} do not.",
            hint="Use CalibratedModel.",
            argument="estimator",
        )
    return trees


def _counts(tree: Any) -> Floats:
    """Rows of every class in every node: the sum of weights plays the number of rows."""
    weight = tree.weighted_n_node_samples
    return np.asarray(tree.value[:, 0, :] * weight[:, None])


def _populated(tree: Any, n: Floats, min_rows: float) -> Ints:
    """For every node the nearest one above it, itself included, that holds enough rows; the root in any case."""
    node = np.arange(tree.node_count)
    for parent in range(tree.node_count):  # parents come before their children
        for child in (tree.children_left[parent], tree.children_right[parent]):
            if child >= 0 and n[child] < min_rows:
                node[child] = node[parent]
    return node
