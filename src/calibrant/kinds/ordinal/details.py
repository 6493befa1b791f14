"""`OrdinalDetails`: results that only evaluations of ordered classes have."""

from dataclasses import dataclass, replace
from typing import Any

from calibrant._support.formatting import short_percent, short_repr
from calibrant._support.plain_data import label as json_label
from calibrant._support.plain_data import plain
from calibrant.kinds.log_odds import LogOddsDetails, explanation, listed
from calibrant.kinds.ordinal.verdict import Threshold
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import n_rows, rows_text
from calibrant.tables.class_table import ClassTable


@dataclass(frozen=True, eq=False)
class OrdinalDetails(LogOddsDetails):
    """Results that only evaluations of ordered classes have.

    Attributes
    ----------
    estimate : LogOddsEstimate
        The cumulative log-odds error with its interval, and the information of the rows: the mean over thresholds.
    thresholds : tuple of Threshold
        Each class but the highest: is it, or a lower one, predicted as often as it occurs?
    labels : tuple
        The classes, from the lowest to the highest.
    decompositions : mapping
        Murphy and CORP decompositions of the ranked probability score, each summed over thresholds.
    mean_class : pair of floats
        Mean predicted and mean observed class, counted from 0.
    rows_needed : int or None
        Number of further rows that would probably decide an inconclusive verdict, where it is known.

    See Also
    --------
    Evaluation, Threshold

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 1000)
    >>> y = (proba.cumsum(axis=1) > rng.random((1000, 1)) ** 2).argmax(axis=1)
    >>> details = cb.evaluate(y, cb.Ordinal(proba), n_resamples=99).details
    >>> [round(mean, 2) for mean in details.mean_class]
    [0.99, 0.6]
    """

    __repr__ = short_repr
    average_over = " over thresholds"
    certain_scores = "0"

    thresholds: tuple[Threshold, ...]
    labels: tuple[Any, ...]
    decompositions: dict[str, dict[str, float]]
    mean_class: tuple[float, float]
    rows_needed: int | None = None

    def without_inference(self, n_clusters: int) -> "OrdinalDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        estimate = self.estimate.without_inference(n_clusters)
        thresholds = tuple(each.without_inference() for each in self.thresholds)
        return replace(self, estimate=estimate, thresholds=thresholds, rows_needed=None)

    @property
    def classes(self) -> tuple[Threshold, ...]:
        """The thresholds, under the name that diagrams of classes read."""
        return self.thresholds

    def sentences(self, e: Evaluation) -> list[str]:
        """Explain the verdict, and name the thresholds that are over- or underestimated."""
        alpha, factor = e.settings.alpha, e.decision.group_factor
        shown = [t for t in self.thresholds if t.direction(alpha, factor)]
        texts = [
            f"at most {t.label} ({short_percent(t.predicted)} predicted, {short_percent(t.observed)} observed)"
            for t in sorted(shown, key=lambda t: -abs(t.predicted - t.observed))
        ]
        return [explanation(e), *([f"Thresholds that deviate: {listed(texts)}."] if texts else [])]

    def sizes(self, table: ClassTable) -> dict[str, Any]:
        """Return the number of classes, and the mean predicted and observed class."""
        return {
            "n_classes": table.n_classes,
            "mean_predicted_class": self.mean_class[0],
            "mean_observed_class": self.mean_class[1],
        }

    def frame_columns(self, table: ClassTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows."""
        return {"rows": n_rows(table), "classes": table.n_classes}

    def sizes_text(self, table: ClassTable) -> str:
        """Format the number of rows and ordered classes, and the mean predicted and observed class."""
        low, high = table.labels[0], table.labels[-1]
        predicted, observed = self.mean_class
        return (
            f"{rows_text(table)}; {table.n_classes:,} ordered classes, {low} to {high}; mean class {predicted:.3f} "
            f"predicted, {observed:.3f} observed (from 0)"
        )

    def mean_texts(self) -> dict[str, str]:
        """Return the mean predicted and the mean observed class."""
        predicted, observed = self.mean_class
        return {"mean predicted": f"{predicted:.3f}", "mean observed": f"{observed:.3f}"}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return {
            **self.estimate_dict(),
            "thresholds": [plain(t) | {"label": json_label(t.label)} for t in self.thresholds],
            "labels": [json_label(label) for label in self.labels],
            "decompositions": self.decompositions,
            "mean_predicted_class": self.mean_class[0],
            "mean_observed_class": self.mean_class[1],
        }
