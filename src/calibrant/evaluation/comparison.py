"""`compare`: which of several models is better calibrated, on the same rows?"""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.errors import InputError, Note
from calibrant._support.formatting import Form, chance, p_is
from calibrant._support.frames import frame
from calibrant._support.json_values import plain
from calibrant._support.random_streams import RandomState, seed_of
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Column
from calibrant.evaluation import sentences
from calibrant.evaluation.binary import LOG_ODDS_ERROR, Evaluation, Settings, evaluate_table, settings_of
from calibrant.evaluation.sizes import rows_in_words
from calibrant.inference import resampling
from calibrant.inference.decision import Margin
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import (
    PairedDifference,
    brier_difference,
    calibration_difference,
    difference,
    log_loss_difference,
    paired_draws,
)
from calibrant.inference.relevance import MIN_INFORMATION
from calibrant.inference.resampling import Measure, PairedRows
from calibrant.metrics.costs import Cost
from calibrant.metrics.proper_scores import Brier, LogLoss
from calibrant.metrics.registry import MetricLike
from calibrant.tables.score_table import ScoreTable

__all__ = ["Comparison", "compare"]

DECIDES, BRIER, LOG_LOSS = LOG_ODDS_ERROR, "Brier", "log loss"
_LITTLE = (
    "Comparisons in which no difference can be shown, because the information of a model (about the expected number of "
    f"events) is below {MIN_INFORMATION:g}: {{count}}."
)


