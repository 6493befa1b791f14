"""The kernel in numpy and scipy: what runs where no compiler was at hand, and what the compiled one must equal.

Both kernels give the same integers, the same decisions and the same bits of every sum.
"""

from typing import Any

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray

from calibrant._kernels.scipy_binomial import binomial_pvalue
from calibrant._support.typing import Floats, Ints, Weights

__all__ = [
    "bin_sums",
    "count",
    "cumulative_extremes",
    "draw",
    "free_memory",
    "locate",
    "pava_bc",
    "redraw",
    "rejected",
    "resample",
    "resample_bins",
    "squared_errors",
    "venn_abers",
    "window_distances",
]


def count(score: NDArray[Any], label: NDArray[Any]) -> tuple[Floats, Ints, Ints] | None:
    """Distinct scores in rising order, how many rows gave each, and how many of these have label 1.

    None where a score lies outside [0, 1] or is NaN, or a label is neither 0 nor 1.
    `score` is float32 or float64; labels may have any numeric type.
    """
    positive = label == 1
    if not (np.all((score >= 0) & (score <= 1)) and np.all(positive | (label == 0))):
        return None
    # The bit patterns of scores in [0, 1] order like their values and leave the top bit free: score and
    # label fit one integer, so one plain sort brings equal scores together. + 0.0 turns -0.0 into 0.0.
    keys = ((score.astype(np.float64) + 0.0).view(np.uint64) << 1) | positive
    keys.sort()
    values = keys >> 1
    start = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))[: keys.size]
    n = np.diff(np.append(start, keys.size)).astype(np.int64)
    k = np.add.reduceat((keys & 1).astype(np.int64), start) if keys.size else n
    return values[start].view(np.float64), n, k


def pava_bc(n: Weights, k: Weights, n_min: float, n_max: float) -> Ints:
    """First row of every block of PAVA-BC over rows of k positives among n, in order of their score.

    Comments give the steps of Algorithm 2 of Matsubara et al. (2023). Here every distinct score
    enters as one row with its count, and a block below n_min takes the next row whatever its mean.
    """
    sizes, positives = n.tolist(), k.tolist()  # Python's integers: products of counts never overflow
    equal = 1 if n.dtype.kind == "i" else 1 - 1e-12  # rates of real weights are equal up to their rounding
    body = len(sizes)
    held: float = 0
    while held < n_min and body > 0:
        body -= 1
        held += sizes[body]

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
    """Sums of n, of k and of n * score over the rows of every bin, added up from the left."""
    if start.size == 0:
        return n[:0], k[:0], score[:0]
    # bincount adds row by row, reduceat in another order: the choice is part of the result's bits.
    labels = np.repeat(np.arange(start.size), np.diff(np.append(start, score.size)))

    def add(values: Weights) -> Floats:
        return np.bincount(labels, weights=values).astype(np.float64)

    if n.dtype.kind == "i":
        return np.add.reduceat(n, start), np.add.reduceat(k, start), add(n * score)
    return add(n), add(k), add(n * score)


def rejected(score: Floats, n: Ints, start: Ints, bin_n: Ints, bin_k: Ints, alpha: float) -> Ints:
    """Rows of every bin whose score the exact binomial test of bin_k in bin_n rejects: p-value <= alpha."""
    its_bin = np.repeat(np.arange(start.size), np.diff(np.append(start, score.size)))
    reject = binomial_pvalue(bin_k[its_bin], bin_n[its_bin], score) <= alpha
    total = np.zeros(start.size, dtype=np.int64)
    np.add.at(total, its_bin[reject], n[reject])
    return total


def squared_errors(score: Floats, n: Weights, k: Weights) -> float:
    """Sum of the squared distances of scores and outcomes, added up from the left."""
    rest = 1 - score
    return _total(k * (rest * rest) + (n - k) * (score * score))


def cumulative_extremes(score: Floats, n: Weights, k: Weights) -> tuple[float, float]:
    """The lowest and the highest point of the cumulative sum of k - n * score, which begins at 0."""
    path = np.cumsum(k - n * score)
    return float(path.min(initial=0.0)), float(path.max(initial=0.0))


def _total(values: Floats) -> float:
    # cumsum adds from the left, sum in another order: the choice is part of the result's bits.
    return float(np.cumsum(values)[-1]) if values.size else 0.0


