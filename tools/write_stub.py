"""Write the stubs of packages with lazy names from their maps; a test compares them.

The lower-case functions of metrics are made from their classes when they are imported. The stub of `calibrant.metrics`
states their arguments, so that type checkers see them; other packages import them from there.
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
    return "\n".join(lines) + "\n"


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
