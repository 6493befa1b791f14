"""Rounds of boosted trees on columns of features as small integer codes: fits, predictions and files."""

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Floats, Ints
from calibrant._support.errors import InputError, MissingExtraError, wrong_value
from calibrant._support.logistic import expit
from calibrant.calibrators import maps
from calibrant.tables.rows import several_columns

MOST_BINS = 64  # of a column of numbers
MOST_LABELS = 200  # of a column of categories; rarer ones share a code

Codes: TypeAlias = NDArray[np.uint8]


def code_cuts(values: Floats) -> Floats:
    """Return the cuts between bins of about equal size; each distinct value has its own bin if there are few.

    Values are finite. A bin holds the values from one cut to the next, that one excluded.
    """
    distinct, count = np.unique(values, return_counts=True)
    start = np.arange(distinct.size)
    if distinct.size > MOST_BINS:
        ends = np.cumsum(count)
        ranks = np.arange(1, MOST_BINS) * values.size // MOST_BINS
        start = np.unique(np.append(0, np.searchsorted(ends, ranks, side="right")))
    return maps.between(distinct, start) if distinct.size else np.empty(0)


@dataclass(frozen=True, eq=False)
class NumberCodes:
    """Bins of a column of numbers; the last code is that of missing cells."""

    name: str
    cuts: Floats

    is_category = False

    @property
    def n_codes(self) -> int:
        """Number of codes, that of missing cells among them."""
        return self.cuts.size + 2

    @classmethod
    def fit(cls, name: str, column: _columns.ColumnData) -> "NumberCodes":
        """Return the bins of a column; infinite cells count as the largest numbers."""
        values = _columns.numbers(column).values[~column.mask].astype(np.float64)
        largest = np.finfo(np.float64).max
        return cls(name, code_cuts(np.clip(values, -largest, largest)))

    def __call__(self, column: _columns.ColumnData) -> Codes:
        """Return the code of each row."""
        values = _columns.numbers(column).values.astype(np.float64)
        codes = np.searchsorted(self.cuts, values, side="right").astype(np.uint8)
        codes[column.mask] = self.n_codes - 1
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return the bins as plain data for JSON."""
        return {"name": self.name, "cuts": self.cuts.tolist()}


@dataclass(frozen=True, eq=False)
class CategoryCodes:
    """Labels of a column of categories.

    The code of a label is its place. If `other`, labels that are not listed share the code after them; else they are
    treated as missing. The last code is that of missing cells.
    """

    name: str
    labels: tuple[Any, ...]
    other: bool

    is_category = True

    @property
    def n_codes(self) -> int:
        """Number of codes, that of missing cells among them."""
        return len(self.labels) + self.other + 1

    @classmethod
    def fit(cls, name: str, column: _columns.ColumnData) -> "CategoryCodes":
        """Return the most frequent labels of a column, sorted."""
        labels, code = _columns.encode(column)
        count = np.bincount(code[code >= 0], minlength=len(labels))
        kept = np.sort(np.argsort(-count, kind="stable")[:MOST_LABELS])
        return cls(name, tuple(_plain_label(labels[i]) for i in kept), kept.size < len(labels))

    def __call__(self, column: _columns.ColumnData) -> Codes:
        """Return the code of each row; a label that was not seen in the fit is a rarer one, or missing."""
        labels, code = _columns.encode(column)
        self._check_types(column, labels)
        place = {label: i for i, label in enumerate(self.labels)}
        codes = [place.get(_plain_label(label), len(self.labels)) for label in labels]
        return np.array([*codes, self.n_codes - 1], dtype=np.uint8)[code]  # -1, missing, is the last one

    def _check_types(self, column: _columns.ColumnData, labels: Sequence[Any]) -> None:
        """Raise an error if the labels are text where those of the fit are not, or the reverse."""
        now, fitted = ({isinstance(label, str) for label in listed} for listed in (labels, self.labels))
        if now and fitted and not now & fitted:
            raise column.error(
                f"must hold labels of the same type as in the fit, such as {self.labels[0]!r}; got "
                f"{_plain_label(labels[0])!r}.",
                hint="Convert the column to text." if fitted == {True} else "Convert the column to numbers.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the labels as plain data for JSON."""
        odd = [label for label in self.labels if not _is_plain(label)]
        if odd:
            raise InputError(
                f"Categories of {self.name!r} must be text or finite numbers to be saved; got {odd[0]!r}.",
                hint="Encode them first.",
            )
        return {"name": self.name, "labels": list(self.labels), "other": self.other}


def _plain_label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _is_plain(label: Any) -> bool:
    return isinstance(label, (str, int)) or (isinstance(label, float) and math.isfinite(label))


