"""The structure of the package: a kind of forecast has one home, a module one name, and an evaluation loads little.

Limits are budgets or numbers of the present code. Lower them whenever the code allows it; never raise them.
"""

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.kinds import base
from tests.kinds import cases

PACKAGE = Path(calibrant.__file__).parent
ROOT_MODULES = {"__init__", "__main__", "versions"}

# Names of kinds outside of their folders.
MAX_COMPARED = 1  # in comparisons
MAX_NAMED = 1  # in all uses: see `names_of_kinds`
KINDS = {"binary", "multiclass", "labels", "point", "distribution", *base.KINDS}
# These words have other meanings too: columns, options, coordinates. As a key or an entry they are the name of a kind
# only beside the name of another kind.
AMBIGUOUS = {"labels", "ordinal", "point", "distribution"}
# Lines in which a word has another meaning, with that meaning.
OTHER_MEANINGS = {
    '"binary" in str(array.type)': "a type of Arrow",
    '"format": "binary"': "a format of OpenAPI",
    '"objective": "binary"': "an objective of LightGBM",
}

# Modules with one name outside of the folders of kinds, and why both keep it.
REPEATED_MODULES = {
    "evaluate": "the function, and its command in cli",
    "registry": "METRICS and CALIBRATORS, each in its folder",
    **dict.fromkeys(("multiclass", "point", "distribution"), "metrics and calibrators of that kind"),
}
MAX_LOADED = {
    "cb.ece(y, p)": 25,
    "cb.evaluate(y, p, n_resamples=19)": 80,
    "cb.evaluate(y, p, n_resamples=19).to_html()": 110,
}
# Of calls within calibrant during an evaluation.
MAX_DEPTH = {"binary": 16, "multiclass": 18, "ordinal": 18, "labels": 10, "point": 12, "distribution": 12}
# The kinds that the JSON schemas enumerate.
ENUMERATED = {"parts": cases.KINDS, "audit": cases.AUDITED, "history": cases.MONITORED, "status": cases.MONITORED}

DATA = """
import sys
import numpy as np
import calibrant as cb
rng = np.random.default_rng(0)
p = rng.random(400)
y = (rng.random(400) < p).astype(int)
"""
DEPTH = """
deepest = []
package = os.path.dirname(cb.__file__)

def look(frame, event, argument):
    if event != "call":
        return
    calls = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(package) and not code.co_name.startswith("<"):
            calls.append(f"{code.co_filename}:{code.co_name}")
        frame = frame.f_back
    if len(calls) > len(deepest):
        deepest[:] = calls

cb.evaluate(y, forecast, n_resamples=19)  # loads the modules
sys.setprofile(look)
threading.setprofile(look)
cb.evaluate(y, forecast, n_resamples=19)
sys.setprofile(None)
print("\\n".join(reversed(deepest)))
"""


@dataclass(frozen=True)
class Place:
    """A name of a kind in the code."""

    path: str
    line: int
    column: int
    use: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.use}: {self.text}"


def names_of_kinds(text: str, path: str = "") -> list[Place]:
    """Return the names of kinds in code: the uses that `_uses` yields, and constants of the module.

    Docstrings may name kinds: they document them.
    """
    tree, uses, lines = ast.parse(text), {}, text.splitlines()
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = (pair for node in ast.walk(tree) if id(node) not in documented for pair in _uses(node))
    for use, constant in found:
        place = constant.lineno, constant.col_offset
        if uses.get(place) != "comparison":
            uses[place] = use
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_kind(node.value):
            uses[node.value.lineno, node.value.col_offset] = "constant"
    places = [Place(path, *place, use, lines[place[0] - 1].strip()) for place, use in sorted(uses.items())]
    return [place for place in places if not any(other in place.text for other in OTHER_MEANINGS)]


