"""Verdicts in sentences: one place for the text, the terminal and the report."""

import math
from typing import Any

from calibrant._support.formatting import p_is
from calibrant.inference.intervals import Interval
from calibrant.inference.power import round_up

__all__ = ["VERDICTS", "consequence", "explanation", "headline", "percent", "severity", "tone"]

# From worst to best; the order of groups in tables.
VERDICTS = ("miscalibrated", "inconclusive", "negligible", "calibrated")

_LARGE = 0.25  # log-odds from which a factor reads better than percent

_UNBOUNDED = math.log(1e6)  # log-odds from which a bound says nothing

_WAYS = {
    "overestimates": "overestimates",
    "underestimates": "underestimates",
    "overconfident": "is overconfident",
    "underconfident": "is underconfident",
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
    return f"{text} overall; {_bad_groups(e)}"


def _bad_groups(e: Any) -> str:
    bad, count = sum(group.verdict == "miscalibrated" for group in e.groups.values()), len(e.groups)
    if count == 1:
        return f"the only group is {'' if bad else 'not shown to be '}miscalibrated"
    open_ = sum(group.verdict == "inconclusive" for group in e.groups.values())
    rest = f", {open_:,} {'is' if open_ == 1 else 'are'} inconclusive" if open_ else ""
    if bad:
        return f"{bad:,} of {count:,} groups {'is' if bad == 1 else 'are'} miscalibrated{rest}"
    return f"none of {count:,} groups is shown to be miscalibrated{rest}"


def explanation(e: Any) -> str:
    """Why: one sentence with the estimate, its bound and the margin."""
    bound, margin = amount(e, e.equivalence.bound), amount(e, e.margin)
    if e.verdict == "calibrated":
        return f"{_subject(e)} right to within {bound}; the margin is {margin}. {_none_of_all(e)} is significant."
    if e.verdict == "negligible":
        return (
            f"A deviation is significant ({p_is(e.pvalue)}), but {_subject(e).lower()} right to within {bound}; "
            f"the margin is {margin}."
        )
    if e.verdict == "inconclusive":
        return _inconclusive(e, bound, margin)
    return _miscalibrated(e, bound, margin)


def _none_of_all(e: Any) -> str:
    return "No deviation of all rows together" if e.groups else "No deviation"


def _subject(e: Any) -> str:
    return "On average over ten groups of equal size, scores are" if e.is_absolute else "On average the odds are"


def amount(e: Any, value: float) -> str:
    """A deviation in words: percent of the odds, or percentage points of the scores."""
    if math.isinf(value):
        return "any amount"
    if not e.is_absolute:
        return percent(value)
    points = f"{100 * value:.3g}"
    return f"{points} percentage point{'' if points == '1' else 's'}"


def percent(log_odds: float) -> str:
    """A deviation of the log-odds as percent of the odds, or as a factor where it is large."""
    if log_odds > 690:
        return "a factor beyond 1e+300"
    if log_odds < _LARGE:  # the mean of what is added above and taken off below
        return f"{_two_digits(100 * math.sinh(log_odds))} %"
    return f"a factor of {_factor(log_odds)}"


def _factor(log_odds: float) -> str:
    factor = math.exp(min(log_odds, 690.0))
    return f"{factor:.3g}" if factor < 10 else _two_digits(factor)


def estimate(error: Interval) -> str:
    """A deviation of the log-odds with its confidence interval, all in percent or all as factors."""
    level = f"{100 * error.level:g} % CI"
    if error.high < _LARGE:
        low, value, high = (_two_digits(100 * math.sinh(each)) for each in (error.low, error.value, error.high))
        return f"{value} % ({level} {low} to {high} %)"
    low, value, high = (_factor(each) for each in (error.low, error.value, error.high))
    return f"a factor of {value} ({level} {low} to {high})"


def _two_digits(value: float) -> str:
    """Two significant digits: 0.012, 1.3, 130, 12,000; powers of ten only beyond a million."""
    rounded = float(f"{value:.2g}")
    return f"{value:.2g}" if rounded < 100 or rounded >= 1e6 else f"{rounded:,.0f}"


def _inconclusive(e: Any, bound: str, margin: str) -> str:
    if e.decision.information == 0 and not e.decision.components:
        return "Rows are in too few clusters for a test."
    text = f"{_none_of_all(e)} is significant, but {_subject(e).lower()} only shown to be right to within {bound}; "
    text += f"the margin is {margin}."
    if e.equivalence.bound > _UNBOUNDED:
        text = f"{_none_of_all(e)} is significant, and the data tell too little to bound one."
    return f"{text} {_more(e)}".rstrip()


def _more(e: Any) -> str:
    """How many more rows would decide."""
    more = e.rows_to_decide
    if more is None:
        return ""
    if more == 0:
        return "These rows are enough for most calibrated models, but the error lies near the margin."
    clusters = e.decision.n_clusters
    if clusters is not None:
        needed = round_up(more * clusters / max(e.n_rows, 1))
        return f"About {_count(needed, 'more cluster')} like these would probably decide."
    events = more * e.mean_score
    with_events = f", with about {_count(round_up(events), 'event')}," if events >= 1 else ""
    return f"About {_count(more, 'more row')}{with_events} would probably decide."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _miscalibrated(e: Any, bound: str, margin: str) -> str:
    ways = " and ".join(_WAYS[each] for each in e.direction.split(", ") if each in _WAYS)
    impossible = e.impossible_outcomes
    if impossible:
        what = f"{impossible:,.6g} row{'s contradict their' if impossible != 1 else ' contradicts its'} score"
        if e.table.importance:
            what = f"Rows with a total weight of {impossible:,.6g} contradict their score"
        return f"{what} of 0 or 1, which no calibrated model allows.{f' The model {ways}.' if ways else ''}"
    which = f"it {ways}" if ways else "the deviation is local"
    text = f"A deviation is significant ({p_is(e.pvalue)}); {which}."
    if e.is_absolute:
        value = amount(e, e.equivalence.value)
        return f"{text} ACE is {value}, at most {bound}; the margin is {margin}."
    error = e.log_odds_error
    off = f"by about {estimate(error)}"
    if error.value == 0:
        off = f"by up to {percent(max(error.high, e.decision.fine_bound))}"
    fine = f" Over fine bins the error may be {percent(e.decision.fine_bound)}." if e.decision.fine_bound else ""
    return f"{text} On average the odds are off {off}; the margin is {margin}.{fine}"


def consequence(e: Any) -> str:
    """What the deviation means at the mean score of the data."""
    mean = e.mean_score
    if e.is_absolute or e.verdict not in ("calibrated", "negligible") or not 0 < mean < 1:
        return ""
    low, high = (_moved(mean, side * e.equivalence.bound) for side in (-1, 1))
    return (
        f"An error of this size takes a score of {_share(mean)} to an event rate between {_share(low)} and "
        f"{_share(high)}; single scores may be off by more."
    )


def _moved(p: float, by: float) -> float:
    return 1 / (1 + (1 - p) / p * math.exp(-by))


def _share(p: float) -> str:
    return f"{100 * p:.3g} %"
