"""Show the settings of a class as its signature, also where a base class defines ``__new__(cls, *args, **options)``."""

import inspect
from typing import Any

from sphinx.application import Sphinx


def show_settings(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Return the signature of the constructor, as Python reports it, without types; () without settings."""
    if what not in ("class", "exception") or signature != "(*args, **options)":
        return signature, returns
    found = inspect.signature(thing)
    free = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values() if each.kind not in free]
    return str(found.replace(parameters=plain, return_annotation=found.empty)), returns


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the function to autodoc."""
    app.connect("autodoc-process-signature", show_settings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
