"""`evaluate`: every metric of a model with its interval and its null, tests, and a verdict."""

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.random import SeedSequence

from calibrant._json import label as json_label
from calibrant._json import plain
from calibrant._progress import progress as counted
from calibrant._tables import html_table, text_table
from calibrant._typing import Column
from calibrant.bins import PAVABC, Quantile
from calibrant.costs import Cost, LinearCost
from calibrant.cox import Logits, SlopeIntercept
from calibrant.errors import InputError, Note
from calibrant.inference import resampling
from calibrant.inference.hypothesis_tests import TestResult, hosmer_lemeshow, likelihood_ratio, spiegelhalter
from calibrant.inference.intervals import Equivalence, Null, Spread, check_margin, read_rows, spreads
from calibrant.inference.multiplicity import benjamini_hochberg, holm
from calibrant.inference.omnibus import STATISTICS, by_clusters, from_draws, omnibus
from calibrant.inference.resampling import Measure, PairedRows, RandomState, check_metric, check_share
from calibrant.ingest.tables import Tables
from calibrant.lines import Line, chance, frame, p_is, sizes, sizes_in_words
from calibrant.maps import EPS
from calibrant.metrics import ACE, ECC, ECE, METRICS, TCE, Bias
from calibrant.parts import check_tables, split
from calibrant.table import ScoreTable

__all__ = ["Evaluation", "evaluate"]

T = TypeVar("T")

_MOST_DRAWS = 20_000  # enough for Holm to reject one of 1,000 parts at 0.05

# What decides the verdict: chosen in the studies of size and power (docs/inference).
MATTERS: Measure = STATISTICS[1]
_TOO_HIGH: Measure = ECC(LinearCost(over=1, under=0), bins=Quantile(10))
_TOO_LOW: Measure = ECC(LinearCost(over=0, under=1), bins=Quantile(10))

_PANEL: Mapping[str, Measure] = {
    "bias": Bias(),
    "ECE": ECE(),
    "ACE": ACE(),
    "TCE": TCE(),
    "TCE (consistent)": TCE(bins=PAVABC.consistent()),
    "Brier": METRICS["brier"](),
}


