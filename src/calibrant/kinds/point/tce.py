"""The test-based calibration error of point predictions, and its null distribution by random signs of errors."""

from dataclasses import replace

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.random_streams import RandomState, Streams, seed_sequence
from calibrant.inference.regression.bias_by_bin import SLACK, bias_by_bin, fine_bins, too_few
from calibrant.inference.resampling import draw_replicates
from calibrant.metrics.point_costs import BinMeans
from calibrant.results.uncertainty import Null
from calibrant.tables.mean_table import MeanPartition, MeanTable
from calibrant.tables.rows import repeated_rows

NAME = "TCE"
_ROUNDING = 1e-12  # sums of squares up to this share of their terms are rounding


def tce_with_null(
    table: MeanTable,
    cluster: Ints | None,
    *,
    alpha: float,
    level: float,
    n_resamples: int,
    random_state: RandomState,
    progress: bool | None,
) -> Null:
    """Return TCE and its null distribution: errors, centred in each bin, with a random sign per row or cluster."""
    table, cluster = single_rows(table, cluster)
    bins = fine_bins(table)
    bias = bias_by_bin(table, bins=bins, alpha=alpha)
    partition = bins(table)
    n = partition.effective_n
    factor = np.sqrt(n / np.maximum(n - 1, 1))[partition.labels]
    error = factor * (table.mean - table.prediction + bias.per_bin["bias"][partition.labels])
    drawn = draw_replicates(
        SignedErrors(partition, error, cluster, alpha),
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
        rows=len(table),
        show=progress,
    )[:, 0]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    pvalue, expected = (1 + np.count_nonzero(drawn >= bias.tce - 1e-9)) / (1 + drawn.size), float(drawn.mean())
    return Null(NAME, bias.tce, expected, low, high, pvalue, "greater", level, "%", drawn.size, {"name": NAME})


def single_rows(table: MeanTable, cluster: Ints | None) -> tuple[MeanTable, Ints | None]:
    """Return single rows in an order that does not depend on that of the data, and their clusters.

    Frequency 2 means two rows, each with its own sign.
    """
    if table.single and cluster is None:
        return table.in_order(), None
    order = np.lexsort((table.mean, table.prediction))
    if not table.importance:
        order = order[repeated_rows(table.n[order], "tested")]
    table = table.part(order)
    if not table.importance:
        table = replace(table, n=np.ones(order.size, dtype=np.int64), single=True)
    return table, None if cluster is None else cluster[order]


