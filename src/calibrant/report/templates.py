"""Templates of the report: HTML with inline styles, script and figures, and a Content-Security-Policy."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from calibrant._support.errors import MissingExtraError
from calibrant.report.figures import inline

__all__ = ["SafeText", "asset", "inline_figure", "new_canvas", "render", "render_served"]


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
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    try:
        from jinja2 import BaseLoader, Environment, StrictUndefined
    except ModuleNotFoundError as error:
        raise MissingExtraError("The report needs Jinja2", "report", name="jinja2") from error

    class Assets(BaseLoader):
        """Templates of the installed package."""

        def get_source(self, environment: Any, template: str) -> Any:
            return asset(template), None, lambda: True

    return Environment(
        loader=Assets(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def asset(name: str) -> str:
    """Return a template, style sheet or script of the package."""
    return files("calibrant.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def new_canvas(width: float, height: float) -> Any:
    """Return a new figure of the given size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def inline_figure(display: Any, prefix: str, tips: Mapping[str, str] | None = None, stops: str = "") -> SafeText:
    """Return a drawn display as SVG for inlining in the page."""
    from calibrant import plots

    return SafeText(inline(plots.svg(display), prefix=prefix, alt=display.alt_text(), tips=tips or {}, stops=stops))
