"""Metrics of class probabilities: Brier score, log loss, and the base of class-wise and top-label metrics."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from calibrant._kernels.tensors import are_on_device
from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Floats, Ints, Weights
from calibrant._support.errors import Argument, InputError, Note, renamed_options, wrong_value
from calibrant._support.plain_data import label, number
from calibrant.metrics.metric import BinnedMetric, Direction, Metric, MetricValue, declared, has_bins
from calibrant.metrics.registry import MetricLike, as_metric, as_metrics
from calibrant.tables.class_table import ClassProbabilities, ClassTable, count_top_label
from calibrant.tables.rows import Missing, Rows
from calibrant.tables.score_table import Partition, ScoreTable

# The value of other outcomes, or other weights, of the same predictions; None stands for those of the table.
Measure: TypeAlias = Callable[[Ints | None, Weights | None], float]


class ClassEvent(NamedTuple):
    """An event of each row, given the class that occurred, and its predicted probability."""

    occurs: Callable[[Any], Bools]
    score: Floats


# The events of a table whose metrics make up a metric of class probabilities.
Events: TypeAlias = Callable[[ClassTable], list[ClassEvent]]


def each_class(table: ClassTable) -> list[ClassEvent]:
    """Return for each class the event that it occurs.

    Parameters
    ----------
    table : ClassTable
        Class probabilities and the classes that occurred.

    Returns
    -------
    list of ClassEvent
    """

    def occurs(c: int) -> Callable[[Any], Bools]:
        return lambda codes: codes == c

    return [ClassEvent(occurs(c), table.proba[:, c]) for c in range(table.n_classes)]


def _top_label_event(table: ClassTable) -> list[ClassEvent]:
    """Return the event that the most probable class of a row occurs.

    Parameters
    ----------
    table : ClassTable
        Class probabilities and the classes that occurred.

    Returns
    -------
    list of ClassEvent
    """
    best = table.best.astype(np.int32)
    return [ClassEvent(lambda codes: codes == best, table.confidence)]


class MulticlassMetric(ABC):
    """A metric of class probabilities; see `calibrant.metrics.Metric` for the properties that it declares."""

    kind: ClassVar[str] = "multiclass"
    needs_sums_only: ClassVar[bool] = False
    min_class_size: ClassVar[int] = 0

    @abstractmethod
    def measure(self, table: ClassTable) -> Measure:
        """Return a function of outcomes and weights: the value of the metric for the predictions of a table."""

    def value(self, table: ClassTable) -> float:
        """Return the value of a table.

        Parameters
        ----------
        table : ClassTable
            Class probabilities and the classes that occurred.

        Returns
        -------
        float
        """
        return self.measure(table)(None, None)


class ProperScore(MulticlassMetric):
    """A mean over rows of a loss of the predicted probabilities and the class that occurred."""

    name: ClassVar[str]
    unit: ClassVar[str] = "1"
    measures_gaps: ClassVar[bool] = False
    direction: ClassVar[Direction] = "lower"
    interval_method: ClassVar[str] = "symmetric"
    has_null: ClassVar[bool] = True
    degree: ClassVar[float] = 1.0
    events: ClassVar[Events] = staticmethod(each_class)
    is_sum_of_events: ClassVar[bool] = True

    @property
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able."""
        return {"name": self.name, "kind": self.kind}

    @abstractmethod
    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the loss of each row."""

    def measure(self, table: ClassTable) -> Measure:
        """Return a function of outcomes and weights: the value of the metric for the predictions of a table.

        Parameters
        ----------
        table : ClassTable
            Class probabilities and the classes that occurred.

        Returns
        -------
        callable
            Function of the codes of the classes and of the weights; None stands for those of the table.
        """
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
class MulticlassBrier(ProperScore):
    r"""Brier score of K classes: mean over rows of :math:`\sum_c (p_c - 1\{y = c\})^2`; lower is better.

    In [0, 2]: Brier's convention of 1950. For two classes it is twice the binary score.

    See Also
    --------
    MulticlassLogLoss, Brier

    Examples
    --------
    >>> import numpy as np
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 1]))
    >>> round(MulticlassBrier().value(table), 3)
    0.1
    """

    name: ClassVar[str] = "Brier"
    range: ClassVar[tuple[float, float]] = (0.0, 2.0)

    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the squared distance of each row.

        Parameters
        ----------
        table : ClassTable
            Class probabilities and the classes that occurred.

        Returns
        -------
        callable
            Function from an array of codes of classes to an array of losses.
        """
        rows, squares = np.arange(len(table)), np.einsum("ij,ij->i", table.proba, table.proba, dtype=np.float64)
        return lambda code: np.asarray(squares - 2 * table.proba[rows, code] + 1)

    def class_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return (a, b) for probabilities of one class: the score is the sum over classes of mean a, plus b of events.

        Parameters
        ----------
        score : array
            Probabilities of one class.

        Returns
        -------
        pair of arrays
            p^2 and 1 - 2 p.
        """
        return score**2, 1 - 2 * score


@dataclass(frozen=True)
class MulticlassLogLoss(ProperScore):
    """Log loss of K classes: mean of -ln of the probability of the class that occurred; lower is better.

    Infinite where a class of probability 0 occurs; nothing is clipped.

    See Also
    --------
    MulticlassBrier, LogLoss

    Examples
    --------
    >>> import numpy as np
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 1]))
    >>> round(MulticlassLogLoss().value(table), 4)
    0.2899
    """

    name: ClassVar[str] = "log loss"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the log loss of each row.

        Parameters
        ----------
        table : ClassTable
            Class probabilities and the classes that occurred.

        Returns
        -------
        callable
            Function from an array of codes of classes to an array of losses.
        """
        rows = np.arange(len(table))

        def losses(code: Ints) -> Floats:
            with np.errstate(divide="ignore"):
                return np.asarray(-np.log(table.proba[rows, code].astype(np.float64)))

        return losses

    def class_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return (a, b) for probabilities of one class: the loss is the sum over classes of mean a, plus b of events.

        Parameters
        ----------
        score : array
            Probabilities of one class.

        Returns
        -------
        pair of arrays
            0 and -ln p.
        """
        with np.errstate(divide="ignore"):
            return np.zeros(score.size), np.asarray(-np.log(score))


@dataclass(frozen=True)
class FromBinaryMetric(MulticlassMetric):
    """A metric of class probabilities made of a binary metric, whose properties it shares."""

    metric: Any

    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric) or declared(self.metric, "kind") != ScoreTable.kind:
            raise wrong_value("metric", "must be a metric of probabilities of one event", self.metric)

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

    @property
    def interval_method(self) -> str:
        """That of the metric; by replicates where that of scores needs none, as means over classes do."""
        method = str(getattr(self.metric, "interval_method", "symmetric"))
        return "symmetric" if method in ("bias", "ratio", "influence") else method

    def __getattr__(self, name: str) -> Any:
        if name in ("direction", "range", "has_null", "degree"):
            return getattr(self.metric, name)
        raise AttributeError(name)


class ScoreCounter:
    """Counts rows by score, for other events or other weights of the same predictions."""

    def __init__(self, table: ClassTable, score: Floats) -> None:
        self.table = table
        self.score, self.place = np.unique(score, return_inverse=True)
        self.n: Weights = self._total(None, None)

    def _total(self, chosen: Any, weight: Weights | None) -> Weights:
        """Return sums of weights per score, of all rows or of the chosen ones."""
        values = self.table.weight if weight is None else weight
        place = self.place
        if chosen is not None:
            place, values = place[chosen], None if values is None else values[chosen]
        sums = np.bincount(place, weights=values, minlength=self.score.size)
        return sums if self.table.importance else np.rint(sums).astype(np.int64)

    def __call__(self, event: Any, weight: Weights | None) -> ScoreTable:
        """Return the table of these events, with the weights of the rows or with others."""
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


def read_class_table(y_true: Column, proba: Any, classes: Sequence[Any] | None, **options: Any) -> ClassTable:
    """Read rows, with the options of `Rows.read`.

    Without `classes` they are the names of a frame's columns, or the sorted labels.
    """
    read = ClassProbabilities.read(proba, "proba")
    rows = Rows.read(y_true, {"proba": read}, **options)
    if classes is not None:
        return ClassTable.from_rows(rows, tuple(read.class_names(classes)))
    rows.complete()
    found = _columns.classes(rows.y)
    columns = read.class_names(None)
    if columns == list(range(len(columns))):
        columns = found
    hint = "Pass " + Argument("classes") + ", the class of each column in order."
    if len(rows) and len(columns) != read.matrix.shape[1]:
        raise InputError(
            Argument("proba") + f" must have one column per class of y_true; got {read.matrix.shape[1]} columns and "
            f"{len(columns)} classes.",
            hint=hint,
        )
    if not set(found) <= set(columns):
        raise wrong_value("y_true", f"must hold the names of the columns of proba, {columns}", found, hint=hint)
    return ClassTable.from_rows(rows, tuple(columns))


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
    >>> result = cb.metrics.classwise("brier", ["a", "b", "c"], proba)
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


@renamed_options(labels="classes")
def classwise(
    metric: MetricLike,
    y_true: Column,
    proba: Any,
    *,
    classes: Sequence[Any] | None = None,
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
    classes : sequence, optional
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
    rows = read_class_table(y_true, proba, classes, sample_weight=sample_weight, frequency=frequency, missing=missing)
    per_class = {
        name: _measure(measured, rows.class_table(column).with_notes(rows.notes))
        for column, name in enumerate(rows.labels)
    }
    results = list(per_class.values())
    shared = tuple(note for note in results[0].notes if all(note in result.notes for result in results))
    return Classwise(results[0].metric, MappingProxyType(per_class), shared)


def _measure(metric: Metric, table: ScoreTable) -> MetricValue:
    result = metric(table) if callable(metric) and declared(metric, "kind") == ScoreTable.kind else None
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
    events: ClassVar[Events] = staticmethod(each_class)

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


def as_multiclass_metrics(
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike], of_binary: "type[FromBinaryMetric] | None" = None
) -> dict[str, Metric]:
    """Return metric objects by name; a binary metric stands for its class-wise mean, or what `of_binary` makes of it.

    >>> from calibrant.metrics import MulticlassBrier
    >>> list(as_multiclass_metrics(["ece", MulticlassBrier()]))
    ['class-wise ECE', 'Brier']
    """
    wrap = of_binary or ClasswiseMetric
    objects: dict[str, Any] = {
        name: metric if declared(metric, "kind") in (ClassTable.kind, wrap.kind) else wrap(metric)
        for name, metric in as_metrics(metrics).items()
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


@renamed_options(labels="classes")
def top_label(
    y_true: Column,
    proba: Any,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> ScoreTable:
    """The table of each row's highest probability and whether that class was right ("confidence calibration").

    Of equal probabilities the first column counts. Arguments as for `classwise`. CUDA tensors are
    counted on their device.

    Parameters
    ----------
    y_true : column
        Labels.
    proba : array or frame of shape (n, K)
        Class probabilities.
    classes : list, optional
        The class of each column.
    sample_weight, frequency, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    ScoreTable
        Highest probabilities, and whether that class occurred.

    See Also
    --------
    TopLabelMetric, classwise

    Examples
    --------
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
    >>> table = top_label(["a", "b", "c"], proba)
    >>> table.score, table.k
    (array([0.5, 0.7, 0.8]), array([0, 1, 1]))
    """
    plain = sample_weight is None and frequency is None and missing in ("raise", "drop")
    if plain and are_on_device(y_true, proba):
        counted = count_top_label(y_true, proba, classes)
        if counted is not None:
            return counted
    return read_class_table(
        y_true, proba, classes, sample_weight=sample_weight, frequency=frequency, missing=missing
    ).top_label()


@dataclass(frozen=True)
class TopLabelMetric(FromBinaryMetric):
    """A binary metric of the highest probability of each row and whether that class occurred (confidence calibration).

    Parameters
    ----------
    metric : Metric
        A binary metric.

    See Also
    --------
    top_label, ClasswiseMetric

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ECE
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]))
    >>> round(TopLabelMetric(ECE()).value(table), 3)
    0.55
    """

    prefix: ClassVar[str] = "top-label"
    events: ClassVar[Events] = staticmethod(_top_label_event)

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
        tables = ScoreCounter(table, table.confidence)

        def value(code: Ints | None, weight: Weights | None) -> float:
            event = (table.code if code is None else code) == table.best
            return float(self.metric.value(tables(event, weight)))

        return value
