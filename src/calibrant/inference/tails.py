"""Tail probabilities of the tests of calibration, computed with scipy.special only."""

import numpy as np
from scipy.special import betainc, chdtrc, chndtr, fdtrc, ndtr, ndtri, stdtr, stdtrit

from calibrant._support.arrays import Floats
from calibrant._support.logistic import expit

# Up to which scipy is accurate; its values are wrong from 3e9 on (1.14 to 1.16) and NaN from 1e11 on (1.17).
_LARGE_NONCENTRALITY = 1e7


def normal_two_sided(z: float) -> float:
    """Return the two-sided p-value of a standard normal statistic."""
    return float(2 * ndtr(-abs(z)))


def student_two_sided(t: float, degrees: float) -> float:
    """Return the two-sided p-value of Student's t; normal for infinite degrees of freedom."""
    return normal_two_sided(t) if np.isinf(degrees) else float(2 * stdtr(degrees, -abs(t)))


def student_tail(t: float, degrees: float) -> float:
    """Return the upper tail of Student's t; normal for infinite degrees of freedom."""
    return float(ndtr(-t) if np.isinf(degrees) else stdtr(degrees, -t))


def student_quantile(share: float, degrees: float) -> float:
    """Return a quantile of Student's distribution; normal for infinite degrees of freedom."""
    return float(ndtri(share) if np.isinf(degrees) else stdtrit(degrees, share))


def skewed_reaches(quantile: float, skewness: float) -> tuple[float, float]:
    r"""Return how many standard errors an interval of a mean reaches below and above it.

    `skewness` is that of the mean. The larger of the symmetric reach and that of the inverse of Hall's (1992, "On the
    removal of skewness by transformation") transformation of Student's t,

    .. math::

       g(t) = \frac{(1 + a t)^3 - 1}{3 a} + \frac a2, \quad a = \frac{\text{skewness}}{3}

    >>> skewed_reaches(2.0, 0.0)
    (2.0, 2.0)
    """
    a = skewness / 3
    if abs(a) < 1e-9:
        return quantile, quantile
    below, above = ((np.cbrt(1 + 3 * a * (g - a / 2)) - 1) / a for g in (quantile, -quantile))
    return max(quantile, float(below)), max(quantile, float(-above))


def skewed_statistic(t: float, skewness: float) -> float:
    """Return the statistic whose two-sided p-value agrees with `skewed_reaches`: 0 or the smaller of t and g(t).

    >>> skewed_statistic(-2.0, 0.0)
    2.0
    """
    a = skewness / 3
    g = ((1 + a * t) ** 3 - 1) / (3 * a) + a / 2 if abs(a) > 1e-9 else t
    return min(abs(t), abs(g)) if g * t > 0 else 0.0


def binomial_two_sided(k: float, n: float, p: float) -> float:
    """Return twice the smaller tail of a binomial distribution, at most 1; k and n need not be integers."""
    if p <= 0 or p >= 1:
        return 1.0 if k == n * p else 0.0
    below = 1.0 if k >= n else float(betainc(n - k, k + 1, 1 - p))
    above = 1.0 if k <= 0 else float(betainc(k, n - k + 1, p))
    return min(1.0, 2 * min(below, above))


def quadratic_tail(value: float, mean: float, variance: float, degrees: float = np.inf) -> float:
    """Return the upper tail of a quadratic form with this mean and variance, by a scaled chi-squared (or F) variable.

    `degrees` are those of an estimated covariance: the form divided by its mean is then F(nu, nu * degrees).
    """
    if not variance > 0:  # a single row with score 1/2: its squared residual is 1/4 either way
        return 1.0 if value <= mean * (1 + 1e-9) else 0.0
    scale, nu = variance / (2 * mean), 2 * mean**2 / variance
    if np.isinf(degrees):
        return float(chdtrc(nu, value / scale))
    return float(fdtrc(nu, nu * degrees, value / mean))


