"""Parts of the pages of the documentation."""

import html
from collections.abc import Iterable, Sequence

GREEN, AMBER, RED, GREY = "#1a7f37", "#9a6700", "#c02525", "#6b6b6b"


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def coloured(text: str, colour: str) -> str:
    """Return a cell of an HTML table; line breaks are kept."""
    return f"<td style='color:{colour}'>{html.escape(text).replace(chr(10), '<br>')}</td>"


def table_of_cells(columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], *, dense: bool = False) -> str:
    """Return an HTML table of named rows; `coloured` makes the cells, and `dense` is for wide tables."""
    style = " style='font-size:0.7em;white-space:nowrap'" if dense else ""
    lines = [f"<table class='docutils'{style}><thead><tr><th></th>", *(f"<th>{html.escape(c)}</th>" for c in columns)]
    lines.append("</tr></thead><tbody>")
    lines += [f"<tr><td>{html.escape(name)}</td>{''.join(cells)}</tr>" for name, cells in rows]
    return ".. raw:: html\n\n   " + "".join([*lines, "</tbody></table>"]) + "\n"


def list_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain text."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [header, *rows]:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}".rstrip() for i, cell in enumerate(row)]
    return "\n".join(lines) + "\n"
