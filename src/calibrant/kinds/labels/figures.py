"""Diagrams of predicted classes."""

from typing import Any

from calibrant.kinds.figures import ComparedModels, Drawing, Figures, draw_each_model, on_page
from calibrant.plots.class_diagrams import ProportionDisplay
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation


class LabelFigures(Figures):
    """Diagrams of predicted classes."""

    def height(self, e: Evaluation) -> float | None:
        return max(3.6, 0.4 + proportions(e).height())

    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        return {"proportions": proportions(e).plot(ax=figure.add_subplot(grid[0, :]))}

    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        return draw_each_model(c, proportions, figure, grid, height)

    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report: predicted and observed shares."""
        shares = proportions(e)
        return on_page("lead", shares, max(3.2, shares.height()))


FIGURES = LabelFigures()


def proportions(e: Evaluation) -> ProportionDisplay:
    """Return the shares of all classes with their differences, not yet drawn."""
    details: Any = e.details
    estimates = [(c.actual, 100 * c.difference, 100 * c.low, 100 * c.high) for c in details.classes]
    return ProportionDisplay.of_classes(e, "difference (points)", [c.label for c in details.classes], estimates)
