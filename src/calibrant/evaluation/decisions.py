"""`decisions`: errors and costs of decisions by a threshold on predicted probabilities."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrant._support.arrays import Column
from calibrant._support.errors import InputError, Note, check_share
from calibrant._support.formatting import NumberFormat, PrintedResult, TableText, format_pvalue
from calibrant._support.plain_data import frame_from_rows, plain
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.paired import bootstrap_difference, paired_replicates
from calibrant.inference.paired_rows import PairedRows
from calibrant.metrics.decision_costs import DecisionCost, bayes_threshold
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable


@dataclass(frozen=True)
class DecisionResult:
    """Errors and mean cost of decisions by one model's scores, and the saving over the first model; see `decisions`.

    `net_benefit` is that of Vickers and Elkin (2006) at the threshold: true positives less false positives times the
    odds of the threshold, per row. `decision_curve` computes it at many thresholds, with intervals.

    Attributes
    ----------
    name : str
        Name of the model.
    threshold : float
        Rows with at least this score are acted on.
    accuracy, false_positives, false_negatives : float
        Shares of rows.
    cost, low, high : float
        Mean cost per row and its confidence interval.
    saving, saving_low, saving_high : float
        Saving over the first model and its confidence interval.
    pvalue : float
        p-value of the saving.
    net_benefit : float
        Net benefit at the threshold.

    See Also
    --------
    Decisions, decisions

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> found = cb.decisions(rng.random(1000) < p, p, false_positive=1, false_negative=4, n_resamples=99)
    >>> line = found.lines[0]
    >>> line.threshold, round(line.cost, 2), round(line.net_benefit, 2)
    (0.2, 0.39, 0.43)
    """

    name: str
    threshold: float
    accuracy: float
    false_positives: float
    false_negatives: float
    cost: float
    low: float
    high: float
    saving: float
    saving_low: float
    saving_high: float
    pvalue: float
    net_benefit: float


@dataclass(frozen=True, repr=False)
class Decisions(PrintedResult):
    """Errors and costs of decisions by each model; see `decisions`.

    Attributes
    ----------
    lines : tuple of DecisionResult
        One per model.
    metric : DecisionCost
        The costs.
    level : float
        Confidence level.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    decisions, DecisionResult

    Examples
    --------
    >>> import calibrant as cb
    >>> found = cb.decisions([0, 1, 0, 1], [0.1, 0.4, 0.3, 0.9], false_negative=4, n_resamples=199)
    >>> [line.threshold for line in found.lines]
    [0.2]
    """

    lines: tuple[DecisionResult, ...]
    metric: DecisionCost
    level: float
    notes: tuple[Note, ...] = ()

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per model.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return frame_from_rows([vars(line) for line in self.lines], backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 2,
            "result": "decisions",
            "kind": ScoreTable.kind,
            "metric": self.metric.spec,
            "level": self.level,
            "lines": [plain(line) for line in self.lines],
            "notes": [note.to_dict() for note in self.notes],
        }

    def _text(self) -> TableText:
        metric, level, first = self.metric, f"{100 * self.level:g} %", self.lines[0].name
        head = ["", "accuracy", "false positives", "false negatives", "cost per row", f"{level} interval"]
        cells = [[*head, f"saving over {first}", f"{level} interval", "p-value"]]
        for line in self.lines:
            form = NumberFormat.for_spread("1", line.high - line.low, signed=False)
            gain = NumberFormat.for_spread("1", line.saving_high - line.saving_low, signed=True)
            row = [line.name, f"{100 * line.accuracy:.2f} %", f"{line.false_positives:,.6g}"]
            row += [f"{line.false_negatives:,.6g}", form.value(line.cost), form.range(line.low, line.high)]
            saved = [gain.value(line.saving), gain.range(line.saving_low, line.saving_high), format_pvalue(line.pvalue)]
            cells.append(row + (["", "", ""] if line.name == first else saved))
        costs = f"A false positive costs {metric.false_positive:g}, a false negative {metric.false_negative:g}."
        rule = f"Decisions for the event at scores of at least {metric.cut:.4g}. {costs}"
        return TableText([rule], cells, [f"note: {note.text}" for note in self.notes])


def decisions(
    y_true: Column,
    y_probs: Mapping[str, Column] | Column,
    *,
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    cost: Any = None,
    threshold: float | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: RandomState = 0,
    progress: bool | None = None,
    **rows: Unpack[RowOptions],
) -> Decisions:
    """Compare errors and costs of decisions by several models, or before and after recalibration, on the same rows.

    Parameters
    ----------
    y_true : column
    y_probs : mapping of name to column, or one column
        Predictions for the same rows. Models are compared with the first one, for example the uncalibrated model.
    false_positive, false_negative : float, default=1
        Cost of a positive decision on a row without the event, and of a negative decision on a row with it.
    cost : cost object, optional
        Instead of both: ``LinearCost(over=1, under=4)`` costs 1 for a false positive and 4 for a false negative.
    threshold : float, optional
        Lowest score of a decision for the event; by default `bayes_threshold`, which has the least cost if the
        probabilities are calibrated.
    confidence_level, n_resamples, random_state, progress
        Options of the intervals: a bootstrap of rows, with the same resamples for all models.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. With ``missing="drop"`` a row is dropped for all models
        if the prediction of one of them is missing.

    Returns
    -------
    Decisions
        ``lines`` (one `DecisionResult` per model), ``to_frame()``, ``to_dict()``; its text is a table.

    See Also
    --------
    DecisionResult, Decisions, bayes_threshold, decision_curve

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p
    >>> found = decisions(y, {"squared": p**2, "plain": p}, false_positive=1, false_negative=4, n_resamples=99)
    >>> [round(line.cost, 2) for line in found.lines]
    [0.58, 0.4]
    >>> found.lines[1].pvalue
    0.01
    """
    models = as_models(y_probs)
    if cost is not None:
        false_positive, false_negative = _unit_costs(cost, false_positive, false_negative)
    metric = DecisionCost(false_positive, false_negative, threshold)
    level = check_share("confidence_level", confidence_level)
    paired, tables = PairedRows.read(y_true, models, **rows)
    draws = paired_replicates(
        paired, [metric], n_resamples=n_resamples, seed=seed_sequence(random_state), show=progress
    )[:, :, 0]
    lines = []
    for i, (name, table) in enumerate(zip(models, tables, strict=True)):
        false_positives, false_negatives = metric.errors(table)
        accuracy = 1 - (false_positives + false_negatives) / table.size
        mean = metric.value(table)
        low, high = np.quantile(draws[:, i], ((1 - level) / 2, (1 + level) / 2)).tolist()
        saving = metric.value(tables[0]) - mean
        gain = bootstrap_difference(saving, draws[:, 0] - draws[:, i], level) if i else (math.nan,) * 3
        errors = (accuracy, false_positives, false_negatives)
        benefit = _net_benefit(table, metric.cut, false_positives, false_negatives)
        lines.append(DecisionResult(str(name), metric.cut, *errors, mean, low, high, saving, *gain, benefit))
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    return Decisions(tuple(lines), metric, confidence_level, notes)


def as_models(y_probs: Any) -> Mapping[str, Column]:
    """Return predictions by name: a mapping, the columns of a frame, or one column named "model"."""
    if hasattr(y_probs, "columns"):  # a frame
        y_probs = {name: y_probs[name] for name in y_probs.columns}
    models: Mapping[str, Column] = y_probs if isinstance(y_probs, Mapping) else {"model": y_probs}
    names = [str(name) for name in models]
    if not names:
        raise InputError(
            "y_probs must be a mapping with at least one model; got an empty one.",
            hint='Pass {"name": predictions, ...}.',
            argument="y_probs",
        )
    if len(set(names)) < len(names):
        raise InputError(f"y_probs must have distinct names; got {names}.", argument="y_probs", value=names)
    return models


def cost_threshold(cost: Any) -> float:
    """Return the Bayes threshold of a cost object: over / (over + under)."""
    return bayes_threshold(*_unit_costs(cost))


def _unit_costs(cost: Any, false_positive: float = 1.0, false_negative: float = 1.0) -> tuple[float, float]:
    """Return the costs of a false positive and of a false negative: `over` and `under` of a cost object."""
    if (false_positive, false_negative) != (1.0, 1.0):
        raise InputError(
            "cost and false_positive or false_negative must not be given together; got both.",
            hint="Pass cost=LinearCost(over=..., under=...) alone.",
            argument="cost",
        )
    if not (hasattr(cost, "over") and hasattr(cost, "under")):
        raise InputError(
            f"cost must have unit costs over and under, as LinearCost has; got {cost!r}.", argument="cost", value=cost
        )
    return float(cost.over), float(cost.under)


def _net_benefit(table: ScoreTable, cut: float, false_positives: float, false_negatives: float) -> float:
    hits = float(table.positives) - false_negatives
    if cut >= 1:
        return math.nan if false_positives else hits / float(table.size)
    return (hits - false_positives * cut / (1 - cut)) / float(table.size)
