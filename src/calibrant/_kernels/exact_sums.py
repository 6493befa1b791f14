"""Sums of numbers in [0, 1] that do not depend on the order of the addends.

Sums over rows in any order and sums over the sorted scores of a table are therefore bitwise identical. Each number is
rounded to a multiple of 2^-78 and added as an integer. If the mean is at least 2^-25, this changes the sum by at most
2^-54 of itself. Other sums, and those of 2^31 rows or more, are not precise.
"""

from collections.abc import Sequence
from typing import overload

import numpy as np

from calibrant._support.typing import Floats, Ints

__all__ = ["bin_totals", "round_or"]

_BITS, _LIMB = 78, 26
_MOST_ROWS = 2**31
_LEAST_MEAN = _BITS - 25  # log2 of the smallest mean, as a multiple of 2^-78


def bin_totals(values: Floats, n: Ints, start: Ints) -> list[int]:
    """Return the sum of n * value over the rows of each bin, as a multiple of 2^-78; wrong beyond 2^31 rows."""
    totals = [0] * start.size
    rest = values
    for _ in range(_BITS // _LIMB):
        rest = rest * 2.0**_LIMB
        whole = np.rint(rest)
        rest = rest - whole
        limbs = np.add.reduceat(n * whole.astype(np.int64), start).tolist()
        totals = [(total << _LIMB) + limb for total, limb in zip(totals, limbs, strict=True)]
    return totals


@overload
def round_or(totals: Sequence[int], n: Ints, otherwise: Floats) -> Floats: ...
@overload
def round_or(totals: Sequence[int], n: Ints, otherwise: None) -> Floats | None: ...
def round_or(totals: Sequence[int], n: Ints, otherwise: Floats | None) -> Floats | None:
    """Return the nearest doubles of sums over n rows; `otherwise` where one is not precise."""
    sizes = n.tolist()
    precise = [0 < m < _MOST_ROWS and total >= m << _LEAST_MEAN for total, m in zip(totals, sizes, strict=True)]
    if otherwise is None and not all(precise):
        return None
    rounded = np.array([total / 2**_BITS for total in totals])
    return rounded if otherwise is None else np.where(precise, rounded, otherwise)
