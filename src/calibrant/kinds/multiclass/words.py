"""Words of a report on class probabilities."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from calibrant._support.formatting import format_percent, format_pvalue
from calibrant.kinds.binary.words import BinWords, bin_sentences
from calibrant.kinds.words import FRESH_ROWS, Action, ReportTable, Words, gain_text
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import mean_score

TOP_LABEL = "top-label ACE"
MOST_ROWS = 50  # of a table of classes
_ROWS_PER_PARAMETER = 50


class MulticlassWords(Words):
    """How a report speaks of class probabilities."""

    name: ClassVar[str] = "class probabilities"
    forecasts: ClassVar[str] = "probabilities"
    has_null_ranges = True

    def means(self, e: Evaluation) -> tuple[float, float] | None:
        """Return the mean of the highest probability of each row, and the share of correct rows."""
        table: Any = e.table
        top = table.top_label()
        return mean_score(top), float(top.prevalence)

    def means_text(self, group: Evaluation) -> str:
        details: Any = group.details
        return f"{100 * details.top_label[0]:.3g} % mean confidence, {100 * details.top_label[1]:.3g} % correct"

    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        """Recommend one temperature where only the confidence deviates; else by the number of rows per parameter."""
        details: Any = e.details
        count = len(details.labels)
        sides = (details.classes_that(side, e.settings.alpha, 1.0) for side in ("overestimates", "underestimates"))
        name, method = "VectorScaling", "vector"
        if not any(sides) and e.direction in ("overconfident", "underconfident"):
            name, method = "SoftmaxTemperature", "softmax_temperature"
        elif e.n_rows >= _ROWS_PER_PARAMETER * count * (count + 1):
            name, method = "Dirichlet", "dirichlet"
        parts = details.decompositions["corp"]
        gain = gain_text("Brier score", parts["mcb"] - parts["dsc"] + parts["unc"], parts["mcb"])
        code = f"cb.calibrators.{name}().fit(probabilities, labels)"
        return Action(f"Recalibrate with {method}.", f"{gain} {FRESH_ROWS}", code)

    def meaning(self, e: Evaluation) -> list[str]:
        """Return sentences about bins of the highest probability of a row."""
        words = BinWords("correct rows", "The highest probabilities", "with a highest probability of", "correct")
        return bin_sentences(e, e.breakdowns[TOP_LABEL], words)

    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        """Return the table of classes, and that of significant pairs of classes if there are any."""
        details: Any = e.details
        header = ["class", "rows", *error_header(e)]
        worst = sorted(details.classes, key=lambda c: (c.adjusted_pvalue, c.pvalue, -abs(c.predicted - c.observed)))
        rows = [[str(details.labels[c.label]), f"{c.n:,.6g}", *error_cells(c, e)] for c in worst[:MOST_ROWS]]
        classes = most_significant("Classes", [header, *rows], len(worst), ("class", "direction"))
        return [classes, *_confusions(e)]


WORDS = MulticlassWords()


def _confusions(e: Evaluation) -> list[ReportTable]:
    details: Any = e.details
    pairs = [c for c in details.confusions if c.adjusted_pvalue * e.decision.group_factor <= e.settings.alpha]
    words = ("occurs more often than predicted", "where predicted")
    cells = [[*words, "predicted", "observed", "adjusted p"]]
    for c in pairs[:MOST_ROWS]:
        names = [str(details.labels[c.label]), str(details.labels[c.predicted_label])]
        cells.append([*names, format_percent(c.predicted), format_percent(c.observed), adjusted_text(c, e)])
    count = max(details.n_confusions, len(pairs))
    return [most_significant("Confused classes", cells, count, words)] if pairs else []


def most_significant(heading: str, cells: Sequence[Sequence[str]], count: int, words: Sequence[str]) -> ReportTable:
    """Return a table of classes; its heading states how many of `count` it has if there are more."""
    shown = len(cells) - 1
    few = "" if shown == count else f": the {shown} most significant of {count:,}"
    return ReportTable.with_words(f"{heading}{few}", cells, words)


def level_text(e: Evaluation) -> str:
    """Return the header of the column of intervals."""
    return f"{100 * e.settings.confidence_level:g} % CI"


def adjusted_text(c: Any, e: Evaluation) -> str:
    """Format the adjusted p-value of a class."""
    return format_pvalue(min(c.adjusted_pvalue * e.decision.group_factor, 1.0))


def error_header(e: Evaluation) -> list[str]:
    """Return the header of `error_cells`."""
    return ["predicted", "observed", "log-odds error", level_text(e), "adjusted p", "direction"]


def error_cells(c: Any, e: Evaluation) -> list[str]:
    """Return the means of a class or threshold and its log-odds error with interval, p-value and direction."""
    return [
        format_percent(c.predicted),
        format_percent(c.observed),
        "" if math.isnan(c.log_odds_error) else f"{c.log_odds_error:.2f}",
        "" if math.isnan(c.low) else f"{c.low:.2f} to {c.high:.2f}",
        adjusted_text(c, e),
        c.direction(e.settings.alpha, e.decision.group_factor),
    ]
