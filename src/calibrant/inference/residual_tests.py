"""Tests of sums of residuals: means, contrasts and bins, of rows that are independent, weighted or in clusters."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot, in_pieces, power_of_two
from calibrant.inference.design import Design
from calibrant.inference.tails import quadratic_tail, student_two_sided
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.results.verdict import TestResult
from calibrant.tables.score_table import squared_residuals

if TYPE_CHECKING:
    from calibrant.tables.mean_table import MeanTable

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

        `known_skewness` is used where it exceeds that of the terms in size, or has the other sign: few rows
        underestimate it.

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
        t, own = self.total / error, self.skewness
        skew = known_skewness if own * known_skewness < 0 else max(own, known_skewness, key=abs)
        df = max(1.0, min(m - 1, m / (1 + 0.75 * skew**2)))
        short_side = t * skew < 0
        if skew**2 / m > _SKEWNESS_LIMIT:
            return t, math.nan if short_side else float(2 * stdtr(df, -abs(t))), True
        a = skew * (1 + 3 * skew**2 / m) / (3 * math.sqrt(m))
        g = ((1 + a * t) ** 3 - 1) / (3 * a) + a / 2 if abs(a) > 1e-9 else t
        if g * t <= 0:
            return t, 1.0, False
        return t, float(2 * stdtr(df, -min(abs(t), abs(g)))), False


def row_terms(table: "MeanTable", values: Floats, cluster: Ints | None) -> IndependentTerms:
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


def sums_by_cluster(cluster: Ints, labels: Ints, values: Any, n_labels: int) -> Floats:
    """Return sums of values (None: counts of rows) per cluster and label, of shape (clusters, labels)."""
    n_clusters = int(cluster.max()) + 1
    flat = np.bincount(cluster * n_labels + labels, weights=values, minlength=n_clusters * n_labels)
    return flat.reshape(n_clusters, n_labels).astype(np.float64)


def sum_covariance(sums: Floats) -> Floats:
    """Return the covariance of the column totals of independent rows."""
    away = sums - sums.mean(axis=0)
    return np.asarray(len(sums) / max(len(sums) - 1, 1) * away.T @ away)


def share_covariance(sums: Floats) -> Floats:
    """Return the covariance of the totals of cell counts less their expectation.

    The covariance around the mean makes few clusters reject too often, because a tail with few outcomes has a small
    variance too; the covariance around 0, which holds under calibration, makes ten clusters unable to reject. Their
    mean has the nominal level (docs/studies/regression_error_rates.csv).
    """
    return np.asarray((sum_covariance(sums) + sums.T @ sums) / 2)


def trace_of_square(matrix: Floats, degrees: float) -> float:
    """Return an unbiased estimate of tr(M^2) for normal sums, from an estimated M and its degrees of freedom."""
    g = max(degrees, 2.0)
    trace = float(np.trace(matrix))
    return g**2 / ((g - 1) * (g + 2)) * (float(np.sum(matrix**2)) - trace**2 / g)


def box_test(statistic: float, covariance: Floats, clusters: int) -> tuple[float, float]:
    r"""Return statistic and p-value of a sum of squares of correlated sums, by an F approximation (Box, 1954).

    .. math::

       \frac{T}{\mathrm{tr} M} \sim F(\nu, \nu (G - 1)), \quad \nu = \frac{(\mathrm{tr} M)^2}{\mathrm{tr} M^2}

    with the estimate of :math:`\mathrm{tr} M^2` that is unbiased for normal sums of G clusters.
    """
    from scipy.special import fdtrc

    trace, df, nu = box_moments(covariance, clusters)
    if not trace > 0:
        return math.nan, math.nan
    return statistic / trace, float(fdtrc(nu, nu * df, statistic / trace))


def box_moments(covariance: Floats, clusters: int) -> tuple[float, float, float]:
    """Return trace, degrees of freedom of the estimate, and the equivalent number of independent squares."""
    trace, df = float(np.trace(covariance)), float(clusters - 1)
    square = trace_of_square(covariance, df)
    nu = trace**2 / square if square > 0 else float(len(covariance))
    return trace, df, float(np.clip(nu, 1.0, len(covariance)))


# Fewer clusters have a third of the degrees of freedom, and bins are not tested.
MIN_CLUSTERS_FOR_BINS = 20


def row_variance(design: Design, fitted: Floats, contrast: Floats | None = None) -> float:
    """Return the sum of squared residuals of independent rows: the variance of their sum, also if miscalibrated."""
    terms = squared_residuals(design.table, fitted)
    return float(np.sum(terms if contrast is None else in_pieces(lambda c, term: c**2 * term, contrast, terms)))


def contrast_test(design: Design, contrast: Floats) -> tuple[float, float]:
    """Return statistic and two-sided p-value of the sum of contrast * (y - p) for weights or clusters."""
    if design.rows is not None:
        return cluster_t_test(design.cluster_sums(design.table.score, contrast))
    total = float(np.sum(contrast * (design.table.k - design.table.n * design.table.score)))
    variance = row_variance(design, design.table.score, contrast)
    statistic = total / variance**0.5 if variance > 0 else 0.0
    return statistic, student_two_sided(statistic, design.degrees)


def contrasts_test(design: Design, contrasts: list[Floats]) -> tuple[float, float]:
    """Return statistic and p-value of several such sums: Hotelling's test with clusters, chi-squared with weights."""
    from scipy.special import chdtrc, fdtrc

    table, count = design.table, len(contrasts)
    totals = np.array([np.sum(c * (table.k - table.n * table.score)) for c in contrasts])
    if design.rows is None:
        terms = squared_residuals(table, table.score)
        covariance = np.array([[np.sum(a * b * terms) for b in contrasts] for a in contrasts])
        statistic = _quadratic_form(totals, covariance)
        return statistic, float(chdtrc(count, statistic))
    sums = np.stack([design.cluster_sums(table.score, c) for c in contrasts])
    clusters = sums.shape[1]
    centred = sums - sums.mean(axis=1, keepdims=True)
    statistic = _quadratic_form(totals, centred @ centred.T * (clusters / (clusters - 1)))
    return statistic, float(fdtrc(count, clusters - count, statistic * (clusters - count) / (count * (clusters - 1))))


