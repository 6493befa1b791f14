"""The reports of evaluations of any kind and of audits: self-contained HTML with escaped names."""

import json
import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.formatting import printable
from calibrant.kinds.base import kind_of
from calibrant.kinds.figures import PAGE_WIDTH, Drawing, Figures
from calibrant.plots import canvas
from calibrant.report.advice import EXAMPLE_ROWS, advice, joint_sentence, joint_tone, verdict_sentence, verdict_tone
from calibrant.report.tables import (
    difference_table,
    group_table,
    joint_metrics,
    metric_table,
    ranking_table,
    test_table,
    words_of,
)
from calibrant.report.templates import SafeText, inline_figure, render
from calibrant.results import sentences
from calibrant.results.audit import Audit, Segment
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.versions import __version__

_MOST_GROUPS = 20  # groups that a figure shows


def page(
    models: Mapping[str, Evaluation],
    *,
    comparison: Comparison | None = None,
    title: str = "Calibration report",
    inputs: list[dict[str, Any]] | None = None,
    audits: Mapping[str, Audit] | None = None,
    monitor: Mapping[str, Any] | None = None,
    commands: Mapping[str, str] | None = None,
) -> str:
    """Return the report of one or several evaluations as one HTML page; equal results give identical pages.

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
    monitor : mapping, optional
        Content of the section of a monitored model, of `calibrant.monitor.status`.
    commands : mapping of name to str, optional
        Of models that were read from files: the arguments of a command that name files, outcome and score.

    Returns
    -------
    str
        The page contains styles, script, diagrams and numbers. Its Content-Security-Policy allows a browser to fetch
        nothing and to run this script only.
    """
    if not models:
        raise InputError("models must have at least one evaluation; got an empty mapping.")
    rows, controls = commands or {}, sliders(models)
    sections = [_model(name, f"m{i}", e, rows.get(name, EXAMPLE_ROWS)) for i, (name, e) in enumerate(models.items())]
    specifications = {name: evaluation.settings.to_dict() for name, evaluation in models.items()}
    kinds = list({evaluation.kind: words_of(evaluation) for evaluation in models.values()}.values())
    return render(
        "page.html",
        title=title,
        version=__version__,
        headline=joint_sentence(models, comparison),
        tone=joint_tone(models, comparison),
        has_null_ranges=any(words.has_null_ranges for words in kinds),
        methods=[words.method for words in kinds if words.method],
        models=sections,
        overview=_all_models(models),
        comparison=_comparison(models, comparison),
        audits=audit_sections(audits or {}),
        monitor=monitor,
        sliders=controls,
        data=SafeText(script_data(controls)),
        inputs=inputs or [],
        specification=json.dumps(specifications, indent=1, ensure_ascii=False),
    )


def _model(name: str, key: str, e: Evaluation, rows: str) -> dict[str, Any]:
    words, figures = words_of(e), _figures_of(e)
    further = {"reasons": [], "bins": [], **figures.further(e)}
    return {
        "name": name,
        "key": key,
        "verdict": e.verdict,
        "tone": sentences.tone(e.verdict),
        "sentence": verdict_sentence(e),
        "sentence_tone": verdict_tone(e),
        "sizes": e.sizes_text(),
        "why": e.sentences(),
        "lead": _inline(figures.lead(e), key),
        "meaning": words.meaning(e),
        "actions": advice(e, key, rows),
        "metrics": metric_table(e),
        "tests": test_table(e),
        "reasons": [tuple(part.strip() for part in line.split(":", 1)) for line in e.reasons()],
        "bins": words.tables(e, key),
        "groups": group_table(e, key),
        "over_time": bool(e.groups) and all(map(is_time, e.groups)),
        "figures": {place: [_inline(d, key) for d in drawings] for place, drawings in further.items()},
        "group_figures": [_inline(drawing, key) for drawing in _group_drawings(e)],
        "notes": [note.text for note in e.notes],
    }


def _figures_of(e: Evaluation) -> Figures:
    figures: Figures = kind_of(e.kind).figures.FIGURES
    return figures


def _inline(drawing: Drawing, key: str) -> SafeText:
    return inline_figure(drawing.display, f"{key}-{drawing.name}", drawing.tips, drawing.stops)


def _all_models(models: Mapping[str, Evaluation]) -> SafeText | None:
    """Return one figure of several models of one kind, if the kind has one."""
    first = next(iter(models.values()))
    if len(models) == 1 or any(e.kind != first.kind for e in models.values()):
        return None
    drawing = _figures_of(first).all_models(models)
    return None if drawing is None else _inline(drawing, "all")


