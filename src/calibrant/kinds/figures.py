"""`Figures`: the diagrams of one kind of forecast, in the figures of results and in reports."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation

PAGE_WIDTH = 5.2  # of figures in a report, in inches: with text of 10 points about the width of a phone
_MOST_MODELS = 4  # that have a panel each in a comparison


@dataclass(frozen=True, eq=False)
class Drawing:
    """A drawn diagram of a report.

    Attributes
    ----------
    name : str
        Prefix of the ids of its shapes, within those of its model.
    display : AxesDisplay
    tips : mapping
        Texts of shapes by the prefix of their id: ``{"test-based-bin-0": "..."}``.
    stops : str
        Pattern of the ids that receive keyboard focus, one per bin.
    """

    name: str
    display: AxesDisplay
    tips: Mapping[str, str] = field(default_factory=dict)
    stops: str = ""


class ComparedModels(NamedTuple):
    """The panels of a comparison: axes of the differences, displays of all models, and displays of single models."""

    differences: Axes
    panels: Mapping[str, Any] = {}
    models: Mapping[str, Any] = {}


class Figures(ABC):
    """The diagrams of one kind of forecast: the constant ``FIGURES`` of the module `figures` of each kind."""

    @abstractmethod
    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        """Draw the panels of an evaluation in the first row of a grid of two columns; return them by name."""

    @abstractmethod
    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        """Draw the models of a comparison in a grid of two columns; `height` is that of the differences."""

    @abstractmethod
    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report."""

    def further(self, e: Evaluation) -> dict[str, list[Drawing]]:
        """Return the further figures of a report: all but those of the "reasons" for the verdict and of the "bins"."""
        return {}

    def all_models(self, models: Mapping[str, Evaluation]) -> Drawing | None:
        """Return one figure of all models of a report; None where they would hide each other."""
        return None

    def height(self, e: Evaluation) -> float | None:
        """Return the height in inches of the panels of an evaluation; None for that of most kinds."""
        return None

    def group_metric(self, e: Evaluation) -> str:
        """Return the metric of the groups in the figure of an evaluation."""
        return next(iter(e.metrics))

    def group_metrics(self, e: Evaluation) -> list[str]:
        """Return the metrics of the groups in a report: the size of the deviation and, if it has one, its direction."""
        return [next(iter(e.metrics))]


def on_page(name: str, display: AxesDisplay, height: float, **texts: Any) -> Drawing:
    """Draw a display for a report."""
    return Drawing(name, display.plot(fig=canvas.new_canvas(PAGE_WIDTH, height)), **texts)


def draw_each_model(
    c: Comparison, make: Callable[[Evaluation], AxesDisplay], figure: Any, grid: Any, height: float
) -> ComparedModels:
    """Draw a display of each of the first models beside each other, and below them place axes of this height."""
    rows = grid[0, :].subgridspec(2, 1, height_ratios=[3, height])
    models = dict(list(c.models.items())[:_MOST_MODELS])
    places = rows[0, 0].subgridspec(1, len(models))
    displays: dict[str, Any] = {}
    for i, (name, e) in enumerate(models.items()):
        part = figure.add_subfigure(places[0, i])
        displays[name] = make(e).plot(fig=part)
        part.suptitle(canvas.shorten(name, 24), x=0.02, ha="left", parse_math=False)
    return ComparedModels(figure.add_subplot(rows[1, 0]), models=displays)
