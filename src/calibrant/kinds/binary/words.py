"""Words of a report on predicted probabilities."""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant._support.formatting import format_percent, percent_digits, printable
from calibrant.kinds.binary.evaluation import rejection_breakdown
from calibrant.kinds.log_odds import impossible_outcomes
from calibrant.kinds.words import FRESH_ROWS, Action, ReportTable, Words, gain_text
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.significance import clopper_pearson
from calibrant.results.evaluation import Evaluation
from calibrant.results.sentences import groups_are_worse
from calibrant.results.uncertainty import MetricResult
from calibrant.tables.score_table import Partition

_LEAST_ROWS = 30  # of a bin that a sentence is about
# Rows of the rarer outcome: three parameters have a lower error than two from about 300 on, where the deviation is
# curved, and a free curve from more than 1,000 on (docs/studies/few_events.csv).
_FEW_EVENTS, _MANY_EVENTS = 300, 1000


class BinWords(NamedTuple):
    """How sentences about bins name the outcome and the scores."""

    gap: str = "events"
    highest: str = "The highest scores"
    scored: str = "scored"
    outcome: str = "events"


class BinaryWords(Words):
    """How a report speaks of predicted probabilities."""

    name: ClassVar[str] = "score"
    forecasts: ClassVar[str] = "scores"
    has_null_ranges = True
    group_code = "cb.Multicalibrator().fit(features, outcomes, scores=scores)"
    method: ClassVar[tuple[tuple[str, str], ...]] = (
        ("Log-odds error", "root mean square deviation of the log-odds over bins of equal information."),
        (
            "ECE, ACE",
            "mean distance between scores and event rates over bins of equal width (ECE) or equal size (ACE).",
        ),
        (
            "TCE",
            "percentage of predictions that an exact binomial test rejects, given the event rate of their bin "
            "(Matsubara et al. 2023).",
        ),
        ("ECC", "expected calibration cost (Yang and Bi 2025)."),
        ("Brier", "mean squared difference between scores and outcomes."),
    )

    def means(self, e: Evaluation) -> tuple[float, float] | None:
        return e.mean_score, e.event_rate

    def means_text(self, group: Evaluation) -> str:
        return f"{100 * group.mean_score:.3g} % predicted, {100 * group.event_rate:.3g} % observed"

    def check_command(self, rows: str) -> str:
        return f"calibrant check {rows}"

    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        """Recommend by the direction and by the number of rows of the rarer outcome."""
        table: Any = e.table
        rarer = min(table.positives, table.size - table.positives)
        details: Any = e.details
        free = "local" in e.direction or impossible_outcomes(e)
        name, method = ("Beta", "beta")
        if rarer < _FEW_EVENTS:
            name, method = "Platt", "platt"
        elif free and rarer >= _MANY_EVENTS:
            name, method = "Isotonic", "isotonic"
        gain = gain_text("Brier score", details.decomposition.brier, details.decomposition.mcb)
        command = f"calibrant fit {rows} \\\n  --method {method} -o cal.json"
        code = f"cb.{name}().fit(scores, outcomes)\n{command}"
        return Action(f"Recalibrate with {method}.", f"{gain} {FRESH_ROWS}", code)

    def meaning(self, e: Evaluation) -> list[str]:
        """Return sentences about the worst group, the bins that matter and all rows."""
        details: Any = e.details
        group = [_group_sentence(e)] if groups_are_worse(e) else []
        return [*group, *bin_sentences(e, details.reliability, BinWords()), _totals(e)]

    def metric_columns(self, e: Evaluation) -> list[list[str]]:
        """Return the direction of each metric that is significant, and its size as a number of events or rows."""
        columns = [["direction"], ["over all rows, weighted" if e.table.importance else "over all rows"]]
        for metric in e.metrics.values():
            breakdown = e.breakdowns.get(metric.name) if metric.name in e.settings.metrics else None
            columns[0].append(_direction(metric, breakdown) if metric.pvalue <= e.settings.alpha else "")
            columns[1].append(_effect(metric, breakdown, e))
        return columns

    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        """Return the bins of the test-based diagram; a slider changes their last column."""
        level = e.settings.confidence_level
        unit = "weight" if e.table.importance else "rows"
        cells = [["scores", unit, "events", "event rate", f"{100 * level:g} % CI", "mean score", "rejected"]]
        for row in bin_rows(rejection_breakdown(e)[0], level):
            cells.append([
                _scores(row["lower"], row["upper"]),
                _count(row["n"]),
                _count(row["k"]),
                format_percent(row["rate"]),
                f"{percent_digits(row['low'])} to {format_percent(row['high'])}",
                format_percent(row["mean_score"]),
                f"{100 * row['rejected'] / row['n']:.1f} %" if row["n"] else "",
            ])  # fmt: skip
        return [ReportTable("Bins of the test-based diagram", cells, key=f"{key}-bins")]


WORDS = BinaryWords()


def _group_sentence(e: Evaluation) -> str:
    """Return a sentence about the worst group."""
    name, group = next(iter(e.worst_first.items()))
    table: Any = group.table
    rows, level = Partition.from_cuts(table, []), e.settings.confidence_level
    low, high = clopper_pearson(rows.effective_k, rows.effective_n, confidence_level=level)
    cases = _cases(group.mean_score, group.event_rate)
    expected = _expected(cases, group.mean_score, group.event_rate, (float(low[0]), float(high[0])), "events", e)
    score = format_percent(group.mean_score)
    return f"The worst group: among {cases:,} cases of {printable(str(name))}, scored {score} on average, {expected}."


