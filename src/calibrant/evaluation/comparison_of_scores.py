"""Comparison of predicted probabilities of one event."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import Note
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Column
from calibrant.evaluation.binary import LOG_ODDS_ERROR, complete_evaluation, evaluate_table
from calibrant.evaluation.comparison_result import Comparison
from calibrant.evaluation.differences import (
    DECIDING_TEST,
    PAIRED_TEST,
    Difference,
    adjust_differences,
    check_score_names,
)
from calibrant.evaluation.settings import Settings, check_settings
from calibrant.inference.decision import Margin
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.paired import (
    bootstrap_difference,
    brier_difference,
    calibration_difference,
    log_loss_difference,
    paired_replicates,
)
from calibrant.inference.resampling import THREADS_FROM, PairedRows
from calibrant.metrics.costs import Cost
from calibrant.metrics.metric import Metric
from calibrant.metrics.proper_scores import Brier, LogLoss
from calibrant.metrics.registry import MetricLike
from calibrant.tables.score_table import ScoreTable

__all__ = ["compare_scores"]

BRIER, LOG_LOSS = "Brier", "log loss"
_LITTLE = (
    "Comparisons in which no difference can be shown, because the information of a model (about the expected number of "
    f"events) is below {MIN_INFORMATION:g}: {{count}}."
)


def compare_scores(
    y_true: Column,
    forecasts: Mapping[str, Column],
    *,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Comparison:
    """Compare predicted probabilities of one event; see `calibrant.compare`."""
    settings = check_settings(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    check_score_names(settings.metrics, {BRIER: Brier(), LOG_LOSS: LogLoss()})
    seed = seed_sequence(random_state)
    paired, tables = PairedRows.read(y_true, forecasts, name="forecasts", cluster=cluster, **rows)
    names = list(forecasts)
    models = {
        name: evaluate_table(table, settings, seed, show=progress, rows=None if cluster is None else paired.only(i))
        for i, (name, table) in enumerate(zip(names, tables, strict=True))
    }
    for evaluation in models.values():
        complete_evaluation(evaluation)
    shared = set.intersection(*(set(evaluation.metrics) for evaluation in models.values()))
    others = range(1, len(names))
    pairs = [calibration_difference(paired, tables, i, 0) for i in others]
    tested = {LOG_ODDS_ERROR: pairs, BRIER: [brier_difference(paired, i, 0) for i in others]}
    losses = [log_loss_difference(paired, i, 0) for i in others]
    if all(math.isfinite(each.value) for each in losses):
        tested[LOG_LOSS] = losses
    rest = {name: m for name, m in settings.metrics.items() if name in shared and name not in tested}
    tests = {LOG_ODDS_ERROR: DECIDING_TEST}
    found = [
        Difference.from_test(name, names[0], metric, each, confidence_level, test=tests.get(metric, PAIRED_TEST))
        for metric, several in tested.items()
        for name, each in zip(names[1:], several, strict=True)
    ]
    found += _from_replicates(paired, tables, names, rest, settings, seed, progress)
    little = sum(pair.has_little_information for pair in pairs)
    notes = (Note("little_information", little, _LITTLE),) if little else ()
    return Comparison(models, adjust_differences(found), settings, notes)


def _from_replicates(
    rows: PairedRows,
    tables: Sequence[ScoreTable],
    names: list[str],
    metrics: Mapping[str, Metric],
    settings: Settings,
    seed: SeedSequence,
    show: bool | None,
) -> list[Difference]:
    """Differences of other metrics: metrics of gaps without, others with an interval by the bootstrap."""
    level = settings.confidence_level
    smooth = [name for name, metric in metrics.items() if not metric.measures_gaps]
    draws = np.empty((0, len(names), 0))
    if smooth:
        chosen = [metrics[name] for name in smooth]
        threads = tables[0].size >= THREADS_FROM
        draws = paired_replicates(rows, chosen, n_resamples=settings.n_resamples, seed=seed, threads=threads, show=show)
    found = []
    for name, metric in metrics.items():
        values = [metric.value(table) for table in tables]
        for i in range(1, len(names)):
            value, low, high, pvalue, test = values[i] - values[0], math.nan, math.nan, math.nan, ""
            if name in smooth:
                drawn = draws[:, :, smooth.index(name)]
                low, high, pvalue = bootstrap_difference(value, drawn[:, i] - drawn[:, 0], level)
                test = "bootstrap"
            found.append(Difference(names[i], names[0], name, value, low, high, level, pvalue, metric.unit, test))
    return found
