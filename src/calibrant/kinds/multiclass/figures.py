"""Diagrams of class probabilities."""

from collections.abc import Mapping
from typing import Any

from calibrant.kinds.binary import figures as binary
from calibrant.plots import canvas
from calibrant.plots.class_diagrams import ClasswiseDisplay, ProportionDisplay
from calibrant.plots.display import PAGE_WIDTH, ComparedModels, Drawing, on_page
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

TOP_LABEL = "top-label ACE"
_MOST_CLASSES = 11  # with the top label four rows of three panels


def height(e: Evaluation) -> float | None:
    """Return the height in inches of the panels of an evaluation."""
    return _classwise_height(e) + proportions(e).height()


def draw_panels(e: Evaluation, figure: Any, outer: Any) -> dict[str, Any]:
    """Draw the panels of an evaluation in the first row of a grid of two columns; return them by name."""
    shares = proportions(e)
    parts = outer[0, :].subgridspec(2, 1, height_ratios=[_classwise_height(e), shares.height()])
    classes = ClasswiseDisplay.from_evaluation(e, ax=figure.add_subplot(parts[0, 0]))
    return {"classes": classes, "proportions": shares.plot(ax=figure.add_subplot(parts[1, 0]))}


def group_metric(e: Evaluation) -> str:
    """Return the metric of the groups in the figure of an evaluation."""
    return next(iter(e.metrics))


def draw_models(c: Comparison, figure: Any, outer: Any, height: float) -> ComparedModels:
    """Draw all models of a comparison in a grid of two columns; `height` is that of the differences."""
    reliability = binary.reliability_of(c.models, TOP_LABEL, fig=figure.add_subfigure(outer[0, 0]))
    place = outer[0, 1].subgridspec(2, 1, height_ratios=[height, 1])[0, 0]
    return ComparedModels(figure.add_subplot(place), {"reliability": reliability})


def lead(e: Evaluation) -> Drawing:
    """Return the figure of the first screen of a report: the reliability diagram of the top label."""
    return _name_top_label(binary.reliability(e, e.breakdowns[TOP_LABEL], "Top label"))


def further(e: Evaluation) -> dict[str, list[Drawing]]:
    """Return the further figures of a report: those beside the reasons for the verdict, and beside the bins."""
    classes = ClasswiseDisplay.of(e, most=_MOST_CLASSES)
    classes.plot(fig=canvas.new_canvas(PAGE_WIDTH, classes.height(3, PAGE_WIDTH)), columns=3)
    shares = proportions(e)
    return {
        "bins": [Drawing("classes", classes)],
        "reasons": [on_page("proportions", shares, max(3.0, shares.height()))],
    }


def group_metrics(e: Evaluation) -> list[str]:
    """Return the metrics of the groups in a report."""
    return [next(iter(e.metrics))]


def all_models(models: Mapping[str, Evaluation]) -> Drawing | None:
    """Return one figure of all models of a report."""
    display = binary.reliability_of(models, TOP_LABEL, fig=canvas.new_canvas(PAGE_WIDTH, 5.2))
    return _name_top_label(Drawing("reliability", display))


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
