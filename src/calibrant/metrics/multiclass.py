"""Several classes: each against the rest, and the top label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.json_values import label, number
from calibrant._support.typing import Column, Floats, Ints
from calibrant.metrics.breakdown import Breakdown
from calibrant.metrics.metric import Metric, MetricValue
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.score_table import ScoreTable

__all__ = ["Classwise", "classwise", "top_label"]


@dataclass(frozen=True)
class Classwise:
    """A metric of every class against the rest; see `classwise`."""

    metric: str
    per_class: Mapping[Any, Breakdown | MetricValue]
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
    rows = _Rows.read(y_true, proba, labels, sample_weight, frequency)
    per_class = {}
    for column, name in enumerate(rows.labels):
        table = ScoreTable.from_arrays(
            rows.code == column, rows.proba[:, column], sample_weight=sample_weight, frequency=frequency
        )
        per_class[name] = _measure(measured, table.with_notes(rows.notes))
    results = list(per_class.values())
    shared = tuple(note for note in results[0].notes if all(note in result.notes for result in results))
    return Classwise(results[0].metric, MappingProxyType(per_class), shared)


def _measure(metric: Metric, table: ScoreTable) -> Breakdown | MetricValue:
    result = metric(table) if callable(metric) else None
    if isinstance(result, (Breakdown, MetricValue)):
        return result
    raise InputError(
        f"metric must return a Breakdown or a MetricValue when it is called; got {metric!r}.",
        hint="Use a GCE, or a metric of cb.METRICS.",
        argument="metric",
        value=metric,
    )


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
    rows = _Rows.read(y_true, proba, labels, sample_weight, frequency)
    best = np.argmax(rows.proba, axis=1)
    confidence = rows.proba[np.arange(best.size), best]
    table = ScoreTable.from_arrays(rows.code == best, confidence, sample_weight=sample_weight, frequency=frequency)
    return table.with_notes(rows.notes)


@dataclass(frozen=True)
class _Rows:
    """Checked rows: the column of each row's class, and probabilities that lie in [0, 1] and sum to 1."""

    labels: list[Any]
    code: Ints
    proba: Floats
    notes: tuple[Note, ...]

    @classmethod
    def read(
        cls,
        y_true: Column,
        proba: Any,
        labels: Sequence[Any] | None,
        sample_weight: Column | None,
        frequency: Column | None,
    ) -> "_Rows":
        y = _columns.read(y_true, "y_true")
        columns, names = probability_columns(proba)
        _columns.check_lengths([y, *columns])
        weights = {"sample_weight": sample_weight, "frequency": frequency}
        _columns.check_alignment({"y_true": y_true, "proba": proba, **weights})
        if not len(y):
            raise InputError("y_true and proba hold no rows; at least one is needed.", argument="y_true")
        _columns.refuse_missing([y, *columns])
        classes = _classes(y, names, labels)
        if len(classes) != len(columns):
            given = "labels names" if labels is not None else "y_true has"
            raise InputError(
                f"proba has {len(columns)} columns, {given} {len(classes)} classes; they must be as many.",
                hint="Pass labels=, the class of every column in order.",
                argument="labels",
            )
        matrix = np.column_stack([column.values for column in columns])
        notes = join_notes(y.notes, *(column.notes for column in columns))
        coarse = any(note.code == "float16" for note in notes)
        return cls(classes, class_labels.codes(y, classes), matrix, notes + check_sums(matrix, coarse))


def probability_columns(proba: Any) -> tuple[list[_columns.ColumnData], list[Any] | None]:
    """The columns, checked, and their names where they are those of a frame."""
    names = list(proba.columns) if hasattr(proba, "columns") else None
    if names is not None:
        outside = [proba[name] for name in names]
    else:
        matrix = proba if isinstance(proba, np.ma.MaskedArray) else _columns.as_array(proba, "proba")
        if matrix.ndim != 2:
            raise InputError(
                f"proba must have a row for every example and a column for every class; its shape is {matrix.shape}.",
                argument="proba",
            )
        outside = list(matrix.T)
    if len(outside) < 2:
        raise InputError(f"proba must have a column for every class; it has {len(outside)}.", argument="proba")
    read = [_columns.read(column, "proba") for column in outside]
    return [_columns.scores(column, squash="a softmax") for column in read], names


def _classes(y: _columns.ColumnData, names: list[Any] | None, labels: Sequence[Any] | None) -> list[Any]:
    """The class of every column: `labels`, else the frame's own names, else the sorted labels."""
    found = class_labels.classes(y)
    unnamed = names is None or names == list(range(len(names)))
    if labels is not None:
        chosen = class_labels.check_classes(labels)
        if not unnamed and names != chosen and set(names or ()) == set(chosen):
            raise InputError(
                f"labels says that the columns are {chosen}, but the frame names them {names}.", argument="labels"
            )
        return chosen
    if unnamed:
        return found
    if not set(found) <= set(names or ()):
        raise InputError(
            f"The columns of proba are named {names}, the classes of y_true are {found}.",
            hint="Pass labels=, the class of every column in order.",
            argument="labels",
        )
    return list(names or ())


def check_sums(matrix: Floats, coarse: bool) -> tuple[Note, ...]:
    off = np.abs(matrix.sum(axis=1) - 1)
    limit = (2.0**-10 if coarse else 1e-6) * matrix.shape[1]
    if (off > limit).any():
        row = int(np.argmax(off > limit))
        raise InputError(
            f"Every row of proba must sum to 1; {(off > limit).sum():,} of {len(matrix):,} do not, "
            f"the first is row {row}, with {matrix[row].sum():.6g}.",
            hint="Logits? Apply a softmax first.",
            argument="proba",
            row=row,
            value=float(matrix[row].sum()),
        )
    inexact = int((off > 1e-12).sum())
    if not inexact:
        return ()
    return (Note("row_sums", inexact, f"Rows of proba that sum to 1 only within {off.max():.1g}: {{count}}."),)
