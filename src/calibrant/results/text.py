"""Layout of printed results, as text and as HTML for notebooks."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from calibrant._support.errors import Note
from calibrant._support.formatting import NumberFormat, html_table, p_text, printable, text_table
from calibrant.tables.score_table import ScoreTable

_SHOWN_GROUPS = 20  # number of groups that are printed


@dataclass(frozen=True)
class GroupTable:
    """Table of groups: a heading, and cells whose first row is the header."""

    heading: str
    cells: Sequence[Sequence[str]]

    @classmethod
    def build(cls, by: str, cells: Sequence[Sequence[str]]) -> "GroupTable":
        """Build the table with a heading that states the order and the adjustment of p-values."""
        count, most = len(cells) - 1, _SHOWN_GROUPS
        shown = f"; the worst {most} of {count:,}" if count > most else ""
        return cls(f"By {by}, worst first (p-values adjusted for {count:,} groups by Holm{shown}):", cells)

    @property
    def shown(self) -> Sequence[Sequence[str]]:
        """The cells that are printed."""
        return self.cells[: _SHOWN_GROUPS + 1]

    @property
    def left(self) -> tuple[int, int]:
        """Columns that are aligned to the left: the group and its verdict."""
        return 0, len(self.cells[0]) - 1


@dataclass(frozen=True)
class ResultText:
    """The parts of a printed result, in their order.

    Attributes
    ----------
    headline : str
        The verdict.
    sentences : sequence of str
        The explanation, and the number of rows.
    cells : table
        The metrics; the first row is the header.
    left : columns of `cells` that are aligned to the left
    reasons : sequence of str
        The tests behind the verdict.
    groups : GroupTable or None
    notes : sequence of Note
    """

    headline: str
    sentences: Sequence[str]
    cells: Sequence[Sequence[str]]
    reasons: Sequence[str]
    notes: Sequence[Note]
    left: tuple[int, ...] = (0,)
    groups: GroupTable | None = field(default=None)

    def to_text(self) -> str:
        """Return lines for a terminal."""
        lines = [self.headline, *self.sentences, "", *text_table(self.cells, left=self.left), ""]
        lines += [f"  {reason}" for reason in self.reasons]
        if self.groups is not None:
            lines += ["", f"  {self.groups.heading}", *text_table(self.groups.shown, left=self.groups.left)]
        return "\n".join(printable(line) for line in [*lines, *(f"  {line}" for line in self._note_lines())])

    def to_html(self) -> str:
        """Return HTML for a notebook."""
        why = html.escape(printable(" ".join(self.sentences)))
        items = "".join(f"<li>{html.escape(printable(line))}</li>" for line in [*self.reasons, *self._note_lines()])
        groups = ""
        if self.groups is not None:
            table = html_table(self.groups.shown, left=self.groups.left)
            groups = f"<p>{html.escape(printable(self.groups.heading))}</p>{table}"
        return (
            f"<p><strong>{html.escape(printable(self.headline))}</strong><br>{why}</p>"
            f"{html_table(self.cells, left=self.left)}<ul>{items}</ul>{groups}"
        )

    def _note_lines(self) -> list[str]:
        return [f"note: {note.text}" for note in self.notes]


class RowTable(Protocol):
    """A table of any kind of forecast."""

    @property
    def n_in(self) -> int: ...
    @property
    def n_dropped(self) -> int: ...
    @property
    def size(self) -> int | float: ...
    @property
    def importance(self) -> bool: ...


def mean_score(table: ScoreTable) -> float:
    """Return the mean score of all rows."""
    return float(np.sum(table.n * table.score) / table.size)


def row_counts(table: RowTable) -> dict[str, Any]:
    """Return the numbers of rows read, used and dropped, and their total weight."""
    counts = {"n_in": table.n_in, "n_used": table.n_in - table.n_dropped, "n_dropped": table.n_dropped}
    return counts | {"size": table.size}


def n_rows(table: RowTable) -> int:
    """Return the number of rows. A row with frequency 5 counts as five, one with an importance weight as one."""
    return table.n_in - table.n_dropped if table.importance else int(table.size)


def rows_text(table: RowTable) -> str:
    """Format the number of rows: "1,000 rows"."""
    if table.importance:
        return f"{n_rows(table):,} rows with a total weight of {table.size:,.6g}"
    return f"{table.size:,} row{'s' if table.size != 1 else ''}"


def bins_text(count: int) -> str:
    """Format the number of bins: "10 bins"."""
    return f"{count:,} bin{'s' if count != 1 else ''}"


def format_limits(unit: str, value: float, low: float, high: float, *, signed: bool = False) -> tuple[str, str]:
    """Return the value and "low to high", with digits that fit the distance of the limits.

    Without limits the second text is empty. Units other than "1" and "%" may have any size: four significant digits.

    >>> format_limits("1", 0.03124, 0.02011, 0.04093), format_limits("%", 12.34, 8.1, 15.22)
    (('0.0312', '0.0201 to 0.0409'), ('12.3 %', '8.1 to 15.2 %'))
    """
    if unit in ("1", "%"):
        form = NumberFormat.for_spread(unit, high - low, signed=signed)
        return form.value(value), form.range(low, high)
    return f"{value:.4g}", "" if math.isnan(low) or math.isnan(high) else f"{low:.4g} to {high:.4g}"


def format_level(level: float, term: str) -> str:
    """Return a level with its term.

    >>> format_level(0.95, "CI")
    '95% CI'
    """
    return f"{100 * level:g}% {term}"


def format_pvalues(pvalue: float | None, adjusted: float | None = None, resampled: float | None = None) -> list[str]:
    """Return the p-values that exist.

    >>> format_pvalues(0.0123, adjusted=0.0246)
    ['p = 0.012', 'adjusted p = 0.025']
    """
    texts = (("", pvalue, ""), ("adjusted ", adjusted, ""), ("", resampled, " by resampling"))
    return [f"{a}{p_text(p)}{z}" for a, p, z in texts if p is not None and not math.isnan(p)]
