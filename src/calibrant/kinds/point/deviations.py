"""Size of the deviation from calibration of point predictions and distributions, with bounds, against a margin."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints, power_of_two
from calibrant._support.formatting import line_html
from calibrant._support.plain_data import plain
from calibrant._support.roots import find_root
from calibrant.inference.estimates import FEWEST_EQUAL
from calibrant.inference.regression.distribution_components import merged_levels
from calibrant.inference.regression.point_components import BinSums
from calibrant.inference.residual_tests import box_moments, sum_covariance, sums_by_cluster

__all__ = ["Deviation", "bias_deviation", "coverage_deviation"]

_MOST_ROWS = 2**53  # that a table counts exactly
_MIN_BINS = 5
_MAX_RATIO = 1e6  # of the largest bound that is searched to the size of the noise
_SMALL_RATIO = 3.0  # of T to its expectation without bias, below which the noncentral F distribution is used too


@dataclass(frozen=True, repr=False)
class Deviation:
    """Size of the deviation from calibration, and the margin with which it is compared.

    Attributes
    ----------
    name, unit : str
        For point predictions the root mean square of the bias by bin, in standard deviations of the outcome. For
        distributions the mean absolute difference between the share of outcomes at or below a predicted quantile and
        its level.
    value : float
        The estimate; that of the bias is debiased.
    low, high : float
        One-sided bounds, each at level 1 - alpha: the interval has level 1 - 2 alpha. NaN where they do not exist.
    margin : float
    level : float
        Level of the interval.

    See Also
    --------
    OmnibusTest, RegressionDetails

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.normal(size=2000)
    >>> found = cb.evaluate(p + rng.normal(size=2000), cb.Point(p + 0.2)).equivalence
    >>> found.name, found.margin, found.within
    ('bias by bin', 0.05, False)
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    margin: float
    level: float

    @property
    def within(self) -> bool:
        """Whether the deviation is shown to lie within the margin: the upper bound is at most the margin."""
        return self.high <= self.margin

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), "within": self.within}

    def text(self) -> str:
        """Format the estimate with its interval and the margin.

        Returns
        -------
        str
            One phrase, such as "bias 0.1 (95 % CI 0.05 to 0.2), margin 0.5".
        """
        unit = f" {self.unit}" if self.unit else ""
        if math.isnan(self.value):
            return f"{self.name} unknown, margin {self.margin:g}{unit}"
        if math.isnan(self.high):
            return f"{self.name} {self.value:.2g}{unit} (no interval), margin {self.margin:g}"
        span = f"{100 * self.level:g} % CI {self.low:.2g} to {self.high:.2g}"
        return f"{self.name} {self.value:.2g}{unit} ({span}), margin {self.margin:g}"

    _repr_html_ = line_html

    def __repr__(self) -> str:
        return f"Deviation({self.text()})"

    def further_rows(self, rows: float) -> float:
        """Return about how many further rows bring the upper bound to the margin, given the number of rows.

        The bound decreases with the root of the number of rows. NaN where no rows are needed, no bound exists, or
        2**53 rows are too few.

        Parameters
        ----------
        rows : float
            Number of rows of the evaluation.

        Returns
        -------
        float
            Number of rows in addition to these.
        """
        if not self.high > self.margin:
            return math.nan
        more = rows * (min(self.high / self.margin, float(_MOST_ROWS)) ** 2 - 1)
        return more if more <= _MOST_ROWS else math.nan


def bias_deviation(sums: BinSums, spread: float, margin: float, alpha: float, distinct: int) -> Deviation:
    r"""Return the root mean square bias by bin, in standard deviations of the outcome, with bounds by inversion.

    T is the sum over bins of :math:`n_b d_b^2`, :math:`d_b` the mean error. With covariance C of these,
    :math:`M = n^{1/2} C n^{1/2}` and the true root mean square R,

    .. math::

       E T = \mathrm{tr} M + N R^2, \quad \mathrm{Var}\, T = 2 \mathrm{tr} M^2 + 4 v N R^2

    and T is about a multiple of an F variable with these moments (Patnaik, 1949). v is the larger of
    :math:`\mathrm{tr} M^2 / \mathrm{tr} M` and the variance in the direction of the observed errors. The upper bound
    solves :math:`P_R(T \le t) = \alpha P_0(T \le t)`, so it is never 0 by chance. It is at least the solution for a
    noncentral F variable, which is more precise where T is small.
    """
    name, unit = "bias by bin", "standard deviations of the outcome"

    def made(value: float, low: float, high: float) -> Deviation:
        value, low, high = (scale * each / spread for each in (value, low, high))
        return Deviation(name, unit, value, low, high, margin, 1 - 2 * alpha)

    if not spread > 0 or not sums.known:
        return Deviation(name, unit, math.nan, math.nan, math.nan, margin, 1 - 2 * alpha)
    total = float(sums.size.sum())
    root = np.sqrt(sums.size)
    scale = power_of_two(np.append(sums.error, np.sqrt(np.diag(sums.covariance))))
    scaled = root * sums.error / scale
    covariance = sums.covariance / scale**2 * np.outer(root, root)
    trace, df, nu = _moments(sums, covariance)
    statistic = float(scaled @ scaled)
    value = math.sqrt(max(statistic - trace, 0.0) / total)
    if not trace > 0:  # errors do not vary
        known = float(sums.effective.sum()) >= FEWEST_EQUAL - 1e-9
        return made(value, *((value, value) if known else (math.nan, math.nan)))
    if sums.limited or not (sums.are_given or len(sums) >= min(_MIN_BINS, distinct)):
        return made(value, math.nan, math.nan)
    along = float(scaled @ covariance @ scaled) / statistic if statistic > 0 else 0.0
    variance = max(trace / nu, along)

    def below(size: float) -> float:
        from scipy.special import fdtr

        mean = trace + total * size**2
        var = 2 * trace**2 / nu + 4 * variance * total * size**2
        return float(fdtr(2 * mean**2 / var, df, statistic / mean))

    def noncentral(size: float) -> float:
        from scipy.special import ncfdtr

        return float(ncfdtr(nu, df, total * size**2 * nu / trace, statistic / trace))

    unit_size = math.sqrt(trace / total)
    if statistic <= 1e-9 * trace:  # the limit of the ratio of both probabilities
        return made(value, 0.0, unit_size * math.sqrt(-2 * math.log(alpha) / nu))
    low, high = _invert(below, unit_size, alpha)
    if statistic < _SMALL_RATIO * trace:
        high = max(high, _invert(noncentral, unit_size, alpha)[1])
    return made(value, low, high)


