"""`BinaryDetails`: results that only evaluations of predicted probabilities have."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.random import SeedSequence

from calibrant._support.errors import InputError
from calibrant._support.formatting import format_pvalue, short_repr
from calibrant._support.plain_data import plain
from calibrant._support.workers import cached_property, run_together
from calibrant.inference.bands import Band, cumulative_band
from calibrant.inference.calibration_tests import TESTS_OF_FITS, TESTS_OF_SUMS, ecce_test
from calibrant.inference.design import Design
from calibrant.inference.levels import CalibrationLevels, calibration_levels, coefficients
from calibrant.inference.power import rows_to_decide
from calibrant.inference.resampling import uses_threads
from calibrant.kinds.binary.sensitivity import Sensitivity
from calibrant.kinds.binary.verdict import Decision
from calibrant.metrics.bins import EqualInformation, Quantile
from calibrant.metrics.calibration_errors import Ecce, ecce
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import absolute_gap
from calibrant.metrics.norms import weighted_l1
from calibrant.metrics.proper_scores import CorpDecomposition, corp_decomposition
from calibrant.metrics.rejection_profile import RejectionProfile
from calibrant.results import sentences
from calibrant.results.details import LogOddsDetails
from calibrant.results.hypothesis_tests import TestResult
from calibrant.results.settings import AbsoluteMargin, Settings
from calibrant.results.sizes import mean_score, n_rows, rows_text
from calibrant.results.uncertainty import Equivalence, Estimate
from calibrant.tables.score_table import ScoreTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

__all__ = ["BinaryDetails", "CumulativeDifferences", "MeasuredTable"]


@dataclass(frozen=True, eq=False)
class CumulativeDifferences:
    """ECCE with its null band and test, for the diagram of cumulative differences.

    Attributes
    ----------
    ecce : Ecce
    band : Band
    test : TestResult or None
        None where it is undefined: with importance weights, or with scores of 0 and 1 only.

    See Also
    --------
    ecce, CumulativeDisplay

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.evaluate(table).details.cumulative
    >>> round(found.ecce.mad, 3), round(found.test.pvalue, 2)
    (0.03, 0.37)
    """

    __repr__ = short_repr

    ecce: Ecce
    band: Band
    test: TestResult | None

    @classmethod
    def measure(cls, table: ScoreTable) -> "CumulativeDifferences":
        """Compute ECCE, its band and its test for a table.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        CumulativeDifferences
            Its test is None where the data do not allow one.
        """
        try:
            test: TestResult | None = ecce_test(table, kind="mad")
        except InputError:
            test = None
        return cls(ecce(table), cumulative_band(table), test)


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """What details are computed from: the table, its design (None if nothing is tested), and breakdowns."""

    __repr__ = short_repr

    table: ScoreTable
    design: Design | None
    tested: Breakdown
    ece: Breakdown
    settings: Settings
    seed: SeedSequence

    @cached_property
    def coefficients(self) -> tuple[Estimate, ...]:
        """Calibration in the large, calibration slope and Cox's intercept, where they exist."""
        return () if self.design is None else coefficients(self.design, self.settings.confidence_level)

    @property
    def other_tests(self) -> tuple[TestResult, ...]:
        """Tests that do not decide the verdict; some are undefined for few rows, or for scores of 0 and 1 only."""
        return self._tests_of_sums + self._tests_of_fits

    @cached_property
    def _tests_of_sums(self) -> tuple[TestResult, ...]:
        return self._tests(TESTS_OF_SUMS)

    @cached_property
    def _tests_of_fits(self) -> tuple[TestResult, ...]:
        return self._tests(TESTS_OF_FITS)

    def _tests(self, tests: Iterable[Callable[..., TestResult]]) -> tuple[TestResult, ...]:
        found: list[TestResult] = []
        for test in tests if self.design is not None else ():
            try:
                found.append(test(self.design, n_resamples=self.settings.n_resamples, random_state=self.seed))
            except InputError:
                continue
        return tuple(found)

    @cached_property
    def levels(self) -> CalibrationLevels | None:
        """Levels of calibration: mean, weak and moderate; None if nothing is tested."""
        design, level = self.design, self.settings.confidence_level
        return None if design is None else calibration_levels(design, self.coefficients, level)

    @cached_property
    def decomposition(self) -> CorpDecomposition:
        """CORP decomposition of the Brier score."""
        return corp_decomposition(self.table)

    @cached_property
    def cumulative(self) -> CumulativeDifferences:
        """ECCE with its null band and test."""
        return CumulativeDifferences.measure(self.table)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """TCE at other significance levels and ECC at other cost ratios, for the sliders of the report."""
        return Sensitivity.measure(self.tested, self.ece)

    @cached_property
    def reliability(self) -> Breakdown:
        """Bins of the reliability diagram of the report: of equal information where scores crowd an end, else ACE's."""
        bins = EqualInformation(10) if self.table.crowds_end else Quantile(10)
        return GCE(bins, absolute_gap, weighted_l1, name="calibration gap")(self.table)

    @cached_property
    def rejection_profile(self) -> RejectionProfile | None:
        """Decisions of the test of TCE within each bin, for its diagram."""
        return RejectionProfile.measure(self.tested)

    def complete(self) -> None:
        """Compute all results now."""
        run_together(self._complete_design, self._complete_table, threads=uses_threads(self.table))

    def _complete_design(self) -> None:
        _ = self._tests_of_fits, self.coefficients, self.levels  # meanwhile the decision computes much of these

    def _complete_table(self) -> None:
        _ = self._tests_of_sums, self.decomposition, self.cumulative, self.sensitivity, self.reliability
        _ = self.rejection_profile


