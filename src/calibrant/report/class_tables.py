"""Tables of classes in the report: each class, and pairs of classes that are confused."""

import math
from collections.abc import Sequence
from typing import Any

from calibrant._support.formatting import format_percent, format_pvalue
from calibrant.results.evaluation import Evaluation

__all__ = ["class_tables"]

_MOST_ROWS = 50


def class_tables(e: Evaluation) -> list[tuple[str, list[list[str]]]]:
    """Return a heading and cells per table, header first; no tables for other kinds than classes."""
    if e.kind == "labels":
        return [_labels(e)]
    return [_classes(e), *_confusions(e)] if e.kind == "multiclass" else []


def _classes(e: Evaluation) -> tuple[str, list[list[str]]]:
    details: Any = e.details
    worst = sorted(details.classes, key=lambda c: (c.adjusted_pvalue, c.pvalue, -abs(c.predicted - c.observed)))
    cells = [["class", "rows", "predicted", "observed", "log-odds error", _level(e), "adjusted p", "direction"]]
    for c in worst[:_MOST_ROWS]:
        cells.append([
            str(details.labels[c.label]),
            f"{c.n:,.6g}",
            format_percent(c.predicted),
            format_percent(c.observed),
            _number(c.log_odds_error),
            "" if math.isnan(c.low) else f"{_number(c.low)} to {_number(c.high)}",
            _adjusted(c, e),
            c.direction(e.settings.alpha, e.decision.group_factor),
        ])  # fmt: skip
    return _heading("Classes", cells, len(worst)), cells


def _labels(e: Evaluation) -> tuple[str, list[list[str]]]:
    details: Any = e.details
    worst = sorted(details.classes, key=lambda c: (c.adjusted_pvalue, c.pvalue, -abs(c.difference)))
    cells = [["class", "predicted", "observed", "difference (points)", _level(e), "adjusted p", "direction"]]
    for c in worst[:_MOST_ROWS]:
        significant = c.adjusted_pvalue * e.decision.group_factor <= e.settings.alpha
        side = "overestimates" if c.difference > 0 else "underestimates"
        cells.append([
            str(c.label),
            format_percent(c.predicted),
            format_percent(c.actual),
            f"{100 * c.difference:+.2f}",
            "" if math.isnan(c.low) else f"{100 * c.low:+.2f} to {100 * c.high:+.2f}",
            _adjusted(c, e),
            side if significant else "",
        ])  # fmt: skip
    return _heading("Classes", cells, len(worst)), cells


def _confusions(e: Evaluation) -> list[tuple[str, list[list[str]]]]:
    """Return the table of significant pairs, if there are any."""
    details: Any = e.details
    found = [c for c in details.confusions if c.adjusted_pvalue * e.decision.group_factor <= e.settings.alpha]
    cells = [["occurs more often than predicted", "where predicted", "predicted", "observed", "adjusted p"]]
    for c in found[:_MOST_ROWS]:
        names = [str(details.labels[c.label]), str(details.labels[c.predicted_label])]
        cells.append([*names, format_percent(c.predicted), format_percent(c.observed), _adjusted(c, e)])
    count = max(details.n_confusions, len(found))
    return [(_heading("Confused classes", cells, count), cells)] if found else []


def _heading(name: str, cells: Sequence[Sequence[str]], count: int) -> str:
    shown = len(cells) - 1
    return name if shown == count else f"{name}: the {shown} most significant of {count:,}"


def _level(e: Evaluation) -> str:
    return f"{100 * e.settings.confidence_level:g} % CI"


def _adjusted(c: Any, e: Evaluation) -> str:
    return format_pvalue(min(1.0, c.adjusted_pvalue * e.decision.group_factor))


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"
