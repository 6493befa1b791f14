"""`PointDetails`: results that only evaluations of point predictions and distributions have."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibrant._support.formatting import format_pvalue, short_repr
from calibrant.inference.regression.point_line import LinearFit
from calibrant.kinds.bounded_deviation import BoundedDetails, short_verdict
from calibrant.metrics.point import MSEDecomposition
from calibrant.results.text import n_rows, rows_text
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import MeanTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class PointDetails(BoundedDetails):
    """Results that evaluations of point predictions and distributions have.

    Attributes
    ----------
    line : LinearFit or None
        Regression of outcomes on predictions; None where all predictions are equal or are not means.
    decomposition : MSEDecomposition
        CORP decomposition of the mean squared error.
    n_clusters : int or None

    See Also
    --------
    Evaluation, DistributionDetails, Verdict

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.normal(size=2000)
    >>> details = cb.evaluate(p + rng.normal(size=2000), cb.Point(p + 0.2)).details
    >>> details.line.slope.low < 1 < details.line.slope.high
    True
    """

    __repr__ = short_repr

    line: LinearFit | None
    decomposition: MSEDecomposition
    n_clusters: int | None = None

    def without_inference(self, n_clusters: int) -> "PointDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        line = None if self.line is None else self.line.without_inference()
        return replace(self, line=line, n_clusters=n_clusters)

    @property
    def coefficients(self) -> tuple[Estimate, ...]:  # type: ignore[override]  # those of the line
        """Slope and intercept of outcomes on predictions, where they are defined."""
        return () if self.line is None else (self.line.slope, self.line.intercept)

    @property
    def point_name(self) -> str:
        """What the point predictions of the rows are."""
        return "prediction"

    def sizes(self, table: MeanTable) -> dict[str, Any]:
        """Return mean prediction and mean outcome."""
        return {"mean_prediction": table.mean_prediction, "mean_outcome": table.mean_outcome}

    def frame_columns(self, table: MeanTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows."""
        return {"rows": n_rows(table), "mean_outcome": table.mean_outcome}

    def sizes_text(self, table: MeanTable) -> str:
        """Format the number of rows, mean prediction and mean outcome."""
        weighted = "weighted " if table.importance else ""
        return (
            f"{rows_text(table)}; {weighted}mean {self.point_name} {table.mean_prediction:.4g}, "
            f"{weighted}mean outcome {table.mean_outcome:.4g}"
        )

    def group_header(self, level: str) -> list[str]:
        """Return the header of the table of groups, without its first column."""
        return ["rows", "mean error", f"{level} CI", "adjusted p", "verdict"]

    def group_cells(self, e: "Evaluation") -> list[str]:
        """Return the row of one group in the table of groups."""
        value, interval, _, _ = e["mean error"].cells()
        return [f"{e.n_rows:,}", value, interval, format_pvalue(e.pvalue), short_verdict(e)]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return {
            "line": None if self.line is None else self.line.to_dict(),
            "decomposition": self.decomposition.to_dict(),
            "n_clusters": self.n_clusters,
        }
