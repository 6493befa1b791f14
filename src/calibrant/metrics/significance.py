"""Statistical tests of one hypothesis, "the probability of the event is p", given k events in n rows.

Each test is a function ``test(k, n, p)`` of arrays (broadcast against each other) that returns p-values; `weighted`
takes sums of importance weights and of their squares. All tests agree at the borders: p = 0 with k = 0 and p = 1 with
k = n have the p-value 1, an event with p = 0 or its absence with p = 1 has the p-value 0.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import InputError, wrong_value
from calibrant.metrics.metric import declare

__all__ = ["Test", "bayes", "binomial", "clopper_pearson", "score", "t", "weighted"]

Test: TypeAlias = Callable[[ArrayLike, ArrayLike, ArrayLike], Floats]

# Tolerance with which an effective number of rows equals 1.
_ROUNDING = 1e-9
# Relative distance from a critical value below which the p-value decides; quantiles are accurate to less.
_CLOSE = 1e-6


@declare(exact_binomial=True)
def binomial(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Exact binomial test, two-sided: the probability of all outcomes that are at most as probable as k.

    The p-values are bitwise identical to those of `scipy.stats.binomtest`. Outcomes whose probability differs from that
    of k by a relative 1e-7 or less count as equally probable. k and n must be whole numbers.

    Parameters
    ----------
    k, n, p : array_like
        Number of events, number of rows and hypothetical probability; they are broadcast.

    Returns
    -------
    ndarray
        p-values in [0, 1].

    See Also
    --------
    score, t, clopper_pearson, RejectionRate

    Examples
    --------
    >>> binomial([1, 5], [30, 10], [0.17, 0.5]).round(4)
    array([0.0491, 1.    ])
    """
    from calibrant._kernels.scipy_binomial import binomial_pvalue

    k, n, p = _arguments(k, n, p)
    if (k != np.rint(k)).any() or (n != np.rint(n)).any():
        raise InputError(
            "k and n must be whole numbers for the exact binomial test; got fractions.",
            hint="With importance weights use calibrant.significance.weighted.",
            argument="k",
        )
    flat = [np.ravel(a) for a in (k, n, p)]
    pvalue = binomial_pvalue(flat[0].astype(np.int64), flat[1].astype(np.int64), flat[2])
    return pvalue.reshape(p.shape)


