"""Several classes: each against the rest, and the top label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from calibrant import _columns
from calibrant._typing import Column, Floats, Ints
from calibrant.errors import InputError, Note, join_notes
from calibrant.gce import Breakdown
from calibrant.scores import Reading
from calibrant.table import ScoreTable

__all__ = ["Classwise", "classwise", "top_label"]

Measure: TypeAlias = Callable[[ScoreTable], Breakdown | Reading]


@dataclass(frozen=True)
class Classwise:
    """A metric of every class against the rest; see `classwise`."""

    metric: str
    per_class: Mapping[Any, Breakdown | Reading]
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
        per_class = [{"label": str(label), **result.to_dict()} for label, result in self.per_class.items()]
        notes = [note.to_dict() for note in self.notes]
        return {"schema_version": 1, "metric": self.metric, "value": self.value, "total": self.total,
                "per_class": per_class, "notes": notes}  # fmt: skip

    def __repr__(self) -> str:
        width = max(len(str(label)) for label in self.per_class)
        rows = [f"  {label!s:>{width}}  {result.value:.5f}" for label, result in self.per_class.items()]
        title = f"class-wise {self.metric} = {self.value:.5f}   (mean over {len(self.per_class)} classes)"
        return "\n".join([title, *rows, *(f"  note: {note.text}" for note in self.notes)])


def classwise(
    metric: Measure,
    y_true: Column,
    proba: Any,
    *,
    labels: Sequence[Any] | None = None,
    sample_weight: Column | None = None,
    importance: bool = False,
) -> Classwise:
    """A binary metric of every class against the rest.

    Parameters
    ----------
    metric : callable
        A metric of a `ScoreTable`: ``TCE()``, ``ECE(n_bins=15)``, ``METRICS["brier"]()``.
    y_true : column of n labels
    proba : array of shape (n, classes)
        Predicted probabilities; rows must sum to 1 (within 1e-6 a class; what is within but not exact is noted).
    labels : sequence, optional
        The class of every column; by default the sorted labels of `y_true`, which must then be as many.
    sample_weight, importance
        See `ScoreTable.from_arrays`.

    Returns
    -------
    Classwise
        ``value`` is the mean over classes, ``total`` their sum, ``per_class`` a result for each.

    Examples
    --------
    >>> from calibrant import METRICS
    >>> proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
    >>> result = classwise(METRICS["brier"](), ["a", "b", "c"], proba)
    >>> round(result.value, 4), round(result.total, 4)
    (0.0644, 0.1933)
    """
    rows = _Rows.read(y_true, proba, labels)
    per_class = {}
    for column, label in enumerate(rows.labels):
        table = ScoreTable.from_arrays(
            rows.code == column, rows.proba[:, column], sample_weight=sample_weight, importance=importance
        )
        per_class[label] = metric(table)
    name = next(iter(per_class.values())).metric
    return Classwise(name, per_class, join_notes(rows.notes))


def top_label(
    y_true: Column,
    proba: Any,
    *,
    labels: Sequence[Any] | None = None,
    sample_weight: Column | None = None,
    importance: bool = False,
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
    rows = _Rows.read(y_true, proba, labels)
    best = np.argmax(rows.proba, axis=1)
    confidence = rows.proba[np.arange(best.size), best]
    table = ScoreTable.from_arrays(rows.code == best, confidence, sample_weight=sample_weight, importance=importance)
    return table.with_notes(rows.notes)


@dataclass(frozen=True)
class _Rows:
    """Checked rows: the column of each row's class, and probabilities that lie in [0, 1] and sum to 1."""

    labels: list[Any]
    code: Ints
    proba: Floats
    notes: tuple[Note, ...]

    @classmethod
    def read(cls, y_true: Column, proba: Any, labels: Sequence[Any] | None) -> "_Rows":
        matrix, notes = _probabilities(proba)
        y = _columns.read(y_true, "y_true")
        _columns.check_lengths([y, _columns.Column("proba", matrix)])
        if not len(y):
            raise InputError("y_true and proba hold no rows; at least one is needed.", argument="y_true")
        _columns.refuse_missing([y])
        names = _columns.classes(y) if labels is None else list(labels)
        if len(names) != matrix.shape[1] or len(set(names)) != len(names):
            given = "labels names" if labels is not None else "y_true has"
            raise InputError(
                f"proba has {matrix.shape[1]} columns, {given} {len(set(names))} classes; they must be as many.",
                hint="Pass labels=, the class of every column in order.",
                argument="labels",
            )
        return cls(names, _columns.codes(y, names), matrix, y.notes + notes)


def _probabilities(proba: Any) -> tuple[Floats, tuple[Note, ...]]:
    matrix = np.asarray(proba)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"proba must be an array of numbers with a row for every example and a column for every class; "
            f"its shape is {matrix.shape} and its type {matrix.dtype}.",
            argument="proba",
        )
    checked = _columns.scores(_columns.read(matrix.reshape(-1), "proba"))
    if checked.missing is not None:
        row = int(np.argmax(checked.missing)) // matrix.shape[1]
        raise InputError(f"proba has missing values (first at row {row}).", argument="proba", row=row)
    values = checked.values.reshape(matrix.shape)
    off = np.abs(values.sum(axis=1) - 1)
    limit = 1e-6 * matrix.shape[1]
    if (off > limit).any():
        row = int(np.argmax(off > limit))
        raise InputError(
            f"Every row of proba must sum to 1; {(off > limit).sum():,} of {len(matrix):,} do not, "
            f"the first is row {row}, with {values[row].sum():.6g}.",
            hint="Logits? Apply a softmax first.",
            argument="proba",
            row=row,
            value=float(values[row].sum()),
        )
    notes = checked.notes
    inexact = int((off > 1e-12).sum())
    if inexact:
        text = f"Rows of proba that sum to 1 only within {off.max():.1g}: {{count}}."
        notes += (Note("row_sums", inexact, text),)
    return values, notes
