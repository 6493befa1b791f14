"""Cox's calibration: the logistic regression of outcomes on the logits of the scores."""

from dataclasses import dataclass

import numpy as np

from calibrant._support import logistic
from calibrant._support.errors import InputError, Note
from calibrant._support.logits import EPS, check_eps, logit
from calibrant._support.typing import Floats, Ints
from calibrant.tables.rows import need_both_classes, takes_rows
from calibrant.tables.score_table import ScoreTable

__all__ = ["SlopeIntercept", "slope_intercept"]


@dataclass(frozen=True)
class SlopeIntercept:
    """Cox's calibration slope and intercept; see `slope_intercept`."""

    slope: float
    intercept: float
    n_clipped: float
    notes: tuple[Note, ...] = ()


@takes_rows
def slope_intercept(table: ScoreTable, *, eps: float = EPS) -> SlopeIntercept:
    r"""Cox's calibration slope and intercept: the logistic regression of outcomes on the logits of the scores.

    .. math::

       \operatorname{logit} P(y = 1) = \text{intercept} + \text{slope} \cdot \operatorname{logit} p

    Slope 1 and intercept 0 are best; a slope below 1 means scores that are too extreme. Fitted by maximum likelihood,
    to rounding. Scores are kept `eps` away from 0 and 1, where the logit is infinite; `n_clipped` and a note count rows
    that this moved. Needs both classes, two scores, and outcomes that no threshold separates.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> fit = slope_intercept(rng.random(5000) < p, p)
    >>> abs(fit.slope - 1) < 0.1, abs(fit.intercept) < 0.1
    (True, True)
    """
    need_both_classes(table, "slope_intercept")
    logits = Logits.of(table, eps)
    line = logits.line(table)
    if line is None:
        what = "all scores are equal" if logits.x.size == 1 else "a threshold separates the two classes"
        raise InputError(f"The calibration slope does not exist: {what}.", hint="Use calibrant.ece or calibrant.tce.")
    return logits.result(table, line)


def clipped(table: ScoreTable, eps: float) -> tuple[float, tuple[Note, ...]]:
    """Rows whose score lies within `eps` of 0 or 1, and the note that says so."""
    rows = float(np.sum(table.n[(table.score < eps) | (table.score > 1 - eps)]))
    text = f"Rows whose score was clipped to [{eps:.3g}, 1 - {eps:.3g}] before its logit was taken: {{count}}."
    return rows, (Note("logit_clipped", round(rows), text),) if rows else ()


@dataclass(frozen=True)
class Logits:
    """The distinct logits of a table's scores, which are kept away from 0 and 1, and where each score went."""

    x: Floats
    place: Ints
    n_clipped: float
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, table: ScoreTable, eps: float) -> "Logits":
        check_eps(eps)
        x, place = np.unique(logit(table.score, eps), return_inverse=True)
        return cls(x, place, *clipped(table, eps))

    def line(self, table: ScoreTable) -> tuple[float, float] | None:
        """Slope and intercept of a table of the same scores.

        None where they do not exist: all scores or all outcomes are equal, or a threshold separates the outcomes.
        """
        n, k = self._pooled(table)
        exists = self.x.size > 1 and table.has_both_classes and not any(logistic.find_separation(n, k))
        return self._fit(n, k) if exists else None

    def gain(self, table: ScoreTable, line: tuple[float, float] | None) -> float:
        """How much log likelihood the best slope and intercept gain over slope 1 and intercept 0.

        Where they do not exist the likelihood still has a least upper bound: that of the one score, if any, which has
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
        """The line with what a reader must know."""
        clipped = self.n_clipped if table.importance else int(self.n_clipped)
        return SlopeIntercept(*line, clipped, table.notes + self.notes)

    def _fit(self, n: Floats, k: Floats) -> tuple[float, float]:
        # From slope 1 and intercept 0, where a model that is not far off is nearly right.
        slope, intercept = logistic.fit([self.x], n, k, start=(1.0, 0.0))
        return float(slope), float(intercept)

    def _pooled(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Rows and events at every logit."""
        n, k = (np.bincount(self.place, weights=column).astype(np.float64) for column in (table.n, table.k))
        return n, k
