"""Panels of both reliability diagrams: main panel, bin sizes below it, histogram at its right."""

from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from calibrant.plots._canvas import Axis, label_right, panels, rectangle, rows_label, shapes
from calibrant.plots._density import histogram
from calibrant.plots._palette import blend
from calibrant.tables.score_table import ScoreTable


@dataclass(frozen=True, eq=False)
class Panels:
    """The figure and its axes; the outer panels are None in the axes of a user, where there is no room for them."""

    figure: FigureBase
    main: Axes
    sizes: Axes | None = None
    histogram: Axes | None = None

    @classmethod
    def create(
        cls, ax: Axes | None, fig: FigureBase | None, heights: tuple[float, float], size: tuple[float, float]
    ) -> "Panels":
        """Create panels in the place of `ax`, in `fig`, or in a new figure, with shared axes."""
        figure, grid = panels(ax, fig, widths=(6, 1), heights=heights, size=size)
        main = figure.add_subplot(grid[0, 0])
        below = figure.add_subplot(grid[1, 0], sharex=main)
        return cls(figure, main, below, figure.add_subplot(grid[0, 1], sharey=main))

    def dress(self, axis: Axis, fullest: float, importance: bool) -> None:
        """Set ticks, labels and limits of the outer panels; `fullest` is the longest bar of the histogram."""
        self.main.spines[["top", "right"]].set_visible(False)
        if self.sizes is None or self.histogram is None:
            return
        unit = rows_label(importance)
        self.sizes.set_ylabel(unit)
        self.histogram.set_xlim(0, max(fullest, 1.0) * 1.05)
        self.histogram.locator_params(axis="x", nbins=2)
        self.histogram.tick_params(labelleft=False)
        label_right(self.histogram, f"{unit} up to {axis.high:g}" if axis.cut else f"all {unit}")
        for ax in (self.sizes, self.histogram):
            ax.spines[["top", "right"]].set_visible(False)


def histogram_bars(ax: Axes, table: ScoreTable, axis: Axis, ids: str) -> tuple[list[Artist], float]:
    """Draw the histogram of all predictions along the vertical axis; return its bars and the longest length."""
    edges, counts = histogram(table, axis)
    bars = [rectangle(0, c, a, z) for c, a, z in zip(counts, edges[:-1], edges[1:], strict=True) if c > 0]
    return shapes(ax, bars, ids, facecolor=blend(0.45), linewidth=0), float(counts.max())
