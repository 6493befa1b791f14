"""Write the stubs of packages with lazy names from their maps; a test compares them."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

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


def text(package: ModuleType) -> str:
    """Return one import per public name, for type checkers."""
    lines = []
    for name, module in package._lazy.namespaces.items():
        parent, _, last = f"calibrant.{module}".rpartition(".")
        lines.append(f"from {parent} import {last} as {name}")
    lines += [f"from calibrant.{module} import {name} as {name}" for name, module in package._lazy.homes.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    stubs = [SOURCE / name.replace(".", "/") / "__init__.pyi" for name in PACKAGES]
    for name, stub in zip(PACKAGES, stubs, strict=True):
        stub.write_text(text(import_module(name)))
    subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "--select", "I", "--fix", *stubs], check=True)
