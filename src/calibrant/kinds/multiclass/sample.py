"""Class probabilities and the classes that occurred: how they are read, grouped and resampled."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Floats, Ints, Weights
from calibrant._support.lazy import cached_property
from calibrant._support.random_streams import Stream, Streams
from calibrant.inference.resampling import ReplicateValues, Sample, largest_unseen_rate, one_by_one
from calibrant.inference.table_replicates import TableReplicates, WeightedRows, weighted_values
from calibrant.inference.time_blocks import Errors, in_time_blocks, need_blocks
from calibrant.kinds.sample import GroupedSample, TimeBlocks, with_enough_clusters
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.multiclass import ClassEvent
from calibrant.tables.class_table import ClassProbabilities, ClassTable, used_rows
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable

MANY_PROBABILITIES = 10_000_000  # probabilities, so that each replicate is slow
# Of rows and classes; each takes up to 100 bytes. More are measured one replicate at a time.
_MOST_ENTRIES = 5_000_000


@dataclass(frozen=True, eq=False)
class MulticlassSample(Sample):
    """A class table and, where rows are in clusters, the cluster of each row.

    Null replicates draw the class of each row from its predicted probabilities, so all metrics of a replicate see the
    same classes. With importance weights or clusters no null exists: rows may depend on each other, or weights on the
    outcome.
    """

    table: ClassTable
    cluster: Ints | None = None

    @classmethod
    def from_rows(cls, rows: Rows, labels: tuple[Any, ...]) -> "MulticlassSample":
        """Validate and count rows."""
        codes = used_rows(rows).cluster_codes
        return cls(ClassTable.from_rows(rows, labels), codes)

    @cached_property
    def n_rarer(self) -> float:
        """Independent observations: rows, effective rows, or clusters."""
        if self.n_clusters is not None:
            return float(self.n_clusters)
        weight = self.table.weight
        if weight is None or not self.table.importance:
            return float(self.table.size)
        return float(weight.sum() ** 2 / (weight @ weight))

    @cached_property
    def noise_ratio(self) -> float:
        """Ratio of the noise of the data to that of a calibrated model, at least 1: by the Brier score."""
        if not self.has_exact_null:
            return 1.0
        table = self.table
        squares = np.einsum("ij,ij->i", table.proba, table.proba)
        chosen = table.proba[np.arange(len(table)), table.code]
        observed, expected = (
            np.average(losses, weights=table.weight) for losses in (squares - 2 * chosen + 1, 1 - squares)
        )
        return float(np.sqrt(max(1.0, observed / expected))) if expected > 1e-200 else 1.0

    def unseen_deviation(self, metric: Metric) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation that the bootstrap cannot show."""
        size, degree = self.n_rarer, float(declared(metric, "degree"))
        if not metric.measures_gaps or self.table.observed.max() < 1:
            return lambda tail: 0.0
        return lambda tail: largest_unseen_rate(size, tail) ** degree

    def bootstrap(self, metrics: Sequence[Any]) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""
        if MulticlassReplicates.can_hold(self.table):
            return self._replicates(metrics).bootstrap
        measures = [self._measure(metric) for metric in metrics]
        draws = self.n_clusters or len(self.table)

        def one(stream: Stream) -> list[float]:
            weight = self._drawn_weights(stream, draws)
            return [measure(None, weight) for measure in measures]

        return one_by_one(one)

    def _drawn_weights(self, stream: Stream, draws: int) -> Weights:
        weight = self.table.weight
        if self.cluster is None and weight is not None and not self.table.importance:
            # A frequency of 2 means two rows, each drawn for itself.
            return stream.generator().multinomial(int(self.table.size), weight / self.table.size)
        times = _kernels.draw(stream.key, stream.replicate, draws)
        times = times if self.cluster is None else times[self.cluster]
        return times if weight is None else times * weight

    def null(self, metrics: Sequence[Any]) -> ReplicateValues:
        """Return the function that computes the metrics of null replicates."""
        if not self.has_exact_null:
            return lambda streams: np.full((streams.count, len(metrics)), np.nan)
        if MulticlassReplicates.can_hold(self.table):
            return self._replicates(metrics).null
        if self.table.weight is not None:
            return one_by_one(lambda stream: [metric.value(self._simulated(stream)) for metric in metrics])
        measures = [self._measure(metric) for metric in metrics]
        draw = class_sampler(self.table)

        def one(stream: Stream) -> list[float]:
            code = draw(stream.generator())
            return [measure(code, None) for measure in measures]

        return one_by_one(one)

    def _simulated(self, stream: Stream) -> ClassTable:
        """Return a null replicate of frequencies: each of the equal rows draws a class of its own."""
        assert self.table.weight is not None
        proba = self.table.proba.astype(np.float64)
        counts = stream.generator().multinomial(self.table.weight, proba / proba.sum(axis=1, keepdims=True))
        rows, code = np.nonzero(counts)
        return replace(self.table.part(rows), code=code, weight=counts[rows, code])

    def _replicates(self, metrics: Sequence[Any]) -> "MulticlassReplicates":
        """Return the replicates of these metrics, which bootstrap and null share."""
        if not (self._last and self._last[0].metrics == list(metrics)):
            self._last[:] = [MulticlassReplicates(self.table, self.cluster, metrics)]
        return self._last[0]

    @cached_property
    def _last(self) -> "list[MulticlassReplicates]":
        return []

    def _measure(self, metric: Any) -> Any:
        """Return the prepared metric; preparing one costs more than a replicate, so bootstrap and null share it."""
        if metric not in self._prepared:
            self._prepared[metric] = metric.measure(self.table)
        return self._prepared[metric]

    @cached_property
    def _prepared(self) -> dict[Any, Any]:
        return {}


