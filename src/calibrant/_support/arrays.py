"""Arrays: their types in signatures, read-only views, runs of true values, and arithmetic in pieces.

Long columns are computed piece by piece: pieces stay in the cache, and BLAS multiplies them in one thread.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Weights: TypeAlias = NDArray[Any]  # int64 counts, or float64 sums of importance weights
Column: TypeAlias = Any  # an array, list, Series or tensor: see calibrant._support.columns


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


def runs_text(points: Floats, chosen: Bools, most: int = 3) -> str:
    """Return the runs of neighbouring points that are chosen, in words.

    >>> import numpy as np
    >>> runs_text(np.array([0.1, 0.2, 0.3, 0.5]), np.array([True, True, False, True]))
    '0.1 to 0.2, 0.5'
    """
    ends = [(points[a], points[z - 1]) for a, z in true_runs(chosen)]
    shown = [f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}" for low, high in ends[:most]]
    return ", ".join(shown) + (f" and {len(ends) - most} more ranges" if len(ends) > most else "")


def power_of_two(values: Floats) -> float:
    """Return the power of two just above the largest absolute value; 1 where all are 0.

    Division by it is exact and makes high powers of the values finite.
    """
    largest = float(np.max(np.abs(values))) if values.size else 0.0
    return 2.0 ** math.frexp(largest)[1] if 0 < largest < math.inf else 1.0


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
