"""The documentation lists every public name, and links only to existing pages."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import calibrant as cb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAMESPACES = (
    "bins",
    "losses",
    "norms",
    "costs",
    "significance",
    "metrics",
    "inference",
    "calibrators",
    "plots",
    "regression",
)
PAGES = sorted(path for path in DOCS.rglob("*.rst") if "_build" not in path.parts and "generated" not in path.parts)


def need_library(namespace: str) -> None:
    """Skip where the library of a namespace is missing."""
    library = {"calibrators": "sklearn", "plots": "matplotlib"}.get(namespace)
    if library is not None:
        pytest.importorskip(library, reason=f"{library} is not installed")


def listed_names() -> dict[str, set[str]]:
    """Map each namespace of the reference page, or "" for the top level, to the names that it lists or describes."""
    top, _, rest = (DOCS / "reference.rst").read_text(encoding="utf-8").partition("\nNamespaces\n----------\n")
    sections = re.split(r"\n(\w+)\n~~+\n", rest)
    parts = {"": top} | dict(zip(sections[1::2], sections[2::2], strict=True))
    listed, described = re.compile(r"^   (\w+)$", re.MULTILINE), re.compile(r"^\.\. py:class:: (\w+)", re.MULTILINE)
    return {name: {*listed.findall(text), *described.findall(text)} for name, text in parts.items()}


def test_the_reference_has_a_section_for_each_namespace():
    assert set(listed_names()) == {"", *NAMESPACES}


def test_the_reference_lists_every_public_name():
    public = set(cb.__all__) - set(NAMESPACES) - {"__version__"}
    assert listed_names()[""] == public


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_the_reference_lists_every_name_of_a_namespace(namespace):
    need_library(namespace)
    public = set(getattr(getattr(cb, namespace), "__all__", ()))
    assert listed_names()[namespace] == public


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_the_reference_names_the_module_of_a_namespace(namespace):
    need_library(namespace)
    text = (DOCS / "reference.rst").read_text(encoding="utf-8")
    section = re.search(rf"\n{namespace}\n~~+\n(.*?)(?=\n\w+\n~~|\Z)", text, flags=re.DOTALL)
    module = re.search(r"currentmodule:: (\S+)", section[1])[1]
    assert import_module(module) is getattr(cb, namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_page_is_in_a_toctree(page):
    if page.name == "index.rst" and page.parent == DOCS:
        return
    entry = str(page.relative_to(DOCS).with_suffix(""))
    assert re.search(rf"^   {re.escape(entry)}$", (DOCS / "index.rst").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_files_that_the_readme_links_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"(?:\]\(|src=\")([\w/.-]+)", text)
    linked = {*links, *re.findall(r"\bdocs/[\w/.-]+\.(?:rst|svg|csv)", text)}
    assert linked
    assert not [path for path in linked if not (ROOT / path).exists()]
