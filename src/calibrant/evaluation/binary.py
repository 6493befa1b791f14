"""Evaluation of the predicted probabilities of one table."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.workers import available_cores, run_together
from calibrant.evaluation.binary_details import BinaryDetails, MeasuredTable
from calibrant.evaluation.metric_result import MetricResult
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import LOG_ODDS_MARGIN, Settings
from calibrant.inference.binary_components import IMPOSSIBLE
from calibrant.inference.decision import AbsoluteMargin, Decision, decide, decide_without_tests
from calibrant.inference.design import Design
from calibrant.inference.equivalence_tests import Equivalence
from calibrant.inference.intervals import Interval
from calibrant.inference.metric_values import metric_values
from calibrant.inference.nulls import Null
from calibrant.inference.replicates import Replicates, resample_metrics
from calibrant.inference.resampling import THREADS_FROM, PairedRows
from calibrant.inference.samples import BinarySample
from calibrant.inference.shared_draws import StoredReplicates
from calibrant.metrics.breakdown import Breakdown
from calibrant.metrics.calibration_errors import ACE, ECE, TCE
from calibrant.metrics.losses import tests_scores
from calibrant.metrics.metric import Metric, has_bins
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["LOG_ODDS_ERROR", "PanelValues", "complete_evaluation", "evaluate_table", "rejection_breakdown"]

LOG_ODDS_ERROR = "log-odds error"


@dataclass(frozen=True, eq=False)
class PanelValues:
    """Values of the metrics of an evaluation, NaN where one is undefined, and breakdowns of those over bins."""

    values: Mapping[str, float]
    breakdowns: Mapping[str, Breakdown]

    @classmethod
    def measure(cls, table: ScoreTable, settings: Settings) -> "PanelValues":
        """Measure a table."""
        breakdowns = _breakdowns(settings.metrics, table)
        values = {name: _value(metric, table, breakdowns.get(name)) for name, metric in settings.metrics.items()}
        return cls(values, breakdowns)

    @property
    def partitions(self) -> dict[Any, Partition]:
        """The partition of each kind of bins."""
        return {breakdown.definition.bins: breakdown.partition for breakdown in self.breakdowns.values()}

    def exists(self, name: str) -> bool:
        """Return whether the metric of this name has a value."""
        return not math.isnan(self.values[name])


def evaluate_table(
    table: ScoreTable,
    settings: Settings,
    seed: SeedSequence,
    *,
    show: bool | None,
    rows: PairedRows | None = None,
    few_clusters: bool = False,
    stored: StoredReplicates | None = None,
    design: Design | None = None,
    measured: PanelValues | None = None,
) -> Evaluation:
    """Evaluate one table, without groups.

    `rows` holds the rows if they are in clusters. With `few_clusters` nothing is tested. `stored` holds bootstrap
    replicates that were drawn for several tables; `measured` are the values of the table, if they are known. A `design`
    that is given is also that of the details; the caller lets it forget its arrays when they are complete.
    """
    if not len(table):
        raise InputError(Argument("y_true") + " must have at least one row; got an empty table.")
    later = None if few_clusters else design or Design(table, rows)
    is_own = design is None
    design = None if few_clusters else design or Design(table, rows)  # the details do not hold its arrays
    measured = measured or PanelValues.measure(table, settings)
    breakdowns, values = dict(measured.breakdowns), measured.values
    tested, ece = breakdowns[_test_based(breakdowns)], _breakdown_of_ece(breakdowns)
    of_details = MeasuredTable(table, later, tested, ece, settings, seed)
    panel = {name: metric for name, metric in settings.metrics.items() if measured.exists(name)}
    of_margin = [ACE()] if settings.is_absolute else []
    resample = partial(
        resample_metrics,
        [*panel.values(), *of_margin],
        BinarySample(table, None if few_clusters else rows, stored, measured.partitions),
        values=[*(values[name] for name in panel), *(metric.value(table) for metric in of_margin)],
        seed=seed,
        n_resamples=settings.n_resamples,
        show=show,
        skip_missing=True,
    )
    decide_now = partial(_decide, table, design, settings)
    # On one core they would only take the cache from each other.
    threads = len(table) >= THREADS_FROM and available_cores() > 1
    ahead = threads and is_own  # a shared design computes much of the details with the decision
    others = partial(run_together, resample, of_details.compute if ahead else lambda: None, threads=ahead)
    decision, (found, _) = run_together(decide_now, others, threads=threads)
    shown, notes = _metrics(dict(zip(panel, found, strict=False)), settings, decision)
    if few_clusters:
        shown = {name: metric.without_inference() for name, metric in shown.items()}
    equivalence = _equivalence(found, decision, settings, few_clusters)
    details = BinaryDetails(decision, equivalence, of_details)
    return Evaluation("binary", table, shown, breakdowns, details, settings, own_notes=notes)


def complete_evaluation(evaluation: Evaluation) -> None:
    """Compute the details of an evaluation of probabilities, and the intervals of rates that diagrams draw."""
    details = evaluation.details
    assert isinstance(details, BinaryDetails)
    details.complete()
    for breakdown in (details.measured.tested, evaluation.breakdowns["ACE"], details.reliability):
        breakdown.rate_interval(evaluation.settings.confidence_level)


def _decide(table: ScoreTable, design: Design | None, settings: Settings) -> Decision:
    margin = LOG_ODDS_MARGIN if isinstance(settings.margin, AbsoluteMargin) else settings.margin
    options = {"margin": margin, "alpha": settings.alpha, "confidence_level": settings.confidence_level}
    return decide_without_tests(table, **options) if design is None else decide(design, **options)


def _breakdowns(panel: Mapping[str, Metric], table: ScoreTable) -> dict[str, Breakdown]:
    """Return the breakdown of each metric over bins, and always those of ECE, ACE and a test-based metric."""
    chosen: dict[str, Any] = {name: metric for name, metric in panel.items() if has_bins(metric)}
    tested = any(tests_scores(metric.loss) for metric in chosen.values())
    for name, metric in {"ECE": ECE(), "ACE": ACE(), **({} if tested else {"TCE": TCE()})}.items():
        if name not in chosen:  # diagrams and report use these names
            chosen[name] = metric
        elif metric not in chosen.values():
            chosen[f"{name} (default)"] = metric
    found: dict[str, Breakdown] = {}
    for name, metric in chosen.items():
        with suppress(InputError):  # undefined for these rows
            found[name] = metric(table)
    return found


def _value(metric: Metric, table: ScoreTable, breakdown: Breakdown | None) -> float:
    """Return the value of a metric, that of its breakdown if it has one; NaN where it is undefined."""
    if breakdown is not None:
        return breakdown.value
    return math.nan if has_bins(metric) else metric_values([metric], table)[0]


def _equivalence(
    found: Sequence[Replicates], decision: Decision, settings: Settings, few_clusters: bool
) -> Equivalence:
    """Return the equivalence test of the verdict; with an absolute margin that of ACE, the last of `found`."""
    if not isinstance(settings.margin, AbsoluteMargin):
        return decision.equivalence
    ace = _absolute(found[-1], settings.margin.value, decision, settings.alpha)
    return replace(ace, pvalue=1.0, bound=math.inf) if few_clusters else ace


def _absolute(ace: Replicates, margin: float, decision: Decision, alpha: float) -> Equivalence:
    """Return the equivalence test of ACE; it fails if an outcome contradicts its score."""
    found = Equivalence.from_replicates(ace, margin, alpha)
    contradicted = IMPOSSIBLE in decision.joint_test.components
    return replace(found, pvalue=1.0, bound=math.inf) if contradicted else found


def _metrics(
    found: Mapping[str, Replicates], settings: Settings, decision: Decision
) -> tuple[dict[str, MetricResult], tuple[Note, ...]]:
    """Return the metrics that exist, and a note about the others."""
    level = settings.confidence_level
    known = {LOG_ODDS_ERROR: (decision.log_odds_error, decision.null)}
    known |= {
        name: (Interval.from_replicates(each, level), Null.from_replicates(each, level))
        for name, each in found.items()
        if each.exists
    }
    # A metric is significant only if the omnibus test is, so its p-value is at least that of the omnibus test.
    least = decision.pvalue
    shown = {name: MetricResult(name, *both, float(np.maximum(both[1].pvalue, least))) for name, both in known.items()}
    missing = [name for name in settings.metrics if name not in shown]
    text = f"Metrics that are undefined for these rows or for most replicates: {', '.join(missing)}."
    return shown, (Note("undefined_metrics", len(missing), text),) if missing else ()


def _test_based(breakdowns: Mapping[str, Breakdown]) -> str:
    """Return the name of the first test-based breakdown."""
    return next(name for name, breakdown in breakdowns.items() if tests_scores(breakdown.definition.loss))


def _breakdown_of_ece(breakdowns: Mapping[str, Breakdown]) -> Breakdown:
    """Return the breakdown of ECE over its default bins."""
    return next(breakdown for breakdown in breakdowns.values() if breakdown.definition == ECE())


def rejection_breakdown(evaluation: Evaluation) -> tuple[Breakdown, Null | None]:
    """Return the test-based breakdown of an evaluation of probabilities, and its null distribution if it has one."""
    name = _test_based(evaluation.breakdowns)
    metric = evaluation.metrics.get(name)
    return evaluation.breakdowns[name], None if metric is None else metric.null
