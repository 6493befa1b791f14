"""Metrics of point predictions, with confidence intervals."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats, Ints
from calibrant.inference.estimates import from_influence
from calibrant.inference.intervals import interval_from_replicates, null_from_replicates
from calibrant.inference.regression.bias_by_bin import too_alike
from calibrant.inference.resampling import Replicates, Sample, resample_metrics
from calibrant.metrics import point as means
from calibrant.metrics.bins import EqualSize
from calibrant.metrics.metric import Metric
from calibrant.metrics.point_costs import bin_means
from calibrant.results.uncertainty import Estimate, Interval, MetricResult, Null
from calibrant.results.verdict import OmnibusTest
from calibrant.tables.mean_table import MeanTable

UNITS = {
    "mean error": "y",
    "ratio": "1",
    "MSE": "y^2",
    "MAE": "y",
    "relative MSE": "1",
}


def metric_results(
    estimates: dict[str, Estimate], omnibus: OmnibusTest, tce: Null | None, units: Mapping[str, str] = UNITS
) -> dict[str, MetricResult]:
    """Return all metrics with adjusted p-values.

    That of the mean error is that of its component of the omnibus test; that of TCE is at least that of the test. Other
    metrics have none.
    """
    found = [_estimated(each, omnibus, units[each.name]) for each in estimates.values()]
    if tce is not None:
        found.append(_tested(tce, omnibus.pvalue))
    return {metric.name: metric for metric in found}


def _estimated(e: Estimate, omnibus: OmnibusTest, unit: str) -> MetricResult:
    component = omnibus.components.get(e.name)
    given = (e.null, e.pvalue, None if component is None else component.adjusted_pvalue)
    expected, pvalue, adjusted = (math.nan if each is None else each for each in given)
    limits = (e.low, e.high)
    return metric_result(e.name, e.value, limits, expected, pvalue, adjusted, e.level, "student", unit)


def _tested(null: Null, omnibus_pvalue: float) -> MetricResult:
    # A metric is significant only if the omnibus test is, so its p-value is at least that of the omnibus test.
    adjusted = null.pvalue if math.isnan(omnibus_pvalue) else max(null.pvalue, omnibus_pvalue)
    none = Interval(null.metric, null.value, math.nan, math.nan, null.level, "none", null.unit, 0, null.spec)
    return MetricResult(null.metric, none, null, adjusted)


def resampled_metrics(
    metrics: Mapping[str, Metric],
    sample: Sample,
    omnibus: OmnibusTest,
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
            name: metric_result(name, value, none, math.nan, math.nan, math.nan, level, "none", units[name])
            for name, value in values.items()
        }
    found: dict[str, MetricResult] = {}
    for with_null in (True, False):
        names = [name for name, metric in metrics.items() if bool(sample.null_refusal(metric)) != with_null]
        options: dict[str, Any] = {"seed": seed, "n_resamples": n_resamples, "null": with_null, "show": show}
        replicates = resample_metrics([metrics[name] for name in names], sample, **options) if names else []
        found |= {name: _resampled(name, each, omnibus, level) for name, each in zip(names, replicates, strict=True)}
    return {name: found[name] for name in metrics}


def _resampled(name: str, replicates: Replicates, omnibus: OmnibusTest, level: float) -> MetricResult:
    null = null_from_replicates(replicates, level)
    # A metric is significant only if the omnibus test is.
    adjusted = null.pvalue if math.isnan(omnibus.pvalue) else max(null.pvalue, omnibus.pvalue)
    return MetricResult(name, interval_from_replicates(replicates, level), null, adjusted)


def metric_result(
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


def estimate_metrics(table: MeanTable, cluster: Ints | None, level: float, of_means: bool) -> Iterator[Estimate]:
    """Estimate the metrics that are means over rows, with standard errors from the influence of each row."""
    p, y = table.prediction, table.mean
    alike = _too_alike(table)
    testable = of_means and not alike
    options: dict[str, Any] = {"cluster": cluster, "level": level}

    error = mean_estimate("mean error", table, p - y, null=0.0 if testable else None, **options)
    yield replace(error, standard_error=math.nan, low=math.nan, high=math.nan) if alike else error
    outcome = table.mean_outcome
    if (y >= 0).all() and outcome > 0:
        share = table.mean_prediction / outcome
        null = 1.0 if testable else None
        yield from_influence("ratio", share, (p - share * y) / outcome, table, null=null, **options)
    squares = (p - y) ** 2
    yield mean_estimate("MSE", table, squares, **options)
    yield mean_estimate("MAE", table, np.abs(p - y), **options)
    spread = means.variance(table)
    if spread > 0:
        relative = table.average(squares) / spread
        influence = (squares - relative * (y - outcome) ** 2) / spread
        yield from_influence("relative MSE", relative, influence, table, **options)


def mean_estimate(
    name: str, table: MeanTable, values: Floats, *, null: float | None = None, **options: Any
) -> Estimate:
    value = table.average(values)
    return from_influence(name, value, values - value, table, null=null, **options)


def _too_alike(table: MeanTable) -> bool:
    """Return whether outcomes vary too little to estimate their variance, although they differ from predictions."""
    groups = EqualSize(1)(table)
    y, p = table.mean, table.prediction
    still = bin_means(groups, lambda run: y[run])
    exact = float(np.abs(p - y).max()) <= table.rounding
    return not exact and bool(too_alike(groups, still.error)[0])
