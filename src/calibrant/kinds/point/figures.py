"""Diagrams of point predictions."""

from collections.abc import Mapping
from typing import Any

from calibrant.plots.bias_scatter import BiasDisplay
from calibrant.plots.display import ComparedModels, Drawing, draw_each_model, on_page
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation


def height(e: Evaluation) -> float | None:
    """Return the height in inches of the panels of an evaluation; None for that of most kinds."""
    return None


def draw_panels(e: Evaluation, figure: Any, outer: Any) -> dict[str, Any]:
    """Draw the panels of an evaluation in the first row of a grid of two columns; return them by name."""
    return {"bias": bias(e).plot(ax=figure.add_subplot(outer[0, :]))}


def group_metric(e: Evaluation) -> str:
    """Return the metric of the groups in the figure of an evaluation."""
    return "mean error"


def draw_models(c: Comparison, figure: Any, outer: Any, height: float) -> ComparedModels:
    """Draw the models of a comparison beside each other; `height` is that of the differences."""
    return draw_each_model(c.models, bias, figure, outer, height)


def lead(e: Evaluation) -> Drawing:
    """Return the figure of the first screen of a report: the bias by bin."""
    return on_page("lead", bias(e), 4.9)


def further(e: Evaluation) -> dict[str, list[Drawing]]:
    """Return the further figures of a report: none."""
    return {}


def group_metrics(e: Evaluation) -> list[str]:
    """Return the metrics of the groups in a report."""
    return [next(iter(e.metrics))]


def all_models(models: Mapping[str, Evaluation]) -> Drawing | None:
    """Return no figure: the bias of several models would hide each other's rows."""
    return None


def bias(e: Evaluation) -> BiasDisplay:
    """Return the bias by bin, not yet drawn."""
    details: Any = e.details
    return BiasDisplay(e.table, e.breakdowns["bias by bin"], details.line)
