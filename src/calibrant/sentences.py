"""Verdicts in sentences: one place for the text, the terminal and the report."""

import math
from typing import Any

from calibrant.lines import p_is

__all__ = ["VERDICTS", "consequence", "explanation", "headline", "percent", "severity", "tone"]

# From worst to best; the order of groups in tables.
VERDICTS = ("miscalibrated", "inconclusive", "negligible", "calibrated")

_LARGE = 0.4  # log-odds from which a factor reads better than percent

_WAYS = {
    "overestimates": "it overestimates",
    "underestimates": "it underestimates",
    "overconfident": "it is overconfident",
    "underconfident": "it is underconfident",
    "local": "the deviation is local",
}


def severity(verdict: str) -> int:
    """0 for the worst verdict."""
    return VERDICTS.index(verdict)


def tone(verdict: str) -> str:
    """Good, bad or open: the colour of a verdict."""
    return {"miscalibrated": "bad", "inconclusive": "open"}.get(verdict, "good")


def headline(e: Any) -> str:
    """The verdict of an evaluation in one line, with its groups."""
    ways = f" ({e.direction})" if e.direction and e.verdict == "miscalibrated" else ""
    text = f"{e.verdict}{ways}"
    if not e.groups:
        return text
    bad = sum(group.verdict == "miscalibrated" for group in e.groups.values())
    count = f"{bad:,} of {len(e.groups):,} groups"
    if e.verdict == "miscalibrated":
        return f"{text} overall; {count} {'is' if bad == 1 else 'are'} miscalibrated"
    if bad:
        return f"{text} overall; {count} {'is' if bad == 1 else 'are'} miscalibrated"
    return f"{text} overall; none of {len(e.groups):,} groups is shown to be miscalibrated"


def explanation(e: Any) -> str:
    """Why: one sentence with the estimate, its bound and the margin."""
    bound, margin = amount(e, e.equivalence.bound), amount(e, e.margin)
    if e.verdict == "calibrated":
        return f"{_subject(e)} right to within {bound}; the margin is {margin}. No deviation is significant."
    if e.verdict == "negligible":
        return (
            f"A deviation is significant ({p_is(e.pvalue)}), but {_subject(e).lower()} right to within {bound}; "
            f"the margin is {margin}."
        )
    if e.verdict == "inconclusive":
        return _inconclusive(e, bound, margin)
    return _miscalibrated(e, bound, margin)


def _subject(e: Any) -> str:
    return "On average over ten groups of equal size, scores are" if e.is_absolute else "The odds are"


def amount(e: Any, value: float) -> str:
    """A deviation in words: percent of the odds, or percentage points of the scores."""
    if math.isinf(value):
        return "any amount"
    return f"{100 * value:.2g} points of probability" if e.is_absolute else percent(value)


def percent(log_odds: float) -> str:
    """A deviation of the log-odds as percent of the odds, or as a factor where it is large."""
    if log_odds > 690:
        return "a factor beyond 1e+300"
    if log_odds < _LARGE:  # the mean of what is added above and taken off below
        return f"{100 * math.sinh(log_odds):.2g} %"
    return f"a factor of {math.exp(log_odds):.2g}"


def _inconclusive(e: Any, bound: str, margin: str) -> str:
    if e.decision.information == 0 and not e.decision.components:
        return "Rows are in too few clusters for a test."
    text = f"No deviation is significant, but {_subject(e).lower()} only shown to be right to within {bound}; "
    text += f"the margin is {margin}."
    if math.isinf(e.equivalence.bound):
        text = "No deviation is significant, and the data tell too little to bound one."
    return f"{text} {_more(e)}".rstrip()


def _more(e: Any) -> str:
    """How many more rows would decide."""
    more = e.rows_to_decide
    if more is None:
        return ""
    events = more * e.event_rate
    with_events = f" (with about {_round(events)} events)" if events >= 1 else ""
    return f"About {_round(more)} more rows{with_events} would show whether it lies within the margin."


def _round(value: float) -> str:
    """Two significant digits, with separators."""
    digits = 10 ** max(math.floor(math.log10(max(value, 1))) - 1, 0)
    return f"{math.ceil(value / digits) * digits:,}"


def _miscalibrated(e: Any, bound: str, margin: str) -> str:
    ways = [_WAYS[each] for each in e.direction.split(", ") if each]
    which = f"; {' and '.join(ways)}" if ways else ""
    text = f"A deviation is significant ({p_is(e.pvalue)}){which}."
    impossible = e.impossible_outcomes
    if impossible:
        what = "row contradicts its" if impossible == 1 else "rows contradict their"
        return f"{text} {impossible:,.6g} {what} score of 0 or 1, which no calibrated model allows."
    if e.is_absolute:
        value = amount(e, e.equivalence.value)
        return f"{text} ACE is {value}, at most {bound}; the margin is {margin}."
    value = e.log_odds_error.value
    off = f"off by about {percent(value)}, at most {bound}" if value > 0 else f"off by up to {bound}"
    return f"{text} The odds are {off}; the margin is {margin}."


def consequence(e: Any) -> str:
    """What the deviation means at the mean score of the data."""
    mean = e.mean_score
    if e.is_absolute or e.verdict not in ("calibrated", "negligible") or not 0 < mean < 1:
        return ""
    low, high = (_moved(mean, side * e.equivalence.bound) for side in (-1, 1))
    return f"For scores of {_share(mean)} expect {_share(low)} to {_share(high)} events."


def _moved(p: float, by: float) -> float:
    return 1 / (1 + (1 - p) / p * math.exp(-by))


def _share(p: float) -> str:
    return f"{100 * p:.3g} %"
