"""What SQL engines write differently: names, numbers, and the few functions that are asked of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant._support.errors import Argument, InputError

__all__ = ["DIALECTS", "Dialect", "dialect_named"]


@dataclass(frozen=True)
class Dialect:
    """How one engine writes what all of them can do.

    In all of them NaN is equal to itself and greater than any number (SQLite keeps it as NULL).
    """

    double: str
    quote: str
    nearest: str  # the whole number nearest to {x}, which is not negative; halves go to the even one, as in NumPy
    bytewise: str  # the text {x}, of which two are equal if their bytes are
    literal: str = "{}"  # how a double is written, so that no engine takes it for a decimal
    least: str = "least"
    greatest: str = "greatest"
    tiny: str = "{x}"  # {x}, or 0 where products of it would be so small that the engine fails
    is_number: str = ""  # what must hold of the column {x} where its type does not say that it holds numbers

    def number(self, value: float) -> str:
        """A literal that is read as a double, with as many digits as it needs."""
        text = repr(float(value))
        text = self.literal.format(text if "e" in text else f"{text}e0")
        return f"({text})" if value < 0 else text

    def between(self, x: str, low: float, high: float) -> str:
        """`x`, or the bound that it passes."""
        return f"{self.least}({self.greatest}({x}, {self.number(low)}), {self.number(high)})"

    def name(self, column: str | Sequence[str]) -> str:
        """The name of a column, or names from table to column, quoted."""
        names = [column] if isinstance(column, str) else list(column)
        if not names or not all(isinstance(name, str) and name and "\0" not in name for name in names):
            raise InputError(Argument("column") + f" must be a name, or names from table to column; it is {column!r}.")
        return ".".join(self.quote + name.replace(self.quote, 2 * self.quote) + self.quote for name in names)

    def as_double(self, name: str) -> str:
        """The column of this (quoted) name as doubles."""
        return f"CAST({name} AS {self.double})"


DIALECTS = {
    "duckdb": Dialect("DOUBLE", quote='"', nearest="round_even({x}, 0)", bytewise="{x} COLLATE POSIX"),
    "postgresql": Dialect(
        "double precision",
        quote='"',
        nearest="round({x})",
        bytewise='CAST({x} AS text) COLLATE "C"',
        literal="float8 '{}'",
        tiny="CASE WHEN abs({x}) < float8 '1e-300' THEN float8 '0' ELSE {x} END",
    ),
    "spark": Dialect("DOUBLE", quote="`", nearest="rint({x})", bytewise="collate({x}, 'UTF8_BINARY')", literal="{}D"),
    # SQLite takes an unknown name in double quotes for text, and text for the number 0. It has no function that rounds
    # halves to even; CAST cuts off what is behind the point, and from 2**52 on there is nothing.
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
        is_number="typeof({x}) IN ('real', 'integer')",
    ),
}


def dialect_named(name: str) -> Dialect:
    """The dialect of this name, or an error that says which there are."""
    if name not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; it is {name!r}.", argument="dialect")
    return DIALECTS[name]
