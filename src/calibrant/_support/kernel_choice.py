"""The choice of the kernel, which needs neither NumPy nor the kernel itself: ``calibrant --version`` prints it."""

import os
import shutil
import sys
import warnings
from pathlib import Path

_COMPILERS = ("c++", "g++", "clang++", "cl")


def choose_kernel() -> str:
    """Return "compiled" or "reference": the compiled kernel if it was built, unless ``CALIBRANT_KERNEL`` names one."""
    wanted = os.environ.get("CALIBRANT_KERNEL", "")
    if wanted not in ("", "compiled", "reference"):
        raise ImportError(f"CALIBRANT_KERNEL must be 'compiled' or 'reference'; got {wanted!r}.")
    if wanted == "reference":
        return "reference"
    # Found, not tried: a kernel that was built but cannot be loaded must raise.
    built = _is_built()
    if wanted == "compiled" and not built:
        raise ImportError(
            "CALIBRANT_KERNEL must be 'reference' in this build, which has no compiled kernel; got 'compiled'. "
            "Install a C++ compiler and reinstall calibrant."
        )
    return "compiled" if built else "reference"


def describe_kernel() -> str:
    """Return the name of the kernel, and why it is the reference kernel if the compiled one was not built.

    An installation without a working compiler succeeds, and installers hide what the build says about it.
    """
    kernel = choose_kernel()
    if _is_built():
        return kernel
    compiler = _compiler()
    if compiler is None:
        return f"{kernel} (the compiled kernel was not built: no C++ compiler was found)"
    return f"{kernel} (the compiled kernel was not built, although there is {compiler}: pip install -v shows why)"


def warn_of_failed_build() -> None:
    """Warn if the compiled kernel is missing where it could be built and the reference kernel was not asked for.

    A machine without a compiler gets no warning: that installation is documented to use the reference kernel.
    """
    compiler = None if _is_built() or os.environ.get("CALIBRANT_KERNEL") else _compiler()
    if compiler is not None:
        from calibrant._support.errors import CalibrantWarning

        warnings.warn(
            f"The compiled kernel was not built, although there is a C++ compiler ({compiler}). Results are the same, "
            "but slower. Reinstall calibrant with pip install -v to see why; CALIBRANT_KERNEL=reference silences this.",
            CalibrantWarning,
            stacklevel=2,
        )


def _compiler() -> str | None:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else _COMPILERS
    return next(filter(None, map(shutil.which, names)), None)


def _is_built() -> bool:
    # importlib.util.find_spec would import the package calibrant._kernels, and with it NumPy.
    folder = [str(Path(__file__).parents[1] / "_kernels")]
    return any(finder.find_spec("calibrant._kernels._core", folder) is not None for finder in sys.meta_path)
