"""One column of data: lists, arrays, Series and tensors are read as one-dimensional arrays and validated.

A column is checked by itself here. `calibrant.tables.rows` reads the columns of the same rows together.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import Bools, Column, Floats, Ints
from calibrant._support.errors import Argument, InputError, Note, Text

# Sums of float32 softmax outputs exceed 1 by this much; beyond it, a value is not a probability.
CLIP_TOLERANCE = 1e-6
# The hint for missing cells where rows can be dropped.
DROP = "Pass " + Argument("missing", "drop") + " to leave such rows out; they will be counted in the result."
LARGEST_SCORE = 1e300
# The square of a smaller weight may underflow.
LEAST_WEIGHT = 1e-100
# Types of cells that are never missing; a column of text has only such cells, and needs no call per cell.
_NEVER_MISSING = {str, bytes, bool, int}
_NULS = ("\0", b"\0")
TEXT_KINDS = "UST"  # NumPy's kinds of text: str, bytes, StringDType


@dataclass(frozen=True)
class ColumnData:
    """The values of one column, the mask of missing cells, and notes about its reading.

    Attributes
    ----------
    name : str
        Name in error messages.
    values : ndarray
    missing : ndarray of bool or None
        None if no cell is missing.
    notes : tuple of Note
    counts : ndarray of int64 or None
        Number of equal rows per cell, where an engine counted them; their row numbers are then unknown. None: each
        cell is one row.
    first_row : int
        Number of the first row, where the column is one batch of a file.
    """

    name: str
    values: NDArray[Any]
    missing: Bools | None = None
    notes: tuple[Note, ...] = ()
    counts: Ints | None = None
    first_row: int = 0

    def __len__(self) -> int:
        return len(self.values)

    def part(self, rows: Any) -> "ColumnData":
        """Return the cells of some rows: a mask, or their positions."""
        missing = None if self.missing is None else self.missing[rows]
        missing = None if missing is None or not missing.any() else missing
        counts = None if self.counts is None else self.counts[rows]
        return ColumnData(self.name, self.values[rows], missing, self.notes, counts)

    def count_rows(self, cells: Bools) -> int:
        """Return the number of rows in the marked cells."""
        return int(cells.sum() if self.counts is None else self.counts[cells].sum())

    def place(self, row: int) -> str:
        """Return the words for one cell in an error message."""
        return f"row {self.first_row + row}" if self.counts is None else "a value"

    def first_place(self, row: int) -> str:
        """Return the words for the first of several cells in an error message."""
        return f"the first at row {self.first_row + row}" if self.counts is None else "one of them"

    @property
    def mask(self) -> Bools:
        """The mask of missing cells."""
        return np.zeros(len(self), dtype=bool) if self.missing is None else self.missing

    def error(self, found: str, *, hint: str | Text, row: int | None = None, value: object = None) -> InputError:
        """Return the error about this column; `row` is known only where each cell is one row."""
        row = None if row is None or self.counts is not None else self.first_row + row
        return InputError(f"{self.name} {found}", hint=hint, argument=self.name, row=row, value=value)

    def refuse(self, bad: Bools, rule: str, *, hint: str | Text = "") -> None:
        """Raise an error about the first of the marked cells, which break a rule; nothing if no cell is marked."""
        if bad.any():
            row = int(np.argmax(bad))
            value = self.values[row].item()
            raise self.error(f"{rule}; {self.place(row)} is {value:.6g}.", hint=hint, row=row, value=value)


def check_lengths(columns: Sequence[Any]) -> None:
    """Raise an error unless all columns are as long as the first; other values of rows are named "forecast"."""
    first, rows = getattr(columns[0], "name", "forecast"), len(columns[0])
    for column in columns[1:]:
        if len(column) != rows:
            name = getattr(column, "name", "forecast")
            raise InputError(
                f"{name} has {len(column):,} rows, {first} has {rows:,}; they must be equally long.", argument=name
            )


def refuse_missing(columns: Sequence[ColumnData], *, hint: str | Text = "Leave such rows out first.") -> None:
    """Raise an error if a column has missing values."""
    for column in columns:
        if column.missing is not None:
            count, row = column.count_rows(column.missing), int(np.argmax(column.missing))
            plural = "s" if count > 1 else ""
            where = f" (first at {column.place(row)})" if column.counts is None else ""
            raise column.error(f"has {count:,} missing value{plural}{where}.", hint=hint, row=row)


def check_alignment(columns: Mapping[str, Column]) -> None:
    """Raise an error if two pandas objects have different indexes: rows are matched by position."""
    indexed = [(name, c.index) for name, c in columns.items() if hasattr(getattr(c, "index", None), "equals")]
    for name, index in indexed[1:]:
        if not index.equals(indexed[0][1]):
            raise InputError(
                f"The indexes of {indexed[0][0]} and {name} differ.",
                hint="Rows are matched by position: align the two, or pass .to_numpy().",
                argument=name,
            )


def read(column: Column, name: str, *, hint: str | None = None, missing: Bools | None = None) -> ColumnData:
    """Read a column as a one-dimensional array; masked and null cells, None and NaN are missing.

    `hint` says what to do about two dimensions, by default as for the probabilities of classes. `missing` marks cells
    that are known to be missing.
    """
    values, absent, notes = _read_values(column, name, hint)
    for mask in (missing, _missing_values(values)):
        if mask is not None and mask.any():
            absent = mask if absent is None else absent | mask
    return ColumnData(name, values, absent if absent is not None and absent.any() else None, notes)


def _read_values(column: Column, name: str, hint: str | None) -> tuple[NDArray[Any], Bools | None, tuple[Note, ...]]:
    """Return the values, the mask of cells that their container marks as missing, and notes."""
    missing: NDArray[Any] | None = None
    if type(column) is np.ndarray:
        pass
    elif isinstance(column, np.ma.MaskedArray):
        missing, column = np.ma.getmaskarray(column), np.ma.getdata(column)
    elif hasattr(column, "__dlpack__") and not hasattr(column, "__array__"):
        column = np.from_dlpack(column)
    elif hasattr(column, "detach"):
        column = tensor_array(column)
    else:
        if hasattr(column, "dictionary_decode"):  # a categorical column of Arrow
            column = column.dictionary_decode()
        for ask in ("isna", "is_null"):  # pandas; polars and Arrow
            if hasattr(column, ask):
                missing = np.asarray(getattr(column, ask)())
                break
    values, notes = _one_dimension(as_array(column, name), name, hint)
    return values, None if missing is None else missing.reshape(-1), notes


def _missing_values(values: NDArray[Any]) -> Bools | None:
    if values.dtype.kind == "f":
        # The minimum of a column with NaN is NaN, and needs no memory.
        return np.asarray(np.isnan(values)) if values.size and np.isnan(values.min()) else None
    if values.dtype.kind in "Mm":
        return np.asarray(np.isnat(values))
    if values.dtype.kind == "O" and not set(map(type, values)) <= _NEVER_MISSING:
        return np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    return None


def tensor_array(tensor: Any) -> NDArray[Any]:
    """Return a torch tensor as an array on the host; NumPy has no bfloat16."""
    tensor = tensor.detach().cpu()
    values: NDArray[Any] = tensor.float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.numpy()
    return values


def as_array(column: Column, name: str) -> NDArray[Any]:
    """Return the data as an array of any dimension; numbers in a list of text stay numbers."""
    try:
        values = np.asarray(column)
    except ValueError as error:
        raise InputError(
            f"{name} must be one column; NumPy cannot read it: {error}",
            hint="Make its rows equally long.",
            argument=name,
        ) from error
    except TypeError as error:  # a forecast, which has rows but is no sequence
        raise InputError(f"{name} must be one column; got {type(column).__name__}.", argument=name) from error
    if values.dtype.kind == "T":
        return values.astype(object)
    # NumPy converts a list of text and numbers to text, NaN to 'nan', and drops NUL at the end of text; here the cells
    # keep their types and their ends.
    listed = values.dtype.kind in TEXT_KINDS and values.ndim == 1 and isinstance(column, (list, tuple))
    if listed and not all(isinstance(cell, (str, bytes)) and cell[-1:] not in _NULS for cell in column):
        return np.fromiter(column, dtype=object, count=len(column))
    return values


def _is_missing(cell: object) -> bool:
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float):  # NumPy's float64 too
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")  # of pandas, which is optional


def one_column_note(name: str) -> Note:
    """Return the note that a column had two dimensions."""
    return Note("one_column", 1, f"{name} had shape (n, 1) and was read as one column.")


def _one_dimension(values: NDArray[Any], name: str, hint: str | None = None) -> tuple[NDArray[Any], tuple[Note, ...]]:
    if values.ndim == 1:
        return values, ()
    if values.ndim == 2 and values.shape[1] == 1:
        return values.reshape(-1), (one_column_note(name),)
    if hint is None and values.ndim == 2 and values.shape[1] == 2:
        hint = f"Two columns: pass the one of the event, {name}[:, 1]."
    elif hint is None and values.ndim == 2:
        hint = "For several classes use calibrant.metrics.classwise or calibrant.metrics.top_label."
    raise InputError(
        f"{name} must have one dimension; got shape {values.shape}.",
        hint=hint or "Pass an array, a list or a column.",
        argument=name,
        value=values.shape,
    )


def numbers(column: ColumnData) -> ColumnData:
    """Return the column with numeric values; text and complex numbers are an error."""
    values = column.values
    if values.dtype.kind in "biuf":
        return column
    if values.dtype.kind == "O":
        return _numbers_from_objects(column)
    raise column.error(
        f"must hold numbers; got type {values.dtype}.",
        hint="Convert it first; text is not parsed.",
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
                f"must hold numbers; {column.place(row)} is {shown} ({type(cell).__name__}).",
                hint="Convert it first; text is not parsed.",
                row=row,
                value=cell,
            ) from error
    return replace(column, values=values)


def scores(column: ColumnData, *, squash: str = "a sigmoid (scipy.special.expit)") -> ColumnData:
    """Return the column as probabilities in [0, 1]; values within 1e-6 of the range are clipped and noted."""
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
        notes += (clipped_note(column.name, column.count_rows(outside), excess),)
        values = clipped
    return replace(column, values=values, notes=notes)


def clipped_note(name: str, count: int, excess: float) -> Note:
    """Return the note about values that lay outside [0, 1] by at most `excess`."""
    text = f"{{count}} values of {name} lay outside [0, 1] by at most {excess:.2g} and were clipped."
    return Note("clipped", count, text)


def finite(column: ColumnData) -> ColumnData:
    """Return the column as finite numbers whose differences are finite too."""
    column = numbers(column)
    values = column.values.astype(np.float64)
    if values.size and values.min() >= -LARGEST_SCORE and values.max() <= LARGEST_SCORE:
        return replace(column, values=values)
    found = replace(column, values=values)
    hint = "Look for a division by zero or an overflow where the values are computed."
    bad = ~(np.abs(values) <= LARGEST_SCORE) & ~column.mask
    found.refuse(bad, f"must hold finite numbers, at most {LARGEST_SCORE:g} in size", hint=hint)
    return found


def times(column: ColumnData) -> ColumnData:
    """Return the column as numbers in time order: numbers as they are, times and ISO 8601 text in microseconds.

    Times without a zone are UTC. Infinite numbers, and numbers mixed with times, are an error.
    """
    values = column.values
    if values.dtype.kind in "iuf":
        return finite(column) if values.dtype.kind == "f" else column
    if values.dtype.kind in "Mm":
        unit = values.astype(f"{values.dtype.kind}8[us]")
        return replace(column, values=unit.astype(np.int64))
    labels, code = encode(column)
    read = [_time(label) for label in labels]
    are_times = [isinstance(moment, int) for moment in read]
    bad = read.index(None) if None in read else are_times.index(False) if any(are_times) and not all(are_times) else -1
    if bad >= 0:
        row = int(np.argmax(code == bad))
        raise column.error(
            f"must hold numbers, or times alone; {column.place(row)} is {labels[bad]!r}.",
            hint="Pass numbers, datetimes, or text such as 2026-01-31 or 2026-01-31T08:00:00Z.",
            row=row,
        )
    return replace(column, values=np.array([*read, 0])[code])  # the code of a missing cell is -1


def _time(label: Any) -> int | float | None:
    """Return the number of microseconds of a time, or a number; None for anything else."""
    from datetime import UTC, date, datetime, time

    if isinstance(label, str):
        try:
            label = float(label)
        except ValueError:
            try:
                label = datetime.fromisoformat(label.strip())
            except ValueError:
                return None
    if isinstance(label, date):
        moment = label if isinstance(label, datetime) else datetime.combine(label, time())
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    is_number = isinstance(label, (Real, Decimal)) and not isinstance(label, bool)
    number = float(label) if is_number else math.nan
    return number if abs(number) <= LARGEST_SCORE else None


def _not_probabilities(column: ColumnData, values: Floats, far: Bools, squash: str) -> InputError:
    row = int(np.argmax(far))
    finite = values[np.isfinite(values) & ~column.mask]
    if not np.isfinite(values[row]):
        hint = "Look for a division by zero or an overflow where the scores are computed."
    elif (finite <= 0).all():
        hint = "No value is positive; if they are log-probabilities, apply numpy.exp first."
    elif (finite < 0).any():
        hint = f"Some values are negative; if they are logits or margins, apply {squash} first."
    elif finite.max() <= 100:
        hint = f"The largest value is {finite.max():.4g}; if the values are percentages, divide them by 100."
    else:
        hint = "Convert the scores to probabilities first; for predicted numbers pass calibrant.Point(prediction)."
    return column.error(
        f"must lie in [0, 1]; {column.count_rows(far):,} of {column.count_rows(np.ones_like(far)):,} values do not, "
        f"{column.first_place(row)} is {values[row]:.6g}.",
        hint=hint,
        row=row,
        value=values[row].item(),
    )


def read_weights(sample_weight: Column, column: ColumnData) -> Floats:
    """Return the weights of the rows of another column; missing weights are an error."""
    weight = weights(read(sample_weight, "sample_weight"))
    refuse_missing([weight])
    check_lengths([column, weight])
    values: Floats = weight.values
    return values


def check_one_weight(sample_weight: object, frequency: object) -> None:
    """Raise an error if importance weights and frequencies are both given."""
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


def sizes(column: ColumnData, importance: bool) -> ColumnData:
    """Return the column as importance weights, or as numbers of equal rows."""
    return weights(column) if importance else frequencies(column)


def frequencies(column: ColumnData) -> ColumnData:
    """Return the column as numbers of equal rows: whole numbers, 0 or more."""
    column = numbers(column)
    values: Floats = column.values.astype(np.float64)
    bad = ~((values >= 0) & (values == np.rint(values)) & np.isfinite(values)) & ~column.mask
    if bad.any():
        row = int(np.argmax(bad))
        where = "" if column.counts is not None else f" ({column.place(row)})"
        raise column.error(
            f"must be a whole number of rows, 0 or more; got {values[row]:.10g}{where}.",
            hint="For real weights use " + Argument("sample_weight") + ".",
            row=row,
            value=values[row].item(),
        )
    return replace(column, values=values)


def weights(column: ColumnData) -> ColumnData:
    """Return the column as importance weights: finite, not negative, and 0 or large enough to be squared."""
    column = numbers(column)
    values: Floats = column.values.astype(np.float64)
    bad = ~((values >= 0) & np.isfinite(values)) & ~column.mask
    small = (values > 0) & (values < LEAST_WEIGHT) & ~column.mask
    if bad.any() or small.any():
        row = int(np.argmax(bad if bad.any() else small))
        rule = "be finite and not negative" if bad.any() else f"be 0 or at least {LEAST_WEIGHT:g}"
        raise column.error(
            f"must {rule}; {column.count_rows(bad if bad.any() else small):,} of "
            f"{column.count_rows(np.ones_like(bad)):,} values are not, {column.first_place(row)} is {values[row]:.6g}.",
            hint="Use weight 0 for rows that must not count.",
            row=row,
            value=values[row].item(),
        )
    return replace(column, values=values)


_MAX_LABELS_SHOWN = 5


def events(column: ColumnData, pos_label: object = None) -> ColumnData:
    """Return outcomes as 0 and 1; other labels need `pos_label`, the label of the event."""
    if pos_label is not None:
        return _event(column, pos_label)
    if _holds_text(column):
        raise _needs_pos_label(column)
    column = numbers(column)
    values = column.values
    bad = ~((values == 0) | (values == 1)) & ~column.mask
    if not bad.any():
        return column
    row = int(np.argmax(bad))
    # 0.5 and infinity are not classes; -1, 2 and 7 may be.
    fractional = bad & (values != np.floor(values) if values.dtype.kind == "f" else False)
    infinite = bad & np.isinf(values)
    if fractional.any() or infinite.any():
        row = int(np.argmax(fractional | infinite))
        raise column.error(
            f"must hold 0 and 1; {column.place(row)} is {values[row]:.6g}.",
            hint="Soft labels are not outcomes: pass the observed labels, or name the event with "
            + Argument("pos_label")
            + ". For outcomes that are numbers pass calibrant.Point(prediction).",
            row=row,
            value=values[row].item(),
        )
    raise _needs_pos_label(column)


def _event(column: ColumnData, pos_label: object) -> ColumnData:
    distinct = classes(column)
    if len(distinct) > 2:
        raise _too_many_labels(column, distinct)
    matches = [label for label in distinct if _same(label, pos_label)]
    if len(distinct) == 2 and not matches:
        raise unknown_pos_label(column.name, distinct, pos_label)
    present = ~column.mask
    event = np.zeros(len(column), dtype=np.int8)
    notes = column.notes
    if matches:
        event[present] = column.values[present] == matches[0]
    else:
        notes += (Note("event_absent", 1, f"No row has the label of the event, {pos_label!r}."),)
    return replace(column, values=event, notes=notes)


def unknown_pos_label(name: str, labels: list[Any], pos_label: object) -> InputError:
    """Return the error for a `pos_label` that is not among the labels."""
    return InputError(
        Argument("pos_label") + f" must be one of the labels of {name}, which are {_shown(labels)}; got {pos_label!r}.",
        hint="It must match exactly, including the type, letter case and spaces.",
        value=pos_label,
    )


def _same(label: object, pos_label: object) -> bool:
    try:
        return bool(label == pos_label)
    except (TypeError, ValueError):  # an array or pandas.NA, which is not a label
        return False


def _holds_text(column: ColumnData) -> bool:
    kind = column.values.dtype.kind
    return kind in TEXT_KINDS or (
        kind == "O" and any(isinstance(cell, (str, bytes)) for cell in column.values[~column.mask])
    )


def encode(column: ColumnData) -> tuple[list[Any], Ints]:
    """Return the distinct labels, sorted, and for each row the position of its label (-1 where it is missing)."""
    present = column.values[~column.mask]
    code = np.full(len(column), -1, dtype=np.int64)
    if present.dtype.kind != "O":
        found, inverse = np.unique(present, return_inverse=True)
        code[~column.mask] = inverse
        return list(found) if found.dtype.kind in "Mm" else found.tolist(), code
    try:
        names = sort_labels(set(present))
        position = {name: i for i, name in enumerate(names)}
        code[~column.mask] = [position[cell] for cell in present]
    except TypeError:
        row = next(row for row, cell in enumerate(column.values) if getattr(cell, "__hash__", None) is None)
        cell = column.values[row]
        raise column.error(
            f"must hold labels; {column.place(row)} is {cell!r} ({type(cell).__name__}).",
            hint="Convert it to text or numbers.",
            row=row,
            value=cell,
        ) from None
    return names, code


def sort_labels(labels: set[Any]) -> list[Any]:
    """Return labels in rising order; those of several types by type, then as text."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def classes(column: ColumnData) -> list[Any]:
    """Return the distinct labels, sorted."""
    return encode(column)[0]


