"""Fits of one round of trees to residual log-odds, by scikit-learn or by LightGBM."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import MissingExtraError
from calibrant._support.logistic import expit
from calibrant.calibrators.feature_codes import CategoryCodes, Codes, NumberCodes, code_cuts
from calibrant.calibrators.tree_rounds import Node, TreeRound

__all__ = ["Backend", "TreeRows", "TreeSettings", "choose_backend", "fit_round"]

Backend = Literal["sklearn", "lightgbm"]

TREES = 10  # of a round
LEARNING_RATE = 0.1
MAX_DEPTH = 6
L2 = 1.0
# Share of the features that each split may use. A segment of two features need not show in either of them alone; some
# splits must then use a feature that does not lower the loss by itself.
FEATURE_SHARE = 0.5
# Least variance p (1 - p) of a row: it bounds Newton's steps where p is near 0 or 1.
_LEAST_VARIANCE = 0.01


@dataclass(frozen=True)
class TreeSettings:
    """Size of the trees, and the seed of what their library draws."""

    max_leaf_nodes: int
    min_samples_leaf: int
    seed: int


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Rows to fit: codes of the features, outcomes 0 and 1, and weights."""

    coders: Sequence[NumberCodes | CategoryCodes]
    codes: Codes
    event: Ints
    weight: Floats

    def part(self, rows: Ints) -> "TreeRows":
        """Return some of the rows."""
        return TreeRows(self.coders, self.codes[rows], self.event[rows], self.weight[rows])

    def design(self, log_odds: Floats, cuts: Floats) -> Floats:
        """Return codes as numbers, with NaN for missing cells; the bin of the log-odds is the last column.

        A column without any other cell is constant: scikit-learn refuses a column of NaN.
        """
        matrix = np.column_stack([self.codes, np.searchsorted(cuts, log_odds, side="right")]).astype(np.float64)
        for j, coder in enumerate(self.coders):
            missing = self.codes[:, j] == coder.n_codes - 1
            matrix[missing, j] = 0.0 if missing.all() else np.nan
        return matrix

    @property
    def categories(self) -> list[int]:
        """Columns that hold categories."""
        return [j for j, coder in enumerate(self.coders) if coder.is_category]


def choose_backend(backend: str) -> Backend:
    """Return the library that fits the trees; "auto" is LightGBM if it is installed."""
    installed = importlib.util.find_spec("lightgbm") is not None
    if backend == "lightgbm" and not installed:
        raise MissingExtraError("backend='lightgbm' needs LightGBM", "lightgbm", name="lightgbm")
    return "lightgbm" if backend == "lightgbm" or (backend == "auto" and installed) else "sklearn"


def fit_round(rows: TreeRows, log_odds: Floats, settings: TreeSettings, backend: Backend) -> TreeRound:
    """Return the round of trees that is fitted to the residuals of the current log-odds.

    One thread: sums of other threads are added in another order, so results would depend on their number.
    """
    cuts = code_cuts(log_odds)
    sizes = [*(coder.n_codes for coder in rows.coders), cuts.size + 2]
    fit = _fit_lightgbm if backend == "lightgbm" else _fit_sklearn
    with threadpool_limits(limits=1, user_api="openmp"):
        base, trees = fit(rows, rows.design(log_odds, cuts), log_odds, settings, sizes)
    return TreeRound(base, cuts, [_drop_missing_log_odds(tree, len(rows.coders)) for tree in trees])


def _drop_missing_log_odds(tree: list[Node], last: int) -> list[Node]:
    """Return the tree without the code of missing log-odds, which do not exist."""
    return [
        Node(feature=last, left=node.left, right=node.right, goes_left=node.goes_left[:-1])
        if node.goes_left is not None and node.feature == last
        else node
        for node in tree
    ]


# scikit-learn


def _fit_sklearn(
    rows: TreeRows, design: Floats, log_odds: Floats, settings: TreeSettings, sizes: Sequence[int]
) -> tuple[float, list[list[Node]]]:
    """Fit trees by least squares on (y - p) / h with weights h = p (1 - p): a Newton step of the logistic loss."""
    p = expit(log_odds)
    variance = np.maximum(p * (1 - p), _LEAST_VARIANCE)
    columns = _SklearnColumns.of(rows.categories, design, sizes)
    model = HistGradientBoostingRegressor(
        max_iter=TREES,
        learning_rate=LEARNING_RATE,
        max_leaf_nodes=settings.max_leaf_nodes,
        min_samples_leaf=settings.min_samples_leaf,
        max_depth=MAX_DEPTH,
        l2_regularization=L2,
        max_features=FEATURE_SHARE,
        early_stopping=False,
        categorical_features=list(range(len(rows.categories))) or None,
        random_state=settings.seed,
    )
    model.fit(columns.design(design), (rows.event - p) / variance, sample_weight=rows.weight * variance)
    trees = [columns.tree(each) for (each,) in model._predictors]
    return float(np.ravel(model._baseline_prediction)[0]), trees


