"""Packages whose public names load their module on first use (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module


class LazyNames:
    """The public names of a package, each with the module that holds it.

    Parameters
    ----------
    package : str
        Name of the package.
    modules : mapping of str to str
        Modules, relative to `calibrant`, to the public names that they hold, separated by spaces.
    namespaces : mapping of str to str
        Public names of whole modules to the modules, relative to `calibrant`.
    """

    def __init__(self, package: str, modules: Mapping[str, str], namespaces: Mapping[str, str] | None = None) -> None:
        self.package = package
        self.homes = {name: module for module, names in modules.items() for name in names.split()}
        self.namespaces = dict(namespaces or {})
        self.names = [*sorted(name for name in self.homes if not name.startswith("__")), *self.namespaces]

    def __call__(self, name: str) -> object:
        """Load a name: the package's ``__getattr__``."""
        if name in self.namespaces:
            return import_module(f"calibrant.{self.namespaces[name]}")
        if name in self.homes:
            return getattr(import_module(f"calibrant.{self.homes[name]}"), name)
        raise AttributeError(f"module {self.package!r} has no attribute {name!r}")

    def directory(self) -> Callable[[], list[str]]:
        """The package's ``__dir__``."""
        return lambda: sorted(self.names)
