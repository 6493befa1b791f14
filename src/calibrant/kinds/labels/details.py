"""`LabelsDetails`: the tests behind a verdict on class proportions."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from calibrant._support.formatting import format_pvalue, short_repr
from calibrant._support.plain_data import label as json_label
from calibrant._support.plain_data import number
from calibrant.kinds.labels.verdict import ClassProportion, ProportionDecision
from calibrant.kinds.point.deviations import Deviation
from calibrant.results import deviation_sentences as regression_sentences
from calibrant.results.details import DeviationDetails
from calibrant.results.hypothesis_tests import TestResult
from calibrant.results.sizes import n_rows, rows_text
from calibrant.results.uncertainty import Estimate
from calibrant.tables.class_table import ConfusionTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

__all__ = ["LabelsDetails"]

_NAMED = 5  # classes that a sentence names


@dataclass(frozen=True, eq=False)
class LabelsDetails(DeviationDetails):
    """Results that only evaluations of predicted classes have.

    Attributes
    ----------
    decision : ProportionDecision
        The tests, and the predicted and actual proportion of each class.
    coefficients : tuple of Estimate
        Empty.
    other_tests : tuple of TestResult
        Tests that do not decide the verdict.

    See Also
    --------
    Evaluation, ProportionDecision

    Examples
    --------
    >>> import calibrant as cb
    >>> details = cb.evaluate(["a", "b"] * 200, cb.Labels(["a", "a", "b", "a"] * 100)).details
    >>> details.largest.label, details.largest.difference
    ('a', 0.25)
    """

    __repr__ = short_repr

    decision: ProportionDecision
    coefficients: tuple[Estimate, ...] = ()
    other_tests: tuple[TestResult, ...] = ()

    @property
    def equivalence(self) -> Deviation:
        """Largest difference of a class proportion with bounds, and the margin."""
        return self.decision.equivalence

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None if rows are independent."""
        return self.decision.n_clusters

    @property
    def deviation(self) -> float:
        """Size of the deviation; it orders groups with equal p-values."""
        return self.equivalence.value

    def deciding_tests(self, factor: float) -> Iterable[TestResult]:
        """Return the components of the omnibus test; `factor` adjusts p-values for the number of groups.

        Parameters
        ----------
        factor : float
            Factor of the adjusted p-values; 1 without groups.

        Returns
        -------
        iterable of TestResult
            The tests, with p-values that are adjusted for their number and for groups.
        """
        return self.decision.omnibus.scale(factor).components.values()

    def direction(self, alpha: float, factor: float) -> str:
        """Return the significant directions, comma-joined; local if no single class is significant.

        Parameters
        ----------
        alpha : float
            Significance level.
        factor : float
            Factor of the adjusted p-values; 1 without groups.

        Returns
        -------
        str
            Comma-joined words such as "overestimates"; '' if none is shown.
        """
        over, under = self.decision.too_often(alpha, factor), self.decision.too_rarely(alpha, factor)
        found = ["overestimates"] * bool(over) + ["underestimates"] * bool(under)
        return ", ".join(found) or ("local" if self.pvalue * factor <= alpha else "")

    def sentences(self, e: "Evaluation") -> list[str]:
        """Name the classes that are predicted significantly too often or too rarely.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        list of str
            One sentence per element; may be empty.
        """
        alpha, factor = e.settings.alpha, e.group_factor
        chosen = {
            "too often": self.decision.too_often(alpha, factor),
            "too rarely": self.decision.too_rarely(alpha, factor),
        }
        return [f"Predicted {how}: {self._named(labels)}." for how, labels in chosen.items() if labels]

    def _named(self, labels: Sequence[Any]) -> str:
        found = sorted((c for c in self.decision.classes if c.label in labels), key=lambda c: -abs(c.difference))
        shown = [
            f"{c.label} ({_percent(c.predicted)} predicted, {_percent(c.actual)} observed)" for c in found[:_NAMED]
        ]
        rest = len(found) - _NAMED
        return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")

    def sizes(self, table: ConfusionTable) -> dict[str, Any]:
        """Return the number of classes.

        Parameters
        ----------
        table : ConfusionTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"n_classes": len(table)}

    def frame_columns(self, table: ConfusionTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows.

        Parameters
        ----------
        table : ConfusionTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"rows": n_rows(table), "classes": len(table)}

    def sizes_text(self, table: ConfusionTable) -> str:
        """Format the number of rows and classes.

        Parameters
        ----------
        table : ConfusionTable
            Table of the rows.

        Returns
        -------
        str
        """
        return f"{rows_text(table)}; {len(table):,} classes"

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
        return ["rows", "class", "predicted", "observed", f"difference ({level} CI)", "adjusted p", "verdict"]

    def group_cells(self, e: "Evaluation") -> list[str]:
        """Return the row of one group in the table of groups: its class with the largest difference.

        Parameters
        ----------
        e : Evaluation
            The evaluation of the group.

        Returns
        -------
        list of str
            One text per column of `group_header`.
        """
        c = self.largest
        interval = "" if math.isnan(c.low) else f" ({100 * c.low:+.2f} to {100 * c.high:+.2f})"
        return [
            f"{n_rows(e.table):,}",
            str(c.label),
            _percent(c.predicted),
            _percent(c.actual),
            f"{100 * c.difference:+.2f}{interval} points",
            format_pvalue(e.pvalue),
            regression_sentences.short_verdict(e),
        ]

    @property
    def largest(self) -> ClassProportion:
        """The class with the largest difference."""
        return max(self.decision.classes, key=lambda c: abs(c.difference))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {"classes": [_plain(c) for c in self.decision.classes], "n_clusters": self.n_clusters}


def _plain(c: ClassProportion) -> dict[str, Any]:
    found: dict[str, Any] = {"label": json_label(c.label)}
    for name, value in asdict(c).items():
        if name != "label":
            found |= number(name, value)
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
