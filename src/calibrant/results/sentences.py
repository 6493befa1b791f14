"""Sentences about the verdict that are the same for every kind of forecast."""

import math
from collections.abc import Iterator
from typing import Any

from calibrant._support.formatting import format_pvalue, p_text
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import MISCALIBRATED

# From worst to best: the order of groups in tables.
VERDICTS = (MISCALIBRATED, "inconclusive", "negligible", "calibrated")
# Directions as predicates; others are stated as they are.
_DIRECTIONS = {"overconfident": "is overconfident", "underconfident": "is underconfident"}


def severity(verdict: str) -> int:
    """Return the rank of a verdict, 0 for the worst."""
    return VERDICTS.index(verdict)


def tone(verdict: str) -> str:
    """Return the colour class of a verdict: good, bad or open."""
    return {"miscalibrated": "bad", "inconclusive": "open"}.get(verdict, "good")


def headline(e: Any) -> str:
    """Return the verdict with its direction, the number of miscalibrated groups, and whether groups differ."""
    differ = f"; groups differ ({p_text(e.heterogeneity.pvalue)})" if groups_differ(e) else ""
    return f"{short_headline(e)}{differ}"


def short_headline(e: Any) -> str:
    """Return the verdict with its direction, and the number of miscalibrated groups."""
    directions = f" ({_brief(e.direction)})" if e.direction and e.verdict == MISCALIBRATED else ""
    text = f"{e.verdict}{directions}"
    if e.decision.adjusted_pvalue is None and e.settings.focus is not None:
        text += f" for {e.settings.focus.text}"
    if e.groups:
        text += " overall"
    if e.decision.adjusted_pvalue is None and e.verdict == MISCALIBRATED:
        text += e.details.region_text(e)
    return f"{text}; {groups_text(e)}" if e.groups else text


def _brief(direction: str) -> str:
    """Return the directions of a headline: of both signs as one."""
    return direction.replace("overestimates, underestimates", "over- and underestimates")


def groups_text(e: Any) -> str:
    """State how many groups are miscalibrated, and how many are inconclusive."""
    bad, count = e.n_miscalibrated_groups, len(e.groups)
    if count == 1:
        return f"the only group is {'' if bad else 'not shown to be '}miscalibrated"
    open_ = sum(group.verdict == "inconclusive" for group in e.groups.values())
    rest = f", {open_:,} {'is' if open_ == 1 else 'are'} inconclusive" if open_ else ""
    if bad:
        return f"{bad:,} of {count:,} groups {'is' if bad == 1 else 'are'} miscalibrated{rest}"
    return f"none of {count:,} groups is shown to be miscalibrated{rest}"


def groups_differ(e: Any) -> bool:
    """Return whether the test of equal groups rejects."""
    return e.heterogeneity is not None and e.heterogeneity.is_significant(e.settings.alpha)


def differences_text(e: Any) -> str:
    """State that groups differ, and by how much."""
    h = e.heterogeneity
    return f"groups differ (standard deviation of the {h.name} {h.sd:.2g}, {p_text(h.pvalue)})"


def groups_are_worse(e: Any) -> bool:
    """Return whether a group is miscalibrated and all rows together are not."""
    return e.verdict != MISCALIBRATED and not e.passed


def has_few_clusters(e: Any) -> bool:
    """Return whether all rows of an evaluation, or of a group, were not tested because they are in too few clusters."""
    untested = math.isnan(e.pvalue) or e.mean_over_clusters is not None
    return untested and any(note.code == "few_clusters" for note in e.own_notes)


def few_clusters_text(e: Any) -> str:
    """State what is known about rows in few clusters."""
    mean = e.mean_over_clusters
    if mean is None:
        return "There are too few clusters for a test."
    low, high = f"{mean.low:+.3g}", f"{mean.high:+.3g}"
    clusters = f"{mean.df + 1:.0f} clusters"
    shown = "is significant" if e.is_significant else "is not significant"
    return (
        f"Over {clusters} {mean.name} is {mean.value:+.3g} ({low} to {high}), which {shown} ({p_text(e.pvalue)}). "
        "Other results are valid for these clusters, not for the next one."
    )


def directions_text(e: Any) -> str:
    """Return the significant directions as a predicate: "overestimates and is overconfident"; '' if there is none.

    A kind of forecast has the words of further directions in the `directions` of its details.
    """
    words = {**_DIRECTIONS, **e.details.directions}
    shown = [words.get(each, each) for each in e.direction.split(", ") if each not in ("", "local")]
    if shown[:2] == ["overestimates", "underestimates"]:  # of several classes
        shown[:2] = ["overestimates some outcomes", "underestimates others"]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else ""


def omnibus_text(e: Any) -> str:
    """State the p-value of the omnibus test, and the tests behind it, each with its adjusted p-value."""
    group = "" if e.decision.adjusted_pvalue is None else ", adjusted for the number of groups"
    found = ((name, test.adjusted_pvalue) for name, test in e.tests.items() if test.adjusted_pvalue is not None)
    names = ", ".join(f"{name} ({format_pvalue(p) or 'not tested'})" for name, p in found)
    return f"Omnibus test: {p_text(e.pvalue)}{group}; the smallest adjusted p-value of {names}."


def coefficients_text(coefficients: tuple[Estimate, ...], form: str) -> Iterator[str]:
    """State the coefficients with their intervals, if there are any."""
    if coefficients:
        yield f"Coefficients: {'; '.join(_coefficient(c, form) for c in coefficients)}."


def _coefficient(c: Estimate, form: str) -> str:
    form = f"+{form}" if c.null == 0 else form
    limits = "no interval" if math.isnan(c.low + c.high) else f"{c.low:{form}} to {c.high:{form}}"
    return f"{c.name} {c.value:{form}} ({limits}; {c.null:g} if calibrated)"


def other_tests_text(e: Any) -> Iterator[str]:
    """State the tests that do not decide, if there are any; their p-values are at least that of the omnibus test."""
    others = [test for test in e.tests.values() if test.adjusted_pvalue is None]
    if others and not math.isnan(e.pvalue):
        yield f"Other tests (adjusted): {'; '.join(f'{t.name} {p_text(_shown_pvalue(t, e.pvalue))}' for t in others)}."


def _shown_pvalue(test: Any, least: float) -> float:
    """Return the p-value of a test that does not decide, never below that of the omnibus test."""
    return float(max(test.pvalue if test.resampling_pvalue is None else test.resampling_pvalue, least))
