"""The kernel: loops in C++, or the same functions in NumPy and SciPy.

The kernel is chosen once, on import: the compiled one if it was built. The environment variable
``CALIBRANT_KERNEL=reference`` (or ``compiled``) overrides the choice. `reference` documents each function.
"""

from calibrant._kernels.group_tables import Codes, GroupTables
from calibrant._kernels.replicate_sums import (
    Bytes,
    MeanGap,
    Order,
    Plan,
    ReplicateSums,
    TableReplicates,
    TestedBlocks,
    WeightedBlocks,
    WeightedPlan,
    WeightedTableReplicates,
)
from calibrant._kernels.scipy_binomial import binomial_pvalue
from calibrant._support.kernel_choice import choose_kernel, warn_of_failed_build

__all__ = [
    "KERNEL",
    "Bytes",
    "Codes",
    "GroupTables",
    "MeanGap",
    "Order",
    "Plan",
    "ReplicateSums",
    "TableReplicates",
    "TestedBlocks",
    "WeightedBlocks",
    "WeightedPlan",
    "WeightedTableReplicates",
    "bin_sums",
    "binomial_pvalue",
    "class_draws",
    "count",
    "count_groups",
    "cumulative_extremes",
    "draw",
    "draws",
    "encode",
    "free_memory",
    "locate",
    "merge_groups",
    "pava_bc",
    "poisson_draws",
    "rejected",
    "replicates",
    "row_order",
    "row_squared_errors",
    "row_sums",
    "signed_sums",
    "signs",
    "squared_errors",
    "venn_abers",
    "weighted_replicates",
    "window_distances",
]


KERNEL = choose_kernel()

if KERNEL == "compiled":
    from calibrant._kernels.compiled import (
        bin_sums,
        class_draws,
        count,
        count_groups,
        cumulative_extremes,
        draw,
        draws,
        encode,
        free_memory,
        locate,
        merge_groups,
        pava_bc,
        poisson_draws,
        rejected,
        replicates,
        row_order,
        row_squared_errors,
        row_sums,
        signed_sums,
        signs,
        squared_errors,
        venn_abers,
        weighted_replicates,
        window_distances,
    )
else:
    warn_of_failed_build()
    from calibrant._kernels.reference import (
        bin_sums,
        count,
        count_groups,
        cumulative_extremes,
        encode,
        free_memory,
        locate,
        merge_groups,
        pava_bc,
        rejected,
        row_order,
        row_squared_errors,
        row_sums,
        squared_errors,
        venn_abers,
        window_distances,
    )
    from calibrant._kernels.reference_replicates import (
        class_draws,
        draw,
        draws,
        poisson_draws,
        replicates,
        signed_sums,
        signs,
    )
    from calibrant._kernels.reference_weighted import weighted_replicates
