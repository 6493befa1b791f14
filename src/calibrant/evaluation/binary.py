"""`evaluate`: metrics with intervals and null distributions, tests, and a verdict on calibration."""

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import InputError, Note
from calibrant._support.formatting import chance, p_is
from calibrant._support.frames import frame
from calibrant._support.json_values import label as json_label
from calibrant._support.json_values import plain
from calibrant._support.options import check_count, check_share
from calibrant._support.progress import progress as counted
from calibrant._support.random_streams import RandomState, seed_of
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Column
from calibrant.evaluation import sentences
from calibrant.evaluation.groups import GroupRows, check_tables, split
from calibrant.evaluation.metric_result import MetricResult
from calibrant.evaluation.sizes import sizes, sizes_in_words
from calibrant.inference import resampling
from calibrant.inference.coefficients import Coefficient, coefficients
from calibrant.inference.decision import AbsoluteMargin, Decision, Margin, check_margin, decide, undecided
from calibrant.inference.design import Design
from calibrant.inference.hypothesis_tests import TESTS, TestResult
from calibrant.inference.intervals import Equivalence, Interval, Spread, read_rows, spreads
from calibrant.inference.multiplicity import benjamini_hochberg, holm
from calibrant.inference.power import rows_to_decide
from calibrant.inference.resampling import MIN_CLUSTERS, Measure, PairedRows
from calibrant.metrics.bins import PAVABC
from calibrant.metrics.calibration_errors import ACE, ECC, ECE, TCE
from calibrant.metrics.calibration_in_the_large import Bias
from calibrant.metrics.costs import Cost
from calibrant.metrics.proper_scores import Brier
from calibrant.metrics.registry import MetricLike, as_metrics
from calibrant.tables.collection import Tables
from calibrant.tables.score_table import ScoreTable

__all__ = ["Evaluation", "evaluate"]

T = TypeVar("T")

LOG_ODDS_ERROR = "log-odds error"
_DEFAULT_MARGIN = 0.1
_SHOWN_GROUPS = 20  # rows of the table of groups that is printed

_PANEL: Mapping[str, Measure] = {
    "bias": Bias(),
    "ECE": ECE(),
    "ACE": ACE(),
    "TCE": TCE(),
    "TCE (consistent)": TCE(bins=PAVABC.consistent()),
    "Brier": Brier(),
}


