"""Diagrams of predicted probabilities."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.kinds import log_odds
from calibrant.kinds.binary.evaluation import rejection_breakdown
from calibrant.kinds.binary.words import bin_rows
from calibrant.kinds.figures import PAGE_WIDTH, ComparedModels, Drawing, Figures, on_page
from calibrant.metrics.gce import Breakdown
from calibrant.plots import canvas
from calibrant.plots.brier_decomposition import DecompositionDisplay, ModelDecomposition
from calibrant.plots.cumulative_differences import CumulativeDisplay
from calibrant.plots.display import display_names
from calibrant.plots.null_distribution import NullDisplay
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.plots.tce_reliability import TestBasedReliabilityDisplay
from calibrant.results import sentences
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.results.uncertainty import MetricResult


class BinaryFigures(Figures):
    """Diagrams of predicted probabilities."""

    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        right = grid[0, 1].subgridspec(2, 1)
        panels: dict[str, Any] = {"reliability": tested(e).plot_panels(figure.add_subplot(grid[0, 0]))}
        metric = metric_with_null(e)
        if metric is not None:
            panels["null"] = NullDisplay(metric.null).plot(ax=figure.add_subplot(right[0, 0]))
        return {**panels, "cumulative": cumulative(e).plot(ax=figure.add_subplot(right[1, 0]))}

    def group_metric(self, e: Evaluation) -> str:
        metric = metric_with_null(e)
        return log_odds.NAME if metric is None else metric.name

    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        right = grid[0, 1].subgridspec(2, 1, height_ratios=[height, 2])
        panels = {"reliability": reliability_of(c.models, "ACE", fig=figure.add_subfigure(grid[0, 0]))}
        differences = figure.add_subplot(right[0, 0])
        details: list[Any] = [e.details for e in c.models.values()]
        parts = {
            name: ModelDecomposition(d.decomposition) for name, d in zip(display_names(c.models), details, strict=True)
        }
        decomposition = DecompositionDisplay(parts).plot(ax=figure.add_subplot(right[1, 0]))
        return ComparedModels(differences, {**panels, "decomposition": decomposition})

    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report: the reliability diagram, with miscalibrated groups."""
        details: Any = e.details
        drawing = reliability(e, details.reliability, "model")
        if sentences.groups_are_worse(e):
            _mark_groups(drawing.display, e)
        return drawing

    def further(self, e: Evaluation) -> dict[str, list[Drawing]]:
        tips = bin_tips(rejection_breakdown(e)[0], e.settings.confidence_level, "test-based-bin-")
        bins = on_page("tested", tested(e), 4.9, tips=tips, stops=r"test-based-bin-\d+-rate")
        metric = metric_with_null(e)
        null = [] if metric is None else [on_page("null", NullDisplay(metric.null), 3.4)]
        return {"reasons": [*null, on_page("cumulative", cumulative(e), 3.4)], "bins": [bins]}

    def group_metrics(self, e: Evaluation) -> list[str]:
        size = "ACE" if "ACE" in e.metrics else log_odds.NAME
        return [size, *(["bias"] if "bias" in e.metrics and size != "bias" else [])]

    def all_models(self, models: Mapping[str, Evaluation]) -> Drawing | None:
        return Drawing("reliability", reliability_of(models, "ACE", fig=canvas.new_canvas(PAGE_WIDTH, 5.2)))


FIGURES = BinaryFigures()


def tested(e: Evaluation) -> TestBasedReliabilityDisplay:
    """Return the test-based reliability diagram, not yet drawn."""
    details: Any = e.details
    breakdown, null = rejection_breakdown(e)
    level = e.settings.confidence_level
    return TestBasedReliabilityDisplay(breakdown, null, level, profile=details.rejection_profile)


def cumulative(e: Evaluation) -> CumulativeDisplay:
    """Return the cumulative differences, not yet drawn."""
    details: Any = e.details
    table: Any = e.table
    c = details.cumulative
    return CumulativeDisplay(table, c.band, c.test, c.ecce)


def metric_with_null(e: Evaluation) -> MetricResult | None:
    """Return the metric whose null is drawn: ACE, or the first with replicates; the log-odds error has none."""
    drawable = {name: m for name, m in e.metrics.items() if np.isfinite(m.null.replicates).any()}
    return drawable.get("ACE", next(iter(drawable.values()), None))


def reliability_of(models: Mapping[str, Evaluation], breakdown: str, *, fig: Any) -> ReliabilityDisplay:
    """Draw the reliability diagram of several models, from a breakdown that each has."""
    level = next(iter(models.values())).settings.confidence_level
    breakdowns = {name: e.breakdowns[breakdown] for name, e in models.items()}
    return ReliabilityDisplay.from_breakdown(breakdowns, confidence_level=level, fig=fig)


def reliability(e: Evaluation, bins: Breakdown, name: str) -> Drawing:
    """Return the reliability diagram of a report, whose bins have tips."""
    level, place = e.settings.confidence_level, canvas.new_canvas(PAGE_WIDTH, 4.9)
    display = ReliabilityDisplay.from_breakdown(bins, confidence_level=level, name=name, fig=place)
    id_ = f"reliability-{name.lower().replace(' ', '-')}-bin-"
    return Drawing("reliability", display, bin_tips(bins, level, id_), rf"{id_}\d+-point")


def bin_tips(breakdown: Breakdown, level: float, name: str) -> dict[str, str]:
    """Return the numbers of each bin as text, by the prefix of its id."""
    return {f"{name}{i}": _bin_text(row) for i, row in enumerate(bin_rows(breakdown, level))}


def _bin_text(row: Mapping[str, Any]) -> str:
    rejected = "" if row.get("rejected") is None else f"; {100 * row['rejected'] / row['n']:.3g} % of rows rejected"
    return (
        f"scores {row['lower']:.4g} to {row['upper']:.4g}: {row['n']:,.6g} rows, {row['k']:,.6g} events; "
        f"observed {100 * row['rate']:.4g} % ({100 * row['low']:.4g} to {100 * row['high']:.4g} %); "
        f"predicted {100 * row['mean_score']:.4g} % on average{rejected}"
    )


def _mark_groups(display: Any, e: Evaluation) -> None:
    """Draw each miscalibrated group at its mean score and event rate, where all rows together do not show them."""
    bad = [group for group in e.groups.values() if group.verdict == "miscalibrated"]
    at = [[getattr(group, name) for group in bad] for name in ("mean_score", "event_rate")]
    style: dict[str, Any] = {"ls": "", "marker": "D", "ms": 5, "color": canvas.REJECTED, "zorder": 5}
    (marks,) = display.ax_.plot(*at, gid="reliability-groups", **style)
    first = display.ax_.get_legend()
    texts = [*(text.get_text() for text in first.get_texts()), f"miscalibrated groups ({len(bad):,})"]
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "ncols": 2}
    look: dict[str, Any] = {"frameon": False, "fontsize": "small", "handlelength": 1.6, "columnspacing": 1.4}
    display.ax_.legend([*first.legend_handles, marks], texts, **place, **look).set_in_layout(False)
