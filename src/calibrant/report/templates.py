"""Templates of the report: HTML with inline styles, script and figures, and a Content-Security-Policy."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

from calibrant._support.errors import MissingExtraError
from calibrant.plots.canvas import EVENT, MODELS
from calibrant.plots.display import Display, svg

_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_INK, _PAPER = "#000000", "#ffffff"
_NOT_TEXT_FAMILY = ("font-family",)  # the page sets it
_THEME = {_INK: "var(--ink)", _PAPER: "var(--paper)", EVENT.lower(): "var(--event)", MODELS[0].lower(): "var(--model)"}


class SafeText(str):
    """HTML that needs no escaping."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def render(template: str, **values: Any) -> str:
    """Render a template with the style, the script and their Content-Security-Policy."""
    style, script = asset("style.css"), asset("script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return render_served(template, policy=policy, style=SafeText(style), script=SafeText(script), **values)


def render_served(template: str, **values: Any) -> str:
    """Render a template of a page that a server sends, with links to style and script."""
    page = str(_environment().get_template(template).render(**values))
    return page.encode("utf-8", "backslashreplace").decode()  # Names may hold lone surrogates.


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise MissingExtraError("The report needs Jinja2", "report", name="jinja2") from error

    return Environment(
        loader=FunctionLoader(asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def asset(name: str) -> str:
    """Return a template, style sheet or script of the package."""
    return files("calibrant.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def inline_figure(display: Display, prefix: str, tips: Mapping[str, str] | None = None, stops: str = "") -> SafeText:
    """Return a drawn display as SVG for inlining in the page.

    Colours follow the theme of the page. No element has a style attribute, so that the Content-Security-Policy of the
    page needs no exception. Each shape of a bin has a text for mouse, keyboard and screen reader.

    Parameters
    ----------
    display : Display
    prefix : str
        For ids, which must be unique in the page.
    tips : mapping, optional
        Texts of shapes by the prefix of their id: ``{"test-based-bin-0": "..."}``.
    stops : str
        Pattern of the ids that receive keyboard focus, one per bin.
    """
    root = ElementTree.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", svg(display)).encode())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("metadata") or child.tag == f"{_SVG}style":
                parent.remove(child)
    for element in root.iter():
        _remove_namespace(element)
        _prefix_ids(element, prefix)
        _split_style(element)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"class": "diagram", "role": "group", "aria-label": display.alt_text(), "stroke-linejoin": "round"}
    _explain(root, prefix, tips or {}, stops)
    return SafeText(ElementTree.tostring(root, encoding="unicode", short_empty_elements=True))


def _remove_namespace(element: ElementTree.Element) -> None:
    """Remove the namespace of an SVG element, which HTML does not need."""
    element.tag = element.tag.removeprefix(_SVG)
    link = element.attrib.pop(_LINK, None)
    if link is not None:
        element.set("href", link)


def _prefix_ids(element: ElementTree.Element, prefix: str) -> None:
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name == "href" and value.startswith("#"):
            element.set(name, f"#{prefix}-{value[1:]}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{prefix}-"))


def _split_style(element: ElementTree.Element) -> None:
    """Turn the properties of the style attribute into separate attributes."""
    for declaration in element.attrib.pop("style", "").split(";"):
        name, _, value = declaration.partition(":")
        if value.strip() and name.strip() not in _NOT_TEXT_FAMILY:
            element.set(name.strip(), _theme_colour(value.strip()))


def _theme_colour(value: str) -> str:
    """Return a colour of the drawing as one of the page, where a dark page needs a lighter one."""
    if value in _THEME:
        return _THEME[value]
    grey = re.fullmatch(r"#([0-9a-f]{2})\1\1", value)
    if grey is None:
        return value
    level = int(grey.group(1), 16)
    return "var(--soft)" if level < 0x70 else "var(--middle)" if level < 0xC0 else "var(--faint)"


def _explain(root: ElementTree.Element, prefix: str, tips: Mapping[str, str], stops: str) -> None:
    """Add texts to the shapes of bins."""
    known, first = sorted(tips, key=len, reverse=True), True
    for element in root.iter():
        own = element.get("id", "").removeprefix(f"{prefix}-")
        match = next((name for name in known if own == name or own.startswith(f"{name}-")), None)
        if match is None:
            continue
        element.set("data-tip", tips[match])
        if re.fullmatch(stops, own):  # Tab stops once per diagram; arrow keys move between bins
            element.attrib |= {"tabindex": "0" if first else "-1", "role": "img", "aria-label": tips[match]}
            first = False
