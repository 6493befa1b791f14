"""Text for terminals and notebooks: control characters as escapes, and tables whose first row is the header."""

import html
from collections.abc import Collection, Sequence
from dataclasses import dataclass


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text for a terminal: control characters and lone surrogates as in Python's strings, except those to keep.

    >>> printable("a\x1b[31m\n\ud800")
    'a\\x1b[31m\\n\\ud800'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


def text_table(cells: Sequence[Sequence[str]], *, left: Collection[int] = ()) -> list[str]:
    """Return lines with aligned columns: columns in `left` to the left, the others to the right."""
    cells = [[printable(cell) for cell in row] for row in cells]
    widths = [max(len(row[c]) for row in cells) for c in range(len(cells[0]))]

    def line(row: Sequence[str]) -> str:
        padded = (
            cell.ljust(w) if c in left else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        return ("  " + "  ".join(padded)).rstrip()

    return [line(row) for row in cells]


def html_table(cells: Sequence[Sequence[str]], *, left: Collection[int] = ()) -> str:
    """Return the table as HTML, escaped."""
    heading, *rows = cells

    def row(kind: str, texts: Sequence[str]) -> str:
        sides = ("left" if c in left else "right" for c in range(len(texts)))
        shown = (html.escape(printable(text)) for text in texts)
        return "".join(f'<{kind} style="text-align:{s}">{t}</{kind}>' for t, s in zip(shown, sides, strict=True))

    body = "".join(f"<tr>{row('td', texts)}</tr>" for texts in rows)
    return f"<table><thead><tr>{row('th', heading)}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class TableText:
    """A table between lines of text, of which the first is the headline; a table without rows is left out."""

    before: Sequence[str]
    cells: Sequence[Sequence[str]]
    after: Sequence[str] = ()

    def to_text(self) -> str:
        """Return lines for a terminal."""
        lines = list(map(printable, self.before))
        if len(self.cells) > 1:
            lines += ["", *text_table(self.cells, left=(0,))]
        return "\n".join([*lines, *(f"  {printable(line)}" for line in self.after)])

    def to_html(self) -> str:
        """Return HTML for a notebook."""
        first, *more = (html.escape(printable(line)) for line in self.before)
        after = "".join(f"<p>{html.escape(printable(line))}</p>" for line in self.after)
        lines = "".join(f"<p>{line}</p>" for line in more)
        table = html_table(self.cells, left=(0,)) if len(self.cells) > 1 else ""
        return f"<p><strong>{first}</strong></p>{lines}{table}{after}"
