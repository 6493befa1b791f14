"""Replicates of one score table: of its rows or of whole clusters, of counts or importance weights, and their metrics.

==================  =====================================  ==========================================================
rows                bootstrap                              null
==================  =====================================  ==========================================================
counts              as many rows, with replacement         outcomes drawn with the scores as probabilities; exact
importance weights  a Poisson number of each row           residuals keep their sizes and get random signs
clusters            as many clusters, with replacement     residuals of a cluster get one random sign
==================  =====================================  ==========================================================

The kernel adds up what most metrics need of all replicates of a block; see `MetricPlan`. Other metrics are computed on
the table of each replicate, which has the same rows: `bootstrap_sampler` and `null_sampler` return these tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import Stream, Streams
from calibrant._support.workers import Submit
from calibrant.inference.metric_plans import MetricPlan
from calibrant.inference.paired_rows import PairedRows, compact
from calibrant.inference.resampling import PURPOSES, ReplicateValues, metric_values, one_by_one, replicate_blocks
from calibrant.metrics.bins import EqualSize
from calibrant.metrics.metric import Metric, declared
from calibrant.tables.score_table import Partition, ScoreTable, event_squares, residual_variance

# Rows are resampled one by one if scores have at most this number of rows on average; otherwise sampling the counts of
# whole scores is faster.
_MAX_ROWS_PER_SCORE = 16
# With more rows, the probabilities of single rows would differ by more than 3 % (see the kernel's draw).
_MOST_ROWS = 2**27
# Sums of replicates are computed ahead of their use if those of a table take at most this number of bytes.
_MOST_BYTES_AHEAD = 2e6
# Several tables are measured together if the bins of all their replicates, of 24 bytes per bin, are at most this many.
_MOST_BINS = 300_000
# Mean numbers of rows per unit that differ from 1 by less are equal to 1: the difference is rounding.
_ROUNDING = 1e-9

# The partitions of a table that were computed before, by bins.
Partitions: TypeAlias = Mapping[Any, Partition]
_NO_PARTITIONS: Partitions = MappingProxyType({})


class TableReplicates:
    """Metrics of the bootstrap and null replicates of a table of counts.

    `of_draws` and `of_outcomes` need `takes_draws`, and `in_clusters` where rows are drawn together. Sums of replicates
    may be started in other threads before they are needed.
    """

    def __init__(
        self,
        table: ScoreTable,
        metrics: Sequence[Metric] = (),
        *,
        takes_draws: bool = False,
        in_clusters: bool = False,
        partitions: Partitions = _NO_PARTITIONS,
    ) -> None:
        self.table = table
        self.metrics: list[Metric] = list(metrics)
        self.by_rows: bool = takes_draws or draws_rows(table)
        self._plan, self._size = MetricPlan(table, metrics, partitions), float(table.size)
        self._sums = sums = self._plan.of_counts()
        options = {"by_rows": self.by_rows, "in_clusters": in_clusters}
        self.kernel = _kernels.replicates(table.score, table.n, table.k, sums, **options)
        self._started: dict[Streams, Callable[[], _kernels.ReplicateSums]] = {}

    @property
    def n_bins(self) -> int:
        """Number of bins of all partitions."""
        return self._sums.n_bins

    def start(self, submit: Submit, *, n_resamples: int, seed: SeedSequence) -> None:
        """Begin to compute the sums of all replicates, if the kernel draws them and they need little memory."""
        if not self.by_rows or n_resamples * self._sums.bytes_per_replicate > _MOST_BYTES_AHEAD:
            return
        for purpose, measure in zip(PURPOSES, (self.kernel.resample, self.kernel.simulate), strict=True):
            for block in replicate_blocks(purpose, n_resamples=n_resamples, seed=seed, rows=self._size):
                self._started[block] = submit(partial(measure, block.key, block.first, block.count))

    def bootstrap(self, streams: Streams) -> Floats:
        """Return the values of bootstrap replicates, one row each."""
        sums = None
        if streams in self._started:
            sums = self._started.pop(streams)()
        elif self._plan.reads_sums and self.by_rows:
            sums = self.kernel.resample(streams.key, streams.first, streams.count)
        elif self._plan.reads_sums:
            n, k = zip(*map(self._resampled_counts, streams), strict=True)
            sums = self.kernel.measure(np.array(n), np.array(k))
        return self._plan.values(streams, sums, self._size, self.bootstrap_table)

    def null(self, streams: Streams) -> Floats:
        """Return the values of null replicates, one row each."""
        sums = None
        if streams in self._started:
            sums = self._started.pop(streams)()
        elif self._plan.reads_sums and self.by_rows:
            sums = self.kernel.simulate(streams.key, streams.first, streams.count)
        elif self._plan.reads_sums:
            k = np.array([self._simulated_events(stream) for stream in streams])
            sums = self.kernel.measure(np.ascontiguousarray(np.broadcast_to(self.table.n, k.shape)), k)
        return self._plan.values(streams, sums, self._size, self.null_table)

    def bootstrap_table(self, stream: Stream) -> ScoreTable:
        """Return the table of a bootstrap replicate: as many rows as the table has, drawn from it with replacement."""
        if self.by_rows:
            return compact(self.table.score, *self.kernel.resampled(stream.key, stream.replicate))
        return compact(self.table.score, *self._resampled_counts(stream))

    def null_table(self, stream: Stream) -> ScoreTable:
        """Return the table of a null replicate: outcomes drawn with the scores as probabilities."""
        if self.by_rows:
            return ScoreTable(self.table.score, self.table.n, self.kernel.simulated(stream.key, stream.replicate))
        return ScoreTable(self.table.score, self.table.n, self._simulated_events(stream))

    def _resampled_counts(self, stream: Stream) -> tuple[Ints, Ints]:
        """Return the rows and the events of each score: drawn for whole scores, as many rows are."""
        table, size = self.table, int(self.table.size)
        share = np.concatenate([table.k, table.n - table.k]) / size
        events, others = np.split(stream.generator().multinomial(size, share), 2)
        return events + others, events

    def _simulated_events(self, stream: Stream) -> Ints:
        return stream.generator().binomial(self.table.n, self.table.score)

    def of_draws(
        self, streams: Streams, drawn: _kernels.Bytes, order: _kernels.Order | None, sizes: Ints | None = None
    ) -> Floats:
        """Return the values of replicates whose rows were drawn elsewhere; see `TableSums.resample_drawn`.

        `sizes` are the numbers of rows of the replicates, if these are not those of the table.
        """
        sums = None
        if self._plan.reads_sums:
            limits = None if sizes is None else self._plan.limits(sizes.tolist())
            sums = self.kernel.resample_drawn(drawn, order, limits)
        return self.of_sums(sums, streams, drawn, order, sizes)

    def of_outcomes(self, streams: Streams, events: _kernels.Bytes, order: _kernels.Order | None) -> Floats:
        """Return the values of null replicates with these outcomes; see `TableSums.simulate_drawn`."""

        def replicate(stream: Stream) -> ScoreTable:
            k, _ = self._counts(_row(events, order, stream, streams))
            return ScoreTable(self.table.score, self.table.n, k)

        sums = self.kernel.simulate_drawn(events, order) if self._plan.reads_sums else None
        return self._plan.values(streams, sums, self._size, replicate)

    def of_sums(
        self,
        sums: _kernels.ReplicateSums | None,
        streams: Streams,
        drawn: _kernels.Bytes,
        order: _kernels.Order | None,
        sizes: Ints | None = None,
    ) -> Floats:
        """Return the values of replicates whose rows were drawn, and added up, elsewhere."""

        def replicate(stream: Stream) -> ScoreTable:
            return compact(self.table.score, *self._counts(_row(drawn, order, stream, streams)))

        return self._plan.values(streams, sums, self._size if sizes is None else sizes, replicate)

    def _counts(self, times: _kernels.Bytes) -> tuple[Ints, Ints]:
        """Return rows and events of each score, given how often each row occurs."""
        before = np.concatenate([[0], np.cumsum(times, dtype=np.int64)])
        end = np.cumsum(self.table.n)
        start = end - self.table.n
        return before[end] - before[start], before[start + self.table.k] - before[start]


def draws_rows(table: ScoreTable) -> bool:
    """Return whether the rows of a table are resampled one by one."""
    return table.size <= min(_MAX_ROWS_PER_SCORE * len(table), _MOST_ROWS)


def _row(drawn: NDArray[Any], order: _kernels.Order | None, stream: Stream, streams: Streams) -> NDArray[Any]:
    """Return what was drawn for a replicate, in the order of the table."""
    times: NDArray[Any] = drawn[stream.replicate - streams.first]
    return times if order is None else times[order]


# Weighted rows


class WeightedRows(NamedTuple):
    """Weighted rows in order of score: how many each entry of a table has, and weight and outcome (0 or 1) of each."""

    counts: Ints
    weight: Floats
    event: _kernels.Bytes

    def table(self, score: Floats, times: NDArray[Any]) -> ScoreTable:
        """Return the table in which each row occurs so many times."""
        whole, place = times * self.weight, np.repeat(np.arange(score.size), self.counts)
        columns = (whole, whole * self.event, whole * self.weight, whole * self.weight * self.event)
        sums: Any = (np.bincount(place, weights=column, minlength=score.size) for column in columns)
        return compact(score, *sums)


def weighted_values(
    table: ScoreTable, metrics: Sequence[Metric], rows: WeightedRows, partitions: Partitions = _NO_PARTITIONS
) -> Callable[[Streams, NDArray[Any], _kernels.Order | None], Floats]:
    """Return the function that computes metrics of replicates of weighted rows.

    Its arguments are the streams, how often each row (or each cluster) occurs in their replicates, and an order as of
    `TableSums.resample_drawn`.
    """
    plan = MetricPlan(table, metrics, partitions)
    kernel = _kernels.weighted_replicates(table.score, *rows, plan.of_weights())

    def values(streams: Streams, drawn: NDArray[Any], order: _kernels.Order | None) -> Floats:
        def replicate(stream: Stream) -> ScoreTable:
            # A replicate without rows, possible if they are very few, counts as the table.
            drawn_table = rows.table(table.score, _row(drawn, order, stream, streams))
            return drawn_table if len(drawn_table) else table

        sums = kernel(drawn, order)
        return plan.values(streams, sums, sums.linear[:, -1], replicate)

    return values


class PoissonRows:
    """Bootstrap replicates of importance weights: a Poisson number of rows for events, and one for others.

    Weights with sum s and sum of squares q count as s^2 / q rows of weight q / s, which preserves mean and variance of
    their sum.

    Attributes
    ----------
    rows : WeightedRows
        The units of each score: events, others, or both; events first.
    mean : ndarray of float64
        Mean of the number of rows of each unit.
    """

    def __init__(self, table: ScoreTable) -> None:
        assert table.w2 is not None
        self.table = table
        k2 = event_squares(table)
        parts = [_poisson_rows(table.k, k2), _poisson_rows(table.n - table.k, table.w2 - k2)]
        weight, mean = (np.column_stack(columns) for columns in zip(*parts, strict=True))
        used = mean > 0
        event = np.broadcast_to(np.array([1, 0], dtype=np.uint8), used.shape)[used]
        self.rows: WeightedRows = WeightedRows(used.sum(axis=1), weight[used], event)
        self.mean: Floats = mean[used]
        self._several = np.flatnonzero(np.abs(self.mean - 1) > _ROUNDING)

    @property
    def is_drawn_by_kernel(self) -> bool:
        """Whether each score has a unit, and numbers of rows fit in 32 bits."""
        return bool(np.all(self.rows.counts > 0)) and bool(self.mean.max(initial=0) < 2**30)

    def draws(self, streams: Streams) -> _kernels.Bytes | _kernels.Order:
        """Return the number of rows of each unit, one row per replicate."""
        drawn = _kernels.poisson_draws(streams.key, streams.first, streams.count, self.mean.size)
        if not self._several.size:
            return drawn
        times = drawn.astype(np.int32)
        for row, stream in zip(times, streams, strict=True):
            row[self._several] = stream.generator().poisson(self.mean[self._several])
        return times

    def __call__(self, stream: Stream) -> ScoreTable:
        """Return the table of a replicate; an empty one, possible with very few rows, counts as the table."""
        replicate = self.rows.table(self.table.score, self.draws(Streams(stream.key, stream.replicate, 1))[0])
        return replicate if len(replicate) else self.table


def _poisson_rows(total: Floats, square: Floats) -> tuple[Floats, Floats]:
    """Return the weight and the number of rows that have these sums of weights and of their squares."""
    some = (total > 0) & (square > 0)
    weight = np.divide(square, total, out=np.ones(total.size), where=some)
    return weight, np.where(some, total / weight, 0.0)


def bootstrap_weights(table: ScoreTable, metrics: Sequence[Metric], partitions: Partitions) -> ReplicateValues:
    """Return the function that computes the metrics of bootstrap replicates of importance weights."""
    units = PoissonRows(table)
    if not units.is_drawn_by_kernel:
        return one_by_one(lambda stream: metric_values(metrics, units(stream)))
    values = weighted_values(table, metrics, units.rows, partitions)
    return lambda streams: values(streams, units.draws(streams), None)


def bootstrap_clusters(
    table: ScoreTable, rows: PairedRows, metrics: Sequence[Metric], partitions: Partitions
) -> ReplicateValues:
    """Return the function that computes the metrics of bootstrap replicates of clusters, which are drawn whole."""
    assert rows.cluster is not None
    (place,), weight, n_draws = rows.places, rows.weight, rows.n_draws
    # Rows of equal score and outcome stay in their order; events come first.
    in_order = np.argsort(2 * place + (1 - rows.event), kind="stable")
    if table.importance:
        assert weight is not None
        counts, event = np.bincount(place, minlength=len(table)), rows.event[in_order].astype(np.uint8)
        weighted = WeightedRows(counts, weight[in_order].astype(np.float64), event)
        values, order = weighted_values(table, metrics, weighted, partitions), rows.cluster[in_order].astype(np.int32)
        return lambda streams: values(streams, _draws(streams, n_draws), order)
    if weight is not None and weight.sum() > _MOST_ROWS:  # frequencies
        return one_by_one(lambda stream: metric_values(metrics, rows(stream)[0]))
    repeated = in_order if weight is None else np.repeat(in_order, weight[in_order])
    order = rows.cluster[repeated].astype(np.int32)
    sizes = np.bincount(rows.cluster, weights=weight, minlength=n_draws).astype(np.int64)
    counted = TableReplicates(table, metrics, takes_draws=True, in_clusters=True, partitions=partitions)

    def of_counts(streams: Streams) -> Floats:
        drawn = _draws(streams, n_draws)
        return counted.of_draws(streams, drawn, order, drawn @ sizes)

    return of_counts


def _draws(streams: Streams, size: int) -> _kernels.Bytes:
    return _kernels.draws(streams.key, streams.first, streams.count, size)


# Null replicates by random signs


@dataclass(frozen=True, eq=False)
class SignedResiduals:
    """Residuals in order of score; those of one unit share a random sign, which preserves their dependence.

    Sums of events can then lie outside [0, n]: metrics of gaps accept them, tests of counts do not.

    Attributes
    ----------
    table : ScoreTable
        Scores and weights of the replicates, and as many events as the scores predict.
    place : ndarray of int64
        Entry of the table that each residual belongs to; it does not fall.
    residual : ndarray of float64
    unit : ndarray of int64 or None
        Unit of each residual; without them each has a sign of its own.
    n_units : int
    tied : ndarray of int64
        Entries of several weighted rows, of which sums alone are known: they get a standard normal variate.
    deviation : ndarray of float64
        Standard deviation of the residual sum of each of these.
    """

    table: ScoreTable
    place: Ints
    residual: Floats
    unit: Ints | None
    n_units: int
    tied: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    deviation: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of_weights(cls, table: ScoreTable) -> "SignedResiduals":
        """Return those of importance weights, which are not numbers of trials: they may depend on the outcome."""
        assert table.w2 is not None
        deviation = np.sqrt(residual_variance(table))
        single = table.n**2 <= table.w2 * (1 + 1e-9)
        tied, size = np.flatnonzero(~single), len(table)
        fitted = ScoreTable(table.score, table.n, table.n * table.score, table.w2, table.k2)
        return cls(fitted, np.arange(size), np.where(single, deviation, 0.0), None, size, tied, deviation[tied])

    @classmethod
    def of_clusters(cls, rows: PairedRows) -> "SignedResiduals":
        """Return those of rows with one prediction, with one random sign for each cluster."""
        assert rows.cluster is not None
        (score,), (place,) = rows.scores, rows.places
        weight = np.ones(rows.event.size) if rows.weight is None else rows.weight.astype(np.float64)
        counts = rows.weight is None or rows.weight.dtype.kind != "f"
        squares = weight if counts else weight**2
        n, w2, k2 = (
            np.asarray(np.bincount(place, weights=column, minlength=score.size), dtype=np.float64)
            for column in (weight, squares, squares * rows.event)
        )
        order = np.argsort(place, kind="stable")
        residual = (weight * (rows.event - score[place]))[order]
        fitted = ScoreTable(score, n, n * score, w2, k2)
        return cls(fitted, place[order], residual, rows.cluster[order], rows.n_draws)

    def __call__(self, stream: Stream) -> ScoreTable:
        """Return the table of a replicate: the same scores and weights, and moved events."""
        table, sign = self.table, _kernels.signs(stream.key, stream.replicate, self.n_units)
        signed = (sign if self.unit is None else sign[self.unit]) * self.residual
        moved = np.bincount(self.place, weights=signed, minlength=len(table)).astype(np.float64)
        if self.tied.size:
            moved[self.tied] += self._normal(stream)
        return ScoreTable(table.score, table.n, table.k + moved, table.w2, table.k2)

    def sums(self, start: Ints, terms: Sequence[Floats]) -> ReplicateValues:
        """Return the function from streams to sums of the residuals over parts of the table.

        Part b begins with entry ``start[b]``. The sums have the shape (replicates, parts, 1 + terms): of the residuals,
        and of the residuals times each term, which has one number per entry.
        """
        weighted = [self.residual, *(term[self.place] * self.residual for term in terms)]
        values = np.ascontiguousarray(np.column_stack(weighted))
        rows = np.searchsorted(self.place, start)

        def of_streams(streams: Streams) -> Floats:
            sums = _kernels.signed_sums(streams.key, streams.first, streams.count, values, rows, self.unit)
            if self.tied.size:
                self._add_tied(sums, streams, start, terms)
            return sums

        return of_streams

    def _add_tied(self, sums: Floats, streams: Streams, start: Ints, terms: Sequence[Floats]) -> None:
        part = np.searchsorted(start, self.tied, side="right") - 1
        factors = [np.ones(self.tied.size), *(term[self.tied] for term in terms)]
        for of_replicate, stream in zip(sums, streams, strict=True):
            moved = self._normal(stream)
            for column, factor in enumerate(factors):
                of_replicate[:, column] += np.bincount(part, weights=moved * factor, minlength=start.size)

    def _normal(self, stream: Stream) -> Floats:
        return np.asarray(stream.generator().standard_normal(self.tied.size) * self.deviation)


def signed_null(residuals: SignedResiduals, metrics: Sequence[Metric], partitions: Partitions) -> ReplicateValues:
    """Return the function that computes the metrics of null replicates of weights or clusters; NaN without a null."""
    defined = np.array([not declared(metric, "needs_counts") for metric in metrics], dtype=bool)
    kept, table = [metric for metric, exists in zip(metrics, defined, strict=True) if exists], residuals.table
    plan = MetricPlan(table, kept, partitions)
    cuts = [*plan.fixed, *(EqualSize(bins)(table).start for bins in plan.quantiles)]
    # Bins of equal size may be fewer than asked for; the others have no rows.
    widths = [*(start.size for start in plan.fixed), *plan.quantiles]
    start = np.unique(np.concatenate([[0], *cuts]).astype(np.int64))
    bins = [np.searchsorted(start, cut) for cut in cuts]
    moved_sums = residuals.sums(start, [b for _, b in plan.linear])

    def in_bins(parts: Floats) -> Floats:
        """Return sums over bins of sums over parts, the last axis of which counts parts."""
        sums = [np.empty((*parts.shape[:-1], 0))]
        for which, width in zip(bins, widths, strict=True):
            empty = np.zeros((*parts.shape[:-1], width - which.size))
            sums += [np.add.reduceat(parts, which, axis=-1), empty]
        return np.concatenate(sums, axis=-1)

    n, fitted = (in_bins(np.add.reduceat(column, start)) for column in (table.n, table.k))
    linear = np.array([float(np.sum(table.n * a + table.k * b)) for a, b in plan.linear])

    def values(streams: Streams) -> Floats:
        moved = moved_sums(streams)
        k = fitted + in_bins(moved[:, :, 0])
        of_bins = (np.broadcast_to(n, k.shape), k, np.broadcast_to(fitted, k.shape))
        sums = _kernels.ReplicateSums(*of_bins, linear + moved[:, :, 1:].sum(axis=1), np.empty((streams.count, 0)))
        found = np.full((streams.count, len(metrics)), np.nan)
        found[:, defined] = plan.values(streams, sums, float(table.size), residuals)
        return found

    return values


def bootstrap_sampler(table: ScoreTable) -> Callable[[Stream], ScoreTable]:
    """Return the function from streams to the tables of bootstrap replicates."""
    return PoissonRows(table) if table.importance else TableReplicates(table).bootstrap_table


def null_sampler(table: ScoreTable, rows: PairedRows | None = None) -> Callable[[Stream], ScoreTable]:
    """Return the function from streams to the tables of null replicates; `rows` holds the rows if they are in clusters.

    All have the scores and weights of the table.
    """
    if rows is not None and rows.cluster is not None:
        return SignedResiduals.of_clusters(rows)
    return SignedResiduals.of_weights(table) if table.importance else TableReplicates(table).null_table


# Several predictions of the same rows


class SharedDraws:
    """Metrics of bootstrap replicates of independent rows with several predictions: one draw of rows for all of them.

    Rows are drawn in the order of the first table, whose replicates are therefore those that it has alone. For another
    prediction, the numbers of draws are gathered in the order of its own table; the kernel adds them up. Predictions
    that order the rows alike are measured together. `partitions` are known ones of the table of each prediction.
    """

    def __init__(
        self, rows: PairedRows, metrics: Sequence[Metric], partitions: Sequence[Partitions] | None = None
    ) -> None:
        self.size: int = rows.event.size
        tables = [_table(*columns, rows.event) for columns in zip(rows.scores, rows.places, strict=True)]
        first = _rows_in_order(tables[0], rows.places[0], rows.event)
        rank = np.empty(self.size, dtype=np.int32)
        rank[first] = np.arange(self.size, dtype=np.int32)
        others = zip(tables[1:], rows.places[1:], strict=True)
        self.orders = [None, *(_or_none(rank[_rows_in_order(table, place, rows.event)]) for table, place in others)]
        self.alike: list[list[int]] = _alike(tables, self.orders)
        for one, *others_alike in self.alike:  # they share the arrays of their counts
            for i in others_alike:
                tables[i] = ScoreTable(tables[i].score, tables[one].n, tables[one].k)
        self.models: list[TableReplicates] = [
            TableReplicates(table, metrics, takes_draws=True, partitions=known)
            for table, known in zip(tables, partitions or [_NO_PARTITIONS] * len(tables), strict=True)
        ]

    def __call__(self, streams: Streams) -> Floats:
        """Return the metrics of the first model, then those of the second one, and so on, one row per replicate."""
        drawn = _draws(streams, self.size)
        values: dict[int, Floats] = {}
        for group in self.alike:
            models, order = [self.models[i] for i in group], self.orders[group[0]]
            values |= zip(group, _values_together(models, streams, drawn, order), strict=True)
        return np.hstack([values[i] for i in range(len(self.models))])


def _values_together(
    models: Sequence[TableReplicates], streams: Streams, drawn: _kernels.Bytes, order: _kernels.Order | None
) -> list[Floats]:
    """Return the values of tables that share the arrays of their counts, as `TableReplicates.of_draws` does for each.

    What depends on counts alone, such as the bins of PAVA-BC, is computed once for all of them. Tables with many bins
    are measured one by one: sums over the bins of all replicates of all tables would be in memory at once.
    """
    if sum(model.n_bins for model in models) * streams.count > _MOST_BINS:
        return [model.of_draws(streams, drawn, order) for model in models]
    first, *others = [model.kernel for model in models]
    sums = first.resample_together(others, drawn, order)
    return [model.of_sums(own, streams, drawn, order) for model, own in zip(models, sums, strict=True)]


def _alike(tables: Sequence[ScoreTable], orders: Sequence[_kernels.Order | None]) -> list[list[int]]:
    """Return groups of tables with the same rows in the same order.

    A strictly increasing function of the scores, such as most recalibrations, does not change the order.
    """

    def belongs(i: int, first: int) -> bool:
        pairs = ((orders[i], orders[first]), (tables[i].n, tables[first].n), (tables[i].k, tables[first].k))
        return all(_equal(*pair) for pair in pairs)

    groups: list[list[int]] = []
    for i in range(len(tables)):
        group = next((group for group in groups if belongs(i, group[0])), None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return groups


def _equal(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _or_none(order: _kernels.Order) -> _kernels.Order | None:
    """Return the order of rows; None where it is that of the first table, as for a rising function of its scores."""
    return None if (order == np.arange(order.size)).all() else order


def _table(score: Floats, place: Ints, event: Ints) -> ScoreTable:
    if score.size == event.size:  # one row per score
        k = np.empty_like(event)
        k[place] = event
        return ScoreTable(score, np.ones_like(event), k)
    n, k = (np.bincount(which, minlength=score.size) for which in (place, place[event == 1]))
    return ScoreTable(score, n, k)


def _rows_in_order(table: ScoreTable, place: Ints, event: Ints) -> Ints:
    """Return the rows in order of score, events first."""
    if len(table) == event.size:  # the place of a row is its rank
        rows = np.empty(event.size, dtype=np.int64)
        rows[place] = np.arange(event.size)
        return rows
    # Rows of equal score and outcome stay in their order. Sorting distinct numbers takes a fifth of a stable argsort.
    key = (2 * place + (1 - event)) * event.size + np.arange(event.size)
    return np.remainder(np.sort(key), event.size)


@dataclass(frozen=True, eq=False)
class StoredReplicates:
    """Values of metrics in bootstrap replicates, one row each, from the first one on.

    `kept` may hold the object that drew them, for null replicates of the same metrics; who takes it removes it.
    """

    metrics: Sequence[Metric]
    values: Floats
    kept: list[TableReplicates] = field(default_factory=list)

    def has(self, metrics: Sequence[Metric]) -> bool:
        """Return whether the values of all these metrics are stored."""
        return all(metric in self.metrics for metric in metrics)

    def take(self, metrics: Sequence[Metric]) -> TableReplicates | None:
        """Return the object that drew replicates of these metrics, once."""
        return self.kept.pop() if self.kept and self.kept[0].metrics == list(metrics) else None

    def of(self, metric: Metric) -> Floats:
        """Return the values of one metric."""
        return self.values[:, list(self.metrics).index(metric)]

    def lookup(self, metrics: Sequence[Metric], streams: Streams) -> Floats:
        """Return the values of the replicates of these streams."""
        which = slice(streams.first, streams.first + streams.count)
        return np.column_stack([self.of(metric)[which] for metric in metrics])
