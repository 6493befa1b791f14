"""E-values of one window: how much the data favour a recalibration over calibration, at fair odds.

Each has an expectation of at most 1, given the past and the scores of the window, if every score's event rate lies
within the margin. They differ in what they assume about the rows of a window.
"""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import InputError, check_share
from calibrant._support.logistic import expit, logit
from calibrant.tables.score_table import ScoreTable

CERTAIN = 1e-6  # scores closer to 0 or 1 are moved here, and the null hypothesis extends to 0 or 1


@dataclass(frozen=True)
class Window:
    """The rows of a window, counted per score.

    `score` and `logit` have one entry per score; `low` and `high` are the event rates that the null hypothesis allows.
    `n` and `k` have one entry per score on the last axis; leading axes hold streams with the same scores.
    """

    score: Floats
    logit: Floats
    low: Floats
    high: Floats
    n: Floats
    k: Floats

    @classmethod
    def from_counts(cls, score: Floats, n: Floats, k: Floats, *, margin: float) -> "Window":
        """Return the window of these counts, with log-odds errors up to the margin allowed."""
        score = np.asarray(score, dtype=np.float64)
        whole = cls(score, logit(score, CERTAIN), score, score, *(np.asarray(a, dtype=np.float64) for a in (n, k)))
        return replace(whole, low=whole._lower(np.asarray(-margin)), high=whole._upper(np.asarray(margin)))

    @classmethod
    def from_table(cls, table: ScoreTable, *, margin: float) -> "Window":
        """Return the window of a table."""
        return cls.from_counts(table.score, table.n, table.k, margin=margin)

    def within(self, low: Floats, high: Floats) -> "Window":
        """Return the window with shifts from `low` to `high` allowed, one row per shift: a new axis before scores."""
        n, k = self.n[..., None, :], self.k[..., None, :]
        return replace(self, low=self._lower(low), high=self._upper(high), n=n, k=k)

    def shifted(self, shift: Floats) -> Floats:
        """Return the scores with shifted log-odds."""
        return expit(self.logit + shift)

    def _lower(self, shift: Floats) -> Floats:
        return np.where(self.score <= CERTAIN, 0.0, self.shifted(shift))

    def _upper(self, shift: Floats) -> Floats:
        return np.where(self.score >= 1 - CERTAIN, 1.0, self.shifted(shift))

    @property
    def size(self) -> Floats:
        """Number of rows."""
        return np.asarray(self.n.sum(axis=-1))


LARGEST_STAKE = 0.95  # of what a bet may lose in the worst window
CLIP = 3.0  # standard deviations above the expected value at which a window's contrast is cut


def is_clear(mean: Floats) -> Bools:
    """Return whether one outcome is clearly rarer than the other, by the mean score of a window.

    Effects of a window are relative to the rate of the rarer outcome: the event, or its absence. Between 40 and 60 %
    they may be relative to either.
    """
    return np.abs(mean - 0.5) > 0.1


@dataclass(frozen=True)
class Contrast:
    """The weighted mean residual of a window, in the direction of an expert, with its moments.

    With the expert's rate q, the nearest rate p0 that the null hypothesis allows and h = logit q - logit p0:
    `value` is the mean of h (y - p0), `expected` its mean under the expert. Under the null hypothesis its mean lies
    between -`slack` and 0, and it is never below -`worst`. `bernoulli` bounds its variance for independent rows,
    `shared` its standard deviation by an effect of the window of 100 % of the rate of the rarer outcome (`is_clear`).
    """

    value: Floats
    expected: Floats
    bernoulli: Floats
    shared: Floats
    slack: Floats
    worst: Floats

    @classmethod
    def between(cls, window: Window, q: Floats, nearest: Floats) -> "Contrast":
        """Return the contrast of a window between an expert's rates and the nearest allowed rates."""
        h = logit(q, CERTAIN / 2) - logit(nearest, CERTAIN / 2)
        h[q == nearest] = 0.0
        size = np.maximum(window.size, 1)
        share = window.n / size[..., None]
        rate = np.clip(0.5, window.low, window.high)  # the allowed rate with the largest variance
        mean = np.sum(share * window.score, axis=-1)
        event, other = (np.sum(np.abs(h) * share * side, axis=-1) for side in (window.high, 1 - window.low))
        return cls(
            value=np.sum(h * (window.k - window.n * nearest), axis=-1) / size,
            expected=np.sum(h * share * (q - nearest), axis=-1),
            bernoulli=np.sum(h**2 * share * (rate * (1 - rate)), axis=-1) / size,
            shared=np.where(is_clear(mean), np.where(mean < 0.5, event, other), np.maximum(event, other)),
            slack=np.sum(np.abs(h) * share * (window.high - window.low), axis=-1),
            worst=np.sum(np.abs(h) * share * np.where(h > 0, nearest, 1 - nearest), axis=-1),
        )


def independent_rows(window: Window, q: Floats, nearest: Floats) -> Floats:
    r"""Return the log e-value of a likelihood ratio: rows are independent, given their scores and the past.

    With the residual k - n p0 it is (k - n p0) (logit q - logit p0) - n KL(p0, q), which keeps its digits for any n.
    """
    gap = np.where(q == nearest, 0.0, q - nearest)
    with np.errstate(divide="ignore", invalid="ignore"):
        event, other = gap / nearest, -gap / (1 - nearest)  # q / p0 - 1 and (1 - q) / (1 - p0) - 1
        log_odds = np.log1p(event) - np.log1p(other)
        divergence = nearest * _excess(event) + (1 - nearest) * _excess(other)
        plain = window.k * np.log1p(event) + (window.n - window.k) * np.log1p(other)
    inside = (nearest > 0) & (nearest < 1)
    centred = (window.k - window.n * nearest) * log_odds - window.n * divergence
    terms = np.where(inside, centred, plain)
    return np.asarray(np.sum(np.where((gap == 0) | (window.n == 0), 0.0, terms), axis=-1))


