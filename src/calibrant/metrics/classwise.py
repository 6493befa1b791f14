"""Metrics of class probabilities: Brier score and log loss of K classes, and binary metrics by class or top label."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats, Ints, Weights
from calibrant.metrics.metric import BinnedMetric, Direction, Metric, declared, has_bins
from calibrant.metrics.registry import MetricLike, as_metrics
from calibrant.tables.class_table import ClassTable
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = [
    "ClasswiseMetric",
    "MulticlassBrier",
    "MulticlassLogLoss",
    "MulticlassMetric",
    "TopLabelMetric",
    "as_multiclass_metrics",
]

# The value of other outcomes, or other weights, of the same predictions; None stands for those of the table.
Measure: TypeAlias = Callable[[Ints | None, Weights | None], float]


class MulticlassMetric(ABC):
    """A metric of class probabilities; see `calibrant.metrics.Metric` for the properties that it declares."""

    kind: ClassVar[str] = "multiclass"
    needs_sums_only: ClassVar[bool] = False
    min_class_size: ClassVar[int] = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the metric in results."""

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """Unit of the value."""

    @property
    @abstractmethod
    def measures_gaps(self) -> bool:
        """Whether the value grows with gaps of either sign."""

    @abstractmethod
    def measure(self, table: ClassTable) -> Measure:
        """Return the function that measures other outcomes, or other weights, of the predictions of a table."""

    def value(self, table: ClassTable) -> float:
        """Return the value of a table."""
        return self.measure(table)(None, None)


class _ProperScore(MulticlassMetric):
    """A mean over rows of a loss of the predicted probabilities and the class that occurred."""

    direction: ClassVar[Direction] = "lower"
    interval_method: ClassVar[str] = "symmetric"
    has_null: ClassVar[bool] = True
    degree: ClassVar[float] = 1.0

    @property
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able."""
        return {"name": self.name, "kind": self.kind}

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return "1"

    @property
    def measures_gaps(self) -> bool:
        """Whether the value grows with gaps of either sign."""
        return False

    @abstractmethod
    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the loss of each row."""

    def measure(self, table: ClassTable) -> Measure:
        """Return the function that measures other outcomes, or other weights."""
        row_losses = self.row_losses(table)

        def value(code: Ints | None, weight: Weights | None) -> float:
            losses = row_losses(table.code if code is None else code)
            used = table.weight if weight is None else weight
            if used is None:
                return float(np.mean(losses))
            drawn = used > 0  # an infinite loss of a row that was not drawn counts as none
            return float(np.average(losses[drawn], weights=used[drawn]))

        return value


@dataclass(frozen=True)
class MulticlassBrier(_ProperScore):
    r"""Brier score of K classes: mean over rows of :math:`\sum_c (p_c - 1\{y = c\})^2`; lower is better.

    In [0, 2]: Brier's convention of 1950. For two classes it is twice the binary score.

    Examples
    --------
    >>> import numpy as np
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 1]))
    >>> round(MulticlassBrier().value(table), 3)
    0.1
    """

    range: ClassVar[tuple[float, float]] = (0.0, 2.0)

    @property
    def name(self) -> str:
        """Name of the metric in results."""
        return "Brier"

    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the squared distance of each row."""
        rows, squares = np.arange(len(table)), np.einsum("ij,ij->i", table.proba, table.proba, dtype=np.float64)
        return lambda code: np.asarray(squares - 2 * table.proba[rows, code] + 1)


@dataclass(frozen=True)
class MulticlassLogLoss(_ProperScore):
    """Log loss of K classes: mean of -ln of the probability of the class that occurred; lower is better.

    Infinite where a class of probability 0 occurs; nothing is clipped.

    Examples
    --------
    >>> import numpy as np
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 1]))
    >>> round(MulticlassLogLoss().value(table), 4)
    0.2899
    """

    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    @property
    def name(self) -> str:
        """Name of the metric in results."""
        return "log loss"

    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the log loss of each row."""
        rows = np.arange(len(table))

        def losses(code: Ints) -> Floats:
            with np.errstate(divide="ignore"):
                return np.asarray(-np.log(table.proba[rows, code].astype(np.float64)))

        return losses


