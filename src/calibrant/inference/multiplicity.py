"""p-values of several tests at once."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats

__all__ = ["benjamini_hochberg", "holm"]


def holm(pvalues: object) -> Floats:
    """Holm's adjusted p-values: rejecting those at most alpha makes one false rejection with a chance of at most alpha.

    Holds for tests that depend on each other in any way.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = _checked(pvalues)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted


def benjamini_hochberg(pvalues: object) -> Floats:
    """Benjamini and Hochberg's: of those at most alpha, a share of at most alpha is false on average.

    Holds for independent tests (different rows are), and for those that depend on each other positively.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    from scipy.stats import false_discovery_control

    p = _checked(pvalues)
    return np.asarray(false_discovery_control(p, method="bh")) if p.size else p


def _checked(pvalues: object) -> Floats:
    p = np.asarray(pvalues, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError("p-values must be a row of numbers in [0, 1].", argument="pvalues", value=pvalues)
    return p
