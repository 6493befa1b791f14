"""Features of an audit: each column as small integer codes, and the conditions that rules are made of.

A column is read in one pass or in batches (`FeatureCounter`), then encoded (`FeatureCodes`), in batches too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import Floats
from calibrant._support.columns import ColumnData, encode, sort_labels
from calibrant._support.errors import InputError
from calibrant.results.audit_conditions import (
    Condition,
    category_condition,
    interval_runs,
    level_runs,
    missing_condition,
    number_text,
    rarer_condition,
)

MOST_LEVELS = 30  # of a category; rarer ones are "other"
QUANTILES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99)  # cuts of numbers; both tails are fine
FEW_NUMBERS = 10  # distinct numbers up to which each is a level
MOST_CUT_ROWS = 2**18  # rows that determine the cuts of numbers
MOST_CATEGORIES = 1_000_000
LARGEST_NUMBER = 8e307  # so that differences of numbers are finite
COARSE_VALUES = 3  # values of a feature in the multicalibration error
COARSE_CODES = COARSE_VALUES + 1  # and missing ones

Codes = NDArray[np.uint8]
Doubt = Literal["empty", "constant", "dates", "ids"]


@dataclass(frozen=True)
class FeatureCodes:
    """How a column becomes codes, and the conditions to be tried.

    Attributes
    ----------
    name : str
    conditions : tuple of Condition
    n_codes : int
        The last code is that of missing values.
    edges : tuple of float or None
        Left edges of bins of numbers but the first; None for categories and few distinct numbers.
    levels : dict
        Code of each common category, or of each of few distinct numbers.
    coarse : tuple of Condition
        The conditions of the multicalibration error: at most three values, and missing ones.
    doubt : str or None
        Why a search by this feature says little: it has no value, one value, dates as categories, or ids.
    """

    name: str
    conditions: tuple[Condition, ...]
    n_codes: int
    edges: tuple[float, ...] | None
    levels: dict[Any, int] = field(repr=False)
    coarse: tuple[Condition, ...]
    thirds: tuple[float, ...] | None
    doubt: Doubt | None = None

    def encode(self, column: ColumnData) -> tuple[Codes, Codes]:
        """Return the codes of a column, and those of the multicalibration error.

        Each value must have been counted; in a file that is read twice another one may appear.
        """
        present = ~column.mask
        if not present.all() and not any(self.n_codes - 1 in condition.codes for condition in self.conditions):
            raise changed_error(column)
        codes = np.full(len(column), self.n_codes - 1, dtype=np.uint8)
        coarse = np.full(len(column), COARSE_VALUES, dtype=np.uint8)
        if self.thirds is not None:
            values = column.values[present]
            if self.edges is None and not np.isin(values, list(self.levels)).all():
                raise changed_error(column)
            codes[present] = self._number_codes(values)
            coarse[present] = np.searchsorted(self.thirds, values, side="left")
        else:
            labels, place = encode(column.part(present))
            if not self._has_rarer and not self.levels.keys() >= set(labels):
                raise changed_error(column)
            known = self.n_codes - 2  # the code of rarer values, if there are any
            codes[present] = np.array([self.levels.get(label, known) for label in labels], dtype=np.uint8)[place]
            first = {label: i for i, label in enumerate(value for c in self.coarse for value in c.values)}
            rest = COARSE_VALUES - 1
            coarse[present] = np.array([first.get(label, rest) for label in labels], dtype=np.uint8)[place]
        return codes, coarse

    @property
    def _has_rarer(self) -> bool:
        """Whether rarer categories have one code together."""
        return len(self.levels) == MOST_LEVELS and self.n_codes > MOST_LEVELS + 1

    def _number_codes(self, values: Any) -> Any:
        if self.edges is None:
            return np.searchsorted(np.array(list(self.levels), dtype=np.float64), values)
        return np.searchsorted(self.edges, values, side="right")

    def matrix(self) -> Floats:
        """Conditions x codes: 1 where a code meets a condition."""
        found = np.zeros((len(self.conditions), self.n_codes))
        for row, condition in zip(found, self.conditions, strict=True):
            row[list(condition.codes)] = 1
        return found


def changed_error(column: ColumnData) -> InputError:
    """Return the error of a column with a value that it did not have when it was counted."""
    return column.error(
        "must hold the same values each time it is read; it was changed meanwhile.", hint="Read the files again."
    )


class FeatureCounter:
    """Reads a column in batches: the rows that determine the cuts of numbers, or the counts of categories.

    Every k-th row determines the cuts; k is the smallest power of two for which these are at most `MOST_CUT_ROWS`, so
    that the cuts do not depend on the batches.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen, self._step = 0, 1
        self._kept = list[Floats]()  # NaN where a value is missing
        self._ends, self._levels = (np.inf, -np.inf), np.empty(0)
        self._counts: Counter[Any] = Counter()
        self._numeric: bool | None = None
        self._has_missing = False

    def add(self, column: ColumnData) -> None:
        """Add a batch."""
        present = ~column.mask
        self._has_missing |= not bool(present.all())
        values = column.values[present]
        numeric = values.dtype.kind in "iuf"
        if values.size and self._numeric not in (None, numeric):
            raise column.error("must hold numbers in all batches, or in none.", hint="Convert the column first.")
        self._numeric = numeric if values.size else self._numeric
        if values.size and not numeric:
            self._add_categories(column.part(present))
        if self._numeric is not False:
            self._add_numbers(column, values if values.size else np.empty(0))
        self._seen += len(column)
        self._thin()

    def _add_numbers(self, column: ColumnData, values: Any) -> None:
        rows = slice(-self._seen % self._step, None, self._step)
        missing = column.mask[rows]
        numbers = column.values[rows] if values.size else np.zeros(missing.size)
        self._kept.append(np.where(missing, np.nan, numbers).astype(np.float64))
        if values.size:
            self._ends = min(self._ends[0], float(values.min())), max(self._ends[1], float(values.max()))
        if self._levels.size <= FEW_NUMBERS:
            self._levels = np.unique(np.concatenate([self._levels, np.unique(values).astype(np.float64)]))

    def _thin(self) -> None:
        while -(-self._seen // self._step) > MOST_CUT_ROWS:
            self._kept = [np.concatenate(self._kept)[::2]] if self._kept else []
            self._step *= 2

    @property
    def _sample(self) -> Floats:
        """The numbers that determine the cuts."""
        values = np.concatenate(self._kept)
        return np.clip(values[np.isfinite(values)], -LARGEST_NUMBER, LARGEST_NUMBER)

    def _add_categories(self, column: ColumnData) -> None:
        labels, place = encode(column)
        for label, count in zip(labels, np.bincount(place, minlength=len(labels)).tolist(), strict=True):
            self._counts[label] += count
        if len(self._counts) > MOST_CATEGORIES:
            raise InputError(
                f"{column.name} must have at most {MOST_CATEGORIES:,} distinct categories; got more.",
                hint="Leave out columns of ids.",
                argument="features",
            )

    def finish(self) -> FeatureCodes:
        """Return how the column is encoded."""
        numeric = bool(self._numeric)
        found = self._number_codes() if numeric else self._category_codes()
        conditions, edges, levels, coarse, thirds = found
        n_codes = 1 + max((code for condition in conditions for code in condition.codes), default=0)
        if self._has_missing:
            conditions = [*conditions, missing_condition(self.name, n_codes, holds_numbers=numeric)]
            coarse = [*coarse, missing_condition(self.name, COARSE_VALUES, holds_numbers=numeric)]
        about = (n_codes + 1, edges, levels, tuple(coarse), thirds, self._doubt())
        return FeatureCodes(self.name, tuple(conditions), *about)

    def _doubt(self) -> Doubt | None:
        """Return why a search by this feature says little."""
        if self._numeric is None:
            return "empty"
        if self._numeric:
            return "constant" if self._levels.size == 1 and not self._has_missing else None
        if isinstance(next(iter(self._counts)), (date, timedelta, np.datetime64, np.timedelta64)):
            return "dates"
        if len(self._counts) == 1:
            return None if self._has_missing else "constant"
        return "ids" if len(self._counts) > max(MOST_LEVELS, self._seen // 2) else None

    def _number_codes(self) -> Any:
        """Cut numbers at quantiles, those at both ends close together."""
        thirds, coarse = self._thirds()
        if self._levels.size <= FEW_NUMBERS:
            levels = self._levels.tolist()
            return level_runs(self.name, levels), None, {x: i for i, x in enumerate(levels)}, coarse, thirds
        cuts = np.quantile(self._sample, QUANTILES) if self._sample.size else ()
        edges = round_apart(np.unique(cuts))
        edges = edges[(edges > self._ends[0]) & (edges <= self._ends[1])]
        return interval_runs(self.name, edges.tolist()), tuple(edges.tolist()), {}, coarse, thirds

    def _thirds(self) -> tuple[tuple[float, ...], list[Condition]]:
        """Return the limits of thirds, or of at most three distinct numbers, and the conditions on them."""
        levels = self._levels.tolist()
        if self._levels.size <= COARSE_VALUES:
            alone = [
                Condition(self.name, f"{self.name} = {number_text(x)}", (i,), values=(x,)) for i, x in enumerate(levels)
            ]
            return tuple(levels[:-1]), alone
        known = self._sample if self._sample.size else np.zeros(1)
        cuts = np.unique(np.quantile(known, (1 / 3, 2 / 3))).tolist()
        shown = [_cut_text(cut, known) for cut in cuts]
        texts = [f"{self.name} <= {shown[0]}"]
        texts += [f"{low} < {self.name} <= {high}" for low, high in pairwise(shown)]
        texts.append(f"{self.name} > {shown[-1]}")
        return tuple(cuts), [Condition(self.name, text, (i,)) for i, text in enumerate(texts)]

    def _category_codes(self) -> Any:
        """Give common categories a code each; of more than thirty the rarer ones have one together."""
        labels = sort_labels(set(self._counts))
        by_count = sorted(range(len(labels)), key=lambda i: -self._counts[labels[i]])  # stable: sorted by label
        common = [labels[i] for i in sorted(by_count[:MOST_LEVELS])]
        conditions = [category_condition(self.name, label, code) for code, label in enumerate(common)]
        if len(labels) > len(common):
            conditions.append(rarer_condition(self.name, common, len(labels) - len(common), len(common)))
        elif len(conditions) == 1:
            conditions = []  # a constant says nothing
        levels = {label: code for code, label in enumerate(common)}
        return conditions, None, levels, self._coarse_categories(labels, by_count), None

    def _coarse_categories(self, labels: Sequence[Any], by_count: list[int]) -> list[Condition]:
        few = len(labels) <= COARSE_VALUES
        shown = [labels[i] for i in (by_count if few else by_count[: COARSE_VALUES - 1])]
        found = [category_condition(self.name, label, code) for code, label in enumerate(shown)]
        if not few:
            other = f"{self.name} is one of {len(labels) - len(shown):,} other values"
            found.append(Condition(self.name, other, (COARSE_VALUES - 1,)))
        return found


def _cut_text(cut: float, known: Floats) -> str:
    """Return a limit in six digits, or in as many as divide the known numbers as the limit itself does."""
    below = np.count_nonzero(known <= cut)
    texts = (f"{cut:.{digits}g}" for digits in range(6, 17))
    return next((text for text in texts if np.count_nonzero(known <= float(text)) == below), number_text(cut))


def round_apart(cuts: Floats) -> Floats:
    """Return increasing numbers, rounded to a power of ten that is at most a tenth of the distance to a neighbour.

    >>> round_apart(np.array([-118.2417, -118.0061, 12.34567])).tolist()
    [-118.24, -118.01, 10.0]
    """
    if cuts.size < 2:
        return cuts
    with np.errstate(over="ignore"):
        gaps = np.diff(cuts)
    nearest = np.clip(np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps)), 1e-300, 1e300)
    digits = -np.floor(np.log10(nearest / 10)).astype(int)
    return np.unique([round(float(cut), int(count)) for cut, count in zip(cuts, digits, strict=True)])


def count_feature(name: str, column: ColumnData) -> FeatureCodes:
    """Return how one column is encoded."""
    counter = FeatureCounter(name)
    counter.add(column)
    return counter.finish()