def codes_from_dict(data: Any) -> NumberCodes | CategoryCodes:
    """Return the codes that `to_dict` describes; anything else is an error."""
    fields = set(data) if isinstance(data, Mapping) else set()
    if fields == {"name", "cuts"} and isinstance(data["name"], str):
        return NumberCodes(data["name"], cuts_from_list(data["cuts"]))
    if fields == {"name", "labels", "other"} and isinstance(data["name"], str):
        labels, other = data["labels"], data["other"]
        listed = isinstance(labels, list) and len(labels) <= MOST_LABELS and all(map(_is_plain, labels))
        if listed and len(set(labels)) == len(labels) and isinstance(other, bool):
            return CategoryCodes(data["name"], tuple(labels), other)
    raise InputError("a feature must have a name and cuts, or a name, different labels and other.")


def cuts_from_list(values: Any) -> Floats:
    if not isinstance(values, list) or len(values) >= MOST_BINS or not all(isinstance(v, float) for v in values):
        raise InputError(f"cuts must be a list of fewer than {MOST_BINS} numbers.")
    cuts = np.array(values, dtype=np.float64)
    if not (np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()):
        raise InputError("cuts must be finite and increase.")
    return cuts


def fit_codes(X: Any, features: Sequence[Any] | None = None) -> tuple[NumberCodes | CategoryCodes, ...]:
    """Return the codes of the columns of a frame or an array: of all, or of those that `features` names.

    Columns of text, and those that a frame declares as categories, are categories; all others are numbers.
    """
    named = _named_columns(X)
    chosen = list(named) if features is None else [_name_in(name, list(named)) for name in features]
    if not chosen or len(set(chosen)) < len(chosen):
        raise wrong_value("features", "must name at least one column, and each once", features)
    return tuple(_fit_column(name, named[name]) for name in chosen)


def _fit_column(name: str, given: Column) -> NumberCodes | CategoryCodes:
    column = _columns.read(given, f"X[{name!r}]")
    if column.values.dtype.kind in "Mmc":
        raise column.error(
            f"must hold numbers or categories; got type {column.values.dtype}.",
            hint="Convert it to numbers, or name the columns to use in features.",
        )
    declared = str(getattr(given, "dtype", "")) == "category"  # of pandas; those of polars are read as text
    if not declared:
        try:
            return NumberCodes.fit(name, column)
        except InputError:  # a cell is not a number
            pass
    return CategoryCodes.fit(name, column)


def apply_codes(coders: Sequence[NumberCodes | CategoryCodes], X: Any) -> Codes:
    """Return the codes of the columns of X, one column for each feature."""
    named = _named_columns(X)
    names = [_name_in(coder.name, list(named)) for coder in coders]
    read = [_columns.read(named[name], f"X[{name!r}]") for name in names]
    return np.column_stack([coder(column) for coder, column in zip(coders, read, strict=True)])


def _named_columns(X: Any) -> dict[str, Column]:
    if hasattr(type(X), "columns"):
        columns = several_columns(X, "X")
        assert columns is not None
        return columns
    matrix = np.asarray(X)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise InputError(
            f"X must have two dimensions, rows and features; got shape {matrix.shape}.",
            hint="Reshape your data, or pass a frame.",
            argument="X",
        )
    return {str(j): matrix[:, j] for j in range(matrix.shape[1])}


def _name_in(name: Any, names: list[str]) -> str:
    if str(name) not in names:
        raise InputError(
            f"features must name columns of X; got {name!r}, X has {', '.join(map(repr, names[:8]))}.", value=name
        )
    return str(name)


LONGEST_STEP = 3.0  # of one round, in log-odds: where few rows have an outcome, the estimate of a leaf is unbounded
MOST_LEAVES = 256  # of a tree
_BLOCK = 8192  # rows at once, so that all arrays stay in the cache


