"""The kernel in NumPy and SciPy: used without a compiler, and the reference for the compiled kernel.

Both kernels give identical counts and decisions. Sums of floating point numbers agree within a relative 1e-12: those of
the compiled kernel are exact, or added in an order that suits the processor. `reference_replicates` has the replicates.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.interface import Codes, GroupTables, Order
from calibrant._kernels.preconditions import (
    check_bins,
    check_counts,
    check_edges,
    check_equal_widths,
    check_group_tables,
    check_groups,
    check_lengths,
    check_level,
    check_scores,
    check_starts,
    check_sums,
    require,
)
from calibrant._kernels.scipy_binomial import binomial_pvalue
from calibrant._support.arrays import Floats, Ints, Weights

__all__ = [
    "bin_sums",
    "count",
    "count_groups",
    "cumulative_extremes",
    "encode",
    "free_memory",
    "locate",
    "merge_groups",
    "pava_bc",
    "rejected",
    "row_order",
    "row_squared_errors",
    "row_sums",
    "squared_errors",
    "venn_abers",
    "window_distances",
]


def count(score: NDArray[Any], label: NDArray[Any]) -> tuple[Floats, Ints, Ints] | None:
    """Return the distinct scores in increasing order, the number of rows of each, and the number with label 1.

    Return None if a score is outside [0, 1] or NaN, or a label is neither 0 nor 1.
    `score` is float32 or float64; labels may have any numeric type.
    """
    check_lengths("score and label", score, label)
    keys = _keys(score, label)
    if keys is None:
        return None
    keys.sort()
    scores = (keys >> 1).view(np.float64)
    return _add_up(np.zeros_like(keys), scores, np.ones(keys.size, dtype=np.int64), keys & 1, 1)[1:]


def _keys(score: NDArray[Any], label: NDArray[Any]) -> NDArray[np.uint64] | None:
    """Return score and label of each row as one number; None if one is not valid."""
    positive = label == 1
    if not (np.all((score >= 0) & (score <= 1)) and np.all(positive | (label == 0))):
        return None
    # The bit patterns of scores in [0, 1] have the order of their values and a free top bit: score and label
    # fit one integer, so one sort of integers brings equal scores together. + 0.0 turns -0.0 into 0.0.
    keys: NDArray[np.uint64] = ((score.astype(np.float64) + 0.0).view(np.uint64) << 1) | positive
    return keys


def count_groups(score: NDArray[Any], label: NDArray[Any], group: Codes, groups: int) -> GroupTables | None:
    """Return where the table of each group begins, and the end; and scores, n and k of all tables, as of `count`.

    Groups are numbers from 0 to `groups` - 1. Return None as `count`, or if a group is another number.
    """
    check_groups(groups, score, label, group)
    keys = _keys(score, label)
    if keys is None or not np.all((group >= 0) & (group < groups)):
        return None
    order = np.lexsort((keys, group))
    keys = keys[order]
    ones = np.ones(order.size, dtype=np.int64)
    return _add_up(group[order], (keys >> 1).view(np.float64), ones, keys & 1, groups)


def merge_groups(a: GroupTables, b: GroupTables) -> GroupTables:
    """Return the sum of the tables of the same groups, as `count_groups` returns them."""
    check_group_tables(a, b)
    groups = a[0].size - 1
    group = np.concatenate([np.repeat(np.arange(groups), np.diff(start)) for start in (a[0], b[0])])
    score, n, k = (np.concatenate(pair) for pair in zip(a[1:], b[1:], strict=True))
    order = np.lexsort((score, group))
    return _add_up(group[order], score[order], n[order], k[order], groups)


def _add_up(group: NDArray[Any], score: Floats, n: Ints, k: NDArray[Any], groups: int) -> GroupTables:
    """Add up neighbours with the same group and score."""
    fresh = np.concatenate([[True], (score[1:] != score[:-1]) | (group[1:] != group[:-1])])[: score.size]
    start = np.flatnonzero(fresh)
    first = np.searchsorted(group[start], np.arange(groups + 1)).astype(np.int64)
    if not start.size:
        return first, score, n, n
    return first, score[start], np.add.reduceat(n, start), np.add.reduceat(k.astype(np.int64), start)


def encode(values: NDArray[np.uint64], most: int) -> tuple[Ints, Codes] | None:
    """Return the first row of each distinct value, in order of appearance, and for each row the place of its value.

    Return None if there are more than `most` distinct values.
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    if first.size > most:
        return None
    place = np.argsort(np.argsort(first)).astype(np.int32)
    return np.sort(first).astype(np.int64, copy=False), place[inverse]


