"""Text for terminals and notebooks: escapes, numbers, tables whose first row is the header, short representations."""

import html
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any


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


class PrintedResult:
    """A result that is printed as the text that `_text` returns: a `TableText`, or another object with its methods."""

    def _text(self) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        text: str = self._text().to_text()
        return text

    def _repr_html_(self) -> str:
        text: str = self._text().to_html()
        return text


_PRINTED_UNITS = ("%", "points")


@dataclass(frozen=True)
class NumberFormat:
    """Format of a value and its interval: unit, number of decimals, and whether a plus sign is printed.

    The units "%" and "points" (differences of percentages) are printed. With the kind "g", for numbers of any size,
    `decimals` are significant digits.
    """

    unit: str
    decimals: int
    signed: bool
    kind: str = "f"

    @classmethod
    def for_spread(cls, unit: str, spread: float, *, signed: bool) -> "NumberFormat":
        """Choose one decimal for percentages; otherwise 4 to 9, so that the spread has two significant digits."""
        if unit in _PRINTED_UNITS:
            return cls(unit, 1, signed)
        needed = 4 if not 0 < spread < math.inf else 1 + math.ceil(-math.log10(spread))
        return cls(unit, min(max(needed, 4), 9), signed)

    def value(self, value: float) -> str:
        """Format a value with its unit."""
        number = f"{value:{'+' if self.signed else ''}.{self.decimals}{self.kind}}"
        return f"{number} {self.unit}" if self.unit in _PRINTED_UNITS else number

    def range(self, low: float, high: float) -> str:
        """Format the limits of an interval with one unit; empty where they do not exist."""
        if math.isnan(low) or math.isnan(high):
            return ""
        return f"{self.value(low).removesuffix(f' {self.unit}')} to {self.value(high)}"


def short_percent(share: float) -> str:
    """Format a share as a percentage with at most three digits: "30 %", "0.0125 %".

    >>> short_percent(0.3), short_percent(0.000125)
    ('30 %', '0.0125 %')
    """
    return f"{100 * share:.3g} %"


def format_percent(share: float) -> str:
    """Format a share as a percentage with three digits: "30.0 %", "0.0125 %", "100 %".

    >>> format_percent(0.3), format_percent(0.000125), format_percent(1.0), format_percent(0.0)
    ('30.0 %', '0.0125 %', '100 %', '0 %')
    """
    return f"{percent_digits(share)} %"


def percent_digits(share: float) -> str:
    """Format a share as a percentage with three digits, without its unit."""
    return f"{100 * share:#.3g}".removesuffix(".") if share else "0"


def format_pvalue(pvalue: float) -> str:
    """Format a p-value: "0.012", "< 1e-300"; empty if it is NaN."""
    if math.isnan(pvalue):
        return ""
    if pvalue < 1e-300:
        return "< 1e-300"
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.0e}"


def p_text(pvalue: float) -> str:
    """Format a p-value for sentences: "p = 0.012", "p < 1e-300"."""
    text = format_pvalue(pvalue)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def round_up(count: float) -> int:
    """Round a count up to two significant digits."""
    whole = math.ceil(count - 1e-9)
    unit = int(10 ** max(len(str(whole)) - 2, 0))
    return -(-whole // unit) * unit


_LONGEST = 60  # characters of one value


def short_repr(self: Any) -> str:
    """Return the fields of a dataclass on one line: numbers with four digits, arrays by their shape, no empty notes."""
    shown = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
    texts = [f"{name}={_value(value)}" for name, value in shown.items() if not (name == "notes" and not value)]
    return f"{type(self).__name__}({', '.join(texts)})"


def _value(value: Any) -> str:
    import numpy as np  # the command line writes text without it

    if isinstance(value, np.ndarray) and value.size > 6:
        return f"<{' x '.join(f'{size:,}' for size in value.shape)} {value.dtype}>"
    if isinstance(value, Real) and not isinstance(value, (bool, int, np.integer)):
        return f"{float(value):.4g}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def line_html(self: Any) -> str:
    """Return the representation of a result, ``Name(...)``, as one line of HTML with the name in bold."""
    name, _, rest = printable(repr(self)).partition("(")
    return f"<p><strong>{html.escape(name)}</strong> {html.escape(rest.removesuffix(')'))}</p>"


def metric_key(name: str) -> str:
    """Return the name in `METRICS` of a metric: its displayed name in lower case, with underscores between words.

    >>> metric_key("log-odds error"), metric_key("ECCE-MAD"), metric_key("Brier")
    ('log_odds_error', 'ecce_mad', 'brier')
    """
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


class ResultMapping(dict[Any, Any]):
    """Results by name; printed as a table of names and the first line of each result.

    Examples
    --------
    >>> ResultMapping({"a": 1.5, "b": "two"})
      a  1.5
      b  'two'
    """

    def __repr__(self) -> str:
        return "\n".join(text_table(self._cells()[1:], left=(0, 1))) if self else "{}"

    def _repr_html_(self) -> str:
        return html_table(self._cells(), left=(0, 1))

    def _cells(self) -> list[list[str]]:
        lines = [[str(name), repr(value).partition("\n")[0]] for name, value in self.items()]
        rest = len(lines) - _MOST_LINES
        more = [["...", f"and {rest:,} more"]] if rest > 0 else []
        return [["name", "result"], *lines[:_MOST_LINES], *more]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


_MOST_LINES = 30
