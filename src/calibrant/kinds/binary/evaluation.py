"""Evaluation of the predicted probabilities of one table."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.workers import Submit, run_together
from calibrant.inference.binary_components import IMPOSSIBLE, binary_components, component_shares
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.in_the_large import SHIFT
from calibrant.inference.intervals import equivalence_from_replicates, interval_from_replicates, null_from_replicates
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.region_tests import RegionTests
from calibrant.inference.resampling import Replicates, metric_values, resample_metrics
from calibrant.inference.table_sample import TableSample
from calibrant.kinds.binary.defaults import DEFAULTS
from calibrant.kinds.binary.details import BinaryDetails
from calibrant.kinds.binary.verdict import decide
from calibrant.kinds.log_odds import NAME, LogOddsEstimate
from calibrant.kinds.sample import Starter
from calibrant.metrics.bins import PANEL_BINS
from calibrant.metrics.calibration_errors import ACE, ECE, TCE
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.losses import tests_scores
from calibrant.metrics.metric import Metric, has_bins
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import AbsoluteMargin, Settings
from calibrant.results.uncertainty import Estimate, Interval, MetricResult, Null
from calibrant.results.verdict import Deviation, Verdict
from calibrant.tables.score_table import ScoreTable

if TYPE_CHECKING:
    from calibrant.results.group_differences import Heterogeneity

_FEWEST_ROUNDED, _MOST_DECIMALS = 5, 3  # distinct scores, and decimals, of scores that count as rounded
_MANY_SCORES = 100_000  # then details are computed in threads with the decision, as they share much work


@dataclass(frozen=True, eq=False)
class MeasuredSample:
    """A sample with the values of its metrics, NaN where one is undefined, and the breakdowns of those over bins."""

    sample: TableSample
    settings: Settings
    values: Mapping[str, float]
    breakdowns: Mapping[str, Breakdown]

    @classmethod
    def measure(cls, sample: TableSample, settings: Settings) -> "MeasuredSample":
        """Measure a copy of the sample, which stores its partitions and replicates."""
        table, breakdowns = sample.table, _breakdowns(settings.metrics, sample.table)
        values = {name: _value(metric, table, breakdowns.get(name)) for name, metric in settings.metrics.items()}
        partitions = {breakdown.definition.bins: breakdown.partition for breakdown in breakdowns.values()}
        return cls(replace(sample, partitions=partitions), settings, values, breakdowns)

    @property
    def tested(self) -> Breakdown:
        """The first test-based breakdown."""
        return self.breakdowns[_test_based(self.breakdowns)]

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics that have a value."""
        return {name: metric for name, metric in self.settings.metrics.items() if not math.isnan(self.values[name])}

    @property
    def resampled(self) -> list[Metric]:
        """The metrics that are resampled: those that have a value, and that of an absolute margin."""
        return [*self.metrics.values(), *([ACE()] if self.settings.is_absolute else [])]

    def start(self, submit: Submit, seed: SeedSequence) -> None:
        """Begin to draw the replicates in other threads, where the kernel draws them."""
        self.sample.start(self.resampled, submit, n_resamples=self.settings.n_resamples, seed=seed)

    def resample(self, seed: SeedSequence, show: bool | None) -> list[Replicates]:
        """Return the replicates of all metrics that are resampled."""
        values = [self.values[name] for name in self.metrics]
        values += [metric.value(self.sample.table) for metric in self.resampled[len(values) :]]
        return resample_metrics(
            self.resampled,
            self.sample,
            values=values,
            seed=seed,
            n_resamples=self.settings.n_resamples,
            skip_missing=True,
            show=show,
        )


def starter(whole: TableSample) -> Starter[TableSample] | None:
    """Return the function that begins the evaluation of a group of independent rows; None for weights and clusters."""
    return _start if whole.has_exact_null else None


