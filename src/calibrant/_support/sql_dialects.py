"""SQL dialects: names, numbers and functions that engines write differently."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calibrant._support.errors import Argument, InputError

__all__ = ["DIALECTS", "Dialect", "get_dialect"]


@dataclass(frozen=True)
class Dialect:
    """Names, literals and functions of one SQL engine.

    In all engines NaN equals itself and is greater than any number (SQLite stores NULL instead).
    """

    double: str
    quote: str
    nearest: str  # the integer nearest to {x} >= 0; halves are rounded to even, as in NumPy
    bytewise: str  # the text {x} with equality by bytes
    literal: str = "{}"  # a double literal that no engine reads as a decimal
    least: str = "least"
    greatest: str = "greatest"
    tiny: str = "{x}"  # {x}, or 0 where products of {x} would underflow and the engine would fail
    nth: str = ""  # the value at {place}, from 0, of {values} in rising order
    is_number: str = ""  # condition that the column {x} holds a number, for engines with dynamic types
    is_nan: str = "isnan({x})"  # condition that the double {x} is NaN; empty for engines without NaN
    escapes: str = ""  # characters that a backslash must precede in text

    def number(self, value: float) -> str:
        """Return a double literal with all digits."""
        text = repr(float(value))
        text = self.literal.format(text if "e" in text else f"{text}e0")
        return f"({text})" if value < 0 else text

    def between(self, x: str, low: float, high: float) -> str:
        """Return `x` clipped to [low, high]."""
        return f"{self.least}({self.greatest}({x}, {self.number(low)}), {self.number(high)})"

    def nth_smallest(self, values: Sequence[str], place: int) -> str:
        """Return the value at `place`, from 0, of the expressions in rising order."""
        rows = ", ".join(f"({value})" for value in values)
        return self.nth.format(values=", ".join(values), rows=rows, place=place, number=place + 1)

    def name(self, column: str | Sequence[str]) -> str:
        """Return the quoted name of a column, or of table and column."""
        names = [column] if isinstance(column, str) or not isinstance(column, Iterable) else list(column)
        if not names or not all(isinstance(name, str) and name and "\0" not in name for name in names):
            raise InputError(
                Argument("column") + f" must be a name, or a sequence of names from table to column; got {column!r}."
            )
        return ".".join(self.quote + name.replace(self.quote, 2 * self.quote) + self.quote for name in names)

    def text(self, value: str) -> str:
        """Return a text literal."""
        for mark in self.escapes:
            value = value.replace(mark, f"\\{mark}")
        return "'" + value.replace("'", "''" if "'" not in self.escapes else "'") + "'"

    def as_double(self, name: str) -> str:
        """Return a quoted column cast to double."""
        return f"CAST({name} AS {self.double})"


DIALECTS = {
    "duckdb": Dialect(
        "DOUBLE",
        quote='"',
        nearest="round_even({x}, 0)",
        bytewise="CAST({x} AS VARCHAR) COLLATE POSIX",  # a column may be an ENUM
        nth="list_sort([{values}])[{number}]",
    ),
    "postgresql": Dialect(
        "double precision",
        quote='"',
        nearest="round({x})",
        bytewise='CAST({x} AS text) COLLATE "C"',
        literal="float8 '{}'",
        tiny="CASE WHEN abs({x}) < float8 '1e-300' THEN float8 '0' ELSE {x} END",
        is_nan="{x} = float8 'NaN'",
        nth="(SELECT v FROM unnest(ARRAY[{values}]) AS s (v) ORDER BY v LIMIT 1 OFFSET {place})",
    ),
    "spark": Dialect(
        "DOUBLE",
        quote="`",
        nearest="rint({x})",
        bytewise="collate({x}, 'UTF8_BINARY')",
        literal="{}D",
        escapes="\\'",  # Spark reads backslashes in text as escapes
        nth="sort_array(array({values}))[{place}]",
    ),
    # SQLite reads an unknown name in double quotes as text, and text as the number 0. It has no function that rounds
    # halves to even; CAST truncates, and doubles from 2**52 on have no fractional part.
    "sqlite": Dialect(
        "REAL",
        quote="`",
        nearest=(
            "CASE WHEN {x} >= 4503599627370496.0 THEN {x} ELSE "
            "CAST({x} AS INTEGER) + (({x}) - CAST({x} AS INTEGER) > 0.5 OR "
            "(({x}) - CAST({x} AS INTEGER) = 0.5 AND CAST({x} AS INTEGER) % 2 = 1)) END"
        ),
        bytewise="{x} COLLATE BINARY",
        least="min",
        greatest="max",
        nth="(SELECT column1 FROM (VALUES {rows}) ORDER BY column1 LIMIT 1 OFFSET {place})",
        is_number="typeof({x}) IN ('real', 'integer')",
        is_nan="",
    ),
}


def get_dialect(name: str) -> Dialect:
    """Return a dialect by name."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; got {name!r}.", argument="dialect")
    return DIALECTS[name]