def noncentral_chi2_cdf(value: float, degrees: float, noncentrality: float) -> float:
    """Return the distribution function of a noncentral chi-squared variable.

    Large noncentralities use the normal approximation of a power of the variable by Sankaran (1963), "Approximations to
    the non-central chi-square distribution", whose error is below 1e-10 there.
    """
    if not noncentrality > _LARGE_NONCENTRALITY:
        return float(chndtr(value, degrees, noncentrality))
    mean, half = degrees + noncentrality, degrees + 2 * noncentrality
    power = 1 - 2 * mean * (degrees + 3 * noncentrality) / (3 * half**2)
    p = half / mean**2
    m = (power - 1) * (1 - 3 * power)
    centre = 1 + power * p * (power - 1 - 0.5 * (2 - power) * m * p)
    return float(ndtr(((value / mean) ** power - centre) / (power * np.sqrt(2 * p) * (1 + 0.5 * m * p))))


def saddlepoint_two_sided(total: float, contrast: Floats, n: Floats, q: Floats) -> float:
    """Return twice the tail of a sum of contrast * (y - q) over n independent Bernoulli outcomes per entry.

    Lugannani and Rice's saddlepoint approximation in Barndorff-Nielsen's form: accurate to a few percent far into the
    tail, also where few events are expected. `n` need not be an integer.
    """
    inside = (q > 0) & (q < 1)
    contrast, n, q = contrast[inside], n[inside], q[inside]
    variance = float(np.sum(n * contrast**2 * q * (1 - q)))
    z = total / variance**0.5
    if abs(z) < 1:  # not significant for any shape of the tail
        return normal_two_sided(z)
    t = _saddlepoint(total, contrast, n, q, variance)
    if t is None:  # at or beyond the end of the support
        return 0.0
    logit = np.log(q) - np.log1p(-q)
    grown = np.logaddexp(0.0, logit + contrast * t) - np.logaddexp(0.0, logit)
    cumulant = float(np.sum(n * (grown - contrast * q * t)))
    tilted = expit(logit + contrast * t)
    curvature = float(np.sum(n * contrast**2 * tilted * (1 - tilted)))
    w = np.sign(t) * np.sqrt(max(2 * (t * total - cumulant), 0.0))
    u = t * np.sqrt(curvature)
    if not (np.isfinite(w) and np.isfinite(u)) or w == 0 or u == 0:
        return normal_two_sided(z)
    return min(1.0, normal_two_sided(w + np.log(u / w) / w))


_SADDLE_STEPS = 100


def _saddlepoint(total: float, contrast: Floats, n: Floats, q: Floats, variance: float) -> float | None:
    """Return the tilt at which the sum has the expectation `total`, by bisection; None where none exists."""
    most = 500.0 / max(float(np.abs(contrast).max()), 1e-300)
    logit = np.log(q) - np.log1p(-q)

    def expected(t: float) -> float:
        return float(np.sum(n * contrast * (expit(logit + contrast * t) - q)))

    low, high = (0.0, most) if total > 0 else (-most, 0.0)
    if not expected(low) <= total <= expected(high):
        return None
    t = float(np.clip(total / variance, low, high))
    for _ in range(_SADDLE_STEPS):
        gap = expected(t) - total
        low, high = (low, t) if gap > 0 else (t, high)
        if high - low < 1e-9 * most or abs(gap) < 1e-10 * abs(total):
            break
        t = (low + high) / 2
    return t


# Terms of two alternating series of reflections: enough for every x of at least _SMALLEST.
_TERMS = 400
_SMALLEST = 0.3  # below, both probabilities are at least 1 - 2e-6


def brownian_maximum_tail(x: float) -> float:
    """Return P(max |W| > x) for a Brownian motion W over [0, 1]."""
    m = np.arange(_TERMS)
    return 1.0 if x < _SMALLEST else float(np.clip(4 * np.sum((-1.0) ** m * ndtr(-(2 * m + 1) * x)), 0.0, 1.0))


def brownian_range_tail(x: float) -> float:
    """Return P(max W - min W > x) for a Brownian motion W over [0, 1]; Feller (1951)."""
    j = np.arange(1, _TERMS)
    return 1.0 if x < _SMALLEST else float(np.clip(8 * np.sum((-1.0) ** (j - 1) * j * ndtr(-j * x)), 0.0, 1.0))
