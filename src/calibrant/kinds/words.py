"""`Words`: how a report speaks of one kind of forecast, with the recommendations and tables that it states."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from calibrant.results.evaluation import Evaluation

FRESH_ROWS = "Fit it to rows that the model was not fitted on, apply it to new rows, and check those."


@dataclass(frozen=True)
class Action:
    """A recommendation: its first words, its reason, the code or command, and the place in the page to read on."""

    lead: str
    text: str
    code: str = ""
    target: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of text: the first row of `cells` is the header.

    Attributes
    ----------
    heading : str
    cells : rows of texts
    left : columns that are aligned to the left
    verdict : bool
        The last column holds verdicts, which have colours.
    key : str
        Id of the table in the page; '' for none.
    page : int
        Number of rows that are shown at once; 0 for all.
    """

    heading: str
    cells: Sequence[Sequence[str]]
    left: tuple[int, ...] = (0,)
    verdict: bool = False
    key: str = ""
    page: int = 0

    @classmethod
    def with_words(cls, heading: str, cells: Sequence[Sequence[str]], words: Sequence[str]) -> "ReportTable":
        """Return a table without its empty columns, whose columns with these headers are aligned to the left."""
        kept = without_empty_columns(cells)
        return cls(heading, kept, tuple(c for c, name in enumerate(kept[0]) if name in words))


class Words(ABC):
    """How a report speaks of one kind of forecast: the constant ``WORDS`` of the module `words` of each kind.

    Attributes
    ----------
    name : str
        The only model of a report, as "score".
    forecasts : str
        What is used as it is, as "scores".
    has_null_ranges : bool
        Whether metrics have a null range.
    method : tuple of (str, str)
        Metrics that the page explains.
    group_code : str
        Code that recalibrates groups.
    """

    name: ClassVar[str]
    forecasts: ClassVar[str] = "forecasts"
    has_null_ranges: ClassVar[bool] = False
    method: ClassVar[tuple[tuple[str, str], ...]] = ()
    group_code: ClassVar[str] = ""

    @abstractmethod
    def meaning(self, e: Evaluation) -> list[str]:
        """Return sentences about what to expect."""

    @abstractmethod
    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        """Recommend a calibrator; `rows` are the arguments of a command that name files, outcome and score."""

    @abstractmethod
    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        """Return the tables of bins, of coverage or of classes; `key` is the prefix of ids in the page."""

    def means(self, e: Evaluation) -> tuple[float, float] | None:
        """Return the mean forecast and the mean outcome, where forecasts have residuals."""
        return None

    def means_text(self, group: Evaluation) -> str:
        """State the mean forecast and the mean outcome of a group, or the direction of its deviation."""
        return group.direction or group.verdict

    def check_command(self, rows: str) -> str:
        """Return the command that checks new rows, if there is one."""
        return ""

    def metric_columns(self, e: Evaluation) -> list[list[str]]:
        """Return further columns of the table of metrics, header first."""
        return []

    def group_metric(self, e: Evaluation) -> str | None:
        """Return the metric that the table of groups has besides the size of the deviation."""
        return None


def without_empty_columns(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the columns that have a text in any row below the header."""
    kept = [c for c in range(len(cells[0])) if any(row[c] for row in cells[1:])]
    return [[row[c] for c in kept] for row in cells]


def gain_text(metric: str, value: float, part: float) -> str:
    """State the expected gain: the part of a proper score that is miscalibration, which recalibration removes."""
    share = f" ({100 * part / value:.2g} % less)" if value > 0 else ""
    return f"Recalibration lowers the {metric} from {value:.3g} to {value - part:.3g} at best{share}."
