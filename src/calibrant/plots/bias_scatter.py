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

from calibrant._support.formatting import p_text
from calibrant.inference.regression.bias_by_bin import BiasByBin, bias_by_bin
from calibrant.inference.regression.point_line import LinearFit, slope_intercept
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay, predict_numbers
from calibrant.tables.mean_table import MeanTable, read_mean_table
from calibrant.tables.rows import WeightOptions

_MOST_POINTS = 2_000  # rows that are drawn as dots
_CELLS = 80  # of the density image of more rows, along each side


@dataclass(eq=False, repr=False)
class BiasDisplay(AxesDisplay):
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
        After drawing; `data` has one row per bin.

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

    _size = (6.0, 6.0)

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
        biases = bias_by_bin(table, n_bins=n_bins, bins=bins)
        fit = slope_intercept(table) if np.ptp(table.prediction) > 0 else None
        return cls(table, biases, fit).plot(ax=ax, fig=fig)

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
        return cls.from_predictions(y, predict_numbers(estimator, X), **options)

    def _draw(self) -> None:
        ax, b, (low, high), red = self.ax_, self.bins.per_bin, self._limits(), canvas.event_colour()
        self.rows_: Artist | None = self._rows(low, high)
        (diagonal,) = ax.plot([low, high], [low, high], gid="bias-diagonal", **canvas.dashes(0.6))
        x, limits = b["mean_prediction"], (b["outcome_low"], b["outcome_high"])
        finite = np.isfinite(limits[0])
        style: dict[str, Any] = {"color": red, "alpha": 0.22, "lw": 0, "gid": "bias-band"}
        self.band_: PolyCollection = ax.fill_between(x[finite], *(limit[finite] for limit in limits), **style)
        (self.means_,) = ax.plot(x, b["mean_outcome"], color=red, lw=1.6, gid="bias-means")
        significant = self.bins.significant
        self.points_: list[Line2D] = []
        for chosen, face, name in (
            (significant, canvas.REJECTED, "bias-significant"),
            (~significant, ax.get_facecolor(), "bias-not-significant"),
        ):
            style = {"ls": "", "marker": "o", "ms": 6, "mec": red, "mfc": face, "gid": name, "zorder": 4}
            self.points_ += ax.plot(x[chosen], b["mean_outcome"][chosen], **style)
        handles: list[Any] = [diagonal, self.means_]
        labels = ["expected if calibrated", f"mean outcome, {100 * self.bins.level:g} % CI"]
        self.line_: Line2D | None = None
        if self.fit is not None:
            reach = np.array([self.table.prediction.min(), self.table.prediction.max()])
            line = self.fit.intercept.value + self.fit.slope.value * reach
            (self.line_,) = ax.plot(reach, line, color=canvas.model_colours(1)[0], lw=1.2, gid="bias-line")
            handles.append(self.line_)
            labels.append(f"linear fit, slope {self.fit.slope.value:.3g}")
        self._dress(low, high, handles, labels)

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
            style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 3, "mew": 0, "alpha": 0.4, "gid": "bias-rows"}
            (dots,) = self.ax_.plot(t.prediction, t.mean, color=canvas.blend(0.55), **style)
            return dots
        span = [[low, high], [low, high]]
        counts, _, _ = np.histogram2d(t.prediction, t.mean, bins=_CELLS, range=span, weights=t.n)
        shades = LinearSegmentedColormap.from_list("rows", [self.ax_.get_facecolor(), canvas.blend(0.75)])
        style = {"origin": "lower", "extent": (low, high, low, high), "interpolation": "nearest", "aspect": "auto"}
        visible = np.sqrt(counts.T)  # makes cells with few rows visible
        return self.ax_.imshow(visible, cmap=shades, gid="bias-rows", **style)

    def _dress(self, low: float, high: float, handles: list[Any], labels: list[str]) -> None:
        ax, t = self.ax_, self.table
        canvas.dress(ax, xlim=(low, high), ylim=(low, high), aspect="equal", adjustable="box")
        ax.set(xlabel="predicted", ylabel="observed")
        ax.locator_params(nbins=6)
        for side in (ax.xaxis, ax.yaxis):  # no multiplier at the end of the axis, where the title is
            side.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}" if abs(v) < 1e7 else f"{v:.3g}"))
        canvas.legend(ax, handles, labels, loc="upper left")
        outside = int(np.count_nonzero((t.mean < low) | (t.mean > high)))
        beyond = int(np.count_nonzero(self.bins.significant))
        small = f"{beyond} of {len(self.bins)} bins significant (filled)"
        small += f"; {outside:,} outcomes outside the axes" if outside else ""
        canvas.draw_title(ax, f"{self._error_text}, {self._test_text()}", small)

    @property
    def _error(self) -> float:
        return float(self.table.mean_prediction - self.table.mean_outcome)

    @property
    def _error_text(self) -> str:
        return f"mean error {self._error:+.4g}"

    def _test_text(self) -> str:
        p = self.bins.test.pvalue
        return "too few rows for a test" if np.isnan(p) else f"all bins: {p_text(p)}"

    def _columns(self) -> dict[str, Any]:
        return {**self.bins.per_bin, "significant": self.bins.significant}

    def __repr__(self) -> str:
        return f"BiasDisplay({self._error_text}, {self._test_text()}, {self.table.size:,.6g} rows)"

    def alt_text(self) -> str:
        error, significant = self._error, int(np.count_nonzero(self.bins.significant))
        direction = "overestimate" if error > 0 else "underestimate"
        mean = f"predictions {direction} by {abs(error):.4g} on average" if error else "predictions have no mean error"
        return (
            f"Observed outcomes against predictions, rows: {self.table.size:,.6g}; {mean}; the bias is significant in "
            f"{significant} of {len(self.bins)} bins ({self._test_text()})."
        )
