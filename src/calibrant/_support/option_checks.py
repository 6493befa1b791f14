"""Checks of options: shares, counts and choices."""

import math
from numbers import Real

import numpy as np

from calibrant._support.errors import Argument, InputError


def check_share(name: str, value: float) -> float:
    """Check a confidence level or an alpha: strictly between 0 and 1."""
    if not (isinstance(value, Real) and 0 < value < 1):
        raise InputError(Argument(name) + f" must lie between 0 and 1; got {value!r}.", value=value)
    return value


def check_count(name: str, value: int, most: float = math.inf) -> int:
    """Check and return an integer from 1 to `most`."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= value <= most:
        return int(value)
    up_to = "of at least 1" if most == math.inf else f"from 1 to {most:,}"
    raise InputError(Argument(name) + f" must be a whole number {up_to}; got {value!r}.", value=value)


def check_option(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check that a value is one of the allowed ones."""
    if value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise InputError(Argument(name) + f" must be {choices}; got {value!r}.", value=value)
