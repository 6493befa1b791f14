"""Metrics of point predictions and predictive distributions, with confidence intervals."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats, Ints, dot
from calibrant._support.errors import InputError
from calibrant.inference.estimates import from_error, from_influence
from calibrant.inference.intervals import interval_from_replicates
from calibrant.inference.nulls import null_from_replicates
from calibrant.inference.regression.bias_by_bin import too_alike
from calibrant.inference.regression.forecast_samples import DistributionSample, PointSample
from calibrant.inference.regression.point_tce import TestBasedError
from calibrant.inference.replicates import Replicates, resample_metrics
from calibrant.metrics import point as means
from calibrant.metrics.bins import Quantile
from calibrant.metrics.distribution import Coverage, coverage
from calibrant.metrics.metric import Metric
from calibrant.metrics.point_costs import bin_means
from calibrant.results.hypothesis_tests import OmnibusTest
from calibrant.results.metric_result import MetricResult
from calibrant.results.uncertainty import Estimate, Interval, Null
from calibrant.tables.mean_table import MeanTable

__all__ = ["coverage_by_level", "estimate_metrics", "metric_results", "resampled_metrics"]

_UNITS = {
    "mean error": "y",
    "ratio": "1",
    "MSE": "y^2",
    "MAE": "y",
    "relative MSE": "1",
    "CRPS": "y",
    "NLL": "nat",
    "width of 90 % intervals": "y",
}


def metric_results(
    estimates: dict[str, Estimate],
    joint: OmnibusTest,
    tce: TestBasedError | None,
    covered: Coverage | None,
    level: float,
) -> dict[str, MetricResult]:
    """Return all metrics with adjusted p-values.

    That of the mean error is that of its component of the joint test; that of TCE is at least that of the joint test.
    Other metrics have none.
    """
    found = [_estimated(each, joint) for each in estimates.values()]
    if tce is not None:
        found.append(_tested(tce, joint.pvalue, level))
    if covered is not None:
        found += _covered(covered)
    return {metric.name: metric for metric in found}


def _estimated(e: Estimate, joint: OmnibusTest) -> MetricResult:
    component = joint.components.get(e.name)
    given = (e.null, e.pvalue, None if component is None else component.adjusted_pvalue)
    expected, pvalue, adjusted = (math.nan if each is None else each for each in given)
    limits = (e.low, e.high)
    return _result(e.name, e.value, limits, expected, pvalue, adjusted, e.level, "student", _UNITS[e.name])


def _tested(t: TestBasedError, joint_pvalue: float, level: float) -> MetricResult:
    # A metric is significant only if the joint test is, so its p-value is at least that of the joint test.
    adjusted = t.pvalue if math.isnan(joint_pvalue) else max(t.pvalue, joint_pvalue)
    none = (math.nan, math.nan)
    result = _result("TCE", t.value, none, t.expected, t.pvalue, adjusted, level, "none", "%")
    null = replace(result.null, low=t.low, high=t.high, alternative="greater", n_resamples=t.n_resamples)
    return replace(result, null=null)


def _covered(covered: Coverage) -> Iterator[MetricResult]:
    columns = (covered.per_level[name] for name in ("level", "observed", "low", "high", "pvalue"))
    for nominal, observed, low, high, pvalue in zip(*columns, strict=True):
        name, limits = f"coverage of {100 * nominal:.3g} % intervals", (100 * float(low), 100 * float(high))
        expected, level = 100 * float(nominal), covered.confidence_level
        yield _result(name, 100 * float(observed), limits, expected, float(pvalue), math.nan, level, "exact", "%")


def resampled_metrics(
    metrics: Mapping[str, Metric],
    sample: PointSample | DistributionSample,
    joint: OmnibusTest,
    level: float,
    *,
    seed: SeedSequence,
    n_resamples: int,
    show: bool | None = None,
) -> dict[str, MetricResult]:
    """Return metrics with intervals and nulls by resampling; without resamples their values alone."""
    if not n_resamples:
        values = {name: metric.value(sample.table) for name, metric in metrics.items()}
        units, none = {name: metric.unit for name, metric in metrics.items()}, (math.nan, math.nan)
        return {
            name: _result(name, value, none, math.nan, math.nan, math.nan, level, "none", units[name])
            for name, value in values.items()
        }
    found: dict[str, MetricResult] = {}
    for with_null in (True, False):
        names = [name for name, metric in metrics.items() if bool(sample.null_refusal(metric)) != with_null]
        options: dict[str, Any] = {"seed": seed, "n_resamples": n_resamples, "null": with_null, "show": show}
        replicates = resample_metrics([metrics[name] for name in names], sample, **options) if names else []
        found |= {name: _resampled(name, each, joint, level) for name, each in zip(names, replicates, strict=True)}
    return {name: found[name] for name in metrics}


def _resampled(name: str, replicates: Replicates, joint: OmnibusTest, level: float) -> MetricResult:
    null = null_from_replicates(replicates, level)
    # A metric is significant only if the joint test is.
    adjusted = null.pvalue if math.isnan(joint.pvalue) else max(null.pvalue, joint.pvalue)
    return MetricResult(name, interval_from_replicates(replicates, level), null, adjusted)


def _result(
    name: str,
    value: float,
    limits: tuple[float, float],
    expected: float,
    pvalue: float,
    adjusted: float,
    level: float,
    method: str,
    unit: str,
) -> MetricResult:
    """Return a metric whose expected value under calibration is known, but not its null distribution."""
    spec = {"name": name}
    interval = Interval(name, value, *limits, level, method, unit, 0, spec)
    null = Null(name, value, expected, math.nan, math.nan, pvalue, "two-sided", level, unit, 0, spec)
    return MetricResult(name, interval, null, adjusted)


def estimate_metrics(
    table: MeanTable, forecast: Any, cluster: Ints | None, level: float, of_means: bool
) -> Iterator[Estimate]:
    """Estimate the metrics that are means over rows, with standard errors from the influence of each row."""
    p, y = table.prediction, table.mean
    alike = _too_alike(table)
    testable = of_means and not alike
    options: dict[str, Any] = {"cluster": cluster, "level": level}

    error = _mean("mean error", table, p - y, null=0.0 if testable else None, **options)
    yield replace(error, standard_error=math.nan, low=math.nan, high=math.nan) if alike else error
    outcome = table.mean_outcome
    if (y >= 0).all() and outcome > 0:
        share = table.mean_prediction / outcome
        null = 1.0 if testable else None
        yield from_influence("ratio", share, (p - share * y) / outcome, table, null=null, **options)
    squares = (p - y) ** 2
    yield _mean("MSE", table, squares, **options)
    yield _mean("MAE", table, np.abs(p - y), **options)
    spread = means.variance(table)
    if spread > 0:
        relative = table.average(squares) / spread
        influence = (squares - relative * (y - outcome) ** 2) / spread
        yield from_influence("relative MSE", relative, influence, table, **options)
    if forecast is not None:
        yield from _distribution_estimates(table, forecast, options)


def _distribution_estimates(table: MeanTable, forecast: Any, options: dict[str, Any]) -> Iterator[Estimate]:
    y = table.mean
    yield _mean("CRPS", table, forecast.crps(y), **options)
    try:
        density = forecast.log_density(y)
    except InputError:
        density = None
    if density is not None and np.isfinite(density).all():
        yield _mean("NLL", table, -density, **options)
    try:
        low, high = forecast.quantile([0.05, 0.95]).T
    except InputError:
        return
    yield _mean("width of 90 % intervals", table, high - low, **options)


def _mean(name: str, table: MeanTable, values: Floats, *, null: float | None = None, **options: Any) -> Estimate:
    value = table.average(values)
    return from_influence(name, value, values - value, table, null=null, **options)


def _too_alike(table: MeanTable) -> bool:
    """Return whether outcomes vary too little to estimate their variance, although they differ from predictions."""
    groups = Quantile(1)(table)
    y, p = table.mean, table.prediction
    still = bin_means(groups, lambda run: y[run])
    exact = float(np.abs(p - y).max()) <= table.rounding
    return not exact and bool(too_alike(groups, still.error)[0])


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
    for level, observed in zip(covered.per_level["level"], covered.per_level["observed"], strict=True):
        low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
        sums = np.bincount(cluster, weights=((y >= low) & (y <= high)) - observed)
        m = sums.size
        error = math.sqrt(m / max(m - 1, 1) * dot(sums, sums)) / y.size
        e = from_error("", float(observed), error, m - 1, null=float(level), level=covered.confidence_level)
        for name, value in (("low", max(e.low, 0.0)), ("high", min(e.high, 1.0)), ("pvalue", e.pvalue or 0.0)):
            found[name].append(value)
    per_level = {name: np.array(found.get(name, values)) for name, values in covered.per_level.items()}
    return Coverage(per_level, covered.size, covered.confidence_level)