def errors(used: Rows, labels: Sequence[Any]) -> list[Errors]:
    """Return the errors of the probabilities of each model; the highest one orders the rows."""
    occurs = _columns.codes(used.y, list(labels))[:, None] == np.arange(len(labels))
    matrices = [each.matrix for each in used.forecasts]
    return [Errors(occurs - p, p.max(axis=1)) for p in matrices]


def time_blocks(labels: Sequence[Any]) -> TimeBlocks:
    """Return the function that puts rows with probabilities of these classes into blocks of their times."""
    return partial(in_time_blocks, check=used_rows, errors=partial(errors, labels=labels))


def read(y_true: Any, proba: Any, cluster: Column | None, options: Any) -> MulticlassSample:
    """Read the rows for one metric, or take a `ClassTable`; classes are a frame's column names, else 0 to K - 1."""
    if isinstance(y_true, ClassTable):
        return MulticlassSample(y_true)
    probabilities = ClassProbabilities.read(proba)
    labels = tuple(probabilities.class_names(None))
    read = Rows.read(y_true, {probabilities.name: probabilities}, cluster=cluster, **options)
    rows, serial = time_blocks(labels)(read)
    need_blocks(serial)
    return with_enough_clusters(MulticlassSample.from_rows(rows, labels))


def read_groups(
    y_true: Column, proba: Any, *, classes: Sequence[Any] | None = None, **options: Any
) -> GroupedSample[MulticlassSample]:
    """Read rows; without `classes` they are the names of a frame's columns, else 0 to K - 1."""
    probabilities = ClassProbabilities.read(proba)
    labels = tuple(probabilities.class_names(classes))
    rows = Rows.read(y_true, {probabilities.name: probabilities}, **options)
    count = partial(MulticlassSample.from_rows, labels=labels)
    is_large = probabilities.matrix.size > MANY_PROBABILITIES
    return GroupedSample.from_rows(rows, count, time_blocks(labels), is_large=is_large)


