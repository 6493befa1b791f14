"""Cox's calibration: the logistic regression of outcomes on the logits of the scores."""

from dataclasses import dataclass

import numpy as np

from calibrant._support import logistic
from calibrant._support.errors import InputError, Note
from calibrant._support.logits import EPS, check_eps, logit
from calibrant._support.short_text import line_html, short_repr
from calibrant._support.typing import Floats, Ints
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import need_both_classes, takes_rows

__all__ = ["SlopeIntercept", "slope_intercept"]


@dataclass(frozen=True)
class SlopeIntercept:
    """Cox's calibration slope and intercept; see `slope_intercept`."""

    __repr__ = short_repr
    _repr_html_ = line_html

    slope: float
    intercept: float
    n_clipped: float
    notes: tuple[Note, ...] = ()


@takes_rows
def slope_intercept(table: ScoreTable, *, eps: float = EPS) -> SlopeIntercept:
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
        return self._fit(n, k) if exists else None

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

    def _fit(self, n: Floats, k: Floats) -> tuple[float, float]:
        # Start at slope 1 and intercept 0, close to the fit of a model with small deviations.
        slope, intercept = logistic.fit([self.x], n, k, start=(1.0, 0.0))
        return float(slope), float(intercept)

    def _pooled(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Return rows and events of each logit."""
        place = self.place
        if place is None:
            return table.n.astype(np.float64, copy=False), table.k.astype(np.float64, copy=False)
        n, k = (np.bincount(place, weights=column).astype(np.float64) for column in (table.n, table.k))
        return n, k
