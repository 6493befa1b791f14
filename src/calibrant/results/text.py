"""Layout of printed results, as text and as HTML for notebooks."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from calibrant._support.errors import Note
from calibrant._support.formatting import html_table, printable, text_table

__all__ = ["GroupTable", "ResultText"]

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
        groups = ""
        if self.groups is not None:
            table = html_table(self.groups.shown, left=self.groups.left)
            groups = f"<p>{html.escape(printable(self.groups.heading))}</p>{table}"
        return (
            f"<p><strong>{html.escape(printable(self.headline))}</strong><br>{why}</p>"
            f"{html_table(self.cells, left=self.left)}<ul>{_items([*self.reasons, *self._note_lines()])}</ul>{groups}"
        )

    def _note_lines(self) -> list[str]:
        return [f"note: {note.text}" for note in self.notes]


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{html.escape(printable(line))}</li>" for line in lines)
