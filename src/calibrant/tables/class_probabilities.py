"""`ClassProbabilities`: a matrix of predicted class probabilities, read and validated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.columns import CLIP_TOLERANCE, ColumnData
from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.typing import Bools, Floats

__all__ = ["ClassProbabilities"]

EXACT_SUM = 1e-12  # difference of a sum from 1 that needs no note
_FLOAT16_TOLERANCE = 2.0**-10


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Rows of class probabilities.

    Attributes
    ----------
    matrix : ndarray of shape (n, K)
        Probabilities in [0, 1], whose rows sum to 1; NaN in rows with a missing value.
    marks : ColumnData
        One cell per row: whether a value of the row is missing, and notes about the reading.
    names : list or None
        Names of the columns of a frame.
    """

    matrix: Floats
    marks: ColumnData
    names: list[Any] | None = None
    index: Any = None

    @classmethod
    def read(cls, proba: Any, name: str = "forecast") -> "ClassProbabilities":
        """Read an array, a list of rows or a frame with a column per class."""
        names = list(proba.columns) if hasattr(type(proba), "columns") else None
        matrix, missing = _numbers(proba, name, names)
        rows_missing = None if missing is None else np.asarray(missing.any(axis=1))
        notes = list[Note]()
        half = matrix.dtype.itemsize == 2
        if half:
            notes.append(Note("float16", 1, f"{name} is float16, which has 11 bits: many scores tie."))
        matrix = matrix.astype(np.float64, copy=False)
        matrix, clipped = _clip(matrix, name, rows_missing)
        notes += clipped + _check_sums(matrix, name, rows_missing, _FLOAT16_TOLERANCE if half else CLIP_TOLERANCE)
        marks = ColumnData(name, np.zeros(len(matrix)), rows_missing, tuple(notes))
        index = getattr(proba, "index", None)
        return cls(matrix, marks, names, index if hasattr(index, "equals") else None)

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def name(self) -> str:
        """Name in error messages."""
        return self.marks.name

    @property
    def columns(self) -> tuple[ColumnData, ...]:
        """The column in which missing rows are marked."""
        return (self.marks,)

    def part(self, rows: Any) -> "ClassProbabilities":
        """Return some of the rows: a mask, or their positions."""
        return replace(self, matrix=self.matrix[rows], marks=self.marks.part(rows), index=None)

    def class_names(self, classes: Sequence[Any] | None, argument: str = "classes") -> list[Any]:
        """Return the class of each column: as given, else the names of a frame, else 0 to K - 1."""
        count = self.matrix.shape[1]
        names = None if self.names is None or self.names == list(range(count)) else self.names
        if classes is None:
            return list(range(count)) if names is None else names
        chosen = class_labels.check_classes(classes, argument)
        if len(chosen) != count:
            raise InputError(
                Argument(argument) + f" must name one class per column of {self.name}; got {len(chosen)} classes and "
                f"{count} columns.",
            )
        if names is not None and names != chosen and set(names) == set(chosen):
            raise InputError(
                Argument(argument) + f" must be in the order of the columns; got {chosen}, the frame has {names}."
            )
        return chosen


