"""`Audit`: the result of `audit`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.formatting import format_pvalue
from calibrant._support.frame_output import frame_from_columns
from calibrant._support.json_values import plain
from calibrant._support.text_tables import html_table, text_table
from calibrant.evaluation.results import to_json_text

__all__ = ["Audit", "Segment"]


@dataclass(frozen=True)
class Segment:
    """A segment of rows that is shown to be miscalibrated.

    Attributes
    ----------
    rule : str
        The conditions, joined by "and".
    n_rows : int
        Number of rows that meet the rule.
    predicted, observed : float
        Mean score and event rate.
    log_odds_error, low, high : float
        Calibration in the large, in log-odds, with its confidence interval. Positive: the model underestimates. NaN if
        only one outcome occurs.
    pvalue, adjusted_pvalue : float
        Of the hypothesis that the segment is calibrated in the large; adjusted by Holm for all tested segments.
    share : float
        Share of what all segments explain: the gain in deviance by a shift of this segment's log-odds, after the
        segments before it, divided by the sum of these gains.
    overlaps : str or None
        The rule of the first segment before it with which it shares at least half of the rows of both.
    """

    rule: str
    n_rows: int
    predicted: float
    observed: float
    log_odds_error: float
    low: float
    high: float
    pvalue: float
    adjusted_pvalue: float
    share: float
    overlaps: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Segments of rows that are miscalibrated; see `audit`.

    Attributes
    ----------
    segments : tuple of Segment
        The segments shown, smallest p-value first.
    n_rows, n_features, n_tests, depth : int
        Rows and features searched, rules tested, and the largest number of conditions of a rule.
    alpha, confidence_level : float
    notes : tuple of Note
    """

    segments: tuple[Segment, ...]
    n_rows: int
    n_features: int
    n_tests: int
    depth: int
    alpha: float
    confidence_level: float
    notes: tuple[Note, ...] = ()

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        count = len(self.segments)
        if not count:
            return "no miscalibrated segment shown"
        return "1 miscalibrated segment" if count == 1 else f"{count} miscalibrated segments"

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per segment."""
        names = list(Segment.__dataclass_fields__)
        return frame_from_columns({name: [getattr(s, name) for s in self.segments] for name in names}, backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain data for JSON."""
        segments = [plain(segment) for segment in self.segments]
        return {"kind": "audit", "verdict": self.verdict, **plain(self, skip=("segments",)), "segments": segments}

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return to_json_text(self.to_dict())

    def plot(self, **options: Any) -> Any:
        """Draw the segments; see `calibrant.plots.SegmentDisplay`."""
        from calibrant.plots import SegmentDisplay

        return SegmentDisplay.from_audit(self, **options)

    def __repr__(self) -> str:
        cells = self._cells()
        table = ["", *text_table(cells, left=(0,))] if len(cells) > 1 else []
        overlaps = [f"  {s.rule} overlaps {s.overlaps}." for s in self.segments if s.overlaps]
        return "\n".join([f"Verdict: {self.verdict}", self._searched(), *table, *overlaps])

    def _repr_html_(self) -> str:
        cells = self._cells()
        table = html_table(cells, left=(0,)) if len(cells) > 1 else ""
        return f"<p><b>Verdict: {self.verdict}</b></p><p>{self._searched()}</p>{table}"

    def _searched(self) -> str:
        return (
            f"{self.n_rows:,} rows, {self.n_features} features and the score, rules of up to {self.depth} conditions; "
            f"{self.n_tests} rules tested on rows that did not choose them."
        )

    def _cells(self) -> Sequence[Sequence[str]]:
        level = f"{self.confidence_level:.0%} CI".replace("%", " %")
        heading = ["segment", "rows", "predicted", "observed", "log-odds error", level, "adjusted p", "share"]
        return [heading, *([*_cells(segment)] for segment in self.segments)]


def _cells(segment: Segment) -> list[str]:
    return [
        segment.rule,
        f"{segment.n_rows:,}",
        f"{100 * segment.predicted:.3g} %",
        f"{100 * segment.observed:.3g} %",
        f"{segment.log_odds_error:+.2f}",
        f"{segment.low:+.2f} to {segment.high:+.2f}",
        format_pvalue(segment.adjusted_pvalue),
        f"{100 * segment.share:.0f} %",
    ]
