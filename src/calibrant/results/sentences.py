"""Sentences about the verdict on predicted probabilities, for text, terminal and report."""

import math
from collections.abc import Iterator
from typing import Any

from calibrant._support.formatting import format_pvalue, p_text, round_up
from calibrant.inference.levels import CalibrationLevels
from calibrant.results.sizes import mean_score
from calibrant.results.uncertainty import Estimate, Interval

__all__ = [
    "UNBOUNDED",
    "VERDICTS",
    "consequence",
    "deciding_tests",
    "directions_text",
    "explanation",
    "format_deviation",
    "format_log_odds",
    "further_reasons",
    "groups_text",
    "has_few_clusters",
    "headline",
    "rows_needed_text",
    "severity",
    "subject",
    "tone",
]

# From worst to best: the order of groups in tables.
VERDICTS = ("miscalibrated", "inconclusive", "negligible", "calibrated")

_LARGE = 0.25  # log-odds above which a factor is printed instead of percent

UNBOUNDED = math.log(1e6)  # log-odds above which a bound is uninformative

_DIRECTIONS = {
    "overestimates": "overestimates",
    "underestimates": "underestimates",
    "overconfident": "is overconfident",
    "underconfident": "is underconfident",
}


def severity(verdict: str) -> int:
    """Return the rank of a verdict, 0 for the worst."""
    return VERDICTS.index(verdict)


def tone(verdict: str) -> str:
    """Return the colour class of a verdict: good, bad or open."""
    return {"miscalibrated": "bad", "inconclusive": "open"}.get(verdict, "good")


def headline(e: Any) -> str:
    """Return the verdict with its direction, and the number of miscalibrated groups."""
    directions = f" ({e.direction})" if e.direction and e.verdict == "miscalibrated" else ""
    text = f"{e.verdict}{directions}"
    if not e.groups:
        return text
    return f"{text} overall; {groups_text(e)}"


def groups_text(e: Any) -> str:
    """State how many groups are miscalibrated, and how many are inconclusive."""
    bad, count = sum(group.verdict == "miscalibrated" for group in e.groups.values()), len(e.groups)
    if count == 1:
        return f"the only group is {'' if bad else 'not shown to be '}miscalibrated"
    open_ = sum(group.verdict == "inconclusive" for group in e.groups.values())
    rest = f", {open_:,} {'is' if open_ == 1 else 'are'} inconclusive" if open_ else ""
    if bad:
        return f"{bad:,} of {count:,} groups {'is' if bad == 1 else 'are'} miscalibrated{rest}"
    return f"none of {count:,} groups is shown to be miscalibrated{rest}"


def explanation(e: Any) -> str:
    """Explain the verdict: the estimate, its upper bound and the margin."""
    bound, margin = format_deviation(e, e.equivalence.bound), format_deviation(e, e.margin)
    if e.verdict == "calibrated":
        return f"{subject(e)} off by at most {bound}; the margin is {margin}. {_no_deviation(e)} is significant."
    if e.verdict == "negligible":
        return (
            f"A deviation is significant ({p_text(e.pvalue)}), but {subject(e).lower()} off by at most {bound}; "
            f"the margin is {margin}."
        )
    if e.verdict == "inconclusive":
        return _inconclusive(e, bound, margin)
    return _miscalibrated(e, bound, margin)


def _no_deviation(e: Any) -> str:
    return "No deviation of all rows together" if e.groups else "No deviation"


def subject(e: Any, *, may_be: bool = False) -> str:
    """Return the subject and verb of a sentence about the size of the deviation."""
    verb = "may be" if may_be else "are"
    if e.settings.is_absolute:
        return f"On average over ten groups of equal size, scores {verb}"
    return f"On average{' over classes' if e.kind == 'multiclass' else ''} the odds {verb}"


def format_deviation(e: Any, value: float) -> str:
    """Format a deviation: percent of the odds, or percentage points of the scores."""
    if math.isinf(value):
        return "any amount"
    if not e.settings.is_absolute:
        return format_log_odds(value)
    points = f"{100 * value:.3g}"
    return f"{points} percentage point{'' if points == '1' else 's'}"


def format_log_odds(log_odds: float) -> str:
    """Format a deviation of the log-odds as percent of the odds, or as a factor if it is large."""
    if log_odds > 690:
        return "a factor beyond 1e+300"
    if log_odds < _LARGE:  # the mean of the changes upwards and downwards
        return f"{_two_digits(100 * math.sinh(log_odds))} %"
    return f"a factor of {_factor(log_odds)}"


