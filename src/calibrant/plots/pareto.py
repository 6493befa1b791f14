"""`ParetoDisplay`: sharpness against calibration, the repairs of a `ParetoRecalibrator`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.errors import InputError
from calibrant.calibrators.pareto import Front, ParetoRecalibrator
from calibrant.plots._canvas import frame_of_all, headline, panels
from calibrant.plots._palette import REJECTED, models

__all__ = ["ParetoDisplay"]


@dataclass(eq=False)
class ParetoDisplay:
    """The front of repairs: negative log-likelihood (across) against A^2 (upwards), both better when lower.

    Points run from the sharpest to the best calibrated; the filled one is chosen. With rows that were not learned from
    a second panel shows the same repairs there. Where the forecasts stood before is far off, and written.

    Make it with `from_recalibrator`, which draws it.

    Attributes
    ----------
    front : Front
    held_out : Front or None
    chosen : int
    figure_, ax_, axes_, curves_, chosen_
        After drawing.

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
        """Draw the front of a fitted recalibrator, and with forecasts and outcomes that of other rows too."""
        if not isinstance(recalibrator, ParetoRecalibrator):
            raise InputError(
                f"A ParetoRecalibrator is needed; this is {type(recalibrator).__name__}.", argument="recalibrator"
            )
        front = getattr(recalibrator, "front_", None)
        if front is None:
            raise InputError("This recalibrator has no front yet.", hint="Call fit(forecast, y) first.")
        if (forecast is None) != (y is None):
            raise InputError("forecast and y go together: pass both or neither.", argument="forecast")
        held_out = None if forecast is None else recalibrator.on(forecast, y)
        chosen = next(i for i, point in enumerate(front) if point.map == recalibrator.map_)
        return cls(front, chosen, held_out).plot(ax=ax, fig=fig)

    def _series(self) -> dict[str, Front]:
        found = {"rows learned from": self.front}
        return found if self.held_out is None else {**found, "other rows": self.held_out}

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "ParetoDisplay":
        """Draw in `ax`, in `fig`, or in a new figure; other rows beside those learned from."""
        series = self._series()
        count = len(series)
        self.figure_, grid = panels(ax, fig, widths=(1.0,) * count, size=(5.2 * count + 0.6, 4.2))
        self.axes_: dict[str, Axes] = {}
        self.curves_: list[Line2D] = []
        self.chosen_: list[Line2D] = []
        for i, (name, front) in enumerate(series.items()):
            self.axes_[name] = self._panel(self.figure_.add_subplot(grid[0, i]), name, front)
        self.ax_ = self.axes_["rows learned from"]
        return self

    def _panel(self, ax: Axes, name: str, front: Front) -> Axes:
        color, gid = models(1)[0], f"pareto-{name.replace(' ', '-')}"
        style: dict[str, Any] = {"color": color, "marker": "o", "lw": 1.4, "mfc": ax.get_facecolor()}
        self.curves_ += ax.plot(front.nll, front.a_squared, ms=6, gid=gid, **style)
        style |= {"ls": "", "mfc": REJECTED}
        chosen = [self.chosen]
        self.chosen_ += ax.plot(
            front.nll[chosen], front.a_squared[chosen], ms=9, gid=f"{gid}-chosen", zorder=4, **style
        )
        ax.margins(0.1)
        ax.ticklabel_format(useOffset=False)
        ax.set_xlabel("NLL a row (lower: sharper)")
        ax.set_ylabel("A² (lower: better calibrated)")
        ax.locator_params(axis="x", nbins=4)
        ax.spines[["top", "right"]].set_visible(False)
        headline(ax, name, f"before: NLL {front.before.nll:.4g}, A² {front.before.a_squared:.4g}")
        return ax

    def data(self, backend: str = "pandas") -> Any:
        """What was drawn: each point of each front, and where forecasts stood before (point -1)."""
        parts = []
        for name, front in self._series().items():
            points = [front.before, *front]
            parts.append(
                {
                    "rows": np.full(len(points), name, dtype=object),
                    "point": np.arange(-1, len(front)),
                    "nll": np.array([p.nll for p in points]),
                    "a_squared": np.array([p.a_squared for p in points]),
                    "chosen": np.arange(-1, len(front)) == self.chosen,
                }
            )
        return frame_of_all(parts, backend)

    def alt_text(self) -> str:
        """The diagram in one sentence."""
        first, last, point = self.front[0], self.front[-1], self.front[self.chosen]
        return (
            f"Front of {len(self.front)} repairs from NLL {first.nll:.4g} and A² {first.a_squared:.3g} to NLL "
            f"{last.nll:.4g} and A² {last.a_squared:.3g}, with NLL {point.nll:.4g} and A² {point.a_squared:.3g} "
            f"chosen; before repair NLL was {self.front.before.nll:.4g} and A² {self.front.before.a_squared:.4g}."
        )
