"""Metrics of predictive distributions, with confidence intervals."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot
from calibrant._support.errors import InputError
from calibrant.inference.estimates import from_error
from calibrant.kinds.point.metrics import UNITS, estimate_metrics, mean_estimate, metric_result
from calibrant.metrics.distribution import Coverage, coverage
from calibrant.results.uncertainty import Estimate, MetricResult
from calibrant.tables.mean_table import MeanTable

UNITS_OF_DISTRIBUTIONS = {**UNITS, "CRPS": "y", "NLL": "nat", "width of 90 % intervals": "y"}


def distribution_estimates(table: MeanTable, forecast: Any, cluster: Ints | None, level: float) -> Iterator[Estimate]:
    """Estimate the metrics of the means, then CRPS, negative log-likelihood and width, where they are defined."""
    yield from estimate_metrics(table, cluster, level, forecast.point_is_mean)
    options: dict[str, Any] = {"cluster": cluster, "level": level}
    y = table.mean
    yield mean_estimate("CRPS", table, forecast.crps(y), **options)
    try:
        density = forecast.log_density(y)
    except InputError:
        density = None
    if density is not None and np.isfinite(density).all():
        yield mean_estimate("NLL", table, -density, **options)
    try:
        low, high = forecast.quantile([0.05, 0.95]).T
    except InputError:
        return
    yield mean_estimate("width of 90 % intervals", table, high - low, **options)


def coverage_results(covered: Coverage) -> dict[str, MetricResult]:
    """Return the coverage of central intervals as metrics."""
    results = {}
    columns = (covered.per_level[name] for name in ("level", "expected", "observed", "low", "high", "pvalue"))
    for nominal, calibrated, observed, low, high, pvalue in zip(*columns, strict=True):
        name, limits = f"coverage of {100 * nominal:.3g} % intervals", (100 * float(low), 100 * float(high))
        expected, level = 100 * float(calibrated), covered.confidence_level
        results[name] = metric_result(
            name, 100 * float(observed), limits, expected, float(pvalue), math.nan, level, "exact", "%"
        )
    return results


def coverage_by_level(y: Floats, forecast: Any, cluster: Ints | None, level: float) -> Coverage | None:
    """Return the coverage of central intervals; None if the forecast has no central intervals."""
    levels = (0.5, 0.9) if forecast.known_levels is None else None
    try:
        covered = coverage(y, forecast, levels=levels, confidence_level=level)
    except InputError:  # no two quantiles are symmetric
        return None
    return covered if cluster is None else _clustered(covered, y, forecast, cluster)


def _clustered(covered: Coverage, y: Floats, forecast: Any, cluster: Ints) -> Coverage:
    """Return coverage with confidence intervals and tests based on cluster sums."""
    found: dict[str, list[float]] = {"low": [], "high": [], "pvalue": []}
    for level, expected, observed in zip(
        *(covered.per_level[name] for name in ("level", "expected", "observed")), strict=True
    ):
        low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
        sums = np.bincount(cluster, weights=((y >= low) & (y <= high)) - observed)
        m = sums.size
        error = math.sqrt(m / max(m - 1, 1) * dot(sums, sums)) / y.size
        e = from_error("", float(observed), error, m - 1, null=float(expected), level=covered.confidence_level)
        for name, value in (("low", max(e.low, 0.0)), ("high", min(e.high, 1.0)), ("pvalue", e.pvalue or 0.0)):
            found[name].append(value)
    per_level = {name: np.array(found.get(name, values)) for name, values in covered.per_level.items()}
    return Coverage(per_level, covered.size, covered.confidence_level)
