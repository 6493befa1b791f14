"""Proper scores: Brier score, log loss, and the Brier score stratified by class."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.typing import Floats
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import need_both_classes

__all__ = ["Brier", "LogLoss", "StratifiedBrier", "brier", "log_loss", "stratified_brier"]


@dataclass(frozen=True)
class Brier(UnbinnedMetric):
    """Brier score: mean of (p - y)^2 over rows; lower is better.

    The convention of the binary score; Brier's own of 1950 adds both classes and is twice as large.

    Examples
    --------
    >>> round(brier([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.07
    """

    name: ClassVar[str] = "brier"

    def value(self, table: ScoreTable) -> float:
        """Return the value."""
        return _kernels.squared_errors(table.score, table.n, table.k) / table.size

    def linear_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return the terms of each score: (1 - p)^2 for an event and p^2 for another row."""
        return score**2, (1 - score) ** 2 - score**2

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`."""
        sums = _kernels.row_squared_errors(score, label)
        return None if sums is None or not 0 < sums[0] < label.size else sums[1] / label.size


@dataclass(frozen=True)
class LogLoss(UnbinnedMetric):
    """Log loss: mean of -ln of the probability of the observed outcome; lower is better.

    Infinite where an event of probability 0 occurs, or one of probability 1 does not; nothing is clipped.

    Examples
    --------
    >>> round(log_loss([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.2798
    """

    name: ClassVar[str] = "log_loss"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    min_class_size: ClassVar[int] = 1

    def value(self, table: ScoreTable) -> float:
        """Return the value."""
        from scipy.special import xlog1py, xlogy

        p, n, k = table.score, table.n, table.k
        return float(0.0 - np.sum(xlogy(k, p) + xlog1py(n - k, -p)) / table.size)

    def linear_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return the terms of each score; infinite for scores of 0 and 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            other = -np.log1p(-score)
            return other, -np.log(score) - other


@dataclass(frozen=True)
class StratifiedBrier(UnbinnedMetric):
    """Mean of the Brier scores of the two classes, so that a rare class weighs as much as a common one.

    Wallace and Dahabreh (2014). Lower is better. Needs rows of both classes.

    Examples
    --------
    >>> round(stratified_brier([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.0625
    """

    name: ClassVar[str] = "stratified_brier"
    # With 10 rows of a class its 95 % interval covered 90 % (calibrated, 1 % events), with 20 or more 93 %.
    min_class_size: ClassVar[int] = 20

    def value(self, table: ScoreTable) -> float:
        """Return the value."""
        need_both_classes(table, "stratified_brier")
        p, n, k = table.score, table.n, table.k
        events, others = np.sum(k), np.sum(n - k)
        return float(np.sum(k * (1 - p) ** 2) / events + np.sum((n - k) * p**2) / others) / 2


brier = metric_function(Brier)
log_loss = metric_function(LogLoss)
stratified_brier = metric_function(StratifiedBrier)
