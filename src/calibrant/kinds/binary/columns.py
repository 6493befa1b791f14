"""Scores of one event as columns of files."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant._support.errors import Argument, InputError
from calibrant.kinds.columns import Fit, ForecastColumns, GateThreshold, Option, try_pos_label

if TYPE_CHECKING:
    from calibrant.kinds.file_rows import FileRows


def _check(rows: "FileRows") -> "FileRows":
    """Check the scores, and replace the outcomes by whether the event occurred."""
    from calibrant._support.columns import events, finite, numbers, scores

    y = try_pos_label(rows.pos_label, lambda label: events(rows.y, label), lambda column: column.notes)
    notes = tuple(note for note in y.notes if note.code == "event_absent")
    for name in rows.forecast_names:
        (finite if rows.any_score else scores)(rows.columns[name])
    return replace(rows.map_forecasts(numbers), y=replace(y, values=y.values == 1), notes=(*rows.notes, *notes))


def _judge_tce_excess(result: Any, limit: float) -> tuple[str, bool, str]:
    excess = result.metrics["TCE"].null.excess if "TCE" in result.metrics else math.nan
    if math.isnan(excess):  # with weights or clusters, for example
        raise InputError(
            "The expected value of TCE if calibrated does not exist for these rows.",
            hint="Leave out " + Argument("max_tce_excess") + ".",
        )
    rule = f"TCE must exceed its expected value if calibrated by at most {limit:g} points"
    return rule, bool(excess <= limit), f"it does by {excess:.4g}"


def _judge_ece(result: Any, limit: float) -> tuple[str, bool, str]:
    value = result.metrics["ECE"].value
    return f"ECE must be at most {limit:g}", value <= limit, f"it is {value:.4g}"


def _judge_equivalence(result: Any, limit: float) -> tuple[str, bool, str]:
    bound = f"its upper confidence limit is {result.equivalence.bound:.4g}"
    return f"ACE must be shown to lie below {limit:g}", result.is_within_margin, bound


def _metrics(y: Any, scores: Any, weights: Mapping[str, Any]) -> dict[str, float | None]:
    from calibrant.metrics.calibration_errors import ACE
    from calibrant.metrics.proper_scores import Brier
    from calibrant.tables.score_table import ScoreTable

    try:
        table = ScoreTable.from_arrays(y, scores, **weights)
    except InputError:  # scores that are not probabilities, such as margins
        return {"Brier score": None, "ACE": None}
    return {"Brier score": float(Brier()(table)), "ACE": float(ACE()(table))}


def _are_labels(values: Any) -> bool:
    """Return whether values are text, or zeros and ones alone."""
    import numpy as np

    return bool(values.dtype.kind not in "fiu" or np.isin(values, (0, 1)).all())


COLUMNS = ForecastColumns(
    noun="scores",
    options=(Option("p", "Scores of one event: its probability.", flags=("--score", "-p")),),
    outcome="event",
    check=_check,
    forecast=lambda option, model, values: values,
    is_counted=True,
    special_options=("pos_label", "resolution", "spark", "max_memory", "costs", "n_bins", "absolute_margin", "focus"),
    thresholds=(
        GateThreshold(
            "max_tce_excess", "POINTS", "Largest TCE above its value if calibrated.", 100.0, _judge_tce_excess
        ),
        GateThreshold("max_ece", "VALUE", "Largest ECE.", 1.0, _judge_ece),
        GateThreshold(
            "equivalence",
            "MARGIN",
            "ACE must be shown to lie below this margin.",
            1.0,
            _judge_equivalence,
            setting="absolute_margin",
        ),
    ),
    diagram=("ACE", "mean score", "event rate"),
    headline_has_reason=False,
    audited=lambda model: model.columns[0],
    fit=Fit(
        (
            *("isotonic", "logit_spline", "platt", "temperature", "beta", "binning_average", "venn_abers"),
            *("prior_shift", "cats", "caps", "auto"),
        ),
        _metrics,
    ),
    model_columns=lambda calibrator: (["score"], ["probability"]),
    are_labels=_are_labels,
)
