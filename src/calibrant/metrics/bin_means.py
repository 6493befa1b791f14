"""Means of bins of point predictions, with standard errors, tests and intervals that allow for skewness."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant._support.typing import Floats
from calibrant.tables.mean_partition import MeanPartition
from calibrant.tables.mean_table import need_rows

__all__ = ["BinMeans", "bin_means"]


@dataclass(frozen=True, eq=False)
class BinMeans:
    r"""Means of bins, tested and given intervals by Student's t, corrected for skewness.

    Hall's (1992) transformation of the statistic t of a mean of m values with skewness :math:`\gamma`,

    .. math::

       g(t) = t + a t^2 + \tfrac13 a^2 t^3 + \tfrac12 a, \quad a = \gamma / (3 \sqrt m),

    has Student's distribution to a higher order than t itself: the t test of skewed errors (prices, amounts, counts)
    rejects far too often in bins of fifty rows.

    Attributes
    ----------
    mean, error, m : ndarray
        Mean, standard error and effective number of rows of each bin; the error is NaN for a single row.
    skewness : float or ndarray
        Median of the skewness of the bins; 0 where rows are merged. A column where means and errors have one row per
        replicate.
    """

    mean: Floats
    error: Floats
    m: Floats
    skewness: float | Floats

    @property
    def _a(self) -> Floats:
        found: Floats = self.skewness / (3 * np.sqrt(self.m))
        return found

    def pvalue(self, expected: Floats) -> Floats:
        """Return two-sided p-values of the hypothesis that the means are `expected`; without spread, 0 or 1."""
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            t = (self.mean - expected) / self.error
            g = t + self._a * t**2 + self._a**2 * t**3 / 3 + self._a / 2
            pvalue = 2 * stdtr(self.m - 1, -np.abs(g))
        found: Floats = np.where(self.error == 0, (self.mean == expected).astype(np.float64), pvalue)
        return found

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Return the limits of the confidence intervals: the values that the test does not reject."""
        from scipy.special import stdtrit

        with np.errstate(divide="ignore", invalid="ignore"):
            reach = stdtrit(self.m - 1, (1 + level) / 2)
            low, high = (self.mean - self._untransformed(side * reach) * self.error for side in (1, -1))
        return low, high

    def _untransformed(self, g: Floats) -> Floats:
        """The t whose transformation is g."""
        a = self._a
        bent = (np.cbrt(1 + 3 * a * (g - a / 2)) - 1) / np.where(a == 0, 1, a)
        found: Floats = np.where(np.abs(a) < 1e-9, g, bent)
        return found


def bin_means(partition: MeanPartition, of: Callable[[slice], Floats], *, rounding: Floats | float = 0.0) -> BinMeans:
    """Return the means per bin of the values that `of` gives for a run of entries, with their standard errors.

    Outcomes inside a merged entry vary by their spread. Means and errors up to `rounding` are 0.
    """
    table, m, mean = partition.table, partition.effective_n, partition.mean(of)
    if table.importance:
        need_rows(table, "An interval or a test with importance weights")

    def away(run: slice) -> Floats:
        return of(run) - mean[partition.labels[run]]

    def squares(run: slice) -> Floats:
        if table.single:
            return away(run) ** 2
        weighted: Floats = (table.n if table.w2 is None else table.w2)[run] * away(run) ** 2 + table.m2[run]
        return weighted

    with np.errstate(divide="ignore", invalid="ignore"):
        squared = partition.sums(squares)
        error = np.sqrt(m / (m - 1) * squared) / partition.n
    skewness = 0.0
    if table.has_rows:
        spread = squared if table.w2 is None else partition.weighted(lambda run: away(run) ** 2)
        skewness = _skewness(partition, away, spread)
    error = np.where(error <= rounding, 0.0, error)
    return BinMeans(np.where(np.abs(mean) <= rounding, 0.0, mean), np.where(m > 1, error, np.nan), m, skewness)


def _skewness(partition: MeanPartition, away: Callable[[slice], Floats], squared: Floats) -> float:
    """Median of the skewness of the bins: one bin has too few rows for it, and extreme errors dominate the mean."""

    def cubes(run: slice) -> Floats:
        away_here = away(run)
        return away_here * away_here * away_here  # a power takes ten times as long

    with np.errstate(divide="ignore", invalid="ignore"):
        found = partition.weighted(cubes) / partition.n / (squared / partition.n) ** 1.5
    found = found[np.isfinite(found) & (partition.effective_n >= 3)]
    return float(np.median(found)) if found.size else 0.0