def _excess(x: Floats) -> Floats:
    """Return x - log(1 + x), by its series where the difference loses all digits."""
    small = np.abs(x) < 1e-3
    v = np.where(small, 1.0, x)
    return np.where(small, x**2 * (0.5 + x * (-1 / 3 + x * (0.25 - x / 5))), v - np.log1p(v))


def any_dependence(contrast: Contrast, spread: Floats) -> Floats:
    """Return the log e-value of a bet on the contrast: rows of a window may depend on each other in any way.

    1 + c z with a stake c that cannot lose more than all. The stake is the best one for the expert's mean and for a
    variance of `spread` times that of independent rows; both are guesses and do not matter for validity.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        stake = contrast.expected / (spread * contrast.bernoulli + contrast.expected**2)
        stake = np.minimum(stake, LARGEST_STAKE / contrast.worst)
    return np.log1p(np.where(contrast.expected > 0, stake * contrast.value, 0.0))


def window_effects(contrast: Contrast, effect: float) -> Floats:
    """Return the log e-value by Bennett's inequality: the rates of windows vary with a stated standard deviation.

    z is cut at a, which lowers its mean; then E exp(l z) <= exp(l^2 phi(l a) s2) with phi(u) = (exp(u) - 1 - u) / u^2
    and s2 a bound of the variance. A mean of -d < 0 adds d^2 to the second moment and takes l d away: l phi(l a) d
    must be at most 1, which limits l.
    """
    s2 = contrast.bernoulli + (effect * contrast.shared) ** 2
    used = contrast.expected > 0
    s2 = np.where(used, s2, 1.0)
    cut = contrast.expected + CLIP * np.sqrt(s2)
    slope = np.log1p(contrast.expected * cut / s2) / cut
    with np.errstate(divide="ignore"):
        slope = np.minimum(slope, 1 / (_phi(slope * cut) * contrast.slack))
    exponent = slope * np.minimum(contrast.value, cut) - slope**2 * _phi(slope * cut) * s2
    return np.where(used, exponent, 0.0)


def _phi(u: Floats) -> Floats:
    small = np.abs(u) < 1e-3  # the series, where the difference loses all digits
    v = np.where(small, 1.0, u)
    return np.where(small, 0.5 + u / 6 + u**2 / 24, (np.expm1(v) - v) / v**2)


def e_bh(log_e: Floats, weights: Floats, alpha: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which hypotheses the weighted e-BH procedure rejects; the false discovery rate is at most alpha.

    Rejects the largest set of k hypotheses of which each has e * weight >= 1 / (alpha * k). The weights sum to at most
    1 and must be fixed before the e-values are seen. Dependence between e-values does not matter (Wang and Ramdas,
    2022). At a time that depends on the data, each must be the current value of an e-process, not its maximum, given
    the past of all streams. If any is rejected, the weighted mean of the e-values is at least 1 / alpha: so the
    probability of ever rejecting anything while all hypotheses are true is at most alpha, too.

    Parameters
    ----------
    log_e : ndarray
        Natural logarithms of the e-values.
    weights : ndarray
        Weight of each hypothesis; their sum is at most 1.
    alpha : float
        Bound of the false discovery rate.

    Returns
    -------
    ndarray of bool
        Whether each hypothesis is rejected.

    See Also
    --------
    log_mean_e, benjamini_hochberg

    Examples
    --------
    >>> e_bh(np.log([100.0, 50.0, 1.0]), np.full(3, 1 / 3), 0.05)
    array([ True,  True, False])
    """
    check_share("alpha", alpha)
    log_e, weights = np.asarray(log_e, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if log_e.ndim != 1 or np.isnan(log_e).any():
        raise InputError("log_e must be a one-dimensional array without NaN.", argument="log_e", value=log_e)
    if weights.shape != log_e.shape or not (weights > 0).all() or weights.sum() > 1 + 1e-9:
        raise InputError(
            f"weights must be positive, as many as e-values, and sum to at most 1; got a sum of {weights.sum():.6g}.",
            argument="weights",
            value=weights,
        )
    evidence = log_e + np.log(weights)
    ranked = np.sort(evidence)[::-1]
    enough = np.flatnonzero(ranked >= -np.log(alpha * np.arange(1, ranked.size + 1)))
    if enough.size == 0:
        return np.zeros(evidence.size, dtype=np.bool_)
    return np.asarray(evidence >= ranked[enough[-1]])


def log_mean_e(log_e: Floats) -> Floats:
    """Return the logarithm of the mean of e-values along the last axis: an e-value again, for any dependence.

    Parameters
    ----------
    log_e : ndarray
        Natural logarithms of e-values.

    Returns
    -------
    ndarray
        Without the last axis.

    See Also
    --------
    e_bh, EProcess

    Examples
    --------
    >>> import numpy as np
    >>> float(np.exp(log_mean_e(np.log([1.0, 3.0]))).round(6))
    2.0
    """
    log_e = np.asarray(log_e, dtype=np.float64)
    return np.asarray(np.logaddexp.reduce(log_e, axis=-1) - np.log(log_e.shape[-1]))
