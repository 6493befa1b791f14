"""What the deviation means in the data of the report: sentences with counts of cases, for each kind of forecast."""

import math
from typing import Any

import numpy as np

from calibrant._support.formatting import format_percent, printable
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.significance import clopper_pearson
from calibrant.report.verdict_sentences import groups_are_worse
from calibrant.results.evaluation import Evaluation
from calibrant.tables.partition import Partition

__all__ = ["meaning"]

_LEAST_ROWS = 30  # of a bin that a sentence is about


def meaning(e: Evaluation, bins: Breakdown | None) -> list[str]:
    """Return sentences about what to expect; `bins` are those of the reliability diagram, None for other kinds."""
    group = [_group_sentence(e)] if e.kind == "binary" and groups_are_worse(e) else []
    if bins is not None:
        found = [f"{lead}: {_bin_sentence(bins, i, e)}" for i, lead in _chosen_bins(bins, e).items()]
        return [*group, *found, *(_totals(e) if e.kind == "binary" else [])]
    return {"labels": _proportions, "point": _points, "distribution": _coverage}[e.kind](e)


def _group_sentence(e: Evaluation) -> str:
    """Return a sentence about the worst group."""
    name, group = next(iter(e.worst_first.items()))
    rows, level = Partition.from_cuts(group.table, []), e.settings.confidence_level
    low, high = clopper_pearson(rows.effective_k, rows.effective_n, confidence_level=level)
    cases = _cases(group.mean_score, group.event_rate)
    expected = _expected(cases, group.mean_score, group.event_rate, (float(low[0]), float(high[0])), "events", e)
    score = format_percent(group.mean_score)
    return f"The worst group: among {cases:,} cases of {printable(str(name))}, scored {score} on average, {expected}."


def _chosen_bins(bins: Breakdown, e: Evaluation) -> dict[int, str]:
    """Return two bins and why they were chosen: the one with the largest gap, and the one with the highest scores.

    The gap of a bin is the difference between its predicted and observed number of events; it counts if the
    confidence interval of the rate excludes the mean score. Without such a bin, and unless the model is miscalibrated,
    the bin with most information is an example: n rate (1 - rate) is largest.
    """
    p = bins.partition
    low, high = bins.rate_interval(e.settings.confidence_level)
    large = p.effective_n >= _LEAST_ROWS
    off = large & ((p.mean_score < low) | (p.mean_score > high))
    known = np.flatnonzero(large)
    if not known.size:
        return {}
    information = np.where(large, p.n * p.rate * (1 - p.rate), -1.0)
    misjudged = np.where(off, p.n * np.abs(p.mean_score - p.rate), -1.0)
    # Scores of a model without a shown deviation: a bin outside its interval may be one of twenty by chance.
    deviates = bool(off.any()) and e.verdict == "miscalibrated"
    first, last = int((misjudged if deviates else information).argmax()), int(known[-1])
    noun = "events" if e.kind == "binary" else "correct rows"
    lead = f"The largest gap in {noun}" if deviates else "An example"
    highest = "The highest scores" if e.kind == "binary" else "The highest probabilities"
    return {first: lead} | ({} if first == last else {last: highest})


def _bin_sentence(bins: Breakdown, i: int, e: Evaluation) -> str:
    p = bins.partition
    low, high = (float(each[i]) for each in bins.rate_interval(e.settings.confidence_level))
    score, rate = float(p.mean_score[i]), float(p.rate[i])
    cases = _cases(score, rate)
    which, noun = ("scored", "events") if e.kind == "binary" else ("with a highest probability of", "correct")
    return (
        f"among {cases:,} cases {which} about {format_percent(score)}, "
        f"{_expected(cases, score, rate, (low, high), noun, e)}."
    )


def _expected(cases: int, score: float, rate: float, limits: tuple[float, float], noun: str, e: Evaluation) -> str:
    """State the number to expect, its interval, and the number that the scores predict."""
    low, high = limits
    span = f"{100 * e.settings.confidence_level:g} % CI {cases * low:,.0f} to {cases * high:,.0f}"
    predicted = f"{cases * score:,.0f}"
    against = f"; {predicted} are predicted" if low <= score <= high else f", not {predicted}"
    return f"expect {cases * rate:,.0f} {noun} ({span}){against}"


def _cases(score: float, rate: float) -> int:
    """Return 1,000, or the power of ten at which score and rate are at least ten cases, at most a billion."""
    least = min(each for each in (score, rate, 1.0) if each > 0)
    return int(10 ** min(9, max(3, math.ceil(math.log10(10 / least)))))


def _totals(e: Evaluation) -> list[str]:
    table = e.table
    if table.importance:
        shares = f"{format_percent(e.mean_score)} predicted, {format_percent(e.event_rate)} observed"
        return [f"Over all rows, weighted: {shares}."]
    predicted, observed = table.size * e.mean_score, float(table.positives)
    return [f"Over all {table.size:,} rows: {predicted:,.0f} events predicted, {observed:,.0f} observed."]


def _proportions(e: Evaluation) -> list[str]:
    details: Any = e.details
    largest = sorted(details.classes, key=lambda c: -abs(c.difference))[:2]
    return [
        f"Among 1,000 cases, class {c.label} is predicted {1000 * c.predicted:,.0f} times and occurs "
        f"{1000 * c.actual:,.0f} times."
        for c in largest
    ]


def _points(e: Evaluation) -> list[str]:
    """Return sentences about the bins with the largest significant bias, or about the middle one."""
    found: Any = e.breakdowns["bias by bin"]
    b = found.per_bin
    worst = [i for i in np.argsort(-b["n"] * np.abs(b["bias"])) if found.significant[i]][:2] or [len(found) // 2]
    shown = [_bias_sentence(b, int(i), found.level) for i in worst]
    mean = f"Over all rows: mean prediction {e.table.mean_prediction:.4g}, mean outcome {e.table.mean_outcome:.4g}."
    return [*shown, mean]


def _bias_sentence(b: Any, i: int, level: float) -> str:
    predicted, low, high = (float(b[name][i]) for name in ("mean_prediction", "low", "high"))
    span = ""
    if math.isfinite(low) and math.isfinite(high):  # the interval of the bias: prediction less outcome
        span = f" ({100 * level:g} % CI {predicted - high:.4g} to {predicted - low:.4g})"
    return f"Where the prediction is about {predicted:.4g}, expect {float(b['mean_outcome'][i]):.4g} on average{span}."


def _coverage(e: Evaluation) -> list[str]:
    """Return sentences about the widest and the narrowest central interval, or about the mean error without them."""
    found: Any = e.breakdowns.get("coverage")
    if found is None:
        return _points(e)
    levels, observed = found.per_level["level"], found.per_level["observed"]
    ends = dict.fromkeys((int(np.argmax(levels)), int(np.argmin(levels))))
    return [
        f"Of 1,000 outcomes, expect {1000 * observed[i]:,.0f} inside the {100 * levels[i]:g} % interval "
        f"({100 * found.confidence_level:g} % CI {1000 * found.per_level['low'][i]:,.0f} to "
        f"{1000 * found.per_level['high'][i]:,.0f}); calibrated forecasts have {1000 * levels[i]:,.0f}."
        for i in ends
    ]
