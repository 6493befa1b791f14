"""`Details`: what an evaluation of one kind of forecast adds to the results of all kinds."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant.results import sentences
from calibrant.results.uncertainty import Estimate, Interval
from calibrant.results.verdict import TestResult

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation


class Details(ABC):
    """Results that only one kind of forecast has, and the texts that an `Evaluation` of that kind prints.

    Attributes
    ----------
    coefficients : tuple of Estimate
        Slope and intercepts, where they are defined.
    other_tests : tuple of TestResult
        Tests that do not decide the verdict.
    directions : mapping
        Directions that only this kind has, as predicates: ``{"too late": "is too late"}``.
    """

    coefficients: tuple[Estimate, ...] = ()
    other_tests: tuple[TestResult, ...] = ()
    directions: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def without_inference(self, n_clusters: int) -> "Details":
        """Return the estimates without tests and intervals, for rows in too few clusters."""

    @property
    def log_odds_error(self) -> Interval | None:
        """The log-odds error with its confidence interval; None where forecasts are no probabilities."""
        return None

    def event_means(self, table: Any) -> tuple[float, float] | None:
        """Return the mean score and the event rate; None where forecasts are no probabilities of one event."""
        return None

    def region(self, e: "Evaluation") -> str:
        """Return where a significant deviation lies, for forecasts with scores; '' if nowhere in particular."""
        return ""

    def region_text(self, e: "Evaluation") -> str:
        """Return where the deviation lies, as the end of a headline: ", mostly in the top 1 % ..."; '' if nowhere."""
        return ""

    def headline(self, e: "Evaluation") -> str:
        """Return the verdict in one line."""
        return sentences.headline(e)

    @abstractmethod
    def sentences(self, e: "Evaluation") -> list[str]:
        """Explain the verdict; empty if the headline does."""

    @abstractmethod
    def reasons(self, e: "Evaluation") -> Iterable[str]:
        """State the tests behind the verdict, the coefficients and the other tests."""

    @abstractmethod
    def rows_to_decide(self, e: "Evaluation") -> int | None:
        """Return the number of further rows that would probably decide; None if unknown."""

    @abstractmethod
    def rows_needed_text(self, e: "Evaluation") -> str:
        """State the number of further rows that would probably decide; '' if it is unknown."""

    @abstractmethod
    def size_text(self, e: "Evaluation") -> str:
        """State the size of the deviation as a clause: an estimate if it is significant, else its upper bound."""

    @abstractmethod
    def metric_pvalue(self, pvalue: float, adjusted: float, factor: float) -> float:
        """Return the adjusted p-value of a metric in a group, given that of the group and its factor."""

    @abstractmethod
    def sizes(self, table: Any) -> dict[str, Any]:
        """Return numbers that describe the rows, for JSON."""

    @abstractmethod
    def frame_columns(self, table: Any) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows."""

    @abstractmethod
    def sizes_text(self, table: Any) -> str:
        """Format the number of rows and the means of predictions and outcomes."""

    @abstractmethod
    def group_header(self, level: str) -> list[str]:
        """Return the header of the table of groups, without its first column; `level` is that of intervals."""

    @abstractmethod
    def group_cells(self, e: "Evaluation") -> list[str]:
        """Return the row of one group in the table of groups."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""

    def slow_to_dict(self) -> dict[str, Any]:
        """Return further fields for JSON, which groups do not have because they are slow for each of many."""
        return {}
