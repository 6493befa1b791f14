"""Limits of the class-wise log-odds error by inversion, and its equivalence test."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Bools, Floats
from calibrant._support.lazy import cached_property
from calibrant._support.roots import find_root
from calibrant.inference.residual_tests import covariance_traces
from calibrant.kinds.multiclass.components import Cells

# Values of U below its quantile at this probability count as equal to the quantile.
_LEAST_PROBABILITY = 1e-6
_TINY = 1e-300  # keeps denominators positive
# Up to this margin the curvature of the log-odds is taken into account.
_SMALL_MARGIN = 0.5


@dataclass(frozen=True, eq=False)
class ClasswiseDeviation:
    """The class-wise log-odds error of cells with its limits.

    The squared error is the mean of d^2 over the bins of all classes, weighted by a V^2 (about the information V), and
    U, the sum of a (r^2 - s), is an estimate of that sum without bias, since r is about V d. Bins of classes that are
    shown to be miscalibrated enter with their exact log-odds errors. U is a quadratic form: limits are the errors under
    which it is neither too large nor too small. Its variance is 2 tr(M^2) + 4 L lambda, where lambda is the expectation
    of U and L bounds the eigenvalues of the normalized covariance M: residuals of several classes depend on each other.

    Attributes
    ----------
    cells : Cells
    exact : ndarray of bool
        The classes shown to be miscalibrated.
    largest : float
        L. Independent rows of equal weight have at most 2 (the circles of Gershgorin), which two classes reach.
    """

    cells: Cells
    exact: Bools
    largest: float = 2.0

    @cached_property
    def information(self) -> float:
        """Sum of a V^2, the weight of the mean."""
        return float(np.sum(self._weight))

    @property
    def _weight(self) -> Floats:
        found: Floats = self.cells.scale * self.cells.bins.information**2
        return found

    @cached_property
    def form(self) -> float:
        """The estimate of the sum of a V^2 d^2."""
        cells, bins = self.cells, self.cells.bins
        noise, chance = bins.observed, bins.chance
        if cells.clusters is not None:
            noise = np.maximum(np.diag(cells.matrix) / np.maximum(cells.scale, _TINY), bins.variance)
            chance = chance * noise / np.maximum(bins.variance, _TINY)
        squares = np.where(self.exact[cells.owner], bins.error - chance, bins.residual**2 - noise)
        return float(np.sum(cells.scale * squares))

    @cached_property
    def value(self) -> float:
        """The estimate of the error; where all probabilities are 0 or 1 it is 0, or infinite."""
        if self.information > 0:
            return math.sqrt(max(self.form, 0.0) / self.information)
        return 0.0 if np.all(self.cells.bins.residual == 0) else math.inf

    @cached_property
    def _shape(self) -> tuple[float, float, float]:
        """If calibrated: mean and variance of a chi-squared variable that U is the deviation of; and L."""
        cells = self.cells
        mean, variance = cells.moments
        own = np.bincount(cells.owner, cells.scale * cells.bins.variance) / np.maximum(np.bincount(cells.owner), 1)
        largest = self.largest * float(own.max())  # weights make variances differ from information
        if cells.clusters is None:
            return mean, variance, largest
        trace, squared = covariance_traces(cells.matrix, cells.degrees)
        largest = max(largest, float(np.linalg.eigvalsh(cells.matrix)[-1]))
        return (trace, 2 * squared, largest) if 2 * squared > variance else (mean, variance, largest)

    def chance_below(self, centre: float, spread: float = 1.0) -> float:
        """Return P(U <= its value) where its expectation is `centre` and outcomes vary `spread` times as if calibrated.

        By a scaled chi-squared (or F) distribution with the same mean and variance (Patnaik 1949).
        """
        from scipy.special import chdtr, fdtr

        start, base, largest = self._shape
        mean, variance = start * spread + centre, base * spread**2 + 4 * largest * spread * centre
        value, nu = max(self.form, self._least) + start * spread, 2 * mean**2 / variance
        degrees = self.cells.degrees
        if np.isinf(degrees):
            return float(chdtr(nu, max(value, 0.0) * nu / mean))
        return float(fdtr(nu, nu * degrees, max(value, 0.0) / mean))

    @cached_property
    def _least(self) -> float:
        """The smallest value of U that is used; without it, rates that equal the scores would give limits of 0."""
        from scipy.special import chdtri, fdtri

        mean, variance, _ = self._shape
        nu, degrees = 2 * mean**2 / variance, self.cells.degrees
        if np.isinf(degrees):
            return mean * (float(chdtri(nu, 1 - _LEAST_PROBABILITY)) / nu - 1)
        return mean * (float(fdtri(nu, nu * degrees, _LEAST_PROBABILITY)) - 1)

    def pvalue(self, margin: float) -> float:
        """Return the p-value of the hypothesis that the error is at least the margin; 1 without information."""
        if not self._shape[1] > 0:
            return 1.0
        at_zero = self.chance_below(0.0)
        if at_zero == 0:
            return 1.0
        ends = self._ends(margin)
        edge = margin**2 * self.information
        return min(1.0, max(self.chance_below(share * edge, spread) for share, spread in ends) / at_zero)

    def upper(self, alpha: float, margin: float | None = None) -> float:
        """Return the upper limit that the error exceeds with a probability of at most `alpha`.

        With a margin the variance is taken at both of its ends, and the larger limit counts.
        """
        if not self._shape[1] > 0:
            return math.inf
        level = alpha * self.chance_below(0.0)
        ends = ((1.0, self._spread),) if margin is None else self._ends(margin)
        found = max(self._solve(level, spread) / share for share, spread in ends)
        return math.sqrt(found / self.information)

    def lower(self, alpha: float) -> float:
        """Return the lower limit, which exceeds the error with a probability of at most `alpha`; 0 if none is shown."""
        mean, variance, _ = self._shape
        if not variance > 0 or 4 * mean**2 < variance or self.chance_below(0.0) < 1 - alpha:
            return 0.0
        return math.sqrt(self._solve(1 - alpha, self._spread) / self.information)

    def null_quantiles(self, shares: Floats) -> Floats:
        """Return quantiles of the estimate if the model is calibrated."""
        from scipy.special import chdtri

        mean, variance, _ = self._shape
        if not variance > 0:
            return np.zeros(shares.size)
        nu = 2 * mean**2 / variance
        found: Floats = np.sqrt(np.maximum(mean * (chdtri(nu, 1 - shares) / nu - 1), 0.0) / self.information)
        return found

    @cached_property
    def _spread(self) -> float:
        """Variance of log-odds errors divided by that if calibrated, over cells weighted by their squared errors."""
        bins, weight = self.cells.bins, self.cells.scale * self.cells.bins.error
        ratio = np.where(self.exact[self.cells.owner], bins.chance / np.maximum(bins.variance, _TINY), 1.0)
        total = float(np.sum(weight))
        return max(float(np.sum(weight * ratio)) / total, 1.0) if total > 0 else 1.0

    def _ends(self, margin: float) -> tuple[tuple[float, float], ...]:
        """Return, for errors of +-margin, the expectation of U divided by its first order, and the spread."""
        if margin > _SMALL_MARGIN:
            return ((1.0, 1.0),)
        bins, weight, found = self.cells.bins, self._weight / self.information, []
        for d in (margin, -margin):
            response = 1 + bins.skewness * d / 2 + bins.kurtosis * d**2 / 6
            spread = 1 + bins.skewness * d + bins.kurtosis * d**2 / 2
            found.append((float(weight @ response**2), float(weight @ spread)))
        return tuple(found)

    def _solve(self, level: float, spread: float) -> float:
        """Return the expectation of U under which a value at most that observed has this probability."""

        def falling(centre: float) -> float:
            return self.chance_below(centre, spread) - level

        high = 4 * abs(self.form) + 60 * self._shape[1] ** 0.5
        for _ in range(60):
            if falling(high) < 0:
                return find_root(falling, 0.0, high, xtol=1e-9 * high) if falling(0.0) > 0 else 0.0
            high *= 4
        return float("inf")
