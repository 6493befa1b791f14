"""`Comparison`: the result of `compare`, several models on the same rows, and its differences."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, overload

from calibrant._support.errors import InputError, Note
from calibrant._support.formatting import NumberFormat, PrintedResult, format_pvalue, p_text
from calibrant._support.lazy import cached_property
from calibrant._support.plain_data import PlainResult, finite, frame_from_rows
from calibrant.results.evaluation import SCHEMA_VERSION, Evaluation, to_json_text
from calibrant.results.settings import Settings
from calibrant.results.text import ResultText, rows_text
from calibrant.results.uncertainty import MetricMapping, MetricResult
from calibrant.results.verdict import TestResult

if TYPE_CHECKING:
    from calibrant._support.file_writing import FilePath

DECIDING_TEST, PAIRED_TEST = "decides", "paired t test"
# The paired t test of losses in time order: of the sums of blocks of consecutive times.
DIEBOLD_MARIANO = "Diebold-Mariano test"
_SQUARED, _POINTS = "squared ", "points of "
_DIFFERENCE_COLUMNS = {
    "difference_value": "value",
    "difference_unit": "unit",
    "difference_low": "low",
    "difference_high": "high",
    "difference_pvalue": "adjusted_pvalue",
}


@dataclass(frozen=True)
class ComparisonTerms:
    """How a comparison of one kind of forecast is described.

    Attributes
    ----------
    decides : str
        The metric that decides.
    quantity : str
        Its square in a sentence, after "Squared".
    unit : str
        Its unit; the difference of its squares has the unit "squared ...".
    scores : tuple of str
        Scores with which the verdict may disagree; the first that exists counts.
    best : str
        "lower" or "higher": the better values of these scores.
    ability : str
        What a model with the better score does better.
    meaning : str
        What "better calibrated" refers to; '' if the name of the metric says it.
    tests : tuple of str
        The tests whose largest p-value counts; empty if there is one test.
    objection : str
        The test that must not be significant in the other direction; '' if there is none.
    """

    decides: str
    quantity: str
    unit: str
    scores: tuple[str, ...]
    best: str
    ability: str
    meaning: str = ""
    tests: tuple[str, ...] = ()
    objection: str = ""

    @property
    def squared_unit(self) -> str:
        """Unit of the difference that decides."""
        return f"{_SQUARED}{self.unit}"

    def is_better_if_higher(self, metric: str) -> bool:
        """Return whether the higher value of a metric with a paired test is the better one.

        Parameters
        ----------
        metric : str
            Name of the metric.

        Returns
        -------
        bool
        """
        return self.best == "higher" and metric in self.scores


class PairedTest(Protocol):
    """A test of the difference of two models on the same rows."""

    @property
    def value(self) -> float: ...
    @property
    def pvalue(self) -> float: ...
    def interval(self, level: float) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Difference(PlainResult):
    """Difference of a metric between a model and the one that it is compared with, on the same rows.

    Attributes
    ----------
    model, baseline, metric : str
        `baseline` is the other model of the pair.
    unit : str
        Unit of value and interval: "squared log-odds" or another square for the metric that decides, "points of TCE"
        for differences of percentages, "nat", "y" and "y^2" (that of the outcome), or "1".
    value : float
        For the metric that decides the difference of the debiased squares; for others the difference of the values.
        Infinite if the metric of one model is.
    low, high, level : float
        Confidence interval; NaN for metrics of gaps, whose difference has no interval of known coverage, for the metric
        that decides if there is little information, and for infinite values.
    pvalue, adjusted_pvalue : float
        p-value of "no difference": of this pair alone, and adjusted by Holm for the number of compared pairs. NaN where
        there is no interval.
    test : str
        Source of the p-value: "decides", "paired t test", "Diebold-Mariano test" (of rows in time order),
        "bootstrap", or "" without one.

    See Also
    --------
    Comparison, compare

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cb.compare(rng.random(2000) < p, {"squared": p**2, "plain": p}).differences[0]
    >>> found.model, found.baseline, found.metric, found.value < 0, found.adjusted_pvalue < 0.05
    ('plain', 'squared', 'log-odds error', True, True)
    """

    model: str
    baseline: str
    metric: str
    value: float
    low: float
    high: float
    level: float
    pvalue: float
    unit: str
    test: str = ""
    adjusted_pvalue: float = math.nan

    @classmethod
    def from_test(
        cls, model: str, baseline: str, metric: str, found: PairedTest, level: float, *, test: str, unit: str = "1"
    ) -> "Difference":
        """Return the difference of a paired test.

        Parameters
        ----------
        model, baseline, metric : str
            Names of the model, of the model that it is compared with and of the metric.
        found : PairedDifference
            Result of the paired test.
        level : float
            Confidence level of the interval.
        test : str
            Name of the test.
        unit : str, default="1"
            Unit of the difference.

        Returns
        -------
        Difference
            Value, interval and p-value of the test; the p-value is not adjusted. An infinite difference has neither
            interval nor p-value.
        """
        if not math.isfinite(found.value) and test != DECIDING_TEST:
            return cls.without_test(model, baseline, metric, found.value, level, unit)
        low, high = found.interval(level)
        return cls(model, baseline, metric, found.value, low, high, level, found.pvalue, unit, test)

    @classmethod
    def without_test(
        cls, model: str, baseline: str, metric: str, value: float, level: float, unit: str
    ) -> "Difference":
        """Return the difference of a metric without interval and p-value.

        Parameters
        ----------
        model, baseline, metric : str
            Names of the model, of the model that it is compared with and of the metric.
        value : float
            The difference.
        level : float
            Confidence level of the comparison.
        unit : str
            Unit of the metric.

        Returns
        -------
        Difference
            Its interval and p-value are NaN.
        """
        return cls(model, baseline, metric, value, math.nan, math.nan, level, math.nan, difference_unit(unit, metric))

    def cells(self) -> list[str]:
        """Return difference, interval and adjusted p-value with its test as text; empty where they do not exist.

        Returns
        -------
        list of str
            Three texts.
        """
        is_square = self.test == DECIDING_TEST
        unit = "points" if self.unit.startswith(_POINTS) else self.unit
        form = NumberFormat(unit, 4, signed=True, kind="g")  # the outcome may be of any size
        if is_square or unit in ("1", "points"):
            form = NumberFormat.for_spread(unit, self.high - self.low, signed=True)
        value = "" if math.isnan(self.value) else form.value(self.value)
        if value and is_square:
            value += " (squares)"
        if math.isnan(self.low):
            return [value, "", ""]
        return [value, form.range(self.low, self.high), f"{format_pvalue(self.adjusted_pvalue)} ({self.test})"]


def difference_unit(unit: str, metric: str) -> str:
    """Return the unit of differences of a metric: percentages differ by points.

    Parameters
    ----------
    unit, metric : str
        Unit and name of the metric.

    Returns
    -------
    str
        "points of TCE" for TCE in %; other units as they are.
    """
    return f"{_POINTS}{metric}" if unit == "%" else unit


@dataclass(frozen=True)
class RankedModel(PlainResult):
    """The place of a model among several, by the quantity that decides a comparison.

    Attributes
    ----------
    rank : int
        1 for the smallest estimate; models whose estimate does not exist are last.
    model : str
    estimate : float
        Root of the debiased square that is compared, 0 where it is negative.
    difference, low, high, level : float
        Difference of the squares from the model with rank 1, with an interval that holds simultaneously for all pairs,
        so that the choice of that model does not matter. NaN limits for that model.
    unit, difference_unit : str
        Units of the estimate and of the difference.
    pvalue : float
        The smallest adjusted p-value of a pair in which this model has the larger estimate; 1 if there is none.
    is_best_set : bool
        Whether the model is not shown to be worse than another one.

    See Also
    --------
    Comparison, compare

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> first = cb.compare(rng.random(2000) < p, {"squared": p**2, "plain": p}).ranked[0]
    >>> first.rank, first.model, first.is_best_set
    (1, 'plain', True)
    """

    rank: int
    model: str
    estimate: float
    unit: str
    difference: float
    low: float
    high: float
    level: float
    difference_unit: str
    pvalue: float
    is_best_set: bool

    def cells(self) -> list[str]:
        """Return the columns as text; the model with rank 1 has no difference.

        Returns
        -------
        list of str
            Rank, model, estimate, difference, interval, p-value, and whether the model belongs to the best set.
        """
        form = NumberFormat.for_spread("1", self.high - self.low, signed=True)
        value = "" if math.isnan(self.low) else form.value(self.difference)
        pvalue = "" if math.isnan(self.low) else format_pvalue(self.pvalue)
        estimate = "" if math.isnan(self.estimate) else f"{self.estimate:.4f}"
        ends, member = form.range(self.low, self.high), "yes" if self.is_best_set else "no"
        return [str(self.rank), self.model, estimate, value, ends, pvalue, member]


@dataclass(frozen=True)
class NonInferiority(PlainResult):
    """Test of "the model is not worse than the baseline by more than a margin" in one metric.

    Attributes
    ----------
    model, baseline, metric : str
    margin : float
        The margin as it was given, in units of the metric.
    value, bound, limit : float
        Difference of the model from the baseline, its one-sided confidence limit and its limit, all in `unit`. For the
        metric that decides a comparison differences are those of squares, and the limit is the square of the margin.
        The bound is an upper one, and for metrics of which higher values are better a lower one.
    unit : str
    level : float
        Level of the bound, 1 - alpha.
    pvalue, adjusted_pvalue : float
        p-value of "worse by the margin or more", alone and adjusted by Holm for the number of models.
    is_shown : bool
        Whether the model is shown to be not worse: the adjusted p-value is at most alpha.

    See Also
    --------
    Comparison, compare

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> models = {"champion": p, "challenger": 0.02 + 0.96 * p}
    >>> y = rng.random(2000) < p
    >>> found = cb.compare(y, models, baseline="champion", non_inferiority={"log loss": 0.01}).non_inferiority[0]
    >>> found.model, found.limit, found.is_shown
    ('challenger', 0.01, True)
    """

    model: str
    baseline: str
    metric: str
    margin: float
    value: float
    bound: float
    limit: float
    unit: str
    level: float
    pvalue: float
    adjusted_pvalue: float
    is_shown: bool

    def sentence(self) -> str:
        """State the result.

        Returns
        -------
        str
            One sentence with difference, bound, limit and p-value.
        """
        is_square = self.unit.startswith(_SQUARED)
        name = f"squared {self.metric}" if is_square else self.metric
        limit = f"{self.margin:g}^2 = {self.limit:.4g}" if is_square else f"{self.limit:+.4g}"
        claim = f"{self.model} is not worse than {self.baseline} by more than {self.margin:g} in {self.metric}"
        most = "at most" if self.limit > 0 else "at least"
        bound = "" if math.isnan(self.bound) else f", {most} {self.bound:+.4g} ({100 * self.level:g} % bound)"
        return (
            f"{'' if self.is_shown else 'Not shown that '}{claim}: the difference of the {name} is "
            f"{self.value:+.4g}{bound}, and the limit is {limit}; {p_text(self.adjusted_pvalue)}."
        )


def check_score_names(metrics: Mapping[str, Any], scores: Mapping[str, Any]) -> None:
    """Check that no other metric has the name of a score that is always compared."""
    for name, score in scores.items():
        if metrics.get(name, score) != score:
            raise InputError(
                f"metrics must not call another metric {name!r}; got {metrics[name]!r}.",
                hint="Use another name for it.",
                argument="metrics",
                value=name,
            )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(PrintedResult):
    """Comparison of models on the same rows; see `compare`.

    Text, frame, JSON, figure and report read these results and recompute nothing.

    Attributes
    ----------
    models : mapping of name to Evaluation
    differences : tuple of Difference
        Differences of each model from the baseline or, if `is_all_pairs`, of each model from each earlier one: the
        metric that decides, the scores with paired tests, and the other metrics.
    settings : Settings
    terms : ComparisonTerms
        How this kind of comparison is described.
    groups : mapping
        Empty: every result has this attribute, and a comparison has no groups.
    own_notes : tuple of Note
        Notes of the comparison; `notes` has those of its parts too.
    scores : mapping of metric to mapping of model to float
        Values of scores that are compared, but are no metrics of the evaluations: the log loss of probabilities.
    ranked : tuple of RankedModel
        All models, the best calibrated one first; `ranking` is a frame of them.
    non_inferiority : tuple of NonInferiority
        The tests that were asked for, one per metric and model except the baseline.
    is_all_pairs : bool
        Whether all pairs of models are compared, because no baseline was given.

    See Also
    --------
    compare, Difference, RankedModel, NonInferiority, Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> cb.compare(y, {"old": p**2, "new": p}, n_resamples=99).verdict
    'new is better calibrated than old'
    """

    models: Mapping[str, Evaluation]
    differences: tuple[Difference, ...]
    settings: Settings
    terms: ComparisonTerms
    own_notes: tuple[Note, ...] = ()
    groups: "Mapping[Any, Comparison]" = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ranked: tuple[RankedModel, ...] = ()
    non_inferiority: tuple[NonInferiority, ...] = ()
    is_all_pairs: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", MetricMapping(self.scores))

    @property
    def kind(self) -> str:
        """Kind of forecast of all models."""
        return self.models[self.baseline].kind

    @property
    def n_rows(self) -> int:
        """Number of rows used."""
        return self.models[self.baseline].n_rows

    @cached_property
    def metrics(self) -> dict[str, MetricResult]:
        """The metrics of all models, by "model: metric"."""
        return {f"{model}: {name}": m for model, e in self.models.items() for name, m in e.metrics.items()}

    @cached_property
    def breakdowns(self) -> dict[str, Any]:
        """The breakdowns of all models, by "model: metric"."""
        return {f"{model}: {name}": b for model, e in self.models.items() for name, b in e.breakdowns.items()}

    @cached_property
    def tests(self) -> dict[str, TestResult]:
        """The tests of the differences from the baseline, by "model: metric"; their statistic is the difference.

        Further pairs have the names of both models: "model - other: metric".
        """
        tested = {f"{self._pair_name(d)}: {d.metric}": d for d in self.differences if d.test}
        return {
            name: TestResult(d.value, d.pvalue, name, adjusted_pvalue=d.adjusted_pvalue) for name, d in tested.items()
        }

    @property
    def baseline(self) -> str:
        """Name of the first model: the baseline or, without one, the model whose differences tables show."""
        return next(iter(self.models))

    def _pair_name(self, d: Difference) -> str:
        return d.model if d.baseline == self.baseline else f"{d.model} - {d.baseline}"

    @property
    def decides(self) -> str:
        """The metric that decides the verdict."""
        return self.terms.decides

    @cached_property
    def deciding(self) -> tuple[Difference, ...]:
        """The differences that decide the verdict: one per compared pair of models."""
        return tuple(d for d in self.differences if d.test == DECIDING_TEST)

    @cached_property
    def from_baseline(self) -> tuple[Difference, ...]:
        """Those of the differences that decide which are differences from the baseline, one per other model."""
        return tuple(d for d in self.deciding if d.baseline == self.baseline)

    @cached_property
    def adjusted(self) -> dict[str, float]:
        """For each model except the baseline the deciding p-value, adjusted by Holm for the number of pairs."""
        return {d.model: d.adjusted_pvalue for d in self.from_baseline}

    @property
    def ranking(self) -> Any:
        """All models in a pandas frame, the best calibrated one first, with the columns of `RankedModel`."""
        return frame_from_rows([dataclasses.asdict(each) for each in self.ranked], "pandas")

    @property
    def best(self) -> tuple[str, ...]:
        """The models that are not shown to be worse than another one, in the order of their ranks."""
        return tuple(each.model for each in self.ranked if each.is_best_set)

    @property
    def passed(self) -> bool | None:
        """Whether all models are shown to be not worse than the baseline by the margins; None without margins."""
        return all(each.is_shown for each in self.non_inferiority) if self.non_inferiority else None

    def is_shown(self, d: Difference) -> bool:
        """Return whether a difference is significant after adjustment for the number of pairs.

        Parameters
        ----------
        d : Difference
            One of `differences`.

        Returns
        -------
        bool
            Whether the p-value, adjusted by Holm, is at most alpha.
        """
        return d.adjusted_pvalue <= self.settings.alpha

    @property
    def verdict(self) -> str:
        """The models that are better or worse calibrated than others or the baseline, or "no difference shown"."""
        if self.is_all_pairs and len(self.models) > 2:
            return self._verdict_on_pairs()
        found = [
            f"{_join_names(names)} {'are' if len(names) > 1 else 'is'} {direction} calibrated than {self.baseline}"
            for direction, names in self._shown.items()
        ]
        return "; ".join(found) or "no difference shown"

    def _verdict_on_pairs(self) -> str:
        """Return the models that are better than others, beginning with the best; equal statements are joined."""
        shown = [d for d in self.deciding if self.is_shown(d)]
        if shown and len(self.models) > _MOST_NAMED:
            others = f"{len(self.models) - len(self.best)} others are"
            best = f"{_join_names(self.best)} {'are' if len(self.best) > 1 else 'is'}"
            return f"{best} not shown to be worse calibrated than another model; {others}"
        pairs = {(d.model, d.baseline) if d.value < 0 else (d.baseline, d.model) for d in shown}
        worse = {each.model: tuple(o for o in self.models if (each.model, o) in pairs) for each in self.ranked}
        better = {
            others: [name for name in self.models if worse[name] == others] for others in worse.values() if others
        }
        found = [
            f"{_join_names(names)} {'are' if len(names) > 1 else 'is'} better calibrated than {_join_names(others)}"
            for others, names in better.items()
            if others
        ]
        return "; ".join(found) or "no difference shown"

    @property
    def direction(self) -> str:
        """Directions of the significant differences from the baseline: better, worse or both; '' if there is none.

        Of more than two models without a baseline: better, if one is shown to be better than another.
        """
        if self.is_all_pairs and len(self.models) > 2:
            return "better" if any(map(self.is_shown, self.deciding)) else ""
        return ", ".join(self._shown)

    @property
    def _shown(self) -> dict[str, list[str]]:
        """Names of the models that are significantly better or worse than the baseline."""
        shown = [d for d in self.from_baseline if self.is_shown(d)]
        found = {"better": [d.model for d in shown if d.value < 0], "worse": [d.model for d in shown if d.value > 0]}
        return {direction: names for direction, names in found.items() if names}

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the input and the results."""
        theirs = (note for evaluation in self.models.values() for note in evaluation.notes)
        return tuple(dict.fromkeys((*self.own_notes, *theirs)))

    def to_dict(self) -> dict[str, Any]:
        """Return all results and settings as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, with a ``schema_version``; NaN and infinite numbers are None.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "result": "comparison",
            "kind": self.kind,
            "verdict": self.verdict,
            "direction": self.direction,
            "n_rows": self.n_rows,
            "passed": self.passed,
            "baseline": self.baseline,
            "is_all_pairs": self.is_all_pairs,
            "decides": self.decides,
            "differences": [d.to_dict() for d in self.differences],
            "adjusted": self.adjusted,
            "ranking": [each.to_dict() for each in self.ranked],
            "non_inferiority": [each.to_dict() for each in self.non_inferiority],
            "scores": finite(self.scores),
            "models": {name: evaluation.to_dict() for name, evaluation in self.models.items()},
            "settings": self.settings.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text.

        Returns
        -------
        str
            JSON text; NaN and infinite numbers are null.
        """
        return to_json_text(self.to_dict())

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per model and metric: value, interval, null range, and difference from the baseline.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`. ``difference_value`` is that from the baseline (without one, from the first model) in
            ``difference_unit``; ``difference_pvalue`` is adjusted by Holm for the number of compared pairs.
        """
        rows = []
        for name, evaluation in self.models.items():
            own = evaluation.rows(model=name)
            rows += [*self._further_rows(own), *own]
        for row in rows:
            d = self._difference(row["model"], row["metric"])
            for column, part in _DIFFERENCE_COLUMNS.items():
                row[column] = getattr(d, part) if d is not None else "" if part == "unit" else math.nan
        return frame_from_rows(rows, backend)

    def _further_rows(self, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return rows of metrics that have a difference but no interval, such as log loss."""
        first = self.models[self.baseline]
        about = first.details.frame_columns(first.table)
        empty = {key: math.nan if isinstance(value, float) else value for key, value in own[0].items()} | about
        known = [row["metric"] for row in own]
        units = {d.metric: "1" if d.metric == self.decides else d.unit for d in self.differences}
        units |= dict.fromkeys(self.scores, "1")
        found = [{**empty, "metric": name, "unit": unit} for name, unit in units.items() if name not in known]
        for row in found:
            row["value"] = self.scores.get(str(row["metric"]), {}).get(str(row["model"]), math.nan)
        return found

    def _metrics(self) -> list[str]:
        """Return the names of all metrics with a difference, and of scores."""
        return list(dict.fromkeys([*(d.metric for d in self.differences), *self.scores]))

    def _score_text(self, metric: str, model: str) -> str:
        """Format the value of a score that the evaluations do not have, as finely as its differences."""
        if metric not in self.scores:
            return ""
        spreads = [d.high - d.low for d in self.differences if d.metric == metric and d.high > d.low]
        form = NumberFormat.for_spread("1", min(spreads, default=math.nan), signed=False)
        return form.value(self.scores[metric][model])

    def _difference(self, model: str, metric: str, baseline: str | None = None) -> Difference | None:
        key = (model, metric, self.baseline if baseline is None else baseline)
        return next((d for d in self.differences if (d.model, d.metric, d.baseline) == key), None)

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the models and their differences; return a `calibrant.plots.ComparisonDisplay`.

        Parameters
        ----------
        fig : Figure or SubFigure, optional
            Figure to draw in; by default a new one.

        Returns
        -------
        ComparisonDisplay
            The display, drawn; ``display.figure_`` is the figure.
        """
        from calibrant import plots

        return plots.ComparisonDisplay(self).plot(fig=fig)

    @overload
    def to_html(self, path: None = None, *, title: str = ...) -> str: ...
    @overload
    def to_html(self, path: "FilePath", *, title: str = ...) -> "FilePath": ...
    def to_html(
        self, path: str | PathLike[str] | None = None, *, title: str = "Calibration report"
    ) -> str | PathLike[str]:
        """Return the report of all models as one HTML page, or write it to `path`; see `Evaluation.to_html`.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced, completely or not at all.
        title : str, default="Calibration report"
            Title of the page.

        Returns
        -------
        str or path
            The page; where `path` is given, the path.
        """
        from calibrant import report

        return report.write_page(report.comparison_page(self, title=title), path)

    def _text(self) -> ResultText:
        headline = f"Verdict: {self.verdict}"
        return ResultText(headline, [self.sizes()], self.cells(), list(self.reasons()), self.notes, left=(0, 1))

    def reasons(self) -> Iterator[str]:
        """State the deciding tests, disagreements with the score, and the verdict on each model.

        Yields
        ------
        str
            One sentence.
        """
        terms, tested = self.terms, [d for d in self.deciding if not math.isnan(d.low)]
        yield from self._ranking_sentences()
        yield from (each.sentence() for each in self.non_inferiority)
        first = self.ranked[0].model if len(self.ranked) > 2 and self.is_all_pairs else None
        for d in tested:
            if first is not None and first not in (d.model, d.baseline):
                continue
            value, ends, _ = d.cells()
            largest = f", the largest p-value of the tests of {_join_names(terms.tests)}" if terms.tests else ""
            yield (
                f"Squared {terms.quantity} of {d.model} minus that of {d.baseline}: "
                f"{value.removesuffix(' (squares)')} ({ends}); {p_text(d.adjusted_pvalue)}{self._holm}{largest}."
            )
        if tested and terms.tests:
            yield (
                f"These intervals are for the difference of squared {terms.quantity}s only. The p-value is the "
                f"{_LARGEST[len(terms.tests)]} tests, so a difference may be not significant although its interval "
                "excludes 0."
            )
        if tested and terms.objection:
            yield (
                f"No difference is shown if the {terms.objection} differ significantly (p <= 0.05) in the other "
                "direction."
            )
        if tested and terms.meaning:
            yield terms.meaning
        yield from self.disagreements()
        for name, evaluation in self.models.items():
            yield f"{name}: {evaluation.details.headline(evaluation)}"

    def _ranking_sentences(self) -> Iterator[str]:
        """State the order of more than two models, and which are not shown to be worse than another one."""
        if len(self.ranked) < 3:
            return
        order = ", ".join(
            each.model if math.isnan(each.estimate) else f"{each.model} ({each.estimate:.3g})" for each in self.ranked
        )
        yield f"Ranking by the {self.terms.quantity}: {order}."
        share = f"{100 * (1 - self.settings.alpha):g} %"
        yield (
            f"Not shown to be worse than another model: {_join_names(self.best)}. This set contains the best "
            f"calibrated model with a probability of at least {share}."
        )

    def disagreements(self) -> list[str]:
        """Return a sentence for each pair whose better calibrated model has the worse score.

        Returns
        -------
        list of str
            One sentence per pair; empty if calibration and score agree, or if one difference is not shown.
        """
        terms = self.terms
        sign = 1 if terms.best == "lower" else -1
        found = []
        for d in self.deciding:
            scores = (self._difference(d.model, name, d.baseline) for name in terms.scores)
            score = next((each for each in scores if each is not None and each.test), None)
            if score is None or not (self.is_shown(d) and self.is_shown(score)) or d.value * score.value * sign > 0:
                continue
            better, other = (d.model, d.baseline) if d.value < 0 else (d.baseline, d.model)
            name = "Brier score" if score.metric == "Brier" else score.metric
            found.append(
                f"{better} is better calibrated than {other}, but {other} has the {terms.best} {name} (difference "
                f"{score.cells()[0]}, {p_text(score.adjusted_pvalue)}{self._holm}): {other} {terms.ability}."
            )
        return found

    @property
    def _holm(self) -> str:
        return ", adjusted" if len(self.deciding) > 1 else ""

    def sizes(self) -> str:
        """Format the number of rows, and the event rate, the number of classes or the mean outcome.

        Returns
        -------
        str
            One line, as in the printed result.
        """
        first = self.models[self.baseline]
        rows, about = rows_text(first.table), first.details.frame_columns(first.table)
        if "classes" in about:
            return f"{rows}, {about['classes']:,} classes"
        if "mean_outcome" in about:
            return f"{rows}, mean outcome {about['mean_outcome']:.4g}"
        return f"{rows}, {100 * about['event_rate']:.4g} % events" if "event_rate" in about else rows

    def cells(self) -> list[list[str]]:
        """Return the table of metrics as text; its first row is the header.

        Returns
        -------
        list of lists of str
            One row per metric and model; the rows of a metric stand together.
        """
        level = f"{100 * self.settings.confidence_level:g} %"
        header = ["", "", "value", f"{level} CI", "expected if calibrated"]
        cells = [[*header, f"minus {self.baseline}", f"{level} CI", "p-value"]]
        for metric in dict.fromkeys([self.decides, *self.models[self.baseline].metrics, *self._metrics()]):
            for name in self.models:
                own = self.models[name].metrics.get(metric)
                values = [self._score_text(metric, name), "", ""] if own is None else own.cells()[:3]
                d = self._difference(name, metric)
                row = [metric if name == self.baseline else "", name, *values]
                cells.append([*row, *(["", "", ""] if d is None else d.cells())])
        return cells


_MOST_NAMED = 5  # models whose pairs are named by a verdict
_LARGEST = {2: "larger of two", 3: "largest of three"}


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
