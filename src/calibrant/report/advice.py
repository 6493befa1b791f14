"""What to do about the result: recalibrate, collect rows, look at groups, or use the forecasts as they are."""

from dataclasses import dataclass
from typing import Any

from calibrant._support.formatting import printable
from calibrant.kinds import log_odds
from calibrant.report.verdict_sentences import groups_are_worse
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import n_rows

__all__ = ["EXAMPLE_ROWS", "Action", "advice"]

EXAMPLE_ROWS = "rows.csv --label outcome --score score"  # of rows that were not read from files

# Rows of the rarer outcome: three parameters have a lower error than two from about 300 on, where the deviation is
# curved, and a free curve from more than 1,000 on (docs/studies/few_events.csv).
_FEW_EVENTS, _MANY_EVENTS = 300, 1000
_ROWS_PER_PARAMETER = 50
_NAMED = 3  # groups that a sentence names


@dataclass(frozen=True)
class Action:
    """A recommendation: its first words, its reason, the code or command, and the place in the page to read on."""

    lead: str
    text: str
    code: str = ""
    target: str = ""


def advice(e: Evaluation, key: str, rows: str = EXAMPLE_ROWS) -> list[Action]:
    """Return what to do about an evaluation, most important first; `key` is the prefix of its ids in the page.

    `rows` are the arguments of a command that name files, outcome and score.
    """
    found = []
    if groups_are_worse(e):
        found.append(_look_at_groups(e, key))
    if e.verdict == "miscalibrated":
        found.append(_recalibrate(e, rows))
    if e.verdict == "inconclusive":
        found.append(_collect(e))
    if e.verdict == "miscalibrated" and any(g.verdict == "miscalibrated" for g in e.groups.values()):
        found.append(_look_at_groups(e, key))
    if e.verdict in ("calibrated", "negligible") and not groups_are_worse(e):
        found += [_use(e), _check_again(e, rows)]
    return found + _small_groups(e)


def _recalibrate(e: Evaluation, rows: str) -> Action:
    if e.kind == "binary":
        return _binary(e, rows)
    makers = {
        "multiclass": _multiclass,
        "labels": _labels,
        "point": _point,
        "distribution": _distribution,
    }
    return makers[e.kind](e)


_FRESH = "Fit it to rows that the model was not fitted on, apply it to new rows, and check those."


def _binary(e: Evaluation, rows: str) -> Action:
    """Recommend by the direction and by the number of rows of the rarer outcome."""
    rarer = min(e.table.positives, e.table.size - e.table.positives)
    details: Any = e.details
    free = "local" in e.direction or log_odds.impossible_outcomes(e)
    name, method = ("Beta", "beta")
    if rarer < _FEW_EVENTS:
        name, method = "Platt", "platt"
    elif free and rarer >= _MANY_EVENTS:
        name, method = "Isotonic", "isotonic"
    gain = _gain("Brier score", details.decomposition.brier, details.decomposition.mcb)
    command = f"calibrant fit {rows} \\\n  --method {method} -o cal.json"
    code = f"cb.{name}().fit(scores, outcomes)\n{command}"
    return Action(f"Recalibrate with {method}.", f"{gain} {_FRESH}", code)


def _multiclass(e: Evaluation) -> Action:
    """Recommend one temperature where only the confidence deviates; else by the number of rows per parameter."""
    details: Any = e.details
    count = len(details.labels)
    sides = (details.classes_that(side, e.settings.alpha, 1.0) for side in ("overestimates", "underestimates"))
    name, method = "VectorScaling", "vector"
    if not any(sides) and e.direction in ("overconfident", "underconfident"):
        name, method = "SoftmaxTemperature", "softmax_temperature"
    elif e.n_rows >= _ROWS_PER_PARAMETER * count * (count + 1):
        name, method = "Dirichlet", "dirichlet"
    parts = details.decompositions["corp"]
    gain = _gain("Brier score", parts["mcb"] - parts["dsc"] + parts["unc"], parts["mcb"])
    return Action(f"Recalibrate with {method}.", f"{gain} {_FRESH}", f"cb.{name}().fit(probabilities, labels)")


def _labels(e: Evaluation) -> Action:
    text = "Choose thresholds, or weights of classes, with which each class is predicted as often as it occurs."
    code = "cb.calibrators.ProportionRule().fit(probabilities, labels)"
    return Action("Adjust the rule that chooses the class.", f"{text} {_FRESH}", code)


