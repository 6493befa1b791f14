"""`RegressionDetails`: results that only evaluations of point predictions and distributions have."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.formatting import format_pvalue, short_repr
from calibrant.inference.regression.point_line import LinearFit
from calibrant.kinds.point.deviations import Deviation
from calibrant.metrics.point import MSEDecomposition
from calibrant.results import deviation_sentences as regression_sentences
from calibrant.results.details import DeviationDetails
from calibrant.results.hypothesis_tests import OmnibusTest, TestResult
from calibrant.results.sizes import n_rows, rows_text
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import MeanTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

__all__ = ["RegressionDetails"]


@dataclass(frozen=True, eq=False)
class RegressionDetails(DeviationDetails):
    """Results that only evaluations of point predictions and distributions have.

    Attributes
    ----------
    kind : str
        point or distribution.
    decision : OmnibusTest
        The components of the joint test, each with its raw and its adjusted p-value.
    equivalence : Deviation
        Size of the deviation with bounds, and the margin.
    line : LinearFit or None
        Regression of outcomes on predictions; None where all predictions are equal or are not means.
    decomposition : MSEDecomposition
        CORP decomposition of the mean squared error.
    n_clusters : int or None
    other_tests : tuple of TestResult
        Tests of the PIT values: Anderson-Darling, Kolmogorov-Smirnov and chi-squared, with p-values for independent
        rows. Empty for point predictions.
    pit : ndarray
        PIT values of the rows; empty for point predictions.

    See Also
    --------
    Evaluation, OmnibusTest, Deviation

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.normal(size=2000)
    >>> details = cb.evaluate(p + rng.normal(size=2000), cb.Point(p + 0.2)).details
    >>> details.kind, details.line.slope.low < 1 < details.line.slope.high
    ('point', True)
    """

    __repr__ = short_repr

    kind: str
    decision: OmnibusTest
    equivalence: Deviation
    line: LinearFit | None
    decomposition: MSEDecomposition
    n_clusters: int | None = None
    other_tests: tuple[TestResult, ...] = ()
    pit: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def deviation(self) -> float:
        """Size of the deviation; it orders groups with equal p-values."""
        return 0.0 if math.isnan(self.equivalence.value) else self.equivalence.value

    @property
    def coefficients(self) -> tuple[Estimate, ...]:
        """Slope and intercept of outcomes on predictions, where they are defined."""
        return () if self.line is None else (self.line.slope, self.line.intercept)

    def deciding_tests(self, factor: float) -> Iterable[TestResult]:
        """Return the components of the joint test; `factor` adjusts p-values for the number of groups.

        Parameters
        ----------
        factor : float
            Factor of the adjusted p-values; 1 without groups.

        Returns
        -------
        iterable of TestResult
            The tests, with p-values that are adjusted for their number and for groups.
        """
        return self.decision.scale(factor).components.values()

    def direction(self, alpha: float, factor: float) -> str:
        """Return the significant directions, comma-joined.

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
        without = ("slope",) if self.kind == "distribution" else ()
        return self.decision.scale(factor).direction(alpha, without=without)

    def sentences(self, e: "Evaluation") -> list[str]:
        """Return no further sentences: the headline explains the verdict.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        list of str
            One sentence per element; may be empty.
        """
        return []

    def sizes(self, table: MeanTable) -> dict[str, Any]:
        """Return mean prediction and mean outcome.

        Parameters
        ----------
        table : MeanTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"mean_prediction": table.mean_prediction, "mean_outcome": table.mean_outcome}

    def frame_columns(self, table: MeanTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows.

        Parameters
        ----------
        table : MeanTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"rows": n_rows(table), "mean_outcome": table.mean_outcome}

    def sizes_text(self, table: MeanTable) -> str:
        """Format the number of rows, mean prediction and mean outcome.

        Parameters
        ----------
        table : MeanTable
            Table of the rows.

        Returns
        -------
        str
        """
        weighted = "weighted " if table.importance else ""
        return (
            f"{rows_text(table)}; {weighted}mean prediction {table.mean_prediction:.4g}, "
            f"{weighted}mean outcome {table.mean_outcome:.4g}"
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
        return ["rows", "mean error", f"{level} CI", "adjusted p", "verdict"]

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
        value, interval, _, _ = e["mean error"].cells()
        return [f"{n_rows(e.table):,}", value, interval, format_pvalue(e.pvalue), regression_sentences.short_verdict(e)]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "omnibus": {name: component.to_dict() for name, component in self.decision.components.items()},
            "line": None if self.line is None else self.line.to_dict(),
            "decomposition": self.decomposition.to_dict(),
            "n_clusters": self.n_clusters,
        }
