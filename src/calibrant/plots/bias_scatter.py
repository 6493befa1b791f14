"""`BiasDisplay`: observed outcomes against point predictions, with the mean outcome of each bin."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from calibrant._support.errors import InputError
from calibrant._support.formatting import p_text
from calibrant.inference.regression.bias_by_bin import BiasByBin, bias_by_bin
from calibrant.inference.regression.point_line import LinearFit, slope_intercept
from calibrant.plots._canvas import draw_title, drawn_frame, legend, single_axes
from calibrant.plots._palette import REJECTED, blend, event_colour, model_colours
from calibrant.tables.mean_table import MeanTable, read_mean_table
from calibrant.tables.rows import WeightOptions

__all__ = ["BiasDisplay"]

_MOST_POINTS = 2_000  # rows that are drawn as dots
_CELLS = 80  # of the density image of more rows, along each side


@dataclass(eq=False, repr=False)
class BiasDisplay:
    """Observed outcomes (vertical) against point predictions (horizontal).

    Dots are rows (a density image for many rows). The line connects the mean outcomes of the bins, and the band is
    their confidence interval. On the dashed diagonal the mean outcome equals the prediction; below it predictions
    overestimate, above it they underestimate. Filled points are bins with a significant bias (Holm). The thin line is
    the linear regression of outcomes on predictions, the recalibration of Bella et al. (their Figure 2).

    `from_predictions` or `from_estimator` creates and draws it.

    Attributes
    ----------
    table : MeanTable
    bins : BiasByBin
    fit : LinearFit or None
        The regression of outcomes on predictions; None where all predictions are equal.
    figure_, ax_, rows_, band_, means_, line_
        After drawing.

    See Also
    --------
    bias_by_bin, RECDisplay

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> display = BiasDisplay.from_predictions(y, 0.8 * y + rng.normal(size=500) / 4, fig=Figure())
    >>> len(display.data())
    10
    """

    table: MeanTable
    bins: BiasByBin
    fit: LinearFit | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any = None,
        *,
        n_bins: int | None = None,
        bins: Any = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[WeightOptions],
    ) -> "BiasDisplay":
        """Compute the bias by bin and draw it.

        Parameters
        ----------
        y_true, y_pred : columns
            Outcomes and predictions; or one `MeanTable`.
        n_bins, bins
            See `calibrant.regression.bias_by_bin`.
        ax, fig
            See `plot`.
        sample_weight, frequency, missing
            How rows are read; see `MeanTable.from_arrays`.

        Returns
        -------
        BiasDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        table = read_mean_table(y_true, y_pred, rows)
        found = bias_by_bin(table, n_bins=n_bins, bins=bins)
        fit = slope_intercept(table) if np.ptp(table.prediction) > 0 else None
        return cls(table, found, fit).plot(ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "BiasDisplay":
        """Predict with a fitted regressor and draw; options as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted regressor
        X : array or frame of n rows
            Features, as the estimator takes them.
        y : column of n outcomes
        **options
            Those of `from_predictions`.

        Returns
        -------
        BiasDisplay
            The display, drawn.
        """
        if not hasattr(estimator, "predict"):
            raise InputError(f"{type(estimator).__name__} has no predict.", argument="estimator")
        return cls.from_predictions(y, estimator.predict(X), **options)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "BiasDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        BiasDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.ax_ = single_axes(ax, fig, (6.0, 6.0))
        self.figure_ = self.ax_.figure
        low, high = self._limits()
        self.rows_: Artist | None = self._rows(low, high)
        (diagonal,) = self.ax_.plot(
            [low, high], [low, high], color=blend(0.6), lw=1, ls=(0, (4, 3)), gid="bias-diagonal"
        )
        b = self.bins.per_bin
        known = np.isfinite(b["outcome_low"])
        x = b["mean_prediction"]
        self.band_: PolyCollection = self.ax_.fill_between(
            x[known],
            b["outcome_low"][known],
            b["outcome_high"][known],
            color=event_colour(),
            alpha=0.22,
            lw=0,
            gid="bias-band",
        )
        (self.means_,) = self.ax_.plot(x, b["mean_outcome"], color=event_colour(), lw=1.6, gid="bias-means")
        beyond = self.bins.significant
        paper = self.ax_.get_facecolor()
        self.points_: list[Line2D] = []
        for some, face in ((beyond, REJECTED), (~beyond, paper)):
            style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6, "mec": event_colour(), "mfc": face}
            name = "bias-significant" if some is beyond else "bias-not-significant"
            self.points_ += self.ax_.plot(x[some], b["mean_outcome"][some], gid=name, zorder=4, **style)
        handles: list[Any] = [diagonal, self.means_]
        labels = ["expected if calibrated", f"mean outcome, {100 * self.bins.level:g} % CI"]
        self.line_: Line2D | None = None
        if self.fit is not None:
            fit = self.fit
            reach = np.array([self.table.prediction.min(), self.table.prediction.max()])
            (self.line_,) = self.ax_.plot(
                reach, fit.intercept.value + fit.slope.value * reach, color=model_colours(1)[0], lw=1.2, gid="bias-line"
            )
            handles.append(self.line_)
            labels.append(f"linear fit, slope {fit.slope.value:.3g}")
        self._dress(low, high, handles, labels)
        return self

    def _limits(self) -> tuple[float, float]:
        """Return the limits of both axes: all predictions, and all but the most extreme outcomes."""
        t = self.table
        tails = np.quantile(t.mean, [0.002, 0.998])
        ends = [t.prediction.min(), t.prediction.max(), *tails]
        low, high = float(min(ends)), float(max(ends))
        room = 0.03 * (high - low) or max(abs(low), 1.0) * 0.05
        return low - room, high + room

    def _rows(self, low: float, high: float) -> Artist | None:
        t = self.table
        if not t.has_rows:
            return None
        if len(t) <= _MOST_POINTS:
            (dots,) = self.ax_.plot(
                t.prediction, t.mean, ls="", marker="o", ms=3, mew=0, color=blend(0.55), alpha=0.4, gid="bias-rows"
            )
            return dots
        span = [[low, high], [low, high]]
        counts, _, _ = np.histogram2d(t.prediction, t.mean, bins=_CELLS, range=span, weights=t.n)
        shades = LinearSegmentedColormap.from_list("rows", [self.ax_.get_facecolor(), blend(0.75)])
        return self.ax_.imshow(
            np.sqrt(counts.T),  # makes cells with few rows visible
            origin="lower",
            extent=(low, high, low, high),
            cmap=shades,
            interpolation="nearest",
            aspect="auto",
            gid="bias-rows",
        )

    def _dress(self, low: float, high: float, handles: list[Any], labels: list[str]) -> None:
        ax, t = self.ax_, self.table
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlabel("predicted")
        ax.set_ylabel("observed")
        ax.locator_params(nbins=6)
        for side in (ax.xaxis, ax.yaxis):  # no multiplier at the end of the axis, where the title is
            side.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}" if abs(v) < 1e7 else f"{v:.3g}"))
        ax.spines[["top", "right"]].set_visible(False)
        legend(ax, handles, labels, loc="upper left")
        outside = int(np.count_nonzero((t.mean < low) | (t.mean > high)))
        beyond = int(np.count_nonzero(self.bins.significant))
        small = f"{beyond} of {len(self.bins)} bins significant (filled)"
        small += f"; {outside:,} outcomes outside the axes" if outside else ""
        error = t.mean_prediction - t.mean_outcome
        draw_title(ax, f"mean error {error:+.4g}, {self._test_text()}", small)

    def _test_text(self) -> str:
        p = self.bins.test.pvalue
        return "too few rows for a test" if np.isnan(p) else f"all bins: {p_text(p)}"

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per bin.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return drawn_frame({**self.bins.per_bin, "significant": self.bins.significant}, backend)

    def __repr__(self) -> str:
        error = self.table.mean_prediction - self.table.mean_outcome
        return f"BiasDisplay(mean error {error:+.4g}, {self._test_text()}, {self.table.size:,.6g} rows)"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        t = self.table
        error = t.mean_prediction - t.mean_outcome
        beyond = int(np.count_nonzero(self.bins.significant))
        direction = "overestimate" if error > 0 else "underestimate"
        mean = f"predictions {direction} by {abs(error):.4g} on average" if error else "predictions have no mean error"
        return (
            f"Observed outcomes against predictions, rows: {t.size:,.6g}; {mean}; the bias is significant in "
            f"{beyond} of {len(self.bins)} bins ({self._test_text()})."
        )
