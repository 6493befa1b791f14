"""Show the options for reading rows in signatures, in the place of ``**rows``."""

import inspect
from typing import Any, get_args

from sphinx.application import Sphinx


def show_row_options(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Return a signature that lists the keys of a typed dictionary as keyword arguments, without types."""
    if signature is None or "**rows)" not in signature:
        return signature, returns
    shown = list[inspect.Parameter]()
    for parameter in inspect.signature(thing).parameters.values():
        annotation = parameter.annotation
        if parameter.name == "rows" and isinstance(annotation, str):
            annotation = eval(annotation, inspect.unwrap(thing).__globals__)
        typed = get_args(annotation) if parameter.kind is parameter.VAR_KEYWORD else ()
        keys = typed[0].__annotations__ if typed else ()
        named = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=_default(key)) for key in keys]
        shown += named or [parameter.replace(annotation=parameter.empty)]
    return str(inspect.Signature([p for p in shown if p.name not in ("self", "cls")])), returns


def _default(key: str) -> str | None:
    return "raise" if key == "missing" else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the function to autodoc."""
    app.connect("autodoc-process-signature", show_row_options)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