def row_order(score: Floats) -> Order:
    """Return the rows in rising order of score; rows of equal scores stay in their order."""
    check_scores(score)
    return np.argsort(score, kind="stable").astype(np.int32)


def pava_bc(n: Weights, k: Weights, n_min: float, n_max: float) -> Ints:
    """Return the first row of each block of PAVA-BC over rows with k events among n, in order of score.

    Comments give the steps of Algorithm 2 of Matsubara et al. (2023). Each distinct score is one row with its
    count, and a block with fewer than n_min rows absorbs the next row whatever its mean.
    """
    check_lengths("n and k", n, k)
    check_sums(n.sum(keepdims=True), k.sum(keepdims=True))
    sizes, positives = n.tolist(), k.tolist()  # Python integers do not overflow in products
    equal = 1 if n.dtype.kind == "i" else 1 - 1e-12  # rates of real weights are compared up to rounding error
    body = len(sizes)
    tail_size: float = 0
    while tail_size < n_min and body > 0:
        body -= 1
        tail_size += sizes[body]

    blocks: list[tuple[int, float, float]] = []  # start, Y, W

    def merges(left: tuple[int, float, float], right: tuple[int, float, float]) -> bool:
        _, y0, w0 = left
        _, y1, w1 = right
        return w0 < n_min or (w0 + w1 <= n_max and y0 * w1 >= y1 * w0 * equal)

    for i in range(body):  # for i = 1, ..., N - N_min
        block = (i, positives[i], sizes[i])
        while blocks and merges(blocks[-1], block):  # while B > 1
            start, y, w = blocks.pop()
            block = (start, y + block[1], w + block[2])
        blocks.append(block)

    if body < len(sizes):  # the last N_min labels
        tail = sum(sizes[body + 1 :], sizes[body])
        if not blocks or not (blocks[-1][2] < n_min or blocks[-1][2] + tail <= n_max):
            blocks.append((body, 0, tail))
    return np.array([start for start, _, _ in blocks], dtype=np.int64)


def bin_sums(score: Floats, n: Weights, k: Weights, start: Ints) -> tuple[Weights, Weights, Floats]:
    """Return the sums of n, k and n * score over the rows of each bin; rows before the first bin are in none.

    The compiled kernel rounds the sums of scores of counts once.
    """
    check_lengths("score, n and k", score, n, k)
    check_starts(start, score.size)
    if not start.size:
        return n[:0], k[:0], score[:0]
    sum_n, sum_k = np.add.reduceat(n, start), np.add.reduceat(k, start)
    check_sums(sum_n, sum_k)
    return sum_n, sum_k, np.add.reduceat(n * score, start)


def row_sums(score: NDArray[Any], label: NDArray[Any], edges: Floats) -> tuple[Ints, Ints, Floats] | None:
    """Return the number of rows, of events and the sum of scores in each bin, in one pass over rows in any order.

    Bin b holds edges[b] <= score < edges[b + 1]; the first edge is -inf, the last one inf, and the others equal b / B
    up to one unit in the last place. The sums are bitwise those of `bin_sums`. None if a table must decide: if a score
    or a label is invalid, if all scores are 0 or 1, or if a sum is not precise; here always, since sums of this kernel
    depend on the order of rows.
    """
    check_lengths("score and label", score, label)
    check_equal_widths(edges)
    return None


def row_squared_errors(score: NDArray[Any], label: NDArray[Any]) -> tuple[int, float] | None:
    """Return the number of events and the sum of squared errors, in one pass over rows; None as in `row_sums`."""
    check_lengths("score and label", score, label)
    return None


def rejected(score: Floats, n: Ints, start: Ints, bin_n: Ints, bin_k: Ints, alpha: float) -> Ints:
    """Return per bin the number of rows whose score the exact binomial test of bin_k in bin_n rejects."""
    valid = score.size == n.size and start.size == bin_n.size == bin_k.size
    require(valid, "score and n, and start, bin_n and bin_k, must be equally long")
    check_starts(start, score.size)
    check_bins(bin_n, bin_k)
    check_level(alpha)
    first = int(start[0]) if start.size else score.size  # rows before the first bin are in none
    score, n, start = score[first:], n[first:], start - first
    check_scores(score)
    bin_index = np.repeat(np.arange(start.size), np.diff(np.append(start, score.size)))
    reject = binomial_pvalue(bin_k[bin_index], bin_n[bin_index], score) <= alpha
    total = np.zeros(start.size, dtype=np.int64)
    np.add.at(total, bin_index[reject], n[reject])
    return total


