"""The verdict on predictive distributions: tests of means, of PIT values and of coverage, and the coverage error."""

import math
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import Note
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.regression import distribution_components, point_components
from calibrant.inference.regression.distribution_components import merged_levels
from calibrant.inference.residual_tests import sum_covariance, sums_by_cluster
from calibrant.kinds.distribution.sample import DistributionSample
from calibrant.kinds.point.verdict import limits_notes, mean_components
from calibrant.results.settings import Settings
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import Deviation, TestResult, Verdict
from calibrant.tables.mean_table import MeanTable


def decide(
    rows: DistributionSample, halves: MeanTable, error: Estimate, u: Floats, uniformity: TestResult, settings: Settings
) -> tuple[Verdict, tuple[Note, ...]]:
    """Return the verdict on distributions, and notes about tests that are limited.

    `halves` has the errors of one half of the members of an ensemble given the mean of the other; `error` is the mean
    error, `u` the PIT values, `uniformity` a test of these.
    """
    points, forecast, alpha = rows.points, rows.table.forecast, settings.alpha
    assert points is not None
    deviation = coverage_deviation(u, forecast, rows.cluster, float(settings.margin), alpha)  # type: ignore[arg-type]
    components: list[TestResult | None] = []
    limited: list[str] = []
    if forecast.point_is_mean:
        known = point_components.ensemble_skewness(forecast.ensemble)
        sums = point_components.bin_sums(halves, rows.cluster, settings.bins, known)
        testable = forecast.ensemble is None or halves is not points
        components, limited = mean_components(points, halves, rows.cluster, error, sums, known, testable)
    else:
        components.append(distribution_components.median_component(u, forecast, rows.cluster))
    components.append(distribution_components.pit_component(u, forecast, rows.cluster, uniformity))
    components.append(distribution_components.coverage_component(u, forecast, rows.cluster, alpha))
    verdict = Verdict(join_tests(components), deviation, alpha, undirected=("slope",))
    return verdict, limits_notes(components, limited)


def coverage_deviation(u: Floats, forecast: Any, cluster: Ints | None, margin: float, alpha: float) -> Deviation:
    """Return the mean absolute coverage error over the levels of the forecast, with bounds.

    The upper bound adds to the estimate the normal quantile times the largest standard error that a mean of signed
    differences can have (signs that change at most once over the levels): the estimate exceeds such a mean, so the
    bound holds at every size. The lower bound subtracts a bound of the mean absolute noise.
    """
    from scipy.special import chdtri, stdtrit

    levels = _levels(forecast)
    name, k, n = "coverage error", levels.size, u.size
    labels = np.searchsorted(levels, u)
    share = np.cumsum(np.bincount(labels, minlength=k + 1))[:k] / n
    value = float(np.mean(np.abs(share - levels)))
    if cluster is None:
        m = n
        # Shares of 0 or 1 do not determine their own variance.
        used = share if share[0] > 0 and share[-1] < 1 else levels
        covariance = (np.minimum(used[:, None], used) - np.outer(used, used)) / max(n - 1, 1)
    else:
        cells = sums_by_cluster(cluster, labels, None, k + 1)
        m = len(cells)
        covariance = sum_covariance(np.cumsum(cells, axis=1)[:, :k] - cells.sum(axis=1, keepdims=True) * share) / n**2
    if m < 2:
        return Deviation.from_bounds(name, "", value, math.nan, math.nan, margin, alpha)
    signs = np.where(np.arange(k)[None, :] < np.arange(k + 1)[:, None], 1.0, -1.0)
    error = math.sqrt(float(np.max(np.einsum("ij,jk,ik->i", signs, covariance, signs)))) / k
    trace = float(np.trace(covariance))
    square = float(np.sum(covariance**2))
    nu = trace**2 / square if square > 0 else 1.0
    noise = math.sqrt(trace / k * float(chdtri(nu, alpha)) / nu)
    low, high = max(0.0, value - noise), min(1.0, value + float(stdtrit(m - 1, 1 - alpha)) * error)
    return Deviation.from_bounds(name, "", value, low, high, margin, alpha)


def _levels(forecast: Any) -> Floats:
    known: Floats | None = forecast.known_levels
    if known is None:
        return np.arange(1, 20) / 20
    return known if forecast.ensemble is None else merged_levels(known, 10**9)
