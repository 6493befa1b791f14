"""The few loops worth compiling, behind one choice made here, once, when the package is loaded.

`reference` says what each function does. ``CALIBRANT_KERNEL=reference`` (or ``compiled``) in the environment
forces a choice; otherwise the compiled kernel runs where it was built.
"""

import os

from calibrant._kernels.scipy_binomial import binomial_pvalue

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


KERNEL = _choose()

if KERNEL == "compiled":
    from calibrant._kernels.compiled import bin_sums, count, pava_bc, rejected
else:
    from calibrant._kernels.reference import bin_sums, count, pava_bc, rejected
