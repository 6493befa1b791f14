"""Is a deviation relevant? Limits of the log-odds error, and its equivalence test, by inversion."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant import log_odds
from calibrant._typing import Floats
from calibrant.bins import EqualInformation, information_bins
from calibrant.inference.components import bins_allowed, fine_bins, traces
from calibrant.inference.design import Design
from calibrant.log_odds import LogOddsBins

__all__ = ["MIN_INFORMATION", "LogOddsDeviation", "information_needed"]

# With less information no model is shown to lie within a margin.
MIN_INFORMATION = 20.0


@dataclass(frozen=True, eq=False)
class LogOddsDeviation:
    """The log-odds error of a design with its limits.

    T, the sum of V_b d_b^2 over bins, is a quadratic form in nearly normal log-odds errors: about a scaled noncentral
    chi-squared variable whose noncentrality is the information times the squared error (with clusters, a noncentral F).
    Limits are the errors under which T is neither too large nor too small.
    """

    design: Design

    @cached_property
    def bins(self) -> LogOddsBins:
        """Coarse bins of equal information, at most one per five clusters."""
        count = bins_allowed(self.design, information_bins(self.design.information))
        return LogOddsBins(self.design.table, EqualInformation(max(count, 1))(self.design.table).start)

    @cached_property
    def value(self) -> float:
        """The estimate, debiased."""
        return self._value(self.bins)

    def _value(self, bins: LogOddsBins) -> float:
        if self.design.n_clusters is None:
            return math.sqrt(log_odds.squared_error(bins))
        trace = float(np.trace(self._matrix(bins, None)))
        return float(np.sqrt(max(_statistic(bins) - trace, 0.0) / bins.information.sum()))

    def upper(self, alpha: float, margin: float | None = None) -> float:
        """Upper limit that the error exceeds with a probability of at most `alpha`; never 0 by luck.

        It solves P(T <= t) = alpha P_0(T <= t), where P_0 is the distribution of a calibrated model. The variance is
        taken at the estimate and, given a margin, at both of its ends; the largest limit counts.
        """
        return self._upper(self.bins, alpha, margin)

    def _upper(self, bins: LogOddsBins, alpha: float, margin: float | None) -> float:
        total = float(bins.information.sum())
        if total == 0:
            return float("inf")
        value, found = _statistic(bins), 0.0
        for cdf in self._distributions(bins, margin):
            found = max(found, _solve(cdf, value, alpha * cdf(value, 0.0)))
        return float(np.sqrt(found / total))

    def lower(self, alpha: float) -> float:
        """Lower limit that the error stays below with a probability of at most `alpha`; 0 where none is shown."""
        total = float(self.bins.information.sum())
        if total == 0:
            return 0.0
        value = _statistic(self.bins)
        (cdf,) = self._distributions(self.bins, None)
        if cdf(value, 0.0) < 1 - alpha:
            return 0.0
        return float(np.sqrt(_solve(cdf, value, 1 - alpha) / total))

    def pvalue(self, margin: float) -> float:
        """p-value of the hypothesis that the error is at least the margin; 1 where information is below 20."""
        total = float(self.bins.information.sum())
        if self.design.information < MIN_INFORMATION:
            return 1.0
        value, edge = _statistic(self.bins), margin**2 * total
        chances = []
        for cdf in self._distributions(self.bins, margin):
            at_zero = cdf(value, 0.0)
            chances.append(cdf(value, edge) / at_zero if at_zero > 0 else 1.0)
        return min(1.0, max(chances))

    def upper_over_fine_bins(self, alpha: float, margin: float) -> float:
        """Upper limit of the error over fine bins, which see errors that cancel in coarse ones; 0 without such bins."""
        start = fine_bins(self.design)
        return 0.0 if start is None else self._upper(LogOddsBins(self.design.table, start), alpha, margin)

    def null_quantiles(self, shares: Floats) -> Floats:
        """Quantiles of the estimate if the model is calibrated."""
        from scipy.special import chdtri

        total = float(self.bins.information.sum())
        if total == 0:
            return np.zeros(shares.size)
        trace, squared = traces(self._matrix(self.bins, 0.0), self.design.degrees)
        if not squared > 0:
            return np.zeros(shares.size)
        scale, nu = squared / trace, trace**2 / squared
        found: Floats = np.sqrt(np.maximum(scale * chdtri(nu, 1 - shares) - trace, 0.0) / total)
        return found

    def _distributions(self, bins: LogOddsBins, margin: float | None) -> list[Callable[[float, float], float]]:
        """Distribution functions of T, by the value and the noncentrality, for the variances that count."""
        places = [None] if margin is None else [None, margin, -margin]
        return [_distribution(self._matrix(bins, d), self.design.degrees) for d in places]

    @cached_property
    def _matrices(self) -> dict[tuple[int, float | None], Floats]:
        return {}

    def _matrix(self, bins: LogOddsBins, d: float | None) -> Floats:
        """Covariance of the log-odds errors of bins, times the root of their information on both sides.

        It is taken at the error `d`, or at the estimates; sums of clusters vary as the data show.
        """
        key = (len(bins), d)
        if key not in self._matrices:
            at = bins.error if d is None else d
            curvature = bins.curvature(at)
            root = np.sqrt(bins.information) / np.maximum(curvature, 1e-300)
            if self.design.is_independent:
                self._matrices[key] = np.diag(curvature * root**2)
            else:
                clustered = self.design.n_clusters is not None
                covariance = self.design.covariance(bins, bins.error if clustered else at)
                self._matrices[key] = covariance * np.outer(root, root)
        return self._matrices[key]


def _statistic(bins: LogOddsBins) -> float:
    return float(np.sum(bins.information * bins.error**2))


def _distribution(matrix: Floats, degrees: float) -> Callable[[float, float], float]:
    from scipy.special import chndtr, ncfdtr

    if not np.isfinite(degrees) or degrees > _MANY:
        degrees = np.inf
    trace, squared = traces(matrix, degrees)
    if not squared > 0:
        return lambda value, centre: float(value >= centre)
    # Errors of clusters go the same way in all bins: the worst direction is that of the largest variance.
    scale = squared / trace if np.isinf(degrees) else max(float(np.linalg.eigvalsh(matrix)[-1]), squared / trace)
    nu = trace / scale
    if np.isinf(degrees):
        return lambda value, centre: float(chndtr(value / scale, nu, centre / scale))
    return lambda value, centre: float(ncfdtr(nu, nu * degrees, centre / scale, value / trace))


_MANY = 1e5  # degrees of freedom from which F is chi-squared


def _solve(cdf: Callable[[float, float], float], value: float, level: float) -> float:
    """The noncentrality at which `value` has this probability."""
    from scipy.optimize import brentq

    def falling(centre: float) -> float:
        return cdf(value, centre) - level

    high = 4 * value + 60
    for _ in range(60):
        if falling(high) < 0:
            return float(brentq(falling, 0.0, high, xtol=1e-9 * (1 + value))) if falling(0.0) > 0 else 0.0
        high *= 4
    return float("inf")


def information_needed(margin: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Information with which a calibrated model is shown to lie within the margin with this probability."""
    from scipy.optimize import brentq
    from scipy.special import chdtr

    def lacking(log_information: float) -> float:
        information = float(np.exp(log_information))
        bins = information_bins(information)
        return power - float(chdtr(bins, largest_within(information, bins, margin, alpha)))

    low = high = float(np.log(MIN_INFORMATION))
    while lacking(high) > 0:
        low, high = high, high + 1.0
    return float(np.exp(brentq(lacking, low, high, xtol=1e-4))) if high > low else MIN_INFORMATION


def largest_within(information: float, bins: int, margin: float, alpha: float) -> float:
    """The largest T with which an error is shown to lie within the margin; 0 where none is."""
    from scipy.optimize import brentq
    from scipy.special import chdtr, chndtr

    edge = margin**2 * information

    def beyond(value: float) -> float:
        return float(chndtr(value, bins, edge) / chdtr(bins, value)) - alpha

    low, high = 0.01 * bins, 2 * (edge + bins) + 100
    return float(brentq(beyond, low, high)) if beyond(low) < 0 else 0.0