@dataclass(frozen=True, eq=False)
class _SklearnColumns:
    """Columns as scikit-learn uses them: categories first, each numbered by the rank of the codes that occur."""

    order: list[int]  # of the features
    seen: list[Ints]  # codes of each column of categories
    sizes: Sequence[int]

    @classmethod
    def of(cls, categories: list[int], design: Floats, sizes: Sequence[int]) -> "_SklearnColumns":
        order = categories + [j for j in range(design.shape[1]) if j not in categories]
        seen = [np.unique(design[~np.isnan(design[:, j]), j]).astype(np.int64) for j in categories]
        return cls(order, seen, sizes)

    def design(self, design: Floats) -> Floats:
        ordered = design[:, self.order]
        for j, codes in enumerate(self.seen):
            present = ~np.isnan(ordered[:, j])
            ordered[present, j] = np.searchsorted(codes, ordered[present, j])
        return ordered

    def tree(self, predictor: Any) -> list[Node]:
        """Return the nodes of a tree of scikit-learn, which has no public form of them."""
        return [self._node(node, predictor.raw_left_cat_bitsets) for node in predictor.nodes]

    def _node(self, node: Any, bitsets: NDArray[np.uint32]) -> Node:
        if node["is_leaf"]:
            return Node(value=float(node["value"]))
        column = int(node["feature_idx"])
        feature = self.order[column]
        missing = bool(node["missing_go_to_left"])
        goes_left = np.full(self.sizes[feature], missing)  # so do categories that do not occur
        if node["is_categorical"]:
            codes = self.seen[column]
            goes_left[codes] = _bits(bitsets[node["bitset_idx"]])[: codes.size]
        else:
            goes_left[:-1] = np.arange(goes_left.size - 1) <= node["num_threshold"]
        return Node(feature=feature, left=int(node["left"]), right=int(node["right"]), goes_left=goes_left)


def _bits(words: NDArray[np.uint32]) -> Bools:
    return np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(bool)


# LightGBM


def _fit_lightgbm(
    rows: TreeRows, design: Floats, log_odds: Floats, settings: TreeSettings, sizes: Sequence[int]
) -> tuple[float, list[list[Node]]]:
    """Fit trees to the logistic loss, with the current log-odds as the initial score."""
    import lightgbm

    data = lightgbm.Dataset(
        design,
        label=rows.event,
        weight=rows.weight,
        init_score=log_odds,
        categorical_feature=rows.categories,
        params={"max_bin": 255, "min_data_in_bin": 1, "feature_pre_filter": False, "verbosity": -1, "num_threads": 1},
    )
    options = {
        "objective": "binary",
        "learning_rate": LEARNING_RATE,
        "num_leaves": settings.max_leaf_nodes,
        "min_data_in_leaf": settings.min_samples_leaf,
        "max_depth": MAX_DEPTH,
        "lambda_l2": L2,
        "feature_fraction_bynode": FEATURE_SHARE,
        "seed": settings.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    model = lightgbm.train(options, data, num_boost_round=TREES).dump_model()
    return 0.0, [_lightgbm_tree(each["tree_structure"], sizes) for each in model["tree_info"]]


def _lightgbm_tree(root: dict[str, Any], sizes: Sequence[int]) -> list[Node]:
    """Return the nodes of a tree as LightGBM dumps it, parents before their children."""
    waiting, found = [root], list[Node]()
    for node in waiting:  # which grows
        if "leaf_value" in node:
            found.append(Node(value=float(node["leaf_value"])))
            continue
        feature = int(node["split_feature"])
        left = len(waiting)
        waiting += [node["left_child"], node["right_child"]]
        found.append(Node(feature=feature, left=left, right=left + 1, goes_left=_lightgbm_codes(node, sizes[feature])))
    return found


def _lightgbm_codes(node: dict[str, Any], size: int) -> Bools:
    goes_left = np.zeros(size, dtype=bool)
    if node["decision_type"] == "==":
        goes_left[[int(code) for code in str(node["threshold"]).split("||")]] = True
        return goes_left
    goes_left[:-1] = np.arange(size - 1) <= node["threshold"]
    # Without missing cells in the fit, LightGBM reads them as 0.
    goes_left[-1] = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0
    return goes_left
