"""Write src/calibrant/__init__.pyi from the name-to-module map of the package. A test compares the two."""

from pathlib import Path

import calibrant

STUB = Path(__file__).parent.parent / "src" / "calibrant" / "__init__.pyi"


def text() -> str:
    """One import for every public name, so that type checkers see them."""
    modules = [f"from calibrant import {name} as {name}" for name in calibrant._MODULES]
    names = [f"from calibrant.{home} import {name} as {name}" for name, home in calibrant._HOME.items()]
    return "\n".join([*modules, *names]) + "\n"


if __name__ == "__main__":
    STUB.write_text(text())
