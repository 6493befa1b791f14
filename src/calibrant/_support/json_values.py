"""Results as JSON, and what it has no number for."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def number(name: str, value: float) -> dict[str, Any]:
    """A field with the value; infinities and NaN are null, with the reason beside them."""
    if math.isfinite(value):
        return {name: value}
    return {name: None, f"{name}_reason": f"the value is {value}"}


def label(value: Any) -> Any:
    """A label as JSON has it: text, whole numbers, booleans and floats as they are, anything else as text."""
    plain_number = isinstance(value, float) and math.isfinite(value)
    return value if plain_number or isinstance(value, (str, int, bool)) else str(value)


def plain(result: Any, *, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a result as JSON has them: numbers checked, notes spelt out, arrays left out."""
    fields: dict[str, Any] = {"schema_version": 1}
    for each in dataclasses.fields(result):
        value = getattr(result, each.name)
        if each.name in leave_out or isinstance(value, np.ndarray):
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
