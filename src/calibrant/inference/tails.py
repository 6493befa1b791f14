"""Tail probabilities of the tests of calibration, by scipy.special alone."""

import numpy as np

from calibrant._support.logits import expit
from calibrant._support.typing import Floats

__all__ = [
    "binomial_two_sided",
    "normal_two_sided",
    "quadratic_tail",
    "saddlepoint_two_sided",
    "student_two_sided",
]


def normal_two_sided(z: float) -> float:
    """Two-sided p-value of a standard normal statistic."""
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(z)))


def student_two_sided(t: float, degrees: float) -> float:
    """Two-sided p-value of Student's t; normal for infinite degrees of freedom."""
    from scipy.special import stdtr

    return normal_two_sided(t) if np.isinf(degrees) else float(2 * stdtr(degrees, -abs(t)))


def binomial_two_sided(k: float, n: float, p: float) -> float:
    """Twice the smaller tail of a binomial distribution, at most 1; k and n need not be whole."""
    from scipy.special import betainc

    if p <= 0 or p >= 1:
        return 1.0 if k == n * p else 0.0
    below = 1.0 if k >= n else float(betainc(n - k, k + 1, 1 - p))
    above = 1.0 if k <= 0 else float(betainc(k, n - k + 1, p))
    return min(1.0, 2 * min(below, above))


def quadratic_tail(value: float, mean: float, variance: float, degrees: float = np.inf) -> float:
    """Upper tail of a quadratic form with this mean and variance, by a scaled chi-squared (or F) distribution.

    `degrees` are those of an estimated covariance: the form divided by its mean is then F(nu, nu * degrees).
    """
    from scipy.special import chdtrc, fdtrc

    if not variance > 0:  # a single row with score 1/2: its squared residual is 1/4 either way
        return 1.0 if value <= mean * (1 + 1e-9) else 0.0
    scale, nu = variance / (2 * mean), 2 * mean**2 / variance
    if np.isinf(degrees):
        return float(chdtrc(nu, value / scale))
    return float(fdtrc(nu, nu * degrees, value / mean))


def saddlepoint_two_sided(total: float, contrast: Floats, n: Floats, q: Floats) -> float:
    """Twice the tail of a sum of contrast * (y - q) over n independent Bernoulli outcomes per entry.

    Lugannani and Rice's saddlepoint approximation in Barndorff-Nielsen's form: right to a few percent far into the tail
    also where few events are expected. `n` need not be whole.
    """
    inside = (q > 0) & (q < 1)
    contrast, n, q = contrast[inside], n[inside], q[inside]
    variance = float(np.sum(n * contrast**2 * q * (1 - q)))
    z = total / variance**0.5
    if abs(z) < 1:  # not significant whatever the tail
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
    """The tilt at which the sum has the expectation `total`, by bisection; None where there is none."""
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