def draw(bits: SFC64, size: int) -> Ints:
    """How often each of `size` rows is drawn in `size` draws with equal chances.

    Every word gives two draws, its low half first; a half h stands for row floor(h size / 2^32), so a row's chance is
    off by at most one part in 2^32 / size, evenly over the rows. The compiled kernel leaves `bits` where they were.
    """
    used = bits.random_raw((size + 1) // 2)
    halves = np.stack([used & np.uint64(2**32 - 1), used >> np.uint64(32)], axis=1).ravel()[:size]
    rows = (halves * np.uint64(size)) >> np.uint64(32)
    return np.bincount(rows.astype(np.int64), minlength=size).astype(np.int64)


def resample(score: Floats, n: Ints, k: Ints, bits: SFC64) -> tuple[Floats, Ints, Ints]:
    """One bootstrap replicate of a table: its rows, `draw`n; scores that were never drawn are left out.

    Of the n rows of a score the first k are its events.
    """
    drawn, events = _drawn(n, k, bits)
    used = drawn > 0
    return score[used], drawn[used], events[used]


def _drawn(n: Ints, k: Ints, bits: SFC64) -> tuple[Ints, Ints]:
    times = np.concatenate([[0], np.cumsum(draw(bits, int(n.sum())))])
    start = np.concatenate([[0], np.cumsum(n)[:-1]])
    return times[start + n] - times[start], times[start + k] - times[start]


def resample_bins(score: Floats, n: Ints, k: Ints, start: Ints, bits: SFC64) -> tuple[Ints, Ints, Floats]:
    """Sums as of `bin_sums` for one bootstrap replicate, over bins that do not depend on it: 0 where one is empty.

    The same replicate as that of `resample`, without its table.
    """
    drawn, events = _drawn(n, k, bits)
    return bin_sums(score, drawn, events, start)


def redraw(score: Floats, n: Ints, bits: SFC64) -> Ints:
    """Events of one replicate of the null: outcomes drawn from the scores.

    One word a row, an event where its first 53 bits, as a number in [0, 1), lie below the score.
    """
    happened = Generator(bits).random(int(n.sum())) < np.repeat(score, n)
    times: Ints = np.concatenate([[0], np.cumsum(happened)])
    end = np.cumsum(n)
    events: Ints = times[end] - times[end - n]
    return events


def locate(edges: Floats, values: Floats) -> Ints:
    """For every value, how many of the rising edges do not exceed it."""
    return np.searchsorted(edges, values, side="right").astype(np.int64, copy=False)


def venn_abers(n: Weights, k: Weights) -> tuple[Floats, Floats]:
    """Isotonic regression at a new row without, and with, the event: the two probabilities of Venn-Abers.

    At 2 rows + 1 places: before the first score, at it, between it and the next, and so on. The value is the slope of
    the lowest line that supports both the cumulative sums before the new row and those after it, which it moves.
    """
    rows = n.size
    equal = 1 if n.dtype.kind == "i" else 1 - 1e-12  # as in pava_bc
    sum_n, sum_k = ([0, *np.cumsum(column).tolist()] for column in (n, k))

    def at_least(a: int, b: int, c: int, d: int, y: int, one: int) -> bool:
        """Whether the slope from a to b is at least that from c to d, with the new row between both or not."""
        left = (sum_k[b] - sum_k[a] + y) * (sum_n[d] - sum_n[c] + one)
        return bool(left >= (sum_k[d] - sum_k[c] + y) * (sum_n[b] - sum_n[a] + one) * equal)

    before, after = [0] * (rows + 1), [0] * (rows + 1)  # neighbours on the hull of all points to the left, or right
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
    """Give back what was kept for the next call; the compiled kernel keeps memory of the sizes last used."""


def window_distances(score: Floats, rate: Floats, window: int) -> Floats:
    """For every window of rows, in order of score, the sum of distances of its scores to the mean of its rates."""
    sum_score, sum_rate = (np.concatenate([[0.0], np.cumsum(column)]) for column in (score, rate))
    first = np.arange(score.size - window + 1)
    mean = (sum_rate[window:] - sum_rate[:-window]) / window
    # Scores rise, so in every window those below the mean come first, and prefix sums give the distances.
    split = np.clip(np.searchsorted(score, mean), first, first + window)
    balance = 2 * (split - first) - window
    distances: Floats = mean * balance + sum_score[:-window] + sum_score[window:] - 2 * sum_score[split]
    return distances