def _is_kind(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in KINDS


def _uses(node: ast.AST) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the names of kinds that a node uses, and how it uses them."""
    if isinstance(node, ast.Compare):
        for operator, side in zip([None, *node.ops], [node.left, *node.comparators], strict=True):
            literal = isinstance(side, ast.Tuple | ast.List | ast.Set) and isinstance(operator, ast.In | ast.NotIn)
            yield from (("comparison", part) for part in (side.elts if literal else [side]) if _is_kind(part))
    elif isinstance(node, ast.MatchValue) and _is_kind(node.value):
        yield "comparison", node.value
    elif isinstance(node, ast.Dict):
        yield from (("key", key) for key in _kinds_of([key for key in node.keys if key is not None]))
        yield from (("value", value) for value in _kinds_of(node.values))
    elif isinstance(node, ast.IfExp):
        yield from (("choice", choice) for choice in _kinds_of([node.body, node.orelse]))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        quoted = set(re.findall(r"'(\w+)'", node.value)) & KINDS
        if len(quoted) > 1 or quoted - AMBIGUOUS:
            yield "text", node
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from (("entry", entry) for entry in _kinds_of(node.elts))


def _kinds_of(parts: list[ast.expr]) -> list[ast.Constant]:
    """Return the names of kinds among keys or entries."""
    names = [part for part in parts if _is_kind(part)]
    return names if len({name.value for name in names}) > 1 or {name.value for name in names} - AMBIGUOUS else []


def generic_modules() -> list[Path]:
    """Return the modules outside of the folders of kinds."""
    homes = {PACKAGE / "kinds" / kind for kind in base.KINDS}
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not homes & {*path.parents}]


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ('if kind == "binary": ...', ["comparison"]),
        ('if kind in ("point", "labels"): ...', ["comparison", "comparison"]),
        ('match kind:\n    case "point": ...', ["comparison"]),
        ('WORDS = {"labels": 1, "point": 2}', ["key", "key"]),
        ('KINDS = ["binary", "other"]', ["entry"]),
        ('BINARY = "binary"', ["constant"]),
        ('row = {"kind": "binary", "n": 3}', ["value"]),
        ('kind = "binary" if n == 2 else "multiclass"', ["choice", "choice"]),
        ("raise ValueError(\"y must be of kind 'binary'.\")", ["text"]),
        ("raise ValueError(f\"got {kind}, not 'binary'\")", ["text"]),
        ('def f():\n    """Return \'binary\'."""', []),
        ('row = {"labels": labels, "actual": y}', []),
        ('if fields == {"name", "labels"}: ...', []),
        ('data["labels"], f(kind="binary")', []),
    ],
)
def test_names_of_kinds_are_counted_by_their_use(text, uses):
    assert [place.use for place in names_of_kinds(text)] == uses


def test_names_of_kinds_outside_of_their_folders_only_decrease():
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in generic_modules()}
    places = [place for path, text in texts.items() for place in names_of_kinds(text, path)]
    listing = "\n".join(map(str, places))
    assert sum(place.use == "comparison" for place in places) <= MAX_COMPARED, listing
    assert len(places) <= MAX_NAMED, listing


def test_the_folder_of_each_kind_has_the_modules_of_the_protocol():
    for kind in base.KINDS:
        folder = PACKAGE / "kinds" / kind
        for module in (*base.MODULES, "verdict", "details", "audit"):
            assert (folder / f"{module}.py").exists() or (folder / module).is_dir(), f"{kind}/{module}"


def test_the_modules_of_each_kind_are_type_checked():
    text = (PACKAGE.parents[1] / "tests" / "typing" / "kinds.py").read_text(encoding="utf-8")
    modules = {
        kind.name: [*base.MODULES, *(["windows"] if kind.optional("windows") else [])] for kind in base.KINDS.values()
    }
    used = [f"{kind}_{module}" for kind, names in modules.items() for module in names]
    missing = [name for name in used if text.count(name) < 2]  # imported, and listed
    assert missing == []


def test_the_package_root_holds_three_modules():
    assert {path.stem for path in PACKAGE.glob("*.py")} == ROOT_MODULES


