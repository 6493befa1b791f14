"""The models of Yang & Bi: trees pruned as in R's rpart, forests, and a softmax layer.

The paper names neither software nor settings. A fully grown tree costs 78 times the printed value (Default); trees with
the defaults of rpart have the printed costs on all five data sets, so its rules are used: 20 rows to split, 7 rows per
leaf, and a branch is kept only if it lowers the error by 1 % of that of the root per additional leaf (cp = 0.01).
(rpart bounds the gain of a branch by its first splits, and in about one of 25 trees keeps fewer leaves.)
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

SPLIT_ROWS, LEAF_ROWS, _CP = 20, 7, 0.01
_ROUNDING = 1e-9  # errors are whole numbers of rows, summed with the penalty as floats


class PrunedTree(ClassifierMixin, BaseEstimator):
    """A tree split by Gini's index and pruned: the smallest tree with the least misclassified rows + cp per leaf."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.classes_ = np.array([0, 1])
        penalty = leaf_penalty(len(y), int(np.sum(y)))
        # The gain of a branch must exceed the penalty, and is at most half of its rows.
        least = max(SPLIT_ROWS, int(np.ceil(2 * penalty)))
        grown = DecisionTreeClassifier(min_samples_split=least, min_samples_leaf=LEAF_ROWS, random_state=0).fit(X, y)
        self.grown_, tree, rate = grown, grown.tree_, grown.tree_.value[:, 0, 1]
        leaf = pruned_leaves(
            tree.children_left, tree.children_right, tree.n_node_samples, rate * tree.n_node_samples, penalty
        )
        self.probability_ = rate[leaf]
        self.n_leaves_ = len(set(leaf[tree.children_left < 0].tolist()))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = self.probability_[self.grown_.apply(X)]
        return np.column_stack([1 - p, p])


def leaf_penalty(n: int, k: int) -> float:
    """Return the number of misclassified rows that a leaf must save: 1 % of those of the root."""
    return _CP * min(k, n - k)


def pruned_leaves(
    children_left: np.ndarray, children_right: np.ndarray, n: np.ndarray, k: np.ndarray, penalty: float
) -> np.ndarray:
    """Return for each node of a grown tree, with n rows and k events per node, its leaf in the pruned tree.

    Children have higher numbers than their parent, so one pass in decreasing order adds up the costs of branches.
    """
    left, right = children_left.tolist(), children_right.tolist()
    cost = (np.minimum(k, n - k) + penalty).tolist()
    split = [False] * len(left)
    for node in reversed(range(len(left))):
        if left[node] >= 0 and (branch := cost[left[node]] + cost[right[node]]) < cost[node] - _ROUNDING:
            cost[node], split[node] = branch, True
    home = list(range(len(left)))
    for node in range(len(left)):
        for child in (left[node], right[node]) if left[node] >= 0 else ():
            home[child] = child if split[node] and home[node] == node else home[node]
    return np.array(home)


class PrunedRegressionTree(RegressorMixin, BaseEstimator):
    """The same for regression: branches must lower the squared error by 1 % of that of the root per leaf."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        rules = {"min_samples_split": SPLIT_ROWS, "min_samples_leaf": LEAF_ROWS, "ccp_alpha": _CP * float(np.var(y))}
        self.tree_ = DecisionTreeRegressor(random_state=0, **rules).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.tree_.predict(X)


class SoftmaxLayer(RegressorMixin, BaseEstimator):
    """Logistic regression on probabilities: each row has a weight q for class 1 and 1 - q for class 0."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        twice, label = np.vstack([X, X]), np.repeat([1, 0], len(y))
        self.layer_ = softmax_layer().fit(twice, label, sample_weight=np.concatenate([y, 1 - y]))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.layer_.predict_proba(X)[:, 1]


def softmax_layer() -> LogisticRegression:
    return LogisticRegression(C=10, max_iter=1000)


def classifier(model: str, seed: int) -> Any:
    """Return an unfitted classifier."""
    if model == "tree":
        return PrunedTree()
    if model == "forest":
        return RandomForestClassifier(100, random_state=seed)
    return softmax_layer()


def learner(model: str) -> Any:
    """Return the regressor of cost-minimising probabilities: a tree, also for forests, as in the paper."""
    return SoftmaxLayer() if model == "softmax" else PrunedRegressionTree()
