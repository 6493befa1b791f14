"""Columns of features as small integer codes: numbers in bins, categories by label, and a code for missing cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError
from calibrant.calibrators import maps
from calibrant.tables.rows import several_columns

__all__ = [
    "CategoryCodes",
    "Codes",
    "NumberCodes",
    "apply_codes",
    "code_cuts",
    "codes_from_dict",
    "cuts_from_list",
    "fit_codes",
]

MOST_BINS = 64  # of a column of numbers
MOST_LABELS = 200  # of a column of categories; rarer ones share a code

Codes: TypeAlias = NDArray[np.uint8]


def code_cuts(values: Floats) -> Floats:
    """Return the cuts between bins of about equal size; each distinct value has its own bin if there are few.

    Values are finite. A bin holds the values from one cut to the next, that one excluded.
    """
    distinct, count = np.unique(values, return_counts=True)
    start = np.arange(distinct.size)
    if distinct.size > MOST_BINS:
        ends = np.cumsum(count)
        ranks = np.arange(1, MOST_BINS) * values.size // MOST_BINS
        start = np.unique(np.append(0, np.searchsorted(ends, ranks, side="right")))
    return maps.between(distinct, start) if distinct.size else np.empty(0)


@dataclass(frozen=True, eq=False)
class NumberCodes:
    """Bins of a column of numbers; the last code is that of missing cells."""

    name: str
    cuts: Floats

    is_category = False

    @property
    def n_codes(self) -> int:
        """Number of codes, that of missing cells among them."""
        return self.cuts.size + 2

    @classmethod
    def fit(cls, name: str, column: _columns.ColumnData) -> "NumberCodes":
        """Return the bins of a column; infinite cells count as the largest numbers."""
        values = _columns.numbers(column).values[~column.mask].astype(np.float64)
        largest = np.finfo(np.float64).max
        return cls(name, code_cuts(np.clip(values, -largest, largest)))

    def __call__(self, column: _columns.ColumnData) -> Codes:
        """Return the code of each row."""
        values = _columns.numbers(column).values.astype(np.float64)
        codes = np.searchsorted(self.cuts, values, side="right").astype(np.uint8)
        codes[column.mask] = self.n_codes - 1
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return the bins as plain data for JSON."""
        return {"name": self.name, "cuts": self.cuts.tolist()}