def test_modules_have_unique_names():
    places = defaultdict(list)
    for path in generic_modules():
        # Commands are named after functions, and what kinds share after the modules of the kinds.
        if path.stem != "__init__" and path.parent.name not in ("cli", "kinds"):
            places[path.stem].append(path.relative_to(PACKAGE).as_posix())
    repeated = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not {name: paths for name, paths in repeated.items() if name not in REPEATED_MODULES}


def test_public_classes_have_unique_names():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}


@pytest.mark.parametrize("call", MAX_LOADED)
def test_a_call_loads_few_modules(call):
    code = f"{DATA}\n{call}\nprint(*sorted(name for name in sys.modules if name.split('.')[0] == 'calibrant'))"
    if "html" in call:
        pytest.importorskip("jinja2", reason="jinja2 is not installed")
    loaded = python(code).split()
    assert len(loaded) <= MAX_LOADED[call], loaded


@cases.each_kind
def test_an_evaluation_is_not_deeply_nested(kind):
    sample = f"""
import os, sys, threading
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import calibrant as cb
from tests.kinds.cases import draw
y, right, _, make = draw({kind!r}, 200)
forecast = make(right)
"""
    calls = python(sample + DEPTH).splitlines()
    assert len(calls) <= MAX_DEPTH[kind], "\n".join(calls)


def enumerations(value: Any) -> Iterator[list[str]]:
    """Yield the lists of kinds in a part of a JSON schema."""
    if isinstance(value, dict):
        if "binary" in value.get("enum", ()):
            yield value["enum"]
        yield from (found for each in value.values() for found in enumerations(each))
    elif isinstance(value, list):
        yield from (found for each in value for found in enumerations(each))


@pytest.mark.parametrize("function", [calibrant.evaluate, calibrant.compare], ids=["evaluate", "compare"])
def test_tables_of_docstrings_have_a_row_for_each_kind(function):
    table = function.__doc__.split("=\n")[2]
    assert re.findall(r"^    (\w+)", table, re.MULTILINE) == list(base.KINDS)


@pytest.mark.parametrize(
    ("class_", "kinds"), [(calibrant.Evaluation, cases.KINDS), (calibrant.results.Audit, cases.AUDITED)]
)
def test_docstrings_of_results_name_each_kind(class_, kinds):
    text = re.search(r"kind : str\n +(.*)", class_.__doc__)[1]
    assert tuple(name for name in base.KINDS if name in text) == kinds


def test_the_page_and_the_help_of_commands_name_each_kind():
    pytest.importorskip("click", reason="click is not installed")
    from calibrant.cli.evaluate import evaluate
    from calibrant.kinds.columns import columns_by_kind

    flags = [option.flag for form in columns_by_kind().values() for option in form.options]
    assert [flag for flag in flags if flag not in evaluate.help] == []
    page = PACKAGE.parents[1] / "docs" / "command_line.rst"
    if page.exists():
        table = page.read_text(encoding="utf-8").split("   * - kind\n")[1].split("\n\n")[0]
        assert re.findall(r"^   \* - (\w+)", table, re.MULTILINE) == list(base.KINDS)


def test_json_schemas_enumerate_the_kinds_of_the_registry():
    """Files of calibrators name their own kind, which is not that of an evaluation."""
    found = {}
    for path in sorted((PACKAGE / "json_schemas").glob("*.json")):
        for kinds in enumerations(json.loads(path.read_text(encoding="utf-8"))):
            found.setdefault(path.stem.rsplit("-", 1)[0], []).append(tuple(kinds))
    assert set(found) - {"calibrator"} == set(ENUMERATED)
    assert {name: set(found[name]) for name in ENUMERATED} == {name: {kinds} for name, kinds in ENUMERATED.items()}
    schema = json.loads((PACKAGE / "json_schemas" / "evaluation-4.json").read_text(encoding="utf-8"))
    conditions = [each["if"]["properties"]["kind"]["const"] for each in schema["allOf"]]
    assert conditions == list(base.KINDS)
