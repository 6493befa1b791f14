"""Comparison of models of one kind that are evaluated one by one, by the losses of their rows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, Note
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.model_pairs import ComparisonPlan, Pair, all_pairs
from calibrant.inference.paired import PairedDifference, mean_difference
from calibrant.inference.squared_deviations import SampledRows, SquaredDeviation, deviation_difference
from calibrant.inference.time_blocks import Errors, in_time_blocks, need_blocks
from calibrant.kinds.base import ROW_OPTIONS
from calibrant.results.comparison import (
    DECIDING_TEST,
    DIEBOLD_MARIANO,
    PAIRED_TEST,
    Comparison,
    ComparisonTerms,
    Difference,
    check_score_names,
)
from calibrant.results.evaluation import Evaluation
from calibrant.tables.class_table import ClassTable
from calibrant.tables.mean_table import check_means
from calibrant.tables.rows import Rows, repeated_rows

F = TypeVar("F")

_LITTLE = (
    f"Comparisons in which no difference can be shown, because there are fewer than {MIN_INFORMATION:g} effective rows "
    "or clusters, or less information (half the sum of p (1 - p) over rows and classes) in the probabilities: {count}."
)


@dataclass(frozen=True, eq=False)
class Deviations:
    """The squared deviations of one model.

    Attributes
    ----------
    first : SquaredDeviation
        The one that decides.
    others : tuple of SquaredDeviation
        Their differences must be significant in the same direction.
    objections : tuple of SquaredDeviation
        Their differences must not be significant in the other direction.
    information : float
        Effective information of probabilities; infinite where it is not required.
    """

    first: SquaredDeviation
    others: tuple[SquaredDeviation, ...] = ()
    objections: tuple[SquaredDeviation, ...] = ()
    information: float = math.inf


@dataclass(frozen=True, eq=False)
class RowLosses:
    """The deviations of each model, and its losses per row.

    Attributes
    ----------
    deviations : sequence of Deviations
    losses : mapping of metric to the losses of each model
    units : mapping of metric to unit
    too_little : Note or None
        The reason why no difference can be shown, if there is one.
    incomparable : tuple of str
        Metrics that the models define in different ways.
    """

    deviations: Sequence[Deviations]
    losses: Mapping[str, Sequence[Floats]]
    units: Mapping[str, str]
    too_little: Note | None = None
    incomparable: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ModelForecasts(ABC, Generic[F]):
    """Forecasts of one kind by several models: the constant ``MODELS`` of the module `differences` of a kind.

    Attributes
    ----------
    models : mapping of name to forecast
    classes : sequence or None
        The classes, where they are given.
    scores : mapping of name to metric
        Metrics that are always compared.
    """

    scores: ClassVar[Mapping[str, Any]] = {}

    models: Mapping[str, F]
    classes: Sequence[Any] | None = None

    @abstractmethod
    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the forecasts of each model, to be read with the outcomes."""

    def check(self, rows: Rows) -> Rows:
        """Validate rows, by default of numbers; return those that are used."""
        return check_means(rows)

    @abstractmethod
    def errors(self, rows: Rows) -> Sequence[Errors]:
        """Return the errors of each model on the rows that are used, for the blocks of rows in time order."""

    def forecasts(self, rows: Rows) -> Mapping[str, F]:
        """Return the forecast of each model, to be evaluated."""
        return self.models

    @abstractmethod
    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return deviations and losses on the rows that are used."""

    def with_scores(self, deviations: Sequence[Deviations], tables: Sequence[ClassTable]) -> RowLosses:
        """Return the deviations with the losses of `scores` on tables of the same rows."""
        losses = {
            name: [score.row_losses(table)(table.code) for table in tables] for name, score in self.scores.items()
        }
        return RowLosses(deviations, losses, {name: score.unit for name, score in self.scores.items()})


def scores_by_name(*scores: Any) -> dict[str, Any]:
    """Return scores by their names."""
    return {score.name: score for score in scores}


def deviations_difference(model: Deviations, baseline: Deviations, rows: SampledRows) -> PairedDifference:
    """Return the difference that decides a comparison; effective rows or clusters count as information."""

    def differences(name: str) -> tuple[PairedDifference, ...]:
        pairs = zip(getattr(model, name), getattr(baseline, name), strict=True)
        return tuple(deviation_difference(a, b, rows) for a, b in pairs)

    found = deviation_difference(model.first, baseline.first, rows)
    information = min(found.information, model.information, baseline.information, rows.effective)
    return replace(found, others=differences("others"), objections=differences("objections"), information=information)


def column_name(model: str) -> str:
    """Return the name of a model's forecast in error messages."""
    return f"forecasts[{model!r}]"


