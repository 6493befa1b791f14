"""Modules that SciPy imports but no command uses are loaded at their first use, which halves the time of its import."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

__all__ = ["defer_imports"]

# `scipy.special` imports all public names of NumPy, and with them these modules and what they load.
_UNUSED = ("numpy.f2py", "numpy.testing", "numpy.ma")


class _DeferringFinder:
    """Finds these modules as Python does, but loads them when one of their names is used."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _UNUSED else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer_imports() -> None:
    """Load these modules at their first use from now on; for a process that belongs to the command line."""
    sys.meta_path.insert(0, _DeferringFinder)
