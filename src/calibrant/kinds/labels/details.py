"""`LabelsDetails`: the tests behind a verdict on class proportions."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from calibrant._support.formatting import format_pvalue, short_percent, short_repr
from calibrant._support.plain_data import label as json_label
from calibrant._support.plain_data import number
from calibrant.kinds.bounded_deviation import BoundedDetails, short_verdict
from calibrant.kinds.labels.verdict import ClassProportion
from calibrant.results.text import n_rows, rows_text
from calibrant.tables.class_table import ConfusionTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

_NAMED = 5  # classes that a sentence names


@dataclass(frozen=True, eq=False)
class LabelsDetails(BoundedDetails):
    """Results that only evaluations of predicted classes have.

    Attributes
    ----------
    classes : tuple of ClassProportion
        Predicted and actual proportion of each class.
    n_clusters : int or None
        None if rows are independent.

    See Also
    --------
    Evaluation, ClassProportion

    Examples
    --------
    >>> import calibrant as cb
    >>> details = cb.evaluate(["a", "b"] * 200, cb.Labels(["a", "a", "b", "a"] * 100)).details
    >>> details.largest.label, details.largest.difference
    ('a', 0.25)
    """

    __repr__ = short_repr

    classes: tuple[ClassProportion, ...]
    n_clusters: int | None = None

    def without_inference(self, n_clusters: int) -> "LabelsDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        return LabelsDetails(tuple(c.without_inference() for c in self.classes), n_clusters)

    def sentences(self, e: "Evaluation") -> list[str]:
        """Name the classes that are predicted significantly too often or too rarely."""
        shown = [c for c in self.classes if c.is_shown(e.settings.alpha, e.decision.group_factor)]
        sides = {"too often": "overestimates", "too rarely": "underestimates"}
        chosen = {how: [c for c in shown if c.side == side] for how, side in sides.items()}
        return [f"Predicted {how}: {self._named(classes)}." for how, classes in chosen.items() if classes]

    def _named(self, classes: Sequence[ClassProportion]) -> str:
        found = sorted(classes, key=lambda c: -abs(c.difference))
        shown = [
            f"{c.label} ({short_percent(c.predicted)} predicted, {short_percent(c.actual)} observed)"
            for c in found[:_NAMED]
        ]
        rest = len(found) - _NAMED
        return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")

    def sizes(self, table: ConfusionTable) -> dict[str, Any]:
        """Return the number of classes."""
        return {"n_classes": len(table)}

    def frame_columns(self, table: ConfusionTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows."""
        return {"rows": n_rows(table), "classes": len(table)}

    def sizes_text(self, table: ConfusionTable) -> str:
        """Format the number of rows and classes."""
        return f"{rows_text(table)}; {len(table):,} classes"

    def group_header(self, level: str) -> list[str]:
        """Return the header of the table of groups, without its first column."""
        return ["rows", "class", "predicted", "observed", f"difference ({level} CI)", "adjusted p", "verdict"]

    def group_cells(self, e: "Evaluation") -> list[str]:
        """Return the row of one group in the table of groups: its class with the largest difference."""
        c = self.largest
        interval = "" if math.isnan(c.low) else f" ({100 * c.low:+.2f} to {100 * c.high:+.2f})"
        return [
            f"{e.n_rows:,}",
            str(c.label),
            short_percent(c.predicted),
            short_percent(c.actual),
            f"{100 * c.difference:+.2f}{interval} points",
            format_pvalue(e.pvalue),
            short_verdict(e),
        ]

    @property
    def largest(self) -> ClassProportion:
        """The class with the largest difference."""
        return max(self.classes, key=lambda c: abs(c.difference))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return {"classes": [_plain(c) for c in self.classes], "n_clusters": self.n_clusters}


def _plain(c: ClassProportion) -> dict[str, Any]:
    found: dict[str, Any] = {"label": json_label(c.label)}
    for name, value in asdict(c).items():
        if name != "label":
            found |= number(name, value)
    return found
