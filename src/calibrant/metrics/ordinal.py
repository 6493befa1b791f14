"""Metrics of probabilities of ordered classes: ranked probability score, and means over cumulative probabilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._support.arrays import Column, Floats, Ints, Weights
from calibrant.metrics.metric import Metric
from calibrant.metrics.multiclass import ClassEvent, Events, FromBinaryMetric, Measure, ProperScore
from calibrant.metrics.proper_scores import Brier
from calibrant.tables.class_table import ClassTable
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable


def cumulative_probabilities(table: ClassTable) -> Floats:
    """Return the probability of each class or a lower one, without that of the highest class, which is 1."""
    return np.minimum(np.cumsum(table.proba[:, :-1], axis=1, dtype=np.float64), 1.0)


def thresholds(table: ClassTable) -> list[ClassEvent]:
    """Return for each class but the highest the event that it or a lower one occurs.

    Parameters
    ----------
    table : ClassTable
        Class probabilities and the classes that occurred.

    Returns
    -------
    list of ClassEvent
    """

    def occurs(c: int) -> Callable[[Any], Any]:
        return lambda codes: codes <= c

    return [ClassEvent(occurs(c), p) for c, p in enumerate(cumulative_probabilities(table).T)]


def cumulative_tables(table: ClassTable) -> list[ScoreTable]:
    """Return the table of each threshold: cumulative probabilities, and whether the outcome is at most the class."""
    return [table.score_table(event.occurs(table.code), event.score) for event in thresholds(table)]


@dataclass(frozen=True)
class RPS(ProperScore):
    r"""Ranked probability score: mean over rows of :math:`\sum_{c<K} (F_c - 1\{y \le c\})^2`; lower is better.

    The sum over the K - 1 thresholds of the Brier score of the cumulative probabilities (Epstein 1969, Murphy 1971), in
    [0, K - 1]: not divided by K - 1.

    See Also
    --------
    MulticlassBrier, CumulativeMetric

    Examples
    --------
    >>> import numpy as np
    >>> table = ClassTable(("low", "mid", "high"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]))
    >>> round(RPS().value(table), 2)
    0.46
    """

    name: ClassVar[str] = "RPS"
    kind: ClassVar[str] = "ordinal"
    events: ClassVar[Events] = staticmethod(thresholds)
    metric: ClassVar[Metric] = Brier()

    def row_losses(self, table: ClassTable) -> Callable[[Ints], Floats]:
        """Return the function from a class per row to the loss of each row.

        Parameters
        ----------
        table : ClassTable
            Class probabilities and the classes that occurred.

        Returns
        -------
        callable
        """
        below = cumulative_probabilities(table)
        squares = np.sum(below**2, axis=1)
        # The sum of F_c from the class of the row on, and how many these are.
        above = np.hstack([np.cumsum(below[:, ::-1], axis=1)[:, ::-1], np.zeros((len(below), 1))])
        place, last = np.arange(len(below)), below.shape[1]
        return lambda code: squares - 2 * above[place, code] + (last - code)

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
            used = table.weight if weight is None else weight
            return float(np.average(row_losses(table.code if code is None else code), weights=used))

        return value


def rps(
    y_true: Column,
    proba: Any,
    *,
    classes: Sequence[Any] | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> float:
    """Ranked probability score of ordered classes; see `RPS`.

    Parameters
    ----------
    y_true : column of labels
    proba : array of shape (n, K), frame or Ordinal
        Probability of each class; the columns are in the order of the classes.
    classes : sequence, optional
        The class of each column; by default the names of a frame's columns, else 0 to K - 1.
    sample_weight, frequency, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    float

    See Also
    --------
    RPS, brier

    Examples
    --------
    >>> round(rps([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), 2)
    0.46
    """
    names = getattr(proba, "classes", None) if classes is None else classes
    options: dict[str, Any] = {"sample_weight": sample_weight, "frequency": frequency, "missing": missing}
    table = ClassTable.from_arrays(y_true, getattr(proba, "proba", proba), classes=names, **options)
    return RPS().value(table)


rps.metric = RPS  # type: ignore[attr-defined]  # so that the function can be given as a metric


@dataclass(frozen=True)
class CumulativeMetric(FromBinaryMetric):
    """Mean over thresholds of a binary metric of the cumulative probabilities.

    Parameters
    ----------
    metric : Metric
        A binary metric.

    See Also
    --------
    RPS, ClasswiseMetric

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ECE
    >>> table = ClassTable(("low", "mid", "high"), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), np.array([0, 2]))
    >>> round(CumulativeMetric(ECE()).value(table), 4)
    0.35
    """

    kind: ClassVar[str] = "ordinal"
    prefix: ClassVar[str] = "cumulative"
    events: ClassVar[Events] = staticmethod(thresholds)

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

        def value(code: Ints | None, weight: Weights | None) -> float:
            changed = replace(
                table, code=table.code if code is None else code, weight=table.weight if weight is None else weight
            )
            return float(np.mean([self.metric.value(each) for each in cumulative_tables(changed)]))

        return value
