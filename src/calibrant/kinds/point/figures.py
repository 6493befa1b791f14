"""Diagrams of point predictions."""

from typing import Any

from calibrant.kinds.figures import ComparedModels, Drawing, Figures, draw_each_model, on_page
from calibrant.plots.bias_scatter import BiasDisplay
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation


class PointFigures(Figures):
    """Diagrams of point predictions."""

    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        return {"bias": bias(e).plot(ax=figure.add_subplot(grid[0, :]))}

    def group_metric(self, e: Evaluation) -> str:
        return "mean error"

    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        return draw_each_model(c, bias, figure, grid, height)

    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report: the bias by bin."""
        return on_page("lead", bias(e), 4.9)


FIGURES = PointFigures()


def bias(e: Evaluation) -> BiasDisplay:
    """Return the bias by bin, not yet drawn."""
    details: Any = e.details
    table: Any = e.table
    return BiasDisplay(table, e.breakdowns["bias by bin"], details.line)
