"""`Comparison`: the result of `compare`, several models on the same rows."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.formatting import NumberFormat, format_pvalue, p_text
from calibrant._support.frame_output import frame_from_rows
from calibrant._support.json_values import plain
from calibrant.evaluation import sentences
from calibrant.evaluation.binary import LOG_ODDS_ERROR
from calibrant.evaluation.metric_result import MetricResult
from calibrant.evaluation.results import SCHEMA_VERSION, Evaluation, to_json_text
from calibrant.evaluation.settings import Settings
from calibrant.evaluation.sizes import rows_text
from calibrant.evaluation.text import ResultText
from calibrant.inference.hypothesis_tests import TestResult

__all__ = ["BRIER", "DECIDES", "LOG_LOSS", "Comparison", "Difference"]

DECIDES, BRIER, LOG_LOSS = LOG_ODDS_ERROR, "Brier", "log loss"

_DIFFERENCE_COLUMNS = {
    "difference_value": "value",
    "difference_low": "low",
    "difference_high": "high",
    "difference_pvalue": "adjusted_pvalue",
}


@dataclass(frozen=True)
class Difference:
    """Difference of a metric between a model and the baseline, on the same rows.

    Attributes
    ----------
    model, baseline, metric, unit : str
    value : float
        For the log-odds error the difference of the debiased squares; for other metrics the difference of the values.
    low, high, level : float
        Confidence interval; NaN for metrics of gaps, whose difference has no interval of known coverage, and for the
        log-odds error if there is little information.
    pvalue, adjusted_pvalue : float
        p-value of "no difference": of this pair alone, and adjusted by Holm for the number of models. NaN for metrics
        of gaps.
    test : str
        Source of the p-value: "decides", "paired t test", "bootstrap", or "" without one.
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

    def cells(self) -> list[str]:
        """Return difference, interval and adjusted p-value with its test as text; empty where they do not exist."""
        form = NumberFormat.for_spread(self.unit, self.high - self.low, signed=True)
        value = "" if math.isnan(self.value) else form.value(self.value)
        if value and self.test == "decides":
            value += " (squares)"
        if math.isnan(self.low):
            return [value, "", ""]
        return [value, form.range(self.low, self.high), f"{format_pvalue(self.adjusted_pvalue)} ({self.test})"]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return plain(self)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Comparison of models on the same rows; see `compare`.

    Text, frame, JSON, figure and report read these results and recompute nothing.

    Attributes
    ----------
    models : mapping of name to Evaluation
    differences : tuple of Difference
        Differences of each model from the first one, the baseline: "log-odds error", which decides, "Brier", "log loss"
        if it is finite, and the other metrics.
    settings : Settings
    groups : mapping
        The comparison of each group; empty without groups.
    """

    models: Mapping[str, Evaluation]
    differences: tuple[Difference, ...]
    settings: Settings
    own_notes: tuple[Note, ...] = ()
    groups: "Mapping[Any, Comparison]" = field(default_factory=dict)

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
        """The tests of the differences from the baseline, by "model: metric"; their statistic is the difference."""
        tested = {f"{d.model}: {d.metric}": d for d in self.differences if d.test}
        return {
            name: TestResult(d.value, d.pvalue, name, adjusted_pvalue=d.adjusted_pvalue) for name, d in tested.items()
        }

    @property
    def baseline(self) -> str:
        """Name of the first model, with which the others are compared."""
        return next(iter(self.models))

    @property
    def decides(self) -> str:
        """The metric that decides the verdict."""
        return DECIDES

    @cached_property
    def deciding(self) -> tuple[Difference, ...]:
        """The differences that decide the verdict, one per model except the baseline."""
        return tuple(d for d in self.differences if d.test == "decides")

    @cached_property
    def adjusted(self) -> dict[str, float]:
        """For each model except the baseline the deciding p-value, adjusted by Holm for the number of models."""
        return {d.model: d.adjusted_pvalue for d in self.deciding}

    def is_shown(self, d: Difference) -> bool:
        """Return whether a difference is significant after adjustment for the number of models."""
        return d.adjusted_pvalue <= self.settings.alpha

    @property
    def verdict(self) -> str:
        """The models that are better or worse calibrated than the baseline, or "no difference shown"."""
        found = [
            f"{_join_names(names)} {'are' if len(names) > 1 else 'is'} {direction} calibrated than {self.baseline}"
            for direction, names in self._shown.items()
        ]
        return "; ".join(found) or "no difference shown"

    @property
    def direction(self) -> str:
        """Directions of the significant differences from the baseline: better, worse or both; '' if there is none."""
        return ", ".join(self._shown)

    @property
    def _shown(self) -> dict[str, list[str]]:
        """Names of the models that are significantly better or worse than the baseline."""
        shown = [d for d in self.deciding if self.is_shown(d)]
        found = {"better": [d.model for d in shown if d.value < 0], "worse": [d.model for d in shown if d.value > 0]}
        return {direction: names for direction, names in found.items() if names}

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the input and the results."""
        theirs = (note for evaluation in self.models.values() for note in evaluation.notes)
        return tuple(dict.fromkeys((*self.own_notes, *theirs)))

    def to_dict(self) -> dict[str, Any]:
        """Return all results and settings as plain data for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "result": "comparison",
            "kind": self.kind,
            "verdict": self.verdict,
            "direction": self.direction,
            "n_rows": self.n_rows,
            "baseline": self.baseline,
            "decides": self.decides,
            "differences": [d.to_dict() for d in self.differences],
            "adjusted": self.adjusted,
            "models": {name: evaluation.to_dict() for name, evaluation in self.models.items()},
            "settings": self.settings.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return to_json_text(self.to_dict())

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per model and metric: value, interval, null range, and difference from the baseline.

        ``difference_pvalue`` is adjusted by Holm for the number of models.
        """
        rows = []
        for name, evaluation in self.models.items():
            own = evaluation.rows(model=name)
            rows += [*self._further_rows(own), *own]
        for row in rows:
            d = self._difference(row["model"], row["metric"])
            for column, part in _DIFFERENCE_COLUMNS.items():
                row[column] = math.nan if d is None else getattr(d, part)
        return frame_from_rows(rows, backend)

    def _further_rows(self, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return rows of metrics that have a difference but no interval, such as log loss."""
        empty = {key: math.nan if isinstance(value, float) else value for key, value in own[0].items()}
        empty |= {key: own[0][key] for key in ("rows", "event_rate")} | {"unit": "1"}
        known = [row["metric"] for row in own]
        return [{**empty, "metric": metric} for metric in self._metrics() if metric not in known]

    def _metrics(self) -> list[str]:
        """Return the names of all metrics with a difference."""
        return list(dict.fromkeys(d.metric for d in self.differences))

    def _difference(self, model: str, metric: str) -> Difference | None:
        return next((d for d in self.differences if (d.model, d.metric) == (model, metric)), None)

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the models and their differences; return a `calibrant.plots.ComparisonDisplay`."""
        from calibrant import plots

        return plots.ComparisonDisplay(self).plot(fig=fig)

    def to_html(self, path: str | PathLike[str] | None = None, *, title: str = "Calibration report") -> str:
        """Return the report of all models as one HTML page; see `Evaluation.to_html`."""
        from calibrant import report

        return report.write_comparison(self, path, title=title)

    def __repr__(self) -> str:
        return self._text().to_text()

    def _repr_html_(self) -> str:
        return self._text().to_html()

    def _text(self) -> ResultText:
        headline = f"Verdict: {self.verdict}"
        return ResultText(headline, [self.sizes()], self.cells(), list(self.reasons()), self.notes, left=(0, 1))

    def reasons(self) -> Iterator[str]:
        """State the deciding tests, disagreements with the Brier score, and the verdict on each model."""
        for d in self.deciding:
            if not math.isnan(d.low):
                value, ends, _ = d.cells()
                yield (
                    f"Squared log-odds error of {d.model} minus that of {d.baseline}: "
                    f"{value.removesuffix(' (squares)')} ({ends}); {p_text(d.adjusted_pvalue)}{self._holm}, "
                    "the largest p-value of the tests of log-odds errors, absolute gaps and squared gaps."
                )
        if any(not math.isnan(d.low) for d in self.deciding):
            yield (
                "These intervals are for the difference of squared log-odds errors only. The p-value is the largest of "
                "three tests, so a difference may be not significant although its interval excludes 0."
            )
        yield from self.disagreements()
        for name, evaluation in self.models.items():
            yield f"{name}: {sentences.headline(evaluation)}"

    def disagreements(self) -> list[str]:
        """Return a sentence for each pair whose better calibrated model has the higher Brier score."""
        found = []
        for d in self.deciding:
            brier = self._difference(d.model, BRIER)
            assert brier is not None
            if not (self.is_shown(d) and self.is_shown(brier)) or d.value * brier.value > 0:
                continue
            better, other = (d.model, d.baseline) if d.value < 0 else (d.baseline, d.model)
            found.append(
                f"{better} is better calibrated than {other}, but {other} has the lower Brier score (difference "
                f"{brier.cells()[0]}, {p_text(brier.adjusted_pvalue)}{self._holm}): {other} discriminates better."
            )
        return found

    @property
    def _holm(self) -> str:
        return ", adjusted" if len(self.deciding) > 1 else ""

    def sizes(self) -> str:
        """Format the number of rows and the event rate."""
        table = self.models[self.baseline].table
        return f"{rows_text(table)}, {100 * table.prevalence:.4g} % events"

    def cells(self) -> list[list[str]]:
        """Return the table of metrics as text; its first row is the header."""
        level = f"{100 * self.settings.confidence_level:g} %"
        header = ["", "", "value", f"{level} CI", "expected if calibrated"]
        cells = [[*header, f"minus {self.baseline}", f"{level} CI", "p-value"]]
        for metric in dict.fromkeys([*self.models[self.baseline].metrics, *self._metrics()]):
            for name in self.models:
                own = self.models[name].metrics.get(metric)
                values = ["", "", ""] if own is None else own.cells()[:3]
                d = self._difference(name, metric)
                row = [metric if name == self.baseline else "", name, *values]
                cells.append([*row, *(["", "", ""] if d is None else d.cells())])
        return cells


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
