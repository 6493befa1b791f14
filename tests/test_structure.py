"""The structure of the package: its root, layers, and the lengths of functions and modules."""

import re
import textwrap
from pathlib import Path

import pytest

from tools import structure

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the tests run outside the checkout")


KINDS = ("binary", "multiclass", "labels", "point", "distribution", "regression")
# Names that mean the same thing in each place.
REPEATED_MODULES = {
    **dict.fromkeys(KINDS, "one module per kind of forecast in each folder"),
    **dict.fromkeys(
        ("evaluate", "compare", "audit", "export", "monitor"), "the command of that function or folder in cli"
    ),
    "registry": "METRICS and CALIBRATORS, each in its folder",
    **dict.fromkeys(("decision", "design"), "of binary scores in inference, of classes in inference/multiclass"),
}


def write(folder, name, text):
    path = folder / "src" / "calibrant" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


def test_package_root_holds_three_modules():
    assert structure.root_modules() == structure.ROOT_MODULES


def test_no_function_is_longer_than_40_lines():
    assert not list(map(str, structure.long_functions()))


def test_no_module_is_longer_than_400_lines():
    assert not list(map(str, structure.long_modules()))


def test_no_module_looks_names_up_in_globals():
    assert not list(map(str, structure.lookups_in_globals()))


def test_public_classes_have_unique_names():
    assert structure.repeated_classes() == {}


def test_modules_have_unique_names():
    repeated = structure.repeated_modules()
    assert set(repeated) <= set(REPEATED_MODULES)
    for name in set(repeated) - set(KINDS):
        assert len(repeated[name]) == 2


def test_repeated_names_of_classes_and_modules_are_found(tmp_path):
    write(tmp_path, "metrics/rows.py", "class Rows: ...\nclass _Private: ...\n")
    write(tmp_path, "tables/rows.py", "class Rows: ...\nclass _Private: ...\nclass Other: ...\n")
    assert structure.repeated_classes(tmp_path) == {"Rows": ["metrics/rows.py", "tables/rows.py"]}
    assert structure.repeated_modules(tmp_path) == {"rows": ["metrics/rows.py", "tables/rows.py"]}


def test_no_public_function_has_a_name_that_ends_in_of():
    assert not list(map(str, structure.names_ending_in_of()))


def test_contributing_lists_the_layers_of_the_contract():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("\n## Layers\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    contract = [name.removeprefix("calibrant.") for names in structure.layers() for name in names]
    assert listed == contract


def test_every_folder_of_the_package_is_a_layer_or_a_namespace():
    folders = {path.parent.name for path in (ROOT / "src" / "calibrant").glob("*/__init__.py")}
    contract = {name.removeprefix("calibrant.") for names in structure.layers() for name in names}
    assert folders - contract == {"regression"}


def test_docstrings_comments_and_blank_lines_are_not_counted():
    text = '"""Module\n\ndocstring."""\n\n# comment\nx = (\n    1,\n)\n\n\n'
    text += 'def f():\n    """One."""\n    return """a\nb"""\n'
    assert structure.code_lines(text) == {6, 7, 8, 11, 13, 14}


def test_a_long_function_is_found_and_drawing_code_is_excepted(tmp_path):
    body = "".join(f"    x{i} = {i}\n" for i in range(41))
    for name in ("metrics/long.py", "plots/long.py"):
        write(tmp_path, name, f'def long():\n    """Doc."""\n{body}\n\ndef short():\n    pass\n')
    found = structure.long_functions(tmp_path)
    assert [str(place) for place in found] == ["src/calibrant/metrics/long.py:1: long has 41 lines of code"]


def test_a_long_module_is_found(tmp_path):
    write(tmp_path, "metrics/long.py", "".join(f"x{i} = {i}\n" for i in range(401)))
    write(tmp_path, "metrics/short.py", "".join(f"x{i} = {i}\n" for i in range(400)))
    assert [place.file for place in structure.long_modules(tmp_path)] == ["src/calibrant/metrics/long.py"]


def test_lookups_in_globals_and_upward_imports_are_found(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["calibrant.plots", "calibrant.metrics"]\n'
    )
    write(tmp_path, "metrics/up.py", "def f():\n    from calibrant.plots import x\n    return globals()['f'], x\n")
    write(tmp_path, "plots/down.py", "import calibrant.metrics.up\n")
    assert [str(place) for place in structure.upward_imports(tmp_path)] == [
        "src/calibrant/metrics/up.py:2: imports calibrant.plots.x"
    ]
    assert [str(place) for place in structure.lookups_in_globals(tmp_path)] == [
        "src/calibrant/metrics/up.py:3: globals()"
    ]
