"""The deviation from calibration on the log-odds scale, over bins of equal information."""

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Column, Floats, Ints, Weights, in_pieces
from calibrant._support.errors import InputError, Note
from calibrant._support.formatting import line_html, short_repr
from calibrant._support.lazy import cached_property
from calibrant._support.logistic import EPS, check_eps, expit, logit
from calibrant.metrics.bins import EqualInformation
from calibrant.metrics.metric import MetricFunction, UnbinnedMetric, metric_function
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import (
    ScoreTable,
    bernoulli_variance,
    event_squares,
    need_both_classes,
    read_score_table,
)

# Scores of 0 and 1 have no finite logit: scores are clipped to [2**-53, 1 - 2**-53].
_STEP = 2.0**-53
_MIN_INFORMATION = 1e-120
# Number of rows with the mean weight of all rows that are added to each bin, so that a bin without events has a weight.
_PRIOR_ROWS = 1.0


@dataclass(frozen=True, eq=False)
class ScoreLogits:
    """What all bins of a table share: logits and information of its scores.

    Attributes
    ----------
    table : ScoreTable
    """

    table: ScoreTable

    def bins(self, start: Ints) -> "LogOddsBins":
        """Return the bins that begin with these table rows."""
        return LogOddsBins(self, start)

    @cached_property
    def whole(self) -> "LogOddsBins":
        """One bin with all rows."""
        return self.bins(np.zeros(1, dtype=np.int64))

    @cached_property
    def x(self) -> Floats:
        """Logits of the scores."""
        return logits(self.table.score)

    @cached_property
    def n(self) -> Floats:
        """Rows of each score, as floating-point numbers."""
        return self.table.n.astype(np.float64, copy=False)

    @cached_property
    def information(self) -> Floats:
        """Information of each score."""
        return information(self.table)

    @cached_property
    def at_scores(self) -> tuple[Floats, Floats]:
        """The scores by their logits, q = expit(x), and n q (1 - q)."""
        q = expit(self.x)
        return q, bernoulli_variance(self.n, q)


