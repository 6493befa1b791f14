"""Small inventories of other projects, made of docs/inventories/names.txt, so that links need no network."""

import zlib
from pathlib import Path

NAMES = Path(__file__).parents[1] / "inventories" / "names.txt"


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """Write one inventory per project into a folder; return the ``intersphinx_mapping``."""
    addresses: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        match line.split():
            case [project, address] if not project.startswith("#"):
                addresses[project] = address
            case [project, role, name, place] if not project.startswith("#"):
                lines.setdefault(project, []).append(f"{name} py:{role} 1 {place} -\n")
    folder.mkdir(parents=True, exist_ok=True)
    for project, entries in lines.items():
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n# compressed using zlib\n"
        (folder / f"{project}.inv").write_bytes(head.encode() + zlib.compress("".join(entries).encode()))
    return {project: (address, str(folder / f"{project}.inv")) for project, address in addresses.items()}
