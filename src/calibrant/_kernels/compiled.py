"""The compiled kernel; `reference` documents each function."""

from typing import Any

import numpy as np
from numpy.random import SFC64
from numpy.typing import NDArray

from calibrant._kernels import _core
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
    "row_squared_errors",
    "row_sums",
    "squared_errors",
    "venn_abers",
    "window_distances",
]


def count(score: NDArray[Any], label: NDArray[Any]) -> tuple[Floats, Ints, Ints] | None:
    counts = _core.count(score, label)
    return None if counts is None else (counts[0], _plain(counts[1]), _plain(counts[2]))


def pava_bc(n: Weights, k: Weights, n_min: float, n_max: float) -> Ints:
    return _plain(_core.pava_bc(n, k, n_min, n_max))


def bin_sums(score: Floats, n: Weights, k: Weights, start: Ints) -> tuple[Weights, Weights, Floats]:
    sum_n, sum_k, sum_score = _core.bin_sums(score, n, k, start)
    return _plain(sum_n), _plain(sum_k), sum_score


def row_sums(score: NDArray[Any], label: NDArray[Any], edges: Floats) -> tuple[Ints, Ints, Floats] | None:
    sums = _core.row_sums(score, label, edges)
    return None if sums is None else (_plain(sums[0]), _plain(sums[1]), sums[2])


def row_squared_errors(score: NDArray[Any], label: NDArray[Any]) -> tuple[int, float] | None:
    return _core.row_squared_errors(score, label)


def rejected(score: Floats, n: Ints, start: Ints, bin_n: Ints, bin_k: Ints, alpha: float) -> Ints:
    total, undecided = _core.rejected(score, n, start, bin_n, bin_k, alpha)
    if undecided.size:
        bin_index = np.searchsorted(start, undecided, side="right") - 1
        reject = binomial_pvalue(bin_k[bin_index], bin_n[bin_index], score[undecided]) <= alpha
        np.add.at(total, bin_index[reject], n[undecided[reject]])
    return _plain(total)


def squared_errors(score: Floats, n: Weights, k: Weights) -> float:
    return _core.squared_errors(score, n, k)


def cumulative_extremes(score: Floats, n: Weights, k: Weights) -> tuple[float, float]:
    return _core.cumulative_extremes(score, n, k)


def draw(bits: SFC64, size: int) -> Ints:
    return _plain(_core.draw(_state(bits), size))


def resample(score: Floats, n: Ints, k: Ints, bits: SFC64) -> tuple[Floats, Ints, Ints]:
    drawn, drawn_n, drawn_k = _core.resample(score, n, k, _state(bits))
    return drawn, _plain(drawn_n), _plain(drawn_k)


def resample_bins(score: Floats, n: Ints, k: Ints, start: Ints, bits: SFC64) -> tuple[Ints, Ints, Floats]:
    sum_n, sum_k, sum_score = _core.resample_bins(score, n, k, start, _state(bits))
    return _plain(sum_n), _plain(sum_k), sum_score


def redraw(score: Floats, n: Ints, bits: SFC64) -> Ints:
    return _plain(_core.redraw(score, n, _state(bits)))


def _state(bits: SFC64) -> NDArray[np.uint64]:
    return bits.state["state"]["state"]


def locate(edges: Floats, values: Floats) -> Ints:
    flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    return _plain(_core.locate(edges, flat)).reshape(np.shape(values))


def venn_abers(n: Weights, k: Weights) -> tuple[Floats, Floats]:
    return _core.venn_abers(n, k)


def free_memory() -> None:
    _core.free_memory()


def window_distances(score: Floats, rate: Floats, window: int) -> Floats:
    return _core.window_distances(score, rate, window)


def _plain(array: Weights) -> Weights:
    # The kernel returns NumPy's long long, which equals int64 but is printed as "dtype=int64".
    return array.view(np.int64) if array.dtype.kind == "i" else array
