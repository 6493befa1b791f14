"""Tables of one model in the report: metrics, tests, bins and groups, each as text with the header first."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant._support.formatting import format_percent, format_pvalue, percent_digits
from calibrant.kinds.binary.evaluation import rejection_breakdown
from calibrant.metrics.gce import Breakdown
from calibrant.report.class_tables import class_tables
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.results.uncertainty import MetricResult

__all__ = [
    "ReportTable",
    "bin_rows",
    "bin_tables",
    "difference_table",
    "group_table",
    "joint_metrics",
    "metric_table",
    "test_table",
    "widest_coverage",
    "without_empty_columns",
]

_GROUPS_PER_PAGE = 10
_MIDNIGHT = re.compile(r"[T ]00:00:00(\.0+)?$")


@dataclass(frozen=True)
class ReportTable:
    """A table of text: the first row of `cells` is the header.

    Attributes
    ----------
    heading : str
    cells : rows of texts
    left : columns that are aligned to the left
    verdict : bool
        The last column holds verdicts, which have colours.
    key : str
        Id of the table in the page; '' for none.
    page : int
        Number of rows that are shown at once; 0 for all.
    """

    heading: str
    cells: list[list[str]]
    left: tuple[int, ...] = (0,)
    verdict: bool = False
    key: str = ""
    page: int = 0


def metric_table(e: Evaluation) -> ReportTable:
    """Return the metrics; those of probabilities with their direction, where significant, and their cost."""
    cells = [list(row) for row in e.cells()]
    cells[0][0] = "metric"
    if e.kind != "binary":
        return ReportTable("Metrics", without_empty_columns(cells))
    effect = "over all rows, weighted" if e.table.importance else "over all rows"
    cells[0] += ["direction", effect]
    for row, line in zip(cells[1:], e.metrics.values(), strict=True):
        breakdown = e.breakdowns.get(line.name) if line.name in e.settings.metrics else None
        row += [_direction(line, breakdown) if line.pvalue <= e.settings.alpha else "", _effect(line, breakdown, e)]
    shown = without_empty_columns(cells)
    left = tuple(c for c, name in enumerate(shown[0]) if name in ("metric", "direction", effect))
    return ReportTable("Metrics", shown, left)


def without_empty_columns(cells: list[list[str]]) -> list[list[str]]:
    """Return the columns that have a text in any row below the header."""
    kept = [c for c in range(len(cells[0])) if any(row[c] for row in cells[1:])]
    return [[row[c] for c in kept] for row in cells]


def _direction(line: MetricResult, breakdown: Breakdown | None) -> str:
    if line.name == "bias":
        return "overestimates" if line.value > 0 else "underestimates" if line.value < 0 else ""
    if breakdown is None:
        return ""
    mean_score, rate, n = (breakdown.per_bin[name] for name in ("mean_score", "rate", "n"))
    high, low = (100 * n[side].sum() / n.sum() for side in (mean_score > rate, mean_score < rate))
    if min(high, low) == 0:
        return "overestimates in all bins" if high else "underestimates in all bins"
    side, share = ("overestimates", high) if high >= low else ("underestimates", low)
    return f"mostly {side} (bins with {share:.0f} % of rows)"


def _effect(line: MetricResult, breakdown: Breakdown | None, e: Evaluation) -> str:
    """State the size of a metric as a number of events or rows."""
    rows = e.table.size
    if line.name == "bias":
        more = "more" if line.value > 0 else "fewer"
        return f"{_rounded(abs(line.value) * rows)} {more} events predicted than observed"
    if line.name in ("ECE", "ACE"):
        return f"over- or underestimation by {_rounded(line.value * rows)} events"
    if breakdown is not None and "rejected" in breakdown.per_bin:
        low, high = (_rounded(each / 100 * rows) for each in (line.null.low, line.null.high))
        usual = "" if math.isnan(line.null.low) else f"; {low} to {high} if calibrated"
        return f"the test rejects the scores of {_rounded(float(breakdown.per_bin['rejected'].sum()))} rows{usual}"
    if line.name == "Brier":
        details: Any = e.details
        share = details.decomposition.mcb / line.value if line.value else 0.0
        return f"recalibration can remove {100 * share:.2g} % of it"
    return f"{line.value * rows:,.4g}" if line.name.startswith("ECC") else ""


def _rounded(count: float) -> str:
    """Format an expected number of events or rows: whole from 10 on."""
    return f"{count:,.0f}" if count >= 10 else f"{count:.2g}"


def test_table(e: Evaluation) -> ReportTable:
    """Return all tests with raw and adjusted p-values."""
    cells = [["test", "statistic", "p-value", "adjusted p"]]
    for test in e.tests.values():
        adjusted = "" if test.adjusted_pvalue is None else format_pvalue(test.adjusted_pvalue)
        statistic = "" if math.isnan(test.statistic) else f"{test.statistic:.4g}"
        cells.append([test.name, statistic, format_pvalue(test.pvalue), adjusted])
    return ReportTable("Tests", cells)


test_table.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it where tests import it


def group_table(e: Evaluation, key: str) -> ReportTable | None:
    """Return the groups, worst first; None without groups."""
    found = e.group_table()
    if found is None:
        return None
    header, *rows = _with_coverage(e, found.cells)
    days = all(_MIDNIGHT.search(row[0]) for row in rows)
    cells = [list(header), *([_MIDNIGHT.sub("", row[0]) if days else row[0] or "(empty)", *row[1:]] for row in rows)]
    left = (0, len(header) - 1)
    return ReportTable(_group_heading(e), cells, left, verdict=True, key=f"{key}-group-table", page=_GROUPS_PER_PAGE)


def _with_coverage(e: Evaluation, cells: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Add the coverage of the widest intervals to the groups of distributions, whose calibration it shows."""
    name = widest_coverage(e)
    if name is None:
        return list(cells)
    shown = [name] + [_value_with_interval(group, name) for group in e.worst_first.values()]
    return [[*row[:-2], text, *row[-2:]] for row, text in zip(cells, shown, strict=True)]