def _numbers(proba: Any, name: str, names: list[Any] | None) -> tuple[Any, Bools | None]:
    """Return a matrix of numbers, and where values are missing."""
    missing = None
    if names is not None:
        columns = [_columns.numbers(_columns.read(proba[each], name)) for each in names]
        matrix = np.column_stack([column.values for column in columns]) if columns else np.empty((len(proba), 0))
        if any(column.missing is not None for column in columns):
            missing = np.column_stack([column.mask for column in columns])
    else:
        masked = np.ma.getmaskarray(proba) if isinstance(proba, np.ma.MaskedArray) else None
        if hasattr(proba, "detach"):
            proba = _columns.tensor_array(proba)
        matrix = _columns.as_array(proba, name)
        if matrix.ndim != 2:
            raise InputError(
                f"{name} must have one row per outcome and one column per class; got the shape {matrix.shape}.",
                argument=name,
            )
        if matrix.dtype.kind not in "biuf":
            flat = _columns.numbers(_columns.read(matrix.reshape(-1), name))
            matrix, missing = flat.values.reshape(matrix.shape), flat.missing
            missing = None if missing is None else missing.reshape(matrix.shape)
        missing = masked if masked is not None and masked.any() else missing
        if matrix.dtype.kind == "f":
            absent = np.isnan(matrix)
            missing = absent if missing is None and absent.any() else missing if missing is None else missing | absent
    if matrix.shape[1] < 2:
        raise InputError(f"{name} must have one column per class; got {matrix.shape[1]}.", argument=name)
    return matrix, missing


def _clip(matrix: Floats, name: str, missing: Bools | None) -> tuple[Floats, list[Note]]:
    """Clip values within 1e-6 of [0, 1]; an error for others."""
    low, high = (float(limit(matrix)) if matrix.size else 0.5 for limit in (np.nanmin, np.nanmax))
    if low >= 0 and high <= 1:
        return matrix, []
    outside = (matrix < 0) | (matrix > 1)
    if missing is not None:
        outside[missing] = False
    if low < -CLIP_TOLERANCE or high > 1 + CLIP_TOLERANCE:
        far = outside & ((matrix < -CLIP_TOLERANCE) | (matrix > 1 + CLIP_TOLERANCE))
        if far.any():
            raise _not_probabilities(matrix, far, name)
    clipped = np.clip(matrix, 0, 1)
    excess = float(np.abs(matrix - clipped)[outside].max()) if outside.any() else 0.0
    text = f"{{count}} values of {name} lay outside [0, 1] by at most {excess:.2g} and were clipped."
    return clipped, [Note("clipped", int(outside.sum()), text)] if outside.any() else []


def _not_probabilities(matrix: Floats, far: Bools, name: str) -> InputError:
    row, place = (int(i) for i in np.argwhere(far)[0])
    value = float(matrix[row, place])
    finite = matrix[np.isfinite(matrix)]
    hint = "Negative values: logits or margins? Apply a softmax first." if (finite < 0).any() else ""
    if not hint and finite.size and finite.max() <= 100:
        hint = f"Values up to {finite.max():.4g}: percentages? Divide by 100."
    return InputError(
        f"{name} must lie in [0, 1]; {int(far.sum()):,} of {matrix.size:,} values do not, the first at row {row}, "
        f"column {place} is {value:.6g}.",
        hint=hint or "Convert the scores to probabilities first.",
        argument=name,
        row=row,
        value=value,
    )


def _check_sums(matrix: Floats, name: str, missing: Bools | None, tolerance: float) -> list[Note]:
    """Check that rows sum to 1 within the tolerance per class; a note if a sum is not exact."""
    if not len(matrix):
        return []
    off = np.abs(matrix.sum(axis=1) - 1)
    if missing is not None:
        off[missing] = 0.0
    limit = tolerance * matrix.shape[1]
    if (off > limit).any():
        row = int(np.argmax(off > limit))
        raise InputError(
            f"Every row of {name} must sum to 1; {int((off > limit).sum()):,} of {len(matrix):,} do not, the first is "
            f"row {row}, with {matrix[row].sum():.6g}.",
            hint="Logits? Apply a softmax first.",
            argument=name,
            row=row,
            value=float(matrix[row].sum()),
        )
    inexact = int((off > EXACT_SUM).sum())
    return [row_sums_note(name, inexact, off.max())] * (inexact > 0)


def row_sums_note(name: str, count: int, worst: float) -> Note:
    """Return the note about rows whose sum is not exactly 1."""
    return Note("row_sums", count, f"Rows of {name} that sum to 1 only within {worst:.1g}: {{count}}.")
