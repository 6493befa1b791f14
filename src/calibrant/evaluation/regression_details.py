"""`RegressionDetails`: the tests behind a verdict on point predictions or predictive distributions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._support.formatting import format_pvalue
from calibrant._support.typing import Floats
from calibrant.evaluation import regression_sentences
from calibrant.evaluation.sizes import rows_in_words
from calibrant.inference.coefficients import Coefficient
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.joint_test import JointTest
from calibrant.inference.point_line import LinearFit
from calibrant.inference.regression_verdict import Deviation, direction_of, rows_to_decide
from calibrant.metrics.point_decomposition import MSEDecomposition
from calibrant.tables.mean_table import MeanTable

if TYPE_CHECKING:
    from calibrant.evaluation.results import Evaluation

__all__ = ["RegressionDetails"]


@dataclass(frozen=True, eq=False)
class RegressionDetails:
    """Results that only evaluations of point predictions and distributions have.

    Attributes
    ----------
    kind : str
        point or distribution.
    decision : JointTest
        The components of the joint test, each with its raw and its adjusted p-value.
    equivalence : Deviation
        Size of the deviation with bounds, and the margin.
    line : LinearFit or None
        Regression of outcomes on predictions; None where all predictions are equal or are not means.
    decomposition : MSEDecomposition
        CORP decomposition of the mean squared error.
    n_clusters : int or None
    other_tests : tuple of TestResult
        Of the PIT values: Anderson-Darling, Kolmogorov-Smirnov and chi-squared, with p-values that assume independent
        rows. Empty for point predictions.
    pit : ndarray
        PIT values of the rows; empty for point predictions.
    """

    kind: str
    decision: JointTest
    equivalence: Deviation
    line: LinearFit | None
    decomposition: MSEDecomposition
    n_clusters: int | None = None
    other_tests: tuple[TestResult, ...] = ()
    pit: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def pvalue(self) -> float:
        """p-value of the joint test, not adjusted for groups; NaN where nothing can be tested."""
        return self.decision.pvalue

    @property
    def deviation(self) -> float:
        """Size of the deviation, by which groups with equal p-values are ordered."""
        return 0.0 if math.isnan(self.equivalence.value) else self.equivalence.value

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Slope and intercept of outcomes on predictions, where they exist."""
        if self.line is None:
            return ()
        targets = (("slope", self.line.slope, 1.0), ("intercept", self.line.intercept, 0.0))
        return tuple(Coefficient(name, e.value, e.low, e.high, e.level, target) for name, e, target in targets)

    def deciding_tests(self, factor: float) -> Iterable[TestResult]:
        """The components of the joint test; `factor` adjusts their p-values for the number of groups."""
        for c in self.decision.scaled(factor).components.values():
            yield TestResult(c.statistic, c.pvalue, c.name, adjusted_pvalue=c.adjusted)

    def direction(self, alpha: float, factor: float) -> str:
        """Directions whose tests are significant."""
        return direction_of(self.decision.scaled(factor), alpha, self.kind)

    def group_factor(self, adjusted: float, count: int) -> float:
        """Factor of the p-values of a group, one of `count`, whose adjusted p-value is given."""
        return adjusted / self.pvalue if self.pvalue > 0 else float(count)

    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """p-value of a metric in a group."""
        return pvalue if math.isnan(pvalue) else min(1.0, factor * pvalue)

    def rows_to_decide(self, e: "Evaluation") -> int | None:
        """Number of further rows that would probably decide."""
        more = rows_to_decide(self.equivalence, e.table.size)
        return None if math.isnan(more) else regression_sentences.round_up(more)

    def headline(self, e: "Evaluation") -> str:
        """The verdict in one line."""
        return regression_sentences.headline(e)

    def sentences(self, e: "Evaluation") -> list[str]:
        """Further sentences about the verdict; the headline has all of them."""
        return []

    def reasons(self, e: "Evaluation") -> Iterable[str]:
        """The tests behind the verdict, the coefficients and the other tests."""
        return regression_sentences.reasons(e)

    def sizes(self, table: MeanTable) -> dict[str, Any]:
        """Mean prediction and mean outcome."""
        return {"mean_prediction": table.mean_prediction, "mean_outcome": table.mean_outcome}

    def frame_columns(self, table: MeanTable) -> dict[str, Any]:
        """Columns of a frame about the rows."""
        return {"rows": table.size, "mean_outcome": table.mean_outcome}

    def sizes_in_words(self, table: MeanTable) -> str:
        """Number of rows, mean prediction and mean outcome."""
        weighted = "weighted " if table.importance else ""
        return (
            f"{rows_in_words(table)}; {weighted}mean prediction {table.mean_prediction:.4g}, "
            f"{weighted}mean outcome {table.mean_outcome:.4g}"
        )

    def group_header(self, level: str) -> list[str]:
        """Header of the table of groups, without the group."""
        return ["rows", "mean error", f"{level} CI", "adjusted p", "verdict"]

    def group_cells(self, e: "Evaluation") -> list[str]:
        """The row of this evaluation in a table of groups."""
        value, interval, _, _ = e["mean error"].cells()
        return [f"{e.table.size:,.6g}", value, interval, format_pvalue(e.pvalue), regression_sentences.short_verdict(e)]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {
            "joint_test": {name: component.to_dict() for name, component in self.decision.components.items()},
            "line": None if self.line is None else self.line.to_dict(),
            "decomposition": self.decomposition.to_dict(),
            "n_clusters": self.n_clusters,
        }
