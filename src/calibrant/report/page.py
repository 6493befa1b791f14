"""The report of evaluations of probabilities: self-contained HTML with escaped names."""

import json
from collections.abc import Mapping
from typing import Any

from calibrant.evaluation.audit.result import Audit
from calibrant.evaluation.binary import LOG_ODDS_ERROR
from calibrant.evaluation.comparison_result import Comparison
from calibrant.evaluation.results import Evaluation
from calibrant.report.audit_page import audit_sections
from calibrant.report.figures import bin_tips
from calibrant.report.summary import summarize
from calibrant.report.templates import SafeText, inline_figure, new_canvas, render

__all__ = ["page"]


def page(
    models: Mapping[str, Evaluation],
    *,
    comparison: Comparison | None = None,
    title: str = "Calibration report",
    inputs: list[dict[str, Any]] | None = None,
    audits: Mapping[str, Audit] | None = None,
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

    Returns
    -------
    str
        The page contains styles, script, diagrams and numbers. Its Content-Security-Policy allows a browser to fetch
        nothing and to run this script only.
    """
    summary = summarize(models, comparison=comparison, inputs=inputs)
    return render(
        "page.html",
        title=title,
        data=SafeText(_data(summary)),
        figures=_figures(models, summary),
        report=summary,
        audits=audit_sections(audits or {}),
        specification=json.dumps(
            {model["name"]: model["specification"] for model in summary["models"]}, indent=1, ensure_ascii=False
        ),
    )


def _data(summary: dict[str, Any]) -> str:
    """Return the data of the script as JSON without characters of markup."""
    models = {
        model["key"]: {
            "costs": model["costs"],
            "tested": {name: model["tested"][name] for name in ("alpha", "values", "rejected")},
        }
        for model in summary["models"]
    }
    wanted = {"alphas": summary["alphas"], "ratios": summary["ratios"], "models": models}
    text = json.dumps(wanted, allow_nan=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _figures(models: Mapping[str, Evaluation], summary: dict[str, Any]) -> dict[str, dict[str, SafeText]]:
    """Return the diagrams of each model, and one of all models together."""
    from calibrant import plots

    drawn = {
        model["key"]: _model_figures(evaluation, model)
        for evaluation, model in zip(models.values(), summary["models"], strict=True)
    }
    if len(models) > 1:
        level = next(iter(models.values())).settings.confidence_level
        breakdowns = {name: e.breakdowns["ACE"] for name, e in models.items()}
        both = plots.ReliabilityDisplay.from_breakdown(breakdowns, confidence_level=level, fig=new_canvas(7.6, 5.6))
        drawn["all"] = {"reliability": inline_figure(both, "all-reliability")}
    return drawn


def _model_figures(evaluation: Evaluation, model: dict[str, Any]) -> dict[str, SafeText]:
    from calibrant import plots
    from calibrant.plots.overview import cumulative_display, metric_with_null, tce_display

    key, level, own = model["key"], evaluation.settings.confidence_level, {}
    display: Any = tce_display(evaluation).plot(fig=new_canvas(7.6, 5.2))
    tips = bin_tips(model["tested"]["bins"], "test-based-bin-")
    own["tested"] = inline_figure(display, f"{key}-tested", tips, r"test-based-bin-\d+-rate")
    display = plots.ReliabilityDisplay.from_breakdown(
        evaluation.breakdowns["ACE"], confidence_level=level, fig=new_canvas(5.6, 5.2)
    )
    tips = bin_tips(model["bins"], "reliability-model-bin-")
    own["reliability"] = inline_figure(display, f"{key}-reliability", tips, r"reliability-model-bin-\d+-point")
    display = cumulative_display(evaluation).plot(fig=new_canvas(7.6, 3.8))
    own["cumulative"] = inline_figure(display, f"{key}-cumulative")
    shown = metric_with_null(evaluation)
    if shown is not None:
        display = plots.NullDisplay.from_null(shown.null, fig=new_canvas(5.6, 3.2))
        own["null"] = inline_figure(display, f"{key}-null")
    return own | _group_figures(evaluation, model)


def _group_figures(evaluation: Evaluation, model: dict[str, Any]) -> dict[str, SafeText]:
    """Return the diagrams of groups: one metric, and also the bias if groups are dates."""
    from calibrant import plots

    if not evaluation.groups:
        return {}
    shown = {"groups": "ACE" if "ACE" in evaluation.metrics else LOG_ODDS_ERROR}
    if model["groups"]["over_time"] and "bias" in model["groups"]["metrics"]:
        shown["bias"] = "bias"
    wide = min(11.0, max(6.0, 1.6 + 0.42 * len(evaluation.groups)))
    found = {}
    for name, metric in shown.items():
        display = plots.GroupDisplay.from_evaluation(evaluation, metric=metric, along="x", fig=new_canvas(wide, 4.2))
        found[name] = inline_figure(display, f"{model['key']}-{name}")
    return found