def squared_errors(score: Floats, n: Weights, k: Weights) -> float:
    """Return the sum of squared differences of scores and outcomes."""
    check_lengths("score, n and k", score, n, k)
    check_sums(n.sum(keepdims=True), k.sum(keepdims=True))
    return float(np.sum(k * (1 - score) ** 2 + (n - k) * score**2))


def cumulative_extremes(score: Floats, n: Weights, k: Weights) -> tuple[float, float]:
    """Return minimum and maximum of the cumulative sum of k - n * score, which starts at 0."""
    check_lengths("score, n and k", score, n, k)
    path = np.cumsum(k - n * score)
    return float(path.min(initial=0.0)), float(path.max(initial=0.0))


def locate(edges: Floats, values: Floats) -> Ints:
    """Return for each value the number of edges (in increasing order) that do not exceed it."""
    check_edges(edges)
    return np.searchsorted(edges, values, side="right").astype(np.int64, copy=False)


def venn_abers(n: Weights, k: Weights) -> tuple[Floats, Floats]:
    """Return the two Venn-Abers probabilities: isotonic regression at a new row without, and with, the event.

    They are given at 2 rows + 1 places: before the first score, at it, between it and the next, and so on. The value is
    the slope of the greatest convex minorant of the cumulative sums at the new row.
    """
    check_lengths("n and k", n, k)
    check_counts(n, k)
    rows = n.size
    equal = 1 if n.dtype.kind == "i" else 1 - 1e-12  # as in pava_bc
    sum_n, sum_k = ([0, *np.cumsum(column).tolist()] for column in (n, k))

    def at_least(a: int, b: int, c: int, d: int, y: int, one: int) -> bool:
        """Return whether the slope from a to b is at least that from c to d; `one` is 1 if the new row is included."""
        left = (sum_k[b] - sum_k[a] + y) * (sum_n[d] - sum_n[c] + one)
        return bool(left >= (sum_k[d] - sum_k[c] + y) * (sum_n[b] - sum_n[a] + one) * equal)

    before, after = [0] * (rows + 1), [0] * (rows + 1)  # neighbours on the hull of the points to the left or right
    for i in range(1, rows + 1):
        at = i - 1
        while at > 0 and at_least(before[at], at, at, i, 0, 0):
            at = before[at]
        before[i] = at
    for i in range(rows - 1, -1, -1):
        at = i + 1
        while at < rows and at_least(i, at, at, after[at], 0, 0):
            at = after[at]
        after[i] = at

    def value(left: int, right: int, y: int) -> float:
        moved = True
        while moved:
            moved = False
            while right < rows and at_least(left, right, left, after[right], y, 1):
                right, moved = after[right], True
            while left > 0 and at_least(before[left], right, left, right, y, 1):
                left, moved = before[left], True
        return float(sum_k[right] - sum_k[left] + y) / float(sum_n[right] - sum_n[left] + 1)

    places = [(place // 2, (place + 1) // 2) for place in range(2 * rows + 1)]
    low, high = (np.array([value(left, right, y) for left, right in places]) for y in (0, 1))
    return low, high


def free_memory() -> None:
    """Release memory that the compiled kernel keeps for the next call."""


def window_distances(score: Floats, rate: Floats, window: int) -> Floats:
    """Return for each window of rows, in order of score, the sum of abs(score - mean rate of the window)."""
    valid = score.size == rate.size and 1 <= window <= score.size
    require(valid, "score and rate must be equally long, and window between 1 and their length")
    sum_score, sum_rate = (np.concatenate([[0.0], np.cumsum(column)]) for column in (score, rate))
    first = np.arange(score.size - window + 1)
    mean = (sum_rate[window:] - sum_rate[:-window]) / window
    # Scores increase, so in each window those below the mean come first, and prefix sums give the distances.
    split = np.clip(np.searchsorted(score, mean), first, first + window)
    balance = 2 * (split - first) - window
    distances: Floats = mean * balance + sum_score[:-window] + sum_score[window:] - 2 * sum_score[split]
    return distances
