"""`PITDisplay` and `CoverageDisplay`: PIT values of predictive distributions, and the coverage of their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import InputError, check_count, check_share
from calibrant._support.formatting import p_text
from calibrant._support.random_streams import RandomState
from calibrant.forecasts.forecast_table import read_outcomes
from calibrant.inference.regression.discrete_pit import pit_shares
from calibrant.inference.regression.distribution_components import discrete_components
from calibrant.inference.regression.uniformity import anderson_darling
from calibrant.metrics.distribution import read_pit, transforms
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay, display_names, stacked
from calibrant.results.verdict import TestResult

_LEVELS = np.arange(1, 100) / 100


def default_bars(rows: int) -> int:
    """Return the number of bars: 10, or 20 from 2,000 rows on."""
    return 20 if rows >= 2000 else 10


@dataclass(eq=False, repr=False)
class PITDisplay(AxesDisplay):
    """Histogram of the probability integral transforms, with its null range.

    The PIT values of calibrated forecasts are uniform. A histogram that is high at both ends shows overconfident
    forecasts, one that is high in the middle underconfident ones, a rising one underestimation, a falling one
    overestimation. The grey band is the simultaneous 95 % null range of all bars (exact binomial limits of each bar, at
    a level divided by the number of bars); bars outside of it are orange.

    Of discrete forecasts each row is spread over its interval of F(y) (Czado, Gneiting and Held, 2009): the bars need
    no random numbers, and the null range, which is that of random PIT values, is wider than needed.

    `from_predictions` or `from_pit` creates and draws it.

    Attributes
    ----------
    u : ndarray
    n_bins : int
    test : TestResult or None
        Anderson and Darling's; None where nothing is tested.
    figure_, ax_, bars_, band_, expected_
        After drawing; `data` has one row per bar.
    confidence_level : float
        Level of the range of each bar if calibrated.
    cells : pair of ndarray, optional
        Bounds of the PIT values of discrete forecasts.

    See Also
    --------
    pit, CoverageDisplay

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> from matplotlib.figure import Figure
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> display = PITDisplay.from_predictions(y, Gaussian(0 * y, 2.0), fig=Figure())
    >>> int(display.data()["rows"].sum())
    500
    """

    _size = (6.4, 3.8)

    u: Floats
    n_bins: int
    test: TestResult | None
    confidence_level: float = 0.95
    cells: tuple[Floats, Floats] | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        forecast: Any,
        *,
        n_bins: int | None = None,
        confidence_level: float = 0.95,
        random_state: RandomState = 0,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "PITDisplay":
        """Compute PIT values and draw their histogram.

        Parameters
        ----------
        y_true : column
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
        n_bins : int, optional
            Number of bars; by default 10, or 20 from 2,000 rows on.
        confidence_level : float, default=0.95
            Of the band.
        random_state
            See `calibrant.regression.pit`.
        ax, fig
            See `plot`.

        Returns
        -------
        PITDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        y, known = read_outcomes(y_true, forecast)
        if known.is_discrete:
            low, high = known.cells(y)
            test = discrete_components(low, high, known, None, 1 - check_share("confidence_level", confidence_level))[0]
            count = default_bars(y.size) if n_bins is None else check_count("n_bins", n_bins, 200)
            return cls((low + high) / 2, count, test, confidence_level, (low, high)).plot(ax=ax, fig=fig)
        u = transforms(y, known, random_state=random_state)
        return cls.from_pit(u, n_bins=n_bins, confidence_level=confidence_level, ax=ax, fig=fig)

    @classmethod
    def from_pit(
        cls,
        u: Any,
        *,
        n_bins: int | None = None,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "PITDisplay":
        """Draw PIT values.

        Parameters
        ----------
        u : column
            Values in [0, 1].
        n_bins : int, optional
            Number of bars; by default 10, or 20 from 2,000 rows on.
        confidence_level : float, default=0.95
            Of the band.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        PITDisplay
            The display, drawn.
        """
        test, values = anderson_darling(u), read_pit(u)[0]
        count = default_bars(values.size) if n_bins is None else check_count("n_bins", n_bins, 200)
        return cls(values, count, test, check_share("confidence_level", confidence_level)).plot(ax=ax, fig=fig)

    def _counts(self) -> tuple[Floats, Floats, float, float]:
        """Edges and counts of the bars, and the limits of the band."""
        from scipy.stats import binom

        edges = np.arange(self.n_bins + 1) / self.n_bins
        if self.cells is None:
            counts = np.bincount(np.searchsorted(edges[1:-1], self.u, side="right"), minlength=self.n_bins)
        else:
            counts = np.diff([pit_shares(*self.cells, np.array([edge])).sum() for edge in edges])
        tail = (1 - self.confidence_level) / (2 * self.n_bins)
        low, high = binom.ppf([tail, 1 - tail], self.u.size, 1 / self.n_bins)
        return edges, counts.astype(np.float64), float(low), float(high)

    def _draw(self) -> None:
        ax, (edges, counts, low, high) = self.ax_, self._counts()
        boxes = [canvas.rectangle(edges[i], edges[i + 1], 0.0, counts[i]) for i in range(self.n_bins)]
        beyond = self._beyond(counts, low, high)
        self.bars_: list[Artist] = []
        for colour, chosen in ((canvas.ACCEPTED, ~beyond), (canvas.REJECTED, beyond)):
            bars = [box if drawn else None for box, drawn in zip(boxes, chosen, strict=True)]
            self.bars_ += canvas.shapes(ax, bars, "pit-bar-{}", fc=colour, ec=ax.get_facecolor(), lw=0.8)
        style: dict[str, Any] = {"color": canvas.blend(0.5), "alpha": 0.22, "lw": 0, "gid": "pit-band", "zorder": 3}
        self.band_: Patch = ax.axhspan(low, high, **style)
        style = canvas.dashes(0.7, gid="pit-expected", zorder=4)
        self.expected_: Line2D = ax.axhline(self.u.size / self.n_bins, **style)
        canvas.dress(ax, xlim=(0, 1), ylim=(0, 1.1 * max(float(counts.max()), high)), ylabel="rows")
        ax.set_xlabel("PIT value: predicted probability of a lower outcome")
        small = f"grey: {100 * self.confidence_level:g} % null range{self._shape_text}"
        canvas.draw_title(ax, f"{self._test_text} ({self.u.size:,} rows)", small)

    @property
    def _test_text(self) -> str:
        if self.test is None:
            return "not tested"
        name = "A² = " if self.cells is None else "T = "
        return f"{name}{self.test.statistic:.3g}, {p_text(self.test.pvalue)}"

    @property
    def _shape_text(self) -> str:
        return "" if self.test is None else f"; {self._shape(self.test)}"

    def _beyond(self, counts: Floats, low: float, high: float) -> Bools:
        """Return the bars beyond the null range, which is that of independent rows; none where nothing is tested."""
        return ((counts < low) | (counts > high)) & (self.test is not None)

    def _shape(self, test: TestResult) -> str:
        """Return the deviation that the histogram shows."""
        if test.pvalue > 1 - self.confidence_level:
            return "no significant deviation"
        mean, spread = float(self.u.mean()), float(self.u.std())
        if self.cells is not None:  # each row is uniform in its interval
            spread = float(np.sqrt(spread**2 + np.mean(np.diff(self.cells, axis=0) ** 2) / 12))
        lean = (mean - 0.5) * np.sqrt(12 * self.u.size)
        width = (spread**2 * 12 - 1) * np.sqrt(self.u.size / 0.8)  # the variance of (u - 1/2)^2 is 1/180
        if abs(lean) >= abs(width):
            return "forecasts underestimate" if lean > 0 else "forecasts overestimate"
        return "forecasts overconfident" if width > 0 else "forecasts underconfident"

    def _columns(self) -> dict[str, Any]:
        edges, counts, low, high = self._counts()
        limits = {"expected": self.u.size / self.n_bins, "band_low": low, "band_high": high}
        bars = {"left": edges[:-1], "right": edges[1:], "rows": counts}
        return bars | {name: np.full(self.n_bins, value) for name, value in limits.items()}

    def __repr__(self) -> str:
        return f"PITDisplay({self._test_text}, {self.u.size:,} rows)"

    def alt_text(self) -> str:
        _, counts, low, high = self._counts()
        text = f"Histogram of the PIT values of {self.u.size:,} rows in {self.n_bins} bars"
        if self.test is None:
            return f"{text}."
        beyond = int(np.count_nonzero(self._beyond(counts, low, high)))
        return (
            f"{text}, {beyond} of them outside the null range: {self._shape(self.test)} ({self.test.name} "
            f"{self.test.statistic:.3g}, {p_text(self.test.pvalue)})."
        )


@dataclass(eq=False, repr=False)
class CoverageDisplay(AxesDisplay):
    """Observed against nominal coverage of central intervals, at 1 % to 99 %, of one or several forecasts.

    On the diagonal the coverage is nominal; below it the forecasts are overconfident (narrow intervals), above it
    underconfident (wide intervals). The grey band is the pointwise 95 % null range of calibrated forecasts of that many
    rows (exact binomial limits). An outcome lies inside the interval of level L if its PIT value lies within L/2 of
    1/2. Discrete forecasts are spread over their interval of F(y), as in `PITDisplay`.

    `from_predictions` creates and draws it.

    Attributes
    ----------
    u : dict of name to PIT values
    figure_, ax_ : Figure, Axes
    band_ : PolyCollection
        Of the forecast with the most rows.
    curves_ : dict of name to line
        `data` has one row per forecast and level.
    confidence_level : float
        Level of the intervals of coverage.
    levels : sequence of float
        Coverages of the intervals that the forecasts state, drawn as points; the curve between them interpolates
        quantiles. Empty for forecasts that state whole distributions.
    cells : dict of name to pair of ndarray
        Bounds of the PIT values of discrete forecasts.

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

    _size = (5.6, 5.6)

    u: Mapping[str, Floats]
    confidence_level: float = 0.95
    levels: Sequence[float] = ()
    cells: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)

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
            raise InputError("forecast must have at least one forecast; got an empty mapping.")
        names = display_names(several)
        u, cells = {}, {}
        for name, each in zip(names, several.values(), strict=True):
            y, known = read_outcomes(y_true, each)
            u[name] = transforms(y, known, random_state=random_state)
            if known.is_discrete:
                cells[name] = known.cells(y)
        level = check_share("confidence_level", confidence_level)
        return cls(u, level, cells=cells).plot(ax=ax, fig=fig)

    def _observed(self, name: str, levels: Floats = _LEVELS) -> Floats:
        if name in self.cells:
            ends = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
            below = np.array([pit_shares(*self.cells[name], end[None]).mean() for end in ends])
            return np.asarray(below[levels.size :] - below[: levels.size])
        u = self.u[name]
        reach = np.sort(np.abs(2 * u - 1))
        return np.searchsorted(reach, levels * (1 + 1e-12), side="right") / u.size

    def _band(self) -> tuple[Floats, Floats]:
        from scipy.stats import binom

        size = max(u.size for u in self.u.values())
        tail = (1 - self.confidence_level) / 2
        return binom.ppf(tail, size, _LEVELS) / size, binom.ppf(1 - tail, size, _LEVELS) / size

    def _draw(self) -> None:
        ax, (low, high) = self.ax_, self._band()
        style: dict[str, Any] = {"color": canvas.blend(0.5), "alpha": 0.25, "lw": 0, "gid": "coverage-band"}
        self.band_: PolyCollection = ax.fill_between(_LEVELS, low, high, **style)
        ax.plot([0, 1], [0, 1], gid="coverage-diagonal", **canvas.dashes(0.6))
        ids, colours = canvas.ids_by_name(self.u), canvas.model_colours(len(self.u))
        stated = np.asarray(self.levels, dtype=np.float64)
        self.curves_: dict[str, Line2D] = {}
        for i, name in enumerate(self.u):
            gid, dash = f"coverage-{ids[name]}", canvas.dash(i // 6)
            (self.curves_[name],) = ax.plot(_LEVELS, self._observed(name), color=colours[i], lw=1.8, ls=dash, gid=gid)
            points: dict[str, Any] = {"ls": "", "marker": "o", "ms": 5.5, "zorder": 4, "gid": f"{gid}-levels"}
            ax.plot(stated, self._observed(name, stated), color=colours[i], **points)
        canvas.dress(ax, xlim=(0, 1), ylim=(0, 1), aspect="equal", adjustable="box")
        ax.set(xlabel="nominal coverage", ylabel="observed coverage")
        if len(self.u) > 1:
            above = np.mean([self._observed(name) - _LEVELS for name in self.u]) > 0
            corner = "lower right" if above else "upper left"  # where fewer curves are
            canvas.legend(ax, list(self.curves_.values()), list(self.curves_), loc=corner)
        shares = [f"{100 * share:.1f}" for share in sorted(self._at_ninety().values())]
        span = shares[0] if len(self.u) == 1 else f"{shares[0]} to {shares[-1]}"
        small = "points: stated intervals" if self.levels else "below the diagonal: overconfident"
        small = "counts: intervals of PIT values" if self.cells else small
        small = f"{small}; grey: {100 * self.confidence_level:g} % null range"
        canvas.draw_title(ax, f"90 % intervals cover {span} % of outcomes", small)

    def _at_ninety(self) -> dict[str, float]:
        return {name: float(self._observed(name)[89]) for name in self.u}

    def _columns(self) -> dict[str, Any]:
        low, high = self._band()
        parts = {name: {"level": _LEVELS, "observed": self._observed(name)} for name in self.u}
        return stacked("forecast", {name: {**part, "band_low": low, "band_high": high} for name, part in parts.items()})

    def __repr__(self) -> str:
        shares = [f"{name}: {100 * share:.1f} % in 90 % intervals" for name, share in self._at_ninety().items()]
        return f"CoverageDisplay({canvas.join_short(shares)})"

    def alt_text(self) -> str:
        shares = "; ".join(f"{name} {100 * share:.1f} %" for name, share in self._at_ninety().items())
        return f"Observed against nominal coverage of central intervals; share of outcomes in 90 % intervals: {shares}."