def _moments(sums: BinSums, covariance: Floats) -> tuple[float, float, float]:
    """Return the trace of the covariance, its degrees of freedom, and the equivalent number of independent squares."""
    if sums.clusters is not None:
        trace, df, nu = box_moments(covariance, sums.clusters)
        return trace, nu * df, nu
    own = np.diag(covariance)
    trace = float(own.sum())
    if not trace > 0:
        return trace, math.nan, math.nan
    each = np.maximum(sums.effective - 1, 1.0) / (1 + 0.75 * sums.skewness**2)
    return trace, trace**2 / float(np.sum(own**2 / each)), trace**2 / float(own @ own)


def _invert(below: Callable[[float], float], unit: float, alpha: float) -> tuple[float, float]:
    """Return bounds of a size from the probability, decreasing in the size, of a statistic below the observed one."""
    first = below(0.0)

    def solve(probability: float) -> float:
        high = unit
        while below(high) > probability and high < _MAX_RATIO * unit:
            high *= 2
        return find_root(lambda size: below(size) - probability, 0.0, high, xtol=1e-6 * unit)

    low = 0.0 if first <= 1 - alpha else solve(1 - alpha)
    return low, solve(alpha * first) if first > 0 else 0.0


def coverage_deviation(u: Floats, forecast: Any, cluster: Ints | None, margin: float, alpha: float) -> Deviation:
    """Return the mean absolute coverage error over the levels of the forecast, with bounds.

    The upper bound adds to the estimate the normal quantile times the largest standard error that a mean of signed
    differences can have (signs that change at most once over the levels): the estimate exceeds such a mean, so the
    bound holds at every size. The lower bound subtracts a bound of the mean absolute noise.
    """
    from scipy.special import chdtri, stdtrit

    levels = _levels(forecast)
    name, k, n = "coverage error", levels.size, u.size
    labels = np.searchsorted(levels, u)
    share = np.cumsum(np.bincount(labels, minlength=k + 1))[:k] / n
    value = float(np.mean(np.abs(share - levels)))
    if cluster is None:
        m = n
        # Shares of 0 or 1 do not determine their own variance.
        used = share if share[0] > 0 and share[-1] < 1 else levels
        covariance = (np.minimum(used[:, None], used) - np.outer(used, used)) / max(n - 1, 1)
    else:
        cells = sums_by_cluster(cluster, labels, None, k + 1)
        m = len(cells)
        covariance = sum_covariance(np.cumsum(cells, axis=1)[:, :k] - cells.sum(axis=1, keepdims=True) * share) / n**2
    if m < 2:
        return Deviation(name, "", value, math.nan, math.nan, margin, 1 - 2 * alpha)
    signs = np.where(np.arange(k)[None, :] < np.arange(k + 1)[:, None], 1.0, -1.0)
    error = math.sqrt(float(np.max(np.einsum("ij,jk,ik->i", signs, covariance, signs)))) / k
    trace = float(np.trace(covariance))
    square = float(np.sum(covariance**2))
    nu = trace**2 / square if square > 0 else 1.0
    noise = math.sqrt(trace / k * float(chdtri(nu, alpha)) / nu)
    return Deviation(
        name,
        "",
        value,
        max(0.0, value - noise),
        min(1.0, value + float(stdtrit(m - 1, 1 - alpha)) * error),  # of a mean of differences of shares
        margin,
        1 - 2 * alpha,
    )


def _levels(forecast: Any) -> Floats:
    known: Floats | None = forecast.known_levels
    if known is None:
        return np.arange(1, 20) / 20
    return known if forecast.ensemble is None else merged_levels(known, 10**9)
