"""The report of evaluations of any kind: self-contained HTML with escaped names."""

import json
from collections.abc import Mapping
from typing import Any

from calibrant._support.errors import InputError
from calibrant.report.advice import EXAMPLE_ROWS, advice
from calibrant.report.audit_page import audit_sections
from calibrant.report.meaning import meaning
from calibrant.report.model_figures import all_models_figure, figures, is_time, lead_figure, reliability_bins
from calibrant.report.model_tables import (
    bin_tables,
    difference_table,
    group_table,
    joint_metrics,
    metric_table,
    test_table,
)
from calibrant.report.sliders import script_data, sliders
from calibrant.report.templates import SafeText, render
from calibrant.report.verdict_sentences import joint_sentence, joint_tone, verdict_sentence, verdict_tone
from calibrant.results import sentences
from calibrant.results.audit import Audit
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.versions import __version__

__all__ = ["page"]


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
        raise InputError("models must have at least one evaluation; got an empty mapping.", argument="models")
    controls = sliders(models)
    rows = commands or {}
    shown = [_model(name, f"m{i}", e, rows.get(name, EXAMPLE_ROWS)) for i, (name, e) in enumerate(models.items())]
    specifications = {name: evaluation.settings.to_dict() for name, evaluation in models.items()}
    return render(
        "page.html",
        title=title,
        version=__version__,
        headline=joint_sentence(models, comparison),
        tone=joint_tone(models, comparison),
        kinds={evaluation.kind for evaluation in models.values()},
        models=shown,
        overview=all_models_figure(models) if len(models) > 1 else None,
        comparison=_comparison(models, comparison),
        audits=audit_sections(audits or {}),
        monitor=monitor,
        sliders=controls,
        data=SafeText(script_data(controls)),
        inputs=inputs or [],
        specification=json.dumps(specifications, indent=1, ensure_ascii=False),
    )


def _model(name: str, key: str, e: Evaluation, rows: str) -> dict[str, Any]:
    bins = reliability_bins(e)
    return {
        "name": name,
        "key": key,
        "verdict": e.verdict,
        "tone": sentences.tone(e.verdict),
        "sentence": verdict_sentence(e),
        "sentence_tone": verdict_tone(e),
        "sizes": e.sizes_text(),
        "why": e.sentences(),
        "lead": lead_figure(e, bins, key),
        "meaning": meaning(e, bins),
        "actions": advice(e, key, rows),
        "metrics": metric_table(e),
        "tests": test_table(e),
        "reasons": [tuple(part.strip() for part in line.split(":", 1)) for line in e.reasons()],
        "bins": bin_tables(e, key),
        "groups": group_table(e, key),
        "over_time": bool(e.groups) and all(map(is_time, e.groups)),
        "figures": figures(e, key),
        "notes": [note.text for note in e.notes],
    }


def _comparison(models: Mapping[str, Evaluation], comparison: Comparison | None) -> dict[str, Any] | None:
    """Return the differences that were tested, or the metrics of models that were evaluated separately."""
    if len(models) == 1:
        return None
    if comparison is None:
        text = (
            "Models are evaluated separately. cb.compare, or `calibrant compare`, tests differences on the same rows."
        )
        return {"table": joint_metrics(models), "sentences": [], "notes": [text]}
    return {
        "table": difference_table(comparison),
        "sentences": list(comparison.reasons()),
        "notes": [comparison.sizes(), *(note.text for note in comparison.own_notes)],
    }
