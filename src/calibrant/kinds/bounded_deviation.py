"""Details of kinds whose deviation has bounds in its own unit: labels, points, distributions."""

import math
from collections.abc import Iterator
from typing import Any

from calibrant._support.formatting import round_up
from calibrant.results.details import Details
from calibrant.results.evaluation import Evaluation
from calibrant.results.sentences import coefficients_text, groups_text, has_few_clusters, omnibus_text, other_tests_text
from calibrant.results.verdict import Deviation


class BoundedDetails(Details):
    """Details of forecasts whose deviation is in units of the outcome or a share."""

    def bounded(self, e: Evaluation) -> tuple[Deviation, ...]:
        """Return the deviations that must lie within their margins."""
        return (e.decision.deviation,)

    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """Return the p-value times the factor of the group: it is that of a component of the omnibus test."""
        return pvalue if math.isnan(pvalue) else min(1.0, factor * pvalue)

    def rows_to_decide(self, e: Evaluation) -> int | None:
        """Return the number of further rows that would probably decide; None if unknown."""
        more = e.decision.deviation.further_rows(e.n_rows)
        return None if math.isnan(more) else round_up(more)

    def rows_needed_text(self, e: Evaluation) -> str:
        """State the number of further rows that would probably decide; '' if it is unknown."""
        more = e.rows_to_decide
        return "" if more is None else f"About {more:,} more rows would probably decide."

    def size_text(self, e: Evaluation) -> str:
        """State the size of the deviation: an estimate if it is significant, else its upper bound."""
        deviation = e.decision.deviation
        if math.isnan(deviation.value):
            return f"the {deviation.name} is unknown"
        size = f"is about {deviation.amount(deviation.value)}"
        if e.verdict in ("calibrated", "negligible"):
            size = f"is at most {deviation.amount(deviation.high)}"
        elif e.verdict == "inconclusive" and not math.isnan(deviation.high):
            size = f"may be up to {deviation.amount(deviation.high)}"
        return f"the {deviation.name} {size}; the margin is {deviation.amount(deviation.margin)}"

    def headline(self, e: Evaluation) -> str:
        """Return verdict, direction, estimate with interval and margin in one sentence."""
        return f"{_overall(e)}: {e.decision.deviation.text()}; {_explanation(e)}"

    def sentences(self, e: Evaluation) -> list[str]:
        """Return no further sentences: the headline explains the verdict."""
        return []

    def reasons(self, e: Evaluation) -> Iterator[str]:
        """State the tests behind the verdict, the coefficients and the other tests."""
        if math.isnan(e.pvalue):
            yield f"Omnibus test: skipped because {_untested(e)}."
        else:
            yield omnibus_text(e)
        yield from (equivalence_text(each, e.settings.alpha) for each in self.bounded(e))
        yield from coefficients_text(e.coefficients, ".4g")
        yield from other_tests_text(e)


def equivalence_text(deviation: Deviation, alpha: float) -> str:
    """State whether a deviation is shown to lie within its margin."""
    shown = "is" if deviation.within else "is not"
    bound = "no bound" if math.isnan(deviation.bound) else f"at most {deviation.amount(deviation.bound, 3)}"
    return (
        f"Equivalence: the {deviation.name} {shown} shown to lie within the margin of "
        f"{deviation.amount(deviation.margin)} ({bound} with {100 * (1 - alpha):g} % confidence)."
    )


def short_verdict(e: Any) -> str:
    """Return the verdict with its direction."""
    return f"{e.verdict} ({e.direction})" if e.direction else e.verdict


def _overall(e: Any) -> str:
    return f"{short_verdict(e)} overall; {groups_text(e)}" if e.groups else short_verdict(e)


def _untested(e: Any) -> str:
    return "there are too few clusters for a test" if has_few_clusters(e) else "the data do not allow a test"


def _explanation(e: Any) -> str:
    if math.isnan(e.pvalue):
        return _untested(e)
    shown = f"p = {e.pvalue:.2g}"
    if e.verdict == "miscalibrated":
        return f"the deviation is significant ({shown}) and not shown to lie within the margin"
    if e.verdict == "negligible":
        return f"the deviation is significant ({shown}) but shown to lie within the margin"
    if e.verdict == "calibrated":
        return f"no deviation is significant ({shown}), and it is shown to lie within the margin"
    more = e.decision.deviation.further_rows(e.n_rows)
    unknown = f"no deviation is significant ({shown}), and it is not shown to lie within the margin"
    return unknown if math.isnan(more) else f"{unknown}: about {round_up(more):,} more rows would decide"
