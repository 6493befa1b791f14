"""The program behind the tables of Matsubara et al. (2023), to check their printed numbers.

It is not recommended for anything else: it splits equal predictions by the order of the rows, so that a shuffle changes
the value, and it has the faults of that program. `as_published` measures a metric over bins by it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant._support.arrays import Floats
from calibrant.metrics import significance
from calibrant.metrics.bins import PAVA, PAVABC, Bins, Edges, EqualSize, EqualWidth
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import RejectionRate
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import Partition, ScoreTable, check_scores


def as_published(metric: GCE, y_true: Any, y_prob: Any) -> Breakdown:
    """Measure rows in the order of the file, with the bins and the t-test of the program.

    >>> as_published(cb.metrics.ACE(n_bins=2), [0, 1, 1, 1], [0.4, 0.4, 0.4, 0.9]).per_bin["n"]
    array([2, 2])
    """
    loss = metric.loss
    if isinstance(loss, RejectionRate) and loss.test is significance.t:
        loss = replace(loss, test=t_without_root)
    published = GCE(published_bins(metric.bins), loss, metric.norm, name=metric.name)
    return published.measured(rows_in_order(y_true, y_prob))


def rows_in_order(y_true: Any, y_prob: Any) -> ScoreTable:
    """Return a table with one entry per row, sorted by prediction; equal predictions keep the order of the rows.

    `ScoreTable.from_arrays` pools equal predictions instead, so that the order has no effect. The program of the paper
    sorts in an order that differs between machines; rows that are given in that order keep it.

    >>> rows_in_order([0, 1, 1], [0.4, 0.2, 0.4]).k
    array([1, 0, 1])
    """
    rows = check_scores(Rows.read(y_true, {"y_prob": y_prob}))
    score = rows.forecasts[0].values.astype(np.float64)
    order = np.argsort(score, kind="stable")
    event = (rows.y.values == 1).astype(np.int64)
    return ScoreTable(score[order], np.ones(score.size, dtype=np.int64), event[order], n_in=score.size)


@dataclass(frozen=True)
class _FloatQuantile:
    """Bins that begin at rank int(b / B * N) in floating point; `EqualSize` is exact.

    They differ where b / B * N is a whole number that is rounded to just below it, as for some N with 7, 15, 50 or 100
    bins.
    """

    n_bins: int

    def __call__(self, table: ScoreTable) -> Partition:
        cuts = (np.linspace(0, 1, self.n_bins + 1) * table.size).astype(np.int64)
        return Partition.from_cuts(table, cuts[1:-1])


@dataclass(frozen=True)
class _LooseTail:
    """PAVA-BC whose last n_min rows join the previous block if 2 n_min <= n_max, whatever the size of that block.

    Algorithm 2 of the paper, and `PAVABC`, require that both together have at most n_max rows. Two printed numbers
    depend on it: TCE of the forest (19.40 instead of 8.35) and of the support vector machine on mammography.
    """

    limits: PAVABC

    def __call__(self, table: ScoreTable) -> Partition:
        n_min, n_max = (int(limit) for limit in self.limits.limits(table))
        sizes, events = [1], [int(table.k[0])]
        for k in table.k[1 : max(1, len(table) - n_min)].tolist():
            sizes.append(1)
            events.append(k)
            while len(sizes) > 1 and (
                sizes[-2] < n_min
                or (sizes[-2] + sizes[-1] <= n_max and events[-2] * sizes[-1] >= events[-1] * sizes[-2])
            ):
                n, k_last = sizes.pop(), events.pop()
                sizes[-1] += n
                events[-1] += k_last
        tail = len(table) - sum(sizes)
        if tail and (2 * n_min <= n_max or sizes[-1] < n_min):
            sizes[-1] += tail
        elif tail:
            sizes.append(tail)
        return Partition.from_cuts(table, np.cumsum(sizes)[:-1])


def t_without_root(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Return p-values of a t-test that takes the variance r (1 - r) for the standard deviation.

    For this reason the t-test does far worse than the binomial test in Table 11. If all outcomes are equal, it always
    rejects. `significance.t` is the t-test.
    """
    from scipy.special import stdtr

    k, n, p = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, p)))
    rate = k / n
    spread = rate * (1 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        pvalue = 2 * stdtr(n - 1, -np.abs(rate - p) / (spread / np.sqrt(n)))
    return np.where(spread == 0, 0.0, pvalue)


def published_bins(bins: Bins) -> Bins:
    """Return the bins of the program of the paper for those of the library.

    >>> published_bins(EqualSize(10))(rows_in_order([0, 1] * 5, [0.2] * 10)).n
    array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    """
    if isinstance(bins, PAVABC):
        return _LooseTail(bins)
    if isinstance(bins, EqualSize):
        return _FloatQuantile(bins.n_bins)
    if isinstance(bins, EqualWidth) and bins.closed == "left":
        return Edges(np.linspace(0, 1, bins.n_bins + 1).tolist())
    if isinstance(bins, (PAVA, Edges)):
        return bins
    raise ValueError(f"bins must be PAVABC, PAVA, EqualSize, Edges or EqualWidth closed on the left; got {bins!r}.")
