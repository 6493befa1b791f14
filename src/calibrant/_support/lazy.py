"""Names of packages and properties that are computed on first use; `deprecated_names` lists the old ones."""

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:  # importing calibrant loads no other module
    from calibrant._support.deprecated_names import DeprecatedNames
    from calibrant._support.errors import MissingExtraError

if TYPE_CHECKING:  # pyright would not accept that of Python for a property of a protocol
    cached_property = property
elif sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: PLC0414  # a public name of this module
else:
    import functools
    from contextlib import nullcontext

    class cached_property(functools.cached_property):  # noqa: N801  # the name of Python's own
        """A property that is computed once for each object; twice if two threads need it at the same time.

        That of Python 3.11 has a lock: one thread at a time computes a property of a class.
        """

        def __init__(self, func):
            super().__init__(func)
            self.lock = nullcontext()


class LazyNames:
    """Public names of a package and the modules that define them: the ``__getattr__`` of the package.

    Deprecated names of the package work too, with a warning, and are listed nowhere.

    Parameters
    ----------
    package : str
        Name of the package.
    modules : mapping of str to str
        From modules, relative to `calibrant`, to their public names, separated by spaces.
    namespaces : mapping of str to str
        From public names of whole modules to these modules, relative to `calibrant`.
    has_old_names : bool
        Whether `deprecated_names` lists names of the package.
    needs : MissingExtraError, optional
        The error that names the extra, for modules that import an optional library without naming it.
    """

    def __init__(
        self,
        package: str,
        modules: Mapping[str, str],
        *,
        namespaces: Mapping[str, str] | None = None,
        has_old_names: bool = False,
        needs: "MissingExtraError | None" = None,
    ) -> None:
        self.package, self.has_old_names = package, has_old_names
        self.homes = _by_name(modules)
        self.namespaces = dict(namespaces or {})
        self.needs = needs
        self.missing: dict[str, _MissingName] = {}
        self.names = [*sorted(name for name in self.homes if not name.startswith("__")), *self.namespaces]

    @cached_property
    def old_names(self) -> "DeprecatedNames":
        """The deprecated names of the package, which are loaded when a name is not a present one."""
        from calibrant._support.deprecated_names import DEPRECATED_NAMES

        return DEPRECATED_NAMES[self.package]

    @cached_property
    def moved(self) -> dict[str, str]:
        """The new public name, relative to `calibrant`, of each old name."""
        return self.old_names.new_names() if self.has_old_names else {}

    @cached_property
    def deprecated(self) -> dict[str, str]:
        """The module of each deprecated function."""
        return _by_name(self.old_names.functions) if self.has_old_names else {}

    def __call__(self, name: str) -> object:
        """Return the object of a public name."""
        is_present = name in self.homes or name in self.namespaces
        is_old = not is_present and not name.startswith("_") and (name in self.moved or name in self.deprecated)
        if not (is_present or is_old):
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        is_moved = is_old and name in self.moved
        # `from calibrant import name` asks twice: first the import system asks whether there is such a name.
        if is_moved and sys._getframe(1).f_globals.get("__name__") != "importlib._bootstrap":
            warn_moved(f"{self.package}.{name}", f"calibrant.{self.moved[name]}")
        try:
            if is_moved:
                return _public(self.moved[name])
            if name in self.namespaces:
                return import_module(f"calibrant.{self.namespaces[name]}")
            home = self.deprecated[name] if is_old else self.homes[name]
            return getattr(import_module(f"calibrant.{home}"), name)
        except ModuleNotFoundError as error:
            if name not in self.missing:
                attributes = {"__module__": self.package, "_error": self._missing_extra(error)}
                self.missing[name] = _MissingName(name, (), attributes)
            return self.missing[name]

    def _missing_extra(self, error: ModuleNotFoundError) -> "MissingExtraError":
        """Return the error that names the extra; an error about anything else is raised as it is."""
        from calibrant._support.errors import MissingExtraError

        if isinstance(error, MissingExtraError):
            return error
        if self.needs is not None and (error.name or "").partition(".")[0] == self.needs.name:
            return self.needs
        raise error

    def directory(self) -> Callable[[], list[str]]:
        """Return the ``__dir__`` of the package."""
        return lambda: sorted(self.names)


def _by_name(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, of modules with names separated by spaces."""
    return {name: module for module, names in modules.items() for name in names.split()}


def warn_moved(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn that a public name is deprecated; `stacklevel` counts from the function that calls this one."""
    text = f"{old} is deprecated: use {new}; the old name will be removed in 1.1."
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def _public(name: str) -> object:
    """Return the object of a public name, relative to `calibrant`."""
    value: object = import_module("calibrant")
    for part in name.split("."):
        value = getattr(value, part)
    return value


class _MissingName(type):
    """A public name whose optional library is not installed. Any use raises the error that names the extra.

    The name itself is no error: ``from calibrant import *``, ``help(calibrant)`` and ``hasattr`` look up all names.
    """

    _error: "MissingExtraError"

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "_MissingName":
        for base in bases:
            if isinstance(base, _MissingName):
                base._raise()
        return super().__new__(cls, name, bases, {**namespace, "__doc__": f"Not available. {namespace['_error']}"})

    def _raise(cls, *_: object, **__: object) -> NoReturn:
        error = cls.__dict__["_error"]
        raise type(error)(error.problem, error.extra, name=error.name)

    def __getattr__(cls, name: str) -> object:
        if name.startswith("_"):  # questions of Python and its shells, such as whether the class is abstract
            raise AttributeError(name)
        cls._raise()

    __call__ = __getitem__ = __iter__ = __len__ = __contains__ = _raise

    def __repr__(cls) -> str:
        return f"<{cls.__module__}.{cls.__name__}: {cls.__doc__}>"
