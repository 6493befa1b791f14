"""`Details`: what an evaluation of one kind adds to the results of all kinds, and what several kinds share of it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from calibrant._support.formatting import round_up
from calibrant.inference.binary_components import IMPOSSIBLE
from calibrant.results import deviation_sentences as regression_sentences
from calibrant.results import sentences
from calibrant.results.hypothesis_tests import TestResult
from calibrant.results.sizes import n_rows
from calibrant.results.uncertainty import Estimate, Interval

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

__all__ = ["Details", "DeviationDetails", "LogOddsDetails"]


class Details(Protocol):
    """Results that only one kind of forecast has, and the texts that an `Evaluation` of that kind prints."""

    @property
    def decision(self) -> Any: ...
    @property
    def equivalence(self) -> Any: ...
    @property
    def coefficients(self) -> tuple[Estimate, ...]: ...
    @property
    def other_tests(self) -> tuple[TestResult, ...]: ...
    @property
    def pvalue(self) -> float: ...
    @property
    def deviation(self) -> float: ...
    def deciding_tests(self, factor: float) -> Iterable[TestResult]: ...
    def direction(self, alpha: float, factor: float) -> str: ...
    def group_factor(self, adjusted: float, count: int) -> float: ...
    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float: ...
    def rows_to_decide(self, e: "Evaluation") -> int | None: ...
    def headline(self, e: "Evaluation") -> str: ...
    def sentences(self, e: "Evaluation") -> list[str]: ...
    def reasons(self, e: "Evaluation") -> Iterable[str]: ...
    def sizes(self, table: Any) -> dict[str, Any]: ...
    def frame_columns(self, table: Any) -> dict[str, Any]: ...
    def sizes_text(self, table: Any) -> str: ...
    def group_header(self, level: str) -> list[str]: ...
    def group_cells(self, e: "Evaluation") -> list[str]: ...
    def to_dict(self) -> dict[str, Any]: ...


class LogOddsDetails(ABC):
    """Details of probabilities, whose deviation is a log-odds error: binary and multiclass."""

    decision: Any

    @property
    @abstractmethod
    def rows_needed(self) -> int | None:
        """Number of further rows that would probably decide an inconclusive verdict, where it is known."""

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test, not adjusted for groups."""
        return float(self.decision.pvalue)

    @property
    def log_odds_error(self) -> Interval:
        """The log-odds error (of several classes, class-wise) with its confidence interval."""
        found: Interval = self.decision.log_odds_error
        return found

    @property
    def deviation(self) -> float:
        """Size of the deviation; it orders groups with equal p-values."""
        return self.log_odds_error.value

    @property
    def impossible_outcomes(self) -> float:
        """Number of rows whose outcome had probability 0."""
        test = self.decision.omnibus.components.get(IMPOSSIBLE)
        return 0 if test is None else test.statistic

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
        found: Iterable[TestResult] = self.decision.omnibus.scale(factor).components.values()
        return found

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
        return str(self.decision.direction(alpha, factor))

    def group_factor(self, adjusted: float, count: int) -> float:
        """Return the factor that adjusts the p-values of one of `count` groups, given its adjusted p-value.

        Parameters
        ----------
        adjusted : float
            The p-value of the group, adjusted by Holm for the number of groups.
        count : int
            Number of groups.

        Returns
        -------
        float
            Factor of the p-values of the tests in this group.
        """
        return adjusted / self.pvalue if self.pvalue > 0 else 1.0

    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """Return the adjusted p-value of a metric in a group.

        Parameters
        ----------
        pvalue : float
            The p-value of the metric, not adjusted for groups.
        adjusted : float
            The adjusted p-value of the group.
        factor : float
            That of `group_factor`.

        Returns
        -------
        float
            The p-value, adjusted for the number of groups.
        """
        return max(pvalue, adjusted)

    def rows_to_decide(self, e: "Evaluation") -> int | None:
        """Return the number of further rows that would probably decide; None if unknown.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        int or None
            Number of rows in addition to those of the evaluation.
        """
        return self.rows_needed

    def headline(self, e: "Evaluation") -> str:
        """Return the verdict in one line.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        str
            The verdict with its direction.
        """
        return sentences.headline(e)

    def reasons(self, e: "Evaluation") -> Iterable[str]:
        """State the tests behind the verdict, the coefficients and the other tests.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        iterable of str
            One sentence per element.
        """
        return sentences.reasons(e)


class DeviationDetails:
    """Details of forecasts whose deviation is in units of the outcome or a share: labels, points, distributions."""

    decision: Any

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test, not adjusted for groups; NaN if there is no test."""
        return float(self.decision.pvalue)

    def group_factor(self, adjusted: float, count: int) -> float:
        """Return the factor that adjusts the p-values of one of `count` groups, given its adjusted p-value.

        Parameters
        ----------
        adjusted : float
            The p-value of the group, adjusted by Holm for the number of groups.
        count : int
            Number of groups.

        Returns
        -------
        float
            Factor of the p-values of the tests in this group.
        """
        return adjusted / self.pvalue if self.pvalue > 0 else float(count)

    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """Return the adjusted p-value of a metric in a group.

        Parameters
        ----------
        pvalue : float
            The p-value of the metric, not adjusted for groups.
        adjusted : float
            The adjusted p-value of the group.
        factor : float
            That of `group_factor`.

        Returns
        -------
        float
            The p-value, adjusted for the number of groups.
        """
        return pvalue if math.isnan(pvalue) else min(1.0, factor * pvalue)

    def rows_to_decide(self: Details, e: "Evaluation") -> int | None:
        """Return the number of further rows that would probably decide; None if unknown.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        int or None
            Number of rows in addition to those of the evaluation.
        """
        more = self.equivalence.further_rows(n_rows(e.table))
        return None if math.isnan(more) else round_up(more)

    def headline(self, e: "Evaluation") -> str:
        """Return the verdict in one line.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        str
            The verdict with its direction.
        """
        return regression_sentences.headline(e)

    def reasons(self, e: "Evaluation") -> Iterable[str]:
        """State the tests behind the verdict, the coefficients and the other tests.

        Parameters
        ----------
        e : Evaluation
            The evaluation that has these details.

        Returns
        -------
        iterable of str
            One sentence per element.
        """
        return regression_sentences.reasons(e)
