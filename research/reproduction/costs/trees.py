"""Pruned trees of many bootstrap samples of the same rows, in compiled loops.

The trees have the rules of `PrunedTree`. Features are sorted once for all samples; a sample is a number of draws per
row. A node is not split if its misclassified rows do not exceed the penalty, because a branch saves at most those rows.
scikit-learn breaks ties between features at random; here the first feature is taken.
"""

from typing import NamedTuple, Self

import numpy as np
from numba import njit

from research.reproduction.costs.models import LEAF_ROWS, SPLIT_ROWS, leaf_penalty, pruned_leaves

_FEW = 256  # number of distinct values up to which a feature is counted, not sorted
_SAME = np.float32(1e-7)  # values at most this far apart are not separated, as in scikit-learn
_BITS, _LOW = 32, 2**32 - 1  # rows and events are added up in one number: rows + events << 32


class Features(NamedTuple):
    """Features of rows, as float32 like in scikit-learn: those with few values are counted, the others are sorted."""

    columns: np.ndarray  # (features, rows)
    counted: np.ndarray  # numbers of features with few values
    code: np.ndarray  # (rows, counted): index of the value among the levels
    level: np.ndarray  # values of the counted features, one feature after the other
    ends: np.ndarray  # where the levels of a counted feature end
    sorted: np.ndarray  # numbers of the other features
    order: np.ndarray  # (sorted, rows): rows by value

    @classmethod
    def of(cls, X: np.ndarray) -> Self:
        columns = np.ascontiguousarray(X.T, dtype=np.float32)
        found = [np.unique(column, return_inverse=True) for column in columns]
        counted = np.array([i for i, (values, _) in enumerate(found) if values.size <= _FEW], np.int64)
        rest = np.setdiff1d(np.arange(len(columns)), counted)
        ends = np.cumsum([found[i][0].size for i in counted], dtype=np.int64)
        starts = np.concatenate([[0], ends[:-1]])
        code = np.zeros((len(X), counted.size), np.int32)
        for at, i in enumerate(counted):
            code[:, at] = found[i][1] + starts[at]
        level = np.concatenate([np.empty(0, np.float32), *(found[i][0] for i in counted)])
        order = np.argsort(columns[rest], axis=1, kind="stable").astype(np.int32)
        return cls(columns, counted, code, level, ends, rest, order)


