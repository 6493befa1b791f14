"""`MulticlassDetails`: the tests behind a verdict on class probabilities."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant._support.formatting import format_pvalue, short_repr
from calibrant._support.plain_data import label as json_label
from calibrant.kinds.log_odds import LogOddsDetails, explanation
from calibrant.kinds.multiclass.confusions import Confusion
from calibrant.kinds.multiclass.verdict import ClassDecision
from calibrant.results.sentences import headline
from calibrant.results.text import n_rows, rows_text
from calibrant.tables.class_table import ClassTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

_NAMED = 5  # classes or pairs of classes that a sentence names


@dataclass(frozen=True, eq=False)
class MulticlassDetails(LogOddsDetails):
    """Results that only evaluations of class probabilities have.

    Attributes
    ----------
    estimate : LogOddsEstimate
        The class-wise log-odds error with interval and null distribution, and the information of the rows: half the
        sum of p (1 - p) over rows and classes.
    classes : tuple of ClassDecision
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
    Evaluation, ClassDecision

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

    classes: tuple[ClassDecision, ...]
    confusions: tuple[Confusion, ...]
    n_confusions: int
    labels: tuple[Any, ...]
    decompositions: dict[str, dict[str, float]]
    top_label: tuple[float, float]
    rows_needed: int | None = None

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
        """Explain the verdict, and name the classes that are over- or underestimated and those that are confused.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        list of str
            One sentence per element; may be empty.
        """
        return [explanation(e), *self._class_sentences(e), *self._confusion_sentences(e)]

    def _class_sentences(self, e: "Evaluation") -> Iterable[str]:
        for direction in ("overestimates", "underestimates"):
            found = self.classes_that(direction, e.settings.alpha, e.decision.group_factor)
            if found:
                verb = direction.removesuffix("s").capitalize() + "d"
                yield f"{verb} classes: {self._listed([self._class_text(c) for c in self._largest(found)])}."

    def _largest(self, labels: Sequence[int]) -> list[ClassDecision]:
        found = [self.classes[label] for label in labels]
        return sorted(found, key=lambda c: -abs(c.predicted - c.observed))

    def _class_text(self, c: ClassDecision) -> str:
        return f"{self.labels[c.label]} ({_percent(c.predicted)} predicted, {_percent(c.observed)} observed)"

    def _confusion_sentences(self, e: "Evaluation") -> Iterable[str]:
        found = [c for c in self.confusions if c.adjusted_pvalue * e.decision.group_factor <= e.settings.alpha]
        shown = [
            f"{self.labels[c.label]} where {self.labels[c.predicted_label]} is predicted ({_percent(c.predicted)} "
            f"predicted, {_percent(c.observed)} observed)"
            for c in found
        ]
        if shown:
            yield f"More frequent than predicted: {self._listed(shown, max(self.n_confusions, len(shown)))}."

    def _listed(self, texts: Sequence[str], count: int | None = None) -> str:
        rest = (len(texts) if count is None else count) - _NAMED
        return "; ".join(texts[:_NAMED]) + (f"; and {rest:,} more" if rest > 0 else "")

    def sizes(self, table: ClassTable) -> dict[str, Any]:
        """Return the number of classes and the accuracy.

        Parameters
        ----------
        table : ClassTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"n_classes": table.n_classes, "accuracy": table.accuracy}

    def frame_columns(self, table: ClassTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows.

        Parameters
        ----------
        table : ClassTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"rows": n_rows(table), "classes": table.n_classes}

    def sizes_text(self, table: ClassTable) -> str:
        """Format the number of rows and classes, the mean confidence and the accuracy.

        Parameters
        ----------
        table : ClassTable
            Table of the rows.

        Returns
        -------
        str
        """
        top = self.top_label
        return (
            f"{rows_text(table)}; {table.n_classes:,} classes; mean top-label probability {_percent(top[0])}, "
            f"accuracy {_percent(top[1])}"
        )

    def group_header(self, level: str) -> list[str]:
        """Return the header of the table of groups, without its first column.

        Parameters
        ----------
        level : str
            Confidence level as text, such as "95 %".

        Returns
        -------
        list of str
            Names of the columns.
        """
        return ["rows", "mean top probability", "accuracy", "log-odds error", f"{level} CI", "adjusted p", "verdict"]

    def group_cells(self, e: "Evaluation") -> list[str]:
        """Return the row of one group in the table of groups.

        Parameters
        ----------
        e : Evaluation
            The evaluation of the group.

        Returns
        -------
        list of str
            One text per column of `group_header`.
        """
        error = self.log_odds_error
        return [
            f"{n_rows(e.table):,}",
            _percent(self.top_label[0]),
            _percent(self.top_label[1]),
            f"{error.value:.2f}",
            "" if math.isnan(error.low) else f"{error.low:.2f} to {error.high:.2f}",
            format_pvalue(e.pvalue),
            headline(e),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
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


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
