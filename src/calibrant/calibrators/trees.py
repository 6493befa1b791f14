"""Smoothed probabilities of decision trees and forests."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import InputError, wrong_value
from calibrant.calibrators.models import ModelOnFeatures, TrainingRows, fit_on, is_frozen

METHODS = ("m-estimate", "laplace", "curtailment")
_EVENTS = 10  # b m of Zadrozny & Elkan, and the expected number of events of a node with enough rows


@dataclass(eq=False, repr=False)
class TreeSmoothing(ModelOnFeatures):
    r"""Smoothed probabilities of the leaves of scikit-learn's trees and forests, without other data.

    A leaf with k of n training rows in a class predicts k / n, which is overconfident for small leaves. Instead:

    * ``"m-estimate"``: (k + b m) / (n + m), with b the base rate of the class;
    * ``"laplace"``: (k + 1) / (n + C) for C classes;
    * ``"curtailment"``: k / n of the leaf or its nearest ancestor with at least `min_rows` rows.

    A forest averages its smoothed trees.

    Parameters
    ----------
    estimator : DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier or ExtraTreesClassifier
        Fitted by `fit`; wrap a fitted one in ``sklearn.frozen.FrozenEstimator``.
    method : {"m-estimate", "laplace", "curtailment"}
    m : float, optional
        Weight of the base rate. By default b m = 10, with b the base rate of the second of two classes; 10 C for C > 2
        classes, which is the same for classes of equal size.
    min_rows : float, optional
        For curtailment. By default the number of rows with 10 expected events, which equals `m`.

    Attributes
    ----------
    estimator_ : the fitted tree or forest, unchanged
    m_, min_rows_ : float or None
        The values in use.

    See Also
    --------
    CalibratedModel

    Notes
    -----
    Counts are those of the tree: sums of weights and, in a forest with bootstrap, of bootstrap samples. Base rates are
    those of the root.

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
    >>> set(tree.fit(X, y).predict_proba(X)[:, 1])  # a full tree predicts 0 and 1 only
    {np.float64(0.0), np.float64(1.0)}
    >>> round(float(TreeSmoothing(tree, method="laplace").fit(X, y).predict_proba(X).max()), 2)
    0.99
    """

    cv = None  # no folds: the counts of the tree are used

    estimator: Any
    method: Literal["m-estimate", "laplace", "curtailment"] = "m-estimate"
    _: KW_ONLY
    m: float | None = None
    min_rows: float | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the tree or forest (unless frozen) and smooth the counts of its leaves.

        Parameters
        ----------
        X : array or frame of n rows
            Features, as the tree takes them.
        y : column of n labels
            Not used by a frozen tree or forest, which is fitted already.
        sample_weight : column of n weights, optional
            Importance of each row, for the fit of the tree or forest.
        **params
            Further arguments of the fit of the tree or forest, or metadata to route.

        Returns
        -------
        self
        """
        if self.method not in METHODS:
            raise wrong_value("method", f"must be one of {', '.join(METHODS)}", self.method)
        for name in ("m", "min_rows"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < np.inf:
                raise InputError(f"{name} must be a non-negative number; got {value!r}.", argument=name, value=value)
        rows = None if is_frozen(self.estimator) else TrainingRows.read(self, X, y, sample_weight, params)
        fitted = fit_on(self.estimator, rows)
        self._keep(fitted, fitted.classes_, "apply")
        trees = fitted_trees(fitted)
        n_classes = len(self.classes_)
        rates = [_counts(tree.tree_)[0] for tree in trees]
        base = np.mean([root / root.sum() for root in rates], axis=0)
        if n_classes == 2 and base[1] == 0:
            raise InputError("sample_weight must be positive for both classes; got 0 for the second.")
        usual = _EVENTS / float(base[1]) if n_classes == 2 else float(_EVENTS * n_classes)
        self.m_: float | None = (usual if self.m is None else float(self.m)) if self.method == "m-estimate" else None
        curtails = self.method == "curtailment"
        self.min_rows_: float | None = (usual if self.min_rows is None else float(self.min_rows)) if curtails else None
        self._values = [self._smooth(tree.tree_) for tree in trees]
        return self

    def _smooth(self, tree: Any) -> Floats:
        """Return the smoothed probabilities of each node."""
        k = _counts(tree)
        n = k.sum(axis=1, keepdims=True)
        if self.min_rows_ is not None:
            return np.asarray((k / n)[_ancestors_with_rows(tree, n[:, 0], self.min_rows_)])
        if self.m_ is not None:
            return np.asarray((k + self.m_ * k[0] / n[0]) / (n + self.m_))
        return np.asarray((k + 1) / (n + k.shape[1]))

    def predict_proba(self, X: Any) -> Floats:
        """Return smoothed probabilities, one column per class.

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
        leaves = np.asarray(_inside(self.estimator_).apply(X))
        columns = leaves[:, None] if leaves.ndim == 1 else leaves
        total = sum(values[column] for values, column in zip(self._values, columns.T, strict=True))
        return np.asarray(total / len(self._values))


def _inside(estimator: Any) -> Any:
    return estimator.estimator if is_frozen(estimator) else estimator


def fitted_trees(estimator: Any) -> list[Any]:
    """Return the fitted trees of a tree or a forest of classifiers."""
    inside = _inside(estimator)
    trees = [inside] if hasattr(inside, "tree_") else list(getattr(inside, "estimators_", []))
    one_target = isinstance(getattr(inside, "classes_", None), np.ndarray)
    if not trees or not all(hasattr(tree, "tree_") for tree in trees) or not one_target or not hasattr(inside, "apply"):
        raise InputError(
            f"estimator must be a decision tree or a forest of them with one target; got {inside!r}.",
            hint="For other classifiers use CalibratedModel.",
        )
    if len(_counts(trees[0].tree_)[0]) != len(inside.classes_):
        raise InputError(
            f"estimator must have trees that count classes; got {type(inside).__name__}.", hint="Use CalibratedModel."
        )
    return trees


def _counts(tree: Any) -> Floats:
    """Return the number (sum of weights) of rows per node and class."""
    return np.asarray(tree.value[:, 0, :] * tree.weighted_n_node_samples[:, None])


def _ancestors_with_rows(tree: Any, n: Floats, min_rows: float) -> Ints:
    """Return for each node its nearest ancestor, or itself, with enough rows; the root if there is none."""
    node = np.arange(tree.node_count)
    for parent in range(tree.node_count):  # parents come before their children
        for child in (tree.children_left[parent], tree.children_right[parent]):
            if child >= 0 and n[child] < min_rows:
                node[child] = node[parent]
    return node
