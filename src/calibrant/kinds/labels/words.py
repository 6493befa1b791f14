"""Words of a report on predicted classes."""

import math
from typing import Any

from calibrant._support.formatting import format_percent
from calibrant.kinds.multiclass.words import MOST_ROWS, adjusted_text, level_text, most_significant
from calibrant.kinds.words import FRESH_ROWS, Action, ReportTable, Words
from calibrant.results.evaluation import Evaluation


class LabelWords(Words):
    """How a report speaks of predicted classes."""

    name = forecasts = "predicted classes"

    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        text = "Choose thresholds, or weights of classes, with which each class is predicted as often as it occurs."
        code = "cb.calibrators.ProportionRule().fit(probabilities, labels)"
        return Action("Adjust the rule that chooses the class.", f"{text} {FRESH_ROWS}", code)

    def meaning(self, e: Evaluation) -> list[str]:
        details: Any = e.details
        largest = sorted(details.classes, key=lambda c: -abs(c.difference))[:2]
        return [
            f"Among 1,000 cases, class {c.label} is predicted {1000 * c.predicted:,.0f} times and occurs "
            f"{1000 * c.actual:,.0f} times."
            for c in largest
        ]

    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        details: Any = e.details
        header = ["class", "predicted", "observed", "difference (points)", level_text(e), "adjusted p", "direction"]
        worst = sorted(details.classes, key=lambda c: (c.adjusted_pvalue, c.pvalue, -abs(c.difference)))
        rows = [
            [
                str(c.label),
                format_percent(c.predicted),
                format_percent(c.actual),
                f"{100 * c.difference:+.2f}",
                "" if math.isnan(c.low) else f"{100 * c.low:+.2f} to {100 * c.high:+.2f}",
                adjusted_text(c, e),
                c.side if c.is_shown(e.settings.alpha, e.decision.group_factor) else "",
            ]
            for c in worst[:MOST_ROWS]
        ]
        return [most_significant("Classes", [header, *rows], len(worst), ("class", "direction"))]


WORDS = LabelWords()
