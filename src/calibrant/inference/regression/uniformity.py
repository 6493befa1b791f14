"""Tests that PIT values are uniform: Anderson-Darling, Kolmogorov-Smirnov and chi-squared."""

import math
from collections.abc import Sequence

import numpy as np

from calibrant._support.arrays import Column, Floats, dot
from calibrant._support.errors import InputError, Note, check_count, check_resample_count
from calibrant._support.random_streams import RandomState, generator
from calibrant.forecasts.distributions import as_levels
from calibrant.metrics.distribution import NEAREST, read_pit, rising
from calibrant.results.verdict import TestResult

_FEW_EXPECTED = 5
_MOST_BINS, _DRAWS_AT_ONCE = 10_000, 500
_FAR = 4.0  # A^2 of a p-value of about 0.009


def anderson_darling(u: Column) -> TestResult:
    r"""Anderson-Darling test that PIT values are uniform; it gives most weight to the tails.

    .. math::

       A^2 = -n - \frac1n \sum_{i=1}^n (2i - 1) \left[\ln u_{(i)} + \ln (1 - u_{(n+1-i)})\right]

    The measure of pure calibration of Carney and Cunningham (2006). The p-value uses the limiting distribution with the
    correction for n rows of Marsaglia and Marsaglia (2004), and beyond A^2 = 4 a correction fitted to simulations. It
    is exact for one row, within 0.005 for two or three rows and within 0.0005 from five rows on.

    Parameters
    ----------
    u : column of PIT values
        See `pit`. Values within 2^-54 of 0 or 1 count as that far from them; a note counts such values.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    kolmogorov_smirnov, chi_square, pit

    Examples
    --------
    >>> result = anderson_darling([0.1, 0.25, 0.4, 0.6, 0.7, 0.95])
    >>> round(result.statistic, 4), round(result.pvalue, 3)
    (0.151, 0.999)
    """
    given, notes = read_pit(u)
    values = rising(given)
    statistic = a_squared(values)
    pvalue = ad_pvalue(statistic, values.size)
    return TestResult(statistic, pvalue, "Anderson-Darling", notes=notes)


def a_squared(values: Floats) -> float:
    """Return A^2 of rising PIT values."""
    n = values.size
    low = np.log(np.maximum(values, NEAREST))
    with np.errstate(divide="ignore"):
        high = np.maximum(np.log1p(-values), math.log(NEAREST))
    weight = 2 * np.arange(1, n + 1) - 1
    return float(-n - dot(weight, low + high[::-1]) / n)


def ad_pvalue(z: float, n: int) -> float:
    """Return the probability that A^2 of n uniform numbers exceeds z."""
    from scipy.special import erfc

    if n == 1:  # A^2 = -1 - ln u(1 - u)
        chance = 4 * math.exp(-1 - z)
        return min(1.0, chance / (1 + math.sqrt(max(0.0, 1 - chance))))
    below = ad_limit(z)
    if z <= _FAR:
        return float(min(1.0, max(0.0, 1 - below - _correction(below, n))))
    # Beyond the precision of the series: the leading term of the tail (Zolotarev's theorem).
    limit = 1 - below if below < 1 - 1e-11 else math.sqrt(3) * erfc(math.sqrt(z))
    # Marsaglia's correction does not vanish in the tail. This one is fitted to simulations of 2 to 16 rows, down to
    # p = 1e-5.
    return float(min(1.0, limit * (1 + (0.178 * z - 0.2) / n)))


def ad_limit(z: float) -> float:
    r"""Limiting distribution function of A^2: the series of Anderson and Darling (1954).

    .. math::

       \frac{\sqrt{2 \pi}}{z} \sum_j \binom{-1/2}{j} (4j + 1) e^{-t_j}
       \int_0^\infty e^{z / (8 (w^2 + 1)) - t_j w^2} dw, \quad t_j = (4j + 1)^2 \pi^2 / (8 z)
    """
    if z <= 0.01:  # where it is below 1e-50
        return 0.0
    if z > 100:  # and here above 1 - 1e-43
        return 1.0
    step = 0.02
    x = np.arange(-500, 501) * step  # the trapezoidal rule is exact to rounding for such integrands
    total, coefficient = 0.0, 1.0
    for j in range(60):
        t = (4 * j + 1) ** 2 * math.pi**2 / (8 * z)
        integral = 0.5 * step * float(np.sum(np.exp(z / (8 * (x**2 / t + 1)) - x**2))) / math.sqrt(t)
        term = coefficient * (4 * j + 1) * math.exp(-t) * integral
        total += term
        if abs(term) < 1e-18:
            break
        coefficient *= -(0.5 + j) / (j + 1)
    return min(1.0, math.sqrt(2 * math.pi) / z * total)


