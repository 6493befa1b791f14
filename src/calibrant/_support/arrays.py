"""Read-only arrays, and runs of true values."""

from typing import Any

import numpy as np


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
