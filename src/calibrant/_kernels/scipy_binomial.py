"""p-values of whole arrays, bitwise identical to those of `scipy.stats.binomtest`.

The function of SciPy computes one test per call. This module has the same definition (two-sided, minimum likelihood,
outcomes within a relative 1e-7 of the observed one are ties) and runs its bisection for all tests at once. It
compares the same points, so results are bitwise identical.
"""

from collections.abc import Callable

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints

_TIE = 1 + 1e-7
# SciPy raises an OverflowError for smaller p; the correctly rounded p-value is then 1, n p or 0.
_TINY = 1e-290


def binomial_pvalue(k: Ints, n: Ints, p: Floats) -> Floats:
    """Return the two-sided p-values of k events in n trials of probability p; arrays of equal length."""
    from scipy.stats import binom

    tiny = (p > 0) & (p < _TINY)
    if tiny.any():
        rest = ~tiny
        pvalue = np.where(k == 0, 1.0, np.where(k == 1, n * p, 0.0))
        pvalue[rest] = binomial_pvalue(k[rest], n[rest], p[rest])
        return pvalue

    pvalue = np.ones(np.shape(p))
    threshold = binom.pmf(k, n, p) * _TIE
    mean = p * n

    above = np.flatnonzero(k < mean)  # the other tail lies above the mean
    if above.size:
        k_, n_, p_, least = k[above], n[above], p[above], threshold[above]
        last = _last_at_most(lambda x, i: -binom.pmf(x, n_[i], p_[i]), -least, np.ceil(mean[above]), n_.astype(float))
        tail = n_ - last + (least == binom.pmf(last, n_, p_))
        pvalue[above] = binom.cdf(k_, n_, p_) + binom.sf(n_ - tail, n_, p_)

    below = np.flatnonzero(k > mean)
    if below.size:
        k_, n_, p_, least = k[below], n[below], p[below], threshold[below]
        last = _last_at_most(
            lambda x, i: binom.pmf(x, n_[i], p_[i]), least, np.zeros(below.size), np.floor(mean[below])
        )
        pvalue[below] = binom.cdf(last, n_, p_) + binom.sf(k_ - 1, n_, p_)

    return np.minimum(1.0, pvalue)


def _last_at_most(f: Callable[[Floats, Ints], Floats], d: Floats, low: Floats, high: Floats) -> Floats:
    """Return for each test i the last x in low..high with f(x, i) <= d[i], or low - 1; f increases with x."""
    low, high = low.copy(), high.copy()
    found: Bools = np.zeros(low.size, dtype=bool)
    while True:
        i = np.flatnonzero((low < high) & ~found)
        if i.size == 0:
            break
        middle = low[i] + (high[i] - low[i]) // 2
        value = f(middle, i)
        less, more = value < d[i], value > d[i]
        low[i[less]] = middle[less] + 1
        high[i[more]] = middle[more] - 1
        equal = ~(less | more)
        low[i[equal]] = middle[equal]
        found[i[equal]] = True
    i = np.flatnonzero(~found)
    low[i[f(low[i], i) > d[i]]] -= 1
    return low
