"""Groups of rows: the observed combinations of the values of one column or several."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.class_labels import encode
from calibrant._support.columns import ColumnData, refuse_missing
from calibrant._support.errors import Argument, InputError
from calibrant._support.typing import Ints

__all__ = [
    "FEWEST_ROWS",
    "GROUP_HINT",
    "MANY_GROUPS",
    "check_group_count",
    "encode_groups",
    "group_columns",
    "groups_name",
    "observed_groups",
    "several_columns",
]

# More groups than this with few rows each are a mistake: an id, or a number or a time that was not rounded.
MANY_GROUPS, FEWEST_ROWS = 1_000, 20

_WAY_OUT = (
    " To evaluate such groups nevertheless, pass a mapping of tables: {key: cb.ScoreTable.from_arrays(y_true, y_prob)}."
)
GROUP_HINT = "Pass one column, a list of columns, a mapping of names to columns, or a frame."


def group_columns(by: Any, argument: str = "by") -> dict[str, Any]:
    """Return the columns of `by`, with their names in error messages, which begin with that of the argument.

    `by` is one column, a list or tuple of columns, a mapping of names to columns, or a frame.

    >>> list(group_columns({"region": ["a", "b"], "year": [2024, 2025]}))
    ["by['region']", "by['year']"]
    """
    if by is None:
        return {}
    columns = several_columns(by, argument)
    if columns is None:
        return {argument: by}
    return {f"{argument}[{name!r}]": column for name, column in columns.items()}


def groups_name(by: Any) -> str | None:
    """Return the names of the columns of `by`, comma-joined; None if they have none.

    >>> groups_name({"region": ["a", "b"], "year": [2024, 2025]})
    'region, year'
    """
    columns = None if by is None else several_columns(by)
    if columns is None:
        return None if by is None else _name(by)
    if isinstance(by, (list, tuple)) and not any(map(_name, by)):
        return None
    return ", ".join(columns)


def several_columns(by: Any, argument: str = "by") -> dict[str, Any] | None:
    """Return the columns of a mapping, a frame, or a list of columns by name; None for one column."""
    if isinstance(by, Mapping):
        named = [(str(name), column) for name, column in by.items()]
    elif hasattr(type(by), "columns"):
        named = _frame_columns(by, argument)
    elif isinstance(by, (list, tuple)) and by and all(map(_is_column, by)):
        named = [(_name(column) or f"column {i}", column) for i, column in enumerate(by, 1)]
    else:
        return None
    names = [name for name, _ in named]
    if not names or len(set(names)) < len(names):
        raise InputError(
            Argument(argument) + f" must have at least one column, each with its own name; got {names}.",
            hint=GROUP_HINT,
            value=names,
        )
    return dict(named)


def _name(column: Any) -> str | None:
    name = getattr(column, "name", None)
    return None if name is None else str(name)


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) == 1


def _frame_columns(frame: Any, argument: str) -> list[tuple[str, Any]]:
    import narwhals as nw

    try:
        known = nw.from_native(frame, eager_only=True)
        # Not known[name]: with numbers as names that would be a row.
        return [(str(name), known.get_column(name).to_native()) for name in known.columns]
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        raise InputError(
            f"{argument} must be a frame in memory; got {type(frame).__name__}, which cannot be read: {error}",
            hint="Collect it first.",
            argument=argument,
        ) from error


def encode_groups(columns: Sequence[ColumnData]) -> tuple[list[Any], Ints]:
    """Return the keys of the groups, sorted, and for each row the place of its key.

    The key is a label if there is one column, else a tuple of labels. A missing label is an error.
    """
    refuse_missing(columns, hint="Give such rows a group of their own.")
    encoded = [_encode(column) for column in columns]
    labels, code = encoded[0]
    if len(encoded) == 1:
        return labels, code
    first = np.empty(0, dtype=np.int64)
    for labels, own in encoded[1:]:
        # The codes so far become numbers below the number of rows, so the product does not overflow.
        first, code = _distinct(code * len(labels) + own)
    return [tuple(labels[own[row]] for labels, own in encoded) for row in first.tolist()], code


def observed_groups(columns: Sequence[ColumnData]) -> list[tuple[Any, Ints]]:
    """Return the key and the positions of the rows of each group, sorted by key; see `encode_groups`."""
    keys, code = encode_groups(columns)
    order = np.argsort(code, kind="stable")
    start = np.flatnonzero(np.diff(code[order], prepend=-1))
    rows = np.split(order, start[1:]) if start.size else []
    return [(keys[code[own[0]]], own) for own in rows]


def _encode(column: ColumnData) -> tuple[list[Any], Ints]:
    """Return the distinct labels, sorted, and for each row the position of its label; no label is missing."""
    values = column.values
    if values.dtype.kind in "biufMm":
        first, code = _distinct(values)
        labels = values[first]
        return list(labels) if labels.dtype.kind in "Mm" else labels.tolist(), code
    if values.dtype.kind == "O" and len(values):
        # Cells of a column with few labels are often the same objects, of which there are few.
        objects = np.frombuffer(np.ascontiguousarray(values), dtype=np.uintp).astype(np.uint64, copy=False)
        found = _kernels.encode(objects, len(values) // 8)
        if found is not None and all(getattr(cell, "__hash__", None) for cell in values[found[0]]):
            names, place = encode(column.part(found[0]))
            return names, place[found[1]]
    return encode(column)


def _distinct(values: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return the first row of each distinct number, in increasing order, and for each row the place of its number."""
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0
    else:
        bits = np.ascontiguousarray(values.astype(np.int64, copy=False)).view(np.uint64)
    found = _kernels.encode(bits, len(values) // 8)
    if found is None:  # sorting is as fast as a large hash table
        _, row, inverse = np.unique(values, return_index=True, return_inverse=True)
        return row, inverse
    order = np.argsort(values[found[0]])
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return found[0][order], place[found[1]]


def check_group_count(count: int, rows: int, *, fewest: int = FEWEST_ROWS, way_out: str = _WAY_OUT) -> None:
    """Raise an error if there are many groups with few rows each, as of a column of ids."""
    if count > MANY_GROUPS and rows < fewest * count:
        raise InputError(
            Argument("by")
            + f" must have at most {MANY_GROUPS:,} groups, or at least {fewest} rows per group on average; got "
            f"{count:,} groups of {rows / count:.3g} rows.",
            hint=f"Leave out columns of ids; round times to days or weeks, and numbers to groups.{way_out}",
            value=count,
        )
