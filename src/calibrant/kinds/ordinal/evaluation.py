"""Evaluation of probabilities of ordered classes: one class table to its `Evaluation`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import Argument, InputError
from calibrant.kinds.multiclass.evaluation import resampled_metrics, rows_needed, summed_decompositions
from calibrant.kinds.multiclass.sample import MulticlassSample
from calibrant.kinds.ordinal.details import OrdinalDetails
from calibrant.kinds.ordinal.verdict import Threshold, decide
from calibrant.metrics.calibration_errors import ACE
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.ordinal import cumulative_tables
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.results.uncertainty import MetricResult
from calibrant.tables.class_table import ClassTable


def evaluate(sample: MulticlassSample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    """Evaluate a sample without groups."""
    table = sample.table
    if not len(table):
        raise InputError(Argument("y_true") + " and forecast must hold at least one row; got none.")
    sample = replace(sample)  # a copy, which keeps nothing for the evaluation of other groups
    margin, level = float(settings.margin), settings.confidence_level  # type: ignore[arg-type]
    judged = decide(table, sample.cluster, margin=margin, alpha=settings.alpha, confidence_level=level)
    verdict, estimate = judged.verdict, judged.estimate
    error = MetricResult(estimate.error.metric, estimate.error, estimate.null, verdict.pvalue)
    metrics = {error.name: error} | resampled_metrics(settings, sample, verdict, seed, progress)
    parts, needed = summed_decompositions(cumulative_tables(table)), rows_needed(table, estimate.information, settings)
    details = OrdinalDetails(estimate, judged.thresholds, table.labels, parts, _mean_class(table), needed)
    breakdowns = _breakdowns(table, judged.thresholds, level)
    return Evaluation("ordinal", table, metrics, breakdowns, verdict, details, settings, own_notes=table.notes)


def threshold_name(label: Any) -> str:
    """Return the name of a threshold in results: "at most B"."""
    return f"at most {label}"


def _breakdowns(table: ClassTable, thresholds: Sequence[Threshold], level: float) -> dict[str, Breakdown]:
    """Return the breakdown of the cumulative probabilities of each threshold, over ten bins of equal size."""
    tables = zip(thresholds, cumulative_tables(table), strict=True)
    breakdowns = {threshold_name(threshold.label): ACE()(one) for threshold, one in tables}
    for breakdown in breakdowns.values():
        breakdown.rate_interval(level)  # stored for diagrams and report
    return breakdowns


def _mean_class(table: ClassTable) -> tuple[float, float]:
    predicted = table.proba @ np.arange(table.n_classes)
    return float(np.average(predicted, weights=table.weight)), float(np.average(table.code, weights=table.weight))
