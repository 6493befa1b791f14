"""When a stream changed, and whether its windows vary more than their rows explain."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.typing import Floats

__all__ = ["ChangePoint", "Dispersion", "change_point", "dispersion"]


@dataclass(frozen=True)
class ChangePoint:
    """The first window after a change of the log-odds error, counted from 0, with a confidence interval."""

    index: int
    low: int
    high: int


def change_point(residual: Floats, information: Floats, variance: Floats, *, alpha: float = 0.05) -> ChangePoint | None:
    """Return the most likely window of one change of the log-odds error; None with fewer than two windows.

    Parameters
    ----------
    residual : array
        Events less expected events, per window.
    information : array
        Sum of p (1 - p) over the rows of each window.
    variance : array
        Variance of the residual of each window, effects of the window included.
    alpha : float, default 0.05
        One minus the confidence level.

    Notes
    -----
    Each window's log-odds error is estimated by residual / information. Two means, before and from s on, are fitted
    by weighted least squares; the best s is the estimate. The interval holds every s whose log-likelihood is within
    -log(1 - sqrt(1 - alpha)) of the best: the limit for the maximum of two random walks that drift down on both
    sides of the true change.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(variance > 0, information**2 / variance, 0.0)
        moment = np.where(variance > 0, residual * information / variance, 0.0)
    before_weight, before = np.cumsum(weight)[:-1], np.cumsum(moment)[:-1]
    after_weight, after = weight.sum() - before_weight, moment.sum() - before
    usable = (before_weight > 0) & (after_weight > 0)
    if not usable.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = 0.5 * (before**2 / before_weight + after**2 / after_weight)
    likelihood = np.where(usable, likelihood, -np.inf)
    best = int(np.argmax(likelihood))
    near = np.flatnonzero(likelihood >= likelihood[best] + np.log1p(-np.sqrt(1 - alpha)))
    return ChangePoint(best + 1, int(near[0]) + 1, int(near[-1]) + 1)


@dataclass(frozen=True)
class Dispersion:
    """How much windows vary, compared with the stated variance of their rows.

    Attributes
    ----------
    ratio : float
        Observed over stated variance of the differences between neighbouring windows.
    window_effect : float
        Estimated standard deviation of the effect of a window, relative to the event rate.
    pvalue : float
        Of the hypothesis that the ratio is at most 1.
    """

    ratio: float
    window_effect: float
    pvalue: float


def dispersion(
    residual: Floats, information: Floats, expected: Floats, *, window_effect: float = 0.0
) -> Dispersion | None:
    """Compare the variation of windows with that of independent rows and a stated effect of the window.

    Pairs of neighbouring windows are compared, so that a slow drift or one change of the event rate does not count.
    Returns None with fewer than 10 pairs or no event.

    Parameters
    ----------
    residual, information, expected : arrays
        Events less expected events, sum of p (1 - p), and expected events, per window.
    window_effect : float, default 0.0
        The stated standard deviation of the effect of a window, relative to the event rate.
    """
    used = np.flatnonzero(information > 0)
    pairs = used[: used.size // 2 * 2].reshape(-1, 2)
    if len(pairs) < 10:
        return None
    observed = (residual + expected)[pairs].sum(axis=1) / expected[pairs].sum(axis=1)
    rows = 1 / information[pairs]  # variance of residual / information for independent rows
    effect = (expected[pairs] / information[pairs]) ** 2
    squared = np.diff(residual[pairs] / information[pairs], axis=1)[:, 0] ** 2
    stated = (rows + window_effect**2 * effect).sum(axis=1)
    # More events than expected also vary more; `observed` allows for that.
    total, mean = float(np.sum(squared / stated)), float(observed.sum())
    excess = max(0.0, float(np.sum(squared - observed * rows.sum(axis=1)))) / float(effect.sum())
    kurtosis = (rows**3).sum(axis=1) / stated**2  # of counts of rare events
    variance = float(np.sum(2 * observed**2 + kurtosis * observed))
    return Dispersion(total / mean, excess**0.5, _upper_tail(total, mean, variance)) if mean > 0 else None


def _upper_tail(total: float, mean: float, variance: float) -> float:
    # Of a gamma variable with these moments.
    from scipy.special import gammaincc

    return float(gammaincc(mean**2 / variance, total * mean / variance))
