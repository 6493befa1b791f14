"""Is a deviation relevant? Limits of the log-odds error, and its equivalence test, by inversion."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from calibrant._support.typing import Floats
from calibrant.inference.components import fine_bins, information_cut, traces
from calibrant.inference.design import Design
from calibrant.inference.resampling import MIN_CLUSTERS
from calibrant.metrics import log_odds
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.tables.score_table import ScoreTable

__all__ = ["MIN_INFORMATION", "LogOddsDeviation", "PlannedBins", "chance_within", "information_needed"]

# Probability that T is at most a value, given its noncentrality.
Cdf: TypeAlias = Callable[[float, float], float]

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
        return information_cut(self.design, information_bins(self.design.information))

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
        for cdf, unit in self._distributions(bins, margin):
            found = max(found, _solve(cdf, value, alpha * cdf(value, 0.0), unit))
        return float(np.sqrt(found / total))

    def lower(self, alpha: float) -> float:
        """Lower limit that the error stays below with a probability of at most `alpha`; 0 where none is shown."""
        total = float(self.bins.information.sum())
        if total == 0:
            return 0.0
        value = _statistic(self.bins)
        ((cdf, unit),) = self._distributions(self.bins, None)
        if cdf(value, 0.0) < 1 - alpha:
            return 0.0
        return float(np.sqrt(_solve(cdf, value, 1 - alpha, unit) / total))

    def pvalue(self, margin: float) -> float:
        """p-value of the hypothesis that the error is at least the margin.

        1 where information is below 20, or effective clusters are fewer than 10.
        """
        total = float(self.bins.information.sum())
        if self.design.information < MIN_INFORMATION or self.design.effective_clusters < MIN_CLUSTERS:
            return 1.0
        value, edge = _statistic(self.bins), margin**2 * total
        chances = []
        for cdf, _ in self._distributions(self.bins, margin):
            at_zero = cdf(value, 0.0)
            chances.append(cdf(value, edge) / at_zero if at_zero > 0 else 1.0)
        return min(1.0, max(chances))

    def upper_over_fine_bins(self, alpha: float, margin: float) -> float:
        """Upper limit of the error over fine bins, which see errors that cancel in coarse ones; 0 without such bins."""
        fine = fine_bins(self.design)
        return 0.0 if fine is None else self._upper(fine, alpha, margin)

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

    def _distributions(self, bins: LogOddsBins, margin: float | None) -> list[tuple[Cdf, float]]:
        """Distribution functions of T, for the variances that count, each with the mean contribution of a bin to T."""
        matrices = [self._matrix(bins, d) for d in ([None] if margin is None else [None, margin, -margin])]
        return [(_distribution(m, self.design.degrees), float(np.trace(m)) / len(bins)) for m in matrices]

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
            if self.design.is_independent:
                self._matrices[key] = np.diag(bins.information / np.maximum(curvature, 1e-300))
            else:
                root = np.sqrt(bins.information) / np.maximum(curvature, 1e-300)
                clustered = self.design.n_clusters is not None
                covariance = self.design.covariance(bins, bins.error if clustered else at)
                self._matrices[key] = covariance * np.outer(root, root)
        return self._matrices[key]


def _statistic(bins: LogOddsBins) -> float:
    return float(np.sum(bins.information * bins.error**2))


def _distribution(matrix: Floats, degrees: float) -> Cdf:
    from scipy.special import chdtri, chndtr, fdtri, ncfdtr, ndtr

    if not np.isfinite(degrees) or degrees > _MANY:
        degrees = np.inf
    trace, squared = traces(matrix, degrees)
    if not squared > 0:
        return lambda value, centre: float(value >= centre)
    # Errors of clusters go the same way in all bins: the worst direction is that of the largest variance.
    scale = squared / trace if np.isinf(degrees) else max(float(np.linalg.eigvalsh(matrix)[-1]), squared / trace)
    nu = trace / scale
    # Rates that equal the scores would bound any error, but no calibrated model has them: T counts as at least `least`.
    many = np.isinf(degrees)
    least = scale * float(chdtri(nu, 1 - _HARDLY)) if many else trace * float(fdtri(nu, nu * degrees, _HARDLY))

    def cdf(value: float, centre: float) -> float:
        value = max(value, least)
        if many:
            found = float(chndtr(value / scale, nu, centre / scale))
        else:
            found = float(ncfdtr(nu, nu * degrees, centre / scale, value / trace))
        # Where the series of scipy end in NaN (large arguments), the normal distribution of the same moments.
        deviation = scale * np.sqrt(2 * nu + 4 * centre / scale)
        return found if not np.isnan(found) else float(ndtr((value - trace - centre) / deviation))

    return cdf


_MANY = 1e5  # degrees of freedom from which F is chi-squared


def _solve(cdf: Cdf, value: float, level: float, unit: float) -> float:
    """The noncentrality at which `value` has this probability; `unit` is the scale of both, that of weights."""
    from scipy.optimize import brentq

    def falling(centre: float) -> float:
        return cdf(value, centre) - level

    high = 4 * value + 60 * unit
    for _ in range(60):
        if falling(high) < 0:
            return float(brentq(falling, 0.0, high, xtol=1e-9 * (unit + value))) if falling(0.0) > 0 else 0.0
        high *= 4
    return float("inf")


@dataclass(frozen=True, eq=False)
class PlannedBins:
    """Bins of a calibrated model whose rows are not yet observed.

    Attributes
    ----------
    information : float
        Of each bin: V.
    skewness, kurtosis : ndarray
        Of each bin: the sums of p (1 - p) (1 - 2 p) and of p (1 - p) (1 - 6 p (1 - p)), divided by V. For rare events
        both are 1.
    """

    information: float
    skewness: Floats
    kurtosis: Floats

    def __len__(self) -> int:
        return self.skewness.size

    @classmethod
    def of(cls, scores: ScoreTable | float, information: float) -> "PlannedBins":
        """Bins of expected scores: of a table, as far as its ties allow, or of distinct scores near one value."""
        count = information_bins(information)
        if not isinstance(scores, ScoreTable):
            one = np.ones(count)
            return cls(information / count, (1 - 2 * scores) * one, (1 - 6 * scores * (1 - scores)) * one)
        bins = LogOddsBins(scores, EqualInformation(count)(scores).start)
        p, own = scores.score, log_odds.information(scores)
        third, fourth = (bins.total(own * factor) / bins.information for factor in (1 - 2 * p, 1 - 6 * p * (1 - p)))
        return cls(information / len(bins), third, fourth)

    @cached_property
    def _outcomes(self) -> tuple[Floats, Floats, Floats]:
        """Events of a typical bin with one score: their probabilities, V d^2, and V divided by the curvature at d."""
        from scipy.special import betaln, xlog1py

        p = max((1 - math.sqrt(float(np.mean(self.skewness**2)))) / 2, 1e-6)
        n, width = self.information / (p * (1 - p)), 12 * math.sqrt(self.information) + 12
        events = np.arange(max(math.floor(n * p - width), 0), min(math.floor(n), math.ceil(n * p + width)) + 1.0)
        chance = np.exp(
            events * math.log(p) + xlog1py(n - events, -p) - betaln(n - events + 1, events + 1) - math.log(n)
        )
        seen = np.clip(events, 0.5, n - 0.5)
        d = np.log(seen * (1 - p) / ((n - seen) * p))
        return chance / chance.sum(), self.information * d**2, self.information * n / (seen * (n - seen))

    def chance_below(self, value: float) -> float:
        """Probability that T is at most this, by a scaled chi-squared distribution.

        Log-odds are curved, so the mean and variance of T are above those of chi-squared, most where events are few.
        """
        from scipy.special import chdtr

        chance, statistic, _ = self._outcomes
        mean = float(chance @ statistic)
        variance = float(chance @ (statistic - mean) ** 2)
        return float(chdtr(len(self) * 2 * mean**2 / variance, value * 2 * mean / variance))

    def largest_within(self, margin: float, alpha: float) -> float:
        """The largest T with which an error is shown to lie within the margin, for the variances that count."""
        chance, _, spread = self._outcomes
        g, h = self.skewness, self.kurtosis
        moments = [(float(chance @ spread), float(chance @ spread**2))]
        for d in (margin, -margin):
            spread = np.exp((g**2 - h) * d**2 / 2 - g * d)  # V divided by the curvature at d
            moments.append((float(np.mean(spread)), float(np.mean(spread**2))))
        found = []
        for first, second in moments:
            scale = second / first
            whole = self.information * len(self) / scale
            found.append(scale * largest_within(whole, len(self) * first / scale, margin, alpha))
        return min(found)


def chance_within(scores: ScoreTable | float, information: float, margin: float, alpha: float) -> float:
    """Probability that a calibrated model is shown to lie within the margin.

    `scores` is a table of expected scores, or one typical score. Fine bins object to at most alpha / 4 of the
    calibrated models, and to none where information is large; that is left out.
    """
    bins = PlannedBins.of(scores, information)
    return bins.chance_below(bins.largest_within(margin, alpha))


def information_needed(
    margin: float, *, alpha: float = 0.05, power: float = 0.8, scores: ScoreTable | float = 0.0
) -> float:
    """Information with which a calibrated model is shown to lie within the margin with this probability.

    `scores` is a table of expected scores, or one typical score; 0 means rare events, which need the most.
    """
    from scipy.optimize import brentq

    def lacking(log_information: float) -> float:
        return power - chance_within(scores, float(np.exp(log_information)), margin, alpha)

    low = high = float(np.log(MIN_INFORMATION))
    while lacking(high) > 0:
        low, high = high, high + 0.5
    return float(np.exp(brentq(lacking, low, high, xtol=1e-4))) if high > low else MIN_INFORMATION


def largest_within(information: float, bins: float, margin: float, alpha: float) -> float:
    """The largest T with which an error is shown to lie within the margin; 0 where none is."""
    from scipy.optimize import brentq
    from scipy.special import chdtr, chdtri, chndtr

    edge = margin**2 * information

    def beyond(value: float) -> float:
        return float(chndtr(value, bins, edge) / chdtr(bins, value)) - alpha

    low, high = float(chdtri(bins, 1 - _HARDLY)), 2 * (edge + bins) + 100
    return float(brentq(beyond, low, high)) if beyond(low) < 0 else 0.0


_HARDLY = 1e-6  # smaller values of T are too rare to matter