def _totals(e: Evaluation) -> str:
    table: Any = e.table
    if table.importance:
        shares = f"{format_percent(e.mean_score)} predicted, {format_percent(e.event_rate)} observed"
        return f"Over all rows, weighted: {shares}."
    predicted, observed = table.size * e.mean_score, float(table.positives)
    return f"Over all {table.size:,} rows: {predicted:,.0f} events predicted, {observed:,.0f} observed."


def bin_sentences(e: Evaluation, bins: Breakdown, words: BinWords) -> list[str]:
    """Return sentences about two bins: the one with the largest gap, and the one with the highest scores.

    The gap of a bin is the difference between its predicted and observed number of events; it counts if the
    confidence interval of the rate excludes the mean score. Without such a bin, and unless the model is miscalibrated,
    the bin with most information is an example: n rate (1 - rate) is largest.
    """
    p = bins.partition
    low, high = bins.rate_interval(e.settings.confidence_level)
    large = p.effective_n >= _LEAST_ROWS
    if not large.any():
        return []
    outside = large & ((p.mean_score < low) | (p.mean_score > high))
    information = np.where(large, p.n * p.rate * (1 - p.rate), -1.0)
    misjudged = np.where(outside, p.n * np.abs(p.mean_score - p.rate), -1.0)
    # Scores of a model without a shown deviation: a bin outside its interval may be one of twenty by chance.
    deviates = bool(outside.any()) and e.verdict == "miscalibrated"
    first, last = int((misjudged if deviates else information).argmax()), int(np.flatnonzero(large)[-1])
    leads = {last: words.highest, first: f"The largest gap in {words.gap}" if deviates else "An example"}
    return [f"{leads[i]}: {_bin_sentence(e, bins, i, words)}" for i in dict.fromkeys((first, last))]


def _bin_sentence(e: Evaluation, bins: Breakdown, i: int, words: BinWords) -> str:
    score, rate = float(bins.partition.mean_score[i]), float(bins.partition.rate[i])
    low, high = (float(limits[i]) for limits in bins.rate_interval(e.settings.confidence_level))
    cases = _cases(score, rate)
    expected = _expected(cases, score, rate, (low, high), words.outcome, e)
    return f"among {cases:,} cases {words.scored} about {format_percent(score)}, {expected}."


def _expected(cases: int, score: float, rate: float, limits: tuple[float, float], noun: str, e: Evaluation) -> str:
    """State the number to expect, its interval, and the number that the scores predict."""
    low, high = limits
    span = f"{100 * e.settings.confidence_level:g} % CI {cases * low:,.0f} to {cases * high:,.0f}"
    predicted = f"{cases * score:,.0f}"
    against = f"; {predicted} are predicted" if low <= score <= high else f", not {predicted}"
    return f"expect {cases * rate:,.0f} {noun} ({span}){against}"


def _cases(score: float, rate: float) -> int:
    """Return 1,000, or the power of ten at which score and rate are at least ten cases, at most a billion."""
    least = min(share for share in (score, rate, 1.0) if share > 0)
    return int(10 ** min(9, max(3, math.ceil(math.log10(10 / least)))))


def _direction(metric: MetricResult, breakdown: Breakdown | None) -> str:
    if metric.name == "bias":
        return "overestimates" if metric.value > 0 else "underestimates" if metric.value < 0 else ""
    if breakdown is None:
        return ""
    mean_score, rate, n = (breakdown.per_bin[name] for name in ("mean_score", "rate", "n"))
    high, low = (100 * n[side].sum() / n.sum() for side in (mean_score > rate, mean_score < rate))
    if min(high, low) == 0:
        return "overestimates in all bins" if high else "underestimates in all bins"
    side, share = ("overestimates", high) if high >= low else ("underestimates", low)
    return f"mostly {side} (bins with {share:.0f} % of rows)"


def _effect(metric: MetricResult, breakdown: Breakdown | None, e: Evaluation) -> str:
    """State the size of a metric as a number of events or rows."""
    rows = e.table.size
    if metric.name == "bias":
        more = "more" if metric.value > 0 else "fewer"
        return f"{_rounded(abs(metric.value) * rows)} {more} events predicted than observed"
    if metric.name in ("ECE", "ACE"):
        return f"over- or underestimation by {_rounded(metric.value * rows)} events"
    if breakdown is not None and "rejected" in breakdown.per_bin:
        low, high = (_rounded(limit / 100 * rows) for limit in (metric.null.low, metric.null.high))
        usual = "" if math.isnan(metric.null.low) else f"; {low} to {high} if calibrated"
        return f"the test rejects the scores of {_rounded(float(breakdown.per_bin['rejected'].sum()))} rows{usual}"
    if metric.name == "Brier":
        details: Any = e.details
        share = details.decomposition.mcb / metric.value if metric.value else 0.0
        return f"recalibration can remove {100 * share:.2g} % of it"
    return f"{metric.value * rows:,.4g}" if metric.name.startswith("ECC") else ""


def _rounded(count: float) -> str:
    """Format an expected number of events or rows: whole from 10 on."""
    return f"{count:,.0f}" if count >= 10 else f"{count:.2g}"


def bin_rows(breakdown: Breakdown, level: float) -> list[dict[str, Any]]:
    """Return the numbers of each bin, with the confidence interval of its rate."""
    names = ("lower", "upper", "n", "k", "rate", "mean_score", "rejected")
    columns = {name: breakdown.per_bin[name] for name in names if name in breakdown.per_bin}
    columns["low"], columns["high"] = breakdown.rate_interval(level)
    return [{name: column[i].item() for name, column in columns.items()} for i in range(columns["n"].size)]


def _scores(lower: float, upper: float) -> str:
    """Format the range of a bin with three digits, or with more if both ends would be equal."""
    short = f"{lower:.3g} to {upper:.3g}"
    return short if f"{lower:.3g}" != f"{upper:.3g}" else f"{lower:.6g} to {upper:.6g}"


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