def _factor(log_odds: float) -> str:
    factor = math.exp(min(log_odds, 690.0))
    return f"{factor:.3g}" if factor < 10 else _two_digits(factor)


def format_estimate(error: Interval) -> str:
    """Format a log-odds error and its confidence interval, all in percent or all as factors."""
    level = f"{100 * error.level:g} % CI"
    if error.high < _LARGE:
        low, value, high = (_two_digits(100 * math.sinh(each)) for each in (error.low, error.value, error.high))
        return f"{value} % ({level} {low} to {high} %)"
    low, value, high = (_factor(each) for each in (error.low, error.value, error.high))
    return f"a factor of {value} ({level} {low} to {high})"


def _two_digits(value: float) -> str:
    """Format a number with two significant digits: 0.012, 1.3, 130, 12,000; with an exponent from a million on."""
    rounded = float(f"{value:.2g}")
    return f"{value:.2g}" if rounded < 100 or rounded >= 1e6 else f"{rounded:,.0f}"


def _inconclusive(e: Any, bound: str, margin: str) -> str:
    if has_few_clusters(e):
        return "There are too few clusters for a test."
    text = f"{_no_deviation(e)} is significant, but {subject(e, may_be=True).lower()} off by up to {bound}; "
    text += f"the margin is {margin}."
    if e.equivalence.bound > UNBOUNDED:
        text = f"{_no_deviation(e)} is significant, and the data are too few to bound the error."
    return f"{text} {rows_needed_text(e)}".rstrip()


def has_few_clusters(e: Any) -> bool:
    """Return whether nothing was tested because clusters are too few."""
    return bool(e.decision.log_odds_error.method == "none")


def rows_needed_text(e: Any) -> str:
    """State the number of further rows that would probably decide."""
    more = e.rows_to_decide
    if more is None:
        return ""
    if more == 0:
        return "These rows are enough for most calibrated models, but the error lies near the margin."
    clusters = e.decision.n_clusters
    if clusters is not None:
        needed = round_up(more * clusters / max(e.n_rows, 1))
        return f"About {_count(needed, 'more cluster')} like these would probably decide."
    events = more * mean_score(e.table) if e.kind == "binary" else 0.0
    with_events = f", with about {_count(round_up(events), 'event')}," if events >= 1 else ""
    return f"About {_count(more, 'more row')}{with_events} would probably decide."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _miscalibrated(e: Any, bound: str, margin: str) -> str:
    directions = directions_text(e)
    impossible = e.details.impossible_outcomes
    if impossible:
        what = f"{impossible:,.6g} row{'s contradict their' if impossible != 1 else ' contradicts its'} score"
        if e.table.importance:
            what = f"Rows with a total weight of {impossible:,.6g} contradict their score"
        scores = "0" if e.kind == "multiclass" else "0 or 1"
        also = f" The model {directions}." if directions else ""
        return f"{what} of {scores}, which no calibrated model allows.{also}"
    which = f"the model {directions}" if directions else "the deviation is local"
    text = f"A deviation is significant ({p_text(e.pvalue)}); {which}."
    if e.settings.is_absolute:
        value = format_deviation(e, e.equivalence.value)
        return f"{text} ACE is {value}, at most {bound}; the margin is {margin}."
    error = e.log_odds_error
    off = f"by about {format_estimate(error)}"
    if error.value == 0:
        off = f"by up to {format_log_odds(max(error.high, e.decision.fine_bound))}"
    fine = (
        f" Over fine bins the error may be {format_log_odds(e.decision.fine_bound)}." if e.decision.fine_bound else ""
    )
    return f"{text} {subject(e)} off {off}; the margin is {margin}.{fine}"


def directions_text(e: Any) -> str:
    """Return the significant directions as a predicate: "overestimates and is overconfident"; '' if there is none."""
    return " and ".join(_DIRECTIONS[each] for each in e.direction.split(", ") if each in _DIRECTIONS)


def consequence(e: Any) -> str:
    """State the consequence of the deviation at the mean score."""
    mean = mean_score(e.table)
    if e.settings.is_absolute or e.verdict not in ("calibrated", "negligible") or not 0 < mean < 1:
        return ""
    low, high = (_shift_log_odds(mean, side * e.equivalence.bound) for side in (-1, 1))
    return (
        f"With an error of this size a score of {_percent(mean)} has an event rate between {_percent(low)} and "
        f"{_percent(high)}; single scores may be off by more."
    )


