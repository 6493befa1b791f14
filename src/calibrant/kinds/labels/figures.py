"""Diagrams of predicted classes."""

from collections.abc import Mapping
from typing import Any

from calibrant.plots.class_diagrams import ProportionDisplay
from calibrant.plots.display import ComparedModels, Drawing, draw_each_model, on_page
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation


def height(e: Evaluation) -> float | None:
    """Return the height in inches of the panels of an evaluation."""
    return max(3.6, 0.4 + proportions(e).height())


def draw_panels(e: Evaluation, figure: Any, outer: Any) -> dict[str, Any]:
    """Draw the panels of an evaluation in the first row of a grid of two columns; return them by name."""
    return {"proportions": proportions(e).plot(ax=figure.add_subplot(outer[0, :]))}


def group_metric(e: Evaluation) -> str:
    """Return the metric of the groups in the figure of an evaluation."""
    return next(iter(e.metrics))


def draw_models(c: Comparison, figure: Any, outer: Any, height: float) -> ComparedModels:
    """Draw the models of a comparison beside each other; `height` is that of the differences."""
    return draw_each_model(c.models, proportions, figure, outer, height)


def lead(e: Evaluation) -> Drawing:
    """Return the figure of the first screen of a report: predicted and observed shares."""
    shares = proportions(e)
    return on_page("lead", shares, max(3.2, shares.height()))


def further(e: Evaluation) -> dict[str, list[Drawing]]:
    """Return the further figures of a report: none."""
    return {}


def group_metrics(e: Evaluation) -> list[str]:
    """Return the metrics of the groups in a report."""
    return [next(iter(e.metrics))]


def all_models(models: Mapping[str, Evaluation]) -> Drawing | None:
    """Return no figure: shares of several models would hide each other."""
    return None


def proportions(e: Evaluation) -> ProportionDisplay:
    """Return the shares of all classes with their differences, not yet drawn."""
    details: Any = e.details
    estimates = [(c.actual, 100 * c.difference, 100 * c.low, 100 * c.high) for c in details.classes]
    return ProportionDisplay.of_classes(e, "difference (points)", [c.label for c in details.classes], estimates)
