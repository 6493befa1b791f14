"""The few loops worth compiling, behind one choice made here, once, when the package is loaded.

`reference` says what each function does. ``CALIBRANT_KERNEL=reference`` (or ``compiled``) in the environment
forces a choice; otherwise the compiled kernel runs where it was built.
"""

import os
from typing import TYPE_CHECKING

import numpy as np

from calibrant._kernels import reference
from calibrant._kernels.scipy_binomial import binomial_pvalue
from calibrant._typing import Floats, Ints

if TYPE_CHECKING:
    from calibrant._kernels import _core

__all__ = ["KERNEL", "bin_sums", "binomial_pvalue", "count", "pava_bc", "rejected"]


def _choose() -> str:
    wanted = os.environ.get("CALIBRANT_KERNEL", "")
    if wanted not in ("", "compiled", "reference"):
        raise ImportError(f"CALIBRANT_KERNEL must be 'compiled' or 'reference', not {wanted!r}.")
    if wanted == "reference":
        return "reference"
    try:
        from calibrant._kernels import _core  # noqa: F401
    except ModuleNotFoundError:
        if wanted == "compiled":
            raise
        return "reference"
    return "compiled"


def _rejected(score: Floats, n: Ints, start: Ints, bin_n: Ints, bin_k: Ints, alpha: float) -> Ints:
    total, doubtful = _core.rejected(score, n, start, bin_n, bin_k, alpha)
    if doubtful.size:
        its_bin = np.searchsorted(start, doubtful, side="right") - 1
        pvalue = binomial_pvalue(bin_k[its_bin], bin_n[its_bin], score[doubtful])
        reject = pvalue <= alpha
        np.add.at(total, its_bin[reject], n[doubtful[reject]])
    return total


KERNEL = _choose()

if KERNEL == "compiled":
    from calibrant._kernels import _core

    bin_sums = _core.bin_sums
    count = _core.count
    pava_bc = _core.pava_bc
    rejected = _rejected
else:
    bin_sums = reference.bin_sums
    count = reference.count
    pava_bc = reference.pava_bc
    rejected = reference.rejected
