"""Evaluation of point predictions and predictive distributions: metrics with intervals, a joint test and a verdict."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import Note, join_notes
from calibrant._support.random_streams import generator
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.regression import distribution_components, point_components
from calibrant.inference.regression.bias_by_bin import BiasByBin, bias_by_bin
from calibrant.inference.regression.forecast_samples import regression_sample
from calibrant.inference.regression.point_line import fitted_line
from calibrant.inference.regression.point_tce import TestBasedError, tce_with_null
from calibrant.inference.regression.tied_quantiles import settle_ties
from calibrant.inference.regression.uniformity import anderson_darling, chi_square, kolmogorov_smirnov
from calibrant.inference.resampling import MIN_CLUSTERS
from calibrant.kinds.point.details import RegressionDetails
from calibrant.kinds.point.deviations import Deviation, bias_deviation, coverage_deviation
from calibrant.kinds.point.metrics import (
    coverage_by_level,
    estimate_metrics,
    metric_results,
    resampled_metrics,
)
from calibrant.kinds.point.rows import Sample
from calibrant.metrics import point as means
from calibrant.metrics.bins import Quantile
from calibrant.metrics.distribution import transforms
from calibrant.metrics.point import mse_decomposition
from calibrant.results.evaluation import Evaluation
from calibrant.results.hypothesis_tests import OmnibusTest, TestResult
from calibrant.results.metric_result import MetricResult
from calibrant.results.settings import Settings
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import MeanTable

__all__ = ["evaluate"]


def evaluate(rows: Sample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    """Evaluate rows without groups."""
    table, level = rows.table, settings.confidence_level
    of_means = rows.forecast is None or rows.forecast.point_is_mean
    halves = _halves(rows, seed)
    estimates = {e.name: e for e in estimate_metrics(table, rows.forecast, rows.cluster, level, of_means)}
    apart = bool(np.ptp(halves.prediction) > 0)
    line = fitted_line(halves, level=level, cluster=rows.cluster) if apart and of_means else None
    tested = settings.n_resamples and of_means and not settings.metrics
    tce = _tce(halves, rows.cluster, settings, seed, progress) if tested else None
    u, covered = np.empty(0), None
    uniformity: tuple[TestResult, ...] = ()
    ties: list[Note] = []
    if rows.forecast is not None:
        u, ties = settle_ties(transforms(table.mean, rows.forecast, random_state=seed), table.mean, rows.forecast)
        covered = coverage_by_level(table.mean, rows.forecast, rows.cluster, level)
        uniformity = _uniformity(np.sort(u), rows.forecast)
    kind = "point" if rows.forecast is None else "distribution"
    joint, deviation, found = _judge(rows, halves, estimates["mean error"], u, uniformity, settings)
    breakdowns = {"bias by bin": _bins(halves, settings)} | ({} if covered is None else {"coverage": covered})
    clusters = None if rows.cluster is None else int(rows.cluster.max()) + 1
    decomposition = mse_decomposition.of_table(table)
    about_pit = dict.fromkeys(note for test in uniformity for note in test.notes)  # all tests read the same values
    notes = join_notes(_notes(rows, halves, of_means), about_pit, found, ties)
    panel = metric_results(estimates, joint, tce, covered, level)
    if settings.metrics:
        panel = {"mean error": panel["mean error"], **_given_metrics(rows, settings, seed, progress, joint)}
    return Evaluation(
        kind,
        table,
        panel,
        breakdowns,
        RegressionDetails(kind, joint, deviation, line, decomposition, clusters, uniformity, u),
        settings,
        own_notes=notes,
    )


def _given_metrics(
    rows: Sample, settings: Settings, seed: SeedSequence, progress: bool | None, joint: OmnibusTest
) -> dict[str, MetricResult]:
    """Return the metrics that the user asks for."""
    sample = regression_sample(rows.table, rows.forecast, rows.cluster)
    few = sample.is_clustered and sample.n_rarer < MIN_CLUSTERS
    return resampled_metrics(
        settings.metrics,
        sample,
        joint,
        settings.confidence_level,
        seed=seed,
        n_resamples=0 if few else settings.n_resamples,
        show=progress,
    )


def _notes(rows: Sample, halves: MeanTable, of_means: bool) -> tuple[Note, ...]:
    notes: tuple[Note, ...] = rows.table.notes
    if not of_means:
        notes = join_notes(notes, _median_notes(rows.forecast))
    if halves is not rows.table:
        text = "Bins and slope group rows by one half of the members and use the error of the other half."
        notes = join_notes(notes, [Note("split_members", 1, text)])
    return notes


def _median_notes(forecast: Any) -> list[Note]:
    """Return notes about forecasts without means: what the predictions are, and the levels that are tested."""
    known = forecast.known_levels
    if known is None or np.isclose(known, 0.5).any():
        point = "Predictions are medians, which need not be the mean outcome"
    else:
        point = "The forecasts have no median: predictions are interpolated between quantiles"
    notes = [Note("medians", 1, f"{point}: bias and slope are not tested.")]
    if known is not None:
        levels = ", ".join(f"{100 * level:.4g}" for level in known)
        notes.append(Note("levels", known.size, f"Only quantiles at these levels are tested: {levels} %."))
    return notes


def _bins(halves: MeanTable, settings: Settings) -> BiasByBin:
    usual = Quantile(int(np.clip(halves.effective_size / point_components.ROWS_PER_BIN + 1e-9, 1, 10)))
    bins, level = settings.bins or usual, settings.confidence_level
    found: BiasByBin = bias_by_bin.of_table(halves, bins=bins, alpha=settings.alpha, confidence_level=level)
    return found


def _uniformity(u: Floats, forecast: Any) -> tuple[TestResult, ...]:
    edges = forecast.known_levels if forecast.ensemble is None else None
    return anderson_darling(u), kolmogorov_smirnov(u), chi_square(u, edges=edges)


def _tce(
    table: MeanTable, cluster: Ints | None, settings: Settings, seed: SeedSequence, progress: bool | None
) -> TestBasedError:
    return tce_with_null(
        table,
        cluster,
        alpha=settings.alpha,
        level=settings.confidence_level,
        n_resamples=settings.n_resamples,
        random_state=seed,
        progress=progress,
    )


def _halves(rows: Sample, seed: SeedSequence) -> MeanTable:
    """Return the table whose errors, given its predictions, have mean 0 if the forecasts are calibrated.

    The mean of few members is itself noisy: given it, outcomes regress to the mean. Of an ensemble the prediction is
    therefore the mean of one half of the members, and its error that of the other half.
    """
    ensemble = None if rows.forecast is None else rows.forecast.ensemble
    if ensemble is None or ensemble.shape[1] < 2:
        return rows.table
    # Members are stored in rising order: a random half of each row is exchangeable with the other half.
    members = generator(seed).permuted(ensemble, axis=1)
    half = members.shape[1] // 2
    first, second = members[:, :half].mean(axis=1), members[:, half:].mean(axis=1)
    return replace(rows.table, prediction=first, mean=rows.table.mean + first - second)


def _judge(
    rows: Sample,
    halves: MeanTable,
    error: Estimate,
    u: Floats,
    uniformity: tuple[TestResult, ...],
    settings: Settings,
) -> tuple[OmnibusTest, Deviation, tuple[Note, ...]]:
    """Return the joint test, the deviation, and notes about tests that are limited."""
    of_means = rows.forecast is None or rows.forecast.point_is_mean
    clusters = None if rows.cluster is None else int(rows.cluster.max()) + 1
    few = clusters is not None and clusters < MIN_CLUSTERS
    components: list[TestResult | None] = []
    limited: list[str] = []
    notes: tuple[Note, ...] = ()
    known = 0.0 if rows.forecast is None else point_components.ensemble_skewness(rows.forecast.ensemble)
    sums = point_components.bin_sums(halves, rows.cluster, settings.bins, known)
    if few:
        text = f"There are {clusters} clusters; tests need at least {MIN_CLUSTERS}."
        notes = (Note("few_clusters", 1, text),)
    elif of_means:
        components, limited = _mean_components(rows, halves, error, sums, known)
    margin, alpha = float(settings.margin), settings.alpha  # type: ignore[arg-type]
    if rows.forecast is None:
        spread = math.sqrt(max(means.variance(rows.table), 0.0))
        distinct = np.unique(halves.prediction).size
        deviation = bias_deviation(sums, spread, margin, alpha, distinct)
    else:
        components += [] if few else _distribution_components(u, uniformity[0], rows, of_means, alpha)
        deviation = coverage_deviation(u, rows.forecast, rows.cluster, margin, alpha)
    if few or (rows.forecast is None and limited):
        deviation = replace(deviation, low=math.nan, high=math.nan)
    untested = (note for test in components if test is not None and test.name == "slope" for note in test.notes)
    notes = join_notes(notes, untested, point_components.skewness_note(limited))
    return join_tests(components), deviation, notes


def _mean_components(
    rows: Sample, halves: MeanTable, error: Estimate, sums: point_components.BinSums, known: float
) -> tuple[list[TestResult | None], list[str]]:
    """Return the components that test means, and the names of those that skewness limits."""
    testable = rows.forecast is None or rows.forecast.ensemble is None or halves is not rows.table
    mean, skewed_mean = point_components.mean_component(rows.table, rows.cluster, error, known)
    slope, skewed_slope = (
        point_components.slope_component(halves, rows.cluster, sums.skewness) if testable else (None, False)
    )
    if error.pvalue is None:
        slope = None
    flags = (("mean error", skewed_mean), ("slope", skewed_slope), ("bias by bins", sums.limited))
    limited = [name for name, flag in flags if flag]
    return [mean, point_components.bins_component(sums) if testable else None, slope], limited


def _distribution_components(
    u: Floats, uniformity: TestResult, rows: Sample, of_means: bool, alpha: float
) -> list[TestResult | None]:
    return [
        None if of_means else distribution_components.median_component(u, rows.forecast, rows.cluster),
        distribution_components.pit_component(u, rows.forecast, rows.cluster, uniformity),
        distribution_components.coverage_component(u, rows.forecast, rows.cluster, alpha),
    ]
