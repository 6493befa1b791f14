"""`RootogramDisplay`: observed and expected frequencies of counts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import check_share
from calibrant.metrics.frequencies import CountFrequencies, count_frequencies
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay


@dataclass(eq=False, repr=False)
class RootogramDisplay(AxesDisplay):
    """Rootogram: square roots of the frequencies of counts, hanging from those that the forecasts expect.

    Each bar is as long as the root of the number of rows with a count, and hangs from the expected root (Tukey; Kleiber
    and Zeileis, 2016). A bar that ends above 0 is a count that is rarer than predicted, one that ends below 0 a count
    that is more frequent. The grey band is the 95 % range of the ends if calibrated, for all counts together
    (Bonferroni); bars that end outside of it are orange.

    `from_predictions` creates and draws it.

    Attributes
    ----------
    frequencies : CountFrequencies
    confidence_level : float
        Level of the band.
    figure_, ax_, bars_, band_, expected_
        After drawing; `data` has one row per count.

    See Also
    --------
    count_frequencies, PITDisplay

    Examples
    --------
    >>> from calibrant import Poisson
    >>> from matplotlib.figure import Figure
    >>> y = np.random.default_rng(0).poisson(2.0, 1000)
    >>> display = RootogramDisplay.from_predictions(y, Poisson(np.full(1000, 2.0)), fig=Figure())
    >>> int(display.data()["observed"].sum())
    1000
    """

    _size = (6.4, 3.8)

    frequencies: CountFrequencies
    confidence_level: float = 0.95

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        forecast: Any,
        *,
        max_count: int | None = None,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "RootogramDisplay":
        """Count rows and draw them.

        Parameters
        ----------
        y_true : column of counts
        forecast : Poisson, NegativeBinomial, or a frozen discrete distribution of scipy.stats
        max_count : int, optional
            See `calibrant.metrics.count_frequencies`.
        confidence_level : float, default=0.95
            Of the band.
        ax, fig
            See `plot`.

        Returns
        -------
        RootogramDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        level = check_share("confidence_level", confidence_level)
        return cls(count_frequencies(y_true, forecast, max_count=max_count), level).plot(ax=ax, fig=fig)

    def _ends(self) -> tuple[Floats, Floats]:
        """Return where the bars end, and how far from 0 they end if calibrated."""
        from scipy.special import ndtri

        f = self.frequencies
        z = float(ndtri(1 - (1 - self.confidence_level) / (2 * f.count.size)))
        # The largest distance of the roots for numbers within z standard deviations of the expected one.
        reach = np.sqrt(f.expected) - np.sqrt(np.maximum(f.expected - z * f.error, 0.0))
        return np.sqrt(f.expected) - np.sqrt(f.observed), reach

    def _beyond(self) -> Bools:
        end, reach = self._ends()
        return np.abs(end) > np.maximum(reach, 1.0)  # a single row has the root 1

    def _draw(self) -> None:
        ax, f = self.ax_, self.frequencies
        end, reach = self._ends()
        top, beyond = np.sqrt(f.expected), self._beyond()
        boxes = [canvas.rectangle(k - 0.4, k + 0.4, low, high) for k, low, high in zip(f.count, end, top, strict=True)]
        self.bars_: list[Artist] = []
        for colour, chosen in ((canvas.ACCEPTED, ~beyond), (canvas.REJECTED, beyond)):
            bars = [box if drawn else None for box, drawn in zip(boxes, chosen, strict=True)]
            self.bars_ += canvas.shapes(ax, bars, "rootogram-bar-{}", fc=colour, ec=ax.get_facecolor(), lw=0.8)
        reach = np.maximum(reach, 1.0)
        style: dict[str, Any] = {"color": canvas.blend(0.5), "alpha": 0.22, "lw": 0, "gid": "rootogram-band"}
        self.band_: PolyCollection = ax.fill_between(f.count, -reach, reach, zorder=3, **style)
        style = canvas.dashes(0.7, gid="rootogram-expected", zorder=4)
        self.expected_: Line2D = ax.plot(f.count, top, **style)[0]
        ax.axhline(0.0, color=canvas.blend(0.5), lw=0.8, zorder=4, gid="rootogram-zero")
        low = min(float(end.min()), float(-reach.max()))
        canvas.dress(ax, xlim=(-0.7, float(f.count[-1]) + 0.7), ylim=(1.1 * low, 1.1 * float(top.max()) + 0.1))
        ax.set(xlabel=f"count (the last one: {f.count[-1]:.0f} or more)", ylabel="root of the number of rows")
        small = f"bars hang from the expected root; grey: {100 * self.confidence_level:g} % null range of their ends"
        canvas.draw_title(ax, self._summary(), small)

    def _summary(self) -> str:
        end, wrong = self._ends()[0], self._beyond()
        if not wrong.any():
            return "No count is more or less frequent than predicted"
        k = int(np.argmax(np.where(wrong, np.abs(end), 0.0)))
        word = "rarer" if end[k] > 0 else "more frequent"
        f = self.frequencies
        return (
            f"Count {f.count[k]:.0f} is {word} than predicted: {f.observed[k]:,.0f} rows, expected {f.expected[k]:,.0f}"
        )

    def _columns(self) -> dict[str, Any]:
        f = self.frequencies
        end, reach = self._ends()
        found = {"count": f.count, "observed": f.observed, "expected": f.expected, "error": f.error}
        return found | {"root_difference": -end, "band": np.maximum(reach, 1.0)}

    def __repr__(self) -> str:
        return f"RootogramDisplay({int(self.frequencies.observed.sum()):,} rows)"

    def alt_text(self) -> str:
        f = self.frequencies
        return (
            f"Rootogram of {int(f.observed.sum()):,} rows with counts from 0 to {f.count[-1]:.0f} or more: "
            f"{self._summary()}."
        )