class MulticlassReplicates:
    """Metrics of the bootstrap and null replicates of a class table.

    Each event (a class, the top label) has a table of its own, of which the kernel adds up sums; rows (or
    clusters, or classes) are drawn once for all of them. Frequencies are repeated rows. Metrics that declare no events
    are measured one replicate at a time, on the same draws.
    """

    def __init__(self, table: ClassTable, cluster: Ints | None, metrics: Sequence[Any]) -> None:
        self.metrics: list[Any] = list(metrics)
        if table.weight is not None and not table.importance:
            again = np.repeat(np.arange(len(table)), table.weight)
            table, cluster = replace(table.part(again), weight=None), None if cluster is None else cluster[again]
        self.table = table
        self.cluster = cluster
        self.n_draws: int = len(table) if cluster is None else int(cluster.max()) + 1
        positions: dict[Any, list[int]] = {}  # of the metrics that are read from the tables of each set of events
        for i, metric in enumerate(metrics):
            positions.setdefault(getattr(metric, "events", None), []).append(i)
        self._others: list[tuple[int, Any]] = [(i, metrics[i].measure(table)) for i in positions.pop(None, [])]
        self._by_events: list[tuple[list[int], list[_Event]]] = [
            (which, [_Event(table, cluster, event, [metrics[i] for i in which]) for event in events(table)])
            for events, which in positions.items()
        ]

    @staticmethod
    def can_hold(table: ClassTable) -> bool:
        """Return whether the table is small enough for all its classes to be held in memory."""
        rows = len(table) if table.importance else table.size
        return bool(rows * table.n_classes <= _MOST_ENTRIES)

    def bootstrap(self, streams: Streams) -> Floats:
        """Return the values of bootstrap replicates, one row each."""
        drawn = _kernels.draws(streams.key, streams.first, streams.count, self.n_draws)
        sizes = None if self._rows_per_cluster is None else drawn @ self._rows_per_cluster
        return self._values(
            streams,
            lambda event: event.of_draws(streams, drawn, sizes),
            lambda measure, i: measure(None, self._weights(drawn[i])),
        )

    def null(self, streams: Streams) -> Floats:
        """Return the values of null replicates, one row each."""
        codes = _kernels.class_draws(streams.key, streams.first, streams.count, self._cumulative)
        return self._values(
            streams,
            lambda event: event.of_classes(streams, codes),
            lambda measure, i: measure(codes[i].astype(np.int64), None),
        )

    @cached_property
    def _cumulative(self) -> Floats:
        return np.ascontiguousarray(np.cumsum(self.table.proba, axis=1, dtype=np.float64))

    @cached_property
    def _rows_per_cluster(self) -> Ints | None:
        if self.cluster is None or self.table.importance:
            return None
        return np.bincount(self.cluster, minlength=self.n_draws)

    def _weights(self, times: _kernels.Bytes) -> Weights:
        of_rows = (times if self.cluster is None else times[self.cluster]).astype(np.int64)
        return of_rows if self.table.weight is None else of_rows * self.table.weight

    def _values(
        self, streams: Streams, of_event: Callable[["_Event"], Floats], one: Callable[[Any, int], float]
    ) -> Floats:
        values = np.empty((streams.count, len(self.metrics)))
        for which, events in self._by_events:
            of_events = np.array([of_event(event) for event in events])
            for j, i in enumerate(which):
                is_sum = getattr(self.metrics[i], "is_sum_of_events", False)
                values[:, i] = of_events[:, :, j].sum(axis=0) if is_sum else of_events[:, :, j].mean(axis=0)
        for i, measure in self._others:
            values[:, i] = [one(measure, replicate) for replicate in range(streams.count)]
        return values


