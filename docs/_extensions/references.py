"""Names in single backticks: link each one to the object that it means, and refuse the others.

A name means, in this order: a documented object of that full name; a member of the class of the docstring; an object of
the module, of a namespace or of the package that ends with the name. Parameters, fields and functions that the package
defines but does not document on a page of their own, and names of other libraries, are shown as code without a link.
A name with none of these meanings, such as a misspelt or a removed one, is an unresolved reference, so that
``sphinx-build -n -W`` fails.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

SOURCES = Path(__file__).parents[2] / "src" / "calibrant"
# Packages whose documentation is linked; a name of theirs that no inventory holds is shown as code.
OUTSIDE = (
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "polars",
    "matplotlib",
    "torch",
    "duckdb",
    "pyspark",
    "pyarrow",
    "mlflow",
)


@cache
def known_words() -> frozenset[str]:
    """Return the names of parameters, fields and functions that the package defines."""
    found: set[str] = set()
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Attribute(attr=name) | ast.AnnAssign(target=ast.Name(id=name)) | ast.keyword(arg=str(name)):
                    found.add(name)
        found.update(path.relative_to(SOURCES).with_suffix("").parts)
    return frozenset(found)


def endings(app: Sphinx) -> dict[str, list[str]]:
    """Return the full names of all documented objects by each of their endings."""
    domain = app.env.domains["py"]
    if getattr(app, "_calibrant_endings", None) is None:
        found: dict[str, list[str]] = defaultdict(list)
        for name in domain.data["objects"]:
            parts = name.split(".")
            for first in range(len(parts)):
                found[".".join(parts[first:])].append(name)
        app._calibrant_endings = found  # type: ignore[attr-defined]
    return app._calibrant_endings  # type: ignore[attr-defined,no-any-return]


def nearest(names: list[str], node: Any) -> str:
    """Return the name that is meant: of the same class, then of the same module, then the shortest."""
    inside = [f"{node.get('py:module')}.{node.get('py:class')}.", f"{node.get('py:module')}."]
    for prefix in inside:
        near = [name for name in names if name.startswith(prefix)]
        if near:
            return min(near, key=lambda name: (name.count("."), name))
    return min(names, key=lambda name: (name.count("."), name))


def resolve(app: Sphinx, env: Any, node: Any, text: Any) -> Any:
    """Return the link, or the code, of a name that Sphinx did not resolve; None if it has no meaning."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removesuffix("()").removeprefix("cb.").removeprefix("~")
    names = endings(app).get(target) or endings(app).get(target.removeprefix("calibrant."), [])
    if names:
        name = nearest(names, node)
        entry = env.domains["py"].data["objects"][name]
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, text, name)
    words = re.split(r"\W+", target.removeprefix("calibrant."))
    if target.split(".")[0] in OUTSIDE or all(word in known_words() for word in words if word):
        return nodes.literal("", text.astext(), classes=["name"])
    return None


def forget(app: Sphinx, env: Any) -> None:
    """Forget the names of an earlier build."""
    app._calibrant_endings = None  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    """Resolve names after the inventories of other projects have been asked."""
    app.connect("missing-reference", resolve, priority=900)
    app.connect("env-updated", forget)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