@dataclass(frozen=True)
class Settings:
    """What an evaluation was asked for."""

    margin: float
    alpha: float
    confidence_level: float
    n_resamples: int
    random_state: int | None
    metrics: Mapping[str, Measure]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {**plain(self, leave_out=("metrics",)), "metrics": {k: m.spec for k, m in self.metrics.items()}}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How well calibrated a model is: see `evaluate`.

    Attributes
    ----------
    table : ScoreTable
    lines : tuple of Line
        The metrics, each with an interval and a null.
    omnibus : TestResult
        The test that decides whether a deviation is real.
    equivalence : Equivalence
        The test that decides whether it is small enough: within the margin.
    tests : tuple of TestResult
        Other tests of calibration, for information.
    cox : SlopeIntercept or None
        Calibration slope and intercept, where they exist.
    parts : mapping
        The evaluation of every part, by the values of `by`.
    adjusted_pvalue : float or None
        Of a part: the p-value of its omnibus test, adjusted for the number of parts by Holm. It decides the verdict.
    """

    table: ScoreTable
    lines: tuple[Line, ...]
    omnibus: TestResult
    equivalence: Equivalence
    too_high: Null
    too_low: Null
    tests: tuple[TestResult, ...]
    cox: SlopeIntercept | None
    settings: Settings
    parts: "Mapping[Any, Evaluation]" = field(default_factory=dict)
    by: str | None = None
    adjusted_pvalue: float | None = None
    own_notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> Line:
        for line in self.lines:
            if line.name == name:
                return line
        raise KeyError(f"{name!r}; there are {', '.join(line.name for line in self.lines)}")

    @property
    def is_real(self) -> bool:
        """Whether the omnibus test finds the model miscalibrated; in a part, with its p-value adjusted by Holm."""
        return self.deciding_pvalue <= self.settings.alpha

    @property
    def deciding_pvalue(self) -> float:
        """The p-value of the omnibus test that the verdict follows from: in a part, the adjusted one."""
        return self.omnibus.pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue

    @property
    def is_within_margin(self) -> bool:
        """Whether the deviation is shown to lie within the margin."""
        return self.equivalence.within

    @property
    def direction(self) -> str:
        """Which way predictions are off: "too high", "too low" or "mixed".

        Bins that are too high, and bins that are too low, are each weighed against the null; what is beyond chance
        counts. If neither is by itself, the sign of the bias decides.
        """
        high, low = (n.pvalue <= self.settings.alpha for n in (self.too_high, self.too_low))
        if high != low:
            return "too high" if high else "too low"
        if high:
            return "mixed"
        return "too high" if self.too_high.value >= self.too_low.value else "too low"

    @property
    def verdict(self) -> str:
        """What the two tests say together; `evaluate` has the rule.

        "calibrated within the margin", "miscalibrated (too high)" (or too low, or mixed), "miscalibrated but within the
        margin", or "too few data".
        """
        if self.is_within_margin:
            return "miscalibrated but within the margin" if self.is_real else "calibrated within the margin"
        return f"miscalibrated ({self.direction})" if self.is_real else "too few data"

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the input and the results."""
        found: dict[tuple[str, str], Note] = {}
        lines = (notes for line in self.lines for notes in (line.interval.notes, line.null.notes))
        for notes in (self.own_notes, *lines, *(test.notes for test in self.tests)):
            for note in notes:
                if note.code != "few_events":  # the tests keep it; here their p-values by resampling are shown
                    found.setdefault((note.code, note.template), note)
        return tuple(found.values())

    @cached_property
    def adjusted(self) -> dict[Any, dict[str, float]]:
        """For every part the p-value of its omnibus test, and those adjusted for their number."""
        raw = [part.omnibus.pvalue for part in self.parts.values()]
        columns = zip(self.parts, raw, holm(raw).tolist(), benjamini_hochberg(raw).tolist(), strict=True)
        return {name: {"pvalue": p, "holm": h, "benjamini_hochberg": b} for name, p, h, b in columns}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON, with its whole specification."""
        result: dict[str, Any] = {
            "schema_version": 1,
            "kind": "evaluation",
            "verdict": self.verdict,
            "direction": self.direction,
            **sizes(self.table),
            "metrics": [line.to_dict() for line in self.lines],
            "omnibus": self.omnibus.to_dict(),
            "equivalence": self.equivalence.to_dict(),
            "too_high": self.too_high.to_dict(),
            "too_low": self.too_low.to_dict(),
            "tests": [test.to_dict() for test in self.tests],
            "slope_intercept": None if self.cox is None else plain(self.cox),
            "settings": self.settings.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }
        if self.parts:
            result["by"] = self.by
            result["parts"] = [
                {"part": json_label(name), "adjusted": self.adjusted[name], **part.to_dict()}
                for name, part in self.parts.items()
            ]
        return result

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row a metric (and part): value, interval, null band, p-value. `backend`: any that Narwhals can make."""
        rows = self.rows(part="all")
        rows += [row for name, part in self.parts.items() for row in part.rows(part=str(name))]
        return frame(rows, backend)

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """One row a metric, with further columns before it."""
        size = {"rows": self.table.size, "prevalence": self.table.prevalence, "verdict": self.verdict}
        return [{**columns, **line.to_row(), **size} for line in self.lines]

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the verdict and what it rests on, in `fig` or a new figure: a `calibrant.plots.EvaluationDisplay`."""
        from calibrant import plots

        return plots.EvaluationDisplay(self).plot(fig=fig)

    def to_html(self, path: str | PathLike[str] | None = None, *, title: str = "Calibration report") -> str:
        """The report as one HTML page that needs nothing else; written to `path` if there is one.

        The verdict in plain words, every metric, diagrams that say what a bin holds, groups, and sliders for the level
        of the tests and the ratio of costs. The same results give the same page.
        """
        from calibrant import report

        return report.of_evaluation(self, path, title=title)

    def __repr__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        yield self.headline()
        yield sizes_in_words(self.table)
        yield ""
        yield from text_table(self.cells(), left=(0,))
        yield ""
        yield from (f"  {line}" for line in self.reasons())
        if self.parts:
            yield ""
            yield f"  By {self.by or 'part'} (verdicts follow from p-values adjusted for the number of parts):"
            yield from self._part_lines(text_table)
        yield from (f"  note: {note.text}" for note in self.notes)

    def _repr_html_(self) -> str:
        reasons = "".join(f"<li>{html.escape(line)}</li>" for line in self.reasons())
        reasons += "".join(f"<li>note: {html.escape(note.text)}</li>" for note in self.notes)
        parts = f"<p>By {html.escape(str(self.by or 'part'))}:</p>{self._part_lines(html_table)}" if self.parts else ""
        return (
            f"<p><strong>{html.escape(self.headline())}</strong><br>{html.escape(sizes_in_words(self.table))}</p>"
            f"{html_table(self.cells(), left=(0,))}<ul>{reasons}</ul>{parts}"
        )

    def headline(self) -> str:
        """The verdict in a line."""
        if self.verdict != "too few data":
            return f"Verdict: {self.verdict}"
        return (
            f"Verdict: {self.verdict} (no deviation is shown, nor that there is none beyond {self.settings.margin:g})"
        )

    def cells(self) -> list[list[str]]:
        """The table that people read; its first row is the heading."""
        level = f"{100 * self.settings.confidence_level:g} %"
        heading = ["", "value", f"{level} interval", "a right model reads", "p-value"]
        return [heading, *([line.name, *line.cells()] for line in self.lines)]

    def reasons(self) -> Iterator[str]:
        """The four questions, answered."""
        e, alpha = self.equivalence, self.settings.alpha
        bias = self.table.n @ self.table.score / self.table.size - self.table.prevalence
        answer, side = ("Yes", "at most") if self.is_real else ("Not shown", "above")
        adjusted = "" if self.adjusted_pvalue is None else " (adjusted)"
        p = p_is(self.deciding_pvalue)
        yield f"Is it real?      {answer}: {self.omnibus.name}, {p}{adjusted}, {side} {alpha:g}."
        if self.is_real:
            yield f"Which way?       {self.direction.capitalize()}; by {round(float(bias), 4) + 0.0:+.4f} on average."
        yield (
            f"Does it matter?  {e.metric} is at most {e.bound:.4f} with {100 * (1 - e.alpha):g} % confidence: "
            f"{'within' if e.within else 'not shown to lie within'} the margin of {e.margin:g}."
        )
        if self.cox is not None:
            slope, intercept = self.cox.slope, self.cox.intercept
            yield f"What kind?       Slope {slope:.3f} (1 is best), intercept {intercept:+.3f} (0 is best)."
        if self.tests:
            yield f"Other tests:     {'; '.join(map(_test_in_words, self.tests))}."

    def _part_lines(self, table: Callable[..., T]) -> T:
        cells = self.part_cells()
        return table(cells, left=(0, len(cells[0]) - 1))

    def part_cells(self) -> list[list[str]]:
        """A few metrics of every part with the band of a right model; `to_frame` has all."""
        usual = ("ACE", "TCE (consistent)")
        shown = [line.name for line in self.lines if line.name in usual] or [line.name for line in self.lines][:2]
        heading = [str(self.by or "part"), "rows", "events"]
        heading += [title for name in shown for title in (name, "if right")]
        cells = [[*heading, "p (Holm)", "verdict"]]
        for name, part in self.parts.items():
            size = part.table.size
            row = [str(name), f"{size:,}" if isinstance(size, int) else f"{size:,.6g}"]
            row.append(f"{100 * part.table.prevalence:.3g} %")
            lines = {line.name: line for line in part.lines}
            for metric in shown:
                row += lines[metric].cells()[0:3:2] if metric in lines else ["", ""]
            cells.append([*row, chance(self.adjusted[name]["holm"]), part.verdict])
        return cells


def evaluate(
    y_true: ScoreTable | Mapping[Any, ScoreTable] | Column,
    y_prob: Column | None = None,
    *,
    by: Column | None = None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: float = 0.01,
    alpha: float = 0.05,
    metrics: Mapping[str, Measure] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Evaluation:
    """Can the probabilities be believed? Every metric with its interval and its null, tests, and a verdict.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable`; or a mapping of tables, one a part.
    by : column, optional
        Parts to evaluate as well, each for itself: a day, a country. Their p-values are adjusted for their number
        (Holm; Benjamini and Hochberg). Over time this is monitoring: prevalence may move, and each reading must stay
        in the band of its own null.
    costs : cost, mapping or sequence of costs, optional
        Adds the expected calibration cost of each: ``{"fraud": LinearCost(over=1, under=20)}``.
    margin : float, default=0.01
        How large ACE may be before it matters: 0.01 is one percentage point. For rare events choose it well below their
        rate.
    alpha : float, default=0.05
        Level of both tests behind the verdict.
    metrics : mapping of name to metric object, optional
        In the place of the usual panel.
    confidence_level : float, default=0.95
        Of intervals and null bands.
    n_resamples : int, default=499
        Replicates of the bootstrap, and as many of the null.
    random_state : int, Generator or None, default=0
        0, so that the same data get the same verdict.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are drawn together, for intervals and verdict of the whole; parts take
        their rows as independent, and a note says so.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        How rows are read; see `ScoreTable.from_arrays`.

    Returns
    -------
    Evaluation
        ``verdict``, ``lines``, ``parts``, ``to_frame()``, ``to_dict()``; print it.

    Notes
    -----
    The verdict follows from two tests. The omnibus test, the joint consistency test of ECCE-R and ACE, asks whether the
    deviation is real (p-value at most `alpha`); the equivalence test asks whether ACE is shown to be below `margin`:

    ======================  ====================================  ============================
    verdict                 shown within the margin               not shown
    ======================  ====================================  ============================
    deviation is real       miscalibrated but within the margin   miscalibrated (which way)
    not shown to be real    calibrated within the margin          too few data
    ======================  ====================================  ============================

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> evaluate(rng.random(3000) < p**1.3, p, n_resamples=99).verdict
    'miscalibrated (too high)'
    """
    settings = settings_of(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    together = None
    if isinstance(y_true, Mapping):
        tables, name = check_tables(_of_one_model(y_true), y_prob, by, cluster, rows), None
        if isinstance(y_true, Tables):
            name = ", ".join(y_true.by) or None
        whole = sum(tables.values(), ScoreTable.empty())
        tables = {} if list(tables) == [None] else tables  # of rows that were not split
    else:
        whole, together = read_rows(y_true, y_prob, cluster, rows)
        tables, name = split(y_true, y_prob, by, rows)
    seed = resampling.seed_of(random_state)
    empty = [key for key, table in tables.items() if not len(table)]
    parts = {
        key: evaluate_table(table, settings, seed, show=False)
        for key, table in counted(tables.items(), len(tables), "evaluating parts", show=progress)
        if len(table)
    }
    notes = []
    if empty:
        text = f"Parts without a row that counts: {', '.join(map(str, empty))}."
        notes.append(Note("empty_parts", len(empty), text))
    if parts and together is not None:
        notes.append(
            Note("clusters_in_parts", 1, "Parts take their rows as independent: clusters are drawn for the whole.")
        )
    result = evaluate_table(whole, settings, seed, show=progress, rows=together)
    return replace(result, parts=_adjusted(parts, settings, seed), by=name, own_notes=(*result.own_notes, *notes))


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


def _adjusted(parts: dict[Any, Evaluation], settings: Settings, seed: SeedSequence) -> dict[Any, Evaluation]:
    """Parts with p-values adjusted for their number.

    n draws give no p-value below 1 / (n + 1), which times the number of parts may be more than alpha: parts whose
    p-value is as small as it can be are then tested again with as many draws as it takes.
    """
    needed = min(math.ceil(20 * len(parts) / settings.alpha), _MOST_DRAWS)

    def tested(part: Evaluation) -> TestResult:
        at_the_end = part.omnibus.pvalue <= 2 / (settings.n_resamples + 1)
        if not (at_the_end and needed > settings.n_resamples):
            return part.omnibus
        return omnibus(part.table, seed=seed, n_resamples=needed)

    tests = [tested(part) for part in parts.values()]
    adjusted = holm([test.pvalue for test in tests]).tolist()
    return {
        name: replace(part, omnibus=test, adjusted_pvalue=p)
        for (name, part), test, p in zip(parts.items(), tests, adjusted, strict=True)
    }


def settings_of(
    margin: float,
    alpha: float,
    metrics: Mapping[str, Measure] | None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None,
    confidence_level: float,
    n_resamples: int,
    random_state: RandomState,
) -> Settings:
    check_margin(margin, alpha, n_resamples)
    check_share("confidence_level", confidence_level)
    if metrics is not None and not (isinstance(metrics, Mapping) and metrics):
        raise InputError(
            f"metrics must name at least one metric; it is {metrics!r}.",
            hint='For example {"ECE": cb.ECE()}.',
            argument="metrics",
            value=metrics,
        )
    panel = {str(name): check_metric(m) for name, m in (_PANEL if metrics is None else metrics).items()}
    panel.update({f"ECC ({name})": ECC(cost) for name, cost in _named_costs(costs).items()})
    seed = int(random_state) if isinstance(random_state, (int, np.integer)) else None
    return Settings(float(margin), float(alpha), float(confidence_level), n_resamples, seed, panel)


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
    table: ScoreTable, settings: Settings, seed: SeedSequence, *, show: bool | None, rows: PairedRows | None = None
) -> Evaluation:
    """One table, without parts; `rows` where some of them belong together."""
    if not len(table):
        raise InputError("The table holds no rows; an evaluation needs at least one.", argument="y_true")
    level = settings.confidence_level
    panel = {name: metric for name, metric in settings.metrics.items() if _exists(metric, table)}
    found = spreads(
        [*panel.values(), MATTERS],
        table,
        seed=seed,
        n_resamples=settings.n_resamples,
        null_only=[_TOO_HIGH, _TOO_LOW, STATISTICS[0]],
        rows=rows,
        show=show,
        skip_missing=True,
    )
    matters, high, low, path = found[len(panel) :]
    lines, notes = _lines(dict(zip(panel, found, strict=False)), settings)
    omnibus_test = from_draws([path.value, matters.value], np.column_stack([path.null, matters.null]))
    if rows is not None:
        omnibus_test = by_clusters(table, rows, seed=seed, n_resamples=settings.n_resamples, show=show)
        notes += (Note("clusters", 1, _CLUSTERS),)
    logits = Logits.of(table, EPS)
    line, line_known = _line(logits, table)
    return Evaluation(
        table=table,
        lines=lines,
        omnibus=omnibus_test,
        equivalence=matters.to_equivalence(settings.margin, settings.alpha),
        too_high=high.to_null(level),
        too_low=low.to_null(level),
        tests=_tests(table, settings, seed) + ((_ratio(table, logits, line, settings, seed),) if line_known else ()),
        cox=None if line is None else logits.result(table, line),
        settings=settings,
        own_notes=notes,
    )


_CLUSTERS = (
    "Intervals and the omnibus test draw whole clusters; other p-values and null bands take outcomes as independent, "
    "given their scores."
)


def _lines(found: Mapping[str, Spread], settings: Settings) -> tuple[tuple[Line, ...], tuple[Note, ...]]:
    """The metrics that exist, and a note about the others.

    AUC does not exist with one class, and in too few replicates with few rows of one.
    """
    level = settings.confidence_level
    lines = tuple(
        Line(name, spread.to_interval(level), spread.to_null(level)) for name, spread in found.items() if spread.exists
    )
    missing = [name for name in settings.metrics if name not in [line.name for line in lines]]
    if not lines:
        raise InputError(
            f"None of the metrics exists for these rows: {', '.join(missing)}.", argument="metrics", value=missing
        )
    text = f"Left out, because they do not exist for these rows, or for most replicates: {', '.join(missing)}."
    return lines, (Note("left_out", len(missing), text),) if missing else ()


def _exists(metric: Measure, table: ScoreTable) -> bool:
    return not np.isnan(resampling.values([metric], table)[0])


def _test_in_words(test: TestResult) -> str:
    if test.resampling_pvalue is None:
        return f"{test.name} {p_is(test.pvalue)}"
    return f"{test.name} {p_is(test.resampling_pvalue)} by resampling"


def _tests(table: ScoreTable, settings: Settings, seed: SeedSequence) -> tuple[TestResult, ...]:
    """The tests that exist: none for importance weights, and not all where scores are 0 and 1 only."""
    found: list[TestResult] = []
    for test in () if table.importance else (spiegelhalter, hosmer_lemeshow):
        try:
            found.append(test(table, n_resamples=settings.n_resamples, random_state=seed))
        except InputError:
            continue
    return tuple(found)


def _ratio(
    table: ScoreTable, logits: Logits, line: tuple[float, float] | None, settings: Settings, seed: SeedSequence
) -> TestResult:
    return likelihood_ratio(table, logits, line, n_resamples=settings.n_resamples, random_state=seed)


def _line(logits: Logits, table: ScoreTable) -> tuple[tuple[float, float] | None, bool]:
    """Slope and intercept, if they exist; and whether the test of them can be made."""
    try:
        return logits.line(table), not table.importance
    except InputError:  # almost separated, or weights that differ too much: none was found, though one may exist
        return None, False
