"""Packages that load the module of a public name on first use (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module


class LazyNames:
    """Public names of a package and the modules that define them.

    Parameters
    ----------
    package : str
        Name of the package.
    modules : mapping of str to str
        From modules, relative to `calibrant`, to their public names, separated by spaces.
    namespaces : mapping of str to str
        From public names of whole modules to these modules, relative to `calibrant`.
    """

    def __init__(self, package: str, modules: Mapping[str, str], namespaces: Mapping[str, str] | None = None) -> None:
        self.package = package
        self.homes = {name: module for module, names in modules.items() for name in names.split()}
        self.namespaces = dict(namespaces or {})
        self.names = [*sorted(name for name in self.homes if not name.startswith("__")), *self.namespaces]

    def __call__(self, name: str) -> object:
        """Return the object of a public name: the ``__getattr__`` of the package."""
        if name in self.namespaces:
            return import_module(f"calibrant.{self.namespaces[name]}")
        if name in self.homes:
            return getattr(import_module(f"calibrant.{self.homes[name]}"), name)
        raise AttributeError(f"module {self.package!r} has no attribute {name!r}")

    def directory(self) -> Callable[[], list[str]]:
        """Return the ``__dir__`` of the package."""
        return lambda: sorted(self.names)
