"""Details of kinds whose deviation is a log-odds error, and the sentences about their verdict."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from calibrant._support.formatting import format_pvalue, p_text, round_up, short_percent
from calibrant.inference.binary_components import IMPOSSIBLE
from calibrant.results.details import Details
from calibrant.results.evaluation import Evaluation
from calibrant.results.regions import Regions
from calibrant.results.sentences import (
    coefficients_text,
    directions_text,
    few_clusters_text,
    has_few_clusters,
    headline,
    omnibus_text,
    other_tests_text,
)
from calibrant.results.text import mean_score
from calibrant.results.uncertainty import Interval, Null

NAME = "log-odds error"
_NAMED = 5  # classes, pairs of classes or thresholds that a sentence names
_LARGE = 0.25  # log-odds above which a factor is printed instead of percent

UNBOUNDED = math.log(1e6)  # log-odds above which a bound is uninformative


def explanation(e: Any) -> str:
    """Explain the verdict: the estimate, its upper bound and the margin."""
    bound, margin = format_deviation(e, e.equivalence.bound), format_deviation(e, e.margin)
    if e.verdict == "calibrated":
        text = f"{subject(e)} off by at most {bound}{_within_factor(e)}; the margin is {margin}."
        return f"{text} {_no_deviation(e)} is significant.{_not_judged(e)}"
    if e.verdict == "negligible":
        return (
            f"A deviation is significant ({p_text(e.pvalue)}), but {subject(e).lower()} off by at most {bound}"
            f"{_within_factor(e)}; the margin is {margin}.{_not_judged(e)}"
        )
    if has_few_clusters(e):
        return few_clusters_text(e)
    if e.verdict == "inconclusive":
        return _inconclusive(e, bound, margin)
    return _miscalibrated(e, bound, margin)


def _no_deviation(e: Any) -> str:
    return "No deviation of all rows together" if e.groups else "No deviation"


def _within_factor(e: Any) -> str:
    regions = e.details.regions
    if e.settings.is_absolute or regions is None or not regions.n_judged:
        return ""
    wide = f" ({regions.wide_factor:.3g} where events are few)" if regions.n_judged_widely else ""
    return f", and by at most a factor of {regions.factor:.3g} in every judged region of the scores{wide}"


def _not_judged(e: Any) -> str:
    """State for which scores the verdict makes no claim, because their events are too few."""
    regions = e.details.regions
    if e.settings.is_absolute or regions is None or not regions.not_judged:
        return ""
    return f" No claim is made for {listed([region.noun for region in regions.not_judged])}: too few events."


def _may_be_wrong(e: Any) -> str:
    """State which region is not shown to lie within the factor; '' if that is not why the margin is not shown."""
    regions = e.details.regions
    if e.settings.is_absolute or regions is None or regions.not_shown is None:
        return ""
    region = regions.not_shown
    return (
        f"the odds {region.where} may be off by more than a factor of {regions.factor:.3g} "
        f"({region.ratio_text()}; {region.counts_text()})"
    )


def _deviating(e: Any) -> str:
    """State where the deviation lies, as a sentence; '' if it is nowhere in particular."""
    if not e.region:
        return ""
    region = e.details.regions.deviating[0]
    return f" The deviation lies mostly {region.where}: {region.counts_text()}, {region.ratio_text()}."


def subject(e: Any, *, may_be: bool = False) -> str:
    """Return the subject and verb of a sentence about the size of the deviation."""
    verb = "may be" if may_be else "are"
    if e.settings.is_absolute:
        return f"On average over ten groups of equal size, scores {verb}"
    return f"On average{e.details.average_over} the odds {verb}"


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
    may_be_wrong = _may_be_wrong(e)
    if may_be_wrong:
        average = f"{subject(e).lower()} off by at most {bound} (the margin is {margin})"
        return f"{_no_deviation(e)} is significant, and {average}, but {may_be_wrong}."
    text = f"{_no_deviation(e)} is significant, but {subject(e, may_be=True).lower()} off by up to {bound}; "
    text += f"the margin is {margin}."
    if e.equivalence.bound > UNBOUNDED:
        text = f"{_no_deviation(e)} is significant, and the data are too few to bound the error."
    return f"{text} {rows_needed_text(e)}".rstrip()


def rows_needed_text(e: Any) -> str:
    """State the number of further rows that would probably decide."""
    more = e.rows_to_decide
    if more is None:
        return ""
    if more == 0:
        return "These rows are enough for most calibrated models, but the error lies near the margin."
    clusters = e.details.n_clusters
    if clusters is not None:
        needed = round_up(more * clusters / max(e.n_rows, 1))
        return f"About {_count(needed, 'more cluster')} like these would probably decide."
    events = more * e.details.event_share(e.table)
    with_events = f", with about {_count(round_up(events), 'event')}," if events >= 1 else ""
    return f"About {_count(more, 'more row')}{with_events} would probably decide."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _miscalibrated(e: Any, bound: str, margin: str) -> str:
    directions = directions_text(e)
    impossible = impossible_outcomes(e)
    if impossible:
        what = f"{impossible:,.6g} row{'s contradict their' if impossible != 1 else ' contradicts its'} score"
        if e.table.importance:
            what = f"Rows with a total weight of {impossible:,.6g} contradict their score"
        also = f" The model {directions}." if directions else ""
        return f"{what} of {e.details.certain_scores}, which no calibrated model allows.{also}"
    which = f"the model {directions}" if directions else "the deviation is local"
    text = f"A deviation is significant ({p_text(e.pvalue)}); {which}."
    if e.settings.is_absolute:
        value = format_deviation(e, e.equivalence.value)
        return f"{text} ACE is {value}, at most {bound}; the margin is {margin}."
    error = e.log_odds_error
    off = f"by about {format_estimate(error)}"
    if error.value == 0:
        off = f"by up to {format_log_odds(max(error.high, e.details.fine_bound))}"
    off += _upper_bound_only(e, bound)
    fine = f" Over fine bins the error may be {format_log_odds(e.details.fine_bound)}." if e.details.fine_bound else ""
    region = _deviating(e)
    may_be_wrong = "" if region else _may_be_wrong(e)
    more = f" {may_be_wrong[0].upper()}{may_be_wrong[1:]}." if may_be_wrong else ""
    return f"{text} {subject(e)} off {off}; the margin is {margin}.{fine}{region}{more}"


def _upper_bound_only(e: Any, bound: str) -> str:
    """State that the estimate lies within the margin and its upper bound does not, where that is so."""
    if not 0 < e.log_odds_error.value <= e.margin < e.equivalence.bound:
        return ""
    return f", which is within the margin, but possibly by up to {bound}, which is not"


def _off(e: Any, by: str, size: float, **options: bool) -> str:
    return f"{subject(e, **options).replace('On', 'on', 1)} off {by} {format_deviation(e, size)}"


def impossible_outcomes(e: Any) -> float:
    """Return the number of rows whose outcome had probability 0."""
    test = e.decision.omnibus.components.get(IMPOSSIBLE)
    return 0 if test is None else test.statistic


def consequence(e: Any) -> str:
    """State the consequence of the deviation at the mean score."""
    mean = mean_score(e.table)
    if e.settings.is_absolute or e.verdict not in ("calibrated", "negligible") or not 0 < mean < 1:
        return ""
    low, high = (_shift_log_odds(mean, side * e.equivalence.bound) for side in (-1, 1))
    return (
        f"With an error of this size a score of {short_percent(mean)} has an event rate between "
        f"{short_percent(low)} and {short_percent(high)}; single scores may be off by more."
    )


def _shift_log_odds(p: float, by: float) -> float:
    return 1 / (1 + (1 - p) / p * math.exp(-by))


def listed(texts: Sequence[str], count: int | None = None) -> str:
    """Return the first texts of a list, by default of all that are given, and how many more it has."""
    rest = (len(texts) if count is None else count) - _NAMED
    return "; ".join(texts[:_NAMED]) + (f"; and {rest:,} more" if rest > 0 else "")


def _fine_bound(e: Any) -> str:
    fine = e.details.fine_bound
    if not fine or e.settings.is_absolute:
        return ""
    return f"; over fine bins the error is significant and may be {fine:.3g}"


class LogOddsEstimate(NamedTuple):
    """The log-odds error with its null distribution, the effective information of the rows, and their regions."""

    error: Interval
    null: Null
    information: float
    fine_bound: float = 0.0
    n_clusters: int | None = None
    regions: Regions | None = None

    def without_inference(self, n_clusters: int) -> "LogOddsEstimate":
        """Return the estimate without interval and null distribution, for rows in too few clusters."""
        nan = math.nan
        error = replace(self.error, low=nan, high=nan, method="none")
        null = replace(self.null, expected=nan, low=nan, high=nan, pvalue=nan)
        return LogOddsEstimate(error, null, 0.0, n_clusters=n_clusters)


@dataclass(frozen=True, eq=False)
class LogOddsDetails(Details):
    """Details of probabilities, whose deviation is a log-odds error.

    Attributes
    ----------
    estimate : LogOddsEstimate
        The log-odds error (of several classes, the mean over classes) with interval and null distribution, the
        effective information of the rows (for rare events about the expected number of events), the upper limit of the
        error over fine bins, if only this one is beyond the margin (else 0), the number of clusters, and the regions of
        the scores.
    """

    # What the error is averaged over besides bins, and the scores that an outcome may contradict.
    average_over: ClassVar[str] = ""
    certain_scores: ClassVar[str] = "0 or 1"
    coefficient_format: ClassVar[str] = ".4g"

    estimate: LogOddsEstimate

    @abstractmethod
    def without_inference(self, n_clusters: int) -> "LogOddsDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""

    @property
    @abstractmethod
    def rows_needed(self) -> int | None:
        """Number of further rows that would probably decide an inconclusive verdict, where it is known."""

    @property
    def log_odds_error(self) -> Interval:
        """The log-odds error with its confidence interval."""
        return self.estimate.error

    @property
    def information(self) -> float:
        """Effective information of the rows."""
        return self.estimate.information

    @property
    def fine_bound(self) -> float:
        """Upper limit of the log-odds error over fine bins, if only this one is beyond the margin; else 0."""
        return self.estimate.fine_bound

    @property
    def regions(self) -> Regions | None:
        """Which regions of the scores deviate, and which were judged; None where there are none, as for one score."""
        return self.estimate.regions

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return self.estimate.n_clusters

    def event_share(self, table: Any) -> float:
        """Return the expected events per row, where the kind has one event; else 0."""
        return 0.0

    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """Return the larger p-value: a metric is significant only if the group is."""
        return max(pvalue, adjusted)

    def rows_to_decide(self, e: Evaluation) -> int | None:
        """Return the number of further rows that would probably decide; None if unknown."""
        return None if self.regions is not None and self.regions.not_shown is not None else self.rows_needed

    def region(self, e: Evaluation) -> str:
        """Return the region with the deviation that costs most events."""
        if not e.is_significant or self.regions is None or not self.regions.deviating:
            return ""
        return self.regions.deviating[0].name

    def sentences(self, e: Evaluation) -> list[str]:
        """Explain the verdict: the estimate, its upper bound and the margin."""
        return [explanation(e)]

    def reasons(self, e: Evaluation) -> Iterator[str]:
        """State the tests behind the verdict, the coefficients and the other tests."""
        if not e.decision.omnibus.components:
            why = "there are too few clusters" if has_few_clusters(e) else "all scores are 0 or 1"
            yield f"Omnibus test: skipped because {why}."
            return
        yield omnibus_text(e)
        if has_few_clusters(e):
            yield from coefficients_text(e.coefficients, self.coefficient_format)
            return
        deviation = e.decision.deviation
        what = deviation.name if e.settings.is_absolute else f"the {deviation.name}"
        in_region = _may_be_wrong(e)
        shown = "is" if deviation.within or in_region else "is not"
        bound = "unbounded" if math.isinf(deviation.bound) else f"at most {deviation.bound:.3g}"
        yield (
            f"Equivalence: {what} {shown} shown to lie within the margin of {deviation.margin:g} ({bound} with "
            f"{100 * (1 - e.settings.alpha):g} % confidence; errors are averaged within bins{_fine_bound(e)})"
            f"{self._regions_text(e, in_region)}."
        )
        yield from coefficients_text(e.coefficients, self.coefficient_format)
        yield from self.further_reasons(e)
        yield from other_tests_text(e)

    def _regions_text(self, e: Evaluation, in_region: str) -> str:
        """State how many regions were judged, and whether they are within the factor."""
        regions = self.regions
        if e.settings.is_absolute or regions is None:
            return ""
        if in_region:
            return f", but {in_region}"
        within = f", within a factor of {regions.factor:.3g}" if e.is_within_margin and regions.n_judged else ""
        return f"; {regions.n_judged} of {regions.n_tested} regions of the scores are judged{within}"

    def size_text(self, e: Evaluation) -> str:
        """State the size of the deviation: an estimate if it is significant, else its upper bound."""
        impossible = impossible_outcomes(e)
        if e.verdict == "miscalibrated" and impossible:
            one = impossible == 1
            rows = "a row contradicts its score" if one else f"{impossible:,.6g} rows contradict their score"
            return f"{rows} of {self.certain_scores}"
        deviation = e.decision.deviation
        if has_few_clusters(e):
            text = few_clusters_text(e).partition(". ")[0].rstrip(".")
            return text[0].lower() + text[1:]
        if e.verdict == "inconclusive":
            if deviation.bound > UNBOUNDED:
                return "the data are too few to bound the error"
            return _may_be_wrong(e) or _off(e, "by up to", deviation.bound, may_be=True)
        if e.verdict != "miscalibrated":
            return f"{_off(e, 'by at most', deviation.bound)}{_within_factor(e)}"
        value = deviation.value if e.settings.is_absolute else self.log_odds_error.value
        if value == 0:
            text = _off(e, "by up to", max(self.log_odds_error.high, self.fine_bound))
        else:
            text = _off(e, "by about", value)
        return f"{text}, mostly {self.regions.deviating[0].where}" if e.region and self.regions else text

    def rows_needed_text(self, e: Evaluation) -> str:
        """State the number of further rows that would probably decide; '' if it is unknown."""
        return rows_needed_text(e)

    @abstractmethod
    def mean_texts(self) -> dict[str, str]:
        """Return the predicted and the observed mean of the rows as text, by their headers in the table of groups."""

    def group_header(self, level: str) -> list[str]:
        """Return the header of the table of groups, without its first column."""
        return ["rows", *self.mean_texts(), "log-odds error", f"{level} CI", "adjusted p", "verdict"]

    def group_cells(self, e: Evaluation) -> list[str]:
        """Return the row of one group in the table of groups."""
        error = self.log_odds_error
        limits = "" if math.isnan(error.low) else f"{error.low:.2f} to {error.high:.2f}"
        found = [f"{e.n_rows:,}", *self.mean_texts().values(), f"{error.value:.2f}", limits]
        return [*found, format_pvalue(e.pvalue), headline(e)]

    def further_reasons(self, e: Evaluation) -> Iterator[str]:
        """State what only one kind has."""
        return iter(())

    def estimate_dict(self) -> dict[str, Any]:
        """Return the estimate as plain data for JSON."""
        names = ("information", "fine_bound", "n_clusters")
        regions = None if self.regions is None else self.regions.to_dict()
        found = {name: getattr(self, name) for name in names}
        return {"log_odds_error": self.log_odds_error.to_dict(), **found, "regions": regions}
