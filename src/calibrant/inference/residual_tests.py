"""Tests of sums of residuals: with a contrast, and over bins, for independent, weighted and clustered rows."""

import numpy as np

from calibrant._support.pieces import in_pieces
from calibrant._support.typing import Floats
from calibrant.inference.cluster_sums import trace_of_square
from calibrant.inference.design import Design
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.tails import quadratic_tail, student_two_sided
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.tables.residuals import squared_residuals

__all__ = [
    "MIN_CLUSTERS_FOR_BINS",
    "cluster_degrees",
    "cluster_t_test",
    "contrast_test",
    "contrasts_test",
    "covariance_traces",
    "residual_test",
    "row_variance",
]

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
    return t, student_two_sided(t, cluster_degrees(sums.size))


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
