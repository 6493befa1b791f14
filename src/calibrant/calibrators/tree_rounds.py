"""Rounds of boosted trees on codes of features: how they predict, and how they are written to files and read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import InputError
from calibrant.calibrators.feature_codes import Codes, cuts_from_list

__all__ = ["BoostedLogOdds", "Node", "TreeRound", "mean_log_odds", "rescaled"]

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
        self.base, self.cuts = base, cuts
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
        if not isinstance(data, Mapping) or set(data) != {"base", "cuts", "trees"}:
            raise InputError("a round must have base, cuts and trees.")
        cuts = cuts_from_list(data["cuts"])
        trees = data["trees"]
        if not isinstance(trees, list) or not all(isinstance(tree, list) and tree for tree in trees):
            raise InputError("trees must be lists of nodes.")
        sizes = [*n_codes, cuts.size + 1]
        return cls(_number("base", data["base"]), cuts, [_tree(tree, sizes) for tree in trees])


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
    for low, high in _runs(data["codes"]):
        if not last < low <= high < goes_left.size:
            raise InputError(f"codes of a node must increase and be below {goes_left.size}; got {low} to {high}.")
        goes_left[low : high + 1], last = True, high
    return Node(feature=feature, left=left, right=right, goes_left=goes_left)


def _runs(data: Any) -> list[tuple[int, int]]:
    if not isinstance(data, list) or not all(isinstance(run, list) and len(run) == 2 for run in data):
        raise InputError("codes of a node must be pairs, from and to.")
    return [(_index("a code", low), _index("a code", high)) for low, high in data]


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
        start = found = self.slope * log_odds + self.intercept
        for each in self.rounds:
            found = found + each(codes, found)
        return rescaled(start, found, self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data for JSON."""
        rounds = [each.to_dict() for each in self.rounds]
        return {"slope": self.slope, "intercept": self.intercept, "scale": self.scale, "rounds": rounds}

    @classmethod
    def from_dict(cls, data: Any, n_codes: Sequence[int], n_rounds: int) -> "BoostedLogOdds":
        """Return the model that `to_dict` describes; anything else is an error."""
        if not isinstance(data, Mapping) or set(data) != {"slope", "intercept", "scale", "rounds"}:
            raise InputError("a model must have slope, intercept, scale and rounds.")
        rounds = data["rounds"]
        if not isinstance(rounds, list) or len(rounds) != n_rounds:
            raise InputError(f"each model must have {n_rounds} rounds.")
        slope, intercept, scale = (_number(name, data[name]) for name in ("slope", "intercept", "scale"))
        return cls(slope, intercept, scale, tuple(TreeRound.from_dict(each, n_codes) for each in rounds))


def rescaled(start: Floats, end: Floats, scale: float) -> Floats:
    """Return log-odds whose change from the start is multiplied by a scale."""
    return start + scale * (end - start)


def mean_log_odds(models: Sequence[BoostedLogOdds], codes: Codes, log_odds: Floats) -> Floats:
    """Return the mean of the log-odds by each model."""
    total = np.zeros(len(log_odds))
    for model in models:
        total += model(codes, log_odds)
    return total / len(models)