@dataclass(frozen=True, eq=False)
class LogOddsBins:
    """Log-odds errors of bins: the numbers to add to the logits of the scores of each bin to predict its events.

    Attributes
    ----------
    scores : ScoreLogits
    start : ndarray of int
        First table row of each bin.
    """

    scores: ScoreLogits
    start: Ints

    @classmethod
    def from_table(cls, table: ScoreTable, bins: EqualInformation | None = None) -> "LogOddsBins":
        """Return bins of equal information of a table."""
        return cls(ScoreLogits(table), (bins or EqualInformation())(table).start)

    @property
    def table(self) -> ScoreTable:
        """The table."""
        return self.scores.table

    def __len__(self) -> int:
        return self.start.size

    def total(self, values: Floats) -> Floats:
        """Return the sum of one value per table row over each bin."""
        return np.add.reduceat(values, self.start)

    @cached_property
    def labels(self) -> Ints:
        """The bin of each table row."""
        return np.repeat(np.arange(len(self)), self._sizes)

    @cached_property
    def _sizes(self) -> Ints:
        return np.diff(np.append(self.start, len(self.table)))

    @cached_property
    def n(self) -> Floats:
        """Rows (or their weight) of each bin."""
        return self.total(self.scores.n)

    @cached_property
    def k(self) -> Floats:
        """Events of each bin."""
        return self.total(self.table.k.astype(np.float64))

    @cached_property
    def residual(self) -> Floats:
        """Events less expected events of each bin."""
        table = self.table
        return self.total(in_pieces(lambda k, n, p: k - n * p, table.k, table.n, table.score))

    @cached_property
    def information(self) -> Floats:
        """Information of each bin: the sum of p (1 - p)."""
        return self.total(self.scores.information)

    @cached_property
    def excess_kurtosis(self) -> Floats:
        """Mean of 1 - 6 p (1 - p) in each bin, weighted by information."""

        def terms(n: Floats, p: Floats) -> Floats:
            return n * p * (1 - p) * (1 - 6 * p * (1 - p))

        return self.total(in_pieces(terms, self.scores.n, self.table.score)) / self.information

    @cached_property
    def error(self) -> Floats:
        """Log-odds error d of each bin: the sum of expit(logit p + d) equals the events.

        Events are clipped to half a row away from none and from all, where d is infinite.
        """
        half = 0.5 * mean_weight(self.table)
        least = np.minimum(half, self.n / 2)
        events = np.clip(self.k, least, self.n - least)
        return offsets(self.scores.x, self.scores.n, events, self.start, self.scores.at_scores[0])

    @cached_property
    def fitted(self) -> Floats:
        """The scores shifted by the log-odds errors."""
        return self.shifted(self.error)

    @cached_property
    def fitted_curvature(self) -> Floats:
        """The sum of q (1 - q) of each bin, with q the scores shifted by the log-odds errors."""
        return self._curvature(self.fitted)

    @cached_property
    def fitted_variance(self) -> Floats:
        """The variance of the residual sum of each bin about the scores shifted by the log-odds errors."""
        return self._variance(self.fitted) if self.table.importance else self.fitted_curvature

    def curvature(self, d: float) -> Floats:
        """Return the sum of q (1 - q) of each bin, with q = expit(logit p + d)."""
        return self.total(self.scores.at_scores[1]) if d == 0 else self._curvature(self.shifted(d))

    def _curvature(self, q: Floats) -> Floats:
        return self.total(bernoulli_variance(self.scores.n, q))

    def variance(self, d: float = 0.0) -> Floats:
        """Return the variance of the residual sum of each bin if the log-odds error is `d` and rows are independent.

        For counts it is the sum of q (1 - q). Importance weights multiply the terms of events, and those of other rows,
        by the mean weight of such rows, sum(w^2) / sum(w), so weights may depend on the outcome.
        """
        return self._variance(self.shifted(d)) if self.table.importance else self.curvature(d)

    def _variance(self, q: Floats) -> Floats:
        n = self.scores.n
        of_events, of_others = self._mean_weights
        return of_events * self.total(n * q * (1 - q) ** 2) + of_others * self.total(n * (1 - q) * q**2)

    @cached_property
    def _mean_weights(self) -> tuple[Floats, Floats]:
        """Mean weight of events, and of other rows, in each bin, shrunk to the larger mean of all rows and the bin."""
        table = self.table
        assert table.w2 is not None
        squares = event_squares(table)
        pairs = ((table.k, squares), (table.n - table.k, table.w2 - squares))
        found = []
        here = self.total(table.w2) / self.n
        for weight, square in pairs:
            whole = np.maximum(here, float(square.sum() / weight.sum()) if weight.sum() > 0 else mean_weight(table))
            prior = _PRIOR_ROWS * whole
            found.append((self.total(square) + whole * prior) / (self.total(weight) + prior))
        return found[0], found[1]

    def shifted(self, d: Floats | float) -> Floats:
        """Return the scores shifted by `d` in log-odds, one value for all bins or one per bin."""
        if isinstance(d, np.ndarray):
            moved: Floats = np.repeat(d, self._sizes)
            moved += self.scores.x
            return expit(moved, out=moved)
        return self.scores.at_scores[0] if d == 0 else expit(self.scores.x + d)


def logits(score: Floats) -> Floats:
    """Return the logits of scores clipped to [2**-53, 1 - 2**-53]."""
    return in_pieces(_logits, score)


def _logits(score: Floats) -> Floats:
    p = np.maximum(score, _STEP)
    rest = np.where(p == 1.0, _STEP, 1 - p)
    return np.log(p) - np.log(rest)


def information(table: ScoreTable) -> Floats:
    """Return the information of each table row: n p (1 - p); 0 where it is so small that its square underflows."""

    def of_piece(n: Weights, p: Floats) -> Floats:
        found = n * p * (1 - p)
        return np.where(found > _MIN_INFORMATION, found, 0.0)

    return in_pieces(of_piece, table.n, table.score)


def mean_weight(table: ScoreTable) -> float:
    """Return the mean weight of a row, weighted by itself; 1 for counts."""
    return 1.0 if table.w2 is None else float(table.w2.sum() / table.n.sum())


def effective_information(scores: ScoreLogits) -> float:
    """Return the information of rows of equal weight with the same variance.

    For rare events it is about the expected number of events.
    """
    whole = float(scores.information.sum())
    if not scores.table.importance or whole == 0:
        return whole
    return whole**2 / float(scores.whole.variance()[0])


