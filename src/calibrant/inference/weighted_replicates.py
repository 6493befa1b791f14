"""Values of metrics of many replicates at once, for binary scores with importance weights or in clusters."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import Stream, Streams
from calibrant.inference.binary_replicates import BinaryReplicates
from calibrant.inference.metric_values import metric_values
from calibrant.inference.replicate_plans import MetricPlan, Sizes
from calibrant.inference.resampling import PairedRows, PoissonSampler, one_by_one
from calibrant.inference.signed_residuals import SignedResiduals
from calibrant.metrics.bins import Quantile
from calibrant.metrics.metric import Metric
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["SignedReplicates", "WeightedReplicates", "bootstrap_clusters", "bootstrap_weights"]

_MOST_ROWS = 2**27  # that frequencies of clusters may stand for

Values = Callable[[Streams], Floats]


class WeightedReplicates:
    """Metrics of bootstrap replicates of weighted rows in order of score, of which each entry has some.

    The kernel adds up what most metrics need; others are computed on the table of each replicate.
    """

    def __init__(
        self,
        table: ScoreTable,
        metrics: Sequence[Metric],
        rows: tuple[Ints, Floats, _kernels.Bytes],
        partitions: Mapping[Any, Partition] = MappingProxyType({}),
    ) -> None:
        self._plan = MetricPlan(table, metrics, partitions)
        self._kernel = _kernels.weighted_replicates(table.score, *rows, self._plan.of_weights())

    def of_draws(
        self,
        streams: Streams,
        drawn: _kernels.Bytes | _kernels.Order,
        order: _kernels.Order | None,
        replicate: Callable[[Stream], ScoreTable],
    ) -> Floats:
        """Return the values of replicates with these numbers of draws, given the function to their tables."""

        def measure(streams: Streams) -> tuple[_kernels.ReplicateSums, Sizes]:
            sums = self._kernel(drawn, order)
            return sums, sums.linear[:, -1]

        return self._plan.values(streams, measure, replicate)


def bootstrap_weights(table: ScoreTable, metrics: Sequence[Metric], partitions: Mapping[Any, Partition]) -> Values:
    """Return the function that computes the metrics of bootstrap replicates of importance weights."""
    sampler = PoissonSampler(table)
    if not sampler.is_drawn_by_kernel:
        return one_by_one(lambda stream: metric_values(metrics, sampler(stream)))
    found = WeightedReplicates(table, metrics, (sampler.rows, sampler.weight, sampler.event), partitions)
    return lambda streams: found.of_draws(streams, sampler.draws(streams), None, sampler)


def bootstrap_clusters(
    table: ScoreTable, rows: PairedRows, metrics: Sequence[Metric], partitions: Mapping[Any, Partition]
) -> Values:
    """Return the function that computes the metrics of bootstrap replicates of clusters, which are drawn whole."""
    assert rows.cluster is not None
    (place,), weight = rows.places, rows.weight
    frequency = weight is not None and not table.importance
    if frequency and weight is not None and weight.sum() > _MOST_ROWS:
        return one_by_one(lambda stream: metric_values(metrics, rows(stream)[0]))
    # Rows of equal score and outcome stay in their order; events come first.
    in_order = np.argsort(2 * place + (1 - rows.event), kind="stable")
    repeated = np.repeat(in_order, weight[in_order]) if frequency and weight is not None else in_order
    order = rows.cluster[repeated].astype(np.int32)
    if table.importance and weight is not None:
        return _weighted_clusters(table, rows, metrics, partitions, in_order, order)
    sizes = np.bincount(rows.cluster, weights=weight, minlength=rows.n_draws).astype(np.int64)
    found = BinaryReplicates(table, metrics, takes_draws=True, in_clusters=True, partitions=partitions)

    def values(streams: Streams) -> Floats:
        drawn = _kernels.draws(streams.key, streams.first, streams.count, rows.n_draws)
        return found.of_draws(streams, drawn, order, drawn @ sizes)

    return values


def _weighted_clusters(
    table: ScoreTable,
    rows: PairedRows,
    metrics: Sequence[Metric],
    partitions: Mapping[Any, Partition],
    in_order: Ints,
    order: _kernels.Order,
) -> Values:
    assert rows.weight is not None
    counts = np.bincount(rows.places[0], minlength=len(table))
    columns = (counts, rows.weight[in_order].astype(np.float64), rows.event[in_order].astype(np.uint8))
    found = WeightedReplicates(table, metrics, columns, partitions)

    def values(streams: Streams) -> Floats:
        drawn = _kernels.draws(streams.key, streams.first, streams.count, rows.n_draws)
        return found.of_draws(streams, drawn, order, lambda stream: rows(stream)[0])

    return values


class SignedReplicates:
    """Metrics of null replicates of a table of weights whose residuals get random signs; weights do not change."""

    def __init__(
        self,
        table: ScoreTable,
        metrics: Sequence[Metric],
        residuals: SignedResiduals,
        partitions: Mapping[Any, Partition] = MappingProxyType({}),
    ) -> None:
        self.table, self._replicate = table, residuals.sampler(table)
        self._plan = plan = MetricPlan(table, metrics, partitions)
        cuts = [*plan.fixed, *(Quantile(bins)(table).start for bins in plan.quantiles)]
        # Bins of equal size may be fewer than asked for; the others have no rows.
        self._empty = [0] * len(plan.fixed) + [
            bins - each.size for bins, each in zip(plan.quantiles, cuts[len(plan.fixed) :], strict=True)
        ]
        start = np.unique(np.concatenate([[0], *cuts]).astype(np.int64))
        self._bins = [np.searchsorted(start, each) for each in cuts]
        self._moved = residuals.sums(start, [b for _, b in plan.linear])
        n, fitted = table.n, table.n * table.score
        self._n, self._fitted = (self._in_bins(np.add.reduceat(each, start)) for each in (n, fitted))
        self._linear = np.array([float(np.sum(n * a + fitted * b)) for a, b in plan.linear])

    def __call__(self, streams: Streams) -> Floats:
        """Return the values of null replicates, one row each."""
        return self._plan.values(streams, self._measure, self._replicate)

    def _measure(self, streams: Streams) -> tuple[_kernels.ReplicateSums, Sizes]:
        moved = self._moved(streams)
        k = self._fitted + self._in_bins(moved[:, :, 0])
        n, score = (np.broadcast_to(each, k.shape) for each in (self._n, self._fitted))
        linear = self._linear + moved[:, :, 1:].sum(axis=1)
        return _kernels.ReplicateSums(n, k, score, linear, np.empty((streams.count, 0))), float(self.table.size)

    def _in_bins(self, parts: Floats) -> Floats:
        """Return sums over bins of sums over parts, the last axis of which counts parts."""
        found = [np.empty((*parts.shape[:-1], 0))]
        for bins, empty in zip(self._bins, self._empty, strict=True):
            found += [np.add.reduceat(parts, bins, axis=-1), np.zeros((*parts.shape[:-1], empty))]
        return np.concatenate(found, axis=-1)
