"""Comparison of class probabilities, predicted classes, point predictions and predictive distributions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support.errors import InputError, Note
from calibrant._support.typing import Column
from calibrant.evaluation.compared_models import ComparedModels, RowLosses
from calibrant.evaluation.comparison_of_classes import LabelModels, ProbabilityModels
from calibrant.evaluation.comparison_of_regression import DistributionModels, PointModels
from calibrant.evaluation.comparison_result import Comparison
from calibrant.evaluation.comparison_terms import TERMS
from calibrant.evaluation.differences import (
    DECIDING_TEST,
    PAIRED_TEST,
    Difference,
    adjust_differences,
    check_score_names,
)
from calibrant.evaluation.evaluate import evaluate
from calibrant.evaluation.results import Evaluation
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.paired import mean_difference
from calibrant.inference.paired_deviations import deviations_difference
from calibrant.inference.squared_deviations import SampledRows
from calibrant.metrics.multiclass import MulticlassBrier, MulticlassLogLoss
from calibrant.tables.rows import Rows, repeated_rows

__all__ = ["compare_forecasts"]

_LITTLE = (
    f"Comparisons in which no difference can be shown, because there are fewer than {MIN_INFORMATION:g} effective rows "
    "or clusters, or less information (half the sum of p (1 - p) over rows and classes) in the probabilities: {count}."
)
_MODELS: Mapping[str, Callable[..., ComparedModels]] = {
    "multiclass": ProbabilityModels,
    "labels": LabelModels,
    "point": PointModels,
    "distribution": DistributionModels,
}


def compare_forecasts(
    y_true: Column,
    forecasts: Mapping[str, Any],
    kind: str,
    *,
    cluster: Column | None = None,
    classes: Any = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: str = "raise",
    **options: Any,
) -> Comparison:
    """Compare forecasts of one kind, except binary; see `calibrant.compare`."""
    if hasattr(y_true, "n_dropped"):
        raise InputError(
            f"y_true must be a column of outcomes; got a {type(y_true).__name__}, which does not keep the forecasts of "
            "several models per row.",
            hint="Pass outcomes and forecasts as columns.",
            argument="y_true",
        )
    given: dict[str, Any] = {"sample_weight": sample_weight, "frequency": frequency, "missing": missing}
    named = {} if classes is None else {"classes": classes}
    models = _MODELS[kind](forecasts, **named)
    rows = Rows.read(y_true, models.columns(y_true), cluster=cluster, **given)
    used, sampled = _expand(models.check(rows))
    y = _complete(y_true, rows)
    evaluations = {
        name: evaluate(y, each, cluster=cluster, **named, **given, **options)
        for name, each in models.forecasts(rows).items()
    }
    settings = next(iter(evaluations.values())).settings
    if kind == "multiclass":
        check_score_names(settings.metrics, {each.name: each for each in (MulticlassBrier(), MulticlassLogLoss())})
    measured = models.measure(used, sampled)
    found = _tested(list(forecasts), kind, measured, sampled, settings.confidence_level)
    little = sum(d.test == DECIDING_TEST and math.isnan(d.low) for d in found)
    found += _untested(evaluations, {*measured.incomparable, *(d.metric for d in found)})
    reason = measured.too_little or (Note("little_information", little, _LITTLE) if little else None)
    notes = () if reason is None else (reason,)
    return Comparison(evaluations, adjust_differences(found), settings, notes)


def _complete(y_true: Any, rows: Rows) -> Any:
    """Return the outcomes; those of rows in which the forecast of a model is missing are missing too."""
    complete = rows.complete()
    return y_true if complete is None or complete.all() else np.ma.MaskedArray(rows.y.values, mask=~complete)


def _expand(rows: Rows) -> tuple[Rows, SampledRows]:
    """Return the rows, each as often as its frequency says, and how they were sampled."""
    weight = rows.size
    if weight is not None and not rows.importance:
        rows, weight = replace(rows.part(repeated_rows(weight, "compared")), weight=None), None
    importance = None if weight is None else weight.astype(np.float64)
    return rows, SampledRows(len(rows), importance, rows.cluster_codes)


def _tested(names: list[str], kind: str, measured: RowLosses, rows: SampledRows, level: float) -> list[Difference]:
    """Return the differences that decide, and those of losses with paired t tests."""
    first, *others = names
    found = []
    for i, name in enumerate(others, 1):
        difference = deviations_difference(measured.deviations[i], measured.deviations[0], rows)
        if measured.too_little is not None:
            difference = replace(difference, information=0.0)
        found.append(Difference.from_test(name, first, TERMS[kind].decides, difference, level, test=DECIDING_TEST))
    for metric, losses in measured.losses.items():
        tests = [mean_difference(each, losses[0], rows.weight, rows.cluster) for each in losses[1:]]
        if all(math.isfinite(each.value) for each in tests):
            unit = measured.units[metric]
            found += [
                Difference.from_test(name, first, metric, each, level, test=PAIRED_TEST, unit=unit)
                for name, each in zip(others, tests, strict=True)
            ]
    return found


def _untested(models: Mapping[str, Evaluation], without: set[str]) -> list[Difference]:
    """Return the differences of all other metrics that all models have, without tests."""
    first, *others = models
    shared = [name for name in models[first].metrics if all(name in models[each].metrics for each in others)]
    found = []
    for metric in shared:
        values = [evaluation[metric].value for evaluation in models.values()]
        if metric not in without and all(map(math.isfinite, values)):
            level, unit = models[first].settings.confidence_level, models[first][metric].unit
            found += [
                Difference.without_test(name, first, metric, value - values[0], level, unit)
                for name, value in zip(others, values[1:], strict=True)
            ]
    return found
