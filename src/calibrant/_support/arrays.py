"""Read-only arrays, runs of true values, and the power of two of the size of values."""

import math
from typing import Any

import numpy as np

from calibrant._support.typing import Floats


def read_only(array: Any) -> Any:
    """Return a read-only view of an array; None stays None."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def true_runs(chosen: Any) -> list[tuple[int, int]]:
    """Return the runs of true values: first index, and index after the last.

    >>> true_runs([True, True, False, True])
    [(0, 2), (3, 4)]
    """
    turns = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return list(zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True))


def power_of_two(values: Floats) -> float:
    """Return the power of two just above the largest absolute value; 1 where all are 0.

    Division by it is exact and makes high powers of the values finite.
    """
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    return 2.0 ** math.frexp(largest)[1] if 0 < largest < math.inf else 1.0
