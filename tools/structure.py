"""Measure the structure of the package: modules, names, lengths, layers, and modules loaded per call.

`python tools/structure.py` prints the measurements of this checkout. `--before COMMIT` adds a column for an earlier
commit, which is checked out into a temporary git worktree. `--csv FILE` writes the table for the documentation, and
`--list` prints the places behind the counts.
"""

import argparse
import ast
import csv
import io
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "calibrant"
ROOT_MODULES = {"__init__", "__main__", "versions"}
LONGEST_FUNCTION = 40
LONGEST_MODULE = 400
# Drawing code may be longer than other functions; it computes nothing.
DRAWING = ("plots",)

# A finder of an editable install would load the installed package instead of the measured one.
IMPORT = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, {source!r})
"""
DATA = """
import numpy as np, calibrant as cb
rng = np.random.default_rng(0)
p = rng.random(400)
y = (rng.random(400) < p).astype(int)
"""
WALKS = {
    "ece": "cb.ece(y, p)",
    "evaluate": "cb.evaluate(y, p, n_resamples=19)",
    "evaluate, to_html": "cb.evaluate(y, p, n_resamples=19).to_html({page!r})",
    "Beta.fit, to_sql": "cb.to_sql(cb.Beta().fit(p, y), 'score')",
    "evaluate of points": (
        "cb.evaluate(p + y, cb.Point(p), n_resamples=19) if hasattr(cb, 'Point') else "
        "cb.regression.evaluate(p + y, p, n_resamples=19)"
    ),
    "from_frame on Spark": (
        "import os, sys; os.environ.update(SPARK_LOCAL_IP='127.0.0.1', PYSPARK_PYTHON=sys.executable)\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', False).getOrCreate()\n"
        "frame = spark.createDataFrame(list(zip(y.tolist(), p.tolist())), 'y int, p double')\n"
        "cb.from_frame(frame, y='y', p='p'); spark.stop()"
    ),
}
COUNT = f"\nimport sys\nprint('modules', sum(m.split('.')[0] == {PACKAGE!r} for m in sys.modules))"


@dataclass(frozen=True)
class Place:
    """One finding: a file, a line and what was found there."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def source_files(tree: Path = ROOT) -> list[Path]:
    """Return the Python files of the package."""
    return sorted((tree / "src" / PACKAGE).rglob("*.py"))


def root_modules(tree: Path = ROOT) -> set[str]:
    """Return the names of the modules that lie directly in the package, folders not included."""
    return {path.stem for path in (tree / "src" / PACKAGE).glob("*.py")}


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that hold code: not blank, not a comment, not a docstring."""
    lines: set[int] = set()
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        lines.difference_update(_docstring_lines(node))
    return lines


def _docstring_lines(node: ast.AST) -> range:
    """Return the lines of the docstring of a module, class or function."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return range(0)
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    return range(node.body[0].lineno, (node.body[0].end_lineno or node.body[0].lineno) + 1)


