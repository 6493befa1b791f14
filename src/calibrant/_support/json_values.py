"""Results as plain data for JSON, which has neither NaN nor infinity."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


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
