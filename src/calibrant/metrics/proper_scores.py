"""Proper scores: Brier score, log loss, and the Brier score stratified by class."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.pieces import in_pieces
from calibrant._support.typing import Floats
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import need_both_classes

__all__ = ["Brier", "LogLoss", "StratifiedBrier", "brier", "log_loss", "stratified_brier"]


@dataclass(frozen=True)
class Brier(UnbinnedMetric):
    """Brier score: mean of (p - y)^2 over rows; lower is better.

    The convention of the binary score; Brier's own of 1950 adds both classes and is twice as large.

    A calibrated model has the expected value mean of p (1 - p), which `evaluate` and `null` show. A value below the
    expected range is a deviation too: the outcomes vary less than the scores say, because the scores are
    underconfident, or too high for rare events.

    See Also
    --------
    brier, LogLoss, corp_decomposition

    Examples
    --------
    >>> round(brier([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.07
    """

    name: ClassVar[str] = "brier"

    def value(self, table: ScoreTable) -> float:
        return _kernels.squared_errors(table.score, table.n, table.k) / table.size

    def linear_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return the terms of each score: p^2 for each row, and (1 - p)^2 - p^2 in addition for an event.

        Parameters
        ----------
        score : array
            Scores.

        Returns
        -------
        tuple of two arrays
            See ``linear_terms`` of `Metric`.
        """
        return score**2, in_pieces(lambda p: (1 - p) ** 2 - p**2, score)

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`.

        Parameters
        ----------
        score : array
            Scores of the rows.
        label : array
            Outcomes of the rows, 0 or 1.

        Returns
        -------
        float or None
            Bitwise the value of the table of these rows.
        """
        sums = _kernels.row_squared_errors(score, label)
        return None if sums is None or not 0 < sums[0] < label.size else sums[1] / label.size


@dataclass(frozen=True)
class LogLoss(UnbinnedMetric):
    """Log loss: mean of -ln of the probability of the observed outcome; lower is better.

    Infinite where an event of probability 0 occurs, or one of probability 1 does not; nothing is clipped.

    See Also
    --------
    log_loss, Brier

    Examples
    --------
    >>> round(log_loss([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.2798
    """

    name: ClassVar[str] = "log_loss"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    min_class_size: ClassVar[int] = 1

    def value(self, table: ScoreTable) -> float:
        events, others = table.k > 0, table.n > table.k
        terms = np.concatenate([_event_loss(table.score[events]), _other_loss(table.score[others])])
        size = np.concatenate([table.k[events], (table.n - table.k)[others]])
        if not np.isfinite(terms).all():
            return math.inf
        _, _, total = _kernels.bin_sums(terms / _LARGEST_LOSS, size, np.zeros_like(size), np.zeros(1, dtype=np.int64))
        return float(total[0]) * _LARGEST_LOSS / table.size

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`.

        Parameters
        ----------
        score : array
            Scores of the rows.
        label : array
            Outcomes of the rows, 0 or 1.

        Returns
        -------
        float or None
            Bitwise the value of the table of these rows.
        """
        if not _has_both_classes(score, label):
            return None

        def losses(score: NDArray[Any], label: NDArray[Any]) -> Floats:
            own = score.astype(np.float64)
            return np.where(label != 0, _event_loss(own), _other_loss(own)) / _LARGEST_LOSS

        terms = in_pieces(losses, score, label)
        sums = _kernels.row_sums(terms, label, _ONE_BIN)  # None if a loss is infinite
        return None if sums is None else float(sums[2][0]) * _LARGEST_LOSS / label.size

    def linear_terms(self, score: Floats) -> tuple[Floats, Floats]:
        """Return the terms of each score; infinite for scores of 0 and 1.

        Parameters
        ----------
        score : array
            Scores.

        Returns
        -------
        tuple of two arrays
            See ``linear_terms`` of `Metric`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            other = in_pieces(lambda p: -np.log1p(-p), score)
            return other, in_pieces(lambda p, other: -np.log(p) - other, score, other)


@dataclass(frozen=True)
class StratifiedBrier(UnbinnedMetric):
    """Mean of the Brier scores of the two classes, so that a rare class weighs as much as a common one.

    Wallace and Dahabreh (2014). Lower is better. Needs rows of both classes.

    See Also
    --------
    stratified_brier, Brier

    Examples
    --------
    >>> round(stratified_brier([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.0625
    """

    name: ClassVar[str] = "stratified_brier"
    # With 10 rows of a class its 95 % interval covered 90 % (calibrated, 1 % events), with 20 or more 93 %.
    min_class_size: ClassVar[int] = 20

    def value(self, table: ScoreTable) -> float:
        need_both_classes(table, "stratified_brier")
        n, k = table.n, table.k
        of_events = _kernels.squared_errors(table.score, k, k) / k.sum()
        of_others = _kernels.squared_errors(table.score, n - k, np.zeros_like(k)) / (n - k).sum()
        return float(of_events + of_others) / 2

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`.

        Parameters
        ----------
        score : array
            Scores of the rows.
        label : array
            Outcomes of the rows, 0 or 1.

        Returns
        -------
        float or None
            Bitwise the value of the table of these rows.
        """
        if not _has_both_classes(score, label):
            return None
        event, (zero, one) = label != 0, np.array([0, 1], dtype=score.dtype)
        # The rows of the other class have no error.
        of_events = _kernels.row_squared_errors(np.where(event, score, zero), label)
        of_others = _kernels.row_squared_errors(np.where(event, one, score), label)
        if of_events is None or of_others is None:
            return None
        return (of_events[1] / of_events[0] + of_others[1] / (label.size - of_others[0])) / 2


_ONE_BIN = np.array([-math.inf, math.inf])
# Exact sums take numbers in [0, 1], so losses, at most 745 for the smallest double, are divided by this power of two.
_LARGEST_LOSS = 1024.0


def _has_both_classes(score: NDArray[Any], label: NDArray[Any]) -> bool:
    """Return whether all scores and labels are valid and both classes occur."""
    sums = _kernels.row_squared_errors(score, label)
    return sums is not None and 0 < sums[0] < label.size


def _event_loss(score: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log(score)


def _other_loss(score: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log1p(-score)


brier = metric_function(Brier)
log_loss = metric_function(LogLoss)
stratified_brier = metric_function(StratifiedBrier)