def check_classes(classes: object, argument: str = "classes") -> list[Any]:
    """Return `classes` as a list; it must name at least two classes, each once."""
    names = list(classes) if isinstance(classes, Iterable) and not isinstance(classes, str) else []
    try:
        distinct = len(set(names))
    except TypeError:
        distinct = 0
    if distinct < 2 or distinct < len(names):
        raise InputError(
            Argument(argument) + f" must name at least two classes, each once; got {classes!r}.", value=classes
        )
    return names


def codes(column: ColumnData, names: list[Any], argument: str = "classes") -> Ints:
    """Return for each row the position of its label among the classes (-1 where it is missing)."""
    found, code = encode(column)
    position = {name: i for i, name in enumerate(names)}
    unknown = [i for i, label in enumerate(found) if label not in position]
    if unknown:
        row = int(np.argmax(np.isin(code, unknown)))
        label = found[code[row]]
        raise column.error(
            f"must hold labels of the classes {_shown(names)}; {column.place(row)} is {label!r}.",
            hint="Name each class in the data with " + Argument(argument) + ".",
            row=row,
            value=label,
        )
    return np.array([*(position[label] for label in found), -1], dtype=np.int64)[code]


def _shown(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:_MAX_LABELS_SHOWN])
    return shown + (", ..." if len(labels) > _MAX_LABELS_SHOWN else "")