def _point(e: Evaluation) -> Action:
    details: Any = e.details
    parts = details.decomposition
    linear = "local" not in e.direction
    name, method = ("LinearRecalibrator", "linear") if linear else ("IsotonicRecalibrator", "isotonic")
    gain = _gain("MSE", parts.mse, parts.bias + parts.slope if linear else parts.mcb)
    return Action(
        f"Recalibrate with {method}.", f"{gain} {_FRESH}", f"cb.regression.{name}().fit(predictions, outcomes)"
    )


def _distribution(e: Evaluation) -> Action:
    """Recommend shifts of the quantiles where only quantiles are known, and a map of the PIT values elsewhere."""
    quantiles = any(note.code == "levels" for note in e.notes)
    name, method = ("QuantileRecalibrator", "quantile") if quantiles else ("PITRecalibrator", "pit")
    found: Any = e.breakdowns.get("coverage")
    gain = ""
    if found is not None:
        widest = found.per_level["level"].argmax()
        level, observed = (f"{100 * found.per_level[name][widest]:.3g} %" for name in ("level", "observed"))
        gain = f"The coverage of {level} intervals changes from {observed} to about {level}. "
    return Action(f"Recalibrate with {method}.", f"{gain}{_FRESH}", f"cb.regression.{name}().fit(forecasts, outcomes)")


def _gain(metric: str, value: float, part: float) -> str:
    """State the expected gain: the part of a proper score that is miscalibration, which recalibration removes."""
    share = f" ({100 * part / value:.2g} % less)" if value > 0 else ""
    return f"Recalibration lowers the {metric} from {value:.3g} to {value - part:.3g} at best{share}."


def _collect(e: Evaluation) -> Action:
    more = e.rows_to_decide
    if hasattr(e.details, "log_odds_error"):
        text = log_odds.rows_needed_text(e)
    else:
        text = "" if more is None else f"About {more:,} more rows would probably decide."
    until = "Until then, neither rely on the forecasts as calibrated nor recalibrate them."
    lead = "Collect more rows." if more is None or more > 0 else "Collect more rows, or state a wider margin."
    return Action(lead, f"{text} {until}".strip())


def _look_at_groups(e: Evaluation, key: str) -> Action:
    bad = [(name, group) for name, group in e.worst_first.items() if group.verdict == "miscalibrated"]
    named = "; ".join(f"{printable(str(name))} ({_predicted_observed(group)})" for name, group in bad[:_NAMED])
    rest = f"; and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
    lead = "Look at this group." if len(bad) == 1 else "Look at these groups."
    if e.verdict == "miscalibrated":
        return Action(
            lead, f"{named}{rest}. One calibrator for all rows may leave their deviations.", "", f"{key}-groups"
        )
    text = f"{named}{rest}. A calibrator for all rows does not remove their deviations."
    code = "cb.Multicalibrator().fit(features, outcomes, scores=scores)" if e.kind == "binary" else ""
    return Action(lead, text, code, f"{key}-groups")


def _small_groups(e: Evaluation) -> list[Action]:
    """Recommend more rows for groups that are inconclusive."""
    rows = sorted(n_rows(group.table) for group in e.groups.values() if group.verdict == "inconclusive")
    if not rows or e.verdict == "inconclusive":
        return []
    text = f"{len(rows):,} of {len(e.groups):,} groups are inconclusive"
    return [
        Action("Collect more rows of small groups.", f"{text}; their median size is {rows[len(rows) // 2]:,} rows.")
    ]


def _predicted_observed(group: Evaluation) -> str:
    """Return the means of predictions and outcomes of a group, or the direction of its deviation."""
    if group.kind == "binary":
        return f"{100 * group.mean_score:.3g} % predicted, {100 * group.event_rate:.3g} % observed"
    if group.kind == "multiclass":
        details: Any = group.details
        return f"{100 * details.top_label[0]:.3g} % mean confidence, {100 * details.top_label[1]:.3g} % correct"
    return group.direction or group.verdict


def _use(e: Evaluation) -> Action:
    what = {"binary": "scores", "multiclass": "probabilities", "labels": "predicted classes", "point": "predictions"}
    return Action(f"Use the {what.get(e.kind, 'forecasts')} as they are.", "No recalibration is needed.")


def _check_again(e: Evaluation, rows: str) -> Action:
    code = f"calibrant check {rows}" if e.kind == "binary" else ""
    return Action("Check again on new rows.", "Calibration changes when the population or the model changes.", code)
