"""The compiled kernel; `reference` and `reference_replicates` document each function."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels import _core
from calibrant._kernels._core import (
    cumulative_extremes,
    free_memory,
    row_order,
    row_squared_errors,
    squared_errors,
    venn_abers,
    window_distances,
)
from calibrant._kernels.interface import (
    Bytes,
    Codes,
    GroupTables,
    Order,
    Plan,
    ReplicateSums,
    TableSums,
    WeightedSums,
    poisson_shares,
    unit_poisson_shares,
)
from calibrant._support.arrays import Floats, Ints, Weights
from calibrant._support.workers import map_in_threads, thread_count

__all__ = [
    "bin_sums",
    "class_draws",
    "count",
    "count_groups",
    "cumulative_extremes",
    "draw",
    "draws",
    "encode",
    "free_memory",
    "locate",
    "merge_groups",
    "pava_bc",
    "poisson_draws",
    "rejected",
    "replicates",
    "row_order",
    "row_squared_errors",
    "row_sums",
    "signed_sums",
    "signs",
    "squared_errors",
    "venn_abers",
    "weighted_replicates",
    "window_distances",
]


R = TypeVar("R")


def count(score: NDArray[Any], label: NDArray[Any]) -> tuple[Floats, Ints, Ints] | None:
    counts = _core.count(score, label, thread_count(score.size, "memory"))
    return None if counts is None else (counts[0], _plain(counts[1]), _plain(counts[2]))


def count_groups(score: NDArray[Any], label: NDArray[Any], group: Codes, groups: int) -> GroupTables | None:
    tables = _core.count_groups(score, label, group, groups, thread_count(score.size, "memory"))
    if tables is None:
        return None
    start, (scores, n, k) = tables
    return _plain(start), scores, _plain(n), _plain(k)


def merge_groups(a: GroupTables, b: GroupTables) -> GroupTables:
    start, score, n, k = _core.merge(*a, *b)
    return _plain(start), score, _plain(n), _plain(k)


def encode(values: NDArray[np.uint64], most: int) -> tuple[Ints, Codes] | None:
    codes = _core.encode(values, most)
    return None if codes is None else (_plain(codes[0]), codes[1])


def pava_bc(n: Weights, k: Weights, n_min: float, n_max: float) -> Ints:
    return _plain(_core.pava_bc(n, k, n_min, n_max))


def bin_sums(score: Floats, n: Weights, k: Weights, start: Ints) -> tuple[Weights, Weights, Floats]:
    def sums(bins: slice, rows: slice) -> tuple[Weights, Weights, Floats]:
        return _core.bin_sums(score[rows], n[rows], k[rows], start[bins] - rows.start)

    sum_n, sum_k, sum_score = _joined(_share_bins(sums, start, score.size))
    return _plain(sum_n), _plain(sum_k), sum_score


def row_sums(score: NDArray[Any], label: NDArray[Any], edges: Floats) -> tuple[Ints, Ints, Floats] | None:
    sums = _core.row_sums(score, label, edges)
    return None if sums is None else (_plain(sums[0]), _plain(sums[1]), sums[2])


def rejected(score: Floats, n: Ints, start: Ints, bin_n: Ints, bin_k: Ints, alpha: float) -> Ints:
    def decide(bins: slice, rows: slice) -> tuple[Ints, Ints]:
        total, undecided = _core.rejected(
            score[rows], n[rows], start[bins] - rows.start, bin_n[bins], bin_k[bins], alpha
        )
        return total, undecided + rows.start

    total, undecided = _joined(_share_bins(decide, start, score.size))
    if undecided.size:
        from calibrant._kernels.scipy_binomial import binomial_pvalue

        bin_index = np.searchsorted(start, undecided, side="right") - 1
        reject = binomial_pvalue(bin_k[bin_index], bin_n[bin_index], score[undecided]) <= alpha
        np.add.at(total, bin_index[reject], n[undecided[reject]])
    return _plain(total)


def _share_bins(function: Callable[[slice, slice], R], start: Ints, rows: int) -> list[R]:
    """Call the function with bins and their rows; the bins of a large table are shared among threads.

    Each bin is computed by one thread, so results do not depend on their number.
    """
    threads = min(thread_count(rows, "memory"), start.size)
    if threads <= 1:
        return [function(slice(0, start.size), slice(0, rows))]
    cuts = np.unique(np.searchsorted(start, np.linspace(0, rows, threads + 1)[1:-1]))
    bins = [0, *cuts[(cuts > 0) & (cuts < start.size)].tolist(), start.size]
    firsts = [*start[bins[:-1]].tolist(), rows]
    shares = zip(map(slice, bins[:-1], bins[1:]), map(slice, firsts[:-1], firsts[1:]), strict=True)
    return list(map_in_threads(lambda share: function(*share), list(shares), threads))


def _joined(shares: list[Any]) -> Any:
    return shares[0] if len(shares) == 1 else map(np.concatenate, zip(*shares, strict=True))


def draw(key: int, replicate: int, size: int) -> Ints:
    return _plain(_core.draw(key, replicate, size, poisson_shares(size)))


def draws(key: int, first: int, count: int, size: int) -> Bytes:
    return _core.draw_many(key, first, count, size, poisson_shares(size)).reshape(count, size)


def poisson_draws(key: int, first: int, count: int, size: int) -> Bytes:
    return _core.draw_poisson(key, first, count, size, unit_poisson_shares()).reshape(count, size)


def class_draws(key: int, first: int, count: int, cumulative: Floats) -> Order:
    return _core.draw_classes(key, first, count, cumulative).reshape(count, len(cumulative))


def signs(key: int, replicate: int, units: int) -> Floats:
    return _core.draw_signs(key, replicate, units)


def signed_sums(key: int, first: int, count: int, values: Floats, start: Ints, unit: Ints | None) -> Floats:
    unit = np.empty(0, dtype=np.int64) if unit is None else unit
    units = int(unit.max()) + 1 if unit.size else 0
    return _core.sum_signed(key, first, count, values, start, unit, units).reshape(count, start.size, values.shape[1])


def replicates(
    score: Floats, n: Ints, k: Ints, plan: Plan, *, by_rows: bool = True, in_clusters: bool = False
) -> TableSums:
    return _TableSums(score, n, k, plan, by_rows, in_clusters)


class _TableSums:
    def __init__(self, score: Floats, n: Ints, k: Ints, plan: Plan, by_rows: bool, in_clusters: bool) -> None:
        shares = poisson_shares(int(n.sum())) if by_rows else np.empty(0)
        sums = (*_parts(plan), list(plan.gaps), plan.keeps_sums)
        self._core = _core.Replicates(score, n, k, shares, *sums, by_rows, in_clusters)

    def simulated(self, key: int, replicate: int) -> Ints:
        return _plain(self._core.simulated(key, replicate))

    def resampled(self, key: int, replicate: int) -> tuple[Ints, Ints]:
        n, k = self._core.resampled(key, replicate)
        return _plain(n), _plain(k)

    def simulate(self, key: int, first: int, count: int) -> ReplicateSums:
        return _sums(self._core.simulate(key, first, count), count)

    def resample(self, key: int, first: int, count: int) -> ReplicateSums:
        return _sums(self._core.resample(key, first, count), count)

    def resample_drawn(self, drawn: Bytes, order: Order | None, limits: Ints | None = None) -> ReplicateSums:
        limits = np.empty((0, 0), dtype=np.int64) if limits is None else limits
        return _sums(self._core.resample_drawn(drawn, _given(order), limits), len(drawn))

    def resample_together(
        self, others: "Sequence[_TableSums]", drawn: Bytes, order: Order | None
    ) -> list[ReplicateSums]:
        sums = self._core.resample_together([other._core for other in others], drawn, _given(order))
        return [_sums(columns, len(drawn)) for columns in sums]

    def simulate_drawn(self, drawn: Bytes, order: Order | None) -> ReplicateSums:
        return _sums(self._core.simulate_drawn(drawn, _given(order)), len(drawn))

    def measure(self, n: Ints, k: Ints) -> ReplicateSums:
        return _sums(self._core.measure(n, k), len(n))


def weighted_replicates(score: Floats, rows: Ints, weight: Floats, event: Bytes, plan: Plan) -> WeightedSums:
    core = _core.WeightedReplicates(score, rows, weight, event, *_parts(plan))

    def resample(drawn: Bytes | Order, order: Order | None) -> ReplicateSums:
        add_up: Any = core.resample if drawn.dtype == np.uint8 else core.resample_counts
        return _sums(add_up(drawn, _given(order)), len(drawn))

    return resample


def _parts(plan: Plan) -> tuple[Any, Any, Any, Any]:
    return list(plan.fixed), list(plan.quantiles), list(plan.blocks), list(plan.linear)


def _given(order: Order | None) -> Order:
    return np.empty(0, dtype=np.int32) if order is None else order


def _sums(columns: tuple[Any, ...], count: int) -> ReplicateSums:
    return ReplicateSums(*(_plain(column).reshape(count, -1) for column in columns))


def locate(edges: Floats, values: Floats) -> Ints:
    flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    return _plain(_core.locate(edges, flat)).reshape(np.shape(values))


def _plain(array: Weights) -> Weights:
    # The kernel returns NumPy's long long, which equals int64 but is printed as "dtype=int64".
    return array.view(np.int64) if array.dtype.kind == "i" else array
