"""Class-wise metrics: a binary metric of each class against the rest, and its mean over classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.json_values import label, number
from calibrant._support.option_checks import known_keywords
from calibrant._support.typing import Column, Floats, Ints, Weights
from calibrant.metrics.metric import BinnedMetric, Metric, MetricValue, declared, has_bins
from calibrant.metrics.multiclass import FromBinaryMetric, Measure, ScoreCounter, read_class_table
from calibrant.metrics.registry import MetricLike, as_metric, as_metrics
from calibrant.tables.class_table import ClassTable
from calibrant.tables.partition import Partition
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

__all__ = ["Classwise", "ClasswiseMetric", "as_multiclass_metrics", "classwise"]


@dataclass(frozen=True)
class Classwise:
    """A metric of every class against the rest; see `classwise`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    per_class : mapping of label to MetricValue
        The result of each class.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    classwise, ClasswiseMetric

    Examples
    --------
    >>> import calibrant as cb
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
    >>> result = cb.classwise("brier", ["a", "b", "c"], proba)
    >>> {label: round(each.value, 3) for label, each in result.per_class.items()}
    {'a': 0.047, 'b': 0.057, 'c': 0.09}
    """

    metric: str
    per_class: Mapping[Any, MetricValue]
    notes: tuple[Note, ...] = ()

    @property
    def value(self) -> float:
        """Mean over classes: Remark 2 of the TCE paper, and the normalisation by n C of Bella et al."""
        return self.total / len(self.per_class)

    @property
    def total(self) -> float:
        """Sum over classes: the normalisation by n alone, as in Brier's score of 1950."""
        return float(sum(result.value for result in self.per_class.values()))

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            "metric": self.metric,
            **number("value", self.value),
            **number("total", self.total),
            "per_class": [{"label": label(name), **result.to_dict()} for name, result in self.per_class.items()],
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        percent = next(iter(self.per_class.values())).unit == "%"

        def shown(value: float) -> str:
            return f"{value:.2f} %" if percent else f"{value:.5f}"

        width = max(len(str(name)) for name in self.per_class)
        lines = [f"class-wise {self.metric} = {shown(self.value)}   (mean over {len(self.per_class)} classes)"]
        for name, result in self.per_class.items():
            bias = getattr(result, "signed_bias", None)
            remark = "" if bias is None else f"   signed bias {bias:+.5f}"
            lines.append(f"  {name!s:>{width}}  {shown(result.value)}{remark}")
        return "\n".join([*lines, *(f"  note: {note.text}" for note in self.notes)])


@known_keywords
def classwise(
    metric: MetricLike,
    y_true: Column,
    proba: Any,
    *,
    labels: Sequence[Any] | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> Classwise:
    """A binary metric of every class against the rest.

    Parameters
    ----------
    metric : metric object, its function or class, or a name in `METRICS`
        ``ECE(n_bins=15)``, ``brier``, ``"brier"``.
    y_true : column of n labels
    proba : array of shape (n, classes)
        Predicted probabilities; rows must sum to 1 (within 1e-6 a class; what is within but not exact is noted).
    labels : sequence, optional
        The class of every column. By default the names of a frame's columns, if these are the classes; else the sorted
        labels of `y_true` (the order of scikit-learn's ``classes_``), which must then be as many as columns.
    sample_weight, frequency, missing
        See `ScoreTable.from_arrays`.

    Returns
    -------
    Classwise
        ``value`` is the mean over classes, ``total`` their sum, ``per_class`` a result for each.

    See Also
    --------
    Classwise, ClasswiseMetric, top_label

    Examples
    --------
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
    >>> result = classwise("brier", ["a", "b", "c"], proba)
    >>> round(result.value, 4), round(result.total, 4)
    (0.0644, 0.1933)
    """
    measured = as_metric(metric)
    rows = read_class_table(y_true, proba, labels, sample_weight=sample_weight, frequency=frequency, missing=missing)
    per_class = {
        name: _measure(measured, rows.class_table(column).with_notes(rows.notes))
        for column, name in enumerate(rows.labels)
    }
    results = list(per_class.values())
    shared = tuple(note for note in results[0].notes if all(note in result.notes for result in results))
    return Classwise(results[0].metric, MappingProxyType(per_class), shared)


def _measure(metric: Metric, table: ScoreTable) -> MetricValue:
    result = metric(table) if callable(metric) and declared(metric, "kind") == "binary" else None
    if isinstance(result, MetricValue):
        return result
    raise InputError(
        Argument("metric")
        + f" must measure binary scores and return a Breakdown or a MetricValue when it is called; got {metric!r}.",
        hint="Use a GCE, or a metric of cb.METRICS.",
        value=metric,
    )


@dataclass(frozen=True)
class ClasswiseMetric(FromBinaryMetric):
    """Mean over classes of a binary metric of each class against the rest.

    Remark 2 of Matsubara et al. (2023), and the normalisation by n C of Bella et al.

    Parameters
    ----------
    metric : Metric
        A binary metric.

    See Also
    --------
    classwise, TopLabelMetric

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
        """Return the function that measures other outcomes, or other weights.

        Parameters
        ----------
        table : ClassTable
            Class probabilities and the classes that occurred.

        Returns
        -------
        callable
            Function of the codes of the classes and of the weights; None stands for those of the table.
        """
        metric = self.metric
        if has_bins(metric) and getattr(metric.bins, "fixed", False) and declared(metric, "needs_sums_only"):
            return _CellSums(table, metric)
        classes = [ScoreCounter(table, table.proba[:, c]) for c in range(table.n_classes)]

        def value(code: Ints | None, weight: Weights | None) -> float:
            own = table.code if code is None else code
            return float(np.mean([metric.value(one(own == c, weight)) for c, one in enumerate(classes)]))

        return value


def as_multiclass_metrics(metrics: Mapping[str, MetricLike] | Sequence[MetricLike]) -> dict[str, Metric]:
    """Return metric objects by name; a binary metric stands for its class-wise mean.

    >>> from calibrant.metrics import MulticlassBrier
    >>> list(as_multiclass_metrics(["ece", MulticlassBrier()]))
    ['class-wise ECE', 'Brier']
    """
    found = as_metrics(metrics)
    objects: dict[str, Any] = {
        name: metric if declared(metric, "kind") == "multiclass" else ClasswiseMetric(metric)
        for name, metric in found.items()
    }
    return objects if isinstance(metrics, Mapping) else {metric.name: metric for metric in objects.values()}


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
