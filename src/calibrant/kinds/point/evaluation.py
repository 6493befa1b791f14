"""Evaluation of point predictions: metrics with intervals, and a verdict."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Ints
from calibrant._support.errors import join_notes
from calibrant.inference.regression.bias_by_bin import BiasByBin, bias_by_bin, usual_bins
from calibrant.inference.regression.point_line import LinearFit, fitted_line
from calibrant.kinds.point.details import PointDetails
from calibrant.kinds.point.metrics import estimate_metrics, metric_results, resampled_metrics
from calibrant.kinds.point.sample import PointSample
from calibrant.kinds.point.tce import tce_with_null
from calibrant.kinds.point.verdict import decide, mean_margin
from calibrant.metrics.point import mse_decomposition
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import RelativeMargin, Settings
from calibrant.results.uncertainty import MetricResult, Null
from calibrant.results.verdict import Verdict
from calibrant.tables.mean_table import MeanTable

if TYPE_CHECKING:
    from calibrant.results.group_differences import Heterogeneity


def measure_means(
    table: MeanTable, cluster: Ints | None, settings: Settings, seed: SeedSequence, progress: bool | None
) -> tuple[LinearFit | None, Null | None]:
    """Return the regression of outcomes on predictions, and TCE with its null distribution.

    The first is None where all predictions are equal, the second without replicates, or where metrics were given.
    """
    level = settings.confidence_level
    line = fitted_line(table, level=level, cluster=cluster) if np.ptp(table.prediction) > 0 else None
    if not settings.n_resamples or settings.metrics:
        return line, None
    options: dict[str, Any] = {"n_resamples": settings.n_resamples, "random_state": seed, "progress": progress}
    return line, tce_with_null(table, cluster, alpha=settings.alpha, level=level, **options)


def evaluate(rows: PointSample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    """Evaluate a sample without groups."""
    table, cluster = rows.table, rows.cluster
    estimates = {e.name: e for e in estimate_metrics(table, cluster, settings.confidence_level, True)}
    line, tce = measure_means(table, cluster, settings, seed, progress)
    margin = mean_margin(table, settings.margin, settings.is_default_margin)
    settings = replace(settings, margin=RelativeMargin(margin.size) if margin.is_relative else margin.size)
    verdict, limits = decide(rows, estimates["mean error"], margin, settings)
    panel = metric_results(estimates, verdict.omnibus, tce)
    if settings.metrics:
        given = given_metrics(rows, verdict, settings, seed, progress)
        tested = {"mean error": panel["mean error"]}
        panel = tested | given | tested
    breakdowns = {"bias by bin": bins_of_bias(table, settings)}
    details = PointDetails(line, mse_decomposition(table), rows.n_clusters)
    notes = join_notes(table.notes, limits)
    return Evaluation("point", table, panel, breakdowns, verdict, details, settings, own_notes=notes)


def heterogeneity(groups: Mapping[Any, PointSample], whole: PointSample, level: float) -> "Heterogeneity":
    """Return the heterogeneity of the mean errors of groups."""
    from calibrant.inference.mean_error_heterogeneity import mean_error_heterogeneity

    return mean_error_heterogeneity({key: (each.table, each.cluster) for key, each in groups.items()}, level)


def given_metrics(
    sample: Any, verdict: Verdict, settings: Settings, seed: SeedSequence, progress: bool | None
) -> dict[str, MetricResult]:
    """Return the metrics that the user asks for."""
    return resampled_metrics(
        settings.metrics,
        sample,
        verdict.omnibus,
        settings.confidence_level,
        seed=seed,
        n_resamples=settings.n_resamples,
        show=progress,
    )


def bins_of_bias(table: MeanTable, settings: Settings) -> BiasByBin:
    """Return the bias by bin, over ten bins by default, or fewer so that each has fifty rows."""
    bins, level = settings.bins or usual_bins(table), settings.confidence_level
    found: BiasByBin = bias_by_bin(table, bins=bins, alpha=settings.alpha, confidence_level=level)
    return found