@dataclass(frozen=True)
class Difference:
    """A model's metric less that of the baseline, on the same rows.

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
        Where the p-value comes from: "decides", "paired t test", "bootstrap", or "" without one.
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
        """For people: difference, interval, adjusted p-value with its test; empty where they do not exist."""
        form = Form.of(self.unit, self.high - self.low, signed=True)
        value = "" if math.isnan(self.value) else form.amount(self.value)
        if value and self.test == "decides":
            value += " (squares)"
        if math.isnan(self.low):
            return [value, "", ""]
        return [value, form.span(self.low, self.high), f"{chance(self.adjusted_pvalue)} ({self.test})"]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
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
    def baseline(self) -> str:
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
        """What a reader must know about the input and the results."""
        theirs = (note for evaluation in self.models.values() for note in evaluation.notes)
        return tuple(dict.fromkeys((*self.own_notes, *theirs)))

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
            "notes": [note.to_dict() for note in self.notes],
        }

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
        return frame(rows, backend)

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
        """What decided, where the Brier score disagrees, and the verdict of each model for itself."""
        for d in self.deciding:
            if not math.isnan(d.low):
                value, ends, _ = d.cells()
                yield (
                    f"Squared log-odds error of {d.model} less that of {d.baseline}: "
                    f"{value.removesuffix(' (squares)')} ({ends}); {p_is(d.adjusted_pvalue)}{self._holm}, "
                    "the largest p-value of the tests of log-odds errors, absolute gaps and squared gaps."
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
                f"{brier.cells()[0]}, {p_is(brier.adjusted_pvalue)}{self._holm}): {other} discriminates better."
            )
        return found

    @property
    def _holm(self) -> str:
        return ", adjusted" if len(self.deciding) > 1 else ""

    def sizes(self) -> str:
        """How many rows, and events."""
        table = self.models[self.baseline].table
        return f"{rows_in_words(table)}, {100 * table.prevalence:.4g} % events"

    def cells(self) -> list[list[str]]:
        """The table that people read; its first row is the heading."""
        level = f"{100 * self.settings.confidence_level:g} %"
        heading = ["", "", "value", f"{level} CI", "expected if calibrated"]
        cells = [[*heading, f"less {self.baseline}", f"{level} CI", "p-value"]]
        for metric in dict.fromkeys([*self.models[self.baseline].metrics, *self._metrics()]):
            for name in self.models:
                own = self.models[name].metrics.get(metric)
                values = ["", "", ""] if own is None else own.cells()[:3]
                d = self._difference(name, metric)
                row = [metric if name == self.baseline else "", name, *values]
                cells.append([*row, *(["", "", ""] if d is None else d.cells())])
        return cells


_DIFFERENCE_COLUMNS = {
    "difference_value": "value",
    "difference_low": "low",
    "difference_high": "high",
    "difference_pvalue": "adjusted_pvalue",
}


def compare(
    y_true: Column,
    y_probs: Mapping[str, Column],
    *,
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
) -> Comparison:
    """Compare the calibration of several models on the same rows.

    Parameters
    ----------
    y_true : column
    y_probs : mapping of name to column
        Predictions of two models or more for the same rows; the first is the baseline that others are compared with.
    cluster : column, optional
        Rows of one cluster may depend on each other; there must be at least 10 clusters.
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
    The verdict follows from the difference of the debiased squared log-odds errors, each over bins of equal
    information of its own model, with a robust covariance of rows or clusters. Mean absolute and mean squared gaps of
    the probabilities over the same bins must differ significantly in the same direction; the p-value is the largest of
    the three. So two models that are equally wrong on the log-odds scale or on the probability scale are told apart in
    at most about 5 % of data sets. A model is better or worse calibrated than the baseline if the p-value, adjusted
    for the number of models by Holm, is at most `alpha`. Where the information of a model is below 20 (with importance
    weights 100), no difference is shown.

    Beside it stand the differences of the Brier score and of log loss, with paired t tests. Where the better
    calibrated model has the higher Brier score, the other model discriminates better, and the output states it.

    Metrics of gaps (ECE, ACE, TCE and others) have neither interval nor p-value here: their bias depends on the model,
    and a bootstrap of their difference has no known error rate. Other metrics have the interval of their replicates,
    moved so that the mean of the replicates is the difference of the data. All p-values are adjusted by Holm for the
    number of models; intervals are not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < p
    >>> compare(y, {"squared": p**2, "plain": p}, n_resamples=99).verdict
    'plain is better calibrated than squared'
    """
    if not isinstance(y_probs, Mapping) or len(y_probs) < 2:
        raise InputError(
            "compare needs the predictions of at least two models.",
            hint='Pass {"name": predictions, ...}.',
            argument="y_probs",
        )
    settings = settings_of(margin, alpha, metrics, costs, confidence_level, n_resamples, random_state)
    _check_names(settings.metrics)
    seed = seed_of(random_state)
    paired, tables = PairedRows.read(y_true, list(y_probs.values()), cluster=cluster, **rows)
    names = [str(name) for name in y_probs]
    if len(set(names)) < len(names):
        raise InputError(f"Two models have the same name: {names}.", argument="y_probs", value=names)
    models = {
        name: evaluate_table(table, settings, seed, show=progress, rows=None if cluster is None else paired.only(i))
        for i, (name, table) in enumerate(zip(names, tables, strict=True))
    }
    shared = set.intersection(*(set(evaluation.metrics) for evaluation in models.values()))
    pairs = [calibration_difference(paired, tables, i, 0) for i in range(1, len(names))]
    tested = {DECIDES: pairs, BRIER: [brier_difference(paired, i, 0) for i in range(1, len(names))]}
    losses = [log_loss_difference(paired, i, 0) for i in range(1, len(names))]
    if all(math.isfinite(each.value) for each in losses):
        tested[LOG_LOSS] = losses
    rest = {name: m for name, m in settings.metrics.items() if name in shared and name not in tested}
    found = [
        _from_test(names[i], names[0], metric, each, confidence_level)
        for metric, several in tested.items()
        for i, each in enumerate(several, 1)
    ]
    found += _from_replicates(paired, tables, names, rest, settings, seed, progress)
    little = sum(pair.has_little_information for pair in pairs)
    notes = (Note("little_information", little, _LITTLE),) if little else ()
    return Comparison(models, _adjusted(found), settings, notes)


def _check_names(metrics: Mapping[str, Measure]) -> None:
    for name, metric in ((BRIER, Brier()), (LOG_LOSS, LogLoss())):
        if metrics.get(name, metric) != metric:
            raise InputError(
                f"metrics must not call another metric {name!r}; got {metrics[name]!r}.",
                hint="Use another name for it.",
                argument="metrics",
                value=name,
            )


def _from_test(model: str, baseline: str, metric: str, found: PairedDifference, level: float) -> Difference:
    low, high = found.interval(level)
    test = "decides" if metric == DECIDES else "paired t test"
    return Difference(model, baseline, metric, found.value, low, high, level, found.pvalue, "1", test)


def _from_replicates(
    rows: PairedRows,
    tables: Sequence[ScoreTable],
    names: list[str],
    metrics: Mapping[str, Measure],
    settings: Settings,
    seed: SeedSequence,
    show: bool | None,
) -> list[Difference]:
    """Differences of other metrics: metrics of gaps without, others with an interval by the bootstrap."""
    level = settings.confidence_level
    smooth = [name for name, metric in metrics.items() if not metric.measures_gaps]
    draws = np.empty((0, len(names), 0))
    if smooth:
        chosen = [metrics[name] for name in smooth]
        threads = tables[0].size >= resampling.THREADS_FROM
        draws = paired_draws(rows, chosen, n_resamples=settings.n_resamples, seed=seed, threads=threads, show=show)
    found = []
    for name, metric in metrics.items():
        values = [metric.value(table) for table in tables]
        for i in range(1, len(names)):
            value, low, high, pvalue, test = values[i] - values[0], math.nan, math.nan, math.nan, ""
            if name in smooth:
                drawn = draws[:, :, smooth.index(name)]
                low, high, pvalue = difference(value, drawn[:, i] - drawn[:, 0], level)
                test = "bootstrap"
            found.append(Difference(names[i], names[0], name, value, low, high, level, pvalue, metric.unit, test))
    return found


def _adjusted(differences: list[Difference]) -> tuple[Difference, ...]:
    """Differences with p-values adjusted for the number of models by Holm, metric by metric."""
    found = []
    for metric in dict.fromkeys(d.metric for d in differences):
        same = [d for d in differences if d.metric == metric]
        if not same[0].test:
            found += same
            continue
        found += [
            replace(d, adjusted_pvalue=float(p)) for d, p in zip(same, holm([d.pvalue for d in same]), strict=True)
        ]
    return tuple(found)


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _is(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
