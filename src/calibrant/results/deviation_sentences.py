"""Sentences about the verdict on point predictions and predictive distributions."""

import math
from collections.abc import Iterator
from typing import Any

from calibrant._support.formatting import p_text, round_up
from calibrant.results.sentences import deciding_tests, further_reasons
from calibrant.results.sizes import n_rows

__all__ = ["headline", "reasons", "short_verdict"]


def headline(e: Any) -> str:
    """Return verdict, direction, estimate with interval and margin in one sentence."""
    return f"{_overall(e)}: {e.equivalence.text()}; {_explanation(e)}"


def short_verdict(e: Any) -> str:
    """Return the verdict with its direction."""
    return f"{e.verdict} ({e.direction})" if e.direction else e.verdict


def _overall(e: Any) -> str:
    shown = short_verdict(e)
    if not e.groups:
        return shown
    bad = sum(group.verdict == "miscalibrated" for group in e.groups.values())
    count = f"{bad} of {len(e.groups)} groups"
    if e.verdict == "calibrated" and bad:
        return f"{shown} overall; {count} {'is' if bad == 1 else 'are'} not"
    return f"{shown} overall; {count} {'is' if bad == 1 else 'are'} shown to be miscalibrated"


def _explanation(e: Any) -> str:
    if math.isnan(e.pvalue):
        return "the data do not allow a test"
    shown = f"p = {e.pvalue:.2g}"
    if e.verdict == "miscalibrated":
        return f"the deviation is significant ({shown}) and not shown to lie within the margin"
    if e.verdict == "negligible":
        return f"the deviation is significant ({shown}) but shown to lie within the margin"
    if e.verdict == "calibrated":
        return f"no deviation is significant ({shown}), and it is shown to lie within the margin"
    more = e.equivalence.further_rows(n_rows(e.table))
    unknown = f"no deviation is significant ({shown}), and it is not shown to lie within the margin"
    return unknown if math.isnan(more) else f"{unknown}: about {round_up(more):,} more rows would decide"


def reasons(e: Any) -> Iterator[str]:
    """State the tests behind the verdict, the coefficients and the other tests."""
    if math.isnan(e.pvalue):
        yield "Joint test: skipped because the data do not allow a test."
    else:
        group = "" if e.adjusted_pvalue is None else ", adjusted for the number of groups"
        yield f"Joint test: {p_text(e.pvalue)}{group}; the smallest adjusted p-value of {deciding_tests(e)}."
    found = e.equivalence
    shown = "is" if found.within else "is not"
    bound = "no bound" if math.isnan(found.high) else f"at most {found.high:.3g}"
    unit = f" {found.unit}" if found.unit else ""
    yield (
        f"Equivalence: the {found.name} {shown} shown to lie within the margin of {found.margin:g}{unit} "
        f"({bound} with {100 * (1 + found.level) / 2:g} % confidence)."
    )
    yield from further_reasons(e)
