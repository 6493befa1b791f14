"""Top-label metrics: a binary metric of the highest probability of each row (confidence calibration)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant._kernels.tensors import are_on_device
from calibrant._support.option_checks import known_keywords
from calibrant._support.typing import Column, Ints, Weights
from calibrant.metrics.multiclass import FromBinaryMetric, Measure, ScoreCounter, read_class_table
from calibrant.tables.class_table import ClassTable
from calibrant.tables.device_rows import count_top_label
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

__all__ = ["TopLabelMetric", "top_label"]


@known_keywords
def top_label(
    y_true: Column,
    proba: Any,
    *,
    labels: Sequence[Any] | None = None,
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
    labels : list, optional
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
        counted = count_top_label(y_true, proba, labels)
        if counted is not None:
            return counted
    return read_class_table(
        y_true, proba, labels, sample_weight=sample_weight, frequency=frequency, missing=missing
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