def _correction(x: float, n: int) -> float:
    """Return the correction of the limit for n rows: Marsaglia & Marsaglia (2004), section 3."""
    if x > 0.8:
        return float(np.polyval([255.7844, -1116.360, 1950.646, -1705.091, 745.2337, -130.2137], x)) / n
    c = 0.01265 + 0.1757 / n
    if x < c:
        t = x / c
        return math.sqrt(t) * (1 - t) * (49 * t - 102) * (0.0037 / n**3 + 0.00078 / n**2 + 0.00006 / n)
    t = (x - c) / (0.8 - c)
    shape = float(np.polyval([1.91864, -8.259, 14.458, -14.6538, 6.54034, -0.00022633], t))
    return shape * (0.04213 / n + 0.01365 / n**2)


def kolmogorov_smirnov(u: Column) -> TestResult:
    """Kolmogorov-Smirnov test that PIT values are uniform: the largest distance to the diagonal.

    Parameters
    ----------
    u : column
        PIT values, in [0, 1]; see `pit`.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    anderson_darling, chi_square, pit

    Examples
    --------
    >>> result = kolmogorov_smirnov([0.1, 0.25, 0.4, 0.6, 0.7, 0.95])
    >>> round(result.statistic, 4), round(result.pvalue, 3)
    (0.1333, 0.999)
    """
    from scipy.stats import kstwo

    given, notes = read_pit(u)
    values = rising(given)
    share = np.arange(values.size + 1) / values.size
    statistic = float(max(np.max(share[1:] - values), np.max(values - share[:-1])))
    pvalue = float(np.clip(kstwo.sf(statistic, values.size), 0, 1))
    return TestResult(statistic, pvalue, "Kolmogorov-Smirnov", notes=notes)


def chi_square(
    u: Column,
    *,
    n_bins: int = 10,
    edges: Sequence[float] | None = None,
    n_resamples: int = 9999,
    random_state: RandomState = 0,
) -> TestResult:
    """Pearson's chi-squared test that PIT values are uniform, by their counts in bins.

    Parameters
    ----------
    u : column of PIT values
    n_bins : int, default=10
        Equally wide bins [b/B, (b+1)/B), the last one closed.
    edges : numbers between 0 and 1, optional
        Inner edges of other bins, rising; for example the levels of quantile forecasts, which need no random numbers.
    n_resamples, random_state
        Where fewer than 5 values are expected in a bin, `resampling_pvalue` is the p-value by resampling uniform
        values, and a note says so.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    anderson_darling, kolmogorov_smirnov, pit

    Examples
    --------
    >>> result = chi_square([0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.6, 0.65, 0.7, 0.95], n_bins=2)
    >>> round(result.statistic, 4), result.df
    (0.4, 1.0)
    """
    from scipy.special import chdtrc

    values, notes = read_pit(u)
    check_resample_count(n_resamples)
    inner = _inner_edges(n_bins, edges)
    chance = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    counts = np.bincount(np.searchsorted(inner, values, side="right"), minlength=chance.size)
    expected = values.size * chance
    statistic, df = float(np.sum((counts - expected) ** 2 / expected)), float(chance.size - 1)
    again = None
    if expected.min() < _FEW_EXPECTED:
        again = _resampled(statistic, values.size, chance, n_resamples, random_state)
        text = f"Fewer than {_FEW_EXPECTED} values are expected in a bin: use resampling_pvalue."
        notes += (Note("few_expected", 1, text),)
    return TestResult(
        statistic, float(chdtrc(df, statistic)), "chi-squared", df=df, resampling_pvalue=again, notes=notes
    )


def _inner_edges(n_bins: int, edges: Sequence[float] | None) -> Floats:
    if edges is None:
        check_count("n_bins", n_bins, _MOST_BINS)
        if n_bins < 2:
            raise InputError(f"n_bins must be at least 2; got {n_bins}.", argument="n_bins", value=n_bins)
        return np.arange(1, n_bins) / n_bins
    inner = as_levels(edges)[0]
    if inner.ndim != 1 or not inner.size or not (np.diff(np.concatenate([[0.0], inner, [1.0]])) > 0).all():
        raise InputError(f"edges must rise strictly between 0 and 1; got {edges!r}.", argument="edges", value=edges)
    return inner


def _resampled(statistic: float, size: int, chance: Floats, n_resamples: int, random_state: RandomState) -> float:
    """Return the p-value of the statistic by resampling counts of uniform values."""
    rng, beyond, expected = generator(random_state), 0, size * chance
    for first in range(0, n_resamples, _DRAWS_AT_ONCE):
        drawn = rng.multinomial(size, chance, size=min(_DRAWS_AT_ONCE, n_resamples - first))
        beyond += int(np.count_nonzero(((drawn - expected) ** 2 / expected).sum(axis=1) >= statistic * (1 - 1e-12)))
    return float((1 + beyond) / (1 + n_resamples))
