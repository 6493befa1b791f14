"""Estimation errors of bins (Definition 3 of Matsubara et al., 2023), and the bins with the least total error."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calibrant._support.arrays import Floats, Weights
from calibrant._support.errors import InputError, check_callable
from calibrant.metrics.bins import PAVABC
from calibrant.metrics.norms import weighted_mean
from calibrant.tables.score_table import Partition, ScoreTable

# D(D_b, q): distance of the outcomes of a bin, k events in n rows, from a probability q.
EstimationError: TypeAlias = Callable[[Weights, Weights, Floats], Floats]


def variance(k: Weights, n: Weights, q: Floats) -> Floats:
    """Return the mean of (y - q)^2 over k ones and n - k zeros: equation (9).

    Parameters
    ----------
    k, n : array
        Numbers of events and of rows of each bin.
    q : array
        Probability that is predicted in each bin.

    Returns
    -------
    array
        One number per bin.
    """
    return (k * (1 - q) ** 2 + (n - k) * q**2) / n


def total_error(partition: Partition, error: EstimationError = variance) -> float:
    r"""Return the total estimation error of bins, equation (8): :math:`\sum_b (N_b / N) D(D_b, \hat P_b)`.

    Among bins with non-decreasing rates, `PAVA` has the least total variance (Proposition 1).

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.
    error : callable, default=variance
        Estimation error of each bin, from its events, rows and rate.

    Returns
    -------
    float
        Sum over bins.

    See Also
    --------
    mean_within_error, OptimalBins

    Examples
    --------
    >>> from calibrant.metrics.bins import PAVA
    >>> table = ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> total_error(PAVA()(table))
    0.125
    """
    return weighted_mean(_errors(partition, error), partition.n)


def mean_within_error(partition: Partition, error: EstimationError = variance) -> float:
    """Return the mean estimation error of the bins, not weighted by size (Table 1 of the paper).

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.
    error : callable, default=variance
        Estimation error of each bin, from its events, rows and rate.

    Returns
    -------
    float
        Mean over rows.

    See Also
    --------
    total_error, OptimalBins

    Examples
    --------
    >>> from calibrant.metrics.bins import PAVA
    >>> table = ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(mean_within_error(PAVA()(table)), 4)
    0.0833
    """
    return float(np.mean(_errors(partition, error)))


def _errors(partition: Partition, error: EstimationError) -> Floats:
    if not len(partition):
        raise InputError("partition must have at least one bin; got none.")
    return error(partition.k, partition.n, partition.rate)


@dataclass(frozen=True)
class OptimalBins:
    """Bins of least total error among those with non-decreasing rates and n_min to n_max rows: equation (8).

    Solved by dynamic programming over all runs of distinct scores, in O(m^3) for m scores: for studies of small tables.
    PAVA-BC approximates it in linear time, and can have a smaller error if its rates decrease somewhere.

    Parameters
    ----------
    n_min, n_max : int
        Smallest and largest number of rows of a bin.
    error : callable, default=variance
        Estimation error of each bin, from its events, rows and rate.

    Raises
    ------
    InputError
        If no bins within the limits have non-decreasing rates.

    See Also
    --------
    PAVABC, total_error

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
        PAVABC(self.n_min, self.n_max)  # raises for invalid limits
        if self.n_min is None:
            raise InputError("n_min must be a number; got None.")
        check_callable("error", self.error)

    def __call__(self, table: ScoreTable) -> Partition:
        """Return the bins of a table.

        Parameters
        ----------
        table : ScoreTable
            Table to divide; equal scores share a bin.

        Returns
        -------
        Partition
        """
        m = len(table)
        if not m:
            raise InputError("table must have at least one row; got none.")
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
                # bins h..i that may precede i..j: those with a rate not above its rate, compared in integers
                rate = k_exact[j] - k_exact[i], n_exact[j] - n_exact[i]
                falls = (k_exact[i] - k_exact[:i]) * rate[1] > rate[0] * (n_exact[i] - n_exact[:i])
                candidates = np.where(falls.astype(bool), np.inf, best[:i, i])
                before[i, j] = np.argmin(candidates)
                best[i, j] = candidates[before[i, j]] + cost[i]
        start = int(np.argmin(best[:, m]))
        if not np.isfinite(best[start, m]):
            raise InputError(
                f"n_min and n_max must allow bins with non-decreasing rates; got {self.n_min} and {limit}.",
                hint="Widen the limits.",
                argument="n_min",
            )
        cuts, stop = [], m
        while start > 0:
            cuts.append(start)
            start, stop = int(before[start, stop]), start
        return Partition.from_cuts(table, cuts[::-1])
