"""`Comparison`: the result of comparing models on the same rows."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.formatting import NumberFormat, format_pvalue, pvalue_phrase
from calibrant._support.frame_output import frame_from_rows
from calibrant._support.json_values import plain
from calibrant.evaluation import sentences
from calibrant.evaluation.binary import LOG_ODDS_ERROR
from calibrant.evaluation.results import SCHEMA_VERSION, Evaluation, to_json_text
from calibrant.evaluation.settings import Settings
from calibrant.evaluation.sizes import rows_in_words
from calibrant.evaluation.text import ResultText

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
        For the log-odds error the difference of the debiased squares; otherwise the difference of the two values.
    low, high, level : float
        Confidence interval; NaN for metrics of gaps, whose difference has no interval of known coverage, and for the
        log-odds error where there is little information.
    pvalue, adjusted_pvalue : float
        Of "no difference", for this pair alone and adjusted for the number of models by Holm; NaN for metrics of gaps.
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
        """The same as text: difference, interval, adjusted p-value with its test; empty where they do not exist."""
        form = NumberFormat.for_spread(self.unit, self.high - self.low, signed=True)
        value = "" if math.isnan(self.value) else form.value(self.value)
        if value and self.test == "decides":
            value += " (squares)"
        if math.isnan(self.low):
            return [value, "", ""]
        return [value, form.range(self.low, self.high), f"{format_pvalue(self.adjusted_pvalue)} ({self.test})"]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return plain(self)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models on the same rows; see `compare`.

    Attributes
    ----------
    models : mapping
        The `Evaluation` of each model.
    differences : tuple of Difference
        Of each model but the first, the baseline: "log-odds error", which decides, "Brier", "log loss" where it is
        finite, and the other metrics.
    settings : Settings
    """

    models: Mapping[str, Evaluation]
    differences: tuple[Difference, ...]
    settings: Settings
    own_notes: tuple[Note, ...] = ()

    @property
    def kind(self) -> str:
        """Kind of forecast, that of all models."""
        return self.models[self.baseline].kind

    @property
    def baseline(self) -> str:
        """Name of the first model, with which the others are compared."""
        return next(iter(self.models))

    @property
    def decides(self) -> str:
        """The metric that the verdict follows from."""
        return DECIDES

    @cached_property
    def deciding(self) -> tuple[Difference, ...]:
        """The differences that the verdict follows from, one per model but the baseline."""
        return tuple(d for d in self.differences if d.test == "decides")

    @cached_property
    def adjusted(self) -> dict[str, float]:
        """For each model but the baseline the p-value that decides, adjusted for the number of models by Holm."""
        return {d.model: d.adjusted_pvalue for d in self.deciding}

    def is_shown(self, d: Difference) -> bool:
        """Whether a difference is significant, with its p-value adjusted for the number of models."""
        return d.adjusted_pvalue <= self.settings.alpha

    @property
    def verdict(self) -> str:
        """Which models are shown to be better or worse calibrated than the baseline, or "no difference shown"."""
        shown = [d for d in self.deciding if self.is_shown(d)]
        better, worse = [d.model for d in shown if d.value < 0], [d.model for d in shown if d.value > 0]
        found = [f"{_and(better)} {_is(better)} better calibrated than {self.baseline}"] * bool(better)
        found += [f"{_and(worse)} {_is(worse)} worse calibrated than {self.baseline}"] * bool(worse)
        return "; ".join(found) or "no difference shown"

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the input and the results."""
        theirs = (note for evaluation in self.models.values() for note in evaluation.notes)
        return tuple(dict.fromkeys((*self.own_notes, *theirs)))

    def to_dict(self) -> dict[str, Any]:
        """All results as plain data for JSON, with the settings."""
        return {
            "schema_version": SCHEMA_VERSION,
            "result": "comparison",
            "kind": self.kind,
            "verdict": self.verdict,
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
        """One row per model and metric: value, interval, null range, and difference from the baseline.

        ``difference_pvalue`` is adjusted for the number of models by Holm.
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
        """Rows of metrics that have a difference but no interval of their own, such as log loss."""
        empty = {key: math.nan if isinstance(value, float) else value for key, value in own[0].items()}
        empty |= {key: own[0][key] for key in ("rows", "event_rate")} | {"unit": "1"}
        known = [row["metric"] for row in own]
        return [{**empty, "metric": metric} for metric in self._metrics() if metric not in known]

    def _metrics(self) -> list[str]:
        """Names of all metrics with a difference."""
        return list(dict.fromkeys(d.metric for d in self.differences))

    def _difference(self, model: str, metric: str) -> Difference | None:
        return next((d for d in self.differences if (d.model, d.metric) == (model, metric)), None)

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the models and their differences, in `fig` or a new figure: a `calibrant.plots.ComparisonDisplay`."""
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
                    f"Squared log-odds error of {d.model} less that of {d.baseline}: "
                    f"{value.removesuffix(' (squares)')} ({ends}); {pvalue_phrase(d.adjusted_pvalue)}{self._holm}, "
                    "the largest p-value of the tests of log-odds errors, absolute gaps and squared gaps."
                )
        if any(not math.isnan(d.low) for d in self.deciding):
            yield (
                "These intervals are of the difference of squared log-odds errors alone. The p-value is the largest of "
                "three tests, so a difference may be not significant although its interval excludes 0."
            )
        yield from self.disagreements()
        for name, evaluation in self.models.items():
            yield f"{name}: {sentences.headline(evaluation)}"

    def disagreements(self) -> list[str]:
        """A sentence for each pair whose better calibrated model has the higher Brier score."""
        found = []
        for d in self.deciding:
            brier = self._difference(d.model, BRIER)
            assert brier is not None
            if not (self.is_shown(d) and self.is_shown(brier)) or d.value * brier.value > 0:
                continue
            better, other = (d.model, d.baseline) if d.value < 0 else (d.baseline, d.model)
            found.append(
                f"{better} is better calibrated than {other}, but {other} has the lower Brier score (difference "
                f"{brier.cells()[0]}, {pvalue_phrase(brier.adjusted_pvalue)}{self._holm}): "
                f"{other} discriminates better."
            )
        return found

    @property
    def _holm(self) -> str:
        return ", adjusted" if len(self.deciding) > 1 else ""

    def sizes(self) -> str:
        """Number of rows and share of events."""
        table = self.models[self.baseline].table
        return f"{rows_in_words(table)}, {100 * table.prevalence:.4g} % events"

    def cells(self) -> list[list[str]]:
        """The table of metrics as text; its first row is the header."""
        level = f"{100 * self.settings.confidence_level:g} %"
        header = ["", "", "value", f"{level} CI", "expected if calibrated"]
        cells = [[*header, f"less {self.baseline}", f"{level} CI", "p-value"]]
        for metric in dict.fromkeys([*self.models[self.baseline].metrics, *self._metrics()]):
            for name in self.models:
                own = self.models[name].metrics.get(metric)
                values = ["", "", ""] if own is None else own.cells()[:3]
                d = self._difference(name, metric)
                row = [metric if name == self.baseline else "", name, *values]
                cells.append([*row, *(["", "", ""] if d is None else d.cells())])
        return cells


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _is(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
