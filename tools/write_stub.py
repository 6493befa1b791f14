"""Write the stubs of the packages whose names are loaded on first use, from their maps. A test compares the two."""

from pathlib import Path
from types import ModuleType

import calibrant
from calibrant import regression

SOURCE = Path(__file__).parent.parent / "src"


def text(package: ModuleType) -> str:
    """One import for every public name, so that type checkers see them."""
    home = package.__name__
    modules = [f"from {home} import {name} as {name}" for name in getattr(package, "_MODULES", ())]
    names = [f"from {home}.{module} import {name} as {name}" for name, module in package._HOME.items()]
    return "\n".join([*modules, *names]) + "\n"


if __name__ == "__main__":
    for package in (calibrant, regression):
        (SOURCE / package.__name__.replace(".", "/") / "__init__.pyi").write_text(text(package))
