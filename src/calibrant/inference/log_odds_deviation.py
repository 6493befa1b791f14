"""Confidence limits and equivalence test of the log-odds error, by inversion of its distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calibrant._support.cached_properties import cached_property
from calibrant._support.roots import find_root
from calibrant._support.typing import Floats
from calibrant.inference.design import Design
from calibrant.inference.resampling import MIN_CLUSTERS
from calibrant.inference.residual_tests import covariance_traces
from calibrant.inference.tails import noncentral_chi2_cdf
from calibrant.metrics import log_odds
from calibrant.metrics.log_odds import LogOddsBins

__all__ = ["MIN_INFORMATION", "SMALLEST_PROBABILITY", "LogOddsDeviation"]

# Probability that T is at most a value, given its noncentrality.
Cdf: TypeAlias = Callable[[float, float], float]

# With less information no model is shown to lie within a margin.
MIN_INFORMATION = 20.0
# Quantile below which values of T are replaced by it: rates that equal the scores would bound any error, but calibrated
# models do not have them.
SMALLEST_PROBABILITY = 1e-6
_NORMAL_DEGREES = 1e5  # degrees of freedom from which F is treated as chi-squared


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
        return self.design.coarse_bins

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
        """Return the upper limit, which the error exceeds with a probability of at most `alpha`.

        It solves P(T <= t) = alpha P_0(T <= t), where P_0 is the distribution of a calibrated model, so it is never 0
        by chance. The variance is taken at the estimate and, given a margin, at both of its ends; the largest limit is
        returned.
        """
        return self._upper(self.bins, alpha, margin)

    def _upper(self, bins: LogOddsBins, alpha: float, margin: float | None) -> float:
        total = float(bins.information.sum())
        if total == 0:
            return float("inf")
        value, found = _statistic(bins), 0.0
        for cdf, unit in self._distributions(bins, margin):
            found = max(found, _solve(cdf, value, alpha * cdf(value, 0.0), unit))
        return float(np.sqrt(found / total))

    def lower(self, alpha: float) -> float:
        """Return the lower limit, below which the error lies with a probability of at most `alpha`; 0 if none."""
        total = float(self.bins.information.sum())
        if total == 0:
            return 0.0
        value = _statistic(self.bins)
        ((cdf, unit),) = self._distributions(self.bins, None)
        if cdf(value, 0.0) < 1 - alpha:
            return 0.0
        return float(np.sqrt(_solve(cdf, value, 1 - alpha, unit) / total))

    def pvalue(self, margin: float) -> float:
        """Return the p-value of the hypothesis that the error is at least the margin.

        1 where information is below 20, or effective clusters are fewer than 10.
        """
        total = float(self.bins.information.sum())
        if self.design.information < MIN_INFORMATION or self.design.effective_clusters < MIN_CLUSTERS:
            return 1.0
        value, edge = _statistic(self.bins), margin**2 * total
        pvalues = []
        for cdf, _ in self._distributions(self.bins, margin):
            at_zero = cdf(value, 0.0)
            pvalues.append(cdf(value, edge) / at_zero if at_zero > 0 else 1.0)
        return min(1.0, max(pvalues))

    def upper_over_fine_bins(self, alpha: float, margin: float) -> float:
        """Return the upper limit over fine bins, which detect errors that cancel in coarse ones; 0 without them."""
        fine = self.design.fine_bins
        return 0.0 if fine is None else self._upper(fine, alpha, margin)

    def null_quantiles(self, shares: Floats) -> Floats:
        """Return quantiles of the estimate if the model is calibrated."""
        from scipy.special import chdtri

        total = float(self.bins.information.sum())
        if total == 0:
            return np.zeros(shares.size)
        trace, squared = covariance_traces(self._matrix(self.bins, 0.0), self.design.degrees)
        if not squared > 0:
            return np.zeros(shares.size)
        scale, nu = squared / trace, trace**2 / squared
        found: Floats = np.sqrt(np.maximum(scale * chdtri(nu, 1 - shares) - trace, 0.0) / total)
        return found

    def _distributions(self, bins: LogOddsBins, margin: float | None) -> list[tuple[Cdf, float]]:
        """Return distribution functions of T, one per variance, each with the mean contribution of a bin to T."""
        matrices = [self._matrix(bins, d) for d in ([None] if margin is None else [None, margin, -margin])]
        return [(_distribution(m, self.design.degrees), float(np.trace(m)) / len(bins)) for m in matrices]

    @cached_property
    def _matrices(self) -> dict[tuple[int, float | None], Floats]:
        return {}

    def _matrix(self, bins: LogOddsBins, d: float | None) -> Floats:
        """Return the covariance of the log-odds errors of bins, times the root of their information on both sides.

        It is taken at the error `d`, or at the estimates; with clusters always at the estimates.
        """
        key = (len(bins), d)
        if key not in self._matrices:
            curvature = bins.fitted_curvature if d is None else bins.curvature(d)
            if self.design.is_independent:
                self._matrices[key] = np.diag(bins.information / np.maximum(curvature, 1e-300))
            else:
                root = np.sqrt(bins.information) / np.maximum(curvature, 1e-300)
                clustered = self.design.n_clusters is not None
                covariance = self.design.covariance(bins, None if clustered else d)
                self._matrices[key] = covariance * np.outer(root, root)
        return self._matrices[key]


def _statistic(bins: LogOddsBins) -> float:
    return float(np.sum(bins.information * bins.error**2))


def _distribution(matrix: Floats, degrees: float) -> Cdf:
    from scipy.special import chdtri, fdtri, ncfdtr, ndtr

    if not np.isfinite(degrees) or degrees > _NORMAL_DEGREES:
        degrees = np.inf
    trace, squared = covariance_traces(matrix, degrees)
    if not squared > 0:
        return lambda value, centre: float(value >= centre)
    # Errors of clusters have the same sign in all bins: the largest variance bounds all directions.
    scale = squared / trace if np.isinf(degrees) else max(float(np.linalg.eigvalsh(matrix)[-1]), squared / trace)
    nu = trace / scale
    known = np.isinf(degrees)
    if known:
        least = scale * float(chdtri(nu, 1 - SMALLEST_PROBABILITY))
    else:
        least = trace * float(fdtri(nu, nu * degrees, SMALLEST_PROBABILITY))

    def cdf(value: float, centre: float) -> float:
        value = max(value, least)
        if known:
            found = noncentral_chi2_cdf(value / scale, nu, centre / scale)
        else:
            found = float(ncfdtr(nu, nu * degrees, centre / scale, value / trace))
        if not math.isnan(found):
            return found
        # For large arguments scipy returns NaN: use the normal distribution with the same moments.
        return float(ndtr((value - trace - centre) / (scale * np.sqrt(2 * nu + 4 * centre / scale))))

    return cdf


def _solve(cdf: Cdf, value: float, level: float, unit: float) -> float:
    """Return the noncentrality at which `value` has this probability; `unit` is the scale of both."""

    def falling(centre: float) -> float:
        return cdf(value, centre) - level

    high = 4 * value + 60 * unit
    for _ in range(60):
        if falling(high) < 0:
            return find_root(falling, 0.0, high, xtol=1e-9 * (unit + value)) if falling(0.0) > 0 else 0.0
        high *= 4
    return float("inf")
