"""Conditions of rules: readable text, the codes that meet it, the rows of other data, and SQL."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from calibrant._support.arrays import Bools
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError
from calibrant._support.sql_dialects import Dialect


@dataclass(frozen=True)
class Condition:
    """A readable condition on one feature, and the codes that meet it.

    Attributes
    ----------
    feature : str
    text : str
    codes : tuple of int
    low, high : float
        Limits of numbers; `low` is included. NaN for conditions on categories.
    includes_high : bool
    values : tuple
        The categories that meet the condition or, if `is_complement`, those that do not.
    is_complement, is_missing : bool
    holds_numbers : bool
        Whether the feature has numbers.

    See Also
    --------
    Segment, Audit

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> [(condition.feature, condition.text) for condition in found.segments[0].conditions]
    [('region', 'region = 2')]
    """

    feature: str
    text: str
    codes: tuple[int, ...] = field(repr=False)
    low: float = math.nan
    high: float = math.nan
    includes_high: bool = False
    values: tuple[Any, ...] = ()
    is_complement: bool = False
    is_missing: bool = False
    holds_numbers: bool = False

    @property
    def has_two_limits(self) -> bool:
        """Whether a number must lie between two limits."""
        return math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high

    def mask(self, column: ColumnData) -> Bools:
        """Return which cells of a column meet the condition.

        Parameters
        ----------
        column : ColumnData
            The feature, as the library reads it.

        Returns
        -------
        array of bool
            One value per row. Missing cells meet only the condition of missing values.
        """
        if self.is_missing:
            return column.mask
        present = ~column.mask
        if math.isnan(self.low):
            found = np.zeros(len(column), dtype=bool)
            known = set(self.values)
            found[present] = [(cell in known) != self.is_complement for cell in column.values[present].tolist()]
            return found
        values = np.where(present, column.values, np.nan).astype(np.float64)
        with np.errstate(invalid="ignore"):
            below = values <= self.high if self.includes_high else values < self.high
            return np.asarray(present & (values >= self.low) & (below | (self.high == math.inf)))

    def to_sql(self, column: str | Sequence[str], dialect: Dialect) -> str:
        """Return the condition as an SQL predicate on a column.

        Parameters
        ----------
        column : str or sequence of str
            Name of the column, or its parts, such as table and column.
        dialect : Dialect
            Dialect of SQL.

        Returns
        -------
        str
            A predicate for a WHERE clause; names and values are quoted.
        """
        name = dialect.name(column)
        nan = dialect.is_nan.format(x=dialect.as_double(name)) if self.holds_numbers and dialect.is_nan else ""
        if self.is_missing:
            return f"({name} IS NULL OR {nan})" if nan else f"{name} IS NULL"
        if math.isnan(self.low):
            return self._category_sql(name, dialect)
        x, found = dialect.as_double(name), []
        if self.low == self.high:
            return f"{x} = {dialect.number(self.low)}"
        if self.low > -math.inf:
            found.append(f"{x} >= {dialect.number(self.low)}")
        if self.high < math.inf:
            found.append(f"{x} {'<=' if self.includes_high else '<'} {dialect.number(self.high)}")
        elif nan:
            found.append(f"NOT {nan}")  # engines sort NaN above all numbers
        return " AND ".join(found)

    def _category_sql(self, name: str, dialect: Dialect) -> str:
        cells = ", ".join(_literal(value, self.feature, dialect) for value in self.values)
        texts = all(isinstance(value, str) for value in self.values)
        x = dialect.bytewise.format(x=name) if texts else name
        if self.is_complement:
            return f"({name} IS NOT NULL AND {x} NOT IN ({cells}))"
        return f"{x} = {cells}"


def _literal(value: Any, feature: str, dialect: Dialect) -> str:
    """Return a category as an SQL literal."""
    if isinstance(value, bool):
        return dialect.truth(value)
    if isinstance(value, str) and "\0" not in value:
        return dialect.text(value)
    if isinstance(value, Real) and math.isfinite(value):
        return dialect.number(float(value))
    raise InputError(
        f"Categories of {feature} must be text, numbers or truth values to be written as SQL; got {value!r}.",
        hint="Convert the column to text first, or select the rows with mask.",
    )


def interval_runs(name: str, edges: Sequence[float]) -> list[Condition]:
    """Return conditions on numbers: runs of neighbouring bins, which begin at their left edge."""
    shown, last = [f"{edge:.12g}" for edge in edges], len(edges)
    limits = (-math.inf, *edges, math.inf)

    def text(first: int, end: int) -> str:
        if first == 0:
            return f"{name} < {shown[end]}"
        return f"{name} >= {shown[first - 1]}" if end == last else f"{shown[first - 1]} <= {name} < {shown[end]}"

    return [
        Condition(name, text(first, end), run, limits[first], limits[end + 1], holds_numbers=True)
        for first, end, run in _runs(last)
    ]


def number_text(value: float) -> str:
    """Return a number in six digits, or in as many as it needs.

    >>> number_text(0.5), number_text(1000002.0), number_text(0.1 + 0.2)
    ('0.5', '1000002', '0.30000000000000004')
    """
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value).removesuffix(".0")


def level_runs(name: str, levels: Sequence[float]) -> list[Condition]:
    """Return conditions on few distinct numbers: runs of neighbouring levels."""
    shown, last = [number_text(level) for level in levels], len(levels) - 1

    def text(first: int, end: int) -> str:
        if first == end:
            return f"{name} = {shown[first]}"
        if first == 0:
            return f"{name} <= {shown[end]}"
        return f"{name} >= {shown[first]}" if end == last else f"{shown[first]} <= {name} <= {shown[end]}"

    def limits(first: int, end: int) -> tuple[float, float]:
        alone = first == end
        return -math.inf if first == 0 and not alone else levels[first], (
            math.inf if end == last and not alone else levels[end]
        )

    return [
        Condition(name, text(first, end), run, *limits(first, end), includes_high=True, holds_numbers=True)
        for first, end, run in _runs(last)
    ]


def _runs(last: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return all runs of 0 to `last` but the whole."""
    return [
        (first, end, tuple(range(first, end + 1)))
        for first in range(last + 1)
        for end in range(first, last + 1)
        if (first, end) != (0, last)
    ]


def category_condition(name: str, value: Any, code: int) -> Condition:
    """Return the condition that a category has a value."""
    shown = repr(value) if isinstance(value, str) else str(value)
    return Condition(name, f"{name} = {shown}", (code,), values=(value,))


def rarer_condition(name: str, common: Sequence[Any], count: int, code: int) -> Condition:
    """Return the condition that a category is none of the common ones."""
    text = f"{name} is one of {count:,} rarer values"
    return Condition(name, text, (code,), values=tuple(common), is_complement=True)


def missing_condition(name: str, code: int, *, holds_numbers: bool) -> Condition:
    """Return the condition that a value is missing."""
    return Condition(name, f"{name} is missing", (code,), is_missing=True, holds_numbers=holds_numbers)