@dataclass(frozen=True)
class _OfBinary(MulticlassMetric):
    """A metric of class probabilities made of a binary metric, whose properties it shares."""

    metric: Any

    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric) or getattr(self.metric, "kind", "binary") != "binary":
            raise InputError(f"metric must be a metric of probabilities of one event; got {self.metric!r}.")

    @property
    def name(self) -> str:
        """Name of the metric in results."""
        return f"{self.prefix} {self.metric.name}"

    @property
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able."""
        return {"name": self.name, "kind": self.kind, "metric": self.metric.spec}

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return str(self.metric.unit)

    @property
    def measures_gaps(self) -> bool:
        """Whether the value grows with gaps of either sign."""
        return bool(self.metric.measures_gaps)

    def __getattr__(self, name: str) -> Any:
        if name in ("direction", "range", "interval_method", "has_null", "degree"):
            return getattr(self.metric, name)
        raise AttributeError(name)


@dataclass(frozen=True)
class TopLabelMetric(_OfBinary):
    """A binary metric of the highest probability of each row and whether that class occurred (confidence calibration).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ECE
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]))
    >>> round(TopLabelMetric(ECE()).value(table), 3)
    0.55
    """

    prefix: ClassVar[str] = "top-label"

    def measure(self, table: ClassTable) -> Measure:
        """Return the function that measures other outcomes, or other weights."""
        tables = _Retabulated(table, table.confidence)

        def value(code: Ints | None, weight: Weights | None) -> float:
            event = (table.code if code is None else code) == table.best
            return float(self.metric.value(tables(event, weight)))

        return value


@dataclass(frozen=True)
class ClasswiseMetric(_OfBinary):
    """Mean over classes of a binary metric of each class against the rest.

    Remark 2 of Matsubara et al. (2023), and the normalisation by n C of Bella et al.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ECE
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]))
    >>> round(ClasswiseMetric(ECE()).value(table), 4)
    0.3667
    """

    prefix: ClassVar[str] = "class-wise"

    def measure(self, table: ClassTable) -> Measure:
        """Return the function that measures other outcomes, or other weights."""
        metric = self.metric
        if has_bins(metric) and getattr(metric.bins, "fixed", False) and declared(metric, "needs_sums_only"):
            return _CellSums(table, metric)
        classes = [_Retabulated(table, table.proba[:, c]) for c in range(table.n_classes)]

        def value(code: Ints | None, weight: Weights | None) -> float:
            own = table.code if code is None else code
            return float(np.mean([metric.value(one(own == c, weight)) for c, one in enumerate(classes)]))

        return value


def as_multiclass_metrics(metrics: Mapping[str, MetricLike] | Sequence[MetricLike]) -> dict[str, Metric]:
    """Return metric objects by name; a binary metric stands for its class-wise mean.

    >>> list(as_multiclass_metrics(["ece", MulticlassBrier()]))
    ['class-wise ECE', 'Brier']
    """
    found = as_metrics(metrics)
    objects: dict[str, Any] = {
        name: metric if declared(metric, "kind") == "multiclass" else ClasswiseMetric(metric)
        for name, metric in found.items()
    }
    return objects if isinstance(metrics, Mapping) else {metric.name: metric for metric in objects.values()}


class _Retabulated:
    """Tables of the same scores with other events or other weights."""

    def __init__(self, table: ClassTable, score: Floats) -> None:
        self.table = table
        self.score, self.place = np.unique(score, return_inverse=True)
        self.n = self._total(None, None)

    def _total(self, chosen: Any, weight: Weights | None) -> Weights:
        """Return sums of weights per score, of all rows or of the chosen ones."""
        values = self.table.weight if weight is None else weight
        place = self.place
        if chosen is not None:
            place, values = place[chosen], None if values is None else values[chosen]
        sums = np.bincount(place, weights=values, minlength=self.score.size)
        return sums if self.table.importance else np.rint(sums).astype(np.int64)

    def __call__(self, event: Any, weight: Weights | None) -> ScoreTable:
        n = self.n if weight is None else self._total(None, weight)
        k = self._total(event, weight)
        squares: tuple[Any, ...] = ()
        if self.table.importance:
            assert self.table.weight is not None
            # A replicate draws rows: the squares of their weights are drawn as often.
            w2 = self.table.weight * (self.table.weight if weight is None else weight)
            squares = tuple(self._total(chosen, w2) for chosen in (None, event))
        used = n > 0
        if used.all():
            return ScoreTable(self.score, n, k, *squares)
        return ScoreTable(self.score[used], n[used], k[used], *(column[used] for column in squares))


class _CellSums:
    """Class-wise metric from sums over cells (class, bin), for bins that depend on single scores alone.

    Most probabilities of many classes lie in one bin. Its sums are the total of the class less those of its other
    bins, so that a replicate adds up only the entries in other bins.
    """

    def __init__(self, table: ClassTable, metric: BinnedMetric) -> None:
        self.table, self.metric = table, metric
        self.first = table.class_table(0)
        limits = [metric.bins(table.class_table(c)).lower for c in range(table.n_classes)]
        self.inner = np.unique(np.concatenate(limits))[1:]
        self.side: Any = "right" if getattr(metric.bins, "closed", "left") == "left" else "left"
        self.n_bins = self.inner.size + 1
        self._index_entries()
        weight = np.ones(len(table)) if table.weight is None else table.weight.astype(np.float64)
        self.own = self._totals(weight)

    def _index_entries(self) -> None:
        """Store the entries outside the most frequent bin of each class: row, cell and probability."""
        table, found = self.table, []
        self.main = np.empty(table.n_classes, dtype=np.int64)
        for c in range(table.n_classes):
            label = np.searchsorted(self.inner, table.proba[:, c], side=self.side)
            self.main[c] = np.bincount(label, minlength=self.n_bins).argmax()
            rows = np.flatnonzero(label != self.main[c])
            found.append((rows, label[rows] + c * self.n_bins, table.proba[rows, c]))
        self.rows, self.cells, self.scores = (np.concatenate(column) for column in zip(*found, strict=True))

    def _totals(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return the weight and the weighted sum of probabilities of each cell."""
        shape = (self.table.n_classes, self.n_bins)
        w = weight[self.rows]
        n, sums = (
            np.bincount(self.cells, weights=each, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
            for each in (w, w * self.scores)
        )
        classes = np.arange(shape[0])
        n[classes, self.main] = weight.sum() - n.sum(axis=1)
        sums[classes, self.main] = weight @ self.table.proba - sums.sum(axis=1)
        return n, sums

    def __call__(self, code: Ints | None, weight: Weights | None) -> float:
        table = self.table
        own = table.code if code is None else code
        label = np.searchsorted(self.inner, table.proba[np.arange(len(table)), own], side=self.side)
        used = table.weight if weight is None else weight
        k = np.bincount(own * self.n_bins + label, weights=used, minlength=table.n_classes * self.n_bins)
        n, sums = self.own if weight is None else self._totals(weight.astype(np.float64))
        occupied = n.reshape(-1) > 0
        columns = (n.reshape(-1), k.astype(np.float64), sums.reshape(-1))
        cells = Partition.from_sums(self.first, *(column[occupied] for column in columns))
        losses = self.metric.loss(cells)
        bounds = np.concatenate([[0], np.cumsum(occupied.reshape(n.shape).sum(axis=1))]).tolist()
        return float(np.mean([self.metric.norm(losses[a:b], cells.n[a:b]) for a, b in pairwise(bounds)]))
