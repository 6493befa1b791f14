"""Components of the omnibus test for predictive distributions: uniformity of PIT values, coverage, and the median."""

import math
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant.forecasts.protocol import INTERVAL_LEVELS
from calibrant.inference.regression import discrete_pit
from calibrant.inference.regression.discrete_pit import pit_shares
from calibrant.inference.residual_tests import (
    IndependentTerms,
    box_test,
    cluster_terms,
    share_covariance,
    sums_by_cluster,
)
from calibrant.results.verdict import TestResult

_MAX_CELLS = 20
_MIN_EXPECTED = 5
_FEW_MEMBERS = 100


def pit_component(u: Floats, forecast: Any, cluster: Ints | None, uniformity: TestResult) -> TestResult:
    """Test the uniformity of the PIT values; `uniformity` is their Anderson-Darling test.

    Cells of quantiles and ranks of few members are tested by Pearson's test, others by Anderson and Darling's test, in
    clusters by Pearson's test over ten cells.
    """
    known = forecast.known_levels
    if known is not None and (forecast.ensemble is None or known.size < _FEW_MEMBERS):
        levels, method = known, "cells between quantiles" if forecast.ensemble is None else "ranks"
    elif cluster is None:
        return TestResult(uniformity.statistic, uniformity.pvalue, "PIT", method="Anderson-Darling")
    else:
        levels, method = np.arange(1, 10) / 10, "cells"
    inner = merged_levels(levels, u.size)
    share = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    return _cell_component("PIT", method, _kernels.locate(np.nextafter(inner, np.inf), u), share, cluster)


def discrete_components(
    low: Floats, high: Floats, forecast: Any, cluster: Ints | None, alpha: float
) -> list[TestResult | None]:
    """Test the PIT values and the coverage of discrete distributions, given the interval of F(y) of each row.

    Each row is spread over its interval, so the tests need no random numbers; the covariance of the shares is that of
    calibrated forecasts.
    """
    central = forecast.interval_levels()
    lower, upper = (1 - central) / 2, (1 + central) / 2
    levels = np.unique(np.round(np.concatenate([discrete_pit.LEVELS, lower, upper]), 12))
    shares = discrete_pit.Shares.from_cells(low, high, levels, cluster)
    expected = discrete_pit.calibrated_covariance(forecast, levels)
    rows = np.identity(levels.size)
    at = [rows[np.searchsorted(levels, each - 1e-9)] for each in (discrete_pit.LEVELS, upper, lower)]
    covered = at[1] - at[2]
    missed = pit_shares(low, high, lower).mean(axis=1) + 1 - pit_shares(low, high, upper).mean(axis=1)
    missed = missed - float(np.mean(1 - central))
    direction = _direction(missed, cluster, alpha)
    return [
        _shares_component("PIT", shares.combine(at[0]), at[0] @ expected @ at[0].T, ""),
        _shares_component("coverage", shares.combine(covered), covered @ expected @ covered.T, direction),
    ]


def _shares_component(name: str, shares: discrete_pit.Shares, covariance: Floats, direction: str) -> TestResult:
    """Test shares of rows at several levels by the sum of their squared standard scores."""
    scale = np.sqrt(np.diag(covariance))
    varies = scale > 1e-9
    if not varies.any():
        return TestResult(math.nan, math.nan, name, method="shares of rows")
    scale, gap = scale[varies], (shares.mean - shares.levels)[varies]
    root, method = math.sqrt(shares.size), f"{int(varies.sum())} levels, cumulative chi-squared"
    statistic = float(np.sum((root * gap / scale) ** 2))
    if shares.by_cluster is None:
        pvalue = quadratic_pvalue(statistic, covariance[np.ix_(varies, varies)] / np.outer(scale, scale))
    else:
        sums = shares.by_cluster[:, varies] / (scale * root)
        statistic, pvalue = box_test(statistic, share_covariance(sums), len(sums))
        method = f"{int(varies.sum())} levels, F approximation"
    return TestResult(statistic, pvalue, name, direction=direction, method=method)


def quadratic_pvalue(statistic: float, covariance: Floats) -> float:
    """Return the upper tail of a sum of squares of normal variables by three moments (Imhof, 1961)."""
    from scipy.special import chdtrc

    c1, c2, c3 = (float(np.sum(np.linalg.eigvalsh(covariance) ** power)) for power in (1, 2, 3))
    df = c2**3 / c3**2
    return float(chdtrc(df, max(df + (statistic - c1) * math.sqrt(df / c2), 0.0)))


def median_component(u: Floats, forecast: Any, cluster: Ints | None) -> TestResult | None:
    """Test the share of outcomes below the median, for forecasts without means; None for quantiles without a median."""
    if forecast.known_levels is not None and not np.isclose(forecast.known_levels, 0.5).any():
        return None
    below = (u <= 0.5).astype(np.int64)
    direction = "overestimates" if below.mean() > 0.5 else "underestimates"
    return _cell_component("median", "share below the median", below, np.array([0.5, 0.5]), cluster, direction)