def _start(sample: TableSample, settings: Settings, seed: SeedSequence, submit: Submit) -> Callable[[], Evaluation]:
    """Begin to evaluate independent rows; the result finishes it. `submit` begins work in other threads."""
    measured = MeasuredSample.measure(sample, settings)
    measured.start(submit, seed)
    return partial(evaluate, sample, settings, seed, False, measured=measured)


def evaluate(
    sample: TableSample,
    settings: Settings,
    seed: SeedSequence,
    progress: bool | None,
    *,
    measured: MeasuredSample | None = None,
    design: Design | None = None,
) -> Evaluation:
    """Evaluate a sample without groups.

    `measured` has the values of the sample, if they were computed before, and may have replicates. A given `design` is
    also used for the details; the caller must call `design.forget()` when the details are complete.
    """
    table = sample.table
    if not len(table):
        raise InputError(Argument("y_true") + " must have at least one row; got an empty table.")
    is_own = design is None
    design = design or Design(table, sample.rows)

    def measure() -> tuple[MeasuredSample, BinaryDetails, list[Replicates]]:
        known = measured or MeasuredSample.measure(sample, settings)
        ece = next(each for each in known.breakdowns.values() if each.definition == ECE())
        details = BinaryDetails.without_estimate(table, design, known.tested, ece, settings, seed)
        resample = partial(known.resample, seed, progress)
        if is_own and len(table) >= _MANY_SCORES:
            return known, details, run_together(resample, details.complete, rows=len(table))[0]
        return known, details, resample()

    margin = settings.margin if isinstance(settings.margin, float) else DEFAULTS.margin
    levels = {"margin": margin, "alpha": settings.alpha, "confidence_level": settings.confidence_level}
    regions = RegionTests.from_design(design)
    components, deviation = partial(binary_components, design, regions), LogOddsDeviation(design)
    value = partial(getattr, deviation, "value")  # kept by the deviation
    tests, _, (known, details, replicates) = run_together(components, value, measure, rows=len(table))
    verdict, estimate = decide(BinaryTests(join_tests(tests, component_shares(design)), deviation, regions), **levels)
    known.sample.__dict__["design"] = design  # whose arrays are known
    shown, notes = _metrics(dict(zip(known.metrics, replicates, strict=False)), settings, verdict, estimate)
    if is_own:
        design.forget()
    if settings.is_absolute:
        verdict = replace(verdict, deviation=_absolute_deviation(replicates[-1], verdict, settings))
    breakdowns, details = dict(known.breakdowns), details.with_estimate(estimate)
    notes = (*notes, *_rounding_notes(table))
    return Evaluation("binary", table, shown, breakdowns, verdict, details, settings, own_notes=notes)


def heterogeneity(groups: Mapping[Any, TableSample], whole: TableSample, level: float) -> "Heterogeneity":
    """Return the heterogeneity of the log-odds shifts of groups."""
    from calibrant.inference.log_odds_heterogeneity import log_odds_heterogeneity

    return log_odds_heterogeneity(groups, whole, level)


def mean_over_clusters(sample: TableSample, level: float) -> Estimate | None:
    """Return calibration in the large of rows in few clusters."""
    from calibrant.inference.log_odds_heterogeneity import mean_shift_over_clusters

    return None if sample.few_rows is None else mean_shift_over_clusters(sample.few_rows.cluster_tables(), level)


def complete(evaluation: Evaluation, *, keep_design: bool = False) -> None:
    """Compute the details of an evaluation of probabilities, and the intervals of rates that diagrams draw.

    The design forgets its arrays, unless others use it.
    """
    details = evaluation.details
    assert isinstance(details, BinaryDetails)
    details.complete()
    _ = evaluation.rows_to_decide
    if details.design is not None and not keep_design:
        details.design.forget()
    for breakdown in (details.tested, evaluation.breakdowns["ACE"], details.reliability):
        breakdown.rate_interval(evaluation.settings.confidence_level)


