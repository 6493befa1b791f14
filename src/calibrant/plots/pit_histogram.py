"""`PITDisplay`: histogram of PIT values, uniform for calibrated forecasts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.arrays import Floats
from calibrant._support.errors import check_count, check_share
from calibrant._support.formatting import p_text
from calibrant._support.random_streams import RandomState
from calibrant.inference.regression.uniformity import anderson_darling
from calibrant.metrics.distribution import pit, read_pit
from calibrant.plots._canvas import draw_title, drawn_frame, rectangle, shapes, single_axes
from calibrant.plots._palette import ACCEPTED, REJECTED, blend
from calibrant.results.verdict import TestResult

__all__ = ["PITDisplay"]


def default_bars(rows: int) -> int:
    """Return the number of bars: 10, or 20 from 2,000 rows on."""
    return 20 if rows >= 2000 else 10


@dataclass(eq=False, repr=False)
class PITDisplay:
    """Histogram of the probability integral transforms, with its null range.

    The PIT values of calibrated forecasts are uniform. A histogram that is high at both ends shows overconfident
    forecasts, one that is high in the middle underconfident ones, a rising one underestimation, a falling one
    overestimation. The grey band is the simultaneous 95 % null range of all bars (exact binomial limits of each bar, at
    a level divided by the number of bars); bars outside of it are orange.

    `from_predictions` or `from_pit` creates and draws it.

    Attributes
    ----------
    u : ndarray
    n_bins : int
    test : TestResult
        Anderson and Darling's.
    figure_, ax_, bars_, band_, expected_
        After drawing.
    confidence_level : float
        Level of the range of each bar if calibrated.

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

    u: Floats
    n_bins: int
    test: TestResult
    confidence_level: float = 0.95

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
        u = pit(y_true, forecast, random_state=random_state)
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
        counts = np.bincount(np.searchsorted(edges[1:-1], self.u, side="right"), minlength=self.n_bins)
        tail = (1 - self.confidence_level) / (2 * self.n_bins)
        low, high = binom.ppf([tail, 1 - tail], self.u.size, 1 / self.n_bins)
        return edges, counts.astype(np.float64), float(low), float(high)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "PITDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        PITDisplay
            This display; artists are attributes that end in ``_``.
        """
        edges, counts, low, high = self._counts()
        self.ax_ = single_axes(ax, fig, (6.4, 3.8))
        self.figure_ = self.ax_.figure
        boxes = [rectangle(edges[i], edges[i + 1], 0.0, counts[i]) for i in range(self.n_bins)]
        beyond = (counts < low) | (counts > high)
        style: dict[str, Any] = {"ec": self.ax_.get_facecolor(), "lw": 0.8}
        inside = [None if out else box for box, out in zip(boxes, beyond, strict=True)]
        outside = [box if out else None for box, out in zip(boxes, beyond, strict=True)]
        self.bars_ = shapes(self.ax_, inside, "pit-bar-{}", fc=ACCEPTED, **style)
        self.bars_ += shapes(self.ax_, outside, "pit-bar-{}", fc=REJECTED, **style)
        self.band_: Patch = self.ax_.axhspan(low, high, color=blend(0.5), alpha=0.22, lw=0, gid="pit-band", zorder=3)
        self.expected_: Line2D = self.ax_.axhline(
            self.u.size / self.n_bins, color=blend(0.7), lw=1, ls=(0, (4, 3)), gid="pit-expected", zorder=4
        )
        self.ax_.set_xlim(0, 1)
        self.ax_.set_ylim(0, 1.1 * max(float(counts.max()), high))
        self.ax_.set_xlabel("PIT value: predicted probability of a lower outcome")
        self.ax_.set_ylabel("rows")
        self.ax_.spines[["top", "right"]].set_visible(False)
        draw_title(
            self.ax_,
            f"A² = {self.test.statistic:.3g}, {p_text(self.test.pvalue)} ({self.u.size:,} rows)",
            f"grey: {100 * self.confidence_level:g} % null range; {self._shape()}",
        )
        return self

    def _shape(self) -> str:
        """Return the deviation that the histogram shows."""
        if self.test.pvalue > 1 - self.confidence_level:
            return "no significant deviation"
        mean, spread = float(self.u.mean()), float(self.u.std())
        lean = (mean - 0.5) * np.sqrt(12 * self.u.size)
        width = (spread**2 * 12 - 1) * np.sqrt(self.u.size / 0.8)  # the variance of (u - 1/2)^2 is 1/180
        if abs(lean) >= abs(width):
            return "forecasts underestimate" if lean > 0 else "forecasts overestimate"
        return "forecasts overconfident" if width > 0 else "forecasts underconfident"

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per bar.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        edges, counts, low, high = self._counts()
        size = np.full(self.n_bins, 1.0)
        return drawn_frame(
            {
                "left": edges[:-1],
                "right": edges[1:],
                "rows": counts,
                "expected": size * self.u.size / self.n_bins,
                "band_low": low * size,
                "band_high": high * size,
            },
            backend,
        )

    def __repr__(self) -> str:
        return f"PITDisplay(A² = {self.test.statistic:.3g}, {p_text(self.test.pvalue)}, {self.u.size:,} rows)"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        _, counts, low, high = self._counts()
        beyond = int(np.count_nonzero((counts < low) | (counts > high)))
        return (
            f"Histogram of the PIT values of {self.u.size:,} rows in {self.n_bins} bars, {beyond} of them outside the "
            f"null range: {self._shape()} (Anderson-Darling {self.test.statistic:.3g}, "
            f"{p_text(self.test.pvalue)})."
        )
