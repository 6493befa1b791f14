"""Write a software bill of materials (CycloneDX 1.6, JSON) of the installed package: ``python tools/sbom.py FILE``.

Its components are the distributions that Calibrant and its extras need, as installed, and the libraries that are linked
into the compiled kernel. Equal environments give identical files.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Libraries in the compiled kernel: their licences, and their texts in licenses/.
LINKED = {"nanobind": "BSD-3-Clause", "robin-map": "MIT"}


def normalize(name: str) -> str:
    """Return the name of a distribution as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(name: str, distributions: dict[str, metadata.Distribution]) -> dict[str, metadata.Distribution]:
    """Return the installed distributions that one needs, directly or not; extras are included where installed."""
    if name in distributions:
        return distributions
    try:
        distributions[name] = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return distributions
    for requirement in distributions[name].requires or []:
        is_calibrant = name == "calibrant"
        if is_calibrant or "extra ==" not in requirement:
            needed(normalize(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]), distributions)
    return distributions


def licence(distribution: metadata.Distribution) -> list[dict[str, Any]]:
    """Return the licence as CycloneDX writes it: an expression, or the first line of a text."""
    about = distribution.metadata
    if about.get("License-Expression"):
        return [{"expression": about["License-Expression"]}]
    text = (about.get("License") or "").strip().split("\n")[0]
    return [{"license": {"name": text}}] if text else []


def component(name: str, distribution: metadata.Distribution) -> dict[str, Any]:
    """Return one distribution."""
    version = distribution.version
    ref = f"pkg:pypi/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        "version": version,
        "purl": ref,
        "licenses": licence(distribution),
    }


def bill() -> dict[str, Any]:
    """Return the bill of materials."""
    distributions = needed("calibrant", {})
    main = component("calibrant", distributions.pop("calibrant"))
    others = [component(name, distributions[name]) for name in sorted(distributions)]
    linked = [
        {"type": "library", "bom-ref": f"linked:{name}", "name": name, "licenses": [{"license": {"id": identifier}}]}
        for name, identifier in LINKED.items()
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": [*others, *linked],
        "dependencies": [
            {"ref": main["bom-ref"], "dependsOn": [part["bom-ref"] for part in [*others, *linked]]},
        ],
    }


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")
    print(f"{len(bill()['components'])} components: {target}")
