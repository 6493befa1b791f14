"""Values of metrics of many replicates of one table at once, from the sums that the kernel computes."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.errors import InputError
from calibrant._support.random_streams import Stream, Streams
from calibrant._support.typing import Floats, Ints
from calibrant.inference.metric_values import metric_values
from calibrant.inference.resampling import CountSampler, compact
from calibrant.metrics.bins import PAVA, PAVABC, Quantile
from calibrant.metrics.losses import RejectionRate
from calibrant.metrics.metric import BinnedMetric, Metric, declared, has_bins
from calibrant.tables.partition import BinTotals, Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["BinaryReplicates"]

# From the sums of replicates to the values of a metric; NaN where a replicate must be measured by itself.
Reader = Callable[[_kernels.ReplicateSums], Floats]


class BinaryReplicates:
    """Metrics of the bootstrap and null replicates of a table of counts.

    The kernel adds up what most metrics need: sums over bins, linear sums of counts, and rejected rows. Other metrics
    are computed on the table of each replicate, which has the same rows. `of_draws` needs `takes_draws`.
    `partitions` of the table are those that are known, by bins.
    """

    def __init__(
        self,
        table: ScoreTable,
        metrics: Sequence[Metric],
        *,
        takes_draws: bool = False,
        partitions: Mapping[Any, Partition] = MappingProxyType({}),
    ) -> None:
        plan = _Plan(table, partitions)
        self.table, self.metrics = table, list(metrics)
        self._readers = [plan.reader(metric) for metric in metrics]
        self._sampler = CountSampler(table, plan.finished(), takes_draws=takes_draws)

    def bootstrap(self, streams: Streams) -> Floats:
        """Return the values of bootstrap replicates, one row each."""
        return self._values(streams, self._sampler.bootstrap_sums, self._bootstrap_table)

    def null(self, streams: Streams) -> Floats:
        """Return the values of null replicates, one row each."""
        return self._values(streams, self._sampler.null_sums, self._null_table)

    def of_draws(self, streams: Streams, drawn: _kernels.Bytes, order: _kernels.Order | None) -> Floats:
        """Return the values of replicates whose rows were drawn for several tables; see `Replicates.resample_drawn`."""

        def measure(streams: Streams) -> _kernels.ReplicateSums:
            return self._sampler.kernel.resample_drawn(drawn, order)

        def replicate(stream: Stream) -> ScoreTable:
            times = drawn[stream.replicate - streams.first]
            return compact(self.table.score, *self._counts(times if order is None else times[order]))

        return self._values(streams, measure, replicate)

    def _counts(self, times: _kernels.Bytes) -> tuple[Ints, Ints]:
        """Return rows and events of each score, given how often each row occurs."""
        before = np.concatenate([[0], np.cumsum(times, dtype=np.int64)])
        end = np.cumsum(self.table.n)
        start = end - self.table.n
        return before[end] - before[start], before[start + self.table.k] - before[start]

    def _bootstrap_table(self, stream: Stream) -> ScoreTable:
        return compact(self.table.score, *self._sampler.bootstrap(stream))

    def _null_table(self, stream: Stream) -> ScoreTable:
        return ScoreTable(self.table.score, self.table.n, self._sampler.null(stream))

    def _values(
        self,
        streams: Streams,
        measure: Callable[[Streams], _kernels.ReplicateSums],
        replicate: Callable[[Stream], ScoreTable],
    ) -> Floats:
        found = np.full((streams.count, len(self.metrics)), np.nan)
        if any(self._readers):
            sums = measure(streams)
            for i, reader in enumerate(self._readers):
                if reader is not None:
                    found[:, i] = reader(sums)
        for i in np.flatnonzero(np.isnan(found).any(axis=1)).tolist():
            missing = np.flatnonzero(np.isnan(found[i]))
            table = replicate(Stream(streams.key, streams.first + i))
            found[i, missing] = metric_values([self.metrics[j] for j in missing], table)
        return found


class _Plan:
    """Collects the sums that metrics need; metrics with equal bins share them."""

    def __init__(self, table: ScoreTable, partitions: Mapping[Any, Partition]) -> None:
        self.table, self.partitions = table, partitions
        self.fixed: dict[object, Partition] = {}
        self.quantiles: dict[int, None] = {}
        self.blocks: dict[_kernels.TestedBlocks, None] = {}
        self.linear: list[tuple[Floats, Floats]] = []

    def finished(self) -> _kernels.Plan:
        """Return the plan for the kernel."""
        starts = [partition.start for partition in self.fixed.values()]
        return _kernels.Plan(starts, list(self.quantiles), list(self.blocks), self.linear)

    def reader(self, metric: Metric) -> Reader | None:
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
        column, size = len(self.linear) - 1, float(self.table.size)
        return lambda sums: sums.linear[:, column] / size

    def _sums(self, metric: BinnedMetric) -> Reader | None:
        bins = metric.bins
        if isinstance(bins, Quantile):
            self.quantiles.setdefault(bins.n_bins)
            return lambda sums: _values_over(metric, self._of_quantiles(sums, bins.n_bins), self.table)
        if not getattr(bins, "fixed", False):
            return None
        if bins not in self.fixed:
            try:
                self.fixed[bins] = self.partitions.get(bins) or bins(self.table)
            except InputError:  # scores beyond the edges
                return None
        return lambda sums: _values_over(metric, self._of_fixed(sums, bins), self.table)

    def _of_fixed(self, sums: _kernels.ReplicateSums, bins: object) -> BinTotals:
        before = list(self.fixed)[: list(self.fixed).index(bins)]
        first = sum(len(self.fixed[each]) for each in before)
        return _columns(sums, first, len(self.fixed[bins]))

    def _of_quantiles(self, sums: _kernels.ReplicateSums, n_bins: int) -> BinTotals:
        counts = list(self.quantiles)
        first = sum(map(len, self.fixed.values())) + sum(counts[: counts.index(n_bins)])
        return _columns(sums, first, n_bins)

    def _rejected(self, metric: BinnedMetric) -> Reader | None:
        """Return the reader of the share of rejected rows, where the kernel decides the tests."""
        bins, loss, size = metric.bins, metric.loss, int(self.table.size)
        if not (isinstance(loss, RejectionRate) and loss.is_exact and isinstance(bins, PAVA | PAVABC)):
            return None
        if not getattr(metric.norm, "is_mean", False):
            return None
        low, high = (0, size) if isinstance(bins, PAVA) else bins.limits(self.table)
        blocks = _kernels.TestedBlocks(min(int(low), size), min(int(high), size), loss.alpha)
        self.blocks.setdefault(blocks)
        column = list(self.blocks).index(blocks)
        return lambda sums: np.where(sums.rejected[:, column] < 0, np.nan, 100 * sums.rejected[:, column] / size)


def _columns(sums: _kernels.ReplicateSums, first: int, count: int) -> BinTotals:
    which = slice(first, first + count)
    return BinTotals(sums.n[:, which], sums.k[:, which], sums.score[:, which])


def _values_over(metric: BinnedMetric, sums: BinTotals, table: ScoreTable) -> Floats:
    """Return the metric of each replicate: of all at once if loss and norm declare it, else one by one."""
    if getattr(metric.loss, "is_elementwise", False) and getattr(metric.norm, "takes_rows", False):
        loss: Callable[[BinTotals], Floats] = metric.loss  # type: ignore[assignment]  # declared to take them
        return np.asarray(metric.norm(loss(sums), sums.n))
    rows = zip(sums.n, sums.k, sums.score, strict=True)
    parts = ((n[n > 0], k[n > 0], score[n > 0]) for n, k, score in rows)
    return np.array([metric.value_over(Partition.from_sums(table, *each)) for each in parts])
