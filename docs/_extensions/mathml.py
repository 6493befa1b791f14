"""Math as MathML, which browsers draw themselves: no script, no font and no network."""

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def mathml(node: nodes.Element, *, as_block: bool) -> str:
    """Return a formula as MathML; docutils knows one of the two names of an ellipsis."""
    return latex2mathml.tex2mathml(node.astext().replace(r"\dots", r"\ldots"), as_block=as_block)


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own, which scrolls sideways where the page is narrow."""
    formula = mathml(node, as_block=True)
    writer.body.append(f'<div class="math-block">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; ``html_math_renderer = "mathml"`` chooses it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