def long_functions(tree: Path = ROOT) -> list[Place]:
    """Return the functions whose body has more than 40 lines of code, drawing code excepted."""
    found = []
    for path in source_files(tree):
        if path.relative_to(tree / "src" / PACKAGE).parts[0] in DRAWING:
            continue
        text = path.read_text(encoding="utf-8")
        lines = code_lines(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = sum(node.body[0].lineno <= line <= (node.end_lineno or 0) for line in lines)
                if size > LONGEST_FUNCTION:
                    found.append(_place(tree, path, node.lineno, f"{node.name} has {size} lines of code"))
    return found


def long_modules(tree: Path = ROOT) -> list[Place]:
    """Return the modules with more than 400 lines of code."""
    sizes = {path: len(code_lines(path.read_text(encoding="utf-8"))) for path in source_files(tree)}
    return [_place(tree, path, 1, f"{size} lines of code") for path, size in sizes.items() if size > LONGEST_MODULE]


def lookups_in_globals(tree: Path = ROOT) -> list[Place]:
    """Return the calls of `globals()`."""
    return [
        _place(tree, path, node.lineno, "globals()")
        for path in source_files(tree)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "globals"
    ]


def repeated_classes(tree: Path = ROOT) -> dict[str, list[str]]:
    """Return the names of public classes that several modules define, with these modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in source_files(tree):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(tree / "src" / PACKAGE).as_posix())
    return {name: files for name, files in sorted(found.items()) if len(files) > 1}


def repeated_modules(tree: Path = ROOT) -> dict[str, list[str]]:
    """Return the module names that several folders have, with their files; packages are folders."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in source_files(tree):
        relative = path.relative_to(tree / "src" / PACKAGE)
        name = relative.parent.name if relative.stem == "__init__" else relative.stem
        if name:
            found[name].append(relative.as_posix())
    return {name: files for name, files in sorted(found.items()) if len(files) > 1}


def names_ending_in_of(tree: Path = ROOT) -> list[Place]:
    """Return the public functions whose names end in `_of`; methods excepted."""
    return [
        _place(tree, path, node.lineno, node.name)
        for path in source_files(tree)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_of") and not node.name.startswith("_")
    ]


def layers(tree: Path = ROOT) -> list[list[str]]:
    """Return the layers of the import-linter contract, highest first; the members of one are independent."""
    settings = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(each for each in settings["contracts"] if each["type"] == "layers")
    return [[name.strip() for name in re.split(r"[|:]", layer)] for layer in contract["layers"]]


def upward_imports(tree: Path = ROOT) -> list[Place]:
    """Return the imports of a higher layer, those that the contract ignores included."""
    height = {name: -row for row, names in enumerate(layers(tree)) for name in names}
    found = []
    for path in source_files(tree):
        module = ".".join(path.relative_to(tree / "src").with_suffix("").parts).removesuffix(".__init__")
        own = _height(module, height)
        for line, target in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            other = _height(target, height)
            if own is not None and other is not None and other > own:
                found.append(_place(tree, path, line, f"imports {target}"))
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of each absolute import of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _height(module: str, heights: dict[str, int]) -> int | None:
    """Return the layer of a module: that of the longest prefix of its name in the contract."""
    parts = module.split(".")
    prefixes = (".".join(parts[:size]) for size in range(len(parts), 0, -1))
    return next((heights[prefix] for prefix in prefixes if prefix in heights), None)


def _place(tree: Path, path: Path, line: int, text: str) -> Place:
    return Place(path.relative_to(tree).as_posix(), line, text)


def duplicate_pairs(tree: Path = ROOT) -> int | str:
    """Return the number of pairs of places in src that share six or more lines, or the reason for not counting."""
    program = shutil.which("duplicates")
    if program is None:
        return "skipped: no program named duplicates"
    command = [program, "--repo", str(tree / "src"), "--most", "1", "--seconds", "120"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if text.startswith("no duplicates"):
        return 0
    count = re.match(r"\D*(\d+)", text)
    return int(count[1]) if count else f"skipped: {text.strip().splitlines()[0]}"


def run(tree: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process that imports the package of a checkout."""
    code = IMPORT.format(source=str(tree / "src")) + code
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)


def modules_loaded(tree: Path, code: str, folder: Path) -> int | str:
    """Return the number of modules of the package that a call loads in a new process, or why it could not run."""
    done = run(tree, DATA + code.format(page=str(folder / "page.html")) + COUNT)
    count = re.search(r"^modules (\d+)$", done.stdout, re.MULTILINE)
    return int(count[1]) if count else f"skipped: {(done.stderr.strip().splitlines() or ['no output'])[-1][:80]}"


def public_names(tree: Path) -> int:
    """Return the number of names in the package's `__all__`."""
    return int(run(tree, f"import {PACKAGE}; print(len({PACKAGE}.__all__))").stdout)


def measure(tree: Path) -> dict[str, int | str]:
    """Return all measurements of a checkout, by name."""
    with tempfile.TemporaryDirectory() as name:
        loaded = {f"modules loaded by {walk}": modules_loaded(tree, code, Path(name)) for walk, code in WALKS.items()}
    return {
        "modules": len(source_files(tree)),
        "modules in the package root": len(root_modules(tree)),
        "public names": public_names(tree),
        **loaded,
        f"functions over {LONGEST_FUNCTION} lines": len(long_functions(tree)),
        f"modules over {LONGEST_MODULE} lines": len(long_modules(tree)),
        "class names in several modules": len(repeated_classes(tree)),
        "module names in several folders": len(repeated_modules(tree)),
        "calls of globals()": len(lookups_in_globals(tree)),
        "upward imports": len(upward_imports(tree)),
        "duplicate pairs in src": duplicate_pairs(tree),
    }


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary git worktree."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main() -> None:
    """Print the measurements, or the places behind them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="COMMIT", help="also measure this commit")
    parser.add_argument("--csv", type=Path, help="write the table to this file")
    parser.add_argument("--list", action="store_true", help="print each long function and module, upward import, ...")
    options = parser.parse_args()
    if options.list:
        for search in (long_functions, long_modules, lookups_in_globals, upward_imports):
            print(*search(), sep="\n")
        return
    columns = {}
    if options.before:
        with checkout(options.before) as tree:
            columns["before"] = measure(tree)
    columns["after" if options.before else "now"] = measure(ROOT)
    names = list(next(reversed(columns.values())))
    rows = [["measure", *columns], *([name, *(column[name] for column in columns.values())] for name in names)]
    width = max(map(len, names))
    for name, *values in rows:
        print(f"{name:{width}}", *(f"{value!s:>8}" for value in values), sep="  ")
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
