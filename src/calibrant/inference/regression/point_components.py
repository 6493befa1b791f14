"""Components of the omnibus test for point predictions: mean error, bias by bins, and slope.

Each tests one consequence of calibration. Rows are independent, weighted or clustered; with clusters all components use
sums per cluster.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot, power_of_two
from calibrant._support.errors import Note, join_notes
from calibrant.inference.regression.bias_by_bin import too_alike, usual_bins
from calibrant.inference.regression.point_line import determines_line
from calibrant.inference.regression.tail_skewness import NO_TAIL, Tail
from calibrant.inference.residual_tests import (
    IndependentTerms,
    box_test,
    cluster_terms,
    row_terms,
    sum_covariance,
    sums_by_cluster,
)
from calibrant.metrics.bins import PAVA, PAVABC, EqualSize, MeanBins
from calibrant.metrics.point_costs import bin_means
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import TestResult
from calibrant.tables.mean_table import MeanPartition, MeanTable

# Largest squared skewness over the number of rows per bin for which bins are tested, and over the number of rows that
# determine the slope for which the slope is tested. Chosen by simulation (docs/studies/regression_error_rates.csv).
_BIN_SKEWNESS_LIMIT = 0.05
_SLOPE_SKEWNESS_LIMIT = 0.1
# Smallest squared skewness of an ensemble over the number of rows that replaces that of the errors.
_ENSEMBLE_SKEWNESS = 0.02
# Largest squared skewness that the tail of outcomes implies, over the number of rows, for which a mean is tested.
_TAIL_LIMIT = 1.0


def mean_component(
    table: MeanTable, cluster: Ints | None, estimate: Estimate, skewness: float = 0.0, tail: Tail = NO_TAIL
) -> tuple[TestResult, bool]:
    """Test the mean error, prediction less outcome; return also whether skewness limits the test.

    Where the tail of the outcomes is too long for a test of the sum of errors, errors are weighted so that each has the
    same share in the test.
    """
    name, direction = "mean error", "overestimates" if estimate.value > 0 else "underestimates"
    if estimate.pvalue is None or estimate.standard_error == 0:
        p = math.nan if estimate.pvalue is None else estimate.pvalue
        return TestResult(math.nan, p, name, direction=direction, method="one-sample t"), False
    error, method = table.prediction - table.mean, "one-sample t, corrected for skewness"
    if tail.skewness_of_sum**2 <= _TAIL_LIMIT * table.effective_size:
        t, p, limited = row_terms(table, error, cluster).test(skewness)
        return TestResult(t, p, name, direction=direction, method=method), limited
    weight = (table.prediction / table.mean_prediction) ** (1 - tail.power) if tail.power > 0 else np.ones(len(table))
    t, p, limited = row_terms(table, error * weight, cluster).test(skewness)
    if tail.skewness**2 > _TAIL_LIMIT * table.effective_size:
        limited, p = True, math.nan if t > 0 else p
    direction = direction if t * estimate.value > 0 else ""
    method = f"{method}, of errors weighted by the inverse of their variance" if tail.power > 0 else method
    return TestResult(t, p, name, direction=direction, method=method), limited


def slope_component(
    table: MeanTable, cluster: Ints | None, skewness: float, tail: Tail = NO_TAIL
) -> tuple[TestResult | None, bool]:
    r"""Test the slope of the outcome on the prediction against 1; return also whether skewness limits the test.

    Standard errors are leverage-corrected (HC3), or those of cluster sums. About :math:`m = (\sum x^2)^2 / \sum x^4`
    rows with extreme predictions x determine the slope. Where the squared skewness of the errors exceeds a tenth of m,
    the slope is not tested: too few rows of the long tail have been observed among them.
    """
    p, weight = table.prediction, table.n.astype(np.float64)
    x = p - table.mean_prediction
    x = x / power_of_two(x)  # its fourth powers exist
    spread = dot(weight, x**2)
    if not spread > 0:
        return None, False
    error = p - table.mean
    error = error - table.average(error)
    tilt = dot(weight, x * error) / spread
    left = error - tilt * x
    name, direction = "slope", "overconfident" if tilt > 0 else "underconfident"
    if not determines_line(table, left):
        notes = (Note("few_rows_for_slope", 1, "The slope is not tested: there are too few rows."),)
        return TestResult(math.nan, math.nan, name, direction=direction, method="t of the slope", notes=notes), False
    if float(np.abs(left).max()) <= table.rounding:  # the points lie on a line
        exact = 1.0 if float(np.abs(error).max()) <= table.rounding else 0.0
        return TestResult(math.nan, exact, name, direction=direction, method="t of the slope"), False
    t, pvalue, limited = _slope_terms(table, cluster, x, left, tilt * spread).test()
    shares = dot(weight, np.square(x**2)) / spread**2  # the inverse of the number of rows that determine the slope
    of_errors = skewness**2 * shares > _SLOPE_SKEWNESS_LIMIT
    if cluster is None and (of_errors or tail.skewness**2 * shares > _TAIL_LIMIT):
        pvalue, limited = math.nan, True
    return TestResult(t, pvalue, name, direction=direction, method="t of the slope, corrected for skewness"), limited


def _slope_terms(table: MeanTable, cluster: Ints | None, x: Floats, left: Floats, total: float) -> IndependentTerms:
    weight = table.n.astype(np.float64)
    sums = x * left
    if cluster is not None:
        return cluster_terms(total, cluster, weight * sums)
    leverage = (1 / table.size + x**2 / dot(weight, x**2)) * (weight if table.importance else 1.0)
    sums = sums / np.maximum(1 - leverage, 1e-8)
    if table.importance:
        return IndependentTerms(total, weight * sums, np.ones(len(table)))
    return IndependentTerms(total, sums, weight)


@dataclass(frozen=True)
class BinSums:
    """Mean errors by bins of the prediction, and their covariance.

    Attributes
    ----------
    size : ndarray
        Rows or weight of each bin.
    effective : ndarray
        Effective rows of each bin.
    error : ndarray
        Mean error of each bin.
    covariance : ndarray
        Covariance of the mean errors.
    row_variance : ndarray
        Variances of the mean errors if rows were independent.
    skewness : float
    tail : float
        Skewness that the tail of the outcomes implies.
    clusters : int or None
    are_given : bool
        Whether the caller chose the bins.
    are_merged : bool
        Whether bins were merged because errors are skewed.
    """

    size: Floats
    effective: Floats
    error: Floats
    covariance: Floats
    row_variance: Floats
    skewness: float
    tail: float
    clusters: int | None
    are_given: bool
    are_merged: bool = False

    def __len__(self) -> int:
        return self.size.size

    @property
    def known(self) -> bool:
        """Whether all errors and covariances are known."""
        return bool(np.isfinite(self.error).all() and np.isfinite(self.covariance).all())

    @property
    def rows_needed(self) -> float:
        """Effective rows that each bin needs because errors are skewed."""
        return max(self.skewness**2 / _BIN_SKEWNESS_LIMIT, self.tail**2 / _TAIL_LIMIT)

    @property
    def limited(self) -> bool:
        """Whether errors are too skewed for these bins, or for any."""
        return self.rows_needed > float(self.effective.min()) or (self.are_merged and len(self) == 1)


def bin_sums(
    table: MeanTable, cluster: Ints | None, bins: MeanBins | None, skewness: float = 0.0, tail: Tail = NO_TAIL
) -> BinSums:
    """Return errors in the given bins; by default ten, or fewer so that each has enough rows, clusters and symmetry.

    `skewness` is used where it exceeds that of the errors in size.
    """
    if bins is not None and not isinstance(bins, (PAVA, PAVABC)):  # those depend on the outcomes
        return _bin_sums(table, cluster, bins, True, skewness, tail)
    n_clusters = None if cluster is None else int(cluster.max()) + 1
    found = _bin_sums(table, cluster, usual_bins(table, n_clusters), False, skewness, tail)
    while found.limited and len(found) > 1:
        fewer = int(np.clip(table.effective_size / found.rows_needed, 1, len(found) - 1))
        found = replace(_bin_sums(table, cluster, EqualSize(fewer), False, skewness, tail), are_merged=True)
    return found


def _bin_sums(
    table: MeanTable, cluster: Ints | None, bins: MeanBins, given: bool, skewness: float, tail: Tail
) -> BinSums:
    groups = bins(table)
    p, y = table.prediction, table.mean
    means = bin_means(groups, lambda run: p[run] - y[run], rounding=groups.rounding)
    outcomes = bin_means(groups, lambda run: y[run])
    unknown = (means.mean != 0) & too_alike(groups, outcomes.error)
    row_variance = np.where(unknown, np.nan, means.error) ** 2
    covariance, clusters = np.diag(row_variance), None
    if cluster is not None:
        error = np.where(np.abs(p - y) <= table.rounding, 0.0, p - y)
        sums = sums_by_cluster(cluster, groups.labels, table.n * error, groups.n.size)
        clusters = len(sums)
        covariance = sum_covariance(sums) / np.outer(groups.n, groups.n)
    skew = max(_pooled_skewness(groups, means.mean), skewness, key=abs)
    return BinSums(
        groups.n, groups.effective_n, means.mean, covariance, row_variance, skew, tail.skewness, clusters, given
    )


def _pooled_skewness(groups: MeanPartition, mean: Floats) -> float:
    """Return the skewness of errors that are standardised within their bin, over all rows."""
    table = groups.table
    away = table.prediction - table.mean - mean[groups.labels]
    count: Any = table.n
    if table.importance:
        away, count = away * table.n, np.ones(len(table))
    squares = np.bincount(groups.labels, weights=count * away**2) / np.bincount(groups.labels, weights=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(squares[groups.labels] > 0, away / np.sqrt(squares[groups.labels]), 0.0)
    return float(np.sum(count * z * z * z) / np.sum(count))


def bins_component(sums: BinSums) -> TestResult | None:
    """Test that the mean error is 0 in every bin; None with a single bin, which is the mean error itself."""
    if len(sums) == 1 and not sums.are_merged:
        return None
    name, method = "bias by bins", f"{len(sums)} bins"
    unknown = TestResult(math.nan, math.nan, name, method=method)
    if sums.limited and (sums.clusters is None or len(sums) == 1):
        return unknown
    if sums.clusters is None:
        return _independent_bins(sums, name, method)
    good = np.isfinite(sums.row_variance) & (sums.row_variance > 0)
    if not good.any():
        return unknown
    spread = np.sqrt(sums.row_variance[good])
    scaled = sums.error[good] / spread
    covariance = sums.covariance[np.ix_(good, good)] / np.outer(spread, spread)
    statistic, pvalue = box_test(float(scaled @ scaled), covariance, sums.clusters)
    return TestResult(statistic, pvalue, name, method=f"{method}, F approximation with {sums.clusters:,} clusters")


def _independent_bins(sums: BinSums, name: str, method: str) -> TestResult:
    from scipy.special import chdtrc, ndtri, stdtr

    m, a = sums.effective, sums.skewness / (3 * np.sqrt(sums.effective))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = sums.error / np.sqrt(sums.row_variance)
        g = t + a * t**2 + a**2 * t**3 / 3 + a / 2
        df = np.maximum(np.minimum(m - 1, m / (1 + 0.75 * sums.skewness**2)), 1.0)
        exact = (sums.error == 0).astype(np.float64)
        pvalue = np.where(sums.row_variance == 0, exact, 2 * stdtr(df, -np.abs(g)))
    pvalue = pvalue[~np.isnan(pvalue)]
    if not pvalue.size:
        return TestResult(math.nan, math.nan, name, method=method)
    statistic = float(np.sum(ndtri(np.maximum(pvalue, 1e-300) / 2) ** 2))
    return TestResult(statistic, float(chdtrc(pvalue.size, statistic)), name, method=f"{method}, chi-squared")


def ensemble_skewness(members: Floats | None) -> float:
    """Return the skewness of errors that an ensemble predicts; 0 where it is too small to matter, or unknown."""
    if members is None or members.shape[1] < 2:
        return 0.0
    away = members.mean(axis=1, keepdims=True) - members
    square = float(np.mean(away**2))
    skewness = float(np.mean(away**3)) / square**1.5 if square > 0 else 0.0
    return skewness if skewness**2 > _ENSEMBLE_SKEWNESS * len(members) else 0.0


def skewness_note(limited: Iterable[str]) -> tuple[Note, ...]:
    """Return a note that names the components that skewness limits."""
    names = ", ".join(limited)
    if not names:
        return ()
    text = (
        f"The errors are too skewed for the number of rows, so these tests are limited: {names}. A deviation towards "
        "the short tail of the errors is not tested, and calibration is not shown. More rows are needed."
    )
    return join_notes([Note("skewed", 1, text)])
