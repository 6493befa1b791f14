"""Specifications: the parts of a metric as plain JSON-able data, and the parts rebuilt from it."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import isfunction, signature
from types import NoneType
from typing import Any, get_type_hints

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.json_values import has_type

__all__ = ["part_from_spec", "part_to_spec"]

# The modules in which a part is looked up, by the setting that it is for.
_HOMES = {
    "bins": ("bins", "optimal_bins"),
    "loss": ("losses",),
    "norm": ("norms",),
    "cost": ("costs",),
    "test": ("significance",),
    "error": ("optimal_bins",),
}


def part_to_spec(part: object) -> Any:
    """Return a function as its name, an object with settings as {name: settings}, and plain values unchanged."""
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, (tuple, list)):
        return [part_to_spec(item) for item in part]
    if isinstance(part, np.generic):
        return part.item()
    if is_dataclass(part) and not isinstance(part, type):
        return {_part_name(type(part)): {f.name: part_to_spec(getattr(part, f.name)) for f in fields(part)}}
    return _part_name(part)


def _part_name(part: object) -> str:
    module = getattr(part, "__module__", "?")
    name = getattr(part, "__qualname__", type(part).__qualname__)
    # "user:" distinguishes a function of the user's norms.py from one of this package.
    return f"{module.rpartition('.')[2]}.{name}" if module.startswith("calibrant.") else f"user:{module}.{name}"


def part_from_spec(spec: Any, role: str) -> Any:
    """Return the part that a specification describes; `role` is the setting that it is for, such as "bins"."""
    if not isinstance(spec, Mapping):
        return _part(spec, role, settings=False)
    name, settings = next(iter(spec.items()), (None, None))
    if len(spec) != 1 or not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise _error(f"spec must have one part with its settings; got {spec!r}.", spec)
    class_ = _part(name, role, settings=True)
    given = {key: _setting(key, value) for key, value in settings.items()}
    declared = get_type_hints(class_.__init__)
    for key, value in given.items():
        if not has_type(value, declared.get(key, NoneType)):
            raise _error(f"{key} of {name} must be a setting of the declared type; got {value!r}.", value)
    try:
        return class_(**given)
    except (TypeError, OverflowError) as error:  # a setting is missing, or too large
        raise _error(f"spec must hold the settings of {name}; got {settings!r}.", spec) from error


def _setting(key: str, value: Any) -> Any:
    return part_from_spec(value, key) if key in _HOMES else value


def _part(name: object, role: str, *, settings: bool) -> Any:
    """Return the class or the function of this name, if it can have the role."""
    module, _, attribute = name.partition(".") if isinstance(name, str) else ("", "", "")
    if module in _HOMES.get(role, ()):
        home = import_module(f"calibrant.metrics.{module}")
        found = getattr(home, attribute) if attribute in home.__all__ else None
        if settings and isinstance(found, type) and is_dataclass(found):
            return found
        if not settings and isfunction(found) and (role != "test" or [*signature(found).parameters] == ["k", "n", "p"]):
            return found
    raise InputError(
        f"spec must name parts of Calibrant for {role}; got {name!r}.",
        hint="Rebuild a metric that has parts of your own from these parts.",
        argument="spec",
        value=name,
    )


def _error(text: str, value: object) -> InputError:
    return InputError(text, hint="Pass metric.spec.", argument="spec", value=value)
