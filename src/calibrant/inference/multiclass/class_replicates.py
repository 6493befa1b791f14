"""Values of metrics of class probabilities in many replicates at once: one draw of rows, or of classes, for all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Bools, Floats, Ints, Weights
from calibrant._support.random_streams import Stream, Streams
from calibrant._support.workers import cached_property
from calibrant.inference.binary_replicates import BinaryReplicates
from calibrant.inference.weighted_replicates import WeightedReplicates
from calibrant.metrics.multiclass import ClasswiseMetric, ScoreCounter, TopLabelMetric
from calibrant.tables.class_table import ClassTable
from calibrant.tables.score_table import ScoreTable

__all__ = ["MulticlassReplicates"]

# Of rows and classes; each takes up to 100 bytes. More are measured one replicate at a time.
_MOST_ENTRIES = 5_000_000


class MulticlassReplicates:
    """Metrics of the bootstrap and null replicates of a class table.

    Each class against the rest, and the top label, has a table of its own, of which the kernel adds up sums; rows (or
    clusters, or classes) are drawn once for all of them. Frequencies are repeated rows. Other metrics than class-wise
    and top-label ones and proper scores are measured one replicate at a time, on the same draws.
    """

    def __init__(self, table: ClassTable, cluster: Ints | None, metrics: Sequence[Any]) -> None:
        self.metrics = list(metrics)
        if table.weight is not None and not table.importance:
            again = np.repeat(np.arange(len(table)), table.weight)
            table, cluster = replace(table.part(again), weight=None), None if cluster is None else cluster[again]
        self.table, self.cluster = table, cluster
        self.n_draws = len(table) if cluster is None else int(cluster.max()) + 1

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
            lambda member: member.of_draws(streams, drawn, sizes),
            lambda measure, i: measure(None, self._weights(drawn[i])),
        )

    def null(self, streams: Streams) -> Floats:
        """Return the values of null replicates, one row each."""
        codes = _kernels.class_draws(streams.key, streams.first, streams.count, self._cumulative)
        return self._values(
            streams,
            lambda member: member.of_classes(streams, codes),
            lambda measure, i: measure(codes[i].astype(np.int64), None),
        )

    @cached_property
    def _cumulative(self) -> Floats:
        return np.ascontiguousarray(np.cumsum(self.table.proba, axis=1, dtype=np.float64))

    @cached_property
    def _rows_per_cluster(self) -> Ints | None:
        counted = self.cluster is not None and not self.table.importance
        return np.bincount(self.cluster, minlength=self.n_draws) if counted and self.cluster is not None else None

    def _weights(self, times: _kernels.Bytes) -> Weights:
        of_rows = times.astype(np.int64) if self.cluster is None else times[self.cluster].astype(np.int64)
        return of_rows if self.table.weight is None else of_rows * self.table.weight

    def _values(
        self,
        streams: Streams,
        of_member: Callable[["_Event"], Floats],
        one: Callable[[Any, int], float],
    ) -> Floats:
        found = np.empty((streams.count, len(self.metrics)))
        if self._classwise:
            classes = np.array([of_member(member) for member in self._classes])
            for j, i in enumerate(self._classwise):
                mean = isinstance(self.metrics[i], ClasswiseMetric)
                found[:, i] = classes[:, :, j].mean(axis=0) if mean else classes[:, :, j].sum(axis=0)
        if self._top:
            found[:, self._top] = of_member(self._top_label)
        for i, measure in self._others:
            found[:, i] = [one(measure, replicate) for replicate in range(streams.count)]
        return found

    @cached_property
    def _classwise(self) -> list[int]:
        """Metrics that are read from the tables of classes."""
        return [
            i
            for i, metric in enumerate(self.metrics)
            if isinstance(metric, ClasswiseMetric) or hasattr(metric, "class_terms")
        ]

    @cached_property
    def _top(self) -> list[int]:
        return [i for i, metric in enumerate(self.metrics) if isinstance(metric, TopLabelMetric)]

    @cached_property
    def _others(self) -> list[tuple[int, Any]]:
        known = {*self._classwise, *self._top}
        return [(i, metric.measure(self.table)) for i, metric in enumerate(self.metrics) if i not in known]

    @cached_property
    def _classes(self) -> list["_Event"]:
        metrics = [self.metrics[i] for i in self._classwise]
        table = self.table
        return [
            _Event(table, self.cluster, np.full(len(table), c, dtype=np.int32), table.proba[:, c], metrics)
            for c in range(table.n_classes)
        ]

    @cached_property
    def _top_label(self) -> "_Event":
        metrics, best = [self.metrics[i] for i in self._top], self.table.best.astype(np.int32)
        return _Event(self.table, self.cluster, best, self.table.confidence, metrics)


class _Event:
    """One event of each row: that a class, or the most probable class, occurs. Its metrics in replicates."""

    def __init__(
        self, rows: ClassTable, cluster: Ints | None, wanted: _kernels.Order, score: Floats, metrics: Sequence[Any]
    ) -> None:
        self.rows, self.wanted = rows, wanted
        event = rows.code == wanted
        table = rows.score_table(event, score)
        parts: list[Any] = [each.metric if hasattr(each, "metric") else _ClassTerm(each, table) for each in metrics]
        in_order = _rows_in_order(np.asarray(score, dtype=np.float64), event)
        self._order = (in_order if cluster is None else cluster[in_order]).astype(np.int32)
        self._counts = self._weighted = None
        if rows.importance:
            assert rows.weight is not None
            counts = np.diff(np.append(np.searchsorted(score[in_order], table.score), event.size))
            columns = (counts, rows.weight[in_order], event[in_order].astype(np.uint8))
            self._weighted = WeightedReplicates(table, parts, columns)
            self._cluster, self._counter = cluster, ScoreCounter(rows, score)
        else:
            self._counts = BinaryReplicates(table, parts, takes_draws=True, in_clusters=cluster is not None)

    def of_draws(self, streams: Streams, drawn: _kernels.Bytes, sizes: Ints | None) -> Floats:
        """Return the values of bootstrap replicates, given how often each row, or cluster, is drawn."""
        if self._counts is not None:
            return self._counts.of_draws(streams, drawn, self._order, sizes)
        assert self._weighted is not None

        def replicate(stream: Stream) -> ScoreTable:
            times = drawn[stream.replicate - streams.first]
            of_rows = times if self._cluster is None else times[self._cluster]
            return self._counter(self.rows.code == self.wanted, of_rows * self.rows.weight)

        return self._weighted.of_draws(streams, drawn, self._order, replicate)

    def of_classes(self, streams: Streams, codes: _kernels.Order) -> Floats:
        """Return the values of null replicates, given the class of each row."""
        assert self._counts is not None
        return self._counts.of_outcomes(streams, (codes == self.wanted).view(np.uint8), self._order)


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
