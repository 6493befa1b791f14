"""`ClassTable`: predicted class probabilities and the class that occurred, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support.arrays import read_only
from calibrant._support.cached_properties import cached_property
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.option_checks import known_keywords
from calibrant._support.typing import Column, Floats, Ints, Weights
from calibrant.tables.class_probabilities import ClassProbabilities
from calibrant.tables.rows import Missing, Rows
from calibrant.tables.score_table import ScoreTable, check_weights
from calibrant.tables.validation import check_class_table, restore

__all__ = ["ClassTable"]


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

    @classmethod
    @known_keywords
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
    def from_rows(cls, rows: Rows, labels: tuple[Any, ...], argument: str = "classes") -> "ClassTable":
        """Validate rows that were read, whose forecasts are `ClassProbabilities`; all their labels must be known.

        Parameters
        ----------
        rows : Rows
            Labels and `ClassProbabilities` of the same rows.
        labels : tuple
            The classes, in the order of the columns.
        argument : str, default="classes"
            Name of the argument that an error about an unknown label states.

        Returns
        -------
        ClassTable
        """
        used = used_rows(rows)
        code = class_labels.codes(used.y, list(labels), argument)
        proba = used.forecasts[0].matrix
        return cls(labels, proba, code, used.size, used.n_in, used.n_dropped, join_notes(used.notes))

    def __post_init__(self) -> None:
        for name in ("proba", "code", "weight"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, read_only(column))

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state, check_class_table)

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
