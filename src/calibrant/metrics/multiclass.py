"""Several classes: each against the rest, and the top label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from calibrant._support import class_labels
from calibrant._support.errors import InputError, Note
from calibrant._support.json_values import label, number
from calibrant._support.option_checks import known_keywords
from calibrant._support.typing import Column
from calibrant.metrics.metric import Metric, MetricValue
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.class_probabilities import ClassProbabilities
from calibrant.tables.class_table import ClassTable
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable

__all__ = ["Classwise", "classwise", "top_label"]


@dataclass(frozen=True)
class Classwise:
    """A metric of every class against the rest; see `classwise`."""

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
        """Everything as plain data for JSON."""
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
    sample_weight, frequency
        See `ScoreTable.from_arrays`.

    Returns
    -------
    Classwise
        ``value`` is the mean over classes, ``total`` their sum, ``per_class`` a result for each.

    Examples
    --------
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
    >>> result = classwise("brier", ["a", "b", "c"], proba)
    >>> round(result.value, 4), round(result.total, 4)
    (0.0644, 0.1933)
    """
    measured = as_metric(metric)
    rows = _read(y_true, proba, labels, sample_weight, frequency)
    per_class = {
        name: _measure(measured, rows.class_table(column).with_notes(rows.notes))
        for column, name in enumerate(rows.labels)
    }
    results = list(per_class.values())
    shared = tuple(note for note in results[0].notes if all(note in result.notes for result in results))
    return Classwise(results[0].metric, MappingProxyType(per_class), shared)


def _measure(metric: Metric, table: ScoreTable) -> MetricValue:
    result = metric(table) if callable(metric) else None
    if isinstance(result, MetricValue):
        return result
    raise InputError(
        f"metric must return a Breakdown or a MetricValue when it is called; got {metric!r}.",
        hint="Use a GCE, or a metric of cb.METRICS.",
        argument="metric",
        value=metric,
    )


@known_keywords
def top_label(
    y_true: Column,
    proba: Any,
    *,
    labels: Sequence[Any] | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
) -> ScoreTable:
    """The table of each row's highest probability and whether that class was right ("confidence calibration").

    Of equal probabilities the first column counts. Arguments as for `classwise`.

    Examples
    --------
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.5, 0.3]]
    >>> table = top_label(["a", "b", "c"], proba)
    >>> table.score, table.k
    (array([0.5, 0.7, 0.8]), array([0, 1, 1]))
    """
    return _read(y_true, proba, labels, sample_weight, frequency).top_label()


def _read(
    y_true: Column,
    proba: Any,
    labels: Sequence[Any] | None,
    sample_weight: Column | None,
    frequency: Column | None,
) -> ClassTable:
    """Read rows; without `labels` the classes are the names of a frame's columns, or the sorted labels."""
    read = ClassProbabilities.read(proba, "proba")
    rows = Rows.read(y_true, {"proba": read}, sample_weight=sample_weight, frequency=frequency)
    if labels is not None:
        return ClassTable.from_rows(rows, tuple(read.class_names(labels, "labels")), "labels")
    rows.complete()
    found = class_labels.classes(rows.y)
    columns = read.class_names(None)
    if columns == list(range(len(columns))):
        columns = found
    if len(rows) and len(columns) != read.matrix.shape[1]:
        raise InputError(
            f"proba has {read.matrix.shape[1]} columns, y_true has {len(columns)} classes; they must be as many.",
            hint="Pass labels=, the class of each column in order.",
            argument="labels",
        )
    if not set(found) <= set(columns):
        raise InputError(
            f"The columns of proba are named {columns}, the classes of y_true are {found}.",
            hint="Pass labels=, the class of each column in order.",
            argument="labels",
        )
    return ClassTable.from_rows(rows, tuple(columns), "labels")
