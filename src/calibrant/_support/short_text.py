"""Short representations of results and forecasts, as text and as HTML for notebooks."""

import html
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from calibrant._support.text_tables import html_table, printable, text_table

__all__ = ["ResultMapping", "line_html", "result_mapping", "short_repr"]

_LONGEST = 60  # characters of one value


def short_repr(self: Any) -> str:
    """Return the fields of a dataclass on one line: numbers with four digits, arrays by their shape, no empty notes."""
    shown = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
    texts = [f"{name}={_value(value)}" for name, value in shown.items() if not (name == "notes" and not value)]
    return f"{type(self).__name__}({', '.join(texts)})"


def _value(value: Any) -> str:
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


def result_mapping(results: Mapping[Any, Any]) -> ResultMapping:
    """Return the results as a `ResultMapping`."""
    return results if isinstance(results, ResultMapping) else ResultMapping(results)
