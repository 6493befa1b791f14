"""Fail unless the installed versions are the lowest ones that pyproject.toml allows; print them.

python tools/lowest_versions.py [EXTRA ...]
"""

import importlib.metadata
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]


def lower_bounds(root: Path = ROOT) -> dict[str, Version]:
    """Return the lower bound of each dependency of the package and of its extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    bounds: dict[str, Version] = {}
    for requirement in map(Requirement, stated):
        for bound in requirement.specifier:
            bounds[requirement.name] = max(bounds.get(requirement.name, Version("0")), Version(bound.version))
    return bounds


def main() -> None:
    """Compare the first two numbers of each installed version with its bound."""
    higher = []
    for name, bound in sorted(lower_bounds().items()):
        try:
            installed = Version(importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            continue
        print(f"{name} {installed}")
        if installed.release[:2] != (*bound.release, 0)[:2]:
            higher.append(f"{name} must be {bound}; got {installed}")
    sys.exit("\n".join(higher) or None)


if __name__ == "__main__":
    main()
