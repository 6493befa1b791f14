r"""Heterogeneity between groups: test, standard deviation, shrunken estimates and prediction interval.

Group g deviates by :math:`\mu + u_g`, where the :math:`u_g` vary with standard deviation :math:`\tau`. Everything
follows from the sums of residuals :math:`S_g` beside the common deviation. For each :math:`\tau` the statistic

.. math::

   U(\tau) = \sum_g w_g \left( S_g^2 - \mathrm{E}_\tau S_g^2 \right)

compares their squares with those expected. The test of equal groups is the upper tail of U(0), the estimate of
:math:`\tau` solves :math:`U(\tau) = 0`, and the limits of its interval solve for tail probabilities, as the Q profile
of meta-analysis (Viechtbauer, 2007) does for normal estimates. The tails are those of a gamma distribution with the
first three moments of U. `LogOddsShifts` has the exact moments of independent outcomes 0 and 1, so thousands of groups
of a few rows with rare events are valid; `MeanShifts` estimates moments from the sums of rows or clusters.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import Note
from calibrant._support.roots import find_root
from calibrant.results.group_differences import GroupEstimate, Heterogeneity
from calibrant.results.uncertainty import Estimate

FEWEST_GROUPS = 2


class Moments(NamedTuple):
    """The statistic U at a standard deviation between groups, and the mean deviation there.

    Attributes
    ----------
    excess, variance, third : float
        U less its expectation, and its second and third cumulant.
    mean, mean_variance : float
        The mean deviation of groups and the variance of its estimate.
    dispersion : float
        Mean square of standardised residuals of groups; about 1 if the standard deviation is right.
    expected : float
        Expectation of the weighted sum of squares.
    """

    excess: float
    variance: float
    third: float
    mean: float
    mean_variance: float
    dispersion: float
    expected: float


class GroupEffects(Protocol):
    """Sums of groups, from which heterogeneity follows.

    Attributes
    ----------
    size : int
        Number of groups with information.
    largest : float
        Largest standard deviation between groups that is looked for.
    unit : float
        A standard deviation that is small beside the noise of all groups.
    least_pvalue : float
        Lower bound of the p-value of equal groups.
    """

    size: int
    largest: float

    @property
    def unit(self) -> float: ...
    @property
    def least_pvalue(self) -> float: ...

    def moments(self, sd: float) -> Moments:
        """Return the moments of U."""

    def posterior(self, sd: float) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of the deviation of each group, given that between groups."""

    def separate(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return estimate and limits of each group from its own rows."""


def tails(moments: Moments) -> tuple[float, float]:
    """Return the probabilities of a U of at most, and of at least, the observed one.

    The reference is a gamma distribution with the same variance and skewness, or its mirror image. That of few groups
    must end where the sum of squares is 0: the lower tail is at least that of a gamma distribution of this sum.
    """
    from scipy.special import gammainc, gammaincc, ndtr

    if not moments.variance > 0:
        return math.nan, math.nan
    z, skewness = moments.excess / math.sqrt(moments.variance), moments.third / moments.variance**1.5
    if abs(skewness) < 1e-3:
        return float(ndtr(z)), float(ndtr(-z))
    shape = 4 / skewness**2
    x = max(shape + math.copysign(z, z * skewness) * math.sqrt(shape), 0.0)
    below, above = float(gammainc(shape, x)), float(gammaincc(shape, x))
    if skewness < 0:
        return above, below
    of_sum = moments.expected**2 / moments.variance
    total = max(moments.excess + moments.expected, 0.0) * moments.expected / moments.variance
    return max(below, float(gammainc(of_sum, total))), above


def estimate_heterogeneity(
    effects: GroupEffects,
    keys: Sequence[Any],
    *,
    name: str,
    test: str,
    level: float,
    unit: str = "1",
    notes: tuple[Note, ...] = (),
) -> Heterogeneity:
    """Return heterogeneity between groups; `keys` are the groups of the effects."""
    search = _Search(effects, level)
    if math.isnan(search.pvalue):
        note = Note("few_rows", effects.size, "Heterogeneity between groups needs groups of several rows.")
        return unknown_heterogeneity(name, test, level, effects.size, (*notes, note), unit)
    profile = search.profile()
    draws = [search.at(probability) for probability in (np.arange(_DRAWS) + 0.5) / _DRAWS]
    estimate, low, high = effects.separate(level)
    shrunken = _mixture(effects, draws, level)
    rows = zip(estimate.tolist(), low.tolist(), high.tolist(), *(each.tolist() for each in shrunken), strict=True)
    return Heterogeneity(
        name,
        test,
        search.pvalue,
        profile.sd,
        profile.low,
        profile.high,
        level,
        effects.size,
        common_mean(effects, profile.sd, level),
        *_new_group(effects, draws, level),
        {key: GroupEstimate(*row) for key, row in zip(keys, rows, strict=True)},
        unit,
        notes,
    )


def unknown_heterogeneity(
    name: str, test: str, level: float, n_groups: int, notes: tuple[Note, ...], unit: str = "1"
) -> Heterogeneity:
    """Return the result where heterogeneity cannot be estimated; notes say why."""
    nan = math.nan
    mean = Estimate("mean over groups", nan, nan, nan, nan, level, nan)
    return Heterogeneity(name, test, nan, nan, nan, nan, level, n_groups, mean, nan, nan, {}, unit, notes)


def random_effects_mean(effects: GroupEffects, name: str, level: float) -> Estimate:
    """Return the mean deviation of groups, such as few clusters of dependent rows, with its interval."""
    return replace(common_mean(effects, _Search(effects, level).estimate, level), name=name)


def common_mean(effects: GroupEffects, sd: float, level: float) -> Estimate:
    """Return the mean deviation of groups, with the interval of Hartung and Knapp.

    Its variance is that of the random-effects mean times the dispersion of the groups around it, if this is above 1;
    the quantile is Student's with one degree of freedom less than groups.
    """
    from scipy.special import stdtr, stdtrit

    found, df = effects.moments(sd), effects.size - 1.0
    error = math.sqrt(max(found.dispersion, 1.0) * found.mean_variance)
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    pvalue = float(2 * stdtr(df, -abs(found.mean) / error)) if error > 0 else math.nan
    return Estimate(
        "mean over groups", found.mean, error, found.mean - reach, found.mean + reach, level, df, 0.0, pvalue
    )


_FEWEST_FOR_NEW = 3
_DRAWS = 7  # standard deviations between groups over which shrunken estimates are averaged


class _Profile(NamedTuple):
    sd: float
    low: float
    high: float


class _Search:
    """Solves for standard deviations between groups; U is computed once for each."""

    def __init__(self, effects: GroupEffects, level: float) -> None:
        self._effects, self._miss = effects, 1 - level
        self._known: dict[float, Moments] = {}

    def moments(self, sd: float) -> Moments:
        if sd not in self._known:
            self._known[sd] = self._effects.moments(sd)
        return self._known[sd]

    @property
    def pvalue(self) -> float:
        """p-value of equal groups."""
        return self.upper(0.0)

    def upper(self, sd: float) -> float:
        """Return the probability of a U of at least the observed one."""
        found = tails(self.moments(sd))[1]
        return max(found, self._effects.least_pvalue) if sd == 0 and not math.isnan(found) else found

    def profile(self) -> _Profile:
        """Return the estimate and the limits of the standard deviation.

        At 0 all of the miss probability is above, so that the interval contains 0 if and only if the test does not
        reject; far from 0 half of it is.
        """

        def above(sd: float) -> float:
            return self.upper(sd) - self._miss * (1 - self._below_share(sd))

        def below(sd: float) -> float:
            return self._miss * self._below_share(sd) - tails(self.moments(sd))[0]

        sd = self.estimate
        return _Profile(sd, min(self._first(above), sd), max(self._first(below), sd))

    @property
    def estimate(self) -> float:
        """The standard deviation at which U is 0."""
        return min(self._first(lambda sd: -self.moments(sd).excess), self._effects.largest)

    def _below_share(self, sd: float) -> float:
        return 0.5 * (1 - math.exp(-((sd / self._effects.unit) ** 2)))

    def at(self, probability: float) -> float:
        """Return the standard deviation at a probability of its confidence distribution, given that it is positive."""
        probability = self.pvalue + (1 - self.pvalue) * probability
        return min(self._first(lambda sd: self.upper(sd) - probability), self._effects.largest)

    def _first(self, function: Callable[[float], float]) -> float:
        """Return where an increasing function becomes positive; 0 if it begins so, infinity beyond the largest."""
        if function(0.0) >= 0:
            return 0.0
        low, high, largest = 0.0, self._effects.unit, self._effects.largest
        while function(min(high, largest)) < 0:
            if high >= largest:
                return math.inf
            low, high = high, 2 * high
        return find_root(function, low, min(high, largest), xtol=1e-2 * self._effects.unit, rtol=1e-3)


def _mixture(effects: GroupEffects, draws: Sequence[float], level: float) -> tuple[Floats, Floats, Floats]:
    """Return shrunken estimates with limits, averaged over standard deviations: theirs is unknown too."""
    from scipy.special import ndtri

    means, squares = np.zeros(effects.size), np.zeros(effects.size)
    for sd in draws:
        mean, spread = effects.posterior(sd)
        means += mean / len(draws)
        squares += (mean**2 + spread**2) / len(draws)
    reach = float(ndtri((1 + level) / 2)) * np.sqrt(np.maximum(squares - means**2, 0.0))
    return means, means - reach, means + reach


def _new_group(effects: GroupEffects, draws: Sequence[float], level: float) -> tuple[float, float]:
    """Return the prediction interval of the deviation of a new group, averaged over standard deviations."""
    from scipy.special import stdtr

    if effects.size < _FEWEST_FOR_NEW:
        return math.nan, math.nan
    found = [effects.moments(sd) for sd in draws]
    centre = np.array([each.mean for each in found])
    spread = np.sqrt(
        [sd**2 + max(each.dispersion, 1.0) * each.mean_variance for sd, each in zip(draws, found, strict=True)]
    )
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        return math.nan, math.nan

    def limit(share: float) -> float:
        def miss(value: float) -> float:
            return float(np.mean(stdtr(effects.size - 2.0, (value - centre) / spread))) - share

        reach = float(np.abs(centre).max() + 1e3 * spread.max())
        return find_root(miss, -reach, reach, xtol=1e-6 * float(spread.max()))

    return limit((1 - level) / 2), limit((1 + level) / 2)


class Projection(NamedTuple):
    """Quadratic forms in sums of groups whose mean is fitted.

    The covariance is diag(variance) - A B A', with the columns A of the fitted parameters and the inverse B of their
    information.
    """

    weight: Floats
    variance: Floats
    columns: Floats
    inverse: Floats

    @property
    def loss(self) -> Floats:
        """What each variance loses because the parameters are fitted."""
        found: Floats = np.einsum("gi,ij,gj->g", self.columns, self.inverse, self.columns)
        return found

    def traces(self) -> tuple[float, float]:
        """Return tr M^2 and tr M^3 of the weighted covariance M."""
        scale, (b, c) = self.weight * self.variance, self._parts()
        inner, once, twice = c.T @ b, (c.T * scale) @ b, (c.T * scale**2) @ b
        square = np.sum(scale**2) - 2 * np.trace(once) + np.trace(inner @ inner)
        cube = np.sum(scale**3) - 3 * np.trace(twice) + 3 * np.trace(inner @ once) - np.trace(inner @ inner @ inner)
        return float(square), float(cube)

    def lost_traces(self) -> tuple[float, float]:
        """Return by how much tr M^2 and tr M^3 are smaller than with known parameters."""
        scale, (square, cube) = self.weight * self.variance, self.traces()
        return float(np.sum(scale**2)) - square, float(np.sum(scale**3)) - cube

    def _parts(self) -> tuple[Floats, Floats]:
        return self.weight[:, None] * (self.columns @ self.inverse), self.columns


class MeanShifts:
    r"""Heterogeneity of mean deviations: sums of residuals per group, whose variances are estimated.

    Parameters
    ----------
    total, scale : ndarray
        Of each group: the sum of residuals at a common deviation of 0, and its derivative by the deviation.
    powers : ndarray of shape (4, groups)
        Sums over the rows or clusters of each group of the first to fourth power of their residuals r, around the
        mean of all groups.
    scale_squares : ndarray
        Sums of :math:`a^2`, the squared parts of `scale`.

    Notes
    -----
    :math:`S_g^2 - \sum r^2` has expectation 0 if rows are independent and groups are equal, whatever the variances of
    rows are. The weights of groups do not depend on their own variances, with which their squares are correlated; they
    use the variance of all groups. The variance of U is the larger of both, with that of all groups or their own.
    """

    least_pvalue = 0.0

    def __init__(self, total: Floats, scale: Floats, powers: Floats, scale_squares: Floats) -> None:
        self.size, self._total, self._scale, self._scale_squares = total.size, total, scale, scale_squares
        first, self._squares, third, fourth = powers
        number = np.maximum(scale**2 / scale_squares, 1.0)  # of equal rows or clusters
        self._paired = paired = 1 - 1 / number
        around = np.maximum(self._squares - first**2 / number, 0.0)  # around the mean of the group
        several = float(np.sum(scale * paired))
        pooled = float(around.sum()) / several if several > 0 else math.nan
        self._variance = pooled * scale
        self._pairs = np.maximum(self._squares**2 - fourth, 0.0)  # expectation of the squared products of two rows
        self._third = float(third.sum() / scale.sum()) * scale
        own = np.divide(around, paired, out=np.zeros(total.size), where=paired > 0)
        self._degrees = number - 1 + _PRIOR_ROWS
        self._noise = ((number - 1) * own + _PRIOR_ROWS * self._variance) / self._degrees / scale**2
        information = float(np.sum(scale**2 * paired)) / pooled**2 if pooled > 0 else math.nan
        self.unit = (2 / information) ** 0.25 if information > 0 else 1.0
        self.largest = 10 * float(np.std(total / scale)) + 10 * self.unit

    def moments(self, sd: float) -> Moments:
        """Return the moments of U."""
        a, v, paired = self._scale, self._variance, self._paired
        if not v.min() > 0:
            return Moments(*[math.nan] * 7)
        variance = v + sd**2 * a**2
        weight = (a / variance) ** 2
        information = float(np.sum(a**2 / variance))
        mean = float(np.sum(a / variance * self._total) / information)
        residual = self._total - a * mean
        projection = Projection(weight, variance, a[:, None], np.array([[1 / information]]))
        between = (a**2 - self._scale_squares) * (sd**2 - 1 / information)
        excess = float(np.sum(weight * (residual**2 - self._squares - between)))
        pooled = float(np.sum(weight**2 * v**2 * paired))
        factor = max(float(np.sum(weight**2 * self._pairs)) / pooled, 1.0) if sd == 0 and pooled > 0 else 1.0
        square = 2 * factor * pooled + float(np.sum((weight * a * paired) ** 2 * (4 * sd**2 * v + 2 * sd**4 * a**2)))
        lost, lost_cube = projection.lost_traces()
        third = 8 * factor**1.5 * (float(np.sum(weight**3 * variance**3 * paired)) - lost_cube)
        third += 4 * float(np.sum(weight**3 * self._third**2 * paired))
        dispersion = float(np.sum(residual**2 / variance)) / (self.size - 1)
        found = max(square - 2 * lost, 0.05 * square)
        expected = float(np.sum(weight * (variance - a**2 / information)))
        return Moments(excess, found, max(third, 0.0), mean, 1 / information, dispersion, expected)

    def posterior(self, sd: float) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of the deviation of each group."""
        found = self.moments(sd)
        share = sd**2 / (sd**2 + self._noise)
        mean = share * self._total / self._scale + (1 - share) * found.mean
        certain = max(found.dispersion, 1.0) * found.mean_variance
        return mean, np.sqrt(share * self._noise + (1 - share) ** 2 * certain)

    def separate(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return estimate and limits of each group."""
        from scipy.special import stdtrit

        estimate = self._total / self._scale
        reach = stdtrit(self._degrees, (1 + level) / 2) * np.sqrt(self._noise)
        return estimate, estimate - reach, estimate + reach


_PRIOR_ROWS = 4.0  # rows (or clusters) that the variance of all groups counts as, beside those of a group
