"""How good are bins? The yardsticks of Definition 3 of Matsubara et al. (2023), and the exact optimum."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats, Weights
from calibrant.metrics.bins import PAVABC
from calibrant.metrics.norms import weighted_mean
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["EstimationError", "OptimalBins", "mean_within_error", "total_error", "variance"]

# D(D_b, q): how far the outcomes of a bin, k events in n rows, lie from a probability q.
EstimationError: TypeAlias = Callable[[Weights, Weights, Floats], Floats]


def variance(k: Weights, n: Weights, q: Floats) -> Floats:
    """Mean of (y - q)^2 over k ones and n - k zeros: equation (9)."""
    return (k * (1 - q) ** 2 + (n - k) * q**2) / n


def total_error(partition: Partition, error: EstimationError = variance) -> float:
    r"""Total estimation error of bins, the objective of equation (8): :math:`\sum_b (N_b / N) D(D_b, \hat P_b)`.

    Among bins whose rates do not fall, `PAVA` has the least of it under the variance (Proposition 1).

    Examples
    --------
    >>> from calibrant import PAVA
    >>> table = ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> total_error(PAVA()(table))
    0.125
    """
    return weighted_mean(_errors(partition, error), partition.n)


def mean_within_error(partition: Partition, error: EstimationError = variance) -> float:
    """Estimation error within a bin, averaged over bins whatever their size (Table 1 of the paper)."""
    return float(np.mean(_errors(partition, error)))


def _errors(partition: Partition, error: EstimationError) -> Floats:
    if not len(partition):
        raise InputError("There are no bins; a measure needs at least one.", argument="partition")
    return error(partition.k, partition.n, partition.rate)


@dataclass(frozen=True)
class OptimalBins:
    """The bins of least total error among those with non-falling rates and n_min to n_max rows: equation (8), solved.

    A dynamic programme over all runs of distinct scores, O(m^3) for m of them: for studies of small tables, not
    for daily use. PAVA-BC comes near to it in linear time, and may even be below it, where it lets rates fall.

    Raises
    ------
    InputError
        If no bins within the limits have non-falling rates.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.5, 0.6, 0.9])
    >>> OptimalBins(n_min=2, n_max=4)(table).n
    array([4, 2])
    """

    n_min: int = 0
    n_max: int | None = None
    error: EstimationError = variance

    def __post_init__(self) -> None:
        PAVABC(self.n_min, self.n_max)  # the same limits, checked the same way

    def __call__(self, table: ScoreTable) -> Partition:
        m = len(table)
        if not m:
            raise InputError("The table holds no rows; bins need at least one.", argument="table")
        n, k = (np.concatenate([[0], np.cumsum(counts)]) for counts in (table.n, table.k))
        n_exact, k_exact = n.astype(object), k.astype(object)  # products of Python's integers never overflow
        best = np.full((m + 1, m + 1), np.inf)  # best[i, j]: least cost up to j with last bin i..j
        before = np.zeros((m + 1, m + 1), dtype=np.int64)  # where the bin before that one starts
        limit = table.size if self.n_max is None else self.n_max
        for j in range(1, m + 1):
            sizes, events = n[j] - n[:j], k[j] - k[:j]
            rates = events / sizes
            cost = sizes * self.error(events, sizes, rates)
            allowed = (sizes >= self.n_min) & (sizes <= limit)
            for i in np.flatnonzero(allowed):
                if i == 0:
                    best[0, j] = cost[0]
                    continue
                # bins h..i that may precede i..j: those whose rate is not above its rate, in integers
                rate = k_exact[j] - k_exact[i], n_exact[j] - n_exact[i]
                falls = (k_exact[i] - k_exact[:i]) * rate[1] > rate[0] * (n_exact[i] - n_exact[:i])
                candidates = np.where(falls.astype(bool), np.inf, best[:i, i])
                before[i, j] = np.argmin(candidates)
                best[i, j] = candidates[before[i, j]] + cost[i]
        start = int(np.argmin(best[:, m]))
        if not np.isfinite(best[start, m]):
            raise InputError(
                f"No bins with {self.n_min} to {limit} rows have non-falling rates on this table.",
                hint="Widen the limits.",
                argument="n_min",
            )
        cuts, stop = [], m
        while start > 0:
            cuts.append(start)
            start, stop = int(before[start, stop]), start
        return Partition.from_cuts(table, cuts[::-1])