def _shift_log_odds(p: float, by: float) -> float:
    return 1 / (1 + (1 - p) / p * math.exp(-by))


def _percent(p: float) -> str:
    return f"{100 * p:.3g} %"


def reasons(e: Any) -> Iterator[str]:
    """State the tests behind the verdict, the coefficients and the other tests."""
    if not e.decision.omnibus.components:
        why = "there are too few clusters" if has_few_clusters(e) else "all scores are 0 or 1"
        yield f"Omnibus test: skipped because {why}."
        return
    group = "" if e.adjusted_pvalue is None else ", adjusted for the number of groups"
    yield f"Omnibus test: {p_text(e.pvalue)}{group}; the smallest adjusted p-value of {deciding_tests(e)}."
    found = e.equivalence
    what = found.metric if e.settings.is_absolute else f"the {found.metric}"
    shown = "is" if found.within else "is not"
    bound = "unbounded" if math.isinf(found.bound) else f"at most {found.bound:.3g}"
    yield (
        f"Equivalence: {what} {shown} shown to lie within the margin of {found.margin:g} "
        f"({bound} with {100 * (1 - found.alpha):g} % confidence; errors are averaged within bins{_fine_bound(e)})."
    )
    yield from further_reasons(e)


def _fine_bound(e: Any) -> str:
    fine = e.decision.fine_bound
    if not fine or e.settings.is_absolute:
        return ""
    return f"; over fine bins the error is significant and may be {fine:.3g}"


def deciding_tests(e: Any) -> str:
    """Name the tests behind the verdict, each with its adjusted p-value."""
    found = ((name, test.adjusted_pvalue) for name, test in e.tests.items() if test.adjusted_pvalue is not None)
    return ", ".join(f"{name} ({format_pvalue(p) or 'not tested'})" for name, p in found)


def further_reasons(e: Any) -> Iterator[str]:
    """State the coefficients and the tests that do not decide."""
    if e.coefficients:
        form = ".3f" if e.kind == "binary" else ".4g"
        yield f"Coefficients: {'; '.join(_coefficient(c, form) for c in e.coefficients)}."
    levels = None if e.adjusted_pvalue is not None else getattr(e.details, "levels", None)
    if levels is not None:
        yield f"Levels of calibration: {'; '.join([*_levels(levels), _strong(e)])}."
    others = [test for test in e.tests.values() if test.adjusted_pvalue is None]
    if others and not math.isnan(e.pvalue):
        yield f"Other tests (adjusted): {'; '.join(f'{t.name} {p_text(_shown_pvalue(t, e.pvalue))}' for t in others)}."


def _levels(levels: CalibrationLevels) -> Iterator[str]:
    """State mean, weak and moderate calibration."""
    if levels.mean is not None:
        yield f"mean, O/E {levels.mean.value:.3f} ({levels.mean.low:.3f} to {levels.mean.high:.3f})"
    slope = next((each for each in levels.weak if each.name == "calibration slope"), None)
    if slope is not None:
        yield f"weak, slope {slope.value:.3f} ({slope.low:.3f} to {slope.high:.3f})"
    curve = levels.moderate
    if curve is not None:
        side = "contains" if levels.contains_diagonal else "excludes"
        errors = f"ICI {curve.errors.ici:.4f} and Emax {curve.errors.emax:.4f}"
        yield f"moderate, curve with {errors}, whose {100 * curve.level:g} % band {side} the diagonal"


def _strong(e: Any) -> str:
    """State how many groups are miscalibrated: no test shows strong calibration."""
    if not e.groups:
        return "strong, not tested without groups (by=)"
    off = sum(group.verdict == "miscalibrated" for group in e.groups.values())
    return f"strong, {off:,} of {len(e.groups):,} groups miscalibrated"


def _shown_pvalue(test: Any, least: float) -> float:
    """Return the p-value of a test that does not decide, never below that of the omnibus test."""
    return float(max(test.pvalue if test.resampling_pvalue is None else test.resampling_pvalue, least))


def _coefficient(c: Estimate, form: str) -> str:
    form = f"+{form}" if c.null == 0 else form
    limits = "no interval" if math.isnan(c.low + c.high) else f"{c.low:{form}} to {c.high:{form}}"
    return f"{c.name} {c.value:{form}} ({limits}; {c.null:g} if calibrated)"
