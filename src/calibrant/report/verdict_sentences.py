"""The verdict of an evaluation or of several in one sentence, and its colour: the first line of the report."""

import math
from collections.abc import Mapping
from typing import Any

from calibrant.kinds import log_odds
from calibrant.results import sentences
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

__all__ = ["groups_are_worse", "joint_sentence", "joint_tone", "verdict_sentence", "verdict_tone"]


def verdict_sentence(e: Evaluation) -> str:
    """Return the verdict and the size of the deviation in one sentence; miscalibrated groups come first.

    Examples
    --------
    >>> from calibrant import ScoreTable, evaluate
    >>> verdict_sentence(evaluate(ScoreTable.from_counts([0.3, 0.7], [5000, 5000], [500, 2000]), n_resamples=19))
    'Miscalibrated: the model overestimates; on average the odds are off by about a factor of 3.68.'
    """
    own = _own_sentence(e)
    if not e.groups:
        return f"{own}."
    if groups_are_worse(e):
        groups = sentences.groups_text(e)
        return f"{groups[0].upper()}{groups[1:]}; over all rows the {_OVERALL[e.verdict]}: {own.partition(': ')[2]}."
    return f"{own}; {sentences.groups_text(e)}."


_OVERALL = {
    "calibrated": "model is calibrated",
    "negligible": "deviation is negligible",
    "inconclusive": "result is inconclusive",
}


def groups_are_worse(e: Evaluation) -> bool:
    """Return whether a group is miscalibrated and all rows together are not."""
    return e.verdict != "miscalibrated" and any(g.verdict == "miscalibrated" for g in e.groups.values())


def verdict_tone(e: Evaluation) -> str:
    """Return the colour class of the sentence: bad if the rows or a group are miscalibrated."""
    return "bad" if groups_are_worse(e) else sentences.tone(e.verdict)


def joint_sentence(models: Mapping[str, Evaluation], comparison: Comparison | None) -> str:
    """Return the verdict on all models of a report in one sentence."""
    if comparison is not None:
        verdict = comparison.verdict  # begins with the name of a model, unless no difference is shown
        return f"{verdict if comparison.direction else verdict.capitalize()}."
    if len(models) == 1:
        return verdict_sentence(next(iter(models.values())))
    bad = [name for name, e in models.items() if verdict_tone(e) == "bad"]
    if bad:
        return f"{len(bad)} of {len(models)} models {'is' if len(bad) == 1 else 'are'} miscalibrated: {_joined(bad)}."
    open_ = [name for name, e in models.items() if e.verdict == "inconclusive"]
    rest = f"; inconclusive: {_joined(open_)}" if open_ else ""
    return f"None of the {len(models)} models is shown to be miscalibrated{rest}."


def joint_tone(models: Mapping[str, Evaluation], comparison: Comparison | None) -> str:
    """Return the colour class of `joint_sentence`: that of the worst model; none for a comparison."""
    if comparison is not None:
        return "plain"
    tones = [verdict_tone(e) for e in models.values()]
    return next((tone for tone in ("bad", "open") if tone in tones), "good")


def _joined(names: list[str]) -> str:
    return ", ".join(names)


def _own_sentence(e: Evaluation) -> str:
    """Return the verdict on all rows together, without a full stop."""
    lead = "Negligible deviation" if e.verdict == "negligible" else e.verdict.capitalize()
    directions = log_odds.directions_text(e) or "deviates locally"
    which = f"the model {directions}; " if e.verdict == "miscalibrated" else ""
    return f"{lead}: {which}{_log_odds_size(e) if hasattr(e.details, 'log_odds_error') else _size(e)}"


def _log_odds_size(e: Any) -> str:
    """State the size of the deviation of probabilities."""
    impossible = log_odds.impossible_outcomes(e)
    if e.verdict == "miscalibrated" and impossible:
        rows = "a row contradicts its score" if impossible == 1 else f"{impossible:,.6g} rows contradict their score"
        return f"{rows} of 0{'' if e.kind == 'multiclass' else ' or 1'}"
    if e.verdict == "inconclusive":
        if log_odds.has_few_clusters(e):
            return "there are too few clusters for a test"
        if e.equivalence.bound > log_odds.UNBOUNDED:
            return "the data are too few to bound the error"
        bound = log_odds.format_deviation(e, e.equivalence.bound)
        return f"{_lower(log_odds.subject(e, may_be=True))} off by up to {bound}"
    if e.verdict != "miscalibrated":
        bound = log_odds.format_deviation(e, e.equivalence.bound)
        return f"{_lower(log_odds.subject(e))} off by at most {bound}"
    value = e.equivalence.value if e.settings.is_absolute else e.log_odds_error.value
    if value == 0:
        bound = max(e.log_odds_error.high, e.details.fine_bound)
        return f"{_lower(log_odds.subject(e))} off by up to {log_odds.format_deviation(e, bound)}"
    return f"{_lower(log_odds.subject(e))} off by about {log_odds.format_deviation(e, value)}"


def _size(e: Any) -> str:
    """State the size of the deviation of labels, points and distributions."""
    found = e.equivalence
    if math.isnan(found.value):
        return f"the {found.name} is unknown"
    unit = f" {found.unit}" if found.unit else ""
    margin = f"the margin is {found.margin:g}"
    if e.verdict in ("calibrated", "negligible"):
        return f"the {found.name} is at most {found.high:.2g}{unit}; {margin}"
    if e.verdict == "inconclusive" and not math.isnan(found.high):
        return f"the {found.name} may be up to {found.high:.2g}{unit}; {margin}"
    return f"the {found.name} is about {found.value:.2g}{unit}; {margin}"


def _lower(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"
