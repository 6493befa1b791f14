"""How results of the two kernels agree: integers and draws bitwise, sums of floating point numbers within 1e-12."""

import numpy as np

TOLERANCE = 1e-12  # of the largest sum: a bin is a difference of sums over all rows before its ends


def agree(left, right):
    """Return whether two arrays, numbers, or sequences of arrays agree; None agrees with None."""
    if left is None or right is None:
        return left is right
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(agree, left, right))
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)
