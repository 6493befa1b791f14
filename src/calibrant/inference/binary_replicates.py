"""Values of metrics of many replicates of one table of counts at once, from the sums that the kernel computes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import Stream, Streams
from calibrant._support.workers import Submit
from calibrant.inference.replicate_plans import MetricPlan, Sizes
from calibrant.inference.resampling import CountSampler, compact
from calibrant.metrics.metric import Metric
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["BinaryReplicates", "of_same_draws"]

_MOST_BINS = 300_000  # of all replicates, 24 bytes each, that are measured at once


class BinaryReplicates:
    """Metrics of the bootstrap and null replicates of a table of counts.

    The kernel adds up what most metrics need: sums over bins, linear sums of counts, and rejected rows. Other metrics
    are computed on the table of each replicate, which has the same rows. `of_draws` and `of_outcomes` need
    `takes_draws`, and `in_clusters` where rows are drawn together. `partitions` of the table are those that are known,
    by bins.
    """

    def __init__(
        self,
        table: ScoreTable,
        metrics: Sequence[Metric],
        *,
        takes_draws: bool = False,
        in_clusters: bool = False,
        partitions: Mapping[Any, Partition] = MappingProxyType({}),
    ) -> None:
        self.table, self.metrics = table, list(metrics)
        self._plan = MetricPlan(table, metrics, partitions)
        plan, options = self._plan.of_counts(), {"takes_draws": takes_draws, "in_clusters": in_clusters}
        self._sampler, self._n_bins = CountSampler(table, plan, **options), plan.n_bins

    def start(self, submit: Submit, *, n_resamples: int, seed: SeedSequence) -> None:
        """Begin to add up the replicates in other threads; `bootstrap` and `null` wait for them."""
        self._sampler.start(submit, n_resamples=n_resamples, seed=seed)

    def bootstrap(self, streams: Streams) -> Floats:
        """Return the values of bootstrap replicates, one row each."""
        return self._plan.values(streams, self._bootstrap_sums, self._bootstrap_table)

    def null(self, streams: Streams) -> Floats:
        """Return the values of null replicates, one row each."""
        return self._plan.values(streams, self._null_sums, self._null_table)

    def of_draws(
        self,
        streams: Streams,
        drawn: _kernels.Bytes,
        order: _kernels.Order | None,
        sizes: Ints | None = None,
    ) -> Floats:
        """Return the values of replicates whose rows were drawn elsewhere; see `TableReplicates.resample_drawn`.

        `sizes` are the numbers of rows of the replicates, if these are not those of the table.
        """

        def measure(streams: Streams) -> tuple[_kernels.ReplicateSums, Sizes]:
            limits = None if sizes is None else self._plan.limits(sizes.tolist())
            whole = float(self.table.size) if sizes is None else sizes
            return self._sampler.kernel.resample_drawn(drawn, order, limits), whole

        return self._plan.values(streams, measure, self._tables_of(streams, drawn, order))

    def of_outcomes(self, streams: Streams, events: _kernels.Bytes, order: _kernels.Order | None) -> Floats:
        """Return the values of null replicates with these outcomes; see `TableReplicates.simulate_drawn`."""

        def measure(streams: Streams) -> tuple[_kernels.ReplicateSums, Sizes]:
            return self._sampler.kernel.simulate_drawn(events, order), float(self.table.size)

        def replicate(stream: Stream) -> ScoreTable:
            k, _ = self._counts(_row(events, order, stream, streams))
            return ScoreTable(self.table.score, self.table.n, k)

        return self._plan.values(streams, measure, replicate)

    def _tables_of(
        self, streams: Streams, drawn: _kernels.Bytes, order: _kernels.Order | None
    ) -> Callable[[Stream], ScoreTable]:
        """Return the function from a stream to the table of its rows, which were drawn elsewhere."""
        return lambda stream: compact(self.table.score, *self._counts(_row(drawn, order, stream, streams)))

    def _counts(self, times: _kernels.Bytes) -> tuple[Ints, Ints]:
        """Return rows and events of each score, given how often each row occurs."""
        before = np.concatenate([[0], np.cumsum(times, dtype=np.int64)])
        end = np.cumsum(self.table.n)
        start = end - self.table.n
        return before[end] - before[start], before[start + self.table.k] - before[start]

    def _bootstrap_sums(self, streams: Streams) -> tuple[_kernels.ReplicateSums, Sizes]:
        return self._sampler.bootstrap_sums(streams), float(self.table.size)

    def _null_sums(self, streams: Streams) -> tuple[_kernels.ReplicateSums, Sizes]:
        return self._sampler.null_sums(streams), float(self.table.size)

    def _bootstrap_table(self, stream: Stream) -> ScoreTable:
        return compact(self.table.score, *self._sampler.bootstrap(stream))

    def _null_table(self, stream: Stream) -> ScoreTable:
        return ScoreTable(self.table.score, self.table.n, self._sampler.null(stream))


def of_same_draws(
    models: Sequence[BinaryReplicates], streams: Streams, drawn: _kernels.Bytes, order: _kernels.Order | None
) -> list[Floats]:
    """Return the values of tables that share the arrays of their counts, as `BinaryReplicates.of_draws` does for each.

    What depends on counts alone, such as the bins of PAVA-BC, is computed once for all of them. Tables with many bins
    are measured one by one: sums over the bins of all replicates of all tables would be in memory at once.
    """
    if sum(model._n_bins for model in models) * streams.count > _MOST_BINS:
        return [model.of_draws(streams, drawn, order) for model in models]

    @cache
    def sums() -> list[_kernels.ReplicateSums]:
        first, *others = [model._sampler.kernel for model in models]
        return first.resample_together(others, drawn, order)

    def values(i: int, model: BinaryReplicates) -> Floats:
        tables = model._tables_of(streams, drawn, order)
        return model._plan.values(streams, lambda _: (sums()[i], float(model.table.size)), tables)

    return [values(i, model) for i, model in enumerate(models)]


def _row(drawn: _kernels.Bytes, order: _kernels.Order | None, stream: Stream, streams: Streams) -> _kernels.Bytes:
    """Return what was drawn for a replicate, in the order of the table."""
    times: _kernels.Bytes = drawn[stream.replicate - streams.first]
    return times if order is None else times[order]