def _needs_pos_label(column: ColumnData) -> InputError:
    distinct, code = encode(column)
    if len(distinct) > 2:
        return _too_many_labels(column, distinct)
    counts = np.bincount(code[code >= 0], minlength=len(distinct))
    # The event is usually the rarer label; where it is not much rarer, the last one, as 1 of -1 and 1.
    event = distinct[int(np.argmin(counts)) if 2 * counts.min() < counts.max() else -1]
    return column.error(
        f"must hold 0 and 1; got the labels {_shown(distinct)}.",
        hint="Say which label is the event, for example " + Argument("pos_label", event) + ".",
        row=0,
        value=distinct[0],
    )


def _too_many_labels(column: ColumnData, distinct: list[Any]) -> InputError:
    return column.error(
        f"must have two labels; got {len(distinct):,} ({_shown(distinct)}).",
        hint=(
            "For several classes pass an (n, K) array of class probabilities to calibrant.evaluate; for numbers pass "
            f"calibrant.Point(prediction); for one class against the rest pass {column.name} == {distinct[-1]!r}."
        ),
        row=0,
        value=distinct[-1],
    )


def distinct_texts(labels: Sequence[object]) -> list[str]:
    """Return labels as text; labels whose texts are equal, such as 1 and "1", are written as in Python.

    >>> distinct_texts([1, "1", "a"])
    ['1', "'1'", 'a']
    """
    counts = Counter(map(str, labels))
    return [repr(label) if counts[str(label)] > 1 else str(label) for label in labels]
