"""`BinaryDetails`: the tests behind a verdict on predicted probabilities."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant._support.errors import InputError
from calibrant._support.formatting import format_pvalue
from calibrant._support.json_values import plain
from calibrant.evaluation import sentences
from calibrant.evaluation.sizes import mean_score, rows_in_words
from calibrant.inference.bands import Band, cumulative_band
from calibrant.inference.coefficients import Coefficient
from calibrant.inference.decision import Decision
from calibrant.inference.hypothesis_tests import TestResult, ecce_test
from calibrant.inference.intervals import Equivalence
from calibrant.inference.power import rows_to_decide
from calibrant.metrics.cumulative import Ecce, ecce
from calibrant.metrics.decompositions import CorpDecomposition
from calibrant.tables.score_table import ScoreTable

if TYPE_CHECKING:
    from calibrant.evaluation.results import Evaluation

__all__ = ["BinaryDetails", "CumulativeDifferences"]


@dataclass(frozen=True, eq=False)
class CumulativeDifferences:
    """ECCE with its band and test, for the diagram of cumulative differences.

    Attributes
    ----------
    ecce : Ecce
    band : Band
    test : TestResult or None
        None where it does not exist: importance weights, or scores of 0 and 1 only.
    """

    ecce: Ecce
    band: Band
    test: TestResult | None

    @classmethod
    def measure(cls, table: ScoreTable) -> "CumulativeDifferences":
        """Measure a table."""
        try:
            test: TestResult | None = ecce_test(table, kind="mad")
        except InputError:
            test = None
        return cls(ecce(table), cumulative_band(table), test)


@dataclass(frozen=True, eq=False)
class BinaryDetails:
    """Results that only evaluations of probabilities have.

    Attributes
    ----------
    decision : Decision
        The tests behind the verdict, the log-odds error and its equivalence test.
    equivalence : Equivalence
        The equivalence test that the verdict uses.
    coefficients : tuple of Coefficient
        Calibration in the large, calibration slope and Cox's intercept, where they exist.
    other_tests : tuple of TestResult
        Tests that do not decide the verdict.
    decomposition : CorpDecomposition
        CORP decomposition of the Brier score.
    cumulative : CumulativeDifferences
    """

    decision: Decision
    equivalence: Equivalence
    coefficients: tuple[Coefficient, ...]
    other_tests: tuple[TestResult, ...]
    decomposition: CorpDecomposition
    cumulative: CumulativeDifferences

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test, not adjusted for groups."""
        return self.decision.pvalue

    @property
    def deviation(self) -> float:
        """Size of the deviation, by which groups with equal p-values are ordered."""
        return self.decision.log_odds_error.value

    @property
    def impossible_outcomes(self) -> float:
        """Events among rows with score 0, and rows without the event among those with score 1."""
        return sum(c.statistic for c in self.decision.components if c.name == "impossible outcomes")

    def deciding_tests(self, factor: float) -> Iterable[TestResult]:
        """The components of the omnibus test; `factor` adjusts their p-values for the number of groups."""
        for c, p in zip(self.decision.components, self.decision.adjusted, strict=True):
            yield TestResult(c.statistic, c.pvalue, c.name, c.df, adjusted_pvalue=min(p * factor, 1.0))

    def direction(self, alpha: float, factor: float) -> str:
        """Directions whose tests are significant."""
        return self.decision.direction(alpha, factor)

    def group_factor(self, adjusted: float, count: int) -> float:
        """Factor of the p-values of a group, one of `count`, whose adjusted p-value is given."""
        return adjusted / self.pvalue if self.pvalue > 0 else 1.0

    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """p-value of a metric in a group."""
        return max(pvalue, adjusted)

    def rows_to_decide(self, e: "Evaluation") -> int | None:
        """Number of further rows that would probably decide."""
        if e.settings.is_absolute or not self.decision.information > 0:
            return None
        return rows_to_decide(e.n_rows, self.decision.information, e.margin, e.settings.alpha)

    def headline(self, e: "Evaluation") -> str:
        """The verdict in one line."""
        return sentences.headline(e)

    def sentences(self, e: "Evaluation") -> list[str]:
        """Explanation of the verdict, and its consequence at the mean score."""
        return [text for text in (sentences.explanation(e), sentences.consequence(e)) if text]

    def reasons(self, e: "Evaluation") -> Iterable[str]:
        """The tests behind the verdict, the coefficients and the other tests."""
        return sentences.reasons(e)

    def sizes(self, table: ScoreTable) -> dict[str, Any]:
        """Numbers of events, event rate and mean score."""
        return {"positives": table.positives, "prevalence": table.prevalence, "mean_score": mean_score(table)}

    def frame_columns(self, table: ScoreTable) -> dict[str, Any]:
        """Columns of a frame about the rows."""
        return {"rows": table.size, "event_rate": table.prevalence}

    def sizes_in_words(self, table: ScoreTable) -> str:
        """Number of rows, mean score and event rate."""
        predicted, observed = 100 * mean_score(table), 100 * table.prevalence
        weighted = "weighted " if table.importance else ""
        return f"{rows_in_words(table)}; {weighted}mean score {predicted:.4g} %, {weighted}event rate {observed:.4g} %"

    def group_header(self, level: str) -> list[str]:
        """Header of the table of groups, without the group."""
        return ["rows", "mean score", "event rate", "log-odds error", f"{level} CI", "adjusted p", "verdict"]

    def group_cells(self, e: "Evaluation") -> list[str]:
        """The row of this evaluation in a table of groups."""
        error, table = self.decision.log_odds_error, e.table
        return [
            f"{table.size:,}" if isinstance(table.size, int) else f"{table.size:,.6g}",
            f"{100 * e.mean_score:.3g} %",
            f"{100 * e.event_rate:.3g} %",
            f"{error.value:.2f}",
            "" if math.isnan(error.low) else f"{error.low:.2f} to {error.high:.2f}",
            format_pvalue(e.pvalue),
            sentences.headline(e),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        test = self.cumulative.test
        return {
            "decision": self.decision.to_dict(),
            "decomposition": plain(self.decomposition),
            "ecce": plain(self.cumulative.ecce),
            "ecce_test": None if test is None else test.to_dict(),
        }
