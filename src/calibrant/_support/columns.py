"""Reading one column of outside data: lists, arrays, Series, tensors to a checked one-dimensional array.

Only what is wrong with a column by itself is decided here; `table` puts columns together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.errors import Argument, InputError, Note, Text
from calibrant._support.typing import Bools, Floats, Ints
from calibrant._support.typing import Column as Outside

# Sums of float32 softmax outputs pass 1 by this much; beyond it, a value is not a probability.
CLIP_TOLERANCE = 1e-6
# What to do about missing cells, where rows can be left out.
DROP = "Pass " + Argument("missing", "drop") + " to leave such rows out; they will be counted in the result."
LARGEST_SCORE = 1e300
# What stands for nothing in a CSV file.
NULLS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
# Below this the square of a weight comes near to vanishing.
LEAST_WEIGHT = 1e-100
TEXT_KINDS = "UST"  # NumPy's kinds of text: str, bytes, StringDType


@dataclass(frozen=True)
class ColumnData:
    """One column: its values, which of them are missing, and what was noted while reading.

    Where an engine counted equal rows already, `times` says how many rows each cell stands for; which they were is then
    not known, so that errors name none.
    """

    name: str
    values: NDArray[Any]
    missing: Bools | None = None  # None: none is known to be
    notes: tuple[Note, ...] = ()
    times: Ints | None = None  # None: each is one row

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, cells: Bools) -> int:
        """How many rows the marked cells stand for."""
        return int(cells.sum() if self.times is None else self.times[cells].sum())

    def first(self, row: int) -> str:
        """How an error speaks of the first of the cells that are wrong."""
        return f"the first at row {row}" if self.times is None else "one of them"

    def cell(self, row: int) -> str:
        """How an error speaks of one cell that is wrong, where there may be others."""
        return f"row {row}" if self.times is None else "a value"

    @property
    def mask(self) -> Bools:
        """Which cells are missing, as an array in any case."""
        return np.zeros(len(self), dtype=bool) if self.missing is None else self.missing

    def error(self, found: str, *, hint: str | Text, row: int | None = None, value: object = None) -> InputError:
        row = row if self.times is None else None
        return InputError(f"{self.name} {found}", hint=hint, argument=self.name, row=row, value=value)


def check_lengths(columns: Sequence[ColumnData]) -> None:
    """All columns must be as long as the first."""
    first = columns[0]
    for column in columns[1:]:
        if len(column) != len(first):
            raise column.error(
                f"has {len(column):,} rows, {first.name} has {len(first):,}; they must be equally long.", hint=""
            )


def refuse_missing(columns: Sequence[ColumnData], *, hint: str | Text = "Leave such rows out first.") -> None:
    """No column may lack a value."""
    for column in columns:
        if column.missing is not None:
            count, row = column.rows(column.missing), int(np.argmax(column.missing))
            plural = "s" if count > 1 else ""
            where = f" (first at row {row})" if column.times is None else ""
            raise column.error(f"has {count:,} missing value{plural}{where}.", hint=hint, row=row)


def check_alignment(columns: Mapping[str, Outside]) -> None:
    """Rows are matched by position, so pandas indexes that say otherwise are an error."""
    indexed = [(name, c.index) for name, c in columns.items() if hasattr(getattr(c, "index", None), "equals")]
    for name, index in indexed[1:]:
        if not index.equals(indexed[0][1]):
            raise InputError(
                f"The indexes of {indexed[0][0]} and {name} differ.",
                hint="Rows are matched by position: align the two, or pass .to_numpy().",
                argument=name,
            )


def read(column: Outside, name: str, *, hint: str | None = None) -> ColumnData:
    """The column as a one-dimensional array. Masked and null cells, None and NaN are marked missing.

    `hint` is what to do about two dimensions, where they are not probabilities of classes.
    """
    missing: NDArray[Any] | None = None
    if isinstance(column, np.ma.MaskedArray):
        missing, column = np.ma.getmaskarray(column), np.ma.getdata(column)
    elif hasattr(column, "__dlpack__") and not hasattr(column, "__array__"):  # other libraries' arrays, where they lie
        column = np.from_dlpack(column)
    elif hasattr(column, "detach"):  # a torch tensor: off the graph, off the device; NumPy has no bfloat16
        column = column.detach().cpu()
        column = column.float().numpy() if "bfloat16" in str(column.dtype) else column.numpy()
    else:
        if hasattr(column, "dictionary_decode"):  # Arrow's categoricals
            column = column.dictionary_decode()
        for ask in ("isna", "is_null"):  # pandas; polars and Arrow
            if hasattr(column, ask):
                missing = np.asarray(getattr(column, ask)())
                break
    values, notes = _one_dimension(as_array(column, name), name, hint)
    missing = None if missing is None else missing.reshape(-1)
    if values.dtype.kind == "f":
        absent = np.isnan(values)
    elif values.dtype.kind in "Mm":
        absent = np.isnat(values)
    elif values.dtype.kind == "O":
        absent = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    else:
        absent = np.zeros(0, dtype=bool)
    if absent.any():
        missing = absent if missing is None else missing | absent
    return ColumnData(name, values, missing if missing is not None and missing.any() else None, notes)


def as_array(column: Outside, name: str) -> NDArray[Any]:
    """The outside data as an array of any dimension, text and numbers kept apart."""
    try:
        values = np.asarray(column)
    except ValueError as error:
        raise InputError(
            f"{name} must be one column; NumPy cannot read it: {error}",
            hint="Are its rows equally long?",
            argument=name,
        ) from error
    if values.dtype.kind == "T":
        return values.astype(object)
    # In a list of text and numbers NumPy turns all to text, NaN to 'nan': such cells are kept as they are.
    mixed = values.dtype.kind in TEXT_KINDS and values.ndim == 1 and isinstance(column, (list, tuple))
    if mixed and not all(isinstance(cell, (str, bytes)) for cell in column):
        return np.fromiter(column, dtype=object, count=len(column))
    return values


def _is_missing(cell: object) -> bool:
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float):  # NumPy's float64 too
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")  # of pandas, which may not be installed


def _one_dimension(values: NDArray[Any], name: str, hint: str | None = None) -> tuple[NDArray[Any], tuple[Note, ...]]:
    if values.ndim == 1:
        return values, ()
    if values.ndim == 2 and values.shape[1] == 1:
        note = Note("one_column", 1, f"{name} had shape (n, 1) and was read as one column.")
        return values.reshape(-1), (note,)
    if hint is not None:
        pass
    elif values.ndim == 2 and values.shape[1] == 2:
        hint = f"Two columns: pass the one of the event, {name}[:, 1]."
    elif values.ndim == 2:
        hint = "For several classes use calibrant.classwise or calibrant.top_label."
    else:
        hint = "Pass an array, a list or a column."
    raise InputError(f"{name} must have one dimension; its shape is {values.shape}.", hint=hint, argument=name)


def numbers(column: ColumnData) -> ColumnData:
    """The column with numeric values: cells of objects are read one by one, text and complex numbers refused."""
    values = column.values
    if values.dtype.kind in "biuf":
        return column
    if values.dtype.kind == "O":
        return _numbers_from_objects(column)
    raise column.error(
        f"must hold numbers; its type is {values.dtype}.",
        hint="Convert it first; nothing is parsed or converted here.",
        row=0,
        value=values[0] if values.size else None,
    )


def _numbers_from_objects(column: ColumnData) -> ColumnData:
    values = np.full(len(column), np.nan)
    for row in np.flatnonzero(~column.mask).tolist():
        cell = column.values[row]
        try:
            if not isinstance(cell, (Real, Decimal, np.bool_)):
                raise TypeError
            values[row] = float(cell)
        except (TypeError, OverflowError) as error:
            shown = repr(cell) if len(repr(cell)) < 40 else repr(cell)[:37] + "..."
            raise column.error(
                f"must hold numbers; {column.cell(row)} is {shown} ({type(cell).__name__}).",
                hint="Convert it first; nothing is parsed or converted here.",
                row=row,
                value=cell,
            ) from error
    return replace(column, values=values)


def scores(column: ColumnData, *, squash: str = "a sigmoid (scipy.special.expit)") -> ColumnData:
    """Probabilities: numbers in [0, 1]. Within 1e-6 of that they are clipped, and counted in a note."""
    column = numbers(column)
    notes = column.notes
    if column.values.dtype.kind == "f" and column.values.dtype.itemsize == 2:
        notes += (Note("float16", 1, f"{column.name} is float16, which has 11 bits: many scores tie."),)
    values = column.values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        outside = ~((values >= 0) & (values <= 1)) & ~column.mask
        far = outside & ~((values >= -CLIP_TOLERANCE) & (values <= 1 + CLIP_TOLERANCE))
    if far.any():
        raise _not_probabilities(column, values, far, squash)
    if outside.any():
        clipped = np.clip(values, 0, 1)
        excess = np.abs(values - clipped)[outside].max()
        text = f"{{count}} values of {column.name} lay outside [0, 1] by at most {excess:.2g} and were clipped."
        notes += (Note("clipped", column.rows(outside), text),)
        values = clipped
    return replace(column, values=values, notes=notes)


def finite(column: ColumnData) -> ColumnData:
    """Scores of any kind: finite numbers, so small that differences of them are finite too."""
    column = numbers(column)
    values = column.values.astype(np.float64)
    if values.size and values.min() >= -LARGEST_SCORE and values.max() <= LARGEST_SCORE:
        return replace(column, values=values)
    bad = ~(np.abs(values) <= LARGEST_SCORE) & ~column.mask
    if bad.any():
        row = int(np.argmax(bad))
        raise column.error(
            f"must hold finite numbers, at most {LARGEST_SCORE:g} in size; row {row} is {values[row]:.6g}.",
            hint="Look for a division by zero or an overflow where the scores are made.",
            row=row,
            value=values[row].item(),
        )
    return replace(column, values=values)


def _not_probabilities(column: ColumnData, values: Floats, far: Bools, squash: str) -> InputError:
    row = int(np.argmax(far))
    finite = values[np.isfinite(values) & ~column.mask]
    if not np.isfinite(values[row]):
        hint = "Look for a division by zero or an overflow where the scores are made."
    elif (finite < 0).any():
        hint = f"Negative values: logits or margins? Apply {squash} first."
    elif finite.max() <= 100:
        hint = f"Values up to {finite.max():.4g}: percentages? Divide by 100."
    else:
        hint = "Convert the scores to probabilities first."
    return column.error(
        f"must lie in [0, 1]; {column.rows(far):,} of {column.rows(np.ones_like(far)):,} values do not, "
        f"{column.first(row)} is {values[row]:.6g}.",
        hint=hint,
        row=row,
        value=values[row].item(),
    )


def read_weights(sample_weight: Outside, column: ColumnData) -> Floats:
    """The weights of the rows of a column, none missing."""
    read_in = weights(read(sample_weight, "sample_weight"))
    refuse_missing([read_in])
    check_lengths([column, read_in])
    values: Floats = read_in.values
    return values


def one_kind_of_weight(sample_weight: object, frequency: object) -> None:
    """A row has an importance weight or a frequency, never both."""
    if sample_weight is not None and frequency is not None:
        raise InputError(
            Argument("sample_weight") + " and " + Argument("frequency") + " must not be given together; got both.",
            hint="Pass "
            + Argument("sample_weight")
            + " for importance weights, or "
            + Argument("frequency")
            + " for numbers of equal rows.",
            argument="frequency",
        )


def frequencies(column: ColumnData) -> ColumnData:
    """Numbers of equal rows: whole numbers, none negative."""
    column = numbers(column)
    values: Floats = column.values.astype(np.float64)
    bad = ~((values >= 0) & (values == np.rint(values)) & np.isfinite(values)) & ~column.mask
    if bad.any():
        row = int(np.argmax(bad))
        where = "" if column.times is not None else f" (row {row})"
        raise column.error(
            f"must be a whole number of rows, 0 or more; got {values[row]:.10g}{where}.",
            hint="For real weights use " + Argument("sample_weight") + ".",
            row=row,
            value=values[row].item(),
        )
    return replace(column, values=values)


def weights(column: ColumnData) -> ColumnData:
    """Weights: finite numbers, none negative, none so small that its square vanishes."""
    column = numbers(column)
    values: Floats = column.values.astype(np.float64)
    bad = ~((values >= 0) & np.isfinite(values)) & ~column.mask
    small = (values > 0) & (values < LEAST_WEIGHT)
    if bad.any() or small.any():
        row = int(np.argmax(bad if bad.any() else small))
        rule = "be finite and not negative" if bad.any() else f"be 0 or at least {LEAST_WEIGHT:g}"
        raise column.error(
            f"must {rule}; {column.rows(bad if bad.any() else small):,} of {column.rows(np.ones_like(bad)):,} values "
            f"are not so, {column.first(row)} is {values[row]:.6g}.",
            hint="A weight says how much a row counts, relative to the others; leave rows out with weight 0.",
            row=row,
            value=values[row].item(),
        )
    return replace(column, values=values)