def compare_models(
    y_true: Any,
    forecasts: Mapping[str, Any],
    kind: Any,
    *,
    plan: ComparisonPlan,
    evaluate: Callable[..., Evaluation],
    cluster: Column | None,
    **reading: Any,
) -> Comparison:
    """Compare models on the same rows: their deviations decide, and and compare their losses per row.

    `kind` is the module `differences` of their kind, with ``MODELS`` and ``TERMS``. `evaluate` evaluates one model,
    given outcomes, forecast and the options for reading rows. `plan` states the pairs and margins.
    """
    if hasattr(y_true, "n_dropped"):
        raise InputError(
            f"y_true must be a column of outcomes; got a {type(y_true).__name__}, which does not keep the forecasts of "
            "several models per row.",
            hint="Pass outcomes and forecasts as columns.",
            argument="y_true",
        )
    terms: ComparisonTerms = kind.TERMS
    models: ModelForecasts[Any] = kind.MODELS(forecasts, reading.get("classes"))
    of_rows = {name: reading[name] for name in (*ROW_OPTIONS, "time") if name in reading}
    rows = Rows.read(y_true, models.columns(y_true), cluster=cluster, **of_rows)
    rows, serial = in_time_blocks(rows, models.check, models.errors)
    need_blocks(serial)
    if reading.pop("time", None) is not None:
        cluster = rows.cluster_column
    used, sampled = _expand(models.check(rows))
    y = _complete(y_true, rows)
    evaluations = {
        name: evaluate(y, forecast, cluster=cluster, **reading) for name, forecast in models.forecasts(rows).items()
    }
    settings = next(iter(evaluations.values())).settings
    check_score_names(settings.metrics, models.scores)
    measured = models.measure(used, sampled)
    paired_test = PAIRED_TEST if serial is None else DIEBOLD_MARIANO
    tests = _tests(terms.decides, measured, sampled)
    level = settings.confidence_level
    units = {terms.decides: terms.squared_unit, **measured.units}
    found = [
        d
        for metric, pairs in tests.items()
        for d in plan.differences(
            metric, pairs, level, test=DECIDING_TEST if metric == terms.decides else paired_test, unit=units[metric]
        )
    ]
    little = sum(d.test == DECIDING_TEST and math.isnan(d.low) for d in found)
    found += _untested(plan, evaluations, {*measured.incomparable, *tests})
    reason = measured.too_little or (Note("little_information", little, _LITTLE) if little else None)
    infinite = (plan.infinite_note(metric, tests[metric]) for metric in measured.losses)
    notes = [note for note in (None if serial is None else serial.note, reason, *infinite) if note is not None]
    return Comparison(
        evaluations,
        settings=settings,
        terms=terms,
        own_notes=tuple(notes),
        **plan.finish(found, tests, terms, settings, units),
    )


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


def _tests(decides: str, measured: RowLosses, rows: SampledRows) -> dict[str, dict[Pair, PairedDifference]]:
    """Return the tests of all pairs: of the difference that decides, and of the mean losses."""
    pairs = all_pairs(len(measured.deviations))
    tests = {}
    for i, j in pairs:
        found = deviations_difference(measured.deviations[i], measured.deviations[j], rows)
        tests[i, j] = found if measured.too_little is None else replace(found, information=0.0)
    return {decides: tests} | {
        metric: {(i, j): mean_difference(losses[i], losses[j], rows.weight, rows.cluster) for i, j in pairs}
        for metric, losses in measured.losses.items()
    }


def _untested(plan: ComparisonPlan, models: Mapping[str, Evaluation], without: set[str]) -> list[Difference]:
    """Return the differences of all other metrics that all models have, without tests."""
    first, *others = models.values()
    found = []
    for name, result in first.metrics.items():
        if name not in without and all(name in other.metrics for other in others):
            values = [evaluation[name].value for evaluation in models.values()]
            found += plan.untested(name, values, first.settings.confidence_level, result.unit)
    return found