def _quadratic_form(totals: Floats, covariance: Floats) -> float:
    return float(totals @ np.linalg.lstsq(covariance, totals, rcond=None)[0])


def cluster_t_test(sums: Floats) -> tuple[float, float]:
    """Return statistic and p-value of the one-sample t test of cluster sums.

    It is conservative where clusters have unequal variances (Bakirov 1989).
    """
    spread = float(np.std(sums, ddof=1))
    if spread == 0:
        return 0.0, 1.0
    t = float(np.sqrt(sums.size) * sums.mean() / spread)
    return t, student_two_sided(t, skewed_degrees(sums))


def skewed_degrees(sums: Floats) -> float:
    r"""Return the degrees of freedom of a t test of cluster sums: :math:`m / (1 + \tfrac34 \gamma^2)`, at most m - 1.

    They are the precision of the variance of m values of a gamma distribution with skewness :math:`\gamma`.
    """
    away = sums - sums.mean()
    square = float(np.mean(away**2))
    skewness = float(np.mean(away**3)) / square**1.5 if square > 0 else 0.0
    return max(1.0, min(sums.size - 1.0, sums.size / (1 + 0.75 * skewness**2)))


def cluster_degrees(count: int) -> float:
    """Return the degrees of freedom of a t test of cluster sums: a third for few clusters, whose sums are skewed."""
    return count - 1 if count >= MIN_CLUSTERS_FOR_BINS else (count - 1) / 3


def residual_test(design: Design, bins: LogOddsBins, name: str) -> TestResult:
    """Return the test of calibration by residual sums of bins, as in Hosmer and Lemeshow's test.

    Independent rows: the sum of r^2 / V over B bins, chi-squared with B degrees of freedom, scaled so that its variance
    is that of Bernoulli outcomes. Clusters: T = sum of r^2 / V, T / tr(M) ~ F(nu, nu (G - 1)), where M is the
    covariance of the residuals divided by V and nu = tr(M)^2 / tr(M^2) (Box 1954).
    """
    variance = bins.variance()
    statistic = float(np.sum(bins.residual**2 / variance))
    # Fourth moments beyond those of the normal distribution.
    excess = float(np.sum(bins.excess_kurtosis * variance / bins.information**2))
    degrees = np.inf if design.rows is not None else design.degrees
    independent = quadratic_tail(statistic, float(len(bins)), 2.0 * len(bins) + excess, degrees)
    if design.rows is None:
        return TestResult(statistic, independent, name, df=float(len(bins)))
    root = np.sqrt(variance)
    matrix = design.covariance(bins) / np.outer(root, root)
    trace, squared = covariance_traces(matrix, design.degrees)
    pvalue = quadratic_tail(statistic, trace, 2 * squared, design.degrees)
    pvalue = max(pvalue, independent, _log_odds_pvalue(design, bins))
    return TestResult(statistic, pvalue, name, df=trace**2 / squared)


def _log_odds_pvalue(design: Design, bins: LogOddsBins) -> float:
    """Return the p-value of the log-odds errors of the bins, whose distribution is less skewed."""
    root = np.sqrt(bins.information) / np.maximum(bins.fitted_curvature, 1e-300)
    matrix = design.covariance(bins, None) * np.outer(root, root)
    trace, squared = covariance_traces(matrix, design.degrees)
    statistic = float(np.sum(bins.information * bins.error**2))
    return quadratic_tail(statistic, trace, 2 * squared, design.degrees) if squared > 0 else 1.0


def covariance_traces(matrix: Floats, degrees: float) -> tuple[float, float]:
    """Return the traces of a covariance and of its square, corrected for the bias of its estimate."""
    trace, squared = float(np.trace(matrix)), float(np.sum(matrix**2))
    if np.isfinite(degrees):
        squared = max(trace_of_square(matrix, degrees), trace**2 / matrix.shape[0])
    return trace, squared
