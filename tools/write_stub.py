"""Write the stubs of the packages whose names are loaded on first use, from their maps. A test compares the two."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).parent.parent / "src"
PACKAGES = (
    "calibrant",
    "calibrant.calibrators",
    "calibrant.inference",
    "calibrant.metrics",
    "calibrant.plots",
    "calibrant.regression",
)


def text(package: ModuleType) -> str:
    """One import for every public name, so that type checkers see them."""
    lines = []
    for name, module in package._lazy.namespaces.items():
        parent, _, last = f"calibrant.{module}".rpartition(".")
        lines.append(f"from {parent} import {last} as {name}")
    lines += [f"from calibrant.{module} import {name} as {name}" for name, module in package._lazy.homes.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in PACKAGES:
        package = import_module(name)
        (SOURCE / name.replace(".", "/") / "__init__.pyi").write_text(text(package))
