"""`MulticlassDetails`: the tests behind a verdict on class probabilities."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibrant._support.formatting import short_percent, short_repr
from calibrant._support.plain_data import label as json_label
from calibrant.kinds.log_odds import LogOddsDetails, explanation, listed
from calibrant.kinds.multiclass.confusions import Confusion
from calibrant.kinds.multiclass.verdict import ClassDeviation
from calibrant.results.text import n_rows, rows_text
from calibrant.tables.class_table import ClassTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class MulticlassDetails(LogOddsDetails):
    """Results that only evaluations of class probabilities have.

    Attributes
    ----------
    estimate : LogOddsEstimate
        The class-wise log-odds error with interval and null distribution, and the information of the rows: half the
        sum of p (1 - p) over rows and classes.
    classes : tuple of ClassDeviation
        Each class against the rest.
    confusions : tuple of Confusion
        The most significant pairs of classes, at most 100.
    n_confusions : int
        Number of significant pairs.
    labels : tuple
        The classes; results refer to them by position.
    decompositions : mapping
        Murphy and CORP decompositions of the Brier score, each summed over classes.
    top_label : pair of floats
        Mean of the highest probability of each row, and the share of rows whose class it was.
    rows_needed : int or None
        Number of further rows that would probably decide an inconclusive verdict, where it is known.

    See Also
    --------
    Evaluation, ClassDeviation

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 1000)
    >>> y = (proba.cumsum(axis=1) > rng.random((1000, 1)) ** 2).argmax(axis=1)
    >>> details = cb.evaluate(y, proba, n_resamples=99).details
    >>> details.labels, [round(each, 2) for each in details.top_label]
    ((0, 1, 2), [0.54, 0.48])
    """

    __repr__ = short_repr

    average_over = " over classes"
    certain_scores = "0"

    classes: tuple[ClassDeviation, ...]
    confusions: tuple[Confusion, ...]
    n_confusions: int
    labels: tuple[Any, ...]
    decompositions: dict[str, dict[str, float]]
    top_label: tuple[float, float]
    rows_needed: int | None = None

    def without_inference(self, n_clusters: int) -> "MulticlassDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        estimate = self.estimate.without_inference(n_clusters)
        classes = tuple(each.without_inference() for each in self.classes)
        return replace(self, estimate=estimate, classes=classes, confusions=(), n_confusions=0, rows_needed=None)

    def classes_that(self, direction: str, alpha: float, factor: float = 1.0) -> tuple[int, ...]:
        """Return the classes for which "overestimates" or "underestimates" is shown.

        Parameters
        ----------
        direction : {"overestimates", "underestimates"}
            Direction.
        alpha : float
            Significance level.
        factor : float, default=1
            Factor of the adjusted p-values, for several groups.

        Returns
        -------
        tuple of int
            Positions of the classes.
        """
        return tuple(each.label for each in self.classes if each.direction(alpha, factor) == direction)

    def sentences(self, e: "Evaluation") -> list[str]:
        """Explain the verdict, and name the classes that are over- or underestimated and those that are confused."""
        return [explanation(e), *self._class_sentences(e), *self._confusion_sentences(e)]

    def _class_sentences(self, e: "Evaluation") -> Iterable[str]:
        for direction in ("overestimates", "underestimates"):
            labels = self.classes_that(direction, e.settings.alpha, e.decision.group_factor)
            found = sorted((self.classes[i] for i in labels), key=lambda c: -abs(c.predicted - c.observed))
            if found:
                verb = direction.removesuffix("s").capitalize() + "d"
                yield f"{verb} classes: {listed([self._class_text(c) for c in found])}."

    def _class_text(self, c: ClassDeviation) -> str:
        return f"{self.labels[c.label]} ({short_percent(c.predicted)} predicted, {short_percent(c.observed)} observed)"

    def _confusion_sentences(self, e: "Evaluation") -> Iterable[str]:
        found = [c for c in self.confusions if c.adjusted_pvalue * e.decision.group_factor <= e.settings.alpha]
        shown = [
            f"{self.labels[c.label]} where {self.labels[c.predicted_label]} is predicted ({short_percent(c.predicted)} "
            f"predicted, {short_percent(c.observed)} observed)"
            for c in found
        ]
        if shown:
            yield f"More frequent than predicted: {listed(shown, max(self.n_confusions, len(shown)))}."

    def sizes(self, table: ClassTable) -> dict[str, Any]:
        """Return the number of classes and the accuracy."""
        return {"n_classes": table.n_classes, "accuracy": table.accuracy}

    def frame_columns(self, table: ClassTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows."""
        return {"rows": n_rows(table), "classes": table.n_classes}

    def sizes_text(self, table: ClassTable) -> str:
        """Format the number of rows and classes, the mean confidence and the accuracy."""
        top = self.top_label
        return (
            f"{rows_text(table)}; {table.n_classes:,} classes; mean top-label probability {short_percent(top[0])}, "
            f"accuracy {short_percent(top[1])}"
        )

    def mean_texts(self) -> dict[str, str]:
        """Return the mean of the highest probability of each row, and the accuracy."""
        return dict(zip(("mean top probability", "accuracy"), map(short_percent, self.top_label), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return {
            **self.estimate_dict(),
            "classes": [each.to_dict() for each in self.classes],
            "confusions": [each.to_dict() for each in self.confusions],
            "n_confusions": self.n_confusions,
            "labels": [json_label(label) for label in self.labels],
            "decompositions": self.decompositions,
            "mean_top_label_probability": self.top_label[0],
            "accuracy": self.top_label[1],
        }
