"""Elementwise arithmetic of long columns, in pieces that stay in the cache of the processor."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.typing import Floats

__all__ = ["in_pieces"]

_PIECE = 8192  # rows: temporary arrays of them are too small to be returned to the system


def in_pieces(function: Callable[..., Floats], *columns: NDArray[Any], out: Floats | None = None) -> Floats:
    """Return an elementwise function of columns of equal length, bitwise that of whole columns.

    Temporary arrays of whole columns cost more time than the arithmetic: the system clears the memory of each. The
    result is in `out` if it is given, which may be one of the columns.

    >>> in_pieces(lambda n, p: n * p, np.array([1, 2]), np.array([0.5, 0.25]))
    array([0.5, 0.5])
    """
    size = columns[0].size
    if columns[0].ndim != 1 or (out is None and size <= _PIECE):
        return function(*columns)
    for start in range(0, size, _PIECE):
        piece = slice(start, start + _PIECE)
        values = function(*(column[piece] for column in columns))
        out = np.empty(size, dtype=values.dtype) if out is None else out
        out[piece] = values
    assert out is not None
    return out