class SignedErrors:
    """Replicates of a table with the outcomes p + s e: predictions p, errors e and a random sign s per row or cluster.

    Means, standard errors and skewness of the outcomes of a bin depend on the signs only through sums of s e, s d e,
    s d^2 e and s e^3 over the bin, with d the difference of p from its mean. The kernel adds them up.

    Parameters
    ----------
    partition : MeanPartition
        Bins of rows in rising order of the prediction.
    error : ndarray
    cluster : ndarray of int64, optional
    alpha : float
        Level of the tests.
    """

    def __init__(self, partition: MeanPartition, error: Floats, cluster: Ints | None, alpha: float) -> None:
        self.partition = partition
        self.cluster = cluster
        self.alpha = alpha
        self.start: Ints = np.searchsorted(partition.labels, np.arange(len(partition))).astype(np.int64)
        table, e = partition.table, error
        p = table.prediction
        self.mean: Floats = partition.mean(lambda run: p[run])
        d = p - np.repeat(self.mean, np.diff(np.append(self.start, p.size)))
        w = None if table.single else table.n.astype(np.float64)
        self._signed, self._fixed = list[Floats](), dict[str, Floats]()
        self._add_moments("n", w, d, e)
        if table.w2 is not None:
            self._add_moments("w2", table.w2, d, e)
        self._add_zeros(w, e)
        self.values: Floats = np.column_stack(self._signed)
        self.weight_before: Floats = np.arange(p.size + 1.0) if w is None else np.concatenate([[0.0], np.cumsum(w)])

    def _add_moments(self, name: str, weight: Floats | None, d: Floats, e: Floats) -> None:
        """Add the columns for the moments of outcomes with this weight: four for "n", two for "w2"."""
        we = e if weight is None else weight * e
        wd = d if weight is None else weight * d
        ones = np.ones(d.size) if weight is None else weight
        self._signed += [we, wd * e]
        fixed = {"sum": ones, "d": wd, "squares": wd * d + we * e}
        if name == "n":
            self._signed += [wd * d * e, we * e * e]
            fixed["cubes"] = wd * d * d + 3 * we * e * d
        self._fixed |= {f"{name} {each}": np.add.reduceat(column, self.start) for each, column in fixed.items()}

    def _add_zeros(self, weight: Floats | None, e: Floats) -> None:
        """Add the column for the number of outcomes of exactly 0, if there can be any."""
        p = self.partition.table.prediction
        above, below = (np.asarray(zero, dtype=np.float64) for zero in (p + e == 0, p - e == 0))
        self.has_zeros: bool = bool(above.any() or below.any())
        if self.has_zeros:
            half = 0.5 if weight is None else weight / 2
            self._signed.append(half * (above - below))
            self._fixed["zeros"] = np.add.reduceat(half * (above + below), self.start)

    def __call__(self, streams: Streams) -> Floats:
        """Return TCE of each replicate, in one column."""
        signed = _kernels.signed_sums(streams.key, streams.first, streams.count, self.values, self.start, self.cluster)
        outcomes = self.outcome_means(np.moveaxis(signed, 2, 0))
        low, high = outcomes.limits(1 - self.alpha)
        return np.asarray(100 * self._rejected(outcomes.mean, low, high) / self.partition.table.size)[:, None]

    def outcome_means(self, signed: Floats) -> BinMeans:
        """Return the means of the outcomes of each bin, one row per replicate, from signed sums of each column."""
        fixed, n, m = self._fixed, self.partition.n, self.partition.effective_n
        moved = signed[0] / n
        squares = fixed["n squares"] + 2 * signed[1]
        spread = _positive(squares - n * moved**2, squares)
        cubes = fixed["n cubes"] + 3 * signed[2] + signed[3] - 3 * moved * squares + 2 * n * moved**3
        squared = spread
        if self.partition.table.w2 is not None:
            squared = fixed["w2 squares"] + 2 * signed[5]
            linear = fixed["w2 d"] + signed[4]
            squared = _positive(squared - 2 * moved * linear + moved**2 * fixed["w2 sum"], squared)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(m / (m - 1) * squared) / n
            skewness = _medians(cubes / n / (spread / n) ** 1.5, m >= 3)
        biased = np.abs(moved) > self.partition.rounding
        error = np.where((m <= 1) | (biased & self._too_alike(error, signed)), np.nan, error)
        return BinMeans(self.mean + moved, error, m, skewness)

    def _too_alike(self, error: Floats, signed: Floats) -> Bools:
        alike: Bools = error == 0
        if self.has_zeros:
            alike = alike | too_few(self._fixed["zeros"] + signed[-1], self.partition)
        return alike

    def _rejected(self, outcome: Floats, low: Floats, high: Floats) -> Floats:
        """Return the weight of rows whose prediction lies outside the interval, of each replicate."""
        p, start = self.partition.table.prediction, self.start
        end = np.append(start[1:], p.size)
        slack = SLACK * np.maximum(np.abs(outcome), 1e-300)
        low = np.where(np.isnan(low), -np.inf, low - slack)
        high = np.where(np.isnan(high), np.inf, high + slack)
        # Bin by bin: the predictions of a bin stay in the processor's cache.
        below = np.clip(_kernels.locate(p, np.nextafter(low.T, -np.inf)).T, start, end)
        up_to = np.clip(_kernels.locate(p, high.T).T, start, end)
        before = self.weight_before
        return np.asarray((before[below] - before[start] + before[end] - before[up_to]).sum(axis=1))


def _positive(difference: Floats, of: Floats) -> Floats:
    """Return a sum of squares that was computed as a difference, without rounding: 0 for equal outcomes."""
    return np.where(difference <= _ROUNDING * of, 0.0, difference)


def _medians(skewness: Floats, known: Bools) -> Floats:
    """Return the median over the bins where it is known, of each replicate, in one column; 0 where there is none."""
    usable = np.isfinite(skewness) & known
    found = np.zeros(len(skewness))
    some = usable.any(axis=1)
    found[some] = np.nanmedian(np.where(usable, skewness, np.nan)[some], axis=1)
    return found[:, None]
