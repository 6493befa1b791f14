"""Words of a report on probabilities of ordered classes."""

from typing import Any, ClassVar

from calibrant.kinds.binary.words import BinWords, bin_sentences
from calibrant.kinds.multiclass.words import error_cells, error_header, most_significant
from calibrant.kinds.ordinal.evaluation import threshold_name
from calibrant.kinds.words import FRESH_ROWS, Action, ReportTable, Words, gain_text
from calibrant.results.evaluation import Evaluation

_CLASSES_ARE = {"": "", "overestimates": "too high", "underestimates": "too low"}


class OrdinalWords(Words):
    """How a report speaks of probabilities of ordered classes."""

    name: ClassVar[str] = "ordered class probabilities"
    forecasts: ClassVar[str] = "probabilities"
    has_null_ranges = True

    def means(self, e: Evaluation) -> tuple[float, float] | None:
        """Return the mean predicted and the mean observed class, counted from 0."""
        details: Any = e.details
        means: tuple[float, float] = details.mean_class
        return means

    def means_text(self, group: Evaluation) -> str:
        """State the mean predicted and the mean observed class of a group."""
        details: Any = group.details
        return f"mean class {details.mean_class[0]:.3g} predicted, {details.mean_class[1]:.3g} observed"

    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        """Recommend a calibrator of each cumulative probability, which needs the order of the classes."""
        details: Any = e.details
        parts = details.decompositions["corp"]
        gain = gain_text("RPS", parts["mcb"] - parts["dsc"] + parts["unc"], parts["mcb"])
        code = f"cb.calibrators.Cumulative().fit(probabilities, labels, classes={list(details.labels)!r})"
        return Action("Recalibrate with cumulative.", f"{gain} {FRESH_ROWS}", code)

    def meaning(self, e: Evaluation) -> list[str]:
        """Return sentences about the cumulative probabilities of the threshold that deviates most."""
        details: Any = e.details
        worst = min(details.thresholds, key=lambda t: (t.pvalue, -abs(t.predicted - t.observed)))
        name = threshold_name(worst.label)
        words = BinWords(f"outcomes {name}", "The highest probabilities", "with a probability of", f"{name}")
        return bin_sentences(e, e.breakdowns[name], words)

    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        """Return the table of thresholds, in the order of the classes.

        Its last column speaks of the classes: where too few outcomes are predicted at or below a class, the predicted
        classes are too high. "overestimates" beside a probability that is too low would be misread.
        """
        details: Any = e.details
        rows = []
        for threshold in details.thresholds:
            *cells, direction = error_cells(threshold, e)
            rows.append([threshold_name(threshold.label), *cells, _CLASSES_ARE[direction]])
        header = ["outcome", *error_header(e)[:-1], "predicted classes"]
        return [most_significant("Thresholds", [header, *rows], len(rows), ("outcome", "predicted classes"))]


WORDS = OrdinalWords()