def t(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """One-sample t-test of the mean outcome against p, two-sided, with n - 1 degrees of freedom.

    The standard deviation is sqrt(n/(n-1) r (1-r)), r = k/n. (The code of the TCE paper omits the root; therefore its
    Table 11 finds the t-test far worse than the binomial one.) If all outcomes are equal, the p-value is 1 if p equals
    them, else 0. With n = 1 the variance is unknown, and the p-value is 1.

    Parameters
    ----------
    k, n, p : array_like
        Number of events, number of rows and hypothetical probability; they are broadcast.

    Returns
    -------
    ndarray
        p-values in [0, 1].

    See Also
    --------
    binomial, score

    Examples
    --------
    >>> t([3, 6], 10, 0.5).round(4)
    array([0.2229, 0.5554])
    """
    from scipy.special import stdtr

    k, n, p = _arguments(k, n, p)
    rate = k / n
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(rate - p) * np.sqrt((n - 1) / (rate * (1 - rate)))
        pvalue = 2 * stdtr(n - 1, -statistic)
    constant = (k == 0) | (k == n)
    pvalue = np.where(constant, rate == p, pvalue)
    return _at_borders(np.where(n <= 1, 1.0, pvalue), k, n, p)


def score(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Rao's score test, two-sided: (k - n p) / sqrt(n p (1-p)) against the normal distribution.

    The test behind Wilson's interval. k and n may be real, such as effective sizes of weighted rows.

    Parameters
    ----------
    k, n, p : array_like
        Number of events, number of rows and hypothetical probability; they are broadcast.

    Returns
    -------
    ndarray
        p-values in [0, 1].

    See Also
    --------
    binomial, weighted

    Examples
    --------
    >>> score([3, 6], 10, 0.5).round(4)
    array([0.2059, 0.5271])
    """
    from scipy.special import ndtr

    k, n, p = _arguments(k, n, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = k * (1 - p) - (n - k) * p  # k - n p, exact near both ends
        pvalue = 2 * ndtr(-np.abs(gap) / np.sqrt(n * p * (1 - p)))
    return _at_borders(pvalue, k, n, p)


def weighted(k: ArrayLike, n: ArrayLike, p: ArrayLike, *, w2: ArrayLike, k2: ArrayLike) -> Floats:
    r"""Test of a weighted event rate against p, two-sided, with a variance that is robust to the weights.

    .. math::

       z = \frac{\sum w y - p \sum w}{\sqrt{V}}, \qquad
       V = \max\left(\sum w^2 (y - p)^2, \; V_0\right), \qquad
       V_0 = p (1 - p) \sum w \, \{(1 - p) \bar w_1 + p \bar w_0\}

    against Student's t with :math:`(\sum w)^2 / \sum w^2 - 1` degrees of freedom, the effective number of rows less 1.
    With one effective row the variance is unknown, and the p-value is 1.

    Parameters
    ----------
    k, n : array_like
        Sums of w y and of w.
    p : array_like
        Probability of the event under the hypothesis.
    w2, k2 : array_like
        Sums of w^2 and of w^2 y.

    Returns
    -------
    ndarray
        p-values in [0, 1].

    See Also
    --------
    score, binomial

    Notes
    -----
    The first variance is k2 (1 - p)^2 + (w2 - k2) p^2. It holds for weights that depend on the outcome, but it is too
    small if few rows have the event: without any event z would not depend on p. V_0 bounds it from below. It is the
    variance that p implies, with the mean weights of rows with and without the event, :math:`\bar w_1` = k2 / k and
    :math:`\bar w_0` = (w2 - k2) / (n - k) (w2 / n where there is no such row).
    Equal weights give the variance of `score`, or a larger one. Simulations with 50 to 5,000 rows, event rates of 0.2
    to 50 % and weights that do or do not depend on the outcome rejected a true p at 5 % in 0 to 10 % of replicates,
    except for thinned events of which about one remains (36 %).

    Examples
    --------
    >>> weighted([6.0, 12.0], [20.0, 20.0], 0.5, w2=[40.0, 40.0], k2=[12.0, 24.0]).round(4)
    array([0.2377, 0.5428])
    """
    from scipy.special import stdtr

    k, n, p = _arguments(k, n, p)
    w2, k2 = (np.broadcast_to(np.asarray(a, dtype=np.float64), p.shape) for a in (w2, k2))
    if not ((k2 >= 0) & (k2 <= w2) & (w2 > 0)).all():
        raise InputError("k2 and w2 must satisfy 0 <= k2 <= w2 and w2 > 0; got other values.", argument="k2")
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = k * (1 - p) - (n - k) * p
        variance = _weighted_variance(n, w2, k2, *_mean_weights(k, n, w2, k2), p)
        degrees = n**2 / w2 - 1
        pvalue = np.where(degrees > _ROUNDING, 2 * stdtr(degrees, -np.abs(gap) / np.sqrt(variance)), 1.0)
    return _at_borders(pvalue, k, n, p)


def weighted_decisions(sums: tuple[Floats, Floats, Floats, Floats], bins: Ints, p: Floats, alpha: float) -> Bools:
    """Return whether `weighted` rejects each p at alpha, given the sums (k, n, w2, k2) of bins and the bin of each p.

    One critical value of Student's t per bin decides. A p that lies close to it, or at 0 or 1, gets its p-value.
    """
    from scipy.special import stdtrit

    k, n, w2, k2 = sums
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        degrees = n**2 / w2 - 1
        critical = np.where(degrees > _ROUNDING, stdtrit(np.maximum(degrees, _ROUNDING), 1 - alpha / 2), np.inf) ** 2
        of_events, of_others = _mean_weights(k, n, w2, k2)
        square = (k[bins] * (1 - p) - (n - k)[bins] * p) ** 2
        variance = _weighted_variance(n[bins], w2[bins], k2[bins], of_events[bins], of_others[bins], p)
        limit = critical[bins] * variance
        close = ~(np.abs(square - limit) > _CLOSE * limit) | (p == 0) | (p == 1)
    rejected: Bools = square >= limit
    if close.any():
        at = bins[close]
        rejected[close] = weighted(k[at], n[at], p[close], w2=w2[at], k2=k2[at]) <= alpha
    return rejected


def _mean_weights(k: Floats, n: Floats, w2: Floats, k2: Floats) -> tuple[Floats, Floats]:
    """Return the mean weights of rows with and without the event, where there is such a row."""
    return np.where(k > 0, k2 / k, w2 / n), np.where(k < n, (w2 - k2) / (n - k), w2 / n)


def _weighted_variance(n: Floats, w2: Floats, k2: Floats, of_events: Floats, of_others: Floats, p: Floats) -> Floats:
    q = 1 - p
    return np.maximum(k2 * q**2 + (w2 - k2) * p**2, n * p * q * (q * of_events + p * of_others))


def bayes(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Twice the smaller posterior tail beyond p, under Jeffreys' prior: theta ~ Beta(k + 1/2, n - k + 1/2).

    p is rejected at alpha exactly if it lies outside Jeffreys' 1 - alpha interval. As in that interval, with k = 0 only
    the upper tail is used, and with k = n only the lower one.

    Parameters
    ----------
    k, n, p : array_like
        Number of events, number of rows and hypothetical probability; they are broadcast.

    Returns
    -------
    ndarray
        p-values in [0, 1].

    See Also
    --------
    binomial

    Examples
    --------
    >>> bayes([3, 6], 10, 0.5).round(4)
    array([0.204 , 0.5297])
    """
    from scipy.special import betainc, betaincc

    k, n, p = _arguments(k, n, p)
    below, above = betainc(k + 0.5, n - k + 0.5, p), betaincc(k + 0.5, n - k + 0.5, p)
    tail = np.where(k == 0, above, np.where(k == n, below, np.minimum(below, above)))
    return _at_borders(np.minimum(1.0, 2 * tail), k, n, p)


def clopper_pearson(k: ArrayLike, n: ArrayLike, *, confidence_level: float = 0.95) -> tuple[Floats, Floats]:
    """Exact confidence interval of an event rate, given k events in n rows.

    Clopper and Pearson (1934); the limits of ``scipy.stats.binomtest(k, n).proportion_ci()``. k and n may be real, such
    as effective sizes of weighted rows. The coverage is at least the confidence level, and each tail has at most half
    of the error rate. A probability outside the interval may therefore have a p-value of `binomial` slightly above 5 %,
    and the other way round.

    Parameters
    ----------
    k, n : array_like
        Number of events and number of rows.
    confidence_level : float, default=0.95
        Confidence level.

    Returns
    -------
    low, high : ndarray
        Limits of the intervals.

    See Also
    --------
    binomial

    Examples
    --------
    >>> low, high = clopper_pearson([0, 3], 10)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.0667]), array([0.3085, 0.6525]))
    """
    from scipy.special import betaincinv

    if not 0 < confidence_level < 1:
        raise wrong_value("confidence_level", "must lie between 0 and 1", confidence_level)
    k, n, _ = _arguments(k, n, 0.5)
    tail = (1 - confidence_level) / 2
    with np.errstate(invalid="ignore"):  # at the ends, where the beta distribution does not exist
        low = np.where(k == 0, 0.0, betaincinv(np.maximum(k, 1e-300), n - k + 1, tail))
        high = np.where(k == n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - tail))
    return low, high


def _arguments(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> tuple[Floats, Floats, Floats]:
    if any(np.ma.is_masked(a) for a in (k, n, p)):
        raise InputError("k, n and p must not have masked cells; got some.", hint="Drop them first.")
    k, n, p = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (k, n, p)))
    if not (((k >= 0) & (k <= n) & (n > 0) & (n <= 2**53) & (p >= 0) & (p <= 1)).all()):
        raise InputError("k, n and p must satisfy 0 <= k <= n, 0 < n <= 2**53 and 0 <= p <= 1; got other values.")
    return k, n, p


def _at_borders(pvalue: Floats, k: Floats, n: Floats, p: Floats) -> Floats:
    certain = np.where(p == 0, k == 0, k == n)
    return np.where((p == 0) | (p == 1), certain, pvalue).astype(np.float64)
