"""The first screen of a report: the verdict in one sentence with its colour, and what to do about it."""

import re
from collections.abc import Mapping
from datetime import date

import numpy as np

from calibrant._support.formatting import printable
from calibrant.kinds.words import Action
from calibrant.report.tables import words_of
from calibrant.results import sentences
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.results.sentences import groups_are_worse

EXAMPLE_ROWS = "rows.csv --label outcome --score score"  # of rows that were not read from files
_NAMED = 3  # groups that a sentence names
_PERIOD = re.compile(r"(19|20)[0-9]{2}(-?(Q[1-4]|W[0-9]{2}|[0-9]{2}(-?[0-9]{2}.*)?))?")
_OVERALL = {
    "calibrated": "model is calibrated",
    "negligible": "deviation is negligible",
    "inconclusive": "result is inconclusive",
}


def is_period(name: object) -> bool:
    """Return whether the name of a group is a date, a time, a month, a week, a quarter or a year.

    >>> is_period("2024-Q3"), is_period(2019), is_period("2024-05-01"), is_period("north"), is_period(7)
    (True, True, True, False, False)
    """
    if isinstance(name, (date, np.datetime64)):
        return True
    return isinstance(name, (str, int)) and _PERIOD.fullmatch(str(name)) is not None


def verdict_sentence(e: Evaluation) -> str:
    """Return the verdict and the size of the deviation in one sentence; miscalibrated groups come first.

    Examples
    --------
    >>> from calibrant import ScoreTable, evaluate
    >>> verdict_sentence(evaluate(ScoreTable.from_counts([0.3, 0.7], [5000, 5000], [500, 2000]), n_resamples=19))
    'Miscalibrated: the model overestimates; on average the odds are off by about a factor of 3.68.'
    """
    size = e.details.size_text(e)
    if groups_are_worse(e):
        groups = sentences.groups_text(e)
        return f"{groups[0].upper()}{groups[1:]}; over all rows the {_OVERALL[e.verdict]}: {size}."
    lead = "Negligible deviation" if e.verdict == "negligible" else e.verdict.capitalize()
    directions = sentences.directions_text(e) or "deviates locally"
    which = f"the model {directions}; " if e.verdict == "miscalibrated" else ""
    groups = f"; {sentences.groups_text(e)}" if e.groups else ""
    return f"{lead}: {which}{size}{groups}."


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
        return f"{len(bad)} of {len(models)} models {'is' if len(bad) == 1 else 'are'} miscalibrated: {', '.join(bad)}."
    open_ = [name for name, e in models.items() if e.verdict == "inconclusive"]
    rest = f"; inconclusive: {', '.join(open_)}" if open_ else ""
    return f"None of the {len(models)} models is shown to be miscalibrated{rest}."


def joint_tone(models: Mapping[str, Evaluation], comparison: Comparison | None) -> str:
    """Return the colour class of `joint_sentence`: that of the worst model; none for a comparison."""
    if comparison is not None:
        return "plain"
    tones = [verdict_tone(e) for e in models.values()]
    return next((tone for tone in ("bad", "open") if tone in tones), "good")


def advice(e: Evaluation, key: str, rows: str = EXAMPLE_ROWS) -> list[Action]:
    """Return what to do about an evaluation, most important first; `key` is the prefix of its ids in the page.

    `rows` are the arguments of a command that name files, outcome and score.
    """
    words, actions = words_of(e), []
    if groups_are_worse(e):
        actions.append(_look_at_groups(e, key))
    if e.verdict == "miscalibrated":
        actions.append(words.recalibrate(e, rows))
        if e.n_miscalibrated_groups:
            actions.append(_look_at_groups(e, key))
    elif e.verdict == "inconclusive":
        actions.append(_collect(e))
    elif not groups_are_worse(e):
        actions.append(Action(f"Use the {words.forecasts} as they are.", "No recalibration is needed."))
        changes = "Calibration changes when the population or the model changes."
        actions.append(Action("Check again on new rows.", changes, words.check_command(rows)))
    return actions + _differing_groups(e) + _small_groups(e)


def _collect(e: Evaluation) -> Action:
    if e.mean_over_clusters is not None:
        text = f"{sentences.few_clusters_text(e)} Ten clusters or more allow the other tests."
        return Action("Collect rows of more clusters.", text)
    more = e.rows_to_decide
    until = "Until then, neither rely on the forecasts as calibrated nor recalibrate them."
    lead = "Collect more rows." if more is None or more > 0 else "Collect more rows, or state a wider margin."
    return Action(lead, f"{e.details.rows_needed_text(e)} {until}".strip())


def _look_at_groups(e: Evaluation, key: str) -> Action:
    bad = [(name, group) for name, group in e.worst_first.items() if group.verdict == "miscalibrated"]
    words = words_of(e)
    named = "; ".join(f"{printable(str(name))} ({words.means_text(group)})" for name, group in bad[:_NAMED])
    rest = f"; and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
    lead = "Look at this group." if len(bad) == 1 else "Look at these groups."
    reason, code = "One calibrator for all rows may leave their deviations.", ""
    if e.verdict != "miscalibrated":
        reason, code = "A calibrator for all rows does not remove their deviations.", words.group_code
    return Action(lead, f"{named}{rest}. {reason}", code, f"{key}-groups")


def _differing_groups(e: Evaluation) -> list[Action]:
    """Recommend estimates that use all groups, where groups differ though most are not shown to be miscalibrated."""
    h = e.heterogeneity
    if h is None or not sentences.groups_differ(e):
        return []
    text = (
        f"The standard deviation of the {h.name} between groups is {h.sd_text()}. Shrunken estimates of groups, and "
        "the prediction interval for a new group, use all of them."
    )
    return [Action("Take differences between groups into account.", text, "result.heterogeneity.to_frame()")]


def _small_groups(e: Evaluation) -> list[Action]:
    """Recommend more rows for groups that are inconclusive; past periods cannot get more."""
    if all(map(is_period, e.groups)):
        return []
    rows = sorted(group.n_rows for group in e.groups.values() if group.verdict == "inconclusive")
    if not rows or e.verdict == "inconclusive":
        return []
    text = f"{len(rows):,} of {len(e.groups):,} groups are inconclusive"
    return [
        Action("Collect more rows of small groups.", f"{text}; their median size is {rows[len(rows) // 2]:,} rows.")
    ]
