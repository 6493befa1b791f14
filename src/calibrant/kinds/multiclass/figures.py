"""Diagrams of class probabilities."""

from collections.abc import Mapping
from typing import Any

from calibrant.kinds.binary import figures as binary
from calibrant.kinds.figures import PAGE_WIDTH, ComparedModels, Drawing, Figures, on_page
from calibrant.kinds.multiclass.words import TOP_LABEL
from calibrant.plots import canvas
from calibrant.plots.class_diagrams import ClasswiseDisplay, ProportionDisplay
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

_MOST_CLASSES = 11  # with the top label four rows of three panels


class MulticlassFigures(Figures):
    """Diagrams of class probabilities."""

    def height(self, e: Evaluation) -> float | None:
        return _classwise_height(e) + proportions(e).height()

    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        shares = proportions(e)
        parts = grid[0, :].subgridspec(2, 1, height_ratios=[_classwise_height(e), shares.height()])
        classes = ClasswiseDisplay.from_evaluation(e, ax=figure.add_subplot(parts[0, 0]))
        return {"classes": classes, "proportions": shares.plot(ax=figure.add_subplot(parts[1, 0]))}

    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        reliability = binary.reliability_of(c.models, TOP_LABEL, fig=figure.add_subfigure(grid[0, 0]))
        place = grid[0, 1].subgridspec(2, 1, height_ratios=[height, 1])[0, 0]
        return ComparedModels(figure.add_subplot(place), {"reliability": reliability})

    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report: the reliability diagram of the top label."""
        return _name_top_label(binary.reliability(e, e.breakdowns[TOP_LABEL], "Top label"))

    def further(self, e: Evaluation) -> dict[str, list[Drawing]]:
        classes = ClasswiseDisplay.of(e, most=_MOST_CLASSES)
        classes.plot(fig=canvas.new_canvas(PAGE_WIDTH, classes.height(3, PAGE_WIDTH)), columns=3)
        shares = proportions(e)
        return {
            "bins": [Drawing("classes", classes)],
            "reasons": [on_page("proportions", shares, max(3.0, shares.height()))],
        }

    def all_models(self, models: Mapping[str, Evaluation]) -> Drawing | None:
        display = binary.reliability_of(models, TOP_LABEL, fig=canvas.new_canvas(PAGE_WIDTH, 5.2))
        return _name_top_label(Drawing("reliability", display))


FIGURES = MulticlassFigures()


def classwise(e: Evaluation, most: int) -> ClasswiseDisplay:
    """Return the reliability diagrams of the most significant classes, not yet drawn."""
    details: Any = e.details
    pvalues = {f"class {details.labels[c.label]}": c.adjusted_pvalue for c in details.classes}
    names = [name for name in e.breakdowns if name in pvalues][:most]
    classes = {name: (e.breakdowns[name], min(1.0, pvalues[name] * e.decision.group_factor)) for name in names}
    return ClasswiseDisplay.of_breakdowns(e, e.breakdowns[TOP_LABEL], classes, len(details.labels))


def proportions(e: Evaluation) -> ProportionDisplay:
    """Return the shares of all classes with their log-odds errors, not yet drawn."""
    details: Any = e.details
    estimates = [(c.observed, c.log_odds_error, c.low, c.high) for c in details.classes]
    return ProportionDisplay.of_classes(e, "log-odds error", details.labels, estimates)


def _classwise_height(e: Evaluation) -> float:
    """Return the height in inches of the reliability diagrams of classes."""
    drawn = sum(name.startswith("class ") for name in e.breakdowns)
    return 3.5 if drawn <= 3 else 5.0 if drawn <= 6 else 6.2


def _name_top_label(drawing: Drawing) -> Drawing:
    """Name the axes of a reliability diagram of the top label."""
    display: Any = drawing.display
    display.ax_.set_ylabel("share of correct rows")
    display.ax_sizes_.set_xlabel("highest probability of a row")
    return drawing
