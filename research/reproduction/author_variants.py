"""Variants of the algorithms in the authors' programs that differ from the paper or depend on the order of rows.

They reproduce the published digits; the library gives the corrected values. No variant is used outside this folder.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

import calibrant as cb
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable


def rows_in_order(y: np.ndarray, p: np.ndarray, order: np.ndarray | None = None) -> ScoreTable:
    """Return a table with one entry per row, sorted by prediction; ties keep the order of the sort.

    The library merges equal predictions (``ScoreTable.from_arrays``), so that the order has no effect. `order` is that
    of the sort in the authors' program, which differs between machines; without it the sort is stable.
    """
    order = np.argsort(p, kind="stable") if order is None else order
    ones = np.ones(p.size, dtype=np.int64)
    return ScoreTable(np.asarray(p, dtype=np.float64)[order], ones, y[order].astype(np.int64), n_in=p.size)


@dataclass(frozen=True)
class FloatQuantile:
    """Bins that begin at rank int(b / B * N) in floating point; the library's ``Quantile`` is exact.

    They differ where b / B * N is a whole number that is rounded to just below it, as for some N with 7, 15, 50 or 100
    bins.
    """

    n_bins: int

    def __call__(self, table: ScoreTable) -> Partition:
        cuts = (np.linspace(0, 1, self.n_bins + 1) * table.size).astype(np.int64)
        return Partition.from_cuts(table, cuts[1:-1])


def linspace_edges(n_bins: int) -> cb.Edges:
    """Return bins of equal width with the edges of ``np.linspace``, such as 0.30000000000000004 instead of 3 / 10."""
    return cb.Edges(np.linspace(0, 1, n_bins + 1))


@dataclass(frozen=True)
class ReferenceTail:
    """PAVA-BC whose last n_min rows join the previous block if 2 n_min <= n_max, whatever the size of that block.

    Algorithm 2 of the paper, and ``PAVABC``, require that both together have at most n_max rows. Two published numbers
    depend on the variant: TCE of the forest (19.40 instead of 8.35) and of the support vector machine on mammography.
    """

    n_min: int
    n_max: int

    def __call__(self, table: ScoreTable) -> Partition:
        sizes, events = [1], [int(table.k[0])]
        for k in table.k[1 : len(table) - self.n_min].tolist():
            sizes.append(1)
            events.append(k)
            while len(sizes) > 1 and (
                sizes[-2] < self.n_min
                or (sizes[-2] + sizes[-1] <= self.n_max and events[-2] * sizes[-1] >= events[-1] * sizes[-2])
            ):
                n, k_last = sizes.pop(), events.pop()
                sizes[-1] += n
                events[-1] += k_last
        tail = len(table) - sum(sizes)
        if tail and (2 * self.n_min <= self.n_max or sizes[-1] < self.n_min):
            sizes[-1] += tail
        elif tail:
            sizes.append(tail)
        return Partition.from_cuts(table, np.cumsum(sizes)[:-1])


def t_without_root(k: np.ndarray, n: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return p-values of a t-test that uses the variance r (1 - r) as the standard deviation.

    For this reason the t-test performs far worse than the binomial test in Table 11. If all outcomes are equal, it
    always rejects. The library has ``significance.t``.
    """
    k, n, p = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, p)))
    rate = k / n
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        pvalue = 2 * stdtr(n - 1, -np.abs(rate - p) / (spread / np.sqrt(n)))
    return np.where(spread == 0, 0.0, pvalue)
