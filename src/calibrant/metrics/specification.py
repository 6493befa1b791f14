"""Specifications: the parts of a metric as plain JSON-able data, and the parts rebuilt from it."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from calibrant._support.errors import InputError

__all__ = ["part_from_spec", "part_to_spec"]

# The modules in which the parts of a specification are looked up.
_PART_MODULES = ("bins", "costs", "losses", "norms", "optimal_bins", "significance")


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


def part_from_spec(spec: Any) -> Any:
    """Return the part that a specification describes."""
    if not isinstance(spec, Mapping):
        return _part(spec)
    name, settings = next(iter(spec.items()), (None, None))
    if len(spec) != 1 or not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise InputError(
            f"spec must have one part with its settings; got {spec!r}.",
            hint="Pass metric.spec.",
            argument="spec",
            value=spec,
        )
    return _part(name)(**{key: _setting(value) for key, value in settings.items()})


def _setting(value: Any) -> Any:
    is_part = isinstance(value, Mapping) or (isinstance(value, str) and value.partition(".")[0] in _PART_MODULES)
    return part_from_spec(value) if is_part else value


def _part(name: object) -> Any:
    module, _, attribute = name.partition(".") if isinstance(name, str) else ("", "", "")
    if module in _PART_MODULES:
        home = import_module(f"calibrant.metrics.{module}")
        if attribute in home.__all__:
            return getattr(home, attribute)
    raise InputError(
        f"spec must name parts of Calibrant; got {name!r}.",
        hint="Rebuild a metric that has parts of your own from these parts.",
        argument="spec",
        value=name,
    )