class _Event:
    """One event of each row, such as that a class occurs, and its metrics in replicates."""

    def __init__(self, rows: ClassTable, cluster: Ints | None, of: ClassEvent, metrics: Sequence[Any]) -> None:
        self.occurs, score = of.occurs, of.score
        event = of.occurs(rows.code)
        table = rows.score_table(event, score)
        parts: list[Any] = [each.metric if hasattr(each, "metric") else _ClassTerm(each, table) for each in metrics]
        in_order = _rows_in_order(np.asarray(score, dtype=np.float64), event)
        self._order = (in_order if cluster is None else cluster[in_order]).astype(np.int32)
        self._counts = self._weights = None
        if rows.importance:
            assert rows.weight is not None
            counts = np.diff(np.append(np.searchsorted(score[in_order], table.score), event.size))
            columns = WeightedRows(counts, rows.weight[in_order], event[in_order].astype(np.uint8))
            self._weights = weighted_values(table, parts, columns)
        else:
            self._counts = TableReplicates(table, parts, takes_draws=True, in_clusters=cluster is not None)

    def of_draws(self, streams: Streams, drawn: _kernels.Bytes, sizes: Ints | None) -> Floats:
        """Return the values of bootstrap replicates, given how often each row, or cluster, is drawn."""
        if self._weights is not None:
            return self._weights(streams, drawn, self._order)
        assert self._counts is not None
        return self._counts.of_draws(streams, drawn, self._order, sizes)

    def of_classes(self, streams: Streams, codes: _kernels.Order) -> Floats:
        """Return the values of null replicates, given the class of each row."""
        assert self._counts is not None
        return self._counts.of_outcomes(streams, self.occurs(codes).view(np.uint8), self._order)


def _rows_in_order(score: Floats, event: Bools) -> Ints:
    """Return the rows in order of score, events first."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    if (ordered[1:] != ordered[:-1]).all():
        return order
    place = np.cumsum(np.append(False, ordered[1:] != ordered[:-1])[: score.size])
    return order[np.argsort(2 * place + ~event[order], kind="stable")]


@dataclass(frozen=True, eq=False)
class _ClassTerm:
    """The part of a proper score that belongs to one class; the score is the sum over classes."""

    score: Any
    table: ScoreTable

    def linear_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients of rows and events; a class of probability 0 that never occurs has none."""
        a, b = self.score.class_terms(score)
        return a, np.where((self.table.k == 0) & ~np.isfinite(b), 0.0, b)

    def value(self, table: ScoreTable) -> float:
        """Return the part of a replicate."""
        a, b = self.score.class_terms(table.score)
        events = table.k > 0
        return float((np.sum(table.n * a) + np.sum(table.k[events] * b[events])) / table.size)


def class_sampler(table: ClassTable) -> Callable[[Generator], Ints]:
    """Return the function that draws the class of each row from its predicted probabilities.

    Classes are searched in two steps, first among blocks of about sqrt(K) classes and then inside one block, so that a
    draw costs O(n sqrt(K)).
    """
    proba, size = table.proba, table.n_classes
    width = math.isqrt(size - 1) + 1
    blocks = np.cumsum(np.add.reduceat(proba, np.arange(0, size, width), axis=1, dtype=np.float64), axis=1)
    rows = np.arange(len(proba))

    def draw(rng: Generator) -> Ints:
        # The sum of a row is 1 up to rounding: uniform numbers are scaled by it, so that a class is always found.
        target = rng.random(rows.size) * blocks[:, -1]
        block = np.minimum((blocks <= target[:, None]).sum(axis=1), blocks.shape[1] - 1)
        target -= np.where(block > 0, blocks[rows, block - 1], 0.0)
        # The last block may be shorter: it is read with classes of the block before, whose probability counts as 0.
        first = np.minimum(block * width, max(size - width, 0))
        columns = first[:, None] + np.arange(min(width, size))
        p = proba[rows[:, None], columns]
        p[columns < (block * width)[:, None]] = 0.0
        place = (np.cumsum(p, axis=1) <= target[:, None]).sum(axis=1)
        # Rounding may pass the end: then the last class with a positive probability is meant.
        last = p.shape[1] - 1 - np.argmax(p[:, ::-1] > 0, axis=1)
        return np.asarray(first + np.minimum(place, last))

    return draw
