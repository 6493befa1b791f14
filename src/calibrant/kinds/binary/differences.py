"""Comparison of predicted probabilities of one event."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.random import SeedSequence

from calibrant._support.arrays import Column
from calibrant._support.errors import Note
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.model_pairs import ComparisonPlan, Pair, all_pairs
from calibrant.inference.paired import (
    ModelPair,
    PairedDifference,
    bootstrap_difference,
    brier_losses,
    calibration_difference,
    log_losses,
    mean_difference,
    paired_replicates,
)
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.table_replicates import SharedDraws, StoredReplicates
from calibrant.inference.table_sample import TableSample
from calibrant.inference.time_blocks import need_blocks
from calibrant.kinds.binary import evaluation
from calibrant.kinds.binary.evaluation import MeasuredSample
from calibrant.kinds.binary.sample import TIME_BLOCKS
from calibrant.kinds.log_odds import NAME
from calibrant.metrics.calibration_errors import ACE
from calibrant.metrics.metric import Metric
from calibrant.metrics.proper_scores import Brier, LogLoss
from calibrant.results.comparison import (
    DECIDING_TEST,
    DIEBOLD_MARIANO,
    PAIRED_TEST,
    Comparison,
    ComparisonTerms,
    Difference,
    check_score_names,
    difference_unit,
)
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Settings
from calibrant.tables.score_table import Partition, ScoreTable

TERMS = ComparisonTerms(
    decides=NAME,
    quantity="log-odds error",
    tests=("log-odds errors", "absolute gaps", "squared gaps"),
    unit="log-odds",
    scores=("Brier",),
    best="lower",
    ability="discriminates better",
)

BRIER, LOG_LOSS = "Brier", "log loss"
_LITTLE = (
    "Comparisons in which no difference can be shown, because the information of a model (about the expected number of "
    f"events) is below {MIN_INFORMATION:g}: {{count}}."
)


def compare(
    y_true: Column,
    forecasts: Mapping[str, Column],
    settings: Settings,
    seed: SeedSequence,
    *,
    plan: ComparisonPlan,
    cluster: Column | None,
    progress: bool | None,
    **rows: Any,
) -> Comparison:
    """Compare predicted probabilities of one event; models share the draws of their bootstrap replicates."""
    check_score_names(settings.metrics, {BRIER: Brier(), LOG_LOSS: LogLoss()})
    confidence_level = settings.confidence_level
    read, serial = TIME_BLOCKS(PairedRows.columns(y_true, forecasts, name="forecasts", cluster=cluster, **rows))
    need_blocks(serial)
    paired, tables = PairedRows.from_rows(read)
    names = list(forecasts)
    designs = [Design(table, None if paired.cluster is None else paired.only(i)) for i, table in enumerate(tables)]
    measured = [MeasuredSample.measure(TableSample(design.table, design.rows), settings) for design in designs]
    stored = _shared_replicates(paired, measured, settings, seed, progress)
    models = {
        name: _evaluate(design, seed, stored[i] if stored else None, measured[i], progress)
        for i, (name, design) in enumerate(zip(names, designs, strict=True))
    }
    shared = set.intersection(*(set(evaluation.metrics) for evaluation in models.values()))
    tests = _tests(paired, tables, designs)
    rest = {name: m for name, m in settings.metrics.items() if name in shared and name not in tests}
    paired_test = PAIRED_TEST if serial is None else DIEBOLD_MARIANO
    found = plan.differences(NAME, tests[NAME], confidence_level, test=DECIDING_TEST, unit=TERMS.squared_unit)
    little = sum(math.isnan(d.low) for d in found)
    for metric in (BRIER, LOG_LOSS):
        found += plan.differences(metric, tests[metric], confidence_level, test=paired_test)
    smooth = {name: metric for name, metric in rest.items() if not metric.measures_gaps}
    if not stored and smooth:
        stored = _stored(paired, list(smooth.values()), settings, seed, progress)
    found += _from_replicates(plan, models, rest, stored, settings)
    for design in designs:
        design.forget()
    notes = [
        Note("little_information", little, _LITTLE) if little else None,
        plan.infinite_note(LOG_LOSS, tests[LOG_LOSS]),
    ]
    return Comparison(
        models,
        settings=settings,
        terms=TERMS,
        own_notes=tuple(note for note in notes if note is not None),
        scores={LOG_LOSS: {name: LogLoss().value(table) for name, table in zip(names, tables, strict=True)}},
        **plan.finish(found, tests, TERMS, settings, {}),
    )


def _tests(
    rows: PairedRows, tables: Sequence[ScoreTable], designs: Sequence[Design]
) -> dict[str, dict[Pair, PairedDifference]]:
    """Return the tests of all pairs of models, by metric."""
    pairs = all_pairs(len(tables))
    tests = {NAME: {(i, j): calibration_difference(ModelPair(rows, tables, i, j, designs)) for i, j in pairs}}
    for metric, loss in ((BRIER, brier_losses), (LOG_LOSS, log_losses)):
        losses = [loss(rows, i) for i in range(len(tables))]
        tests[metric] = {(i, j): mean_difference(losses[i], losses[j], rows.weight, rows.cluster) for i, j in pairs}
    return tests


def _evaluate(
    design: Design, seed: SeedSequence, stored: StoredReplicates | None, measured: MeasuredSample, show: bool | None
) -> Evaluation:
    """Return the complete evaluation of one model."""
    sample = replace(measured.sample, stored=stored)
    measured = replace(measured, sample=sample)
    result = evaluation.evaluate(sample, measured.settings, seed, show, measured=measured, design=design)
    evaluation.complete(result, keep_design=True)
    return result


def _shared_replicates(
    rows: PairedRows, measured: Sequence[MeasuredSample], settings: Settings, seed: SeedSequence, show: bool | None
) -> list[StoredReplicates]:
    """Return the bootstrap replicates of each model, from the same draws; none with weights or clusters."""
    if rows.weight is not None or rows.cluster is not None or not rows.event.size:
        return []
    exist = [metric for name, metric in settings.metrics.items() if all(name in each.metrics for each in measured)]
    of_margin = [ACE()] if settings.is_absolute else []
    return _stored(rows, [*exist, *of_margin], settings, seed, show, [each.sample.partitions for each in measured])


def _stored(
    rows: PairedRows,
    metrics: list[Metric],
    settings: Settings,
    seed: SeedSequence,
    show: bool | None,
    partitions: Sequence[Mapping[Any, Partition]] | None = None,
) -> list[StoredReplicates]:
    options: dict[str, Any] = {"n_resamples": settings.n_resamples, "seed": seed, "show": show}
    if rows.weight is not None or rows.cluster is not None:
        found = paired_replicates(rows, metrics, **options)
        return [StoredReplicates(metrics, values) for values in found.swapaxes(0, 1)]
    draws = SharedDraws(rows, metrics, partitions)
    found = paired_replicates(rows, metrics, draws=draws, **options)
    pairs = zip(found.swapaxes(0, 1), draws.models, strict=True)
    return [StoredReplicates(metrics, values, [model]) for values, model in pairs]


def _from_replicates(
    plan: ComparisonPlan,
    models: Mapping[str, Evaluation],
    metrics: Mapping[str, Metric],
    stored: Sequence[StoredReplicates],
    settings: Settings,
) -> list[Difference]:
    """Differences of other metrics: metrics of gaps without, others with an interval by the bootstrap."""
    level, names = settings.confidence_level, plan.names
    found = []
    for name, metric in metrics.items():
        values = [model.metrics[name].value for model in models.values()]
        if metric.measures_gaps or not all(map(math.isfinite, values)):
            found += plan.untested(name, values, level, metric.unit)
            continue
        unit = difference_unit(metric.unit, name)
        for i, j in plan.reported:
            drawn = stored[i].of(metric) - stored[j].of(metric)
            value = values[i] - values[j]
            low, high, pvalue = bootstrap_difference(value, drawn, level)
            found.append(Difference(names[i], names[j], name, value, low, high, level, pvalue, unit, "bootstrap"))
    return found
