"""The report of evaluations of any kind: verdict, metrics, tests, groups and figures, without sliders."""

import json
from collections.abc import Mapping
from typing import Any

from calibrant._support.formatting import format_pvalue
from calibrant.evaluation import sentences
from calibrant.evaluation.audit.result import Audit
from calibrant.evaluation.comparison_result import Comparison
from calibrant.evaluation.results import Evaluation
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.report.audit_page import audit_sections
from calibrant.report.class_tables import class_tables
from calibrant.report.templates import SafeText, inline_figure, new_canvas, render
from calibrant.versions import __version__

__all__ = ["plain_page"]


def plain_page(
    models: Mapping[str, Evaluation],
    *,
    comparison: Comparison | None = None,
    title: str = "Calibration report",
    inputs: list[dict[str, Any]] | None = None,
    audits: Mapping[str, Audit] | None = None,
) -> str:
    """Return the report of evaluations of any kind as one HTML page; equal results give identical pages.

    Parameters
    ----------
    models : mapping of name to Evaluation
    comparison : Comparison, optional
        Comparison of the same models on the same rows.
    title : str
    inputs : list of dict, optional
        ``file``, ``bytes`` and ``sha256`` of each input file.
    audits : mapping of name to Audit, optional
        Audits of the same forecasts.
    """
    shown = [_model(name, f"m{i}", evaluation) for i, (name, evaluation) in enumerate(models.items())]
    worst = min(models.values(), key=lambda e: sentences.severity(e.verdict))
    specifications = {name: evaluation.settings.to_dict() for name, evaluation in models.items()}
    return render(
        "plain_page.html",
        title=title,
        version=__version__,
        tone=sentences.tone(worst.verdict),
        models=shown,
        audits=audit_sections(audits or {}),
        comparison=None if comparison is None else _comparison(comparison),
        inputs=inputs or [],
        specification=json.dumps(specifications, indent=1, ensure_ascii=False),
    )


def _comparison(c: Comparison) -> dict[str, Any]:
    return {
        "verdict": f"{c.verdict}.",
        "sizes": c.sizes(),
        "cells": c.cells(),
        "reasons": list(c.reasons()),
        "notes": [note.text for note in c.own_notes],
    }


def _model(name: str, key: str, e: Evaluation) -> dict[str, Any]:
    groups = e.group_table()
    return {
        "name": name,
        "key": key,
        "verdict": e.verdict,
        "tone": sentences.tone(e.verdict),
        "headline": e.headline(),
        "why": " ".join(e.sentences()),
        "sizes": e.sizes_text(),
        "metrics": e.cells(),
        "tests": [["test", "statistic", "p-value", "adjusted p"], *map(_test, e.tests.values())],
        "reasons": [tuple(part.strip() for part in line.split(":", 1)) for line in e.reasons()],
        "tables": class_tables(e),
        "groups": None if groups is None else {"heading": groups.heading, "cells": groups.cells},
        "notes": [note.text for note in e.notes],
        "figures": _figures(e, key),
    }


def _test(test: TestResult) -> list[str]:
    adjusted = test.adjusted_pvalue
    return [
        test.name,
        f"{test.statistic:.4g}",
        format_pvalue(test.pvalue),
        "" if adjusted is None else format_pvalue(adjusted),
    ]


def _figures(e: Evaluation, key: str) -> list[SafeText]:
    """Return the diagrams of the kind, and one of the groups."""
    from calibrant import plots

    found = [
        inline_figure(display.plot(fig=new_canvas(*size)), f"{key}-{name}")
        for name, display, size in _displays(e, e.kind)
    ]
    if e.groups:
        metric = next(iter(e.metrics))
        wide = min(11.0, max(6.0, 1.6 + 0.42 * len(e.groups)))
        display = plots.GroupDisplay.from_evaluation(e, metric=metric, along="x", fig=new_canvas(wide, 4.2))
        found.append(inline_figure(display, f"{key}-groups"))
    return found


def _displays(e: Evaluation, kind: str) -> list[tuple[str, Any, tuple[float, float]]]:
    """Return the name, the display (not yet drawn) and the size in inches of each diagram of the kind."""
    from calibrant import plots
    from calibrant.plots import overview

    usual = (6.4, 5.2)
    if kind == "binary":
        return [("cumulative", overview.cumulative_display(e), usual)]
    if kind == "point":
        return [("bias", overview.bias_display(e), usual)]
    if kind == "distribution":
        makers = {
            "bias": overview.bias_display,
            "pit": overview.pit_display,
            "coverage": overview.coverage_display,
        }
        return [(name, make(e), usual) for name, make in makers.items()]
    shares = ("proportions", plots.ProportionDisplay.of(e), (8.4, max(3.0, overview.shares_height(e))))
    if kind == "labels":
        return [shares]
    return [("classes", plots.ClasswiseDisplay.of(e), (9.0, 0.85 * overview.classwise_height(e))), shares]
