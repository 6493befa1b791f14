"""Figures of one model in the report: the one of the first screen, and those below it.

All have about the width of a phone, so that one drawing is legible on a phone, on a screen and on paper.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from calibrant.kinds.binary.evaluation import rejection_breakdown
from calibrant.kinds.log_odds import NAME
from calibrant.metrics.gce import Breakdown
from calibrant.report.figures import bin_tips
from calibrant.report.model_tables import bin_rows, widest_coverage
from calibrant.report.templates import SafeText, inline_figure, new_canvas
from calibrant.report.verdict_sentences import groups_are_worse
from calibrant.results.evaluation import Evaluation

__all__ = ["all_models_figure", "figures", "lead_figure", "reliability_bins"]

_WIDE = 5.2  # inches; with text of 10 points about the width of a phone
_MOST_GROUPS = 20  # groups that the figure shows
_MOST_CLASSES = 11  # with the top label four rows of three panels


def reliability_bins(e: Evaluation) -> Breakdown | None:
    """Return the bins of the reliability diagram; None for kinds without one.

    Bins have equal size, or equal information where scores crowd an end of [0, 1]; of several classes the top label.
    """
    if e.kind == "binary":
        found: Breakdown = _details(e).reliability
        return found
    return e.breakdowns["top-label ACE"] if e.kind == "multiclass" else None


def lead_figure(e: Evaluation, bins: Breakdown | None, key: str) -> SafeText:
    """Return the figure of the first screen: a reliability diagram, or the diagram of the kind."""
    from calibrant import plots
    from calibrant.plots import overview

    level = e.settings.confidence_level
    if bins is not None:
        name, id_ = ("Top label", "top-label") if e.kind == "multiclass" else ("model", "model")
        canvas = new_canvas(_WIDE, 4.9)
        shown = plots.ReliabilityDisplay.from_breakdown(bins, confidence_level=level, name=name, fig=canvas)
        if e.kind == "multiclass":
            _name_top_label(shown)
        elif groups_are_worse(e):
            _mark_groups(shown, e)
        tips = bin_tips(bin_rows(bins, level), f"reliability-{id_}-bin-")
        return inline_figure(shown, f"{key}-reliability", tips, rf"reliability-{id_}-bin-\d+-point")
    makers = {"point": overview.bias_display, "distribution": overview.coverage_display}
    height = 4.9
    display: Any = plots.ProportionDisplay.of(e) if e.kind == "labels" else makers[e.kind](e)
    if e.kind == "labels":
        height = max(3.2, overview.shares_height(e))
    return inline_figure(display.plot(fig=new_canvas(_WIDE, height)), f"{key}-lead")


def _name_top_label(shown: Any) -> None:
    shown.ax_.set_ylabel("share of correct rows")
    shown.ax_sizes_.set_xlabel("highest probability of a row")


def _mark_groups(shown: Any, e: Evaluation) -> None:
    """Draw each miscalibrated group at its mean score and event rate, where all rows together do not show them."""
    from calibrant.plots._palette import REJECTED

    bad = [group for group in e.groups.values() if group.verdict == "miscalibrated"]
    at = [[getattr(group, name) for group in bad] for name in ("mean_score", "event_rate")]
    style: dict[str, Any] = {"ls": "", "marker": "D", "ms": 5, "color": REJECTED, "zorder": 5}
    (marks,) = shown.ax_.plot(*at, gid="reliability-groups", **style)
    first = shown.ax_.get_legend()
    handles = [*first.legend_handles, marks]
    texts = [*(text.get_text() for text in first.get_texts()), f"miscalibrated groups ({len(bad):,})"]
    shown.ax_.legend(
        handles, texts, ncols=2, frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1),
        borderaxespad=0.2, handlelength=1.6, columnspacing=1.4,
    ).set_in_layout(False)  # fmt: skip


def all_models_figure(models: Mapping[str, Evaluation]) -> SafeText | None:
    """Return one figure of all models, where their kind has one."""
    from calibrant import plots

    first = next(iter(models.values()))
    level, kind = first.settings.confidence_level, first.kind
    if kind in ("binary", "multiclass") and len({e.kind for e in models.values()}) == 1:
        name = "ACE" if kind == "binary" else "top-label ACE"
        breakdowns = {name_: e.breakdowns[name] for name_, e in models.items()}
        shown: Any = plots.ReliabilityDisplay.from_breakdown(
            breakdowns, confidence_level=level, fig=new_canvas(_WIDE, 5.2)
        )
        if kind == "multiclass":
            _name_top_label(shown)
        return inline_figure(shown, "all-reliability")
    if all(e.kind == "distribution" for e in models.values()):
        values: dict[str, Any] = {name: _details(e).pit for name, e in models.items()}
        shown = plots.CoverageDisplay(values, level).plot(fig=new_canvas(_WIDE, 4.9))
        return inline_figure(shown, "all-coverage")
    return None


def _details(e: Evaluation) -> Any:
    return e.details


def figures(e: Evaluation, key: str) -> dict[str, SafeText]:
    """Return the further figures of a model by name; ``bins`` and ``groups`` stand beside their tables."""
    from calibrant.plots import overview

    if e.kind == "binary":
        found = _binary_figures(e, key)
    elif e.kind == "distribution":
        found = {
            "pit": inline_figure(overview.pit_display(e).plot(fig=new_canvas(_WIDE, 3.6)), f"{key}-pit"),
            "bins": inline_figure(overview.bias_display(e).plot(fig=new_canvas(_WIDE, 4.6)), f"{key}-bias"),
        }
    elif e.kind == "multiclass":
        found = _class_figures(e, key)
    else:
        found = {}
    return found | _group_figures(e, key)


def _binary_figures(e: Evaluation, key: str) -> dict[str, SafeText]:
    from calibrant import plots
    from calibrant.plots import overview

    tips = bin_tips(bin_rows(rejection_breakdown(e)[0], e.settings.confidence_level), "test-based-bin-")
    display: Any = overview.tce_display(e).plot(fig=new_canvas(_WIDE, 4.9))
    found = {"bins": inline_figure(display, f"{key}-tested", tips, r"test-based-bin-\d+-rate")}
    display = overview.cumulative_display(e).plot(fig=new_canvas(_WIDE, 3.4))
    found["cumulative"] = inline_figure(display, f"{key}-cumulative")
    shown = overview.metric_with_null(e)
    if shown is not None:
        display = plots.NullDisplay.from_null(shown.null, fig=new_canvas(_WIDE, 3.4))
        found["null"] = inline_figure(display, f"{key}-null")
    return found


def _class_figures(e: Evaluation, key: str) -> dict[str, SafeText]:
    """Return the panels of classes, and the class proportions."""
    from calibrant import plots
    from calibrant.plots import overview

    classes = plots.ClasswiseDisplay.of(e, most=_MOST_CLASSES)
    classes.plot(fig=new_canvas(_WIDE, classes.height(3, _WIDE)), columns=3)
    shares = plots.ProportionDisplay.of(e).plot(fig=new_canvas(_WIDE, max(3.0, overview.shares_height(e))))
    return {
        "bins": inline_figure(classes, f"{key}-classes"),
        "proportions": inline_figure(shares, f"{key}-proportions"),
    }


def _group_figures(e: Evaluation, key: str) -> dict[str, SafeText]:
    """Return the figures of groups: the size of the deviation and its direction, of the worst groups or over time."""
    from calibrant import plots

    if not e.groups:
        return {}
    over_time = all(map(is_time, e.groups))
    metric = "ACE" if "ACE" in e.metrics else NAME if e.kind == "binary" else next(iter(e.metrics))
    shown = {"groups": widest_coverage(e) or metric}
    signed = "mean error" if e.kind == "distribution" else "bias"
    if signed in e.metrics and shown["groups"] != signed:
        shown["bias"] = signed
    found = {}
    for name, drawn in shown.items():
        most = None if over_time else _MOST_GROUPS
        height = 4.0 if over_time else 1.7 + 0.24 * min(len(e.groups), _MOST_GROUPS)
        display = plots.GroupDisplay(e, drawn, most).plot(
            along="x" if over_time else "y", fig=new_canvas(_WIDE, height)
        )
        found[name] = inline_figure(display, f"{key}-{name}")
    return found


def is_time(name: object) -> bool:
    """Return whether the name of a group is a date or a time."""
    written = isinstance(name, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}(-[0-9]{2}.*)?", name) is not None
    return written or isinstance(name, (date, np.datetime64))