@dataclass(frozen=True)
class Node:
    """A node of a tree: a leaf with a value, or a split of one feature with the codes that go left."""

    value: float = 0.0
    feature: int = -1
    left: int = -1
    right: int = -1
    goes_left: Bools | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the node is a leaf."""
        return self.goes_left is None


class TreeRound:
    """One round: a constant and a few trees, whose features are codes and the bin of the current log-odds.

    Parameters
    ----------
    base : float
        The constant.
    cuts : array
        Cuts between the bins of the log-odds, which are the last feature.
    trees : sequence of sequences of Node
        The first node of each tree is its root; children come after their parents.
    """

    def __init__(self, base: float, cuts: Floats, trees: Sequence[Sequence[Node]]) -> None:
        self.base = base
        self.cuts = cuts
        self.trees: tuple[tuple[Node, ...], ...] = tuple(map(tuple, trees))
        nodes = [node for tree in self.trees for node in tree]
        first = np.cumsum([0, *map(len, self.trees)])
        self._roots = first[:-1]
        start = np.repeat(first[:-1], np.diff(first))
        place = np.arange(len(nodes))
        leaf = np.array([node.is_leaf for node in nodes], dtype=bool)
        self._value = np.array([node.value for node in nodes])
        # A leaf is its own child, so that all rows take the same number of steps.
        self._feature = np.where(leaf, 0, [node.feature for node in nodes])
        children = start[:, None] + np.array([[node.right, node.left] for node in nodes]).reshape(-1, 2)
        self._children = np.where(leaf[:, None], place[:, None], children).reshape(-1)
        splits = [node.goes_left for node in nodes if node.goes_left is not None]
        self._split = 256 * np.where(leaf, 0, np.cumsum(~leaf))  # the first 256 of the table below serve all leaves
        table = np.zeros((1 + len(splits), 256), dtype=np.uint8)
        for row, goes_left in zip(table[1:], splits, strict=True):
            row[: goes_left.size] = goes_left
        self._goes_left = table.reshape(-1)
        self._depth = max(map(_depth, self.trees), default=0)

    def __call__(self, codes: Codes, log_odds: Floats) -> Floats:
        """Return the change of the log-odds of each row."""
        step = np.empty(len(log_odds))
        for low in range(0, len(log_odds), _BLOCK):
            block = slice(low, low + _BLOCK)
            bins = np.searchsorted(self.cuts, log_odds[block], side="right").astype(np.uint8)
            step[block] = self._predict(np.column_stack([codes[block], bins]))
        return np.clip(step, -LONGEST_STEP, LONGEST_STEP)

    def _predict(self, codes: Codes) -> Floats:
        node = np.repeat(self._roots[None, :], len(codes), axis=0)
        first = codes.shape[1] * np.arange(len(codes))[:, None]
        flat = codes.reshape(-1)
        for _ in range(self._depth):
            code = flat.take(first + self._feature.take(node))
            node = self._children.take(2 * node + self._goes_left.take(self._split.take(node) + code))
        # One tree after the other, so that the sum does not depend on the block.
        total = np.full(len(codes), self.base)
        for column in self._value.take(node).T:
            total += column
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return the round as plain data for JSON; the codes that go left as runs, from and to, inclusive."""
        trees = [[_plain_node(node) for node in tree] for tree in self.trees]
        return {"base": self.base, "cuts": self.cuts.tolist(), "trees": trees}

    @classmethod
    def from_dict(cls, data: Any, n_codes: Sequence[int]) -> "TreeRound":
        """Return the round that `to_dict` describes; `n_codes` are those of the features without the log-odds."""
        base, cuts, trees = _fields(data, "a round", "base", "cuts", "trees")
        cuts = cuts_from_list(cuts)
        if not isinstance(trees, list) or not all(isinstance(tree, list) and tree for tree in trees):
            raise InputError("trees must be lists of nodes.")
        sizes = [*n_codes, cuts.size + 1]
        return cls(_number("base", base), cuts, [_tree(tree, sizes) for tree in trees])


def _depth(tree: Sequence[Node]) -> int:
    depth = [0] * len(tree)
    for parent, node in enumerate(tree):  # parents come before their children
        if not node.is_leaf:
            depth[node.left] = depth[node.right] = depth[parent] + 1
    return max(depth)


