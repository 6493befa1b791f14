"""CONTRIBUTING.md: its commands and files exist, and its worked diffs apply and are picked up by the contract tests."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
MAX_LINES = 25  # of a worked diff, without its row in a registry
# For each worked diff: the new row of the registry, and the contract tests that find it there by name.
WORKED = {
    "Adding a metric": (
        '    ("calibration_errors", "ece ace mce amce rmsce tce ecc bias oe_ratio debiased_sce"),',
        "amce",
        ("tests/metrics/test_metrics.py", "tests/metrics/test_registry.py", "tests/inference/test_intervals.py"),
    ),
    "Adding a calibrator": (
        '    "histogram_binning": HistogramBinning,',
        "histogram_binning",
        ("tests/calibrators/test_calibrators.py",),
    ),
    "Adding a kind of bins": (
        '__all__ = ["PAVA", "PAVABC", "Bins", "Edges", "EqualInformation", "EqualLogit", "EqualSize", "EqualWidth"]',
        "EqualLogit",
        ("tests/metrics/test_bins.py",),
    ),
}
# An editable install would load the package of this checkout instead of the changed copy.
RUN = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, "src")
import calibrant, pytest
assert calibrant.__file__.startswith({folder!r}), calibrant.__file__
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", {keyword!r}, *{files!r}]))
"""

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="the tests run outside the checkout")


def section(title):
    return GUIDE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def read_diff(title):
    """Return for each file of a worked diff its hunks: the old lines, and the new lines with their marks."""
    files = {}
    for block in re.findall(r"```diff\n(.*?)```", section(title), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("--- "):
                hunks = files.setdefault(line.removeprefix("--- "), [])
            elif line.startswith("@@"):
                hunks.append([])
            else:
                hunks[-1].append(line)
    return files


def apply(diff, root):
    """Apply a diff whose hunks have no line numbers; their old lines must occur exactly once."""
    for name, hunks in diff.items():
        text = (root / name).read_text(encoding="utf-8")
        for hunk in hunks:
            old, new = ("\n".join(line[1:] for line in hunk if line[:1] != mark) + "\n" for mark in "+-")
            assert text.count(old) == 1, f"{name} has {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
        (root / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("title", WORKED)
def test_a_worked_diff_is_short_and_applies(title, tmp_path):
    diff = read_diff(title)
    row, *_ = WORKED[title]
    added = [line[1:] for hunks in diff.values() for hunk in hunks for line in hunk if line.startswith("+")]
    assert added.count(row) == 1
    assert len(added) - 1 <= MAX_LINES
    for name in diff:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    apply(diff, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("title", WORKED)
def test_contract_tests_find_the_entry_of_a_worked_diff(title, tmp_path):
    _, keyword, files = WORKED[title]
    if title == "Adding a calibrator":
        pytest.importorskip("sklearn")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    apply(read_diff(title), tmp_path)
    code = RUN.format(folder=str(tmp_path), keyword=keyword, files=files)
    environment = {**os.environ, "CALIBRANT_KERNEL": "reference"}  # the copy has no compiled kernel
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 3


def test_make_help_lists_all_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", makefile, re.MULTILINE)[1].replace("\\\n", " ").split()
    described = re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(phony) == sorted(described)
    assert len(described) < 20


def layers():
    """Return the folders of the contract of import-linter, top first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    return [name.strip().removeprefix("calibrant.") for layer in contract["layers"] for name in re.split("[:|]", layer)]


def test_the_guide_lists_the_layers_of_the_contract():
    assert re.findall(r"^\| `(\w+)` \|", section("Layers"), re.MULTILINE) == layers()


def test_every_folder_of_the_package_is_a_layer_or_a_namespace():
    folders = {path.parent.name for path in (ROOT / "src" / "calibrant").glob("*/__init__.py")}
    assert folders - {*layers()} == {"exceptions", "regression"}


def names_of_modules(folder):
    """Return the names of a folder of the package, of its modules and of its folders, without underscores."""
    paths = [folder, *folder.glob("*.py"), *(path for path in folder.iterdir() if path.is_dir())]
    return {path.stem.strip("_") for path in paths}


def test_test_files_are_named_after_the_module_or_the_folder_that_they_test():
    """The tests of metrics/bins.py are in tests/metrics/test_bins.py, or test_bins_of_points.py for one aspect."""
    wrong = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tested = ROOT / "src" / "calibrant" / path.parent.relative_to(ROOT / "tests")
        # tests/integrations tests other tools, most of which need no module of ours.
        if tested.is_dir() and path.parent.name not in ("tests", "integrations"):
            name = path.stem.removeprefix("test_")
            if not any(name == module or name.startswith(f"{module}_") for module in names_of_modules(tested)):
                wrong.append(str(path.relative_to(ROOT)))
    assert not wrong


def test_files_that_the_guide_names_exist():
    text = re.sub(r"```.*?```", "", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = re.findall(r"`((?:src|tests|docs|tools|research|benchmarks)/[\w./-]+)`", text)
    assert names
    assert not [name for name in names if not (ROOT / name).exists()]