def _cell_component(
    name: str, method: str, labels: Ints, share: Floats, cluster: Ints | None, direction: str = ""
) -> TestResult:
    """Test by Pearson's test that the cells contain these shares of the rows, on sums per cluster if clustered."""
    from scipy.special import chdtrc

    expected = labels.size * share
    observed = np.bincount(labels, minlength=share.size)
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    pvalue = math.nan
    if share.size < 2:
        statistic = math.nan
    elif cluster is None:
        pvalue, method = float(chdtrc(share.size - 1, statistic)), f"{method}, chi-squared, {share.size} cells"
    else:
        sums = sums_by_cluster(cluster, labels, None, share.size)
        sums = sums - sums.sum(axis=1, keepdims=True) * share
        covariance = share_covariance(sums) / np.sqrt(np.outer(expected, expected))
        statistic, pvalue = box_test(statistic, covariance, len(sums))
        method = f"{method}, F approximation, {share.size} cells"
    return TestResult(statistic, pvalue, name, direction=direction, method=method)


def merged_levels(levels: Floats, size: int, most: int = _MAX_CELLS) -> Floats:
    """Return as many of these increasing levels as leave cells with enough expected rows."""
    least = max(_MIN_EXPECTED / size, 1 / most) * (1 - 1e-9)
    kept: list[float] = []
    for level in levels:
        if level - (kept[-1] if kept else 0.0) >= least and 1 - level >= least:
            kept.append(float(level))
    return np.array(kept)


def coverage_component(u: Floats, forecast: Any, cluster: Ints | None, alpha: float) -> TestResult | None:
    """Test the coverage of central intervals at all levels jointly; for quantiles without pairs that of the levels."""
    # An ensemble is tested up to its widest interval, one member has none.
    central = forecast.interval_levels(None if forecast.ensemble is None else np.array(INTERVAL_LEVELS))
    central = central[central > 1e-9]
    direction = _confidence(u, forecast, central, cluster, alpha)
    if central.size:
        levels, folded, method = central, np.abs(2 * u - 1), f"{central.size} central intervals"
    elif forecast.ensemble is None:
        levels, folded, method = forecast.known_levels, u, f"{forecast.known_levels.size} levels"
    else:
        return None
    cell = _kernels.locate(np.nextafter(levels, np.inf), folded)
    return _cumulative_component(method, cell, levels, cluster, direction)


def _cumulative_component(
    method: str, labels: Ints, levels: Floats, cluster: Ints | None, direction: str
) -> TestResult:
    r"""Test by the cumulative chi-squared test (Nair, 1987) that a share q of the rows lies at or below each level q.

    .. math::

       T = N \sum_k \frac{(\hat q_k - q_k)^2}{q_k (1 - q_k)}

    It has more power than Pearson's test where neighbouring levels deviate in the same direction, as with intervals
    that are too narrow. The null distribution is approximated by three moments (Imhof, 1961), in clusters by
    `box_test`.
    """
    n, k = labels.size, levels.size
    scale = np.sqrt(levels * (1 - levels))
    gap = (np.cumsum(np.bincount(labels, minlength=k + 1))[:k] / n - levels) / scale
    statistic = n * float(gap @ gap)
    if cluster is None:
        covariance = (np.minimum(levels[:, None], levels) - np.outer(levels, levels)) / np.outer(scale, scale)
        pvalue = quadratic_pvalue(statistic, covariance)
        method = f"{method}, cumulative chi-squared"
    else:
        cells = sums_by_cluster(cluster, labels, None, k + 1)
        sums = (np.cumsum(cells, axis=1)[:, :k] - cells.sum(axis=1, keepdims=True) * levels) / (scale * math.sqrt(n))
        statistic, pvalue = box_test(statistic, share_covariance(sums), len(sums))
        method = f"{method}, F approximation"
    return TestResult(statistic, pvalue, "coverage", direction=direction, method=method)


def _confidence(u: Floats, forecast: Any, central: Floats, cluster: Ints | None, alpha: float) -> str:
    """Return "overconfident" if intervals are too narrow on average over their levels, "underconfident" if too wide.

    '' if the difference is not significant.
    """
    if central.size:
        missed = central.mean() - (np.abs(2 * u - 1)[:, None] <= central).mean(axis=1)
    elif forecast.known_levels.size > 1:
        low, high = forecast.known_levels[0], forecast.known_levels[-1]
        missed = (high - low) - ((u > low) & (u <= high))
    else:
        return ""
    return _direction(missed, cluster, alpha)


def _direction(missed: Floats, cluster: Ints | None, alpha: float) -> str:
    """Return the direction of the mean of `missed`, '' if it is not significant."""
    away = missed - missed.mean()
    total = float(missed.sum())
    terms = (
        IndependentTerms(total, away, np.ones(away.size)) if cluster is None else cluster_terms(total, cluster, away)
    )
    t, pvalue, _ = terms.test()
    if not pvalue <= alpha:
        return ""
    return "overconfident" if t > 0 else "underconfident"
