"""t tests of sums of independent terms (rows or clusters), corrected for skewness."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import power_of_two
from calibrant._support.pieces import dot
from calibrant._support.typing import Floats, Ints
from calibrant.tables.mean_table import MeanTable

__all__ = ["IndependentTerms", "cluster_terms", "row_terms"]

# Largest squared skewness over the number of terms for which a mean is tested in both directions. Chosen by simulation
# (docs/studies/regression_error_rates.csv).
_SKEWNESS_LIMIT = 0.2
_FEWEST = 2 - 1e-9  # units: with fewer effective ones, a single row determines mean and variance


@dataclass(frozen=True)
class IndependentTerms:
    """Terms of independent units (rows or clusters) of a sum whose expectation is 0 under calibration.

    Attributes
    ----------
    total : float
        The sum.
    deviation : ndarray
        Each term less the mean term; they add up to 0.
    count : ndarray
        Number of units with each of these terms.
    effective : float, optional
        Effective number of units, where few of them have most of the weight; else all count.
    """

    total: float
    deviation: Floats
    count: Any
    effective: float | None = None

    @property
    def size(self) -> float:
        """Number of units."""
        return float(np.sum(self.count))

    @property
    def observations(self) -> float:
        """Number of units that determine the variance."""
        return self.size if self.effective is None else min(self.size, self.effective)

    @property
    def error(self) -> float:
        """Standard error of the sum."""
        m, unit = self.observations, power_of_two(self.deviation)
        d = self.deviation / unit
        return unit * math.sqrt(m / (m - 1) * float(np.sum(self.count * d**2))) if m > 1 else math.nan

    @property
    def skewness(self) -> float:
        """Skewness of the terms."""
        d = self.deviation / power_of_two(self.deviation)
        square = float(np.sum(self.count * d * d)) / self.size
        return float(np.sum(self.count * d * d * d)) / self.size / square**1.5 if square > 0 else 0.0

    def test(self, known_skewness: float = 0.0) -> tuple[float, float, bool]:
        r"""Return the statistic t, its two-sided p-value, and whether skewness limits the test to one direction.

        `known_skewness` is used where it exceeds that of the terms in size: few rows underestimate it.

        The p-value is the larger of those of Student's t and of Hall's (1992) transformation of it,

        .. math::

           g(t) = \frac{(1 + a t)^3 - 1}{3 a} + \frac a2, \quad
           a = \frac{\gamma (1 + 3 \gamma^2 / m)}{3 \sqrt m}, \quad
           \nu = \frac{m}{1 + \tfrac34 \gamma^2}

        with at most m - 1 and :math:`\nu` degrees of freedom, the precision of the variance of m values of a gamma
        distribution with skewness :math:`\gamma`. If few rows determine the skewness, a sample underestimates it, hence
        the factor of a. Beyond :math:`\gamma^2 / m = 0.2` a mean on the side of the short tail is not tested: too few
        rows of the long tail have been observed.
        """
        from scipy.special import stdtr

        m, error = self.observations, self.error
        if m < _FEWEST or math.isnan(error):
            return math.nan, math.nan, False
        if error == 0:
            return (0.0, 1.0, False) if self.total == 0 else (math.copysign(math.inf, self.total), 0.0, False)
        t, skew = self.total / error, max(self.skewness, known_skewness, key=abs)
        df = max(1.0, min(m - 1, m / (1 + 0.75 * skew**2)))
        short_side = t * skew < 0
        if skew**2 / m > _SKEWNESS_LIMIT:
            return t, math.nan if short_side else float(2 * stdtr(df, -abs(t))), True
        a = skew * (1 + 3 * skew**2 / m) / (3 * math.sqrt(m))
        g = ((1 + a * t) ** 3 - 1) / (3 * a) + a / 2 if abs(a) > 1e-9 else t
        if g * t <= 0:
            return t, 1.0, False
        return t, float(2 * stdtr(df, -min(abs(t), abs(g)))), False


def row_terms(table: MeanTable, values: Floats, cluster: Ints | None) -> IndependentTerms:
    """Return the terms of the weighted sum of `values`, one for each entry of the table."""
    weight = table.n.astype(np.float64)
    away = values - table.average(values)
    total = dot(weight, values)
    if cluster is not None:
        return cluster_terms(total, cluster, weight * away)
    if table.importance:
        return IndependentTerms(total, weight * away, np.ones(len(table)), float(table.effective_size))
    return IndependentTerms(total, away, weight)


def cluster_terms(total: float, cluster: Ints, deviation: Floats) -> IndependentTerms:
    """Return the terms of clusters, from the deviations of rows."""
    sums: Floats = np.bincount(cluster, weights=deviation).astype(np.float64)
    return IndependentTerms(total, sums, np.ones(sums.size))
