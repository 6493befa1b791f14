"""Arithmetic of long columns in pieces: of a size that stays in the cache, and that BLAS multiplies in one thread."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.typing import Floats

__all__ = ["dot", "gram", "in_pieces"]

_PIECE = 32_768  # rows: temporary arrays of them stay in the cache, and are few enough for threads not to wait
_IN_ONE_THREAD = 8192  # products of numbers: with more, BLAS may use several threads
_WIDE = 256  # sums of products: of more, BLAS gives each thread some of the sums and not some of the rows


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


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the sum of products of two columns; its last digits do not depend on the threads of BLAS.

    >>> dot(np.array([1, 2]), np.array([0.5, 0.25]))
    1.0
    """
    return float(gram(a[:, None], b[:, None])[0, 0])


def gram(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """Return ``a.T @ b`` of two matrices with the same rows.

    The last digits of up to 256 sums do not depend on the threads of BLAS.

    >>> gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [0.5]]))
    array([[2.5],
           [4. ]])
    """
    width = a.shape[1] * b.shape[1]
    if width > _WIDE:
        return np.asarray(a.T @ b, dtype=np.float64)
    rows = _IN_ONE_THREAD // max(width, 1)
    pieces = [a[start : start + rows].T @ b[start : start + rows] for start in range(0, len(a), rows)]
    return np.sum(pieces, axis=0, dtype=np.float64) if pieces else np.zeros((a.shape[1], b.shape[1]))