def _value_with_interval(group: Evaluation, name: str) -> str:
    if name not in group.metrics:
        return ""
    value, interval, *_ = group[name].cells()
    return f"{value} ({interval})"


def widest_coverage(e: Evaluation) -> str | None:
    """Return the name of the metric of the widest central intervals; None if there is none."""
    return next((name for name in reversed(tuple(e.metrics)) if name.startswith("coverage of ")), None)


def _group_heading(e: Evaluation) -> str:
    bad = sum(group.verdict == "miscalibrated" for group in e.groups.values())
    by = f" by {e.by}" if e.by else ""
    return f"Groups{by}, worst first: {bad:,} of {len(e.groups):,} miscalibrated"


def bin_rows(breakdown: Breakdown, level: float) -> list[dict[str, Any]]:
    """Return the numbers of each bin, with the confidence interval of its rate."""
    low, high = breakdown.rate_interval(level)
    columns = {name: breakdown.per_bin[name] for name in ("lower", "upper", "n", "k", "rate", "mean_score")}
    if "rejected" in breakdown.per_bin:
        columns["rejected"] = breakdown.per_bin["rejected"]
    columns |= {"low": low, "high": high}
    return [{name: column[i].item() for name, column in columns.items()} for i in range(low.size)]


def bin_tables(e: Evaluation, key: str) -> list[ReportTable]:
    """Return the tables of bins, of levels of coverage or of classes, by the kind of forecast."""
    if e.kind == "binary":
        return [_tested_bins(e, key)]
    if e.kind in ("multiclass", "labels"):
        found = [(heading, without_empty_columns(cells)) for heading, cells in class_tables(e)]
        return [ReportTable(heading, cells, _left_columns(cells)) for heading, cells in found]
    bias = ReportTable("Bias by bin", e.breakdowns["bias by bin"].cells())
    if "coverage" not in e.breakdowns:
        return [bias]
    return [ReportTable("Coverage of central intervals", e.breakdowns["coverage"].cells()), bias]


def _left_columns(cells: list[list[str]]) -> tuple[int, ...]:
    names = ("class", "direction", "occurs more often than predicted", "where predicted")
    return tuple(c for c, name in enumerate(cells[0]) if name in names)


def _tested_bins(e: Evaluation, key: str) -> ReportTable:
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
    return ReportTable("Bins of the test-based diagram", cells, key=f"{key}-bins")


def _scores(lower: float, upper: float) -> str:
    """Format the range of a bin with three digits, or with more if both ends would be equal."""
    short = f"{lower:.3g} to {upper:.3g}"
    return short if f"{lower:.3g}" != f"{upper:.3g}" else f"{lower:.6g} to {upper:.6g}"


def _count(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def difference_table(c: Comparison) -> ReportTable:
    """Return the differences of metrics from the baseline."""
    cells = [
        ["model", "metric", "difference", "CI", "p-value"],
        *([d.model, d.metric, *d.cells()] for d in c.differences),
    ]
    return ReportTable(f"Differences from {c.baseline} on the same rows", cells, left=(0, 1))


def joint_metrics(models: Mapping[str, Evaluation]) -> ReportTable:
    """Return the metrics of models that were evaluated separately, one row per model."""
    names = list(dict.fromkeys(name for e in models.values() for name in e.metrics))
    rows = [
        [model, *(e[name].cells()[0] if name in e.metrics else "" for name in names)] for model, e in models.items()
    ]
    return ReportTable("Metrics of all models", [["model", *names], *rows])
