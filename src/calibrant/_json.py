"""What JSON has no number for."""

import math
from typing import Any


def number(name: str, value: float) -> dict[str, Any]:
    """A field with the value; infinities and NaN are null, with the reason beside them."""
    if math.isfinite(value):
        return {name: value}
    return {name: None, f"{name}_reason": f"the value is {value}"}


def label(value: Any) -> Any:
    """A label as JSON has it: text, whole numbers, booleans and floats as they are, anything else as text."""
    return value if isinstance(value, (str, int, bool, float)) else str(value)