def _plain_node(node: Node) -> Any:
    if node.goes_left is None:
        return node.value
    edges = np.flatnonzero(np.diff(node.goes_left.astype(np.int8), prepend=0, append=0))
    runs = [[int(a), int(b) - 1] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return {"feature": node.feature, "left": node.left, "right": node.right, "codes": runs}


def _tree(nodes: list[Any], sizes: Sequence[int]) -> list[Node]:
    """Return the nodes of one tree: each but the root is the child of one earlier node, so there is no cycle."""
    if len(nodes) >= 2 * MOST_LEAVES:
        raise InputError(f"a tree must have at most {MOST_LEAVES} leaves.")
    tree = [_node(data, sizes) for data in nodes]
    children = [child for node in tree if not node.is_leaf for child in (node.left, node.right)]
    later = all(i < min(node.left, node.right) for i, node in enumerate(tree) if not node.is_leaf)
    if not later or sorted(children) != list(range(1, len(tree))):
        raise InputError("each node of a tree but the first must be the child of one earlier node.")
    return tree


def _node(data: Any, sizes: Sequence[int]) -> Node:
    if not isinstance(data, Mapping):
        return Node(value=_number("a leaf", data))
    if set(data) != {"feature", "left", "right", "codes"}:
        raise InputError("a node must be a number, or have feature, left, right and codes.")
    feature, left, right = (_index(name, data[name]) for name in ("feature", "left", "right"))
    if feature >= len(sizes):
        raise InputError(f"a feature of a tree must be below {len(sizes)}; got {feature}.")
    goes_left = np.zeros(sizes[feature], dtype=bool)
    last = -1
    runs = data["codes"]
    if not isinstance(runs, list) or not all(isinstance(run, list) and len(run) == 2 for run in runs):
        raise InputError("codes of a node must be pairs, from and to.")
    for low, high in ((_index("a code", low), _index("a code", high)) for low, high in runs):
        if not last < low <= high < goes_left.size:
            raise InputError(f"codes of a node must increase and be below {goes_left.size}; got {low} to {high}.")
        goes_left[low : high + 1], last = True, high
    return Node(feature=feature, left=left, right=right, goes_left=goes_left)


def _fields(data: Any, name: str, *fields: str) -> list[Any]:
    """Return the values of the fields of an object, which has no others."""
    if not isinstance(data, Mapping) or set(data) != set(fields):
        raise InputError(f"{name} must have {', '.join(fields[:-1])} and {fields[-1]}.")
    return [data[field] for field in fields]


def _index(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise InputError(f"{name} of a tree must be a whole number of at least 0; got {value!r}.")
    return value


def _number(name: str, value: Any) -> float:
    if type(value) is not float or not abs(value) < 1e100:  # so that sums are finite
        raise InputError(f"{name} of a tree must be a finite number; got {value!r}.")
    return value


@dataclass(frozen=True, eq=False)
class BoostedLogOdds:
    """A change of log-odds: a slope and an intercept, then rounds of trees, whose sum is multiplied by a scale."""

    slope: float
    intercept: float
    scale: float
    rounds: tuple[TreeRound, ...]

    def __call__(self, codes: Codes, log_odds: Floats) -> Floats:
        """Return the log-odds of each row."""
        start = end = self.slope * log_odds + self.intercept
        for trees in self.rounds:
            end = end + trees(codes, end)
        return rescaled(start, end, self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data for JSON."""
        rounds = [trees.to_dict() for trees in self.rounds]
        return {"slope": self.slope, "intercept": self.intercept, "scale": self.scale, "rounds": rounds}

    @classmethod
    def from_dict(cls, data: Any, n_codes: Sequence[int], n_rounds: int) -> "BoostedLogOdds":
        """Return the model that `to_dict` describes; anything else is an error."""
        *numbers, rounds = _fields(data, "a model", "slope", "intercept", "scale", "rounds")
        if not isinstance(rounds, list) or len(rounds) != n_rounds:
            raise InputError(f"each model must have {n_rounds} rounds.")
        slope, intercept, scale = map(_number, ("slope", "intercept", "scale"), numbers)
        return cls(slope, intercept, scale, tuple(TreeRound.from_dict(trees, n_codes) for trees in rounds))


def rescaled(start: Floats, end: Floats, scale: float) -> Floats:
    """Return log-odds whose change from the start is multiplied by a scale."""
    return start + scale * (end - start)


def mean_log_odds(models: Sequence[BoostedLogOdds], codes: Codes, log_odds: Floats) -> Floats:
    """Return the mean of the log-odds by each model."""
    total = np.zeros(len(log_odds))
    for model in models:
        total += model(codes, log_odds)
    return total / len(models)


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
    trees = [columns.tree(predictor) for (predictor,) in model._predictors]
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
            octets = bitsets[node["bitset_idx"]].astype("<u4").view(np.uint8)
            goes_left[codes] = np.unpackbits(octets, bitorder="little")[: codes.size]
        else:
            goes_left[:-1] = np.arange(goes_left.size - 1) <= node["num_threshold"]
        return Node(feature=feature, left=int(node["left"]), right=int(node["right"]), goes_left=goes_left)


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
    return 0.0, [_lightgbm_tree(tree["tree_structure"], sizes) for tree in model["tree_info"]]


def _lightgbm_tree(root: dict[str, Any], sizes: Sequence[int]) -> list[Node]:
    """Return the nodes of a tree as LightGBM dumps it, parents before their children."""
    waiting, nodes = [root], list[Node]()
    for node in waiting:  # which grows
        if "leaf_value" in node:
            nodes.append(Node(value=float(node["leaf_value"])))
            continue
        feature = int(node["split_feature"])
        left = len(waiting)
        waiting += [node["left_child"], node["right_child"]]
        nodes.append(Node(feature=feature, left=left, right=left + 1, goes_left=_lightgbm_codes(node, sizes[feature])))
    return nodes


def _lightgbm_codes(node: dict[str, Any], size: int) -> Bools:
    goes_left = np.zeros(size, dtype=bool)
    if node["decision_type"] == "==":
        goes_left[[int(code) for code in str(node["threshold"]).split("||")]] = True
        return goes_left
    goes_left[:-1] = np.arange(size - 1) <= node["threshold"]
    # Without missing cells in the fit, LightGBM reads them as 0.
    goes_left[-1] = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0
    return goes_left
