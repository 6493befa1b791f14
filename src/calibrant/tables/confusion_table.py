"""`ConfusionTable`: how often each class was predicted for each actual class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support.arrays import read_only
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError, Note, join_notes
from calibrant._support.typing import Column, Floats, Ints
from calibrant.tables.class_table import used_rows
from calibrant.tables.rows import Rows
from calibrant.tables.validation import check_confusion_table, restore

__all__ = ["ConfusionTable", "read_labels", "refuse_probabilities"]


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", read_only(self.n))
        if self.w2 is not None:
            object.__setattr__(self, "w2", read_only(self.w2))

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state, check_confusion_table)

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
        actual, predicted = (class_labels.codes(column, list(labels)) for column in (used.y, used.forecasts[0]))
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
        return rows, class_labels.check_classes(classes, argument.name)
    both = [label for column in columns for label in class_labels.classes(column)]
    names = class_labels.classes(ColumnData("labels", np.fromiter(both, dtype=object, count=len(both))))
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
