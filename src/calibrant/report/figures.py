"""Diagrams as SVG inside the page, with colours that follow the theme of the page.

No element has a style attribute, so that the Content-Security-Policy of the page needs no exception. Each shape of a
bin has a text for mouse, keyboard and screen reader.
"""

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from calibrant.plots._palette import EVENT, MODELS

__all__ = ["inline"]

_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_INK, _PAPER = "#000000", "#ffffff"
_NOT_TEXT_FAMILY = ("font-family",)  # the page sets it
_THEME = {
    _INK: "var(--ink)",
    _PAPER: "var(--paper)",
    EVENT.lower(): "var(--event)",
    MODELS[0].lower(): "var(--model)",
}


def inline(svg: str, *, prefix: str, alt: str, tips: Mapping[str, str], stops: str) -> str:
    """Return an SVG of `calibrant.plots.svg` for inlining in a page.

    Parameters
    ----------
    svg : str
    prefix : str
        For ids, which must be unique in the page.
    alt : str
        Description of the diagram.
    tips : mapping
        Texts of shapes by the prefix of their id: ``{"test-based-bin-0": "..."}``.
    stops : str
        Pattern of the ids that receive keyboard focus, one per bin.
    """
    root = ElementTree.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", svg).encode())
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
    root.attrib |= {"class": "diagram", "role": "group", "aria-label": alt, "stroke-linejoin": "round"}
    _explain(root, prefix, tips, stops)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


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


def bin_tips(rows: list[dict[str, Any]], name: str) -> dict[str, str]:
    """Return the text of each bin, by the prefix of its id."""
    return {f"{name}{i}": bin_text(row) for i, row in enumerate(rows)}


def bin_text(row: dict[str, Any]) -> str:
    """Return the numbers of a bin as text."""
    rejected = "" if row.get("rejected") is None else f"; {100 * row['rejected'] / row['n']:.3g} % of rows rejected"
    return (
        f"scores {row['lower']:.4g} to {row['upper']:.4g}: {row['n']:,.6g} rows, {row['k']:,.6g} events; "
        f"observed {100 * row['rate']:.4g} % ({100 * row['low']:.4g} to {100 * row['high']:.4g} %); "
        f"predicted {100 * row['mean_score']:.4g} % on average{rejected}"
    )
