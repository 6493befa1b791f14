"""Reading one column of outside data: lists, arrays, Series, tensors to a checked one-dimensional array.

Only what is wrong with a column by itself is decided here; `table` puts columns together.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import Bools, Floats
from calibrant._typing import Column as Outside
from calibrant.errors import InputError, Note

# Sums of float32 softmax outputs pass 1 by this much; beyond it, a value is not a probability.
CLIP_TOLERANCE = 1e-6
_MAX_LABELS_SHOWN = 5


@dataclass(frozen=True)
class Column:
    """One column: its values, which of them are missing (None: none known to be), what was noted."""

    name: str
    values: NDArray[Any]
    missing: Bools | None = None
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.values)


def read(column: Outside, name: str) -> Column:
    """The column as a one-dimensional array. Masked, null, None and NaN cells are marked missing."""
    missing: NDArray[Any] | None = None
    if isinstance(column, np.ma.MaskedArray):
        missing, column = np.ma.getmaskarray(column), np.ma.getdata(column)
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
    values, notes = _one_dimension(np.asarray(column), name)
    if missing is not None:
        missing = missing.reshape(-1) if missing.any() else None
    return Column(name, values, missing, notes)


def _one_dimension(values: NDArray[Any], name: str) -> tuple[NDArray[Any], tuple[Note, ...]]:
    if values.ndim == 1:
        return values, ()
    if values.ndim == 2 and values.shape[1] == 1:
        note = Note("one_column", 1, f"{name} had shape (n, 1) and was read as one column.")
        return values.reshape(-1), (note,)
    if values.ndim == 2 and values.shape[1] == 2:
        hint = f"Two columns: pass the one of the event, {name}[:, 1]."
    elif values.ndim == 2:
        hint = "For several classes use calibrant.classwise or calibrant.top_label."
    else:
        hint = "Pass an array, a list or a column."
    raise InputError(f"{name} must have one dimension; its shape is {values.shape}.", hint=hint, argument=name)


def numbers(column: Column) -> Column:
    """The column with numeric values: cells of objects are read one by one, text and complex numbers refused."""
    values = column.values
    if values.dtype.kind in "biuf":
        if values.dtype.kind == "f" and np.isnan(values).any():
            missing = np.isnan(values) if column.missing is None else column.missing | np.isnan(values)
            return Column(column.name, values, missing, column.notes)
        return column
    if values.dtype.kind == "O":
        return _numbers_from_objects(column)
    value = values[0] if values.size else None
    raise InputError(
        f"{column.name} must hold numbers; its type is {values.dtype}.",
        hint="Convert it first; nothing is parsed or converted here.",
        argument=column.name,
        row=0,
        value=value,
    )


def _numbers_from_objects(column: Column) -> Column:
    values = np.full(len(column), np.nan)
    for row, cell in enumerate(column.values):
        if _is_missing(cell):
            continue
        if not isinstance(cell, (Real, Decimal, np.bool_)):
            raise InputError(
                f"{column.name} must hold numbers; row {row} is {cell!r} ({type(cell).__name__}).",
                hint="Convert it first; nothing is parsed or converted here.",
                argument=column.name,
                row=row,
                value=cell,
            )
        values[row] = float(cell)
    missing = np.isnan(values)
    return Column(column.name, values, missing if missing.any() else None, column.notes)


def _is_missing(cell: object) -> bool:
    if isinstance(cell, (Real, Decimal)):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")  # of pandas, which may not be installed


def scores(column: Column) -> Column:
    """Probabilities: numbers in [0, 1]. Within 1e-6 of that they are clipped, and counted in a note."""
    column = numbers(column)
    values, notes = column.values, column.notes
    if values.dtype == np.float16:
        notes += (Note("float16", 1, f"{column.name} is float16, which has 11 bits: many scores tie."),)
    values = values.astype(np.result_type(values.dtype, np.float32), copy=False)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        outside = ~((values >= 0) & (values <= 1)) & ~_missing(column)
        if not outside.any():
            return Column(column.name, values, column.missing, notes)
        far = outside & ~((values >= -CLIP_TOLERANCE) & (values <= 1 + CLIP_TOLERANCE))
    if far.any():
        raise _not_probabilities(column.name, values, far, _missing(column))
    excess = np.abs(values[outside] - np.clip(values[outside], 0, 1)).max()
    notes += (
        Note(
            "clipped",
            int(outside.sum()),
            f"{{count}} values of {column.name} lay outside [0, 1] by at most {excess:.2g} and were clipped.",
        ),
    )
    return Column(column.name, np.where(outside, np.clip(values, 0, 1), values), column.missing, notes)


def _not_probabilities(name: str, values: NDArray[Any], far: Bools, missing: Bools) -> InputError:
    row = int(np.argmax(far))
    finite = values[np.isfinite(values) & ~missing]
    if not np.isfinite(values[row]):
        hint = "Look for a division by zero or an overflow where the scores are made."
    elif (finite < 0).any():
        hint = "Negative values: logits or margins? Apply a sigmoid (scipy.special.expit) first."
    elif 1 < finite.max() <= 100:
        hint = f"Values up to {finite.max():.4g}: percentages? Divide by 100."
    else:
        hint = "Convert the scores to probabilities first."
    return InputError(
        f"{name} must lie in [0, 1]; {far.sum():,} of {values.size:,} values do not, "
        f"the first at row {row} is {values[row]:.6g}.",
        hint=hint,
        argument=name,
        row=row,
        value=values[row].item(),
    )


def labels(column: Column, pos_label: object = None) -> Column:
    """Outcomes as 0 and 1. Anything else needs `pos_label`, the label of the event."""
    if pos_label is not None:
        return _event(column, pos_label)
    if column.values.dtype.kind in "OUST" and _holds_text(column):
        raise _needs_pos_label(column, _distinct(column))
    column = numbers(column)
    values = column.values
    bad = ~((values == 0) | (values == 1)) & ~_missing(column)
    if not bad.any():
        return column
    distinct = _distinct(column)
    row = int(np.argmax(bad))
    where = {"argument": column.name, "row": row, "value": values[row].item()}
    if len(distinct) > 2 and not np.all(np.equal(np.mod(values[bad], 1), 0)):
        raise InputError(
            f"{column.name} must hold 0 and 1; row {row} is {values[row]:.6g}.",
            hint="Soft labels are not outcomes: pass what happened, or weight two rows.",
            **where,
        )
    if len(distinct) > 2:
        raise _too_many_labels(column, distinct)
    if len(distinct) == 2 and not np.isin(np.mod(distinct, 1), 0).all():
        raise InputError(
            f"{column.name} must hold 0 and 1; row {row} is {values[row]:.6g}.",
            hint="Soft labels are not outcomes; if these are two classes, say which is the event with pos_label.",
            **where,
        )
    raise _needs_pos_label(column, distinct)


def _event(column: Column, pos_label: object) -> Column:
    distinct = _distinct(column)
    if len(distinct) > 2:
        raise _too_many_labels(column, distinct)
    if len(distinct) == 2 and not any(label == pos_label for label in distinct):
        raise InputError(
            f"pos_label must be one of the labels of {column.name}, which are {_shown(distinct)}; it is {pos_label!r}.",
            hint="Mind the type: the text '1' is not the number 1.",
            argument="pos_label",
            value=pos_label,
        )
    missing = _missing_cells(column)
    event = np.zeros(len(column), dtype=np.int8)
    for label in distinct:
        if label == pos_label:
            event[~missing] = column.values[~missing] == label
    return Column(column.name, event, missing if missing.any() else None, column.notes)


def _missing(column: Column) -> Bools:
    return np.zeros(len(column), dtype=bool) if column.missing is None else column.missing


def _missing_cells(column: Column) -> Bools:
    missing, values = _missing(column), column.values
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    elif values.dtype.kind == "O":
        missing = missing | np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    return missing


def _holds_text(column: Column) -> bool:
    return column.values.dtype.kind != "O" or any(isinstance(cell, str) for cell in column.values)


def _distinct(column: Column) -> list[Any]:
    present = column.values[~_missing_cells(column)]
    if present.dtype.kind == "O":
        found = set(present)
        return sorted(found, key=lambda label: (type(label).__name__, str(label)))
    return list(np.unique(present).tolist())


def _shown(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:_MAX_LABELS_SHOWN])
    return shown + (", ..." if len(labels) > _MAX_LABELS_SHOWN else "")


def _needs_pos_label(column: Column, distinct: list[Any]) -> InputError:
    if len(distinct) > 2:
        return _too_many_labels(column, distinct)
    example = distinct[-1] if distinct else 1
    return InputError(
        f"{column.name} must hold 0 and 1; its labels are {_shown(distinct)}.",
        hint=f"Say which label is the event, for example pos_label={example!r}.",
        argument=column.name,
        row=0,
        value=distinct[0] if distinct else None,
    )


def _too_many_labels(column: Column, distinct: list[Any]) -> InputError:
    return InputError(
        f"{column.name} has {len(distinct):,} labels ({_shown(distinct)}); a binary measure needs two.",
        hint=(
            "For several classes use calibrant.classwise or calibrant.top_label; "
            f"for one against the rest pass {column.name} == {distinct[-1]!r} and its scores."
        ),
        argument=column.name,
        row=0,
        value=distinct[-1],
    )


def weights(column: Column) -> Column:
    """Weights: finite numbers, none negative, not all zero."""
    column = numbers(column)
    values: Floats = column.values.astype(np.float64)
    missing = _missing(column)
    bad = ~((values >= 0) & np.isfinite(values)) & ~missing
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{column.name} must be finite and not negative; {bad.sum():,} of {values.size:,} values are not so, "
            f"the first at row {row} is {values[row]:.6g}.",
            hint="A weight says how much a row counts; leave rows out with weight 0.",
            argument=column.name,
            row=row,
            value=values[row].item(),
        )
    return Column(column.name, values, column.missing, column.notes)
