"""Metrics of class probabilities: Brier score, log loss, and the base of class-wise and top-label metrics."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from calibrant._support import class_labels
from calibrant._support.errors import Argument, InputError
from calibrant._support.typing import Column, Floats, Ints, Weights
from calibrant.metrics.metric import Direction, Metric
from calibrant.tables.class_probabilities import ClassProbabilities
from calibrant.tables.class_table import ClassTable
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable

__all__ = [
    "FromBinaryMetric",
    "Measure",
    "MulticlassBrier",
    "MulticlassLogLoss",
    "MulticlassMetric",
    "ScoreCounter",
    "read_class_table",
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

    @abstractmethod
    def class_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return (a, b) for probabilities of one class.

        The value is the sum over classes of the mean over rows of a, plus b where the class occurred.
        """

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
class MulticlassBrier(_ProperScore):
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

    range: ClassVar[tuple[float, float]] = (0.0, 2.0)

    @property
    def name(self) -> str:
        """Name of the metric in results."""
        return "Brier"

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
class MulticlassLogLoss(_ProperScore):
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

    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    @property
    def name(self) -> str:
        """Name of the metric in results."""
        return "log loss"

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
        if not isinstance(self.metric, Metric) or getattr(self.metric, "kind", "binary") != "binary":
            raise InputError(
                Argument("metric") + f" must be a metric of probabilities of one event; got {self.metric!r}.",
                value=self.metric,
            )

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


class ScoreCounter:
    """Counts rows by score, for other events or other weights of the same predictions."""

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


def read_class_table(
    y_true: Column,
    proba: Any,
    labels: Sequence[Any] | None,
    **options: Any,
) -> ClassTable:
    """Read rows, with the options of `Rows.read`.

    Without `labels` the classes are the names of a frame's columns, or the sorted labels.
    """
    read = ClassProbabilities.read(proba, "proba")
    rows = Rows.read(y_true, {"proba": read}, **options)
    if labels is not None:
        return ClassTable.from_rows(rows, tuple(read.class_names(labels, "labels")), "labels")
    rows.complete()
    found = class_labels.classes(rows.y)
    columns = read.class_names(None)
    if columns == list(range(len(columns))):
        columns = found
    hint = "Pass " + Argument("labels") + ", the class of each column in order."
    if len(rows) and len(columns) != read.matrix.shape[1]:
        raise InputError(
            Argument("proba") + f" must have one column per class of y_true; got {read.matrix.shape[1]} columns and "
            f"{len(columns)} classes.",
            hint=hint,
        )
    if not set(found) <= set(columns):
        raise InputError(
            Argument("y_true") + f" must hold the names of the columns of proba, {columns}; got {found}.", hint=hint
        )
    return ClassTable.from_rows(rows, tuple(columns), "labels")
