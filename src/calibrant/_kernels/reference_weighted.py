"""Replicates of weighted rows in NumPy, with the sums of the compiled kernel."""

import math
from collections.abc import Sequence

import numpy as np

from calibrant._kernels.preconditions import check_order, check_plan, check_weighted_rows, require
from calibrant._kernels.reference import pava_bc
from calibrant._kernels.reference_replicates import total
from calibrant._kernels.replicate_sums import (
    Bytes,
    Order,
    ReplicateSums,
    WeightedBlocks,
    WeightedPlan,
    WeightedTableReplicates,
)
from calibrant._support.typing import Bools, Floats, Ints

__all__ = ["weighted_replicates"]

_LANES = 16
_SLACK = 1e-9  # of limits and cuts, as in `calibrant.bins`
_CLOSE = 1e-8  # a decision so close to its limit needs a p-value


def weighted_replicates(
    score: Floats, rows: Ints, weight: Floats, event: Bytes, plan: WeightedPlan
) -> WeightedTableReplicates:
    """Return the replicates of weighted rows in order of score; entry i has the next ``rows[i]`` of them."""
    return _WeightedReplicates(score, rows, weight, event, plan)


class _WeightedReplicates:
    def __init__(self, score: Floats, rows: Ints, weight: Floats, event: Bytes, plan: WeightedPlan) -> None:
        check_weighted_rows(score, rows, weight, event)
        check_plan(plan, score.size)
        self.score, self.weight, self.plan = score, weight, plan
        self.place = np.repeat(np.arange(score.size), rows)
        self.of_event = np.where(event == 1, weight, 0.0)
        pairs = ((a[self.place], (a + b)[self.place]) for a, b in plan.linear)
        self.linear = [weight * np.where(event == 1, of_event, of_other) for of_other, of_event in pairs]

    def resample(self, drawn: Bytes | Order, order: Order | None) -> ReplicateSums:
        require(drawn.min(initial=0) >= 0, "drawn must not be negative")
        columns = check_order(drawn, order, self.weight.size)
        found = [self._measure(times[columns].astype(np.float64)) for times in drawn]
        n, k, score, linear, rejected = (
            np.array([row[i] for row in found], dtype=np.float64).reshape(len(drawn), -1) for i in range(5)
        )
        return ReplicateSums(n, k, score, linear, rejected)

    def _measure(self, times: Floats) -> Sequence[Sequence[float] | Floats]:
        n, k = (self._per_entry(times * weight) for weight in (self.weight, self.of_event))
        before = [np.concatenate([[0.0], np.cumsum(column)]) for column in (n, k, n * self.score)]
        starts = [*self.plan.fixed, *(self._at_shares(before[0], bins) for bins in self.plan.quantiles)]
        begin = np.concatenate([*starts, np.empty(0, dtype=np.int64)]).astype(np.int64)
        ends = (np.append(each[1:], n.size)[: each.size] for each in starts)
        end = np.concatenate([*ends, np.empty(0)]).astype(np.int64)
        sums = [column[end] - column[begin] for column in before]
        rejected = [self._rejected(n, k, times, blocks) for blocks in self.plan.blocks]
        return [*sums, [total(times, each) for each in self.linear], rejected]

    def _per_entry(self, column: Floats) -> Floats:
        return np.bincount(self.place, weights=column, minlength=self.score.size).astype(np.float64)

    def _at_shares(self, before: Floats, bins: int) -> Ints:
        """Return the first entry of each bin; it begins after the score at which the weight reaches its share."""
        ranks = (np.arange(1, bins) / bins - _SLACK) * before[-1]
        reached = np.minimum(np.searchsorted(before[1:], ranks) + 1, before.size - 1)
        return np.concatenate([[0], np.where(ranks > 0, reached, 0)])

    def _rejected(self, n: Floats, k: Floats, times: Floats, blocks: WeightedBlocks) -> float:
        """Return the weight of rejected rows; -1 where a decision needs SciPy."""
        whole = float(np.cumsum(n)[-1]) if n.size else 0.0
        if not whole > 0:
            return -1.0
        used = np.flatnonzero(n > 0)
        starts = used[pava_bc(n[used], k[used], *_limits(blocks, whole))]
        w2, k2 = (self._per_entry(times * weight * self.weight) for weight in (self.weight, self.of_event))
        refused = np.zeros(n.size, dtype=bool)
        for begin, end in zip(starts, [*starts[1:], n.size], strict=True):
            inside = slice(begin, end)
            sums = [np.cumsum(column[inside])[-1] for column in (n, k, w2, k2)]
            decided = _decide(sums, self.score[inside], n[inside] > 0, blocks)
            if decided is None:
                return -1.0
            refused[inside] = decided
        padded = np.zeros(-(-n.size // _LANES) * _LANES)
        padded[: n.size] = np.where(refused, n, 0.0)
        return float(np.cumsum(np.cumsum(padded.reshape(-1, _LANES), axis=0)[-1])[-1])


def _limits(blocks: WeightedBlocks, whole: float) -> tuple[float, float]:
    low = blocks.n_min if blocks.n_min >= 0 else blocks.share_min * whole + blocks.root_min * math.sqrt(whole)
    if blocks.n_max >= 0:
        low = min(low, blocks.n_max)
    high = blocks.n_max if blocks.n_max >= 0 else max(low, blocks.share_max * whole)
    return min(low, whole) * (1 - _SLACK), min(high, whole) * (1 + _SLACK)


def _decide(sums: Sequence[float], p: Floats, used: Bools, blocks: WeightedBlocks) -> Bools | None:
    """Return whether each score is rejected; None where a decision needs a p-value."""
    n, k, w2, k2 = sums
    x = w2 / (n * n)
    if not x <= (blocks.critical.size - 2) * blocks.step:
        return None
    q = 1 - p
    gap = k * q - (n - k) * p
    square = gap * gap
    of_events, of_others = k2 / k if k > 0 else w2 / n, (w2 - k2) / (n - k) if k < n else w2 / n
    robust, implied = k2 * (q * q) + (w2 - k2) * (p * p), n * p * q * (q * of_events + p * of_others)
    limit = _critical_square(blocks, x) * np.maximum(robust, implied)
    border = (p == 0) | (p == 1)
    if (~(np.abs(square - limit) > _CLOSE * limit) & used & ~border).any():
        return None
    certain = np.where(p == 0, k != 0, k != n)
    return np.where(border, certain, square >= limit) & used


def _critical_square(blocks: WeightedBlocks, x: float) -> float:
    """Return the value at x of the cubic through the four nearest nodes."""
    y, scaled = blocks.critical, x / blocks.step
    node = min(max(int(scaled), 1), y.size - 3)
    t = scaled - node
    u, v, w = t + 1, t - 1, t - 2
    outer = (y[node + 2] * (u * t * v) - y[node - 1] * (t * v * w)) / 6
    return float(outer + (y[node] * (u * v * w) - y[node + 1] * (u * t * w)) / 2)
