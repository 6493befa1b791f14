"""The documentation lists every public name with complete docstrings, and links only to existing pages."""

import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

import calibrant as cb
import calibrant.json_schemas  # imported on its own: it is not one of the names of calibrant
from calibrant.kinds.bounded_deviation import BoundedDetails
from calibrant.kinds.log_odds import LogOddsDetails
from calibrant.results.details import Details

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAMESPACES = (
    "bins",
    "losses",
    "norms",
    "costs",
    "significance",
    "exceptions",
    "forecasts",
    "metrics",
    "inference",
    "calibrators",
    "plots",
    "regression",
    "results",
    "json_schemas",
)
MADE = {"_build", "generated", "_templates", "gallery", "tutorials"}  # by the build, or not pages
PAGES = sorted(path for path in DOCS.rglob("*.rst") if not MADE & set(path.relative_to(DOCS).parts))
ALIASES = {"Bins", "Loss", "Norm", "Cost", "Test"}  # types of functions; the page describes them
EXAMPLES = sorted((DOCS / "gallery" / "sources").glob("plot_*.py"))
TUTORIALS = sorted((DOCS / "tutorials" / "sources").glob("plot_*.py"))


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
    listed, described = re.compile(r"^   (\w+)$", re.MULTILINE), re.compile(r"^\.\. py:\w+:: (\w+)", re.MULTILINE)
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


