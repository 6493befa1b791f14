"""Licences of linked libraries, and the software bill of materials."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

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
