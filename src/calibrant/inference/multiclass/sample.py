"""`MulticlassSample`: rows of class probabilities, as inference resamples them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from calibrant import _kernels
from calibrant._support.arrays import Column, Floats, Ints, Weights
from calibrant._support.errors import InputError
from calibrant._support.random_streams import Stream, Streams
from calibrant._support.workers import cached_property
from calibrant.inference.multiclass.class_replicates import MulticlassReplicates
from calibrant.inference.resampling import check_clusters, one_by_one
from calibrant.metrics.metric import Metric, declared
from calibrant.tables.class_table import ClassProbabilities, ClassTable, used_rows
from calibrant.tables.rows import Rows

__all__ = ["MulticlassSample"]


@dataclass(frozen=True, eq=False)
class MulticlassSample:
    """Class probabilities and the classes that occurred and, where rows are in clusters, the cluster of each row.

    Null replicates draw the class of each row from its predicted probabilities, so all metrics of a replicate see the
    same classes. With importance weights or clusters no null exists: rows may depend on each other, or weights on the
    outcome.
    """

    table: ClassTable
    cluster: Ints | None = None

    @classmethod
    def read(cls, y_true: Any, proba: Any, cluster: Column | None, options: Mapping[str, Any]) -> "MulticlassSample":
        """Read rows, or take a `ClassTable`; classes are the names of a frame's columns, else 0 to K - 1."""
        if isinstance(y_true, ClassTable):
            return cls(y_true)
        read = ClassProbabilities.read(proba)
        rows = Rows.read(y_true, {read.name: read}, cluster=cluster, **options)
        codes = used_rows(rows).cluster_codes
        if codes is not None:
            check_clusters(int(codes.max()) + 1)
        return cls(ClassTable.from_rows(rows, tuple(read.class_names(None))), codes)

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""
        return self.cluster is not None

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are data that could be observed."""
        return not (self.table.importance or self.is_clustered)

    @cached_property
    def n_rarer(self) -> float:
        """Independent observations: rows, effective rows, or clusters."""
        if self.cluster is not None:
            return float(self.cluster.max() + 1)
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
            np.average(each, weights=table.weight) for each in (squares - 2 * chosen + 1, 1 - squares)
        )
        return float(np.sqrt(max(1.0, observed / expected))) if expected > 1e-200 else 1.0

    @property
    def error_bounds(self) -> Any:
        """No metric of class probabilities has the interval method "inversion"."""
        raise InputError("metric must have an interval by resampling.", argument="metric")

    def bootstrap(self, metrics: Sequence[Any]) -> Callable[[Streams], Floats]:
        """Return the function that computes the metrics of bootstrap replicates."""
        if MulticlassReplicates.can_hold(self.table):
            return self._replicates(metrics).bootstrap
        measures = [self._measure(metric) for metric in metrics]
        draws = len(self.table) if self.cluster is None else int(self.cluster.max()) + 1

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

    def null(self, metrics: Sequence[Any]) -> Callable[[Streams], Floats]:
        """Return the function that computes the metrics of null replicates."""
        if not self.has_exact_null:
            return lambda streams: np.full((streams.count, len(metrics)), np.nan)
        if MulticlassReplicates.can_hold(self.table):
            return self._replicates(metrics).null
        if self.table.weight is not None:
            return one_by_one(lambda stream: [metric.value(self._simulated(stream)) for metric in metrics])
        measures = [self._measure(metric) for metric in metrics]
        draw = ClassSampler(self.table)

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

    def _replicates(self, metrics: Sequence[Any]) -> MulticlassReplicates:
        """Return the replicates of these metrics, which bootstrap and null share."""
        if not (self._last and self._last[0].metrics == list(metrics)):
            self._last[:] = [MulticlassReplicates(self.table, self.cluster, metrics)]
        return self._last[0]

    @cached_property
    def _last(self) -> list[MulticlassReplicates]:
        return []

    def _measure(self, metric: Any) -> Any:
        """Return the prepared metric; preparing one costs more than a replicate, so bootstrap and null share it."""
        if metric not in self._prepared:
            self._prepared[metric] = metric.measure(self.table)
        return self._prepared[metric]

    @cached_property
    def _prepared(self) -> dict[Any, Any]:
        return {}

    def interval_refusal(self, metric: Any) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""
        return ""

    def unseen_deviation(self, metric: Metric) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation that the bootstrap cannot show."""
        size, degree = self.n_rarer, float(declared(metric, "degree"))
        if not metric.measures_gaps or self.table.observed.max() < 1:
            return lambda tail: 0.0
        return lambda tail: float((1 - tail ** (1 / size)) ** degree)


class ClassSampler:
    """Draws the class of each row from its predicted probabilities.

    Classes are searched in two steps, first among blocks of about sqrt(K) classes and then inside one block, so that a
    draw costs O(n sqrt(K)).
    """

    def __init__(self, table: ClassTable) -> None:
        self.proba = table.proba
        self.width = math.isqrt(table.n_classes - 1) + 1
        starts = np.arange(0, table.n_classes, self.width)
        sums = np.add.reduceat(table.proba, starts, axis=1, dtype=np.float64)
        self.blocks = np.cumsum(sums, axis=1)

    def __call__(self, rng: Generator) -> Ints:
        """Return a class for each row."""
        # The sum of a row is 1 up to rounding: uniform numbers are scaled by it, so that a class is always found.
        size, width = self.proba.shape[1], self.width
        target = rng.random(len(self.proba)) * self.blocks[:, -1]
        block = np.minimum((self.blocks <= target[:, None]).sum(axis=1), self.blocks.shape[1] - 1)
        rows = np.arange(target.size)
        target -= np.where(block > 0, self.blocks[rows, block - 1], 0.0)
        # The last block may be shorter: it is read with classes of the block before, whose probability counts as 0.
        first = np.minimum(block * width, max(size - width, 0))
        columns = first[:, None] + np.arange(min(width, size))
        p = self.proba[rows[:, None], columns]
        p[columns < (block * width)[:, None]] = 0.0
        place = (np.cumsum(p, axis=1) <= target[:, None]).sum(axis=1)
        # Rounding may pass the end: then the last class with a positive probability is meant.
        last = p.shape[1] - 1 - np.argmax(p[:, ::-1] > 0, axis=1)
        return np.asarray(first + np.minimum(place, last))
