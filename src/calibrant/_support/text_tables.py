"""Tables for terminals and notebooks. The first row is the header; cells are text."""

import html
from collections.abc import Collection, Sequence


def text_table(cells: Sequence[Sequence[str]], *, left: Collection[int] = ()) -> list[str]:
    """Return lines with aligned columns: columns in `left` to the left, the others to the right."""
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
        return "".join(
            f'<{kind} style="text-align:{s}">{html.escape(t)}</{kind}>' for t, s in zip(texts, sides, strict=True)
        )

    body = "".join(f"<tr>{row('td', texts)}</tr>" for texts in rows)
    return f"<table><thead><tr>{row('th', heading)}</tr></thead><tbody>{body}</tbody></table>"
