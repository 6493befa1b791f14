"""Licences of linked libraries, the software bill of materials, and the lock of development dependencies."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


def test_wheels_hold_the_licences_of_linked_libraries():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    held = {path.name for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert held == {"LICENSE", "nanobind.txt", "robin-map.txt"}
    assert "Redistribution and use in source and binary forms" in (ROOT / "licenses" / "nanobind.txt").read_text()
    assert (ROOT / "licenses" / "robin-map.txt").read_text().startswith("MIT License\n")


def test_the_bill_of_materials_lists_dependencies_and_linked_libraries(tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "sbom.py"), str(tmp_path / "sbom.json")]
    subprocess.run(command, check=True, capture_output=True)
    found = json.loads((tmp_path / "sbom.json").read_text())
    names = [each["name"] for each in found["components"]]
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert {"numpy", "scipy", "narwhals", "nanobind", "robin-map"} <= set(names)
    assert len(names) == len(set(names))
    subprocess.run([*command[:2], str(tmp_path / "again.json")], check=True, capture_output=True)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "sbom.json").read_bytes()


def test_the_oldest_versions_of_the_corruption_tests_are_the_lower_bounds():
    """`make env NAME=corruption` runs with them, so that a bound that fails on damaged files is noticed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [*project["dependencies"], *project["optional-dependencies"]["files"]]
    lowest = {each.name: str(each.specifier).removeprefix(">=") for each in map(Requirement, bounds)}
    script = (ROOT / "tools" / "environments.sh").read_text(encoding="utf-8")
    pinned = re.search(r'^OLDEST="(.*)"$', script, flags=re.MULTILINE)[1]
    for each in map(Requirement, pinned.split()):
        version = str(each.specifier).removeprefix("==")
        assert version.startswith(f"{lowest[each.name]}."), (str(each), lowest[each.name])
    assert {"duckdb", "pyarrow"} <= {Requirement(each).name for each in pinned.split()}


def lock() -> dict[str, list[str]]:
    """The pinned versions of each package in the lock; a version may be for some Pythons only."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "requirements-dev.lock").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            requirement = Requirement(line.removesuffix("\\"))
            assert [each.operator for each in requirement.specifier] == ["=="], line
            found.setdefault(canonicalize_name(requirement.name), []).extend(e.version for e in requirement.specifier)
    return found


def required() -> list[Requirement]:
    """All that make test and the build install, as pyproject.toml has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]
    assert groups["build"] == project["build-system"]["requires"]

    def of_group(name: str) -> list[str]:
        parts = [of_group(each["include-group"]) if isinstance(each, dict) else [each] for each in groups[name]]
        return [each for part in parts for each in part]

    names = [each for name in ("dev", "spark", "build") for each in of_group(name)]
    names += [
        *project["project"]["dependencies"],
        *(each for name in ("sklearn", "plot", "cli") for each in extras[name]),
    ]
    names += [each for name in ("files", "plot", "report") for each in extras[name]]  # extras of the extra cli
    return [Requirement(each) for each in names if not each.startswith("calibrant[")]


def test_the_lock_pins_what_the_project_requires():
    pinned = lock()
    for each in required():
        versions = pinned.get(canonicalize_name(each.name), [])
        assert versions, f"{each.name} is not in requirements-dev.lock; run tools/lock.sh"
        for version in versions:
            assert each.specifier.contains(version), f"{each} is locked at {version}; run tools/lock.sh"


def test_each_line_of_the_lock_has_hashes_and_no_host():
    text = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert len(entries) > 80
    for entry in entries:
        first, *hashes = entry.splitlines()
        assert hashes, first
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes), first
    assert not re.search(r"://|^--|file:", text, flags=re.MULTILINE)
