"""`ClassTable` and `ConfusionTable`: rows of class probabilities with their classes, and counts of predicted labels."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Floats, Ints, Weights, read_only
from calibrant._support.columns import CLIP_TOLERANCE, ColumnData
from calibrant._support.errors import Argument, InputError, Note, join_notes
from calibrant._support.lazy import cached_property
from calibrant.tables.rows import Missing, Rows
from calibrant.tables.score_table import ScoreTable, check_weights, count_tensors

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

    def class_names(self, classes: Sequence[Any] | None) -> list[Any]:
        """Return the class of each column: as given, else the names of a frame, else 0 to K - 1."""
        count = self.matrix.shape[1]
        names = None if self.names is None or self.names == list(range(count)) else self.names
        if classes is None:
            return list(range(count)) if names is None else names
        chosen = _columns.check_classes(classes)
        if len(chosen) != count:
            raise InputError(
                Argument("classes") + f" must name one class per column of {self.name}; got {len(chosen)} classes and "
                f"{count} columns."
            )
        if names is not None and names != chosen and set(names) == set(chosen):
            raise InputError(
                Argument("classes") + f" must be in the order of the columns; got {chosen}, the frame has {names}."
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
    hint = ""
    if finite.size and (finite <= 0).all():
        hint = "No value is positive; if they are log-probabilities, apply numpy.exp first."
    elif (finite < 0).any():
        hint = "Some values are negative; if they are logits or margins, apply a softmax first."
    elif finite.size and finite.max() <= 100:
        hint = f"The largest value is {finite.max():.4g}; if the values are percentages, divide them by 100."
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


@dataclass(frozen=True, eq=False, repr=False)
class ClassTable:
    """Rows of K class probabilities with the class that occurred; tables of the same classes add up.

    Attributes
    ----------
    labels : tuple
        The class of each column.
    proba : ndarray of shape (n, K)
        Predicted probabilities; each row sums to 1.
    code : ndarray of int64
        Position of the class that occurred, for each row.
    weight : ndarray or None
        Importance weight (float64) or frequency (int64) of each row; None if all are 1.
    n_in, n_dropped : int
        Rows read, and rows that were not used.
    notes : tuple of Note

    See Also
    --------
    ConfusionTable, ScoreTable, classwise

    Examples
    --------
    >>> import numpy as np
    >>> table = ClassTable(("a", "b", "c"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]), n_in=2)
    >>> table.top_label().k, table.class_table(2).score
    (array([1, 0]), array([0.1]))
    """

    labels: tuple[Any, ...]
    proba: Floats
    code: Ints
    weight: Weights | None = None
    n_in: int = 0
    n_dropped: int = 0
    notes: tuple[Note, ...] = ()

    kind: ClassVar[str] = "multiclass"

    @classmethod
    def from_arrays(
        cls,
        y_true: Column,
        proba: Any,
        *,
        classes: Sequence[Any] | None = None,
        sample_weight: Column | None = None,
        frequency: Column | None = None,
        missing: Missing = "raise",
    ) -> "ClassTable":
        """Read rows.

        Parameters
        ----------
        y_true : column of n labels
        proba : array of shape (n, K), or frame
            Predicted probabilities; rows must sum to 1, within 1e-6 per class.
        classes : sequence, optional
            The class of each column; by default the names of a frame's columns, else 0 to K - 1.
        sample_weight, frequency, missing
            See `ScoreTable.from_arrays`.

        Returns
        -------
        ClassTable
        """
        read = proba if isinstance(proba, ClassProbabilities) else ClassProbabilities.read(proba)
        options: dict[str, Any] = {"sample_weight": sample_weight, "frequency": frequency, "missing": missing}
        rows = Rows.read(y_true, {read.name: read}, **options)
        return cls.from_rows(rows, tuple(read.class_names(classes)))

    @classmethod
    def from_rows(cls, rows: Rows, labels: tuple[Any, ...]) -> "ClassTable":
        """Validate rows that were read, whose forecasts are `ClassProbabilities`; all their labels must be known.

        Parameters
        ----------
        rows : Rows
            Labels and `ClassProbabilities` of the same rows.
        labels : tuple
            The classes, in the order of the columns.

        Returns
        -------
        ClassTable
        """
        used = used_rows(rows)
        code = _columns.codes(used.y, list(labels))
        proba = used.forecasts[0].matrix
        return cls(labels, proba, code, used.size, used.n_in, used.n_dropped, join_notes(used.notes))

    def __post_init__(self) -> None:
        for name in ("proba", "code", "weight"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, read_only(column))

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_class_table)

    def __len__(self) -> int:
        """Number of distinct rows that are stored."""
        return self.code.size

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.labels)

    @property
    def importance(self) -> bool:
        """Whether rows have importance weights."""
        return self.weight is not None and self.weight.dtype.kind == "f"

    @cached_property
    def size(self) -> int | float:
        """Number of rows, or their total weight."""
        if self.weight is None:
            return len(self)
        return float(self.weight.sum()) if self.importance else int(self.weight.sum())

    @cached_property
    def observed(self) -> Floats:
        """Share of each class among the rows."""
        counts = np.bincount(self.code, weights=self.weight, minlength=self.n_classes)
        return np.asarray(counts / self.size)

    @cached_property
    def predicted(self) -> Floats:
        """Mean probability of each class."""
        if self.weight is None:
            return np.asarray(self.proba.mean(axis=0))
        return np.asarray(self.weight @ self.proba / self.size)

    @cached_property
    def best(self) -> Ints:
        """Position of the class with the highest probability of each row; of equal ones the first."""
        return np.asarray(np.argmax(self.proba, axis=1))

    @cached_property
    def confidence(self) -> Floats:
        """Highest probability of each row."""
        return np.asarray(self.proba[np.arange(len(self)), self.best], dtype=np.float64)

    @property
    def accuracy(self) -> float:
        """Share of rows whose most probable class occurred."""
        return float(np.average(self.code == self.best, weights=self.weight))

    def class_table(self, column: int) -> ScoreTable:
        """Return the table of one class against the rest.

        Parameters
        ----------
        column : int
            Position of the class in `labels`.

        Returns
        -------
        ScoreTable
            The event is that the class occurred, the score its probability.
        """
        return self.score_table(self.code == column, self.proba[:, column])

    def top_label(self) -> ScoreTable:
        """Return the table of the highest probability of each row and whether that class occurred.

        Returns
        -------
        ScoreTable
            Of equally probable classes the first is taken.
        """
        return self.score_table(self.code == self.best, self.confidence).with_notes(self.notes)

    def score_table(self, event: Any, score: Floats) -> ScoreTable:
        """Return the table of an event and its probability, with the weights of the rows.

        Parameters
        ----------
        event : array of bool
            Whether the event occurred, per row.
        score : array
            Probability of the event, per row.

        Returns
        -------
        ScoreTable
        """
        name = "sample_weight" if self.importance else "frequency"
        weights: dict[str, Any] = {} if self.weight is None else {name: self.weight}
        return ScoreTable.from_arrays(event, score, **weights)

    def part(self, rows: Any) -> "ClassTable":
        """Return the table of some of the rows, by a mask or by their positions.

        Parameters
        ----------
        rows : array
            Mask or positions of rows.

        Returns
        -------
        ClassTable
        """
        weight = None if self.weight is None else self.weight[rows]
        code = self.code[rows]
        return replace(self, proba=self.proba[rows], code=code, weight=weight, n_in=code.size, n_dropped=0)

    def __add__(self, other: "ClassTable") -> "ClassTable":
        if not isinstance(other, ClassTable):
            return NotImplemented
        same_weights = (self.weight is None) == (other.weight is None) and self.importance == other.importance
        if other.labels != self.labels or not same_weights:
            raise InputError(
                "Class tables that are added must have the same classes and the same kind of weights; got "
                f"{list(self.labels)} and {list(other.labels)}.",
                argument="other",
            )
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = np.concatenate([self.weight, other.weight])
        return ClassTable(
            self.labels,
            np.concatenate([self.proba, other.proba]),
            np.concatenate([self.code, other.code]),
            weight,
            self.n_in + other.n_in,
            self.n_dropped + other.n_dropped,
            join_notes(self.notes, other.notes),
        )

    def __radd__(self, other: int) -> "ClassTable":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        weighted = f", total weight {self.size:,.6g}" if self.importance else ""
        return f"ClassTable({len(self):,} rows, {self.n_classes:,} classes{weighted})"


def used_rows(rows: Rows) -> Rows:
    """Return the complete rows of positive weight, with validated weights; outcomes are labels."""
    return check_weights(rows.check(lambda column: column, lambda column: column).select())


@dataclass(frozen=True, eq=False, repr=False)
class ConfusionTable:
    """Counts, or sums of weights, of actual and predicted classes; tables of the same classes add up.

    Attributes
    ----------
    labels : tuple
        The classes.
    n : ndarray of shape (K, K)
        ``n[i, j]``: rows (or their weights) whose actual class is ``labels[i]`` and whose predicted class is
        ``labels[j]``.
    w2 : ndarray or None
        Sums of squared importance weights in the same cells; None for counts.
    n_in, n_dropped : int
        Rows read, and rows that were not used.
    notes : tuple of Note

    See Also
    --------
    ClassTable, proportions

    Examples
    --------
    >>> import numpy as np
    >>> table = ConfusionTable.from_codes(np.array([0, 0, 1]), np.array([0, 1, 1]), ["a", "b"])
    >>> table.n
    array([[1, 1],
           [0, 1]])
    """

    labels: tuple[Any, ...]
    n: Floats | Ints
    w2: Floats | None = None
    n_in: int = 0
    n_dropped: int = 0
    notes: tuple[Note, ...] = ()

    kind: ClassVar[str] = "labels"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", read_only(self.n))
        if self.w2 is not None:
            object.__setattr__(self, "w2", read_only(self.w2))

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_confusion_table)

    @classmethod
    def from_codes(
        cls,
        actual: Ints,
        predicted: Ints,
        labels: Sequence[Any],
        *,
        weight: Floats | Ints | None = None,
        importance: bool = False,
        n_in: int | None = None,
        notes: tuple[Note, ...] = (),
    ) -> "ConfusionTable":
        """Count rows whose classes are given by their positions among the labels.

        Parameters
        ----------
        actual, predicted : array of int
            Positions of the classes of each row.
        labels : sequence
            The classes.
        weight : array, optional
            Frequency of each row, or its importance weight; 1 by default.
        importance : bool, default=False
            Whether `weight` holds importance weights.
        n_in : int, optional
            Number of rows that were read; by default the rows given.
        notes : tuple of Note, optional
            Notes about the input.

        Returns
        -------
        ConfusionTable
        """
        size = len(labels)
        cell = actual * size + predicted

        def total(values: Any) -> Any:
            return np.bincount(cell, weights=values, minlength=size * size).reshape(size, size)

        n = total(weight)
        if not importance:
            n = np.rint(n).astype(np.int64)
        w2 = total(np.square(weight)) if importance and weight is not None else None
        read = actual.size if n_in is None else n_in
        return cls(tuple(labels), n, w2, read, read - actual.size, notes)

    @classmethod
    def from_rows(cls, rows: Rows, labels: Sequence[Any]) -> "ConfusionTable":
        """Validate rows that were read, whose outcome and forecast are columns of labels.

        Parameters
        ----------
        rows : Rows
            Columns of actual and predicted labels.
        labels : sequence
            The classes; a label that is not among them is an error.

        Returns
        -------
        ConfusionTable
        """
        used = used_rows(rows)
        actual, predicted = (_columns.codes(column, list(labels)) for column in (used.y, used.forecasts[0]))
        options: dict[str, Any] = {"weight": used.size, "importance": used.importance and used.weight is not None}
        return cls.from_codes(actual, predicted, labels, **options, n_in=used.n_in, notes=join_notes(used.notes))

    @property
    def importance(self) -> bool:
        """Whether the cells are sums of importance weights."""
        return self.w2 is not None

    @property
    def size(self) -> int | float:
        """Number of rows, or their total weight."""
        total = self.n.sum()
        return float(total) if self.importance else int(total)

    def __len__(self) -> int:
        return len(self.labels)

    def __add__(self, other: "ConfusionTable") -> "ConfusionTable":
        if not isinstance(other, ConfusionTable):
            return NotImplemented
        if other.labels != self.labels or other.importance != self.importance:
            raise InputError(
                "Confusion tables that are added must have the same classes and the same kind of weights; got "
                f"{list(self.labels)} and {list(other.labels)}.",
                argument="other",
            )
        w2 = None if self.w2 is None or other.w2 is None else self.w2 + other.w2
        read, dropped = self.n_in + other.n_in, self.n_dropped + other.n_dropped
        return ConfusionTable(self.labels, self.n + other.n, w2, read, dropped, join_notes(self.notes, other.notes))

    def __radd__(self, other: int) -> "ConfusionTable":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"ConfusionTable({len(self)} classes, {self.size:,.6g} {'weight' if self.importance else 'rows'})"


_PASS_LABELS = "Pass labels, such as model.predict(X)."


def read_labels(
    y_true: Column, forecast: Mapping[str, Column], classes: Sequence[Any] | None, argument: Argument, **options: Any
) -> tuple[Rows, list[Any]]:
    """Read rows of actual and predicted classes; return them with the classes.

    Parameters
    ----------
    y_true : column of actual classes
    forecast : mapping of the name in error messages to the column of predicted classes
    classes : sequence, optional
        By default all labels of both columns, sorted.
    argument : Argument
        The argument that names the classes.
    **options
        See `Rows.read`.
    """
    rows = Rows.read(y_true, forecast, **options, hint=_PASS_LABELS)
    columns = (rows.y, rows.forecasts[0])
    for column in columns:
        refuse_probabilities(column)
    used_rows(rows)  # raises an error about missing values, or if no row is left
    if classes is not None:
        return rows, _columns.check_classes(classes, argument.name)
    both = [label for column in columns for label in _columns.classes(column)]
    names = _columns.classes(ColumnData("labels", np.fromiter(both, dtype=object, count=len(both))))
    if len(names) < 2:
        raise InputError(
            f"{rows.y.name} and {columns[1].name} must have at least two classes; got {names}.",
            hint="Name all classes with " + argument + ".",
            argument=columns[1].name,
        )
    return rows, names


def refuse_probabilities(column: ColumnData) -> None:
    """Raise an error if a column of labels holds numbers that are not whole."""
    values = column.values
    if values.dtype.kind != "f":
        return
    bad = np.isfinite(values) & (values % 1 != 0) & ~column.mask
    if bad.any():
        row = int(np.argmax(bad))
        raise column.error(
            f"must hold predicted or actual classes; {column.place(row)} is {values[row]:.6g}, which looks like a "
            "probability.",
            hint=_PASS_LABELS,
            row=row,
            value=values[row].item(),
        )


def count_top_label(y_true: Any, proba: Any, classes: Sequence[Any] | None) -> ScoreTable | None:
    """Count the highest probability of each row and whether that class occurred; see `top_label`."""
    torch: Any = sys.modules["torch"]
    proba, y = proba.detach(), y_true.detach()
    if y.ndim == 2 and y.shape[1] == 1:
        return None
    fits = proba.ndim == 2 and y.ndim == 1 and 0 < len(y) == len(proba) and proba.shape[1] > 1
    if not fits or proba.dtype not in (torch.float32, torch.float64) or y.is_floating_point() or y.is_complex():
        return None
    low, high = proba.aminmax()
    off = (proba.sum(dim=1, dtype=torch.float64) - 1).abs()
    worst = off.max().item()
    if not (low >= 0 and high <= 1 and worst <= CLIP_TOLERANCE * proba.shape[1]):
        return None
    found, place = torch.unique(y, return_inverse=True)
    present = found.tolist()
    names = present if classes is None else _columns.check_classes(classes)
    column = {name: i for i, name in enumerate(names)}
    if len(names) != proba.shape[1] or not set(present) <= set(names):
        return None
    confidence, best = proba.max(dim=1)  # of equal ones the first
    occurred = torch.tensor([column[label] for label in present], device=y.device)[place]
    inexact = int((off > EXACT_SUM).sum())
    notes = (row_sums_note("proba", inexact, worst),) if inexact else ()
    return count_tensors(confidence, occurred == best, notes)
