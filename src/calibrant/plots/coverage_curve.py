"""`CoverageDisplay`: observed against nominal coverage of central intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError, check_share
from calibrant._support.random_streams import RandomState
from calibrant.metrics.distribution import pit
from calibrant.plots._canvas import draw_title, ids_by_name, join_short, legend, single_axes, stacked_frame
from calibrant.plots._inputs import display_names
from calibrant.plots._palette import DASHES, blend, model_colours

__all__ = ["CoverageDisplay"]

_LEVELS = np.arange(1, 100) / 100


@dataclass(eq=False, repr=False)
class CoverageDisplay:
    """Observed against nominal coverage of central intervals, at 1 % to 99 %, of one or several forecasts.

    On the diagonal the coverage is nominal; below it the forecasts are overconfident (narrow intervals), above it
    underconfident (wide intervals). The grey band is the pointwise 95 % null range of calibrated forecasts of that many
    rows (exact binomial limits). An outcome lies inside the interval of level L if its PIT value lies within L/2 of
    1/2.

    `from_predictions` creates and draws it.

    Attributes
    ----------
    u : dict of name to PIT values
    figure_, ax_
    band_ : PolyCollection
        Of the forecast with the most rows.
    curves_ : dict of name to line
    confidence_level : float
        Level of the intervals of coverage.
    levels : sequence of float
        Coverages of the intervals that the forecasts state, drawn as points; the curve between them interpolates
        quantiles. Empty for forecasts that state whole distributions.

    See Also
    --------
    coverage, PITDisplay

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> from matplotlib.figure import Figure
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> display = CoverageDisplay.from_predictions(y, {"narrow": Gaussian(0 * y, 0.5)}, fig=Figure())
    >>> display.data().query("level == 0.9")["observed"].item() < 0.7
    True
    """

    u: Mapping[str, Floats]
    confidence_level: float = 0.95
    levels: Sequence[float] = ()

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        forecast: Any,
        *,
        confidence_level: float = 0.95,
        random_state: RandomState = 0,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "CoverageDisplay":
        """Compute PIT values and draw their coverage.

        Parameters
        ----------
        y_true : column
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Or a mapping of name to forecast.
        confidence_level : float, default=0.95
            Of the band.
        random_state
            See `calibrant.regression.pit`.
        ax, fig
            See `plot`.

        Returns
        -------
        CoverageDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        several = forecast if isinstance(forecast, Mapping) else {"forecast": forecast}
        if not several:
            raise InputError("forecast must have at least one forecast; got an empty mapping.", argument="forecast")
        names = display_names(several)
        u = {
            name: pit(y_true, each, random_state=random_state)
            for name, each in zip(names, several.values(), strict=True)
        }
        return cls(u, check_share("confidence_level", confidence_level)).plot(ax=ax, fig=fig)

    def _observed(self, u: Floats, levels: Floats = _LEVELS) -> Floats:
        reach = np.sort(np.abs(2 * u - 1))
        return np.searchsorted(reach, levels * (1 + 1e-12), side="right") / u.size

    def _band(self) -> tuple[Floats, Floats]:
        from scipy.stats import binom

        size = max(u.size for u in self.u.values())
        tail = (1 - self.confidence_level) / 2
        return binom.ppf(tail, size, _LEVELS) / size, binom.ppf(1 - tail, size, _LEVELS) / size

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "CoverageDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        CoverageDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.ax_ = single_axes(ax, fig, (5.6, 5.6))
        self.figure_ = self.ax_.figure
        low, high = self._band()
        self.band_: PolyCollection = self.ax_.fill_between(
            _LEVELS, low, high, color=blend(0.5), alpha=0.25, lw=0, gid="coverage-band"
        )
        self.ax_.plot([0, 1], [0, 1], color=blend(0.6), lw=1, ls=(0, (4, 3)), gid="coverage-diagonal")
        ids = ids_by_name(list(self.u))
        self.curves_: dict[str, Line2D] = {}
        for i, (name, u) in enumerate(self.u.items()):
            style: dict[str, Any] = {"color": model_colours(len(self.u))[i], "ls": DASHES[i // 6 % len(DASHES)]}
            (self.curves_[name],) = self.ax_.plot(
                _LEVELS, self._observed(u), lw=1.8, gid=f"coverage-{ids[name]}", **style
            )
            at = np.asarray(self.levels, dtype=np.float64)
            points: dict[str, Any] = {"ls": "", "marker": "o", "ms": 5.5, "color": style["color"], "zorder": 4}
            self.ax_.plot(at, self._observed(u, at), gid=f"coverage-{ids[name]}-levels", **points)
        self.ax_.set_xlim(0, 1)
        self.ax_.set_ylim(0, 1)
        self.ax_.set_aspect("equal", adjustable="box")
        self.ax_.set_xlabel("nominal coverage")
        self.ax_.set_ylabel("observed coverage")
        self.ax_.spines[["top", "right"]].set_visible(False)
        if len(self.u) > 1:
            above = np.mean([self._observed(u) - _LEVELS for u in self.u.values()]) > 0
            corner = "lower right" if above else "upper left"  # where fewer curves are
            legend(self.ax_, list(self.curves_.values()), list(self.curves_), loc=corner)
        draw_title(self.ax_, self._title(), self._note())
        return self

    def _note(self) -> str:
        band = f"grey: {100 * self.confidence_level:g} % null range"
        return f"points: stated intervals; {band}" if self.levels else f"below the diagonal: overconfident; {band}"

    def _at_ninety(self) -> dict[str, float]:
        return {name: float(self._observed(u)[89]) for name, u in self.u.items()}

    def _title(self) -> str:
        shares = self._at_ninety()
        if len(shares) == 1:
            return f"90 % intervals cover {100 * next(iter(shares.values())):.1f} % of outcomes"
        return (
            f"90 % intervals cover {100 * min(shares.values()):.1f} to {100 * max(shares.values()):.1f} % of outcomes"
        )

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per forecast and level.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        low, high = self._band()
        parts = [
            {
                "forecast": np.full(_LEVELS.size, name, dtype=object),
                "level": _LEVELS,
                "observed": self._observed(u),
                "band_low": low,
                "band_high": high,
            }
            for name, u in self.u.items()
        ]
        return stacked_frame(parts, backend)

    def __repr__(self) -> str:
        shares = [f"{name}: {100 * share:.1f} % in 90 % intervals" for name, share in self._at_ninety().items()]
        return f"CoverageDisplay({join_short(shares)})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        shares = "; ".join(f"{name} {100 * share:.1f} %" for name, share in self._at_ninety().items())
        return f"Observed against nominal coverage of central intervals; share of outcomes in 90 % intervals: {shares}."