def listed_pages(page: Path) -> set[str]:
    """Return the entries of the toctrees of a page."""
    trees = re.findall(
        r"^\.\. toctree::\n(?:   :.*\n)*\n((?:   \S+\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {line.strip() for tree in trees for line in tree.splitlines()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_page_is_in_a_toctree(page):
    sections = [DOCS / "index.rst", *(DOCS / f"{name}.rst" for name in listed_pages(DOCS / "index.rst"))]
    entries = {"index"}.union(*(listed_pages(section) for section in sections if section.exists()))
    assert str(page.relative_to(DOCS).with_suffix("")) in entries


def test_the_navigation_has_four_sections_with_research_and_changelog_apart():
    wanted = {"getting_started", "user_guide", "howto_and_gallery", "reference", "research", "changelog"}
    assert listed_pages(DOCS / "index.rst") == wanted


def public_objects() -> dict[str, Any]:
    """Return all public functions and classes by full name, each once."""
    places = {"calibrant": set(cb.__all__) - set(NAMESPACES)}
    places |= {getattr(cb, name).__name__: set(getattr(cb, name).__all__) for name in NAMESPACES}
    names = [(module, name) for module, each in places.items() for name in sorted(each - ALIASES)]
    found = {
        f"{module}.{name}": getattr(import_module(module), name)
        for module, name in names
        if name != "CalibrationCounter"  # of torch, which need not be installed
    }
    return {name: each for name, each in found.items() if inspect.isclass(each) or inspect.isroutine(each)}


def documented_names(sections: Any) -> set[str]:
    """Return the names of parameters and attributes that a docstring describes."""
    described = [each.name for section in ("Parameters", "Attributes") for each in sections[section]]
    return {name.strip().lstrip("*") for each in described for name in each.split(",")}


def argument_names(function: Any) -> set[str]:
    """Return the names of arguments; in the place of ``**rows`` the keys of its typed dictionary."""
    names = set[str]()
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if name == "rows" and isinstance(annotation, str):
            annotation = eval(annotation, inspect.unwrap(function).__globals__)
        typed = get_args(annotation) if parameter.kind is parameter.VAR_KEYWORD else ()
        names |= set(typed[0].__annotations__) if typed else {name}
    return {name for name in names if name not in ("self", "cls") and not name.startswith("_")}


def has_row_options(function: Any) -> bool:
    """Return whether a function has a typed dictionary of arguments, which numpydoc's validation does not know."""
    return "sample_weight" in argument_names(function) - set(inspect.signature(function).parameters)


def missing_sections(name: str, thing: Any) -> list[str]:
    """Return what numpydoc's validation misses: sections of functions; fields, See Also and examples of classes."""
    from numpydoc.docscrape import ClassDoc, FunctionDoc
    from numpydoc.validate import validate

    codes = {code for code, _ in validate(name)["errors"]}
    if inspect.isclass(thing):
        written = ClassDoc(thing, config={"show_class_members": False})
        inherited = issubclass(thing, BaseException) and "__init__" not in vars(thing)
        settings = [] if inherited else list(inspect.signature(thing).parameters)
        settings = [each for each in settings if not each.startswith("_")]
        free = {"args", "kwargs", "options"}  # of base classes without a constructor
        undocumented = [each for each in settings if each not in documented_names(written) | free]
        return sorted(codes & {"GL08", "SS01", "SA01", "EX01"}) + undocumented
    if "cls" in inspect.signature(thing).parameters:
        codes -= {"PR02"}  # numpydoc takes a parameter cls for that of a class method, which needs no description
    if has_row_options(thing):
        differ = argument_names(thing) ^ documented_names(FunctionDoc(thing))
        return sorted(codes & {"GL08", "SS01", "RT01", "SA01", "EX01"}) + sorted(differ)
    return sorted(codes & {"GL08", "SS01", "PR01", "PR02", "RT01", "SA01", "EX01"})


def test_every_public_object_has_the_sections_of_numpydoc():
    for library in ("numpydoc", "sklearn", "matplotlib"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    found = {name: missing_sections(name, thing) for name, thing in public_objects().items()}
    assert len(found) > 300
    assert not {name: missing for name, missing in found.items() if missing}


def public_members(thing: type) -> dict[str, Any]:
    """Return the methods and properties of a class that the package defines."""
    found = {name: inspect.getattr_static(thing, name) for name in dir(thing) if not name.startswith("_")}
    return {
        name: each
        for name, each in found.items()
        if isinstance(each, property | cached_property)
        or getattr(getattr(thing, name), "__module__", "").startswith("calibrant")
    }


def public_methods() -> dict[str, Any]:
    """Return the methods that the package defines for public classes, and their calls, by full name, each once."""
    found: dict[Any, tuple[str, Any]] = {}
    for name, thing in public_objects().items():
        for member in [*public_members(thing), "__call__"] if inspect.isclass(thing) else []:
            method = getattr(thing, member, None)
            function = inspect.unwrap(getattr(method, "__func__", method))  # of a class method
            if inspect.isfunction(function) and function.__module__.startswith("calibrant"):
                found.setdefault(function.__code__, (f"{name}.{member}", method))
    return dict(found.values())


def missing_method_sections(name: str, method: Any) -> list[str]:
    """Return what a method lacks: a docstring, a summary, the description of a parameter, or that of the result."""
    from numpydoc.docscrape import NumpyDocString
    from numpydoc.validate import validate

    text = inspect.getdoc(method)
    if not text:
        return ["GL08"]
    sections, signature = NumpyDocString(text), inspect.signature(method)
    codes = {code for code, _ in validate(name)["errors"]} if method.__doc__ else set()  # else of a base class
    codes &= {"SS01", "RT01", "YD01"} if has_row_options(method) else {"SS01", "PR01", "PR02", "RT01", "YD01"}
    if signature.return_annotation not in (None, inspect.Signature.empty) and not (
        sections["Returns"] or sections["Yields"]
    ):
        codes |= {"RT01"}  # numpydoc reads the body, which an abstract method does not have
    documented = documented_names(sections)
    wanted = set(signature.parameters) - {"self"} if "rows" in documented else argument_names(method)
    return sorted(codes) + sorted(wanted - documented)


def test_every_public_method_has_the_sections_of_numpydoc():
    for library in ("numpydoc", "sklearn", "matplotlib"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    # An evaluation calls these methods of its details; its own methods have the sections.
    of_details = {*vars(Details), *vars(LogOddsDetails), *vars(BoundedDetails)}
    found = {
        name: missing_method_sections(name, method)
        for name, method in public_methods().items()
        if not (name.split(".")[-2].endswith("Details") and name.split(".")[-1] in of_details)
    }
    assert len(found) > 450
    assert not {name: missing for name, missing in found.items() if missing}


def test_pages_of_functions_show_the_row_options(monkeypatch):
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    show = import_module("signatures").show_row_options
    hidden = "(y_true, y_prob=None, *, eps=5.96e-08, **rows)"
    assert show(None, "function", "", cb.metrics.slope_intercept, None, hidden, None)[0].endswith(
        "sample_weight=None, frequency=None, missing='raise', pos_label=None)"
    )
    assert show(None, "function", "", cb.ece, None, "(y_true)", None) == ("(y_true)", None)


def test_every_public_member_of_a_class_has_a_docstring():
    for library in ("sklearn", "matplotlib"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    texts = {
        f"{name}.{member}": inspect.getdoc(each) or inspect.getdoc(getattr(thing, member))
        for name, thing in public_objects().items()
        if inspect.isclass(thing)
        for member, each in public_members(thing).items()
    }
    assert len(texts) > 900
    assert not [name for name, text in texts.items() if not text]


def test_the_gallery_has_an_example_of_each_diagram():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert len(EXAMPLES) >= 20
    assert len(TUTORIALS) == 5
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES + TUTORIALS)
    drawn_by_methods = {
        "EvaluationDisplay": "result.plot()",
        "ComparisonDisplay": "comparison.plot()",
        "MonitorDisplay": "monitor.plot()",
        "SegmentDisplay": "found.plot()",
        "SegmentMapDisplay": "found.plot_map()",
    }
    displays = [name for name in cb.plots.__all__ if name.endswith("Display")]
    assert not [name for name in displays if drawn_by_methods.get(name, f"plots.{name}.") not in text]


def test_files_that_the_readme_links_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"(?:\]\(|src=\")([\w/.-]+)", text)
    linked = {*links, *re.findall(r"\bdocs/[\w/.-]+\.(?:rst|svg|csv)", text)}
    assert linked
    assert not [path for path in linked if not (ROOT / path).exists()]
