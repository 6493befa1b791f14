"""The kernel: loops in C++, or the same functions in NumPy and SciPy.

The kernel is chosen once, on import: the compiled one if it was built. The environment variable
``CALIBRANT_KERNEL=reference`` (or ``compiled``) overrides the choice. The reference documents each function. Draws,
counts and decisions of both kernels are bitwise identical; sums of floating point numbers agree within 1e-12.
"""

from calibrant._kernels.interface import *  # noqa: F403
from calibrant._support.kernel_choice import choose_kernel, warn_of_failed_build

KERNEL = choose_kernel()

if KERNEL == "compiled":
    from calibrant._kernels.compiled import *  # noqa: F403
else:
    warn_of_failed_build()
    from calibrant._kernels.reference import *  # noqa: F403
    from calibrant._kernels.reference_replicates import *  # noqa: F403
