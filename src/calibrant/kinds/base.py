"""The registry of kinds of forecast, and the modules that the folder of each kind has.

Code outside of `calibrant.kinds` names no kind: it asks ``kind_of(name)`` for one of the modules below. A module is
imported when it is first asked for, so that an evaluation loads neither figures nor the command line.

=============  =====================================================================================================
module         holds
=============  =====================================================================================================
``columns``    command line: the options that name the forecast, and how files are read
``words``      report: what to call the forecast, what a deviation means, what to do about it
``figures``    diagrams of an evaluation and of a comparison
``windows``    monitor: how rows of a time window are counted and judged
=============  =====================================================================================================
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = ["KINDS", "Kind", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """One kind of forecast: its name, and the modules of its folder."""

    name: str

    def __getattr__(self, module: str) -> Any:
        """Return a module of the folder, such as ``kind.figures``."""
        if module.startswith("_"):
            raise AttributeError(module)
        return import_module(f"calibrant.kinds.{self.name}.{module}")


KINDS = {name: Kind(name) for name in ("binary", "multiclass", "labels", "point", "distribution")}


def kind_of(name: str) -> Kind:
    """Return a kind of forecast by its name."""
    return KINDS[name]