def _breakdowns(panel: Mapping[str, Metric], table: ScoreTable) -> dict[str, Breakdown]:
    """Return the breakdown of each metric over bins, and always those of ECE, ACE and a test-based metric."""
    chosen: dict[str, Any] = {name: metric for name, metric in panel.items() if has_bins(metric)}
    tested = any(tests_scores(metric.loss) for metric in chosen.values())
    for name, metric in {"ECE": ECE(), "ACE": ACE(), **({} if tested else {"TCE": TCE(bins=PANEL_BINS)})}.items():
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


def _absolute_deviation(ace: Replicates, verdict: Verdict, settings: Settings) -> Deviation:
    """Return ACE with its equivalence test at an absolute margin; it fails if an outcome contradicts its score."""
    level, margin = settings.confidence_level, settings.margin
    assert isinstance(margin, AbsoluteMargin)
    interval = interval_from_replicates(ace, level)
    test = equivalence_from_replicates(ace, margin.value, settings.alpha)
    pvalue, bound = test.pvalue, test.bound
    if IMPOSSIBLE in verdict.omnibus.components:
        pvalue, bound = 1.0, math.inf
    limits = (interval.low, interval.high, level)
    return Deviation(test.metric, "", test.value, *limits, margin.value, bound, pvalue <= settings.alpha, pvalue)


def _metrics(
    replicates: Mapping[str, Replicates], settings: Settings, verdict: Verdict, estimate: LogOddsEstimate
) -> tuple[dict[str, MetricResult], tuple[Note, ...]]:
    """Return the metrics that exist, and a note about the others."""
    level, tested = settings.confidence_level, {NAME: (estimate.error, estimate.null)}
    resampled = {
        name: (interval_from_replicates(drawn, level), null_from_replicates(drawn, level))
        for name, drawn in replicates.items()
        if drawn.exists
    }
    known = tested | resampled | tested  # first, also where it is one of the given metrics
    # A metric is significant only if the omnibus test is, so its p-value is at least that of the omnibus test.
    # So is that of the bias only if the test of calibration in the large is, which its interval agrees with.
    in_the_large = verdict.omnibus.components[SHIFT].pvalue if SHIFT in verdict.omnibus.components else math.nan

    def adjusted(interval: Interval, null: Null) -> float:
        least = in_the_large if interval.method in ("bias", "ratio") else math.nan
        return float(np.maximum(np.fmax(null.pvalue, least), verdict.pvalue))

    shown = {name: MetricResult(name, *both, adjusted(*both)) for name, both in known.items()}
    missing = [name for name in settings.metrics if name not in shown]
    text = f"Metrics that are undefined for these rows or for most replicates: {', '.join(missing)}."
    return shown, (Note("undefined_metrics", len(missing), text),) if missing else ()


def _rounding_notes(table: ScoreTable) -> tuple[Note, ...]:
    """Return a note if scores are rounded to few decimals, and some of them to 0 or 1."""
    p = table.score
    at_end = (p == 0) | (p == 1)
    if not at_end.any() or not _FEWEST_ROUNDED <= len(table) <= 10**_MOST_DECIMALS + 1:
        return ()
    for decimals in range(1, _MOST_DECIMALS + 1):
        if np.array_equal(np.round(p, decimals), p):
            text = (
                f"Scores have at most {decimals} decimal{'s' if decimals > 1 else ''}, and {{count}} rows a score of 0 "
                "or 1, as scores that are rounded or shares of votes. A calibrated model then contradicts its scores, "
                "or seems overconfident: evaluate scores before rounding."
            )
            return (Note("rounded_scores", int(np.ceil(table.n[at_end].sum())), text),)
    return ()


def _test_based(breakdowns: Mapping[str, Breakdown]) -> str:
    """Return the name of the first test-based breakdown."""
    return next(name for name, breakdown in breakdowns.items() if tests_scores(breakdown.definition.loss))


def rejection_breakdown(evaluation: Evaluation) -> tuple[Breakdown, Null | None]:
    """Return the test-based breakdown of an evaluation of probabilities, and its null distribution if it has one."""
    name = _test_based(evaluation.breakdowns)
    metric = evaluation.metrics.get(name)
    return evaluation.breakdowns[name], None if metric is None else metric.null
