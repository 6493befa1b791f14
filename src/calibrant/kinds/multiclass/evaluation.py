"""Evaluation of class probabilities: one class table to its `Evaluation`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import Argument, InputError
from calibrant.inference.intervals import interval_from_replicates, null_from_replicates
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.power import rows_to_decide
from calibrant.inference.resampling import resample_metrics
from calibrant.inference.table_sample import TableSample
from calibrant.kinds.multiclass.details import MulticlassDetails
from calibrant.kinds.multiclass.sample import MulticlassSample
from calibrant.kinds.multiclass.verdict import ClassDeviation, decide_classes
from calibrant.metrics.bins import PANEL_BINS, EqualWidth
from calibrant.metrics.calibration_errors import ACE, ECE, TCE
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.metric import Metric
from calibrant.metrics.multiclass import ClasswiseMetric, MulticlassBrier, MulticlassLogLoss, TopLabelMetric
from calibrant.metrics.proper_scores import corp_decomposition, murphy_decomposition
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.results.uncertainty import MetricResult
from calibrant.results.verdict import Verdict
from calibrant.tables.class_table import ClassTable
from calibrant.tables.score_table import ScoreTable

if TYPE_CHECKING:
    from calibrant.results.group_differences import Heterogeneity

# Class-wise metrics whose bins follow the data are measured class by class, so they are skipped where entries are more.
_MAX_ENTRIES = 2_000_000


def _default_metrics(table: ClassTable, alpha: float) -> dict[str, Metric]:
    """Return the default metrics, with the level of TCE; class-wise ACE and TCE only where entries are few."""
    classwise: list[Any] = [ECE()]
    if table.proba.size <= _MAX_ENTRIES:
        classwise += [ACE(), TCE(alpha=alpha, bins=PANEL_BINS)]
    found: list[Any] = [ClasswiseMetric(each) for each in classwise]
    found += [TopLabelMetric(each) for each in (ECE(), ACE(), TCE(alpha=alpha, bins=PANEL_BINS))]
    return {metric.name: metric for metric in [*found, MulticlassBrier(), MulticlassLogLoss()]}


def evaluate(sample: MulticlassSample, settings: Settings, seed: SeedSequence, progress: bool | None) -> Evaluation:
    """Evaluate a sample without groups."""
    table = sample.table
    if not len(table):
        raise InputError(Argument("y_true") + " and forecast must hold at least one row; got none.")
    sample = replace(sample)  # a copy, which keeps nothing for the evaluation of other groups
    weights: dict[str, Any] = {"weight" if table.importance else "frequency": table.weight, "cluster": sample.cluster}
    levels: dict[str, Any] = {"margin": settings.margin, "alpha": settings.alpha}
    judged = decide_classes(
        table.proba,
        table.code,
        confidence_level=settings.confidence_level,
        labels=table.labels,
        **levels,
        **weights,
    )
    verdict, estimate = judged.verdict, judged.estimate
    panel: Mapping[str, Metric] = settings.metrics or _default_metrics(table, settings.alpha)
    settings = replace(settings, metrics=panel)
    error = MetricResult(estimate.error.metric, estimate.error, estimate.null, verdict.pvalue)
    metrics = {error.name: error} | resampled_metrics(settings, sample, verdict, seed, progress)
    details = MulticlassDetails(
        *judged[1:],
        labels=table.labels,
        decompositions=summed_decompositions(map(table.class_table, range(table.n_classes))),
        top_label=(float(np.average(table.confidence, weights=table.weight)), table.accuracy),
        rows_needed=rows_needed(table, estimate.information, settings),
    )
    breakdowns = _breakdowns(table, judged.classes, settings)
    return Evaluation("multiclass", table, metrics, breakdowns, verdict, details, settings, own_notes=table.notes)


def heterogeneity(groups: Mapping[Any, MulticlassSample], whole: MulticlassSample, level: float) -> "Heterogeneity":
    """Return the heterogeneity of the log-odds shifts of the top label between groups."""
    from calibrant.inference.log_odds_heterogeneity import NAME, log_odds_heterogeneity

    samples = {key: _top_label(sample) for key, sample in groups.items()}
    return log_odds_heterogeneity(samples, _top_label(whole), level, name=f"{NAME} of the top label")


def _top_label(sample: MulticlassSample) -> TableSample:
    """Return the confidence and the correctness of the top label, in the same clusters."""
    table, codes = sample.table, sample.cluster
    top = table.top_label()
    if codes is None:
        return TableSample(top)
    confidence, correct = table.confidence, table.best == table.code
    places = np.searchsorted(top.score, confidence)
    count = int(codes.max()) + 1
    weight = None if table.weight is None else table.weight
    rows = PairedRows((top.score,), (places,), correct.astype(np.int64), weight, codes, count)
    return TableSample(top, few_clusters=count, few_rows=rows)


def resampled_metrics(
    settings: Settings, sample: MulticlassSample, verdict: Verdict, seed: SeedSequence, progress: bool | None
) -> dict[str, MetricResult]:
    """Return the metrics of the settings with intervals and nulls, except that of the verdict."""
    panel = {name: metric for name, metric in settings.metrics.items() if name != verdict.deviation.name}
    options: dict[str, Any] = {"seed": seed, "n_resamples": settings.n_resamples, "show": progress}
    replicates = resample_metrics(list(panel.values()), sample, skip_missing=True, **options)
    results = {}
    for name, of_metric in zip(panel, replicates, strict=True):
        null = null_from_replicates(of_metric, settings.confidence_level)
        interval = interval_from_replicates(of_metric, settings.confidence_level)
        results[name] = MetricResult(name, interval, null, max(null.pvalue, verdict.pvalue))
    return results


def rows_needed(table: ClassTable, information: float, settings: Settings) -> int | None:
    """Return the number of further rows that would probably decide; None where nothing is known."""
    if not information > 0:
        return None
    margin: Any = settings.margin
    return rows_to_decide(float(table.size), information, margin, settings.alpha)


def _breakdowns(
    table: ClassTable, classes: Sequence[ClassDeviation], settings: Settings, shown: int = 11
) -> dict[str, Breakdown]:
    """Return the breakdowns of the top label, and of the classes with the largest deviations."""
    top = table.top_label()
    found = {
        f"top-label {metric.name}": metric(top) for metric in (ECE(), ACE(), TCE(alpha=settings.alpha, bins=PANEL_BINS))
    }
    worst = sorted(classes, key=lambda c: (c.adjusted_pvalue, c.pvalue, -abs(c.predicted - c.observed)))
    for each in worst[:shown]:
        found[f"class {table.labels[each.label]}"] = ACE()(table.class_table(each.label))
    for breakdown in found.values():
        breakdown.rate_interval(settings.confidence_level)  # stored for diagrams and report
    return found


def summed_decompositions(tables: Iterable[ScoreTable]) -> dict[str, dict[str, float]]:
    """Return the decompositions of a score that is a sum over events: Murphy's over ten bins, and CORP."""
    totals: dict[str, dict[str, float]] = {name: dict.fromkeys(parts, 0.0) for name, parts in _PARTS.items()}
    for one in tables:
        found = {"murphy": murphy_decomposition(one, bins=EqualWidth(10)), "corp": corp_decomposition(one)}
        for name, parts in _PARTS.items():
            for part in parts:
                totals[name][part] += float(getattr(found[name], part))
    return totals


_PARTS = {
    "murphy": ("reliability", "resolution", "uncertainty", "within_variance", "within_covariance"),
    "corp": ("mcb", "dsc", "unc"),
}
