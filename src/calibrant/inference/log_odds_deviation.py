"""Confidence limits and equivalence test of the log-odds error, by inversion of its distribution."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtr, chdtri, fdtri, ncfdtr, ndtr

from calibrant._support.arrays import Floats, read_only
from calibrant._support.lazy import cached_property
from calibrant._support.roots import find_root
from calibrant.inference.design import Design
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.inference.residual_tests import covariance_traces
from calibrant.inference.tails import noncentral_chi2_cdf
from calibrant.metrics import log_odds
from calibrant.metrics.log_odds import LogOddsBins

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
        bins, total = self.bins, float(self.bins.information.sum())
        if self.design.n_clusters is None or total == 0:
            return math.sqrt(log_odds.squared_error(bins))
        trace = float(np.trace(self._matrix(bins, None)))
        return math.sqrt(max(_statistic(bins) - trace, 0.0) / total)

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
        found = max(each.centre(alpha * each.cdf(0.0)) for each in self._distributions(bins, margin))
        return math.sqrt(found / total)

    def lower(self, alpha: float) -> float:
        """Return the lower limit, below which the error lies with a probability of at most `alpha`; 0 if none."""
        total = float(self.bins.information.sum())
        if total == 0:
            return 0.0
        (known,) = self._distributions(self.bins, None)
        if known.cdf(0.0) < 1 - alpha:
            return 0.0
        return math.sqrt(known.centre(1 - alpha) / total)

    def pvalue(self, margin: float) -> float:
        """Return the p-value of the hypothesis that the error is at least the margin.

        1 where information is below 20, or effective clusters are fewer than 10.
        """
        total = float(self.bins.information.sum())
        if self.design.information < MIN_INFORMATION or self.design.effective_clusters < MIN_CLUSTERS:
            return 1.0
        edge = margin**2 * total
        cdfs = [each.cdf for each in self._distributions(self.bins, margin)]
        return min(1.0, max(cdf(edge) / cdf(0.0) if cdf(0.0) > 0 else 1.0 for cdf in cdfs))

    def upper_over_fine_bins(self, alpha: float, margin: float) -> float:
        """Return the upper limit over fine bins, which detect errors that cancel in coarse ones; 0 without them."""
        fine = self.design.fine_bins
        return 0.0 if fine is None else self._upper(fine, alpha, margin)

    def null_quantiles(self, shares: Floats) -> Floats:
        """Return quantiles of the estimate if the model is calibrated."""
        total = float(self.bins.information.sum())
        if total == 0:
            return np.zeros(shares.size)
        trace, squared = covariance_traces(self._matrix(self.bins, 0.0), self.design.degrees)
        if not squared > 0:
            return np.zeros(shares.size)
        scale, nu = squared / trace, trace**2 / squared
        quantiles = _chi2_quantiles(nu, tuple(shares.tolist()))
        found: Floats = np.sqrt(np.maximum(scale * quantiles - trace, 0.0) / total)
        return found

    def _distributions(self, bins: LogOddsBins, margin: float | None) -> list["_Distribution"]:
        """Return the distributions of T, one per variance."""
        found = self._known_distributions
        keys = [(len(bins), d) for d in ((None,) if margin is None else (None, margin, -margin))]
        for key in keys:
            if key not in found:
                found[key] = _Distribution(self._matrix(bins, key[1]), self.design.degrees, _statistic(bins))
        return [found[key] for key in keys]

    @cached_property
    def _known_distributions(self) -> dict[tuple[int, float | None], "_Distribution"]:
        return {}

    def _matrix(self, bins: LogOddsBins, d: float | None) -> Floats:
        """Return the covariance of the log-odds errors of bins, times the root of their information on both sides.

        It is taken at the error `d`, or at the estimates; with clusters always at the estimates.
        """
        curvature = bins.fitted_curvature if d is None else bins.curvature(d)
        if self.design.is_independent:
            return np.diag(bins.information / np.maximum(curvature, 1e-300))
        root = np.sqrt(bins.information) / np.maximum(curvature, 1e-300)
        clustered = self.design.n_clusters is not None
        found: Floats = self.design.covariance(bins, None if clustered else d) * np.outer(root, root)
        return found


@lru_cache(maxsize=64)
def _chi2_quantiles(degrees: float, shares: tuple[float, ...]) -> Floats:
    """Return quantiles of a chi-squared variable; independent groups with equally many bins share them."""
    found: Floats = read_only(chdtri(degrees, 1 - np.array(shares)))
    return found


def _statistic(bins: LogOddsBins) -> float:
    return float(np.sum(bins.information * bins.error**2))


class _Distribution:
    """The distribution of T if the log-odds errors have this covariance, at the observed value of T.

    `unit` is the mean contribution of a bin to T.
    """

    def __init__(self, matrix: Floats, degrees: float, value: float) -> None:
        self.value, self.unit = value, float(matrix.trace()) / len(matrix)
        self._degrees = degrees if degrees <= _NORMAL_DEGREES else math.inf
        self._trace, squared = covariance_traces(matrix, self._degrees)
        self._known: dict[float, float] = {}
        self._scale = squared / self._trace if squared > 0 else 0.0
        if not squared > 0:
            return
        if math.isfinite(self._degrees):  # errors of clusters have the same sign: the largest variance bounds all
            self._scale = max(float(np.linalg.eigvalsh(matrix)[-1]), self._scale)
        self._nu = self._trace / self._scale
        self._bounded = max(value, self._least())

    def _least(self) -> float:
        """Return the quantile of T that replaces smaller values; 0 where T is surely larger."""
        nu, degrees = self._nu, self._degrees
        if math.isfinite(degrees):
            return self._trace * float(fdtri(nu, nu * degrees, SMALLEST_PROBABILITY))
        # The quantile takes as long as ten probabilities.
        if chdtr(nu, self.value / self._scale) > 2 * SMALLEST_PROBABILITY:
            return 0.0
        return self._scale * float(chdtri(nu, 1 - SMALLEST_PROBABILITY))

    def cdf(self, centre: float) -> float:
        """Return the probability that T is at most its observed value, given its noncentrality."""
        if centre not in self._known:
            self._known[centre] = self._cdf(centre) if self._scale > 0 else float(self.value >= centre)
        return self._known[centre]

    def _cdf(self, centre: float) -> float:
        value, scale, nu, degrees = self._bounded, self._scale, self._nu, self._degrees
        if math.isfinite(degrees):
            found = float(ncfdtr(nu, nu * degrees, centre / scale, value / self._trace))
        else:
            found = noncentral_chi2_cdf(value / scale, nu, centre / scale)
        if not math.isnan(found):
            return found
        # For large arguments scipy returns NaN: use the normal distribution with the same moments.
        return float(ndtr((value - self._trace - centre) / (scale * math.sqrt(2 * nu + 4 * centre / scale))))

    def centre(self, level: float) -> float:
        """Return the noncentrality at which the observed value of T has this probability."""

        def falling(centre: float) -> float:
            return self.cdf(centre) - level

        high = 4 * self.value + 60 * self.unit
        for _ in range(60):
            if falling(high) < 0:
                tolerance = 1e-9 * (self.unit + self.value)
                return find_root(falling, 0.0, high, xtol=tolerance) if falling(0.0) > 0 else 0.0
            high *= 4
        return float("inf")
