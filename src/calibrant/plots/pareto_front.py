"""`ParetoDisplay`: sharpness against calibration, the Pareto front of a `ParetoRecalibrator`."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.errors import InputError, wrong_value
from calibrant.calibrators.pareto import Front, ParetoRecalibrator
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay, stacked


@dataclass(eq=False, repr=False)
class ParetoDisplay(AxesDisplay):
    """Pareto front of recalibration maps: negative log-likelihood (horizontal) against A^2 (vertical), lower is better.

    Points run from the sharpest to the best calibrated map; the filled one is selected. With held-out rows a second
    panel shows the same maps on these rows. The values of the original forecasts are printed, because they usually lie
    outside the axes.

    `from_recalibrator` creates and draws it.

    Attributes
    ----------
    front : Front
    held_out : Front or None
    chosen : int
    figure_, ax_, axes_, curves_, chosen_
        After drawing; `data` has each point of each front, and the original forecasts (point -1).

    See Also
    --------
    ParetoRecalibrator

    Examples
    --------
    >>> from calibrant.regression import Gaussian, ParetoRecalibrator
    >>> from matplotlib.figure import Figure
    >>> y = np.random.default_rng(0).standard_t(3, size=500)
    >>> cal = ParetoRecalibrator().fit(Gaussian(0 * y, 1.0), y)
    >>> display = ParetoDisplay.from_recalibrator(cal, fig=Figure())
    >>> len(display.data()) == len(cal.front_) + 1
    True
    """

    front: Front
    chosen: int
    held_out: Front | None = None

    @classmethod
    def from_recalibrator(
        cls,
        recalibrator: ParetoRecalibrator,
        forecast: Any = None,
        y: Any = None,
        *,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "ParetoDisplay":
        """Draw the front of a fitted recalibrator; forecasts and outcomes add the panel of held-out rows.

        Parameters
        ----------
        recalibrator : ParetoRecalibrator
            It must be fitted.
        forecast : forecast, optional
            Forecasts of held-out rows.
        y : column, optional
            Their outcomes; needed with `forecast`.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        ParetoDisplay
            The display, drawn.
        """
        if not isinstance(recalibrator, ParetoRecalibrator):
            raise wrong_value(
                "recalibrator", "must be a ParetoRecalibrator", recalibrator, got=type(recalibrator).__name__
            )
        front = getattr(recalibrator, "front_", None)
        if front is None:
            raise InputError("recalibrator must be fitted.", hint="Call fit(forecast, y) first.")
        if (forecast is None) != (y is None):
            raise InputError("forecast and y must be passed together; got only one of them.", argument="forecast")
        held_out = None if forecast is None else recalibrator.measure(forecast, y)
        chosen = next(i for i, point in enumerate(front) if point.map == recalibrator.map_)
        return cls(front, chosen, held_out).plot(ax=ax, fig=fig)

    def _series(self) -> dict[str, Front]:
        fitted = {"fitted rows": self.front}
        return fitted if self.held_out is None else {**fitted, "held-out rows": self.held_out}

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> Self:
        """Draw in `ax`, in `fig`, or in a new figure, with one panel per set of rows.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        ParetoDisplay
            This display; artists are attributes that end in ``_``.
        """
        series = self._series()
        count = len(series)
        self.figure_, grid = canvas.panels(ax, fig, widths=(1.0,) * count, size=(5.2 * count + 0.6, 4.2))
        self.axes_: dict[str, Axes] = {}
        self.curves_: list[Line2D] = []
        self.chosen_: list[Line2D] = []
        for i, (name, front) in enumerate(series.items()):
            self.axes_[name] = self._panel(self.figure_.add_subplot(grid[0, i]), name, front)
        self.ax_ = self.axes_["fitted rows"]
        return self

    def _panel(self, ax: Axes, name: str, front: Front) -> Axes:
        gid, chosen = f"pareto-{name.replace(' ', '-')}", [self.chosen]
        style: dict[str, Any] = {"color": canvas.model_colours(1)[0], "marker": "o", "lw": 1.4}
        self.curves_ += ax.plot(front.nll, front.a_squared, ms=6, gid=gid, mfc=ax.get_facecolor(), **style)
        style |= {"ls": "", "mfc": canvas.REJECTED, "ms": 9, "gid": f"{gid}-chosen", "zorder": 4}
        self.chosen_ += ax.plot(front.nll[chosen], front.a_squared[chosen], **style)
        ax.margins(0.1)
        ax.ticklabel_format(useOffset=False)
        canvas.dress(ax, xlabel="NLL per row (lower: sharper)", ylabel="A² (lower: better calibrated)")
        ax.locator_params(axis="x", nbins=4)
        canvas.draw_title(ax, name, f"before: NLL {front.before.nll:.4g}, A² {front.before.a_squared:.4g}")
        return ax

    def _columns(self) -> dict[str, Any]:
        parts = {}
        for name, front in self._series().items():
            points, numbers = [front.before, *front], np.arange(-1, len(front))
            measures = {measure: [getattr(p, measure) for p in points] for measure in ("nll", "a_squared")}
            parts[name] = {"point": numbers, **measures, "chosen": numbers == self.chosen}
        return stacked("rows", parts)

    def __repr__(self) -> str:
        point = self.front[self.chosen]
        return f"ParetoDisplay({len(self.front)} maps; selected: NLL {point.nll:.4g}, A² {point.a_squared:.3g})"

    def alt_text(self) -> str:
        front = self.front
        ends = [
            f"NLL {point.nll:.4g} and A² {point.a_squared:.3g}" for point in (front[0], front[-1], front[self.chosen])
        ]
        return (
            f"Pareto front of {len(front)} recalibration maps from {ends[0]} to {ends[1]}, with {ends[2]} selected; "
            f"before recalibration NLL was {front.before.nll:.4g} and A² {front.before.a_squared:.4g}."
        )
