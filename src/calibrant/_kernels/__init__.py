"""The kernel: loops in C++, or the same functions in NumPy and SciPy.

The kernel is chosen once, on import: the compiled one if it was built. The environment variable
``CALIBRANT_KERNEL=reference`` (or ``compiled``) overrides the choice. `reference` documents each function.
"""

import importlib.util
import os

from calibrant._kernels.replicate_sums import Bytes, Order, Plan, ReplicateSums, TableReplicates, TestedBlocks
from calibrant._kernels.scipy_binomial import binomial_pvalue

__all__ = [
    "KERNEL",
    "Bytes",
    "Order",
    "Plan",
    "ReplicateSums",
    "TableReplicates",
    "TestedBlocks",
    "bin_sums",
    "binomial_pvalue",
    "count",
    "cumulative_extremes",
    "draw",
    "draws",
    "free_memory",
    "locate",
    "pava_bc",
    "rejected",
    "replicates",
    "signed_sums",
    "squared_errors",
    "venn_abers",
    "window_distances",
]


def _choose() -> str:
    wanted = os.environ.get("CALIBRANT_KERNEL", "")
    if wanted not in ("", "compiled", "reference"):
        raise ImportError(f"CALIBRANT_KERNEL must be 'compiled' or 'reference'; got {wanted!r}.")
    if wanted == "reference":
        return "reference"
    # find_spec, not a try block: a kernel that was built but cannot be loaded must raise.
    built = importlib.util.find_spec(f"{__name__}._core") is not None
    if wanted == "compiled" and not built:
        raise ImportError(
            "CALIBRANT_KERNEL must be 'reference' in this build, which has no compiled kernel; got 'compiled'. "
            "Install a C++ compiler and reinstall calibrant."
        )
    return "compiled" if built else "reference"


KERNEL = _choose()

if KERNEL == "compiled":
    from calibrant._kernels.compiled import (
        bin_sums,
        count,
        cumulative_extremes,
        draw,
        draws,
        free_memory,
        locate,
        pava_bc,
        rejected,
        replicates,
        signed_sums,
        squared_errors,
        venn_abers,
        window_distances,
    )
else:
    from calibrant._kernels.reference import (
        bin_sums,
        count,
        cumulative_extremes,
        free_memory,
        locate,
        pava_bc,
        rejected,
        squared_errors,
        venn_abers,
        window_distances,
    )
    from calibrant._kernels.reference_replicates import draw, draws, replicates, signed_sums
