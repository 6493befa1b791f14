"""Proper scores: Brier score, log loss, and the Brier score stratified by class."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Column, Floats, in_pieces
from calibrant._support.errors import Note
from calibrant._support.formatting import line_html, short_repr
from calibrant.metrics.bins import PAVA, Bins, EqualWidth, check_bins
from calibrant.metrics.metric import Direction, MetricFunction, UnbinnedMetric, metric_function
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, need_both_classes, read_score_table, row_squares


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

    name: ClassVar[str] = "Brier"
    interval_method: ClassVar[str] = "influence"

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

    def influence(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Return the squared error of a row without the event, and with it, less the Brier score.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        tuple of two arrays
            See ``influence`` of `Metric`.
        """
        value = self.value(table)
        return in_pieces(lambda p: p**2 - value, table.score), in_pieces(lambda p: (1 - p) ** 2 - value, table.score)

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

    name: ClassVar[str] = "log loss"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    min_class_size: ClassVar[int] = 1
    interval_method: ClassVar[str] = "influence"

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

    def influence(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Return the loss of a row without the event, and with it, less the log loss; 0 where no such row exists.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        tuple of two arrays
            See ``influence`` of `Metric`.
        """
        value, events = self.value(table), table.k
        return (
            np.where(events < table.n, _other_loss(table.score) - value, 0.0),
            np.where(events > 0, _event_loss(table.score) - value, 0.0),
        )


# A class with a smaller share of the rows needs more rows for an interval of the stratified Brier score: most of its
# squared errors are near 1, and the mean depends on the few that are not. With 40 rows of such a class the interval
# covers 76 to 95 %, with 200 at least 93 % (docs/studies/intervals.csv).
_RARE_SHARE, _FEWEST_RARE = 0.02, 200


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

    name: ClassVar[str] = "stratified Brier"
    min_class_size: ClassVar[int] = 20
    interval_method: ClassVar[str] = "influence"

    def value(self, table: ScoreTable) -> float:
        need_both_classes(table, "stratified_brier")
        n, k = table.n, table.k
        of_events = _kernels.squared_errors(table.score, k, k) / k.sum()
        of_others = _kernels.squared_errors(table.score, n - k, np.zeros_like(k)) / (n - k).sum()
        return float(of_events + of_others) / 2

    def influence(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Return the squared errors less the mean of their class, divided by twice the share of the class.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        tuple of two arrays
            See ``influence`` of `Metric`.
        """
        p, events, others = table.score, float(table.k.sum()), float((table.n - table.k).sum())
        size = events + others
        of_others, of_events = p**2, (1 - p) ** 2
        means = np.sum((table.n - table.k) * of_others) / others, np.sum(table.k * of_events) / events
        return (of_others - means[0]) * size / (2 * others), (of_events - means[1]) * size / (2 * events)

    def interval_refusal(self, table: ScoreTable) -> str:
        """Return why no interval exists for this table: a rare class has fewer than 200 rows.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        str
            One or two sentences, or ''.
        """
        events, others = float(table.k.sum()), float((table.n - table.k).sum())
        rarer = min(events, others) * float(table.n.sum() / row_squares(table).sum())  # effective rows
        if min(events, others) >= _RARE_SHARE * (events + others) or rarer >= _FEWEST_RARE:
            return ""
        return (
            f"stratified Brier needs at least {_FEWEST_RARE} rows of a class with less than {100 * _RARE_SHARE:g} % of "
            f"the rows for an interval; got {rarer:.3g}. Collect more rows, or report the value alone."
        )

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


brier: MetricFunction = metric_function(Brier)
log_loss: MetricFunction = metric_function(LogLoss)
stratified_brier: MetricFunction = metric_function(StratifiedBrier)


@dataclass(frozen=True)
class MurphyDecomposition:
    """Five terms that add up to the Brier score; see `murphy_decomposition`.

    Attributes
    ----------
    reliability, resolution, uncertainty : float
        The terms of Murphy (1973).
    within_variance, within_covariance : float
        The terms of the scores that differ within bins.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    murphy_decomposition, CorpDecomposition

    Examples
    --------
    >>> import calibrant as cb
    >>> y, p = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]
    >>> parts = cb.metrics.murphy_decomposition(y, p)
    >>> round(parts.reliability - parts.resolution + parts.uncertainty, 4), round(cb.brier(y, p), 4)
    (0.1875, 0.1875)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    notes: tuple[Note, ...] = ()

    @property
    def brier(self) -> float:
        """reliability - resolution + uncertainty + within_variance + within_covariance."""
        return self.reliability - self.resolution + self.uncertainty + self.within_variance + self.within_covariance


def murphy_decomposition(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    bins: Bins = EqualWidth(10),  # noqa: B008  (frozen)
    **rows: Unpack[RowOptions],
) -> MurphyDecomposition:
    r"""Murphy's decomposition of the Brier score over bins, exact also where scores vary inside a bin.

    .. math::

       \mathrm{BS} = \tfrac1N \sum_b N_b (\bar p_b - \bar y_b)^2 - \tfrac1N \sum_b N_b (\bar y_b - \bar y)^2
       + \bar y (1 - \bar y) + \tfrac1N \sum_i (p_i - \bar p_b)^2 - \tfrac2N \sum_i (p_i - \bar p_b)(y_i - \bar y_b)

    The terms are reliability (lower is better), resolution (higher is better), uncertainty, and Stephenson's two terms
    for the spread inside bins, which are 0 if each bin contains one score.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    bins : callable, default=EqualWidth(10)
        The bins.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    MurphyDecomposition
        The five terms.

    See Also
    --------
    MurphyDecomposition, corp_decomposition, brier

    Examples
    --------
    >>> from calibrant import brier
    >>> from calibrant.metrics.bins import EqualWidth
    >>> parts = murphy_decomposition([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9], bins=EqualWidth(10))
    >>> round(parts.reliability, 4), round(parts.resolution, 4), parts.uncertainty
    (0.01, 0.125, 0.25)
    >>> abs(parts.brier - brier([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])) < 1e-15
    True
    """
    table = read_score_table(y_true, y_prob, rows)
    partition = check_bins(bins)(table)
    n, rate, mean, size = partition.n, partition.rate, partition.mean_score, table.size
    offset = table.score - mean[partition.labels]
    residual = table.k - table.n * rate[partition.labels]
    return MurphyDecomposition(
        reliability=float(np.sum(n * (mean - rate) ** 2) / size),
        resolution=float(np.sum(n * (rate - table.prevalence) ** 2) / size),
        uncertainty=table.prevalence * (1 - table.prevalence),
        within_variance=float(np.sum(table.n * offset**2) / size),
        within_covariance=float(-2 * np.sum(offset * residual) / size),
        notes=table.notes,
    )


@dataclass(frozen=True)
class CorpDecomposition:
    """Miscalibration, discrimination and uncertainty; see `corp_decomposition`.

    Attributes
    ----------
    mcb, dsc, unc : float
        Miscalibration, discrimination and uncertainty.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    corp_decomposition, MurphyDecomposition

    Examples
    --------
    >>> import calibrant as cb
    >>> parts = cb.metrics.corp_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(parts.mcb, 4), parts.dsc, parts.unc
    (0.0625, 0.125, 0.25)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    mcb: float
    dsc: float
    unc: float
    notes: tuple[Note, ...] = ()

    @property
    def brier(self) -> float:
        """mcb - dsc + unc."""
        return self.mcb - self.dsc + self.unc


def corp_decomposition(
    y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Unpack[RowOptions]
) -> CorpDecomposition:
    """CORP decomposition of the Brier score, by isotonic recalibration: brier = mcb - dsc + unc.

    mcb (miscalibration) is the decrease of the Brier score by isotonic recalibration (0 is best; CalLoss over segments
    of the ROC convex hull), dsc (discrimination) the further decrease relative to the constant forecast (higher is
    better), unc (uncertainty) the Brier score of that constant. Dimitriadis, Gneiting and Jordan (2021).

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    CorpDecomposition
        The three terms.

    See Also
    --------
    CorpDecomposition, murphy_decomposition, mcb, brier

    Examples
    --------
    >>> parts = corp_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(parts.mcb, 4), round(parts.dsc, 4), parts.unc
    (0.0625, 0.125, 0.25)
    """
    table = read_score_table(y_true, y_prob, rows)
    blocks = PAVA()(table)
    recalibrated = float(np.sum(blocks.n * blocks.rate * (1 - blocks.rate)) / table.size)
    unc = table.prevalence * (1 - table.prevalence)
    return CorpDecomposition(Brier().value(table) - recalibrated, unc - recalibrated, unc, table.notes)


@dataclass(frozen=True)
class MCB(UnbinnedMetric):
    """Miscalibration: the decrease of the Brier score by isotonic recalibration, in [0, 1]; 0 is best.

    `corp_decomposition` gives discrimination and uncertainty too.

    See Also
    --------
    mcb, corp_decomposition

    Examples
    --------
    >>> round(mcb([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.0625
    """

    name: ClassVar[str] = "MCB"
    measures_gaps: ClassVar[bool] = True
    degree: ClassVar[float] = 2.0
    interval_method: ClassVar[str] = "triangle"

    def value(self, table: ScoreTable) -> float:
        return corp_decomposition(table).mcb


mcb: MetricFunction = metric_function(MCB)


@dataclass(frozen=True)
class AUC(UnbinnedMetric):
    """Area under the ROC curve: the probability that an event has a higher score than a non-event; ties count half.

    Insensitive to calibration; higher is better. Needs rows of both classes.

    See Also
    --------
    auc

    Examples
    --------
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.9])
    0.875
    """

    name: ClassVar[str] = "AUC"
    direction: ClassVar[Direction] = "higher"
    min_class_size: ClassVar[int] = 10
    interval_method: ClassVar[str] = "influence"

    def value(self, table: ScoreTable) -> float:
        need_both_classes(table, "auc")
        others = table.n - table.k
        below = np.cumsum(others) - others
        pairs = np.sum(table.k * (below + others / 2.0))
        return float(pairs / float(np.sum(table.k)) / float(np.sum(others)))

    def influence(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Return DeLong's placements less the AUC: the shares of rows of the other class that are ranked correctly.

        They are divided by the share of the class of the row.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        tuple of two arrays
            See ``influence`` of `Metric`.
        """
        events, value = table.k, self.value(table)
        others = table.n - events
        n_events, n_others = float(events.sum()), float(others.sum())
        of_others = 1 - (np.cumsum(events) - events / 2) / n_events
        of_events = (np.cumsum(others) - others / 2) / n_others
        size = n_events + n_others
        return (of_others - value) * size / n_others, (of_events - value) * size / n_events


auc: MetricFunction = metric_function(AUC)
