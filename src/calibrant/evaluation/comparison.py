"""`compare`: compare the calibration of several models on the same rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import InputError, Note
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Column
from calibrant.evaluation.binary import evaluate_table
from calibrant.evaluation.comparison_result import BRIER, DECIDES, LOG_LOSS, Comparison, Difference
from calibrant.evaluation.settings import Settings, check_settings
from calibrant.forecasts.kinds import forecast_kind
from calibrant.inference.decision import Margin
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import (
    PairedDifference,
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
from calibrant.tables.table_functions import row_options

__all__ = ["compare"]

_LITTLE = (
    "Comparisons in which no difference can be shown, because the information of a model (about the expected number of "
    f"events) is below {MIN_INFORMATION:g}: {{count}}."
)


@row_options
def compare(
    y_true: Column,
    y_probs: Mapping[str, Column],
    *,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Comparison:
    """Compare the calibration of several models on the same rows.

    Parameters
    ----------
    y_true : column
    y_probs : mapping of name to column
        Predictions of two models or more for the same rows; the first is the baseline that others are compared with.
    cluster : column, optional
        Rows of one cluster may depend on each other; there must be at least 10 clusters.
    costs, margin, alpha, metrics, confidence_level, n_resamples, random_state, progress
        See `evaluate`. Tables cannot be given: they no longer know which rows belong together.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. With ``missing="drop"`` a row is dropped for all models
        if the prediction of one of them, or its cluster, is missing.

    Returns
    -------
    Comparison
        ``verdict``, ``models`` (an `Evaluation` each), ``differences``, ``to_frame()``, ``to_dict()``; print it.

    Notes
    -----
    The verdict follows from the difference of the debiased squared log-odds errors, each over bins of equal
    information of its own model, with a robust covariance of rows or clusters. Mean absolute and mean squared gaps of
    the probabilities over the same bins must differ significantly in the same direction; the p-value is the largest of
    the three. So a difference between two models that are equally miscalibrated on the log-odds scale or on the
    probability scale is shown in at most about 5 % of data sets. A model is better or worse calibrated than the
    baseline if the p-value, adjusted for the number of models by Holm, is at most `alpha`. Where the information of a
    model is below 20 (with importance weights 100), no difference is shown.

    Beside it stand the differences of the Brier score and of log loss, with paired t tests. Where the better
    calibrated model has the higher Brier score, the other model discriminates better, and the output states it.

    Metrics of gaps (ECE, ACE, TCE and others) have neither interval nor p-value here: their bias depends on the model,
    and a bootstrap of their difference has no known error rate. Other metrics have the interval of their replicates,
    moved so that the mean of the replicates is the difference of the data. All p-values are adjusted by Holm for the
    number of models; intervals are not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < p
    >>> compare(y, {"squared": p**2, "plain": p}, n_resamples=99).verdict
    'plain is better calibrated than squared'
    """
    if not isinstance(y_probs, Mapping) or len(y_probs) < 2:
        raise InputError(
            "compare needs the predictions of at least two models.",
            hint='Pass {"name": predictions, ...}.',
            argument="y_probs",
        )
    _check_kinds(y_true, y_probs)
    settings = check_settings(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    _check_names(settings.metrics)
    seed = seed_sequence(random_state)
    paired, tables = PairedRows.read(y_true, y_probs, cluster=cluster, **rows)
    names = [str(name) for name in y_probs]
    if len(set(names)) < len(names):
        raise InputError(f"Two models have the same name: {names}.", argument="y_probs", value=names)
    models = {
        name: evaluate_table(table, settings, seed, show=progress, rows=None if cluster is None else paired.only(i))
        for i, (name, table) in enumerate(zip(names, tables, strict=True))
    }
    shared = set.intersection(*(set(evaluation.metrics) for evaluation in models.values()))
    pairs = [calibration_difference(paired, tables, i, 0) for i in range(1, len(names))]
    tested = {DECIDES: pairs, BRIER: [brier_difference(paired, i, 0) for i in range(1, len(names))]}
    losses = [log_loss_difference(paired, i, 0) for i in range(1, len(names))]
    if all(math.isfinite(each.value) for each in losses):
        tested[LOG_LOSS] = losses
    rest = {name: m for name, m in settings.metrics.items() if name in shared and name not in tested}
    found = [
        _from_test(names[i], names[0], metric, each, confidence_level)
        for metric, several in tested.items()
        for i, each in enumerate(several, 1)
    ]
    found += _from_replicates(paired, tables, names, rest, settings, seed, progress)
    little = sum(pair.has_little_information for pair in pairs)
    notes = (Note("little_information", little, _LITTLE),) if little else ()
    return Comparison(models, _adjusted(found), settings, notes)


def _check_kinds(y_true: Column, y_probs: Mapping[str, Any]) -> None:
    for name, forecast in y_probs.items():
        kind = forecast_kind(y_true, forecast)
        if kind != "binary":
            raise InputError(
                f"y_probs must be columns of probabilities of one event; {name!r} is of kind {kind!r}.",
                hint="Evaluate each model with calibrant.evaluate.",
                argument="y_probs",
            )


def _check_names(metrics: Mapping[str, Metric]) -> None:
    for name, metric in ((BRIER, Brier()), (LOG_LOSS, LogLoss())):
        if metrics.get(name, metric) != metric:
            raise InputError(
                f"metrics must not call another metric {name!r}; got {metrics[name]!r}.",
                hint="Use another name for it.",
                argument="metrics",
                value=name,
            )


def _from_test(model: str, baseline: str, metric: str, found: PairedDifference, level: float) -> Difference:
    low, high = found.interval(level)
    test = "decides" if metric == DECIDES else "paired t test"
    return Difference(model, baseline, metric, found.value, low, high, level, found.pvalue, "1", test)


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


def _adjusted(differences: list[Difference]) -> tuple[Difference, ...]:
    """Differences with p-values adjusted for the number of models by Holm, metric by metric."""
    found = []
    for metric in dict.fromkeys(d.metric for d in differences):
        same = [d for d in differences if d.metric == metric]
        if not same[0].test:
            found += same
            continue
        found += [
            replace(d, adjusted_pvalue=float(p)) for d, p in zip(same, holm([d.pvalue for d in same]), strict=True)
        ]
    return tuple(found)
