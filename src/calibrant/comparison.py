"""`compare`: which of several models is better calibrated, on the same rows?"""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from calibrant._json import plain
from calibrant._tables import html_table, text_table
from calibrant._typing import Column
from calibrant.costs import Cost
from calibrant.errors import InputError, Note
from calibrant.evaluation import Evaluation, Settings, evaluate_table, settings_of
from calibrant.inference import resampling
from calibrant.inference.decision import Margin
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import difference, paired_draws
from calibrant.inference.resampling import Measure, PairedRows, RandomState
from calibrant.lines import Form, chance, frame, rows_in_words
from calibrant.metrics import ACE

__all__ = ["Comparison", "compare"]

MATTERS = ACE()


@dataclass(frozen=True)
class Difference:
    """A model's metric less that of the baseline, on the same rows."""

    model: str
    baseline: str
    metric: str
    value: float
    low: float
    high: float
    level: float
    pvalue: float
    unit: str

    def cells(self) -> list[str]:
        """For people: difference, interval, p-value."""
        form = Form.of(self.unit, self.high - self.low, signed=True)
        return [form.amount(self.value), form.span(self.low, self.high), chance(self.pvalue)]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return plain(self)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models on the same rows; see `compare`.

    Attributes
    ----------
    models : mapping
        The `Evaluation` of every model.
    differences : tuple of Difference
        Of every model but the first, the baseline, in every metric.
    """

    models: Mapping[str, Evaluation]
    differences: tuple[Difference, ...]
    decides: str
    settings: Settings

    @property
    def baseline(self) -> str:
        return next(iter(self.models))

    @cached_property
    def adjusted(self) -> dict[str, float]:
        """For every model but the baseline the p-value of its difference in the metric that decides, by Holm."""
        deciding = [d for d in self.differences if d.metric == self.decides]
        return dict(zip((d.model for d in deciding), holm([d.pvalue for d in deciding]).tolist(), strict=True))

    @property
    def verdict(self) -> str:
        """Which models are shown to be better or worse calibrated than the baseline."""
        better: list[str] = []
        worse: list[str] = []
        for d in self.differences:
            if d.metric == self.decides and self.adjusted[d.model] <= self.settings.alpha:
                (better if d.value < 0 else worse).append(d.model)
        found = [f"{_and(better)} {_is(better)} better calibrated than {self.baseline}"] * bool(better)
        found += [f"{_and(worse)} {_is(worse)} worse calibrated than {self.baseline}"] * bool(worse)
        return "; ".join(found) or "no difference in calibration is shown"

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the input and the results."""
        return tuple(dict.fromkeys(note for evaluation in self.models.values() for note in evaluation.notes))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON, with its whole specification."""
        return {
            "schema_version": 1,
            "kind": "comparison",
            "verdict": self.verdict,
            "baseline": self.baseline,
            "decides": self.decides,
            "differences": [d.to_dict() for d in self.differences],
            "adjusted": self.adjusted,
            "models": {name: evaluation.to_dict() for name, evaluation in self.models.items()},
            "settings": self.settings.to_dict(),
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row a model and metric: value, interval, null band, and difference from the baseline."""
        rows = [row for name, evaluation in self.models.items() for row in evaluation.rows(model=name)]
        for row in rows:
            d = self._difference(row["model"], row["metric"])
            for part in ("value", "low", "high", "pvalue"):
                row[f"difference_{part}"] = float("nan") if d is None else getattr(d, part)
        return frame(rows, backend)

    def _difference(self, model: str, metric: str) -> Difference | None:
        return next((d for d in self.differences if (d.model, d.metric) == (model, metric)), None)

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the models and their differences, in `fig` or a new figure: a `calibrant.plots.ComparisonDisplay`."""
        from calibrant import plots

        return plots.ComparisonDisplay(self).plot(fig=fig)

    def to_html(self, path: str | PathLike[str] | None = None, *, title: str = "Calibration report") -> str:
        """The report of all models as one HTML page; see `Evaluation.to_html`."""
        from calibrant import report

        return report.of_comparison(self, path, title=title)

    def __repr__(self) -> str:
        lines = [f"Verdict: {self.verdict}", self.sizes(), ""]
        lines += text_table(self.cells(), left=(0, 1))
        lines += ["", *(f"  {line}" for line in self.reasons())]
        return "\n".join([*lines, *(f"  note: {note.text}" for note in self.notes)])

    def _repr_html_(self) -> str:
        verdicts = "".join(f"<li>{html.escape(line)}</li>" for line in self.reasons())
        verdicts += "".join(f"<li>note: {html.escape(note.text)}</li>" for note in self.notes)
        return (
            f"<p><strong>Verdict: {html.escape(self.verdict)}</strong><br>"
            f"{html.escape(self.sizes())}</p>"
            f"{html_table(self.cells(), left=(0, 1))}<ul>{verdicts}</ul>"
        )

    def reasons(self) -> Iterator[str]:
        """What decided, and the verdict of every model for itself."""
        for d in self.differences:
            if d.metric == self.decides:
                value, ends, p = d.cells()
                adjusted = f", adjusted {chance(self.adjusted[d.model])}" if len(self.adjusted) > 1 else ""
                yield f"Decided by {d.metric}: {d.model} less {d.baseline} {value} ({ends}), p = {p}{adjusted}."
        for name, evaluation in self.models.items():
            yield f"{name}: {evaluation.verdict}"

    def sizes(self) -> str:
        """How many rows, and events."""
        table = self.models[self.baseline].table
        return f"{rows_in_words(table)}, {100 * table.prevalence:.4g} % events"

    def cells(self) -> list[list[str]]:
        """The table that people read; its first row is the heading."""
        level = f"{100 * self.settings.confidence_level:g} %"
        heading = ["", "", "value", f"{level} interval", "a right model reads"]
        cells = [[*heading, f"less {self.baseline}", f"{level} interval", "p-value"]]
        for line in self.models[self.baseline].metrics.values():
            for name, evaluation in self.models.items():
                own = evaluation.metrics.get(line.name)
                row = [
                    line.name if name == self.baseline else "",
                    name,
                    *(["", "", ""] if own is None else own.cells()[:3]),
                ]
                d = self._difference(name, line.name)
                cells.append([*row, *(["", "", ""] if d is None else d.cells())])
        return cells


def compare(
    y_true: Column,
    y_probs: Mapping[str, Column],
    *,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: Mapping[str, Measure] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Comparison:
    """Which model is better calibrated? Paired: every replicate draws rows once, for all models.

    Parameters
    ----------
    y_true : column
    y_probs : mapping of name to column
        Predictions of two models or more for the same rows; the first is the baseline that others are compared with.
    cluster : column, optional
        Rows of one cluster are drawn together.
    costs, margin, alpha, metrics, confidence_level, n_resamples, random_state, progress
        See `evaluate`. Tables cannot be given: they no longer know which rows belong together.
    sample_weight, frequency, pos_label
        How rows are read; see `ScoreTable.from_arrays`.

    Returns
    -------
    Comparison
        ``verdict``, ``models`` (an `Evaluation` each), ``differences``, ``to_frame()``, ``to_dict()``; print it.

    Notes
    -----
    A difference has the interval of its replicates moved so that their mean is the difference of the data, and a
    two-sided p-value by the same replicates; the verdict follows from ACE, adjusted for the number of models by Holm.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < p
    >>> compare(y, {"squared": p**2, "right": p}, n_resamples=99).verdict
    'right is better calibrated than squared'
    """
    if not isinstance(y_probs, Mapping) or len(y_probs) < 2:
        raise InputError(
            "compare needs the predictions of at least two models.",
            hint='Pass {"name": predictions, ...}.',
            argument="y_probs",
        )
    settings = settings_of(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    seed = resampling.seed_of(random_state)
    paired, tables = PairedRows.read(y_true, list(y_probs.values()), cluster=cluster, **rows)
    names = [str(name) for name in y_probs]
    if len(set(names)) < len(names):
        raise InputError(f"Two models have the same name: {names}.", argument="y_probs", value=names)
    models = {
        name: evaluate_table(table, settings, seed, show=progress, rows=None if cluster is None else paired.only(i))
        for i, (name, table) in enumerate(zip(names, tables, strict=True))
    }
    measured = [set(evaluation.metrics) for evaluation in models.values()]
    chosen = {name: m for name, m in settings.metrics.items() if set.intersection(*measured) >= {name}}
    decides = MATTERS.name if chosen.get(MATTERS.name, MATTERS) == MATTERS else f"{MATTERS.name}, ten groups"
    chosen[decides] = MATTERS

    draws = paired_draws(
        paired,
        list(chosen.values()),
        n_resamples=n_resamples,
        seed=seed,
        threads=tables[0].size >= resampling.THREADS_FROM,
        show=progress,
    )
    values = np.array([[metric.value(table) for metric in chosen.values()] for table in tables])
    found, spread = values[1:] - values[0], draws[:, 1:] - draws[:, :1]
    differences = []
    for i, name in enumerate(names[1:]):
        for j, (metric, measure) in enumerate(chosen.items()):
            value = float(found[i, j])
            low, high, pvalue = difference(value, spread[:, i, j], confidence_level)
            differences.append(
                Difference(name, names[0], metric, value, low, high, confidence_level, pvalue, measure.unit)
            )
    return Comparison(models, tuple(differences), decides, settings)


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _is(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
