"""Text for terminals and notebooks: control characters as escapes, and tables whose first row is the header."""

import html
from collections.abc import Collection, Sequence


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
