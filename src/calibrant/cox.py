"""Cox's calibration: the logistic regression of outcomes on the logits of the scores."""

from dataclasses import dataclass

import numpy as np

from calibrant._rows import need_both_classes, takes_rows
from calibrant._typing import Floats, Ints
from calibrant.errors import InputError, Note
from calibrant.table import ScoreTable

__all__ = ["SlopeIntercept", "slope_intercept"]

EPS = 2.0**-24  # how near to 0 and 1 a score may lie before its logit is that of a score so near


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


@dataclass(frozen=True)
class Logits:
    """The distinct logits of a table's scores, which are kept away from 0 and 1, and where each score went."""

    x: Floats
    place: Ints
    n_clipped: float
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, table: ScoreTable, eps: float) -> "Logits":
        if not 2.0**-53 <= eps < 0.5:
            raise InputError(f"eps must lie between 2**-53 and 0.5; it is {eps!r}.", argument="eps", value=eps)
        inside = np.clip(table.score, eps, 1 - eps)
        clipped = float(np.sum(table.n[inside != table.score]))
        x, place = np.unique(np.log(inside) - np.log1p(-inside), return_inverse=True)
        text = f"Rows whose score was moved to lie {eps:.3g} from 0 and 1, where the logit is infinite: {{count}}."
        return cls(x, place, clipped, (Note("logit_clipped", round(clipped), text),) if clipped else ())

    def line(self, table: ScoreTable) -> tuple[float, float] | None:
        """Slope and intercept of a table of the same scores.

        None where they do not exist: all scores or all outcomes are equal, or a threshold separates the outcomes.
        """
        n, k = self._pooled(table)
        exists = self.x.size > 1 and table.has_both_classes and not _separated(n, k)
        return _fit(self.x, n, k) if exists else None

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
            best = _likelihood(self.x, n, k, line[1], line[0])
        return best - _likelihood(self.x, n, k, 0.0, 1.0)

    def result(self, table: ScoreTable, line: tuple[float, float]) -> SlopeIntercept:
        """The line with what a reader must know."""
        clipped = self.n_clipped if table.importance else int(self.n_clipped)
        return SlopeIntercept(*line, clipped, table.notes + self.notes)

    def _pooled(self, table: ScoreTable) -> tuple[Floats, Floats]:
        """Rows and events at every logit."""
        n, k = (np.bincount(self.place, weights=column).astype(np.float64) for column in (table.n, table.k))
        return n, k


def _likelihood(x: Floats, n: Floats, k: Floats, intercept: float, slope: float) -> float:
    """Sum of k ln q + (n - k) ln(1 - q): the unlikely one of the two is the likely one less the logit's size."""
    from scipy.special import log_expit

    eta = intercept + slope * x
    size = np.abs(eta)
    return float(np.sum(n * log_expit(size) - np.where(eta > 0, n - k, k) * size))


def _separated(n: Floats, k: Floats) -> bool:
    """Whether every event scores at least as high as every other row, or every one at most as high."""
    with_event, without = np.flatnonzero(k > 0), np.flatnonzero(k < n)
    return bool(with_event[0] >= without[-1] or with_event[-1] <= without[0])


def _fit(x: Floats, n: Floats, k: Floats) -> tuple[float, float]:
    """Newton's method, halving a step that lowers the likelihood; x is standardised for a well-behaved Hessian."""
    from scipy.special import expit

    centre = np.average(x, weights=n)
    spread = np.sqrt(np.average((x - centre) ** 2, weights=n))
    z = (x - centre) / spread
    beta = np.array([centre, spread])  # slope 1, intercept 0: where a model that is not far off is nearly right
    best = _likelihood(z, n, k, *beta)
    for _ in range(100):
        q = expit(beta[0] + beta[1] * z)
        residual, weight = k - n * q, n * q * (1 - q)
        gradient = np.array([residual.sum(), np.sum(residual * z)])
        curvature = np.array([[weight.sum(), np.sum(weight * z)], [np.sum(weight * z), np.sum(weight * z * z)]])
        try:
            step = np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:
            break
        while (reached := _likelihood(z, n, k, *(beta + step))) < best - 1e-9 * abs(best):
            step /= 2
        beta, best = beta + step, reached
        # Newton's steps square the error, so after one of 1e-10 nothing is left to gain.
        if np.abs(step).max() <= 1e-10 * max(1.0, np.abs(beta).max()):
            return float(beta[1] / spread), float(beta[0] - beta[1] * centre / spread)
    raise InputError(
        "The calibration slope could not be found: the classes are almost separated, or weights differ too much.",
        hint="Use calibrant.ece or calibrant.tce.",
    )
