"""What the kernel adds up of each replicate of a table, and how metrics are read from these sums."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints, Weights
from calibrant._support.errors import InputError
from calibrant._support.random_streams import Stream, Streams
from calibrant.inference.resampling import metric_values
from calibrant.metrics.bins import PAVA, PAVABC, EqualSize
from calibrant.metrics.losses import RejectionRate
from calibrant.metrics.metric import BinnedMetric, Metric, declared, has_bins
from calibrant.tables.score_table import BinTotals, Partition, ScoreTable

# Rows, or total weight, of all replicates or of each.
Sizes: TypeAlias = float | Weights
# From sums and sizes of replicates to the values of a metric; NaN where a replicate must be measured by itself.
Reader: TypeAlias = Callable[[_kernels.ReplicateSums, Sizes], Floats]

_NO_LIMIT = -1.0


class _Size(NamedTuple):
    """The size of a table of counts, of which limits of bins are made."""

    size: int
    importance: bool = False


class MetricPlan:
    """The sums of replicates of a table that metrics need; metrics with equal bins share them.

    `partitions` are known ones of the table, by bins. `values` reads the metrics from the sums; those that need more
    are computed on the table of each replicate.
    """

    def __init__(
        self, table: ScoreTable, metrics: Sequence[Metric], partitions: Mapping[Any, Partition] = MappingProxyType({})
    ) -> None:
        self.table = table
        self.metrics: list[Metric] = list(metrics)
        self._partitions = partitions
        self._fixed: dict[object, Partition] = {}
        self._quantiles: dict[int, None] = {}
        self._blocks: dict[tuple[PAVA | PAVABC, float], None] = {}
        self.linear: list[tuple[Floats, Floats]] = []
        self._gaps: list[tuple[Any, bool]] = []
        self._keeps_sums = False
        self._readers = [self._reader(metric) for metric in metrics]
        self.reads_sums: bool = any(self._readers)

    @property
    def fixed(self) -> list[Ints]:
        """First entries of bins that are the same in all replicates."""
        return [partition.start for partition in self._fixed.values()]

    @property
    def quantiles(self) -> list[int]:
        """Numbers of bins of equal size."""
        return list(self._quantiles)

    def of_counts(self) -> _kernels.Plan:
        """Return the plan for replicates of counts."""
        limits = self.limits([int(self.table.size)])[0].reshape(-1, 2).tolist()
        pairs = zip(self._blocks, limits, strict=True)
        blocks = [_kernels.TestedBlocks(low, high, alpha) for (_, alpha), (low, high) in pairs]
        partitions = [*self._fixed, *map(EqualSize, self._quantiles)]
        gaps = [(partitions.index(bins), absolute) for bins, absolute in self._gaps]
        return _kernels.Plan(self.fixed, self.quantiles, blocks, self.linear, gaps, self._keeps_sums)

    def of_weights(self) -> _kernels.Plan:
        """Return the plan for replicates of weighted rows, whose total weight is the last linear sum."""
        blocks = [_weighted_blocks(bins, alpha) for bins, alpha in self._blocks]
        ones, zeros = np.ones(len(self.table)), np.zeros(len(self.table))
        return _kernels.Plan(self.fixed, self.quantiles, blocks, [*self.linear, (ones, zeros)])

    def limits(self, sizes: Sequence[int]) -> Ints:
        """Return n_min and n_max of all bins of PAVA-BC, side by side, one row per number of rows."""
        found = [[each for bins, _ in self._blocks for each in _limits(bins, size)] for size in sizes]
        return np.array(found, dtype=np.int64).reshape(len(sizes), 2 * len(self._blocks))

    def values(
        self,
        streams: Streams,
        sums: _kernels.ReplicateSums | None,
        sizes: Sizes,
        replicate: Callable[[Stream], ScoreTable],
    ) -> Floats:
        """Return the metrics of replicates, one row each, given their sums and sizes, and the table of each.

        Without `sums`, which may be missing unless `reads_sums`, all are computed on tables.
        """
        values = np.full((streams.count, len(self.metrics)), np.nan)
        for i, reader in enumerate(self._readers):
            if reader is not None and sums is not None:
                values[:, i] = reader(sums, sizes)
        for i in np.flatnonzero(np.isnan(values).any(axis=1)).tolist():
            missing = np.flatnonzero(np.isnan(values[i]))
            table = replicate(Stream(streams.key, streams.first + i))
            values[i, missing] = metric_values([self.metrics[j] for j in missing], table)
        return values

    def _reader(self, metric: Metric) -> Reader | None:
        """Return the function from the sums of replicates to the metric; None if it needs their tables."""
        coefficients = getattr(metric, "linear_terms", lambda score: None)(self.table.score)
        if coefficients is not None and all(np.isfinite(each).all() for each in coefficients):
            return self._linear(coefficients)
        if not has_bins(metric):
            return None
        if declared(metric, "needs_sums_only"):
            return self._sums(metric)
        return self._rejected(metric)

    def _linear(self, coefficients: tuple[Floats, Floats]) -> Reader:
        self.linear.append(coefficients)
        column = len(self.linear) - 1
        return lambda sums, sizes: _share(sums.linear[:, column], sizes)

    def _sums(self, metric: BinnedMetric) -> Reader | None:
        bins = metric.bins
        if isinstance(bins, EqualSize):
            self._quantiles.setdefault(bins.n_bins)
            same = EqualSize(bins.n_bins)  # also of a class that is derived from it
            return self._over_bins(metric, same, lambda sums: self._of_quantiles(sums, bins.n_bins))
        if not getattr(bins, "fixed", False):
            return None
        if bins not in self._fixed:
            try:
                self._fixed[bins] = self._partitions.get(bins) or bins(self.table)
            except InputError:  # scores beyond the edges
                return None
        return self._over_bins(metric, bins, lambda sums: self._of_fixed(sums, bins))

    def _over_bins(
        self, metric: BinnedMetric, bins: Any, totals: Callable[[_kernels.ReplicateSums], BinTotals]
    ) -> Reader:
        """Return the reader of a metric from the means of gaps, if the kernel computes them, or from sums over bins."""
        gap = _mean_gap(metric)
        if gap is None:
            self._keeps_sums = True
            return lambda sums, sizes: _values_over(metric, totals(sums), sizes, self.table)
        self._gaps.append((bins, gap == "absolute"))
        column = len(self._gaps) - 1

        def read(sums: _kernels.ReplicateSums, sizes: Sizes) -> Floats:
            if sums.gaps.size:
                return sums.gaps[:, column]
            return _values_over(metric, totals(sums), sizes, self.table)

        return read

    def _of_fixed(self, sums: _kernels.ReplicateSums, bins: object) -> BinTotals:
        before = list(self._fixed)[: list(self._fixed).index(bins)]
        first = sum(len(self._fixed[each]) for each in before)
        return _columns(sums, first, len(self._fixed[bins]))

    def _of_quantiles(self, sums: _kernels.ReplicateSums, n_bins: int) -> BinTotals:
        counts = list(self._quantiles)
        first = sum(map(len, self._fixed.values())) + sum(counts[: counts.index(n_bins)])
        return _columns(sums, first, n_bins)

    def _rejected(self, metric: BinnedMetric) -> Reader | None:
        """Return the reader of the share of rejected rows, where the kernel decides the tests."""
        bins, loss = metric.bins, metric.loss
        if not (isinstance(loss, RejectionRate) and loss.is_exact and isinstance(bins, PAVA | PAVABC)):
            return None
        if not getattr(metric.norm, "is_mean", False):
            return None
        if self.table.importance and not np.isfinite(_critical_squares(loss.alpha)[0]).all():
            return None
        # Replicates have the rule of the table, though they may lack some of its scores.
        rule = bins.for_scores_of(self.table) if isinstance(bins, PAVABC) else bins
        self._blocks.setdefault((rule, loss.alpha))
        column = list(self._blocks).index((rule, loss.alpha))

        def share(sums: _kernels.ReplicateSums, sizes: Sizes) -> Floats:
            rejected = sums.rejected[:, column]
            return np.where(rejected < 0, np.nan, _share(100 * rejected, sizes))

        return share


def _mean_gap(metric: BinnedMetric) -> str | None:
    """Return "absolute" or "signed" if loss and norm declare that the metric is the mean of such gaps; else None."""
    gap, norm = getattr(metric.loss, "equals_gap", None), metric.norm
    if gap not in ("absolute", "signed") or not getattr(norm, "is_mean", False):
        return None
    if gap == "absolute" or getattr(norm, "takes_absolute", False):
        return "absolute"
    return "signed" if getattr(norm, "keeps_sign", False) else None


def _share(sums: Weights, sizes: Sizes) -> Floats:
    """Return sums per row; NaN for a replicate without rows."""
    whole = np.asarray(sizes, dtype=np.float64)
    return np.asarray(np.where(whole > 0, sums, np.nan) / np.where(whole > 0, whole, 1.0))


def _limits(bins: PAVA | PAVABC, size: int) -> tuple[int, int]:
    low, high = (0, size) if isinstance(bins, PAVA) else bins.limits(_Size(size))
    return min(int(low), size), min(int(high), size)


def _weighted_blocks(bins: PAVA | PAVABC, alpha: float) -> _kernels.WeightedBlocks:
    """Return the rule of `PAVABC.limits` for importance weights."""
    critical, step = _critical_squares(alpha)
    if isinstance(bins, PAVA):
        return _kernels.WeightedBlocks(0.0, 0.0, 0.0, _NO_LIMIT, 1.0, critical, step)
    root = 1.0 if bins.sizes == "consistent" else 0.0
    low, high = (_NO_LIMIT if each is None else float(each) for each in (bins.n_min, bins.n_max))
    return _kernels.WeightedBlocks(low, 0.0 if root else 1 / 20, root, high, 1 / 5, critical, step)


_NODES = 2048  # of critical values, up to x = 1/4: bins with fewer than 3 degrees of freedom are left to SciPy


@lru_cache(maxsize=16)
def _critical_squares(alpha: float) -> tuple[Floats, float]:
    """Return squared critical values of Student's t at 1 / (degrees + 1) = 0, step, ..., and the step.

    A step of Newton's method after SciPy's quantile makes them as precise as the distribution function.
    """
    from scipy.special import ndtri, stdtr, stdtrit

    step = 0.25 / _NODES
    degrees = 1 / (np.arange(1, _NODES + 3) * step) - 1
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        t = stdtrit(degrees, 1 - alpha / 2)
        t = t + (alpha / 2 - stdtr(degrees, -t)) / -_density(degrees, t)
        squares = np.concatenate([[ndtri(alpha / 2) ** 2], t**2])
    return squares, step


def _density(degrees: Floats, t: Floats) -> Floats:
    """Return the density of Student's t."""
    from scipy.special import gammaln

    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - 0.5 * np.log(degrees * np.pi)
    return np.asarray(np.exp(constant - (degrees + 1) / 2 * np.log1p(t**2 / degrees)))


def _columns(sums: _kernels.ReplicateSums, first: int, count: int) -> BinTotals:
    which = slice(first, first + count)
    return BinTotals(sums.n[:, which], sums.k[:, which], sums.score[:, which])


def _values_over(metric: BinnedMetric, sums: BinTotals, sizes: Sizes, table: ScoreTable) -> Floats:
    """Return the metric of each replicate of these sizes: of all at once if loss and norm declare it, else one by one.

    NaN for a replicate without rows.
    """
    some = np.broadcast_to(np.asarray(sizes) > 0, len(sums.n))
    if getattr(metric.loss, "is_elementwise", False) and getattr(metric.norm, "takes_rows", False) and some.all():
        loss: Callable[[BinTotals], Floats] = metric.loss  # type: ignore[assignment]  # declared to take them
        return np.asarray(metric.norm(loss(sums), sums.n))
    found = np.full(some.size, np.nan)
    for i in np.flatnonzero(some).tolist():
        used = sums.n[i] > 0
        parts = (column[i][used] for column in (sums.n, sums.k, sums.score))
        found[i] = metric.value_over(Partition.from_sums(table, *parts))
    return found
