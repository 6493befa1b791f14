"""The report of audits: segments as a forest plot, a map and a table, with their rules as SQL."""

from collections.abc import Mapping
from typing import Any

from calibrant._support.errors import InputError
from calibrant._support.text_tables import printable
from calibrant.evaluation.audit.result import Audit, Segment
from calibrant.report.templates import inline_figure, new_canvas, render
from calibrant.versions import __version__

__all__ = ["audit_page", "audit_sections"]


def audit_page(audits: Mapping[str, Audit], *, title: str, inputs: list[dict[str, Any]] | None = None) -> str:
    """Return the report of audits as one HTML page; equal results give identical pages."""
    found = any(audit.segments for audit in audits.values())
    first = next(iter(audits.values()))
    headline = first.verdict if len(audits) == 1 else _headline(audits)
    return render(
        "audit_page.html",
        title=title,
        version=__version__,
        tone="bad" if found else "open",
        headline=headline[:1].upper() + headline[1:],
        audits=audit_sections(audits),
        inputs=inputs or [],
    )


def _headline(audits: Mapping[str, Audit]) -> str:
    count = sum(bool(audit.segments) for audit in audits.values())
    return f"{count} of {len(audits)} forecasts have miscalibrated segments"


def audit_sections(audits: Mapping[str, Audit]) -> list[dict[str, Any]]:
    """Return what the sections of audits show; names are printable text."""
    return [_section(name, f"a{i}", audit, len(audits) > 1) for i, (name, audit) in enumerate(audits.items())]


def _section(name: str, key: str, audit: Audit, several: bool) -> dict[str, Any]:
    figures = []
    if audit.segments:
        shown = audit.plot(fig=new_canvas(8.2, 1.4 + 0.34 * len(audit.segments)))
        figures.append(inline_figure(shown, f"{key}-segments"))
        figures.append(inline_figure(audit.plot_map(fig=new_canvas(8.2, 4.4)), f"{key}-map"))
    return {
        "name": printable(name) if several else "",
        "key": key,
        "verdict": audit.verdict,
        "tone": "bad" if audit.segments else "open",
        "sentences": [printable(sentence) for sentence in audit.sentences()],
        "figures": figures,
        "cells": [[printable(cell) for cell in row] for row in audit.cells()],
        "overlaps": [printable(line.strip()) for line in audit.overlap_lines()],
        "sql": [printable(_sql(segment)) for segment in audit.segments],
        "notes": [printable(note.text) for note in audit.notes],
        "alpha": f"{100 * audit.alpha:g} %",
    }


def _sql(segment: Segment) -> str:
    try:
        return segment.to_sql()
    except InputError as error:  # a category that SQL has no literal for
        return f"-- {error}"
