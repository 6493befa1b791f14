"""Diagrams of predictive distributions."""

from collections.abc import Mapping
from typing import Any

from calibrant.kinds.distribution.words import widest_coverage
from calibrant.kinds.point.figures import bias, group_metric, height
from calibrant.plots.display import ComparedModels, Drawing, display_names, on_page
from calibrant.plots.pit_diagrams import CoverageDisplay, PITDisplay, default_bars
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

__all__ = ["all_models", "draw_models", "draw_panels", "further", "group_metric", "group_metrics", "height", "lead"]


def draw_panels(e: Evaluation, figure: Any, outer: Any) -> dict[str, Any]:
    """Draw the panels of an evaluation in the first row of a grid of two columns; return them by name."""
    right = outer[0, 1].subgridspec(2, 1, height_ratios=[1, 1.4])
    places = {"bias": outer[0, 0], "pit": right[0, 0], "coverage": right[1, 0]}
    displays = {"bias": bias(e), "pit": pit(e), "coverage": coverage(e)}
    return {name: displays[name].plot(ax=figure.add_subplot(place)) for name, place in places.items()}


def draw_models(c: Comparison, figure: Any, outer: Any, height: float) -> ComparedModels:
    """Draw all models of a comparison in a grid of two columns; `height` is that of the differences."""
    joint = coverage_of(c.models).plot(fig=figure.add_subfigure(outer[0, 0]))
    place = outer[0, 1].subgridspec(2, 1, height_ratios=[height, 1])[0, 0]
    return ComparedModels(figure.add_subplot(place), {"coverage": joint})


def lead(e: Evaluation) -> Drawing:
    """Return the figure of the first screen of a report: the coverage of central intervals."""
    return on_page("lead", coverage(e), 4.9)


def further(e: Evaluation) -> dict[str, list[Drawing]]:
    """Return the further figures of a report: those beside the reasons for the verdict, and beside the bins."""
    return {"reasons": [on_page("pit", pit(e), 3.6)], "bins": [on_page("bias", bias(e), 4.6)]}


def group_metrics(e: Evaluation) -> list[str]:
    """Return the metrics of the groups in a report: the coverage of the widest intervals, and the mean error."""
    size = widest_coverage(e) or next(iter(e.metrics))
    return [size, *(["mean error"] if "mean error" in e.metrics and size != "mean error" else [])]


def all_models(models: Mapping[str, Evaluation]) -> Drawing | None:
    """Return one figure of all models of a report."""
    return on_page("coverage", coverage_of(models), 4.9)


def pit(e: Evaluation) -> PITDisplay:
    """Return the histogram of the PIT values, not yet drawn."""
    details: Any = e.details
    test = e.tests["Anderson-Darling"]
    return PITDisplay(details.pit, default_bars(details.pit.size), test, e.settings.confidence_level)


def coverage(e: Evaluation) -> CoverageDisplay:
    """Return the coverage curve, not yet drawn."""
    details: Any = e.details
    central: Any = e.breakdowns.get("coverage")
    stated = any(note.code == "levels" for note in e.notes) and central is not None
    levels = tuple(float(level) for level in central.per_level["level"]) if stated else ()
    return CoverageDisplay({"forecast": details.pit}, e.settings.confidence_level, levels)


def coverage_of(models: Mapping[str, Evaluation]) -> CoverageDisplay:
    """Return the coverage curves of several models, not yet drawn."""
    details: list[Any] = [e.details for e in models.values()]
    values = {name: d.pit for name, d in zip(display_names(models), details, strict=True)}
    return CoverageDisplay(values, next(iter(models.values())).settings.confidence_level)
