"""Results as plain data: for JSON, which has neither NaN nor infinity, and for frames."""

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from calibrant._support.errors import Argument, InputError


def number(name: str, value: float) -> dict[str, Any]:
    """Return a field with its value; NaN and infinity become null, with the reason in a second field."""
    if math.isfinite(value):
        return {name: value}
    return {name: None, f"{name}_reason": f"the value is {value}"}


def columns(arrays: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Arrays of numbers as lists; infinities and NaN are null."""
    return {name: [v if math.isfinite(v) else None for v in values.tolist()] for name, values in arrays.items()}


def label(value: Any) -> Any:
    """Return a label unchanged if JSON can hold it (text, integer, boolean, finite float), else as text."""
    plain_number = isinstance(value, float) and math.isfinite(value)
    return value if plain_number or isinstance(value, (str, int, bool)) else str(value)


def plain(result: Any, *, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass as plain data: checked numbers, notes as dictionaries, no arrays."""
    fields: dict[str, Any] = {"schema_version": 1}
    for each in dataclasses.fields(result):
        value = getattr(result, each.name)
        if each.name in skip or isinstance(value, np.ndarray):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if each.name == "notes":
            fields["notes"] = [note.to_dict() for note in value]
        elif isinstance(value, float):
            fields.update(number(each.name, value))
        else:
            fields[each.name] = dict(value) if isinstance(value, Mapping) else value
    return fields


def finite(value: Any) -> Any:
    """Replace NaN and infinity by None in plain data."""
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class PlainResult:
    """A dataclass whose fields are plain data."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but arrays as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self)


def has_type(value: Any, hint: Any) -> bool:
    """Return whether a plain value, such as a setting in a file, has the type that a constructor declares.

    Objects that a file describes by a mapping have any type but that of numbers and text.

    >>> has_type(3, int), has_type(None, int), has_type(3, float | None), has_type([], Literal["a", "b"])
    (True, False, True, False)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(has_type(value, each) for each in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is Sequence:
        return isinstance(value, (list, tuple)) and all(has_type(each, arguments[0]) for each in value)
    if origin is tuple:
        alike = isinstance(value, (list, tuple)) and len(value) == len(arguments)
        return alike and all(map(has_type, value, arguments))
    if hint is NoneType:
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if hint is int:
        return type(value) is int and abs(value) < 2**63
    if hint in (bool, str):
        return type(value) is hint
    return hint is Any or isinstance(value, (Mapping, list)) or callable(value)


def frame_from_rows(rows: list[dict[str, Any]], backend: Any) -> Any:
    """Return rows, which have the same keys, as a frame of the named library."""
    return frame_from_columns({name: [row[name] for row in rows] for name in rows[0]}, backend)


def frame_from_columns(columns: Mapping[str, Any], backend: Any) -> Any:
    """Return columns of equal length as a frame of the named library."""
    import narwhals as nw

    values = {name: [_text(cell) for cell in column] for name, column in columns.items()}
    try:
        return nw.from_dict(values, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"backend must be an installed library; got {backend!r}. Run pip install {backend}, or pass another "
            "backend: pandas, polars, pyarrow."
        ) from error
    except (AssertionError, TypeError, ValueError) as error:  # Narwhals 2.0 raises the first for names it does not know
        known = "pandas, polars, pyarrow or another library of eager frames that Narwhals supports"
        raise InputError(Argument("backend") + f" must be {known}; got {backend!r}.", value=backend) from error


def _text(cell: Any) -> Any:
    """Return a cell in which lone surrogates, which frames cannot hold, are escaped."""
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell
