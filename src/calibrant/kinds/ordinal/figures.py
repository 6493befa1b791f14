"""Diagrams of probabilities of ordered classes."""

from collections.abc import Mapping
from typing import Any

from calibrant.kinds.binary import figures as binary
from calibrant.kinds.figures import PAGE_WIDTH, ComparedModels, Drawing, Figures, draw_each_model, on_page
from calibrant.kinds.ordinal.evaluation import threshold_name
from calibrant.plots import canvas
from calibrant.plots.class_diagrams import ProportionDisplay
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

_MOST_THRESHOLDS = 6  # in one diagram


class OrdinalFigures(Figures):
    """Diagrams of probabilities of ordered classes: reliability of the thresholds, and shares of the classes."""

    def height(self, e: Evaluation) -> float | None:
        """Return the height of the panels."""
        return max(4.4, 0.4 + proportions(e).height())

    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        """Draw the reliability of the cumulative probabilities, and the shares of outcomes at or below each class."""
        reliability = _reliability(e, figure.add_subfigure(grid[0, 0]))
        return {"reliability": reliability, "proportions": proportions(e).plot(ax=figure.add_subplot(grid[0, 1]))}

    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        """Draw the shares of each model."""
        return draw_each_model(c, proportions, figure, grid, height)

    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report: the reliability diagram of all thresholds."""
        return Drawing("reliability", _reliability(e, canvas.new_canvas(PAGE_WIDTH, 5.2)))

    def further(self, e: Evaluation) -> dict[str, list[Drawing]]:
        """Return the shares of outcomes at or below each class, beside the table of thresholds."""
        display = proportions(e)
        return {"bins": [on_page("proportions", display, max(3.0, display.height()))]}

    def all_models(self, models: Mapping[str, Evaluation]) -> Drawing | None:
        """Return the reliability of all models at their middle threshold, if they have the same classes."""
        names = {tuple(e.breakdowns) for e in models.values()}
        if len(names) > 1:
            return None
        middle = list(names.pop())
        display = binary.reliability_of(models, middle[len(middle) // 2], fig=canvas.new_canvas(PAGE_WIDTH, 5.2))
        return Drawing("reliability", display)


FIGURES = OrdinalFigures()


def _reliability(e: Evaluation, fig: Any) -> ReliabilityDisplay:
    """Return the reliability diagram of the cumulative probabilities of the most significant thresholds."""
    details: Any = e.details
    worst = sorted(details.thresholds, key=lambda t: t.pvalue)[:_MOST_THRESHOLDS]
    names = {threshold_name(t.label) for t in worst}
    chosen = {name: breakdown for name, breakdown in e.breakdowns.items() if name in names}
    display = ReliabilityDisplay.from_breakdown(chosen, confidence_level=e.settings.confidence_level, fig=fig)
    display.ax_.set_ylabel("share of outcomes at or below the class")
    return display


def proportions(e: Evaluation) -> ProportionDisplay:
    """Return the shares of outcomes at or below each class with their log-odds errors, not yet drawn."""
    details: Any = e.details
    estimates = [(t.observed, t.log_odds_error, t.low, t.high) for t in details.thresholds]
    return ProportionDisplay.of_classes(
        e, "log-odds error", [threshold_name(t.label) for t in details.thresholds], estimates
    )
