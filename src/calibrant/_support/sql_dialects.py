"""SQL dialects: names, numbers and functions that engines write differently."""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calibrant._support.errors import Argument, InputError

_DOUBLED = (("'", "''"),)
_BACKSLASH_DOUBLED = (("\\", "\\\\"), ("'", "''"))
_BACKSLASH = (("\\", "\\\\"), ("'", "\\'"))


@dataclass(frozen=True)
class Dialect:
    """Names, literals and functions of one SQL engine.

    NaN equals itself and is greater than any number, or all its comparisons are false, or the engine has no NaN.
    """

    double: str
    quote: str
    bytewise: str  # the text {x} with equality by bytes
    nearest: str = ""  # the integer nearest to {x} >= 0, halves to even, as in NumPy; for engines that count rows
    closing_quote: str = ""  # where names do not end with the mark that they begin with
    name_escapes: tuple[tuple[str, str], ...] = ()  # replacements in quoted names; by default the quote is doubled
    literal: str = "{}"  # a double literal that no engine reads as a decimal
    smallest: float = 0.0  # the smallest positive double, where an engine has no subnormal ones
    least: str = "least"
    greatest: str = "greatest"
    ln: str = "ln"
    tiny: str = "{x}"  # {x}, or 0 where products of {x} would underflow and the engine would fail
    nth: str = ""  # the value at {place}, from 0, of {values} in rising order; empty for engines without arrays
    is_number: str = ""  # condition that the column {x} holds a number, for engines with dynamic types
    is_nan: str = "isnan({x})"  # condition that the double {x} is NaN; empty for engines without NaN
    escapes: tuple[tuple[str, str], ...] = _DOUBLED  # replacements in text literals, in this order
    text_prefix: str = ""
    truth_values: tuple[str, str] = ("FALSE", "TRUE")
    fan_out: int = 2  # branches of each CASE of a search, more where an engine limits how deep CASE is nested

    def number(self, value: float) -> str:
        """Return a double literal with all digits."""
        if 0 < abs(value) < self.smallest:  # away from 0, so that 0 stays on its side of the number
            value = math.copysign(self.smallest, value)
        text = repr(float(value))
        text = self.literal.format(text if "e" in text else f"{text}e0")
        return f"({text})" if value < 0 else text

    def between(self, x: str, low: float, high: float) -> str:
        """Return `x` clipped to [low, high]."""
        return f"{self.least}({self.greatest}({x}, {self.number(low)}), {self.number(high)})"

    def nth_smallest(self, values: Sequence[str], place: int) -> str:
        """Return the value at `place`, from 0, of the expressions in rising order."""
        if not self.nth:
            return _nth_by_ranks(values, place)
        rows = ", ".join(f"({value})" for value in values)
        return self.nth.format(values=", ".join(values), rows=rows, place=place, number=place + 1)

    def name(self, column: str | Sequence[str]) -> str:
        """Return the quoted name of a column, or of table and column."""
        names = [column] if isinstance(column, str) or not isinstance(column, Iterable) else list(column)
        if not names or not all(isinstance(name, str) and name and "\0" not in name for name in names):
            raise InputError(
                Argument("column") + f" must be a name, or a sequence of names from table to column; got {column!r}."
            )
        end = self.closing_quote or self.quote
        escapes = self.name_escapes or ((end, 2 * end),)
        return ".".join(f"{self.quote}{_replaced(name, escapes)}{end}" for name in names)

    def text(self, value: str) -> str:
        """Return a text literal."""
        return f"{self.text_prefix}'{_replaced(value, self.escapes)}'"

    def truth(self, value: bool) -> str:
        """Return a literal of a truth value."""
        return self.truth_values[value]

    def as_double(self, name: str) -> str:
        """Return a quoted column cast to double."""
        return f"CAST({name} AS {self.double})"


def _replaced(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    for mark, escaped in pairs:
        text = text.replace(mark, escaped)
    return text


def _nth_by_ranks(values: Sequence[str], place: int) -> str:
    """Return the value that `place` others precede; of equal values the first comes first."""
    cases = []
    for own, value in enumerate(values):
        others = [(other, "<=" if j < own else "<") for j, other in enumerate(values) if j != own]
        rank = " + ".join(f"CASE WHEN {other} {sign} {value} THEN 1 ELSE 0 END" for other, sign in others)
        cases.append(f"WHEN {rank} = {place} THEN {value}")
    return f"CASE {' '.join(cases)} END"


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
        escapes=_BACKSLASH,  # Spark reads backslashes in text as escapes
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
    # Literals with an exponent are decimals in some contexts; a cast of text is a double in all.
    "snowflake": Dialect(
        "DOUBLE",
        quote='"',
        bytewise="COLLATE(CAST({x} AS VARCHAR), 'utf8')",
        literal="'{}'::DOUBLE",
        is_nan="{x} = 'NaN'::DOUBLE",
        escapes=_BACKSLASH_DOUBLED,
    ),
    "bigquery": Dialect(
        "FLOAT64",
        quote="`",
        bytewise="COLLATE(CAST({x} AS STRING), '')",
        name_escapes=(("\\", "\\\\"), ("`", "\\`")),
        nth="(SELECT v FROM UNNEST([{values}]) AS v ORDER BY v LIMIT 1 OFFSET {place})",
        is_nan="IS_NAN({x})",
        escapes=(*_BACKSLASH, ("\n", "\\n"), ("\r", "\\r")),  # text in single quotes ends with its line
    ),
    "redshift": Dialect(
        "double precision",
        quote='"',
        bytewise="COLLATE(CAST({x} AS varchar(65535)), 'case_sensitive')",
        literal="'{}'::float8",
        tiny="CASE WHEN abs({x}) < '1e-300'::float8 THEN '0'::float8 ELSE {x} END",
        is_nan="{x} = 'NaN'::float8",
        escapes=_BACKSLASH_DOUBLED,
    ),
    # Doubles of SQL Server are never NaN, infinite or subnormal. CASE may be nested ten deep.
    "sqlserver": Dialect(
        "double precision",
        quote="[",
        closing_quote="]",
        bytewise="CAST({x} AS nvarchar(max)) COLLATE Latin1_General_100_BIN2",
        smallest=sys.float_info.min,
        least="LEAST",
        greatest="GREATEST",
        ln="LOG",
        nth="(SELECT v FROM (VALUES {rows}) AS s (v) ORDER BY v OFFSET {place} ROWS FETCH NEXT 1 ROWS ONLY)",
        is_nan="",
        escapes=(*_DOUBLED, ("\\\n", "\\' + N'\n"), ("\\\r", "\\' + N'\r")),  # a backslash would join two lines
        text_prefix="N",
        truth_values=("0", "1"),
        fan_out=32,
    ),
    # Of MySQL 8 and MariaDB, which have neither NaN nor infinity.
    "mysql": Dialect(
        "DOUBLE",
        quote="`",
        bytewise="CAST(CONVERT({x} USING utf8mb4) AS BINARY)",
        is_nan="",
        escapes=_BACKSLASH_DOUBLED,
    ),
    "trino": Dialect(
        "DOUBLE",
        quote='"',
        bytewise="CAST({x} AS VARCHAR)",
        literal="DOUBLE '{}'",
        nth="array_sort(ARRAY[{values}])[{number}]",
        is_nan="is_nan({x})",
    ),
}
DIALECTS["databricks"] = DIALECTS["spark"]  # which Databricks runs


def get_dialect(name: str) -> Dialect:
    """Return a dialect by name."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(DIALECTS)}; got {name!r}.", argument="dialect")
    return DIALECTS[name]