@dataclass(frozen=True, eq=False)
class BinaryDetails(LogOddsDetails):
    """Results that only evaluations of probabilities have; those that the verdict does not need are computed on demand.

    Attributes
    ----------
    decision : Decision
        The tests behind the verdict, the log-odds error and its equivalence test.
    equivalence : Equivalence
        The equivalence test that the verdict uses.
    measured : MeasuredTable

    See Also
    --------
    Evaluation, CalibrationLevels, Decision

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> details = cb.evaluate(table).details
    >>> round(details.log_odds_error.value, 2), details.decision.equivalence.within
    (0.2, False)
    """

    __repr__ = short_repr

    decision: Decision
    equivalence: Equivalence
    measured: MeasuredTable

    @property
    def coefficients(self) -> tuple[Estimate, ...]:
        """Calibration in the large, calibration slope and Cox's intercept, where they exist."""
        return self.measured.coefficients

    @property
    def levels(self) -> CalibrationLevels | None:
        """Levels of calibration: mean, weak and moderate; None if nothing is tested."""
        return self.measured.levels

    @property
    def other_tests(self) -> tuple[TestResult, ...]:
        """Tests that do not decide the verdict; some are undefined for few rows, or for scores of 0 and 1 only."""
        return self.measured.other_tests

    @property
    def decomposition(self) -> CorpDecomposition:
        """CORP decomposition of the Brier score."""
        return self.measured.decomposition

    @property
    def cumulative(self) -> CumulativeDifferences:
        """ECCE with its null band and test."""
        return self.measured.cumulative

    @property
    def sensitivity(self) -> Sensitivity:
        """TCE at other significance levels and ECC at other cost ratios, for the sliders of the report."""
        return self.measured.sensitivity

    @property
    def reliability(self) -> Breakdown:
        """Bins of the reliability diagram of the report: of equal information where scores crowd an end, else ACE's."""
        return self.measured.reliability

    @property
    def rejection_profile(self) -> RejectionProfile | None:
        """Decisions of the test of TCE within each bin, for its diagram."""
        return self.measured.rejection_profile

    @cached_property
    def rows_needed(self) -> int | None:
        """Number of further rows that would probably decide an inconclusive verdict, where it is known."""
        margin, alpha = self.measured.settings.margin, self.measured.settings.alpha
        if self.equivalence.within or isinstance(margin, AbsoluteMargin) or not self.decision.information > 0:
            return None
        return rows_to_decide(n_rows(self.measured.table), self.decision.information, margin, alpha)

    def complete(self) -> None:
        """Compute all results now."""
        self.measured.complete()
        _ = self.rows_needed

    def sentences(self, e: "Evaluation") -> list[str]:
        """Return the explanation of the verdict and its consequence at the mean score.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        list of str
            One sentence per element; may be empty.
        """
        return [text for text in (sentences.explanation(e), sentences.consequence(e)) if text]

    def sizes(self, table: ScoreTable) -> dict[str, Any]:
        """Return the number of events, the event rate and the mean score.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"positives": table.positives, "prevalence": table.prevalence, "mean_score": mean_score(table)}

    def frame_columns(self, table: ScoreTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        dict
        """
        return {"rows": n_rows(table), "event_rate": table.prevalence}

    def sizes_text(self, table: ScoreTable) -> str:
        """Format the number of rows, the mean score and the event rate.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        str
        """
        predicted, observed = 100 * mean_score(table), 100 * table.prevalence
        weighted = "weighted " if table.importance else ""
        return f"{rows_text(table)}; {weighted}mean score {predicted:.4g} %, {weighted}event rate {observed:.4g} %"

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
        return ["rows", "mean score", "event rate", "log-odds error", f"{level} CI", "adjusted p", "verdict"]

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
        error, table = self.decision.log_odds_error, e.table
        return [
            f"{n_rows(table):,}",
            f"{100 * e.mean_score:.3g} %",
            f"{100 * e.event_rate:.3g} %",
            f"{error.value:.2f}",
            "" if math.isnan(error.low) else f"{error.low:.2f} to {error.high:.2f}",
            format_pvalue(e.pvalue),
            sentences.headline(e),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        test = self.cumulative.test
        return {
            "decision": self.decision.to_dict(),
            "decomposition": plain(self.decomposition),
            "ecce": plain(self.cumulative.ecce),
            "ecce_test": None if test is None else test.to_dict(),
        }
