"""Evaluation of predictive distributions: metrics with intervals, and a verdict."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats
from calibrant._support.errors import Note, join_notes
from calibrant._support.random_streams import generator
from calibrant.inference.regression.tied_quantiles import settle_ties
from calibrant.inference.regression.uniformity import anderson_darling, chi_square, kolmogorov_smirnov
from calibrant.kinds.distribution.details import DistributionDetails
from calibrant.kinds.distribution.metrics import (
    UNITS_OF_DISTRIBUTIONS,
    coverage_by_level,
    coverage_results,
    distribution_estimates,
)
from calibrant.kinds.distribution.sample import DistributionSample
from calibrant.kinds.distribution.verdict import PITValues, decide
from calibrant.kinds.point.evaluation import bins_of_bias, given_metrics, measure_means
from calibrant.kinds.point.metrics import metric_results
from calibrant.metrics.distribution import transforms
from calibrant.metrics.frequencies import CountFrequencies, count_frequencies
from calibrant.metrics.point import mse_decomposition
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.results.verdict import TestResult
from calibrant.tables.mean_table import MeanTable

if TYPE_CHECKING:
    from calibrant.results.group_differences import Heterogeneity


def evaluate(rows: DistributionSample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    """Evaluate a sample without groups."""
    table, cluster, forecast, level = rows.points, rows.cluster, rows.table.forecast, settings.confidence_level
    assert table is not None
    halves = _halves(table, forecast, seed)
    estimates = {e.name: e for e in distribution_estimates(table, forecast, cluster, level)}
    line = tce = None
    if forecast.point_is_mean:
        line, tce = measure_means(halves, cluster, settings, seed, progress)
    u, unresolved, ties = settle_ties(
        transforms(table.mean, forecast, random_state=seed), table.mean, forecast, random_state=seed
    )
    low, high = forecast.cells(table.mean) if forecast.is_discrete else (u, u)
    pit = PITValues(low, high, u, unresolved)
    covered = coverage_by_level(table.mean, forecast, cluster, level)
    uniformity = () if forecast.is_discrete else _uniformity(np.sort(u), forecast)
    verdict, deviations, limits = decide(rows, halves, estimates["mean error"], pit, uniformity, settings, seed)
    panel = metric_results(estimates, verdict.omnibus, tce, UNITS_OF_DISTRIBUTIONS)
    panel |= {} if covered is None else coverage_results(covered)
    if settings.metrics:
        panel = {"mean error": panel["mean error"], **given_metrics(rows, verdict, settings, seed, progress)}
    breakdowns = {"bias by bin": bins_of_bias(halves, settings)} | ({} if covered is None else {"coverage": covered})
    decomposition = mse_decomposition(table)
    of_details: dict[str, Any] = {"other_tests": uniformity, "deviations": deviations, "pit": u}
    of_details |= {"pit_low": low, "pit_high": high, "has_means": forecast.point_is_mean}
    of_details["is_discrete"] = forecast.is_discrete
    of_details["counts"] = _counts(table.mean, forecast)
    details = DistributionDetails(line, decomposition, rows.n_clusters, **of_details)
    about_pit = dict.fromkeys(note for test in uniformity for note in test.notes)  # all tests read the same values
    notes = join_notes(_notes(table, forecast, halves), about_pit, limits, ties)
    return Evaluation("distribution", table, panel, breakdowns, verdict, details, settings, own_notes=notes)


def heterogeneity(
    groups: Mapping[Any, DistributionSample], whole: DistributionSample, level: float
) -> "Heterogeneity | None":
    """Return the heterogeneity of the mean errors of groups; None for forecasts that know no means."""
    from calibrant.inference.mean_error_heterogeneity import mean_error_heterogeneity

    if not whole.table.forecast.point_is_mean:
        return None
    points = {key: (sample.points, sample.cluster) for key, sample in groups.items() if sample.points is not None}
    return mean_error_heterogeneity(points, level)


def _notes(table: MeanTable, forecast: Any, halves: MeanTable) -> tuple[Note, ...]:
    notes: tuple[Note, ...] = table.notes
    if not forecast.point_is_mean:
        notes = join_notes(notes, _median_notes(forecast))
    if halves is not table:
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


def _counts(y: Floats, forecast: Any) -> CountFrequencies | None:
    """Return observed and expected frequencies of counts; None for outcomes that are no counts, or have large ones."""
    if not forecast.is_discrete or not len(y) or y.min() < 0 or (y != np.floor(y)).any():
        return None
    return count_frequencies(y, forecast)


def _uniformity(u: Floats, forecast: Any) -> tuple[TestResult, ...]:
    edges = forecast.known_levels if forecast.ensemble is None else None
    return anderson_darling(u), kolmogorov_smirnov(u), chi_square(u, edges=edges)


def _halves(table: MeanTable, forecast: Any, seed: SeedSequence) -> MeanTable:
    """Return the table whose errors, given its predictions, have mean 0 if the forecasts are calibrated.

    The mean of few members is itself noisy: given it, outcomes regress to the mean. Of an ensemble the prediction is
    therefore the mean of one half of the members, and its error that of the other half.
    """
    ensemble = forecast.ensemble
    if ensemble is None or ensemble.shape[1] < 2:
        return table
    # Members are stored in rising order: a random half of each row is exchangeable with the other half.
    members = generator(seed).permuted(ensemble, axis=1)
    half = members.shape[1] // 2
    first, second = members[:, :half].mean(axis=1), members[:, half:].mean(axis=1)
    return replace(table, prediction=first, mean=table.mean + first - second)
