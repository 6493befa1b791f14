"""The few loops worth compiling, behind one choice made here, once, when the package is loaded.

`reference` says what each function does. ``CALIBRANT_KERNEL=reference`` (or ``compiled``) in the environment
forces a choice; otherwise the compiled kernel runs where it was built.
"""

import importlib.util
import os

from calibrant._kernels.scipy_binomial import binomial_pvalue

__all__ = [
    "KERNEL",
    "bin_sums",
    "binomial_pvalue",
    "count",
    "cumulative_extremes",
    "draw",
    "free_memory",
    "locate",
    "pava_bc",
    "redraw",
    "rejected",
    "resample",
    "resample_bins",
    "squared_errors",
    "venn_abers",
    "window_distances",
]


def _choose() -> str:
    wanted = os.environ.get("CALIBRANT_KERNEL", "")
    if wanted not in ("", "compiled", "reference"):
        raise ImportError(f"CALIBRANT_KERNEL must be 'compiled' or 'reference', not {wanted!r}.")
    if wanted == "reference":
        return "reference"
    # Looked for, not tried: a kernel that is there but cannot be loaded must not pass for one that is not.
    built = importlib.util.find_spec(f"{__name__}._core") is not None
    if wanted == "compiled" and not built:
        raise ImportError("CALIBRANT_KERNEL is 'compiled', but this build of calibrant has no compiled kernel.")
    return "compiled" if built else "reference"


KERNEL = _choose()

if KERNEL == "compiled":
    from calibrant._kernels.compiled import (
        bin_sums,
        count,
        cumulative_extremes,
        draw,
        free_memory,
        locate,
        pava_bc,
        redraw,
        rejected,
        resample,
        resample_bins,
        squared_errors,
        venn_abers,
        window_distances,
    )
else:
    from calibrant._kernels.reference import (
        bin_sums,
        count,
        cumulative_extremes,
        draw,
        free_memory,
        locate,
        pava_bc,
        redraw,
        rejected,
        resample,
        resample_bins,
        squared_errors,
        venn_abers,
        window_distances,
    )
