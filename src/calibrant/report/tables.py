"""Tables of a report that all kinds of forecast have: metrics, tests and groups, each as text with the header first."""

import math
import re
from collections.abc import Mapping
from typing import Any

from calibrant._support.formatting import format_pvalue
from calibrant.kinds.base import kind_of
from calibrant.kinds.words import ReportTable, Words
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

_GROUPS_PER_PAGE = 10
_MIDNIGHT = re.compile(r"[T ]00:00:00(\.0+)?$")


def words_of(result: Any) -> Words:
    """Return the words of the kind of a result."""
    words: Words = kind_of(result.kind).words.WORDS
    return words


def metric_table(e: Evaluation) -> ReportTable:
    """Return the metrics, with the columns that its kind adds."""
    cells, more = [list(row) for row in e.cells()], words_of(e).metric_columns(e)
    cells[0][0] = "metric"
    for row, texts in zip(cells, zip(*more, strict=True), strict=False):
        row.extend(texts)
    return ReportTable.with_words("Metrics", cells, ("metric", *(column[0] for column in more)))


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
    """Return the groups, worst first, with the metric that its kind adds; None without groups."""
    table = e.group_table()
    if table is None:
        return None
    header, *rows = ([*row] for row in table.cells)
    metric = words_of(e).group_metric(e)
    if metric is not None:
        header.insert(-2, metric)
        for row, group in zip(rows, e.worst_first.values(), strict=True):
            row.insert(-2, _value_with_interval(group, metric))
    days = all(_MIDNIGHT.search(row[0]) for row in rows)
    rows = [[_MIDNIGHT.sub("", row[0]) if days else row[0] or "(empty)", *row[1:]] for row in rows]
    by = f" by {e.by}" if e.by else ""
    heading = f"Groups{by}, worst first: {e.n_miscalibrated_groups:,} of {len(e.groups):,} miscalibrated"
    left = (0, len(header) - 1)
    return ReportTable(heading, [header, *rows], left, verdict=True, key=f"{key}-group-table", page=_GROUPS_PER_PAGE)


def _value_with_interval(group: Evaluation, name: str) -> str:
    if name not in group.metrics:
        return ""
    value, interval, *_ = group[name].cells()
    return f"{value} ({interval})"


def difference_table(c: Comparison) -> ReportTable:
    """Return the differences of metrics from the baseline, or of all pairs of models."""
    pairs = c.is_all_pairs and len(c.models) > 2
    names = [[d.model, d.baseline] if pairs else [d.model] for d in c.differences]
    rows = [[*name, d.metric, *d.cells()] for name, d in zip(names, c.differences, strict=True)]
    header = ["model", *(["minus"] if pairs else []), "metric", "difference", "CI", "p-value"]
    heading = "Differences of all pairs" if pairs else f"Differences from {c.baseline}"
    return ReportTable(f"{heading} on the same rows", [header, *rows], left=tuple(range(len(header) - 3)))


def ranking_table(c: Comparison) -> ReportTable | None:
    """Return the ranking of more than two models; the differences are those from the first one."""
    if len(c.ranked) < 3:
        return None
    header = ["rank", "model", c.decides, "squares minus the first", "CI, all pairs together", "p-value", "best set"]
    return ReportTable("Ranking", [header, *(each.cells() for each in c.ranked)], left=(0, 1))


def joint_metrics(models: Mapping[str, Evaluation]) -> ReportTable:
    """Return the metrics of models that were evaluated separately, one row per model."""
    names = list(dict.fromkeys(name for e in models.values() for name in e.metrics))
    rows = [
        [model, *(e[name].cells()[0] if name in e.metrics else "" for name in names)] for model, e in models.items()
    ]
    return ReportTable("Metrics of all models", [["model", *names], *rows])
