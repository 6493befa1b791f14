"""Features of an audit: each column as small integer codes, and the conditions that rules are made of."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.class_labels import encode
from calibrant._support.columns import ColumnData
from calibrant._support.typing import Bools, Floats

__all__ = ["Codes", "Condition", "Feature", "encode_feature"]

MOST_LEVELS = 30  # of a category; rarer ones are "other"
QUANTILES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99)  # cuts of numbers; both tails are fine
LARGEST_NUMBER = 8e307
FEW_NUMBERS = 10  # distinct numbers up to which each is a level

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Condition:
    """A readable condition on one feature, and the codes that meet it."""

    text: str
    codes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Feature:
    """A column as codes, with the conditions to be tried.

    Attributes
    ----------
    name : str
    codes : array of uint8
        One per row.
    n_codes : int
    conditions : tuple of Condition
    """

    name: str
    codes: Codes
    n_codes: int
    conditions: tuple[Condition, ...]

    def part(self, rows: Any) -> "Feature":
        """Return the feature of some rows."""
        return replace(self, codes=self.codes[rows])

    @property
    def matrix(self) -> Floats:
        """Conditions x codes: 1 where a code meets a condition."""
        found = np.zeros((len(self.conditions), self.n_codes))
        for row, condition in zip(found, self.conditions, strict=True):
            row[list(condition.codes)] = 1
        return found

    def rows(self, condition: int) -> Bools:
        """Return which rows meet a condition."""
        meets = np.zeros(self.n_codes, dtype=bool)
        meets[list(self.conditions[condition].codes)] = True
        return np.asarray(meets[self.codes])


def encode_feature(name: str, column: ColumnData) -> Feature:
    """Return a column as codes: numbers in bins, others by value; missing cells have a code.

    Numbers are cut at eleven quantiles, those at both ends close together, rounded to three digits; up to ten distinct
    ones are levels of their own. Conditions on numbers are runs of neighbouring bins or levels, on categories single
    values. Of more than thirty categories the rarer ones are one.
    """
    present = ~column.mask
    values = column.values[present]
    if values.dtype.kind in "iuf":
        found, conditions = _encode_numbers(name, values)
    else:
        found, conditions = _encode_categories(name, column.part(present))
    n_codes = 1 + max((code for condition in conditions for code in condition.codes), default=0)
    codes = np.full(len(column), n_codes, dtype=np.uint8)
    codes[present] = found
    if not present.all():
        conditions.append(Condition(f"{name} is missing", (n_codes,)))
    return Feature(name, codes, n_codes + 1, tuple(conditions))


def _encode_numbers(name: str, values: Any) -> tuple[Codes, list[Condition]]:
    levels = np.unique(values) if values.size else values
    if levels.size <= FEW_NUMBERS:
        shown = [f"{level:.6g}" for level in levels]
        return np.searchsorted(levels, values).astype(np.uint8), _level_runs(name, shown)
    cuts = np.quantile(_bounded(values), QUANTILES)
    edges = np.unique([float(f"{cut:.3g}") for cut in cuts])
    edges = edges[(edges > levels[0]) & (edges <= levels[-1])]
    codes = np.searchsorted(edges, values, side="right").astype(np.uint8)
    return codes, _interval_runs(name, [f"{edge:g}" for edge in edges])


def _bounded(values: Any) -> Any:
    """Return numbers whose differences are finite: infinite ones become the nearest finite one."""
    if values.dtype.kind != "f":
        return values
    values = values.astype(np.float64)
    finite = values[np.isfinite(values)]
    return np.clip(values, max(finite.min(), -LARGEST_NUMBER), min(finite.max(), LARGEST_NUMBER))


def _level_runs(name: str, levels: list[str]) -> list[Condition]:
    last = len(levels) - 1
    return [
        Condition(_level_text(name, levels, first, end), tuple(range(first, end + 1)))
        for first in range(last + 1)
        for end in range(first, last + 1)
        if (first, end) != (0, last)
    ]


def _level_text(name: str, levels: list[str], first: int, end: int) -> str:
    if first == end:
        return f"{name} = {levels[first]}"
    if first == 0:
        return f"{name} <= {levels[end]}"
    return f"{name} >= {levels[first]}" if end == len(levels) - 1 else f"{levels[first]} <= {name} <= {levels[end]}"


def _interval_runs(name: str, edges: list[str]) -> list[Condition]:
    last = len(edges)
    return [
        Condition(_interval_text(name, edges, first, end), tuple(range(first, end + 1)))
        for first in range(last + 1)
        for end in range(first, last + 1)
        if (first, end) != (0, last)
    ]


def _interval_text(name: str, edges: list[str], first: int, end: int) -> str:
    if first == 0:
        return f"{name} < {edges[end]}"
    return f"{name} >= {edges[first - 1]}" if end == len(edges) else f"{edges[first - 1]} <= {name} < {edges[end]}"


def _encode_categories(name: str, column: ColumnData) -> tuple[Codes, list[Condition]]:
    labels, codes = encode(column)
    count = np.bincount(codes, minlength=len(labels))
    common = np.sort(np.argsort(-count, kind="stable")[:MOST_LEVELS])
    place = np.full(len(labels), common.size, dtype=np.uint8)
    place[common] = np.arange(common.size)
    conditions = [Condition(f"{name} = {_shown(labels[i])}", (code,)) for code, i in enumerate(common)]
    if len(labels) > common.size:
        rarer = f"{name} is one of {len(labels) - common.size:,} rarer values"
        conditions.append(Condition(rarer, (int(common.size),)))
    if len(conditions) == 1 and not len(labels) > common.size:
        conditions = []  # a constant says nothing
    return place[codes], conditions


def _shown(label: object) -> str:
    return repr(label) if isinstance(label, str) else str(label)