@dataclass(frozen=True, eq=False)
class CategoryCodes:
    """Labels of a column of categories.

    The code of a label is its place. If `other`, labels that are not listed share the code after them; else they are
    treated as missing. The last code is that of missing cells.
    """

    name: str
    labels: tuple[Any, ...]
    other: bool

    is_category = True

    @property
    def n_codes(self) -> int:
        """Number of codes, that of missing cells among them."""
        return len(self.labels) + self.other + 1

    @classmethod
    def fit(cls, name: str, column: _columns.ColumnData) -> "CategoryCodes":
        """Return the most frequent labels of a column, sorted."""
        labels, code = _columns.encode(column)
        count = np.bincount(code[code >= 0], minlength=len(labels))
        kept = np.sort(np.argsort(-count, kind="stable")[:MOST_LABELS])
        return cls(name, tuple(_plain_label(labels[i]) for i in kept), kept.size < len(labels))

    def __call__(self, column: _columns.ColumnData) -> Codes:
        """Return the code of each row; a label that was not seen in the fit is a rarer one, or missing."""
        labels, code = _columns.encode(column)
        self._check_types(column, labels)
        place = {label: i for i, label in enumerate(self.labels)}
        found = [place.get(_plain_label(label), len(self.labels)) for label in labels]
        return np.array([*found, self.n_codes - 1], dtype=np.uint8)[code]  # -1, missing, is the last one

    def _check_types(self, column: _columns.ColumnData, labels: Sequence[Any]) -> None:
        """Raise an error if the labels are text where those of the fit are not, or the reverse."""
        now, fitted = ({isinstance(label, str) for label in each} for each in (labels, self.labels))
        if now and fitted and not now & fitted:
            raise column.error(
                f"must hold labels of the same type as in the fit, such as {self.labels[0]!r}; got "
                f"{_plain_label(labels[0])!r}.",
                hint="Convert the column to text." if fitted == {True} else "Convert the column to numbers.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the labels as plain data for JSON."""
        odd = [label for label in self.labels if not _is_plain(label)]
        if odd:
            raise InputError(
                f"Categories of {self.name!r} must be text or finite numbers to be saved; got {odd[0]!r}.",
                hint="Encode them first.",
            )
        return {"name": self.name, "labels": list(self.labels), "other": self.other}


def _plain_label(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _is_plain(label: Any) -> bool:
    return isinstance(label, (str, int)) or (isinstance(label, float) and math.isfinite(label))


def codes_from_dict(data: Any) -> NumberCodes | CategoryCodes:
    """Return the codes that `to_dict` describes; anything else is an error."""
    fields = set(data) if isinstance(data, Mapping) else set()
    if fields == {"name", "cuts"} and isinstance(data["name"], str):
        return NumberCodes(data["name"], cuts_from_list(data["cuts"]))
    if fields == {"name", "labels", "other"} and isinstance(data["name"], str):
        labels, other = data["labels"], data["other"]
        listed = isinstance(labels, list) and len(labels) <= MOST_LABELS and all(map(_is_plain, labels))
        if listed and len(set(labels)) == len(labels) and isinstance(other, bool):
            return CategoryCodes(data["name"], tuple(labels), other)
    raise InputError("a feature must have a name and cuts, or a name, different labels and other.")


def cuts_from_list(values: Any) -> Floats:
    if not isinstance(values, list) or len(values) >= MOST_BINS or not all(isinstance(v, float) for v in values):
        raise InputError(f"cuts must be a list of fewer than {MOST_BINS} numbers.")
    cuts = np.array(values, dtype=np.float64)
    if not (np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()):
        raise InputError("cuts must be finite and increase.")
    return cuts


def fit_codes(X: Any, features: Sequence[Any] | None = None) -> tuple[NumberCodes | CategoryCodes, ...]:
    """Return the codes of the columns of a frame or an array: of all, or of those that `features` names.

    Columns of text, and those that a frame declares as categories, are categories; all others are numbers.
    """
    named = _named_columns(X)
    chosen = list(named) if features is None else [_known(name, list(named)) for name in features]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(
            f"features must name at least one column, and each once; got {features!r}.", argument="features"
        )
    return tuple(_fit_column(name, named[name]) for name in chosen)


def _fit_column(name: str, given: Column) -> NumberCodes | CategoryCodes:
    column = _columns.read(given, f"X[{name!r}]")
    if column.values.dtype.kind in "Mmc":
        raise column.error(
            f"must hold numbers or categories; got type {column.values.dtype}.",
            hint="Convert it to numbers, or name the columns to use in features.",
        )
    declared = str(getattr(given, "dtype", "")) == "category"  # of pandas; those of polars are read as text
    if declared or not _all_numbers(column):
        return CategoryCodes.fit(name, column)
    return NumberCodes.fit(name, column)


def _all_numbers(column: _columns.ColumnData) -> bool:
    try:
        _columns.numbers(column)
    except InputError:
        return False
    return True


def apply_codes(coders: Sequence[NumberCodes | CategoryCodes], X: Any) -> Codes:
    """Return the codes of the columns of X, one column for each feature."""
    named = _named_columns(X)
    names = [_known(coder.name, list(named)) for coder in coders]
    read = [_columns.read(named[name], f"X[{name!r}]") for name in names]
    return np.column_stack([coder(column) for coder, column in zip(coders, read, strict=True)])


def _named_columns(X: Any) -> dict[str, Column]:
    if hasattr(type(X), "columns"):
        found = several_columns(X, "X")
        assert found is not None
        return found
    matrix = np.asarray(X)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise InputError(
            f"X must have two dimensions, rows and features; got shape {matrix.shape}.",
            hint="Reshape your data, or pass a frame.",
            argument="X",
        )
    return {str(j): matrix[:, j] for j in range(matrix.shape[1])}


def _known(name: Any, names: list[str]) -> str:
    if str(name) not in names:
        raise InputError(
            f"features must name columns of X; got {name!r}, X has {', '.join(map(repr, names[:8]))}.",
            argument="features",
            value=name,
        )
    return str(name)