@dataclass(frozen=True)
class Settings:
    """The options of an evaluation."""

    margin: Margin
    alpha: float
    confidence_level: float
    n_resamples: int
    random_state: int | None
    metrics: Mapping[str, Measure]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        margin = {"absolute": self.margin.value} if isinstance(self.margin, AbsoluteMargin) else self.margin
        rest = plain(self, leave_out=("metrics", "margin"))
        return {**rest, "margin": margin, "metrics": {k: m.spec for k, m in self.metrics.items()}}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Calibration of one forecast: see `evaluate`.

    Attributes
    ----------
    table : ScoreTable
    metrics : mapping of name to MetricResult
        Each metric with its confidence interval, its null distribution and an adjusted p-value.
    decision : Decision
        The tests behind the verdict, the log-odds error and its equivalence test.
    equivalence : Equivalence
        The equivalence test that the verdict uses.
    coefficients : tuple of Coefficient
        Calibration in the large, calibration slope and Cox's intercept with confidence intervals, where they exist.
    tests : tuple of TestResult
        Other tests of calibration, for information.
    groups : mapping
        The evaluation of each group, by the values of `by`.
    adjusted_pvalue : float or None
        Of a group: the p-value of its omnibus test, adjusted by Holm for the number of groups. It decides the verdict.
    """

    table: ScoreTable
    metrics: Mapping[str, MetricResult]
    decision: Decision
    equivalence: Equivalence
    coefficients: tuple[Coefficient, ...]
    tests: tuple[TestResult, ...]
    settings: Settings
    groups: "Mapping[Any, Evaluation]" = field(default_factory=dict)
    by: str | None = None
    adjusted_pvalue: float | None = None
    own_notes: tuple[Note, ...] = ()

    kind = "binary"

    def __getitem__(self, name: str) -> MetricResult:
        try:
            return self.metrics[name]
        except KeyError:
            raise KeyError(f"{name!r}; there are {', '.join(self.metrics)}") from None

    @property
    def n_rows(self) -> int:
        """Rows that were counted."""
        return self.table.n_used

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test; in a group, adjusted for the number of groups."""
        return self.decision.pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue

    @property
    def omnibus(self) -> TestResult:
        """The omnibus test: the smallest of the p-values of its components, adjusted by Holm."""
        found = zip(self.decision.components, self.decision.adjusted, strict=True)
        first = min(found, key=lambda pair: pair[1], default=None)
        return TestResult(math.nan if first is None else first[0].statistic, self.decision.pvalue, "omnibus test")

    @property
    def is_significant(self) -> bool:
        """Whether the omnibus test rejects calibration."""
        return self.pvalue <= self.settings.alpha

    @property
    def is_within_margin(self) -> bool:
        """Whether the deviation is shown to lie within the margin."""
        return self.equivalence.within

    @property
    def direction(self) -> str:
        """Significant directions, comma-joined; '' if none is shown.

        overestimates or underestimates (calibration in the large), overconfident or underconfident (slope), or local: a
        significant deviation of another kind.
        """
        return self.decision.direction(self.settings.alpha, self._factor)

    @property
    def _factor(self) -> float:
        """What the number of groups multiplies p-values by."""
        own = self.decision.pvalue
        return 1.0 if self.adjusted_pvalue is None or own == 0 else self.adjusted_pvalue / own

    @property
    def verdict(self) -> str:
        """calibrated, negligible, miscalibrated or inconclusive; `evaluate` has the rule."""
        if self.is_within_margin:
            return "negligible" if self.is_significant else "calibrated"
        return "miscalibrated" if self.is_significant else "inconclusive"

    @property
    def log_odds_error(self) -> Interval:
        """The log-odds error with its confidence interval."""
        return self.decision.log_odds_error

    @property
    def is_absolute(self) -> bool:
        """Whether the margin is one for ACE."""
        return isinstance(self.settings.margin, AbsoluteMargin)

    @property
    def margin(self) -> float:
        """The margin of the equivalence test: in log-odds, or for ACE."""
        return self.settings.margin.value if isinstance(self.settings.margin, AbsoluteMargin) else self.settings.margin

    @property
    def mean_score(self) -> float:
        """Mean score of all rows."""
        return float(sizes(self.table)["mean_score"])

    @property
    def event_rate(self) -> float:
        """Event rate of all rows."""
        return self.table.prevalence

    @property
    def impossible_outcomes(self) -> float:
        """Events among rows with score 0, and rows without the event among those with score 1."""
        found = [c.statistic for c in self.decision.components if c.name == "impossible outcomes"]
        return sum(found)

    @property
    def rows_to_decide(self) -> int | None:
        """How many more rows would probably decide an inconclusive verdict; None for other verdicts."""
        if self.verdict != "inconclusive" or self.is_absolute or not self.decision.information > 0:
            return None
        return rows_to_decide(self.n_rows, self.decision.information, self.margin, self.settings.alpha)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the input and the results."""
        found: dict[tuple[str, str], Note] = {}
        of_metrics = (notes for m in self.metrics.values() for notes in (m.interval.notes, m.null.notes))
        for notes in (self.own_notes, *of_metrics, *(test.notes for test in self.tests)):
            for note in notes:
                if note.code != "few_events":  # the tests keep it; here their p-values by resampling are shown
                    found.setdefault((note.code, note.template), note)
        return tuple(found.values())

    @cached_property
    def adjusted(self) -> dict[Any, dict[str, float]]:
        """For each group the p-value of its omnibus test, and those adjusted for the number of groups."""
        raw = [group.decision.pvalue for group in self.groups.values()]
        columns = zip(self.groups, raw, holm(raw).tolist(), benjamini_hochberg(raw).tolist(), strict=True)
        return {name: {"pvalue": p, "holm": h, "benjamini_hochberg": b} for name, p, h, b in columns}

    @cached_property
    def worst_first(self) -> "dict[Any, Evaluation]":
        """The groups, miscalibrated ones first, by adjusted p-value and log-odds error."""

        def key(item: tuple[Any, Evaluation]) -> tuple[float, ...]:
            group = item[1]
            return sentences.severity(group.verdict), group.pvalue, -group.log_odds_error.value

        return dict(sorted(self.groups.items(), key=key))

    def to_dict(self) -> dict[str, Any]:
        """All results as plain data for JSON, with the settings."""
        result: dict[str, Any] = {
            "schema_version": 2,
            "kind": "evaluation",
            "forecast": self.kind,
            "verdict": self.verdict,
            "direction": self.direction,
            "headline": self.headline(),
            **sizes(self.table),
            "metrics": [metric.to_dict() for metric in self.metrics.values()],
            "decision": self.decision.to_dict(),
            "equivalence": self.equivalence.to_dict(),
            "coefficients": [coefficient.to_dict() for coefficient in self.coefficients],
            "tests": [test.to_dict() for test in self.tests],
            "settings": self.settings.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }
        if self.groups:
            result["by"] = self.by
            result["groups"] = [
                {"group": json_label(name), "adjusted": self.adjusted[name], **group.to_dict()}
                for name, group in self.groups.items()
            ]
        return result

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per metric and group: value, interval, null range, p-value. `backend`: any that Narwhals can make."""
        rows = self.rows(group="all")
        rows += [row for name, group in self.groups.items() for row in group.rows(group=str(name))]
        return frame(rows, backend)

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """One row per metric, with further columns before it."""
        size = {
            "rows": self.table.size,
            "event_rate": self.event_rate,
            "verdict": self.verdict,
            "direction": self.direction,
        }
        return [{**columns, **metric.to_row(), **size} for metric in self.metrics.values()]

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the verdict and its evidence in `fig` or a new figure: a `calibrant.plots.EvaluationDisplay`."""
        from calibrant import plots

        return plots.EvaluationDisplay(self).plot(fig=fig)

    def to_html(self, path: str | PathLike[str] | None = None, *, title: str = "Calibration report") -> str:
        """The report as one HTML page that needs nothing else; written to `path` if there is one.

        The same results give the same page.
        """
        from calibrant import report

        return report.of_evaluation(self, path, title=title)

    def __repr__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        yield self.headline()
        yield from self.sentences()
        yield sizes_in_words(self.table)
        yield ""
        yield from text_table(self.cells(), left=(0,))
        yield ""
        yield from (f"  {line}" for line in self.reasons())
        if self.groups:
            yield ""
            yield f"  {self.groups_heading()}"
            yield from self._group_lines(text_table)
        yield from (f"  note: {note.text}" for note in self.notes)

    def _repr_html_(self) -> str:
        reasons = "".join(f"<li>{html.escape(line)}</li>" for line in self.reasons())
        reasons += "".join(f"<li>note: {html.escape(note.text)}</li>" for note in self.notes)
        groups = f"<p>{html.escape(self.groups_heading())}</p>{self._group_lines(html_table)}" if self.groups else ""
        why = html.escape(" ".join([*self.sentences(), sizes_in_words(self.table)]))
        return (
            f"<p><strong>{html.escape(self.headline())}</strong><br>{why}</p>"
            f"{html_table(self.cells(), left=(0,))}<ul>{reasons}</ul>{groups}"
        )

    def headline(self) -> str:
        """The verdict in a line."""
        return f"Verdict: {sentences.headline(self)}"

    def sentences(self) -> list[str]:
        """Why, and what it means at the mean score."""
        return [text for text in (sentences.explanation(self), sentences.consequence(self)) if text]

    def cells(self) -> list[list[str]]:
        """The table that people read; its first row is the heading."""
        level = f"{100 * self.settings.confidence_level:g} % CI"
        heading = ["", "value", level, "expected if calibrated", "adjusted p"]
        return [heading, *([name, *metric.cells()] for name, metric in self.metrics.items())]

    def reasons(self) -> Iterator[str]:
        """The tests behind the verdict, the coefficients and other tests."""
        if not self.decision.components:
            yield "Omnibus test: none; rows are in too few clusters."
            return
        group = "" if self.adjusted_pvalue is None else ", adjusted for the number of groups"
        yield f"Omnibus test: {p_is(self.pvalue)}{group}; the smallest adjusted p-value of {self._components()}."
        e = self.equivalence
        what = e.metric if self.is_absolute else f"the {e.metric}"
        shown = "is" if e.within else "is not"
        bound = "unbounded" if math.isinf(e.bound) else f"at most {e.bound:.3g}"
        yield (
            f"Equivalence: {what} {shown} shown to lie within the margin of {e.margin:g} "
            f"({bound} with {100 * (1 - e.alpha):g} % confidence; errors are averaged within bins{self._fine()})."
        )
        if self.coefficients:
            yield f"Coefficients: {'; '.join(map(_coefficient_in_words, self.coefficients))}."
        if self.tests:
            yield f"Other tests (adjusted): {'; '.join(map(self._test_in_words, self.tests))}."

    def _fine(self) -> str:
        fine = self.decision.fine_bound
        return (
            f"; over fine bins the error is significant and may be {fine:.3g}" if fine and not self.is_absolute else ""
        )

    def _components(self) -> str:
        found = zip(self.decision.components, self.decision.adjusted, strict=True)
        return ", ".join(f"{component.name} ({chance(min(p * self._factor, 1.0))})" for component, p in found)

    def _test_in_words(self, test: TestResult) -> str:
        own = test.pvalue if test.resampling_pvalue is None else test.resampling_pvalue
        return f"{test.name} {p_is(max(own, self.pvalue))}"

    def groups_heading(self) -> str:
        """What the table of groups holds."""
        count, most = len(self.groups), _SHOWN_GROUPS
        shown = f"; the worst {most} of {count:,}" if count > most else ""
        return f"By {self.by or 'group'}, worst first (p-values adjusted for {count:,} groups by Holm{shown}):"

    def _group_lines(self, table: Callable[..., T]) -> T:
        cells = self.group_cells()
        return table(cells[: _SHOWN_GROUPS + 1], left=(0, len(cells[0]) - 1))

    def group_cells(self) -> list[list[str]]:
        """One row per group, worst first; `to_frame` has all metrics."""
        by = str(self.by or "group")
        cells = [[by, "rows", "mean score", "event rate", "log-odds error", "95 % CI", "adjusted p", "verdict"]]
        cells[0][5] = f"{100 * self.settings.confidence_level:g} % CI"
        for name, group in self.worst_first.items():
            e, size = group.log_odds_error, group.table.size
            span = "" if math.isnan(e.low) else f"{e.low:.2f} to {e.high:.2f}"
            cells.append(
                [
                    str(name),
                    f"{size:,}" if isinstance(size, int) else f"{size:,.6g}",
                    f"{100 * group.mean_score:.3g} %",
                    f"{100 * group.event_rate:.3g} %",
                    f"{e.value:.2f}",
                    span,
                    chance(group.pvalue),
                    sentences.headline(group),
                ]
            )
        return cells


def _coefficient_in_words(c: Coefficient) -> str:
    sign = "+" if c.target == 0 else ""
    return f"{c.name} {c.value:{sign}.3f} ({c.low:{sign}.3f} to {c.high:{sign}.3f}; {c.target:g} if calibrated)"


def evaluate(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    y_prob: Column | None = None,
    *,
    by: Column | None = None,
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
) -> Evaluation:
    """Evaluate the calibration of predicted probabilities: metrics, tests and a verdict.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable`; or a mapping of tables, one per group.
    by : column, optional
        Group of each row: a country, a week. Each group is evaluated too; p-values are adjusted by Holm for the number
        of groups.
    costs : cost, mapping or sequence of costs, optional
        Adds the expected calibration cost of each: ``{"fraud": LinearCost(over=1, under=20)}``.
    margin : float or AbsoluteMargin, default=0.1
        Largest log-odds error that does not matter. 0.1 means odds that are right to about 10 %: 2.5 points at a score
        of 50 %, 0.1 points at 1 %. ``AbsoluteMargin(0.01)`` tests ACE instead, in probability.
    alpha : float, default=0.05
        Level of the tests behind the verdict.
    metrics : list of metrics or mapping of names to metrics, optional
        Replaces the default panel. Metrics are objects, their functions, or names in `METRICS`: ``["ece", cb.brier]``.
    confidence_level : float, default=0.95
        Of intervals and null ranges.
    n_resamples : int, default=499
        Bootstrap and null replicates of the metrics. The verdict needs none.
    random_state : int, Generator or None, default=0
        0, so that the same data get the same numbers.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) may depend on each other. At least 10 clusters are needed; a group with
        fewer is not tested.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        How rows are read; see `ScoreTable.from_arrays`.

    Returns
    -------
    Evaluation
        ``verdict``, ``direction``, ``metrics``, ``groups``, ``to_frame()``, ``to_dict()``; print it.

    Notes
    -----
    The verdict follows from an omnibus test of calibration and an equivalence test at the margin:

    =================  ====================================  ==================
    omnibus test       shown to lie within the margin        not shown
    =================  ====================================  ==================
    significant        negligible                            miscalibrated
    not significant    calibrated                            inconclusive
    =================  ====================================  ==================

    The omnibus test rejects if one of up to four tests does after Holm's adjustment: calibration in the large, slope,
    and the deviations over coarse and fine bins of equal information. A calibrated model is "miscalibrated" with a
    probability of at most about `alpha`. Each direction is claimed by its own test. The equivalence test inverts the
    distribution of the squared log-odds errors of the coarse bins; a model whose error is exactly the margin is shown
    to lie within it with a probability of at most about `alpha`. Errors that cancel within a bin are not seen by it,
    so a significant deviation over fine bins must lie within the margin as well. It needs an information (sum of
    p (1 - p)) of at least 20, and of about 2,000 to show a calibrated model within 0.1: 10,000 rows at 50 % events,
    200,000 at 1 %. An event with score 0, or its absence with score 1, contradicts calibration: the verdict is then
    miscalibrated.

    p-values shown with a verdict are adjusted so that they cannot contradict it: none is at most `alpha` unless the
    omnibus test rejects. Each null has the p-value of its metric alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> found = evaluate(rng.random(3000) < p**1.3, p, n_resamples=99)
    >>> found.verdict, found.direction
    ('miscalibrated', 'overestimates')
    """
    settings = settings_of(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    seed = seed_of(random_state)
    together: PairedRows | None = None
    groups: dict[Any, GroupRows]
    if isinstance(y_true, Mapping):
        tables, name = check_tables(_of_one_model(y_true), y_prob, by, cluster, rows), None
        if isinstance(y_true, Tables):
            name = ", ".join(y_true.by) or None
        whole = sum(tables.values(), ScoreTable.empty())
        groups = {} if list(tables) == [None] else {key: GroupRows(table) for key, table in tables.items()}
    else:
        whole, together = read_rows(y_true, y_prob, cluster, rows)
        groups, name = split(y_true, y_prob, by, rows, cluster=cluster)
    result = evaluate_table(whole, settings, seed, show=progress, rows=together)
    found = {
        key: evaluate_table(own.table, settings, seed, show=False, rows=own.rows, few_clusters=own.few_clusters)
        for key, own in counted(groups.items(), len(groups), "evaluating groups", show=progress)
        if len(own.table)
    }
    notes = _group_notes(groups)
    return replace(result, groups=_adjusted(found), by=name, own_notes=(*result.own_notes, *notes))


def _group_notes(groups: Mapping[Any, GroupRows]) -> list[Note]:
    notes = []
    empty = [str(key) for key, own in groups.items() if not len(own.table)]
    if empty:
        notes.append(Note("empty_groups", len(empty), f"Groups without a row that counts: {', '.join(empty)}."))
    few = [str(key) for key, own in groups.items() if own.few_clusters]
    if few:
        text = f"Groups with fewer than {MIN_CLUSTERS} clusters, which are not tested: {', '.join(few)}."
        notes.append(Note("few_clusters", len(few), text))
    return notes


def _of_one_model(tables: Mapping[Any, ScoreTable]) -> Mapping[Any, ScoreTable]:
    """The tables by group, where they came by model and group."""
    if not isinstance(tables, Tables):
        return tables
    if len(tables.models) > 1:
        raise InputError(
            f"These are tables of several models, {', '.join(map(repr, tables.models))}.",
            hint="Evaluate one: tables.of(model).",
            argument="y_true",
        )
    return tables.of()


def _adjusted(groups: dict[Any, Evaluation]) -> dict[Any, Evaluation]:
    """Groups with p-values adjusted for their number."""
    adjusted = holm([group.decision.pvalue for group in groups.values()]).tolist()
    return {name: _gated(group, p) for (name, group), p in zip(groups.items(), adjusted, strict=True)}


def _gated(e: Evaluation, pvalue: float) -> Evaluation:
    """An evaluation with no p-value below the deciding one."""
    metrics = {name: replace(m, pvalue=max(m.pvalue, pvalue)) for name, m in e.metrics.items()}
    return replace(e, metrics=metrics, adjusted_pvalue=pvalue)


def settings_of(
    margin: Margin | None,
    alpha: float,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None,
    confidence_level: float,
    n_resamples: int,
    random_state: RandomState,
) -> Settings:
    """The options of an evaluation, checked."""
    checked = check_margin(_DEFAULT_MARGIN if margin is None else margin, alpha)
    if isinstance(checked, AbsoluteMargin):  # its test is by resampling
        resampling.check_resamples(n_resamples, alpha)
    check_count("n_resamples", n_resamples)
    check_share("confidence_level", confidence_level)
    panel: dict[str, Measure] = {**(_PANEL if metrics is None else as_metrics(metrics))}
    panel.update({f"ECC ({name})": ECC(cost) for name, cost in _named_costs(costs).items()})
    seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    return Settings(checked, float(alpha), float(confidence_level), n_resamples, seed, panel)


def _named_costs(costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None) -> dict[str, Cost]:
    if costs is None:
        return {}
    if isinstance(costs, Mapping):
        return dict(costs)
    several = list(costs) if isinstance(costs, Sequence) else [costs]
    named = {_cost_name(cost): cost for cost in several}
    if len(named) < len(several):
        raise InputError(
            "Two costs have the same name.", hint='Pass a mapping: {"name": cost, ...}.', argument="costs", value=costs
        )
    return named


def _cost_name(cost: Any) -> str:
    name = str(getattr(cost, "__name__", cost))
    return name.removesuffix(")").replace("LinearCost(", "").replace("(", " ")


def evaluate_table(
    table: ScoreTable,
    settings: Settings,
    seed: SeedSequence,
    *,
    show: bool | None,
    rows: PairedRows | None = None,
    few_clusters: bool = False,
) -> Evaluation:
    """One table, without groups; `rows` where they are in clusters, `few_clusters` where too few for any test."""
    if not len(table):
        raise InputError("The table holds no rows; an evaluation needs at least one.", argument="y_true")
    margin, alpha, level = settings.margin, settings.alpha, settings.confidence_level
    options = {
        "margin": _DEFAULT_MARGIN if isinstance(margin, AbsoluteMargin) else margin,
        "alpha": alpha,
        "confidence_level": level,
    }
    design = None if few_clusters else Design(table, rows)
    decision = undecided(table, **options) if design is None else decide(design, **options)
    panel = {name: metric for name, metric in settings.metrics.items() if _exists(metric, table)}
    absolute = [ACE()] if isinstance(margin, AbsoluteMargin) else []
    found = spreads(
        [*panel.values(), *absolute],
        table,
        seed=seed,
        n_resamples=settings.n_resamples,
        rows=None if few_clusters else rows,
        show=show,
        skip_missing=True,
    )
    equivalence = decision.equivalence
    if isinstance(margin, AbsoluteMargin):
        equivalence = _absolute(found[-1], margin.value, decision, alpha)
        if few_clusters:
            equivalence = replace(equivalence, pvalue=1.0, bound=math.inf)
    shown, notes = _metrics(dict(zip(panel, found, strict=False)), settings, decision)
    if few_clusters:
        shown = {name: _value_alone(metric) for name, metric in shown.items()}
    return Evaluation(
        table=table,
        metrics=shown,
        decision=decision,
        equivalence=equivalence,
        coefficients=() if design is None else coefficients(design, level),
        tests=() if design is None else _tests(design, settings, seed),
        settings=settings,
        own_notes=notes,
    )


def _absolute(ace: Spread, margin: float, decision: Decision, alpha: float) -> Equivalence:
    """The equivalence test of ACE; never within where an outcome contradicts its score."""
    found = ace.to_equivalence(margin, alpha)
    contradicted = any(component.name == "impossible outcomes" for component in decision.components)
    return replace(found, pvalue=1.0, bound=math.inf) if contradicted else found


def _metrics(
    found: Mapping[str, Spread], settings: Settings, decision: Decision
) -> tuple[dict[str, MetricResult], tuple[Note, ...]]:
    """The metrics that exist, and a note about the others."""
    level = settings.confidence_level
    shown = {LOG_ODDS_ERROR: MetricResult(LOG_ODDS_ERROR, decision.log_odds_error, decision.null)}
    shown |= {
        name: MetricResult(name, spread.to_interval(level), spread.to_null(level))
        for name, spread in found.items()
        if spread.exists
    }
    # A metric counts only if the omnibus test rejects, so its p-value is never below that of the omnibus test.
    shown = {name: replace(m, pvalue=float(np.maximum(m.null.pvalue, decision.pvalue))) for name, m in shown.items()}
    missing = [name for name in settings.metrics if name not in shown]
    text = f"Metrics that do not exist for these rows, or for most replicates: {', '.join(missing)}."
    return shown, (Note("left_out", len(missing), text),) if missing else ()


def _value_alone(metric: MetricResult) -> MetricResult:
    """A metric without inference: rows in few clusters are not independent, and too few clusters stand for them."""
    nan = math.nan
    interval = replace(metric.interval, low=nan, high=nan, method="none", n_resamples=0)
    null = replace(metric.null, expected=nan, low=nan, high=nan, pvalue=nan, n_resamples=0, replicates=np.empty(0))
    return MetricResult(metric.name, interval, null)


def _exists(metric: Measure, table: ScoreTable) -> bool:
    return not np.isnan(resampling.values([metric], table)[0])


def _tests(design: Design, settings: Settings, seed: SeedSequence) -> tuple[TestResult, ...]:
    """The tests that exist: not all do where scores are 0 and 1 only, or rows are few."""
    found: list[TestResult] = []
    for test in TESTS:
        try:
            found.append(test(design, n_resamples=settings.n_resamples, random_state=seed))
        except InputError:
            continue
    return tuple(found)
