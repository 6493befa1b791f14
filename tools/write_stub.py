"""Write the stubs of packages with lazy names from their maps; a test compares them.

The lower-case functions of metrics are made from their classes when they are imported. The stub of `calibrant.metrics`
states their arguments, so that type checkers see them; other packages import them from there. Deprecated names are
marked as such (PEP 702); type checkers bring `typing_extensions` along.
"""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"
PACKAGES = (
    "calibrant",
    "calibrant.calibrators",
    "calibrant.exceptions",
    "calibrant.forecasts",
    "calibrant.inference",
    "calibrant.metrics",
    "calibrant.plots",
    "calibrant.regression",
    "calibrant.results",
)
METRICS = "calibrant.metrics"
# Types in the arguments of metrics.
IMPORTS = """\
from typing import Literal
from calibrant._support.arrays import Column
from calibrant.forecasts.forecast_table import ForecastTable
from calibrant.metrics.bins import Bins
from calibrant.metrics.costs import Cost
from calibrant.metrics.norms import Norm
from calibrant.metrics.significance import Test
from calibrant.tables.mean_table import MeanTable
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable
"""

DEPRECATED = """\
from collections.abc import Callable
from typing import ParamSpec, TypeVar
from typing_extensions import deprecated

_P = ParamSpec("_P")
_R = TypeVar("_R")

def _like(function: Callable[_P, _R]) -> Callable[[object], Callable[_P, _R]]: ...
"""


def text(package: ModuleType) -> str:
    """Return one import or function per public name, for type checkers."""
    lines = []
    for name, module in package._lazy.namespaces.items():
        parent, _, last = f"calibrant.{module}".rpartition(".")
        lines.append(f"from {parent} import {last} as {name}")
    functions = []
    for name, module in package._lazy.homes.items():
        home = f"calibrant.{module}"
        if module.startswith("metrics.") and module != "metrics.calibration_counter":
            function = getattr(import_module(home), name)
            # Functions that are made from a class have the signature of another function.
            if inspect.isfunction(function) and hasattr(function, "metric") and function.__code__.co_name != name:
                home = METRICS
                functions.append(definition(name, function))
        if home != METRICS or package.__name__ != METRICS:
            lines.append(f"from {home} import {name} as {name}")
    if package.__name__ == METRICS:
        lines += [IMPORTS, *functions]
    lines += aliases(package)
    return "\n".join(lines) + "\n"


def aliases(package: ModuleType) -> list[str]:
    """Return the deprecated names of a package: subclasses, and functions with the signature of the new ones."""
    imports, definitions = [], []
    for name, (home, target, text) in deprecated_names(package).items():
        value = getattr(import_module(home), target)
        kept = f"_{target}" if callable(value) else name
        imports.append(f"from {home} import {target} as {kept}")
        if callable(value):
            is_class = inspect.isclass(value)
            alias = f"class {name}({kept}): ..." if is_class else f"@_like({kept})\ndef {name}() -> None: ..."
            definitions.append(f'@deprecated("{text}")\n{alias}')
    return [*imports, DEPRECATED, *definitions] if definitions else []


def deprecated_names(package: ModuleType) -> dict[str, tuple[str, str, str]]:
    """Return the module and the attribute that each deprecated name stands for, and what to use instead."""
    names = {}
    for name, new in package._lazy.moved.items():
        place, _, target = new.rpartition(".")
        home = f"calibrant.{import_module('calibrant')._lazy.namespaces[place]}" if place else "calibrant"
        names[name] = home, target, f"Use calibrant.{new}."
    for name, module in package._lazy.deprecated.items():
        home = f"calibrant.{module}"
        use = inspect.getdoc(getattr(import_module(home), name)).partition("deprecated: ")[2].replace("`", "")
        names[name] = home, name, use.capitalize()
    return names


def definition(name: str, function: Any) -> str:
    """Return the definition of the function of a metric: the outcomes, the settings of its class, the row options."""
    # Only the signature of the class has types.
    settings = inspect.signature(function.metric).parameters
    table = getattr(function.metric, "reader", import_module("calibrant.tables.score_table").read_score_table).table
    rows = {"sample_weight": "Column | None", "frequency": "Column | None", "pos_label": "object", "missing": "Missing"}
    outcomes, prediction, *options = inspect.signature(function).parameters.values()
    arguments = [f"{outcomes.name}: {table.__name__} | Column", f"{prediction.name}: Column | None = None", "*"]
    for option in options:
        kind = rows.get(option.name) or inspect.formatannotation(settings[option.name].annotation)
        kind = kind.strip("'").replace("typing.", "")
        default = option.default if isinstance(option.default, (str, int, float, type(None))) else ...
        arguments.append(f"{option.name}: {kind} = {'...' if default is ... else repr(default)}")
    return f"def {name}({', '.join(arguments)}) -> float: ..."


def write(stubs: dict[str, Path]) -> None:
    """Write the stubs of packages, in the format of the repository."""
    for name, stub in stubs.items():
        stub.write_text(text(import_module(name)))
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--quiet", "--select", "I,F401", "--fix", *stubs.values()], check=True)
    subprocess.run([*ruff, "format", "--quiet", *stubs.values()], check=True)


if __name__ == "__main__":
    write({name: SOURCE / name.replace(".", "/") / "__init__.pyi" for name in PACKAGES})