def _group_drawings(e: Evaluation) -> list[Drawing]:
    """Return the figures of groups: the size of the deviation and its direction, of the worst groups or over time."""
    if not e.groups:
        return []
    from calibrant.plots.group_metrics import GroupDisplay

    over_time = all(map(is_time, e.groups))
    most = None if over_time else _MOST_GROUPS
    height = 4.0 if over_time else 1.7 + 0.24 * min(len(e.groups), _MOST_GROUPS)
    drawings = []
    for name, metric in zip(("groups", "bias"), _figures_of(e).group_metrics(e), strict=False):
        place = canvas.new_canvas(PAGE_WIDTH, height)
        drawings.append(Drawing(name, GroupDisplay(e, metric, most).plot(along="x" if over_time else "y", fig=place)))
    return drawings


def is_time(name: object) -> bool:
    """Return whether the name of a group is a date or a time."""
    written = isinstance(name, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}(-[0-9]{2}.*)?", name) is not None
    return written or isinstance(name, (date, np.datetime64))


def _comparison(models: Mapping[str, Evaluation], comparison: Comparison | None) -> dict[str, Any] | None:
    """Return the differences that were tested, or the metrics of models that were evaluated separately."""
    if len(models) == 1:
        return None
    if comparison is None:
        text = (
            "Models are evaluated separately. cb.compare, or `calibrant compare`, tests differences on the same rows."
        )
        return {"tables": [joint_metrics(models)], "sentences": [], "notes": [text]}
    tables = (ranking_table(comparison), difference_table(comparison))
    return {
        "tables": [table for table in tables if table is not None],
        "sentences": list(comparison.reasons()),
        "notes": [comparison.sizes(), *(note.text for note in comparison.own_notes)],
    }


def sliders(models: Mapping[str, Evaluation]) -> dict[str, Any] | None:
    """Return TCE at other significance levels and costs at other ratios; None unless all evaluations have them."""
    sensitivities: list[Any] = [getattr(e.details, "sensitivity", None) for e in models.values()]
    if None in sensitivities:
        return None
    first, *others = sensitivities
    alphas = sorted(set(first.alphas).intersection(*(each.alphas for each in others)))
    named = zip(models, sensitivities, strict=True)
    return {
        "alphas": alphas,
        "alpha": min(alphas, key=lambda alpha: abs(alpha - first.alpha)),
        "ratios": list(first.ratios),
        "models": {name: _slider_values(f"m{i}", each, alphas) for i, (name, each) in enumerate(named)},
    }


def _slider_values(key: str, sensitivity: Any, alphas: list[float]) -> dict[str, Any]:
    """Return TCE, the rejected share of each bin at each level, and the cost at each ratio."""
    places = [sensitivity.alphas.index(alpha) for alpha in alphas]
    shares = 100 * sensitivity.rejected / sensitivity.n
    return {
        "key": key,
        "tce": [sensitivity.tce[i] for i in places],
        "rejected": [[round(float(share), 4) for share in shares[i]] for i in places],
        "costs": list(sensitivity.ecc),
    }


def script_data(controls: dict[str, Any] | None) -> str:
    """Return the data of the script as JSON without characters of markup."""
    data = None
    if controls is not None:
        models = {model["key"]: model for model in controls["models"].values()}
        data = {"alphas": controls["alphas"], "ratios": controls["ratios"], "models": models}
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


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
    rows, means = {"number of rows": evaluation.n_rows}, words_of(evaluation).means(evaluation)
    if means is None:
        return rows
    return {"kind": evaluation.kind, **rows, "mean forecast": means[0], "mean outcome": means[1]}


def _agree(one: Any, other: Any) -> bool:
    """Return whether two facts are equal up to the order of summation; unknown means agree with all."""
    if not isinstance(one, float):
        return bool(one == other)
    return math.isnan(one) or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-12)


def page_of_audits(audits: Mapping[str, Audit], *, title: str, inputs: list[dict[str, Any]] | None = None) -> str:
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
        shown = audit.plot(fig=canvas.new_canvas(8.2, 1.4 + 0.34 * len(audit.segments)))
        figures.append(inline_figure(shown, f"{key}-segments"))
        figures.append(inline_figure(audit.plot_map(fig=canvas.new_canvas(8.2, 4.4)), f"{key}-map"))
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
