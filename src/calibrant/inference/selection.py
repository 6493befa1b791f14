r"""Estimates of effects that are reported because they are significant: conditional on the selection.

An estimate that is reported only if its z statistic exceeds c in size is too large on average, and its usual interval
covers too seldom. Given the selection, z has a normal distribution with mean :math:`\mu` that is cut out between -c and
c. The median-unbiased estimate and the limits are the means :math:`\mu` for which the observed z is its median, and its
upper and lower quantile (Zhong and Prentice 2008, "Bias-reduced estimators and confidence intervals for odds ratios in
genome-wide association studies"). The test shows the sign, so limits and estimate do not pass 0.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._support.roots import find_root

_LARGE = 30.0  # statistics beyond the threshold by so much are not affected by the selection


def holm_threshold(pvalues: Sequence[float], place: int, alpha: float) -> float:
    """Return the largest p-value with which Holm's procedure rejects a hypothesis, given the other p-values.

    >>> holm_threshold([0.001, 0.2, 0.9], 1, 0.05)
    0.025
    """
    others, rejected = np.sort(np.delete(np.asarray(pvalues, dtype=np.float64), place)), 0
    while rejected < others.size and others[rejected] <= alpha / (others.size + 1 - rejected):
        rejected += 1
    return alpha / (others.size + 1 - rejected)


def after_selection(
    value: float, low: float, high: float, pvalue: float, threshold: float, level: float
) -> tuple[float, float, float]:
    """Return estimate and limits of an effect, given that its p-value is at most the threshold.

    `low` and `high` are limits of this level without selection. The reaches of those with selection are in the same
    proportion to them as for a normal statistic with this p-value.
    """
    z, cut = float(-ndtri(max(pvalue, 1e-300) / 2)), float(-ndtri(threshold / 2))
    if not (math.isfinite(low) and math.isfinite(high)) or value == 0 or z <= 0 or z - cut > _LARGE:
        return value, low, high
    if value < 0:
        found, near, far = after_selection(-value, -high, -low, pvalue, threshold, level)
        return -found, -far, -near
    z, tail = max(z, cut * (1 + 1e-9)), (1 - level) / 2
    quantile = float(ndtri(1 - tail))
    near, middle, far = (_mean(z, cut, share) for share in (1 - tail, 0.5, tail))
    found = max(value * middle / z, 0.0)
    least = max(value - (value - low) * (z - near) / quantile, 0.0)
    return found, min(least, found), max(value + (high - value) * (far - z) / quantile, found)


def _mean(z: float, cut: float, share: float) -> float:
    """Return the mean of a normal variable, cut out between -cut and cut, of which z is the quantile of this share."""

    def excess(mean: float) -> float:
        inside = float(ndtr(-cut - mean)) + float(ndtr(mean - cut))
        above = float(ndtr(mean - z))
        return share - 1 + above / inside  # rises with the mean

    if excess(0.0) >= 0:
        return 0.0
    return find_root(excess, 0.0, z + 10.0, xtol=1e-9)
