"""The verdict on predictive distributions: tests of means, PIT values, coverage and tails, and their deviations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import Note
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.regression import distribution_components, point_components
from calibrant.inference.regression.conditional_coverage import tail_component, width_component, width_groups
from calibrant.inference.regression.discrete_pit import LEVELS, Shares, calibrated_covariance
from calibrant.inference.regression.distribution_components import merged_levels
from calibrant.inference.regression.tail_skewness import tail_skewness
from calibrant.inference.residual_tests import sum_covariance, sums_by_cluster
from calibrant.kinds.distribution.defaults import DEFAULTS
from calibrant.kinds.distribution.sample import DistributionSample
from calibrant.kinds.point.defaults import DEFAULTS as DEFAULTS_OF_MEANS
from calibrant.kinds.point.verdict import MeanMargin, bias_deviation, limits_notes, mean_components, mean_margin
from calibrant.results.settings import RelativeMargin, Settings
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import Deviation, OmnibusTest, TestResult, Verdict
from calibrant.tables.mean_table import MeanTable

_WIDTH_MARGIN = 2.0  # of the coverage error in groups of the width, in units of the margin of that over all rows
_FEW_COUNTS = 4000  # rows of counts
# Share of rows that ties leave open, in units of the standard error of a share, for which groups are compared.
_MOST_UNRESOLVED = 0.1


@dataclass(frozen=True)
class PITValues:
    """PIT values of the rows.

    Attributes
    ----------
    low, high : ndarray
        Bounds of F(y) of discrete distributions; elsewhere both are `u`.
    u : ndarray
        Values; random in the interval of those that are known up to one.
    unresolved : ndarray
        How far the share of rows below each level may lie from that of `u` because outcomes equal predicted quantiles.
    """

    low: Floats
    high: Floats
    u: Floats
    unresolved: Floats


def decide(
    rows: DistributionSample,
    halves: MeanTable,
    error: Estimate,
    pit: PITValues,
    uniformity: Sequence[TestResult],
    settings: Settings,
    seed: SeedSequence,
) -> tuple[Verdict, tuple[Deviation, ...], tuple[Note, ...]]:
    """Return the verdict on distributions, the deviations that it bounds, and notes about tests that are limited.

    `halves` has the errors of one half of the members of an ensemble given the mean of the other; `error` is the mean
    error, `uniformity` are tests of the PIT values.
    """
    points, forecast, cluster, alpha = rows.points, rows.table.forecast, rows.cluster, settings.alpha
    assert points is not None
    margin, of_means = _margins(points, settings)
    deviations = [coverage_deviation(pit, forecast, cluster, margin, alpha)]
    components: list[TestResult | None] = []
    limited: list[str] = []
    if forecast.point_is_mean:
        known = point_components.ensemble_skewness(forecast.ensemble)
        tail = tail_skewness(halves, cluster)
        sums = point_components.bin_sums(halves, cluster, settings.bins, known, tail)
        testable = forecast.ensemble is None or halves is not points
        components, limited = mean_components(points, halves, cluster, error, sums, known, testable, tail)
        deviation = bias_deviation(sums, of_means, alpha)
        deviations.append(deviation.without_bounds() if limited else deviation)
    else:
        components.append(distribution_components.median_component(pit.u, forecast, cluster))
    if forecast.is_discrete:
        components += distribution_components.discrete_components(pit.low, pit.high, forecast, cluster, alpha)
    else:
        components.append(distribution_components.pit_component(pit.u, forecast, cluster, uniformity[0]))
        components.append(distribution_components.coverage_component(pit.u, forecast, cluster, alpha))
    # Ties at quantiles are placed to fit all rows, not those of one width.
    resolved = float(np.mean(pit.unresolved)) <= _MOST_UNRESOLVED / math.sqrt(pit.u.size)
    groups = width_groups(forecast, points.mean, pit.u, cluster, seed) if resolved else None
    if groups is not None:
        in_groups = MeanMargin(_WIDTH_MARGIN * margin, "", 1.0)
        deviations.append(bias_deviation(groups.sums, in_groups, alpha, name="coverage error by width"))
    components += [width_component(groups), tail_component(pit.low, pit.high, forecast, cluster)]
    omnibus = _directed(join_tests(components), alpha)
    verdict = Verdict(omnibus, _decisive(deviations), alpha, undirected=("slope",))
    return verdict, tuple(deviations), limits_notes(components, limited)


def _margins(points: MeanTable, settings: Settings) -> tuple[float, MeanMargin]:
    """Return the margin of the coverage error, and that of the bias of the means."""
    if isinstance(settings.margin, RelativeMargin):
        return DEFAULTS.margin, mean_margin(points, settings.margin, False)
    return float(settings.margin), mean_margin(points, DEFAULTS_OF_MEANS.margin, True)  # type: ignore[arg-type]  # no AbsoluteMargin


def _decisive(deviations: Sequence[Deviation]) -> Deviation:
    """Return the first deviation if all lie within their margins, else the one that is farthest from it."""
    if all(each.within for each in deviations):
        return deviations[0]
    return max(deviations, key=lambda d: math.inf if math.isnan(d.bound) else d.bound / d.margin)


def _directed(omnibus: OmnibusTest, alpha: float) -> OmnibusTest:
    """Return the tests without a direction of the tails that follows from intervals that are too narrow, or wide."""
    tails, coverage = omnibus.components.get("tails"), omnibus.components.get("coverage")
    follows = {"overconfident": "heavy tails", "underconfident": "light tails"}
    if tails is None or coverage is None or not coverage.is_significant(alpha):
        return omnibus
    if follows.get(coverage.direction) != tails.direction:
        return omnibus
    return replace(omnibus, components={**omnibus.components, "tails": replace(tails, direction="")})


def coverage_deviation(pit: PITValues, forecast: Any, cluster: Ints | None, margin: float, alpha: float) -> Deviation:
    """Return the mean absolute coverage error over the levels of the forecast, with bounds.

    The upper bound adds to the estimate the normal quantile times the largest standard error that a mean of signed
    differences can have (signs that change at most once over the levels): the estimate exceeds such a mean, so the
    bound holds at every size. The lower bound subtracts a bound of the mean absolute noise. Where outcomes equal
    predicted quantiles, the upper bound adds how far the shares of rows may lie from those that fit best.
    """
    from scipy.special import chdtri, stdtrit

    levels = forecast_levels(forecast)
    name, k, n = "coverage error", levels.size, pit.u.size
    if forecast.is_discrete:
        shares = Shares.from_cells(pit.low, pit.high, levels, cluster)
        share, covariance, m = shares.mean, shares.covariance / n, n
        if n <= _FEW_COUNTS or not np.trace(covariance) > 0:  # few events hardly determine the variance of shares
            calibrated = calibrated_covariance(forecast, levels) / n
            covariance = max(covariance, calibrated, key=lambda each: float(np.trace(each)))
        if shares.by_cluster is not None:
            m = len(shares.by_cluster)
            covariance = sum_covariance(shares.by_cluster) / n**2
    else:
        share, covariance, m = _shares(pit.u, levels, cluster)
    value = float(np.mean(np.abs(share - levels)))
    if m < 2:
        return Deviation.from_bounds(name, "", value, math.nan, math.nan, margin, alpha)
    signs = np.where(np.arange(k)[None, :] < np.arange(k + 1)[:, None], 1.0, -1.0)
    error = math.sqrt(max(float(np.max(np.einsum("ij,jk,ik->i", signs, covariance, signs))), 0.0)) / k
    trace = float(np.trace(covariance))
    square = float(np.sum(covariance**2))
    nu = trace**2 / square if square > 0 else 1.0
    noise = math.sqrt(max(trace, 0.0) / k * float(chdtri(nu, alpha)) / nu)
    reach = float(stdtrit(m - 1, 1 - alpha)) * error + float(np.mean(pit.unresolved))
    low, high = max(0.0, value - noise), min(1.0, value + reach)
    return Deviation.from_bounds(name, "", value, low, high, margin, alpha)


def _shares(u: Floats, levels: Floats, cluster: Ints | None) -> tuple[Floats, Floats, int]:
    """Return the share of rows at or below each level, its covariance, and the number of independent units."""
    k, n = levels.size, u.size
    labels = np.searchsorted(levels, u)
    share = np.cumsum(np.bincount(labels, minlength=k + 1))[:k] / n
    if cluster is None:
        # Shares of 0 or 1 do not determine their own variance.
        used = share if share[0] > 0 and share[-1] < 1 else levels
        return share, (np.minimum(used[:, None], used) - np.outer(used, used)) / max(n - 1, 1), n
    cells = sums_by_cluster(cluster, labels, None, k + 1)
    covariance = sum_covariance(np.cumsum(cells, axis=1)[:, :k] - cells.sum(axis=1, keepdims=True) * share) / n**2
    return share, covariance, len(cells)


def forecast_levels(forecast: Any) -> Floats:
    """Return the levels at which the coverage error is measured."""
    known: Floats | None = forecast.known_levels
    if known is None:
        return LEVELS
    return known if forecast.ensemble is None else merged_levels(known, 10**9)
