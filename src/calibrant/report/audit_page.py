"""The report of audits: segments as a forest plot, a map and a table, with their rules as SQL."""

import math
from collections.abc import Mapping
from typing import Any

from calibrant._support.errors import InputError
from calibrant._support.formatting import printable
from calibrant.plots.canvas import new_canvas
from calibrant.report.tables import words_of
from calibrant.report.templates import inline_figure, render
from calibrant.results.audit import Audit, Segment
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import n_rows
from calibrant.versions import __version__


def check_same_rows(evaluation: Evaluation, audit: Any) -> Audit:
    """Return the audit if it can be of the rows and the forecast of an evaluation: kind, number of rows and means."""
    if not isinstance(audit, Audit):
        raise InputError(
            f"audit must be an Audit; got {type(audit).__name__}.",
            hint="Pass the result of cb.audit(y, forecast, features).",
        )
    facts = {"kind": audit.kind, "number of rows": audit.n_rows}
    facts |= {"mean forecast": audit.predicted, "mean outcome": audit.observed}
    expected = _facts(evaluation)
    differing = [name for name in expected if not _agree(facts[name], expected[name])]
    if differing:
        different = "; ".join(f"{name}: {facts[name]} in the audit, {expected[name]} here" for name in differing)
        raise InputError(
            f"audit must be of the same rows and the same forecast as the evaluation; got another {different}.",
            hint="Audit the rows that were evaluated, with the same forecast, weights and missing=.",
        )
    return audit


def _facts(evaluation: Evaluation) -> dict[str, Any]:
    """Return what an audit of the same rows must have; kinds without residuals are audited in another form."""
    rows, means = {"number of rows": n_rows(evaluation.table)}, words_of(evaluation).means(evaluation)
    if means is None:
        return rows
    return {"kind": evaluation.kind, **rows, "mean forecast": means[0], "mean outcome": means[1]}


def _agree(one: Any, other: Any) -> bool:
    """Return whether two facts are equal up to the order of summation; unknown means agree with all."""
    if not isinstance(one, float):
        return bool(one == other)
    return math.isnan(one) or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)


def audit_page(audits: Mapping[str, Audit], *, title: str, inputs: list[dict[str, Any]] | None = None) -> str:
    """Return the report of audits as one HTML page; equal results give identical pages."""
    first = next(iter(audits.values()))
    count = sum(bool(audit.segments) for audit in audits.values())
    several = f"{count} of {len(audits)} forecasts have miscalibrated segments"
    headline = first.verdict if len(audits) == 1 else several
    return render(
        "audit_page.html",
        title=title,
        version=__version__,
        tone="bad" if count else "open",
        headline=headline[:1].upper() + headline[1:],
        audits=audit_sections(audits),
        inputs=inputs or [],
    )


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