def predictions(features: Features, y: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return the probabilities of all rows by the tree of a bootstrap sample, given the number of draws of each row."""
    penalty = leaf_penalty(int(draws.sum()), int(draws @ y))
    left, *rest, n, k = _grown(*features, draws + (draws * y << _BITS), penalty, SPLIT_ROWS, LEAF_ROWS)
    leaf = pruned_leaves(left, rest[0], n, k, penalty)
    left = np.where((left >= 0) & (leaf[left] != leaf), left, -1)
    return (k / n)[_leaves(features.columns, left, *rest)]


@njit(cache=True)
def _grown(columns, counted, code, level, ends, sorted_, order, draws, penalty, split_rows, leaf_rows):
    """Return children, features, thresholds, rows and events of the nodes; children follow their parent."""
    rows = np.flatnonzero(draws > 0).astype(np.int32)
    order = _drawn(order, draws, rows.size)
    goes_left = np.zeros(draws.size, np.bool_)
    most = 2 * draws.size // leaf_rows + 3
    left, right, feature = np.full(most, -1, np.int64), np.full(most, -1, np.int64), np.zeros(most, np.int64)
    threshold, held = np.zeros(most), np.zeros(most, np.int64)
    held[0] = draws.sum()
    stack, nodes = [(0, 0, rows.size)], 1
    while stack:
        node, start, end = stack.pop()
        n, k = held[node] & _LOW, held[node] >> _BITS
        if n < split_rows or min(k, n - k) <= penalty:
            continue
        # Ties go to the feature with the lowest number, whether it is counted or sorted.
        _, best, cut, on_left = _better(
            _best_level(rows[start:end], counted, code, level, ends, draws, held[node], leaf_rows),
            _best_position(columns, order[:, start:end], sorted_, draws, held[node], leaf_rows),
        )
        if best < 0:
            continue
        feature[node], threshold[node], left[node], right[node] = best, cut, nodes, nodes + 1
        held[nodes], held[nodes + 1] = on_left, held[node] - on_left
        middle = start + _partition(columns[best], rows[start:end], order[:, start:end], goes_left, cut)
        stack.append((nodes, start, middle))
        stack.append((nodes + 1, middle, end))
        nodes += 2
    held = held[:nodes]
    return left[:nodes], right[:nodes], feature[:nodes], threshold[:nodes], held & _LOW, held >> _BITS


@njit(cache=True)
def _drawn(order, draws, n):
    """Return the sorted rows that were drawn."""
    kept = np.empty((order.shape[0], n), np.int32)
    for i in range(order.shape[0]):
        at = 0
        for row in order[i]:
            if draws[row] > 0:
                kept[i, at] = row
                at += 1
    return kept


@njit(cache=True)
def _better(a, b):
    return a if a[0] > b[0] or (a[0] == b[0] and a[1] < b[1]) else b


@njit(cache=True)
def _purity(held, on_left, leaf_rows):
    """Return the part of Gini's index that depends on the split, to be maximised; -inf if a leaf is too small."""
    left, right = on_left & _LOW, (held - on_left) & _LOW
    if left < leaf_rows or right < leaf_rows:
        return -np.inf
    a, b = on_left >> _BITS, (held - on_left) >> _BITS
    return float((left - a) ** 2 + a**2) / left + float((right - b) ** 2 + b**2) / right


@njit(cache=True)
def _best_level(rows, counted, code, level, ends, draws, held, leaf_rows):
    """Return purity, feature, threshold and the draws on the left of the best split of a feature with few values."""
    best = (-np.inf, -1, 0.0, 0)
    count = np.zeros(level.size, np.int64)
    for row in rows:
        for at in code[row]:
            count[at] += draws[row]
    start = 0
    for i in range(counted.size):
        on_left, last = 0, -1
        for j in range(start, ends[i]):
            if count[j] == 0:
                continue
            if last >= 0 and level[j] > level[last] + _SAME:
                purity = _purity(held, on_left, leaf_rows)
                if purity > best[0]:
                    best = (purity, counted[i], level[last] / 2.0 + level[j] / 2.0, on_left)
            on_left += count[j]
            last = j
        start = ends[i]
    return best


@njit(cache=True)
def _best_position(columns, order, sorted_, draws, held, leaf_rows):
    """Return the same for the sorted features."""
    best = (-np.inf, -1, 0.0, 0)
    for i in range(sorted_.size):
        values, on_left = columns[sorted_[i]], 0
        last = values[order[i, 0]]
        for row in order[i]:
            value = values[row]
            if value > last + _SAME:
                purity = _purity(held, on_left, leaf_rows)
                if purity > best[0]:
                    best = (purity, sorted_[i], last / 2.0 + value / 2.0, on_left)
            on_left += draws[row]
            last = value
    return best


@njit(cache=True)
def _partition(values, rows, order, goes_left, threshold):
    """Move rows at most the threshold to the front, in each order, and return their number."""
    n = 0
    for row in rows:
        goes_left[row] = values[row] <= threshold
        n += goes_left[row]
    right = np.empty(rows.size - n, np.int32)
    _move(rows, goes_left, right)
    for i in range(order.shape[0]):
        _move(order[i], goes_left, right)
    return n


@njit(cache=True)
def _move(rows, goes_left, right):
    front, back = 0, 0
    for row in rows:
        if goes_left[row]:
            rows[front] = row
            front += 1
        else:
            right[back] = row
            back += 1
    rows[front:] = right


@njit(cache=True)
def _leaves(columns, left, right, feature, threshold):
    """Return the leaf of each row."""
    leaf = np.zeros(columns.shape[1], np.int64)
    for row in range(columns.shape[1]):
        node = 0
        while left[node] >= 0:
            node = left[node] if columns[feature[node], row] <= threshold[node] else right[node]
        leaf[row] = node
    return leaf