def offsets(x: Floats, n: Floats, events: Floats, start: Ints, at_x: Floats | None = None) -> Floats:
    """Return for each bin the d with sum of n expit(x + d) = events, by Newton's method with bounded steps.

    `at_x` is expit(x), if it is known.
    """
    sizes = np.diff(np.append(start, x.size))
    rows = np.add.reduceat(n, start)
    predicted = np.add.reduceat(n * (expit(x) if at_x is None else at_x), start)
    d = _log_odds(events, rows) - _log_odds(predicted, rows)  # exact where a bin has one score
    q, terms = np.empty(x.size), np.empty(x.size)  # memory that all steps use
    for _ in range(_NEWTON_STEPS):
        np.add(x, d if d.size == 1 else np.repeat(d, sizes), out=q)
        expit(q, out=q)
        gap = events - np.add.reduceat(np.multiply(n, q, out=terms), start)
        np.subtract(1, q, out=q)
        slope = np.add.reduceat(np.multiply(terms, q, out=terms), start)
        step = np.minimum(np.maximum(gap / np.maximum(slope, _STEP), -2.0), 2.0)
        d = d + step
        # A Newton step squares the error, so after a step of 1e-7 only rounding error is left.
        if np.abs(step).max() < 1e-7 * (1 + np.abs(d).max()):
            break
    return d


def _log_odds(events: Floats, rows: Floats) -> Floats:
    least = np.finfo(np.float64).tiny
    return np.log(np.maximum(events, least)) - np.log(np.maximum(rows - events, least))


_NEWTON_STEPS = 60


@dataclass(frozen=True)
class LogOddsError(UnbinnedMetric):
    r"""Log-odds error: root mean square deviation of the log-odds, debiased, over bins of equal information.

    .. math::

       \sqrt{\max\Bigl(0, \sum_b \frac{V_b}{I} \bigl(d_b^2 - \operatorname{Var}(d_b)\bigr)\Bigr)}, \qquad
       V_b = \sum_{i \in b} p_i (1 - p_i), \quad I = \sum_b V_b

    where :math:`d_b` is the shift of the logits in bin b that predicts its events. At least 0; 0 is best. An error of
    0.1 means that the predicted odds deviate by about 10 % on average. The average is over bins, weighted by
    information: rows count by p (1 - p), so a score of 0.001 counts a 250th of one of 0.5, and rows whose scores are
    tiny hardly enter, however wrong they are. `evaluate` judges regions of the scores beside it.

    See Also
    --------
    log_odds_error, EqualInformation, AbsoluteMargin

    Notes
    -----
    Bins are `EqualInformation`, so errors that cancel inside a bin are not detected. Events are clipped to half a row
    away from none and from all in each bin. Scores are clipped to [2**-53, 1 - 2**-53], so that logits are finite. The
    variance of :math:`d_b` is that of independent rows at the estimate; without it, a calibrated model would have a
    positive expected error.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.01, 0.1, 0.5], [20_000, 3_000, 400], [400, 540, 268])
    >>> round(log_odds_error(table), 2)
    0.69
    """

    name: ClassVar[str] = "log-odds error"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "inversion"

    def value(self, table: ScoreTable) -> float:
        return math.sqrt(squared_error(LogOddsBins.from_table(table)))


log_odds_error: MetricFunction = metric_function(LogOddsError)


def squared_error(bins: LogOddsBins) -> float:
    """Return the debiased squared log-odds error, at least 0."""
    total = float(bins.information.sum())
    if total == 0:  # scores of 0 and 1 only: no error, or an infinite one
        table = bins.table
        return 0.0 if np.all(table.k == table.n * table.score) else float("inf")
    d = bins.error
    variance = bins.fitted_variance / np.maximum(bins.fitted_curvature, _STEP) ** 2
    return max(float(np.sum(bins.information * (d**2 - variance))) / total, 0.0)


@dataclass(frozen=True)
class SlopeIntercept:
    """Cox's calibration slope and intercept; see `slope_intercept`."""

    __repr__ = short_repr
    _repr_html_ = line_html

    slope: float
    intercept: float
    n_clipped: float
    notes: tuple[Note, ...] = ()


def slope_intercept(
    y_true: ScoreTable | Column, y_prob: Column | None = None, *, eps: float = EPS, **rows: Unpack[RowOptions]
) -> SlopeIntercept:
    r"""Cox's calibration slope and intercept: the logistic regression of outcomes on the logits of the scores.

    .. math::

       \operatorname{logit} P(y = 1) = \text{intercept} + \text{slope} \cdot \operatorname{logit} p

    Slope 1 and intercept 0 are best; a slope below 1 means overconfident scores. Fitted by maximum likelihood, to
    rounding error. Scores are clipped to [eps, 1 - eps], because the logits of 0 and 1 are infinite; `n_clipped` and a
    note count the clipped rows. Needs both classes, two scores, and outcomes that no threshold separates.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    eps : float, default=2**-24
        Scores are clipped to [eps, 1 - eps].
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    SlopeIntercept
        Slope, intercept and number of clipped rows.

    See Also
    --------
    slope_intercept_test, bias, log_odds_error

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> fit = slope_intercept(rng.random(5000) < p, p)
    >>> abs(fit.slope - 1) < 0.1, abs(fit.intercept) < 0.1
    (True, True)
    """
    table = read_score_table(y_true, y_prob, rows)
    need_both_classes(table, "slope_intercept")
    logits = Logits.from_table(table, eps)
    line = logits.fit(table)
    if line is None:
        reason = "all scores are equal" if logits.x.size == 1 else "a threshold separates the two classes"
        raise InputError(f"The calibration slope does not exist: {reason}.", hint="Use calibrant.ece or calibrant.tce.")
    return logits.result(table, line)


_CLIPPED_ROWS = "Rows whose score was", "its logit was"


def count_clipped(table: ScoreTable, eps: float) -> tuple[float, tuple[Note, ...]]:
    """Return the number of rows whose score lies within `eps` of 0 or 1, or the sum of their weights, and a note.

    A table of importance weights does not know numbers of rows: the note counts its distinct scores.
    """
    near = (table.score < eps) | (table.score > 1 - eps)
    rows = float(np.sum(table.n[near]))
    which, its = ("Distinct scores that were", "their logits were") if table.importance else _CLIPPED_ROWS
    text = f"{which} clipped to [{eps:.3g}, 1 - {eps:.3g}] before {its} taken: {{count}}."
    count = int(np.count_nonzero(near)) if table.importance else round(rows)
    return rows, (Note("logit_clipped", count, text),) if rows else ()


def _distinct(x: Floats) -> tuple[Floats, Ints | None]:
    """Return the distinct values in their order, and the place of each value; None if they are those values."""
    if (x[1:] > x[:-1]).all():  # else values are equal, or rounding has swapped neighbours
        return x, None
    values, place = np.unique(x, return_inverse=True)
    return values, place


@dataclass(frozen=True)
class Logits:
    """The distinct logits of the clipped scores of a table.

    Attributes
    ----------
    x : ndarray
        Distinct logits.
    place : ndarray of int or None
        The logit of each score, as an index of `x`; None if each score has its own logit, in the order of scores.
    n_clipped : float
        Rows whose score was clipped.
    notes : tuple of Note
    """

    x: Floats
    place: Ints | None
    n_clipped: float
    notes: tuple[Note, ...]

    @classmethod
    def from_table(cls, table: ScoreTable, eps: float) -> "Logits":
        """Return the logits of the scores, clipped to [eps, 1 - eps]."""
        check_eps(eps)
        return cls(*_distinct(logit(table.score, eps)), *count_clipped(table, eps))

    @property
    def by_score(self) -> Floats:
        """The logit of each score."""
        return self.x if self.place is None else self.x[self.place]

    def fit(self, table: ScoreTable) -> tuple[float, float] | None:
        """Return slope and intercept of a table with the same scores.

        None where they do not exist: all scores or all outcomes are equal, or a threshold separates the outcomes.
        """
        n, k = self._pooled(table)
        exists = self.x.size > 1 and table.has_both_classes and not any(logistic.find_separation(n, k))
        if not exists:
            return None
        # Start at slope 1 and intercept 0, close to the fit of a model with small deviations.
        slope, intercept = logistic.fit([self.x], n, k, start=(1.0, 0.0))
        return float(slope), float(intercept)

    def likelihood_gain(self, table: ScoreTable, line: tuple[float, float] | None) -> float:
        """Return the difference of log likelihoods between the fitted line and slope 1 with intercept 0.

        Where no line exists, the likelihood still has a least upper bound: that of the one score, if any, that has
        outcomes of both kinds.
        """
        from scipy.special import xlogy

        n, k = self._pooled(table)
        if line is None:
            best = float(np.sum(xlogy(k, k / n) + xlogy(n - k, 1 - k / n)))
        else:
            best = logistic.log_likelihood(line[1] + line[0] * self.x, n, k)
        return best - logistic.log_likelihood(self.x, n, k)

    def result(self, table: ScoreTable, line: tuple[float, float]) -> SlopeIntercept:
        """Return the line with the notes."""
        clipped = self.n_clipped if table.importance else int(self.n_clipped)
        return SlopeIntercept(*line, clipped, table.notes + self.notes)

    def _pooled(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Return rows and events of each logit."""
        place = self.place
        if place is None:
            return table.n.astype(np.float64, copy=False), table.k.astype(np.float64, copy=False)
        n, k = (np.bincount(place, weights=column).astype(np.float64) for column in (table.n, table.k))
        return n, k
