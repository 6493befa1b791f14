"""`NullDisplay`: the null distribution of a metric, with the observed value."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch

from calibrant._support.errors import InputError
from calibrant._support.formatting import NumberFormat, p_text
from calibrant._support.random_streams import RandomState
from calibrant.metrics.bins import PANEL_BINS
from calibrant.metrics.calibration_errors import TCE
from calibrant.metrics.registry import MetricLike
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, result_table, shared_metric
from calibrant.results.uncertainty import Null
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import read_score_table


@dataclass(eq=False, repr=False)
class NullDisplay(ScoreDisplay):
    """The null distribution of a metric (its distribution if the model is calibrated), with the observed value.

    The histogram shows the metric of data sets whose outcomes are simulated from the predictions. The grey band is the
    null range, the central 95 % of these values; the dashed line is their mean.

    `from_predictions`, `from_estimator`, `from_breakdown` or `from_null` creates and draws it.

    Attributes
    ----------
    null : Null
    figure_, ax_, histogram_, band_, value_, expected_
        After drawing; `data` has one row per bar, with the value, the expected value and the null range in each.

    See Also
    --------
    null

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> display = NullDisplay.from_breakdown(ECE()(table), fig=Figure())
    >>> bool(display.value_.get_xdata()[0] == ECE()(table).value)
    True
    """

    _size = (6.4, 3.6)

    null: Null

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        metric: MetricLike | None = None,
        n_resamples: int = 999,
        random_state: RandomState = 0,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "NullDisplay":
        """Compute the metric and its null distribution, and draw them.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`.
        metric : metric object, its function or class, or a name in `METRICS`, optional
            By default TCE with the bins of its diagram, `TestBasedReliabilityDisplay`.
        n_resamples, random_state
            See `calibrant.null`.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        NullDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        from calibrant.evaluation.metric_inference import null

        chosen, table = TCE(bins=PANEL_BINS) if metric is None else metric, read_score_table(y_true, y_prob, rows)
        found = null(chosen, table, n_resamples=n_resamples, random_state=random_state)
        return cls.from_null(found, ax=ax, fig=fig)

    @classmethod
    def from_breakdown(cls, breakdown: Any, **options: Any) -> "NullDisplay":
        """Draw the null distribution of a result; options as for `from_predictions` except the metric.

        Parameters
        ----------
        breakdown : MetricValue or Breakdown
            Result of a metric, with its table.
        **options
            Those of `from_predictions`.

        Returns
        -------
        NullDisplay
            The display, drawn.
        """
        return cls.from_predictions(result_table(breakdown), metric=shared_metric([breakdown]), **options)

    @classmethod
    def from_null(cls, null: Null, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "NullDisplay":
        """Draw the result of `calibrant.null`.

        Parameters
        ----------
        null : Null
            Result of `calibrant.null`.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        NullDisplay
            The display, drawn.
        """
        return cls(null).plot(ax=ax, fig=fig)

    def _draw(self) -> None:
        ax, n, (counts, edges) = self.ax_, self.null, self._counts()
        self.histogram_: StepPatch = ax.stairs(counts, edges, fill=True, color=canvas.ACCEPTED, gid="null-histogram")
        self.band_: Patch = ax.axvspan(n.low, n.high, color=canvas.blend(0.5), alpha=0.18, lw=0, gid="null-band")
        self.expected_: Line2D = ax.axvline(n.expected, **canvas.dashes(0.6), gid="null-expected")
        self.value_: Line2D = self._mark_value()
        canvas.dress(ax, ylim=(0, counts.max() * 1.15), ylabel="replicates")
        ax.set_xlabel(f"{n.metric}{' (%)' if n.unit == '%' else ''} if calibrated", parse_math=False)
        ax.locator_params(axis="x", nbins=6)
        value, expected = self._texts
        small = f"expected if calibrated: {expected} (grey; dashed: mean)"
        canvas.draw_title(ax, f"{n.metric} = {value} (red), {p_text(n.pvalue)}", small)

    @property
    def _texts(self) -> tuple[str, str]:
        """The value and the null range as text."""
        n = self.null
        form = NumberFormat.for_spread(n.unit, n.high - n.low, signed=n.low < 0)
        return form.value(n.value), form.range(n.low, n.high)

    def _mark_value(self) -> Line2D:
        """Draw a line at the value, or an arrow at the end of the axis if it is infinite."""
        n = self.null
        if np.isfinite(n.value):
            return self.ax_.axvline(n.value, color=canvas.event_colour(), lw=2.4, gid="null-value")
        end = 1.0 if n.value > 0 else 0.0
        style: dict[str, Any] = {
            "color": canvas.event_colour(),
            "ms": 10,
            "clip_on": False,
            "transform": self.ax_.transAxes,
        }
        (mark,) = self.ax_.plot([end], [0.5], ls="", marker=">" if end else "<", gid="null-value", **style)
        return mark

    def _counts(self) -> tuple[Any, Any]:
        values = self.null.replicates[np.isfinite(self.null.replicates)]
        if not values.size:
            raise InputError("null must have finite replicates; got none.")
        low, high = float(values.min()), float(values.max())
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):  # all equal: one narrow bar
            reach = max(abs(low), abs(self.null.value), 1.0) * 0.01
            return np.array([values.size]), np.array([low - reach, low + reach])
        return np.histogram(values, bins=int(np.clip(np.sqrt(values.size) * 1.3, 8, 60)))

    def _columns(self) -> dict[str, Any]:
        n, (counts, edges) = self.null, self._counts()
        marks = {"value": n.value, "expected": n.expected, "band_low": n.low, "band_high": n.high, "pvalue": n.pvalue}
        bars = {"left": edges[:-1], "right": edges[1:], "replicates": counts}
        return bars | {name: np.full(counts.size, mark) for name, mark in marks.items()}

    def __repr__(self) -> str:
        value, expected = self._texts
        return f"NullDisplay({self.null.metric} = {value}, null range {expected}, {p_text(self.null.pvalue)})"

    def alt_text(self) -> str:
        n, (value, expected) = self.null, self._texts
        place = "above" if n.value > n.high else "below" if n.value < n.low else "within"
        return (
            f"Null distribution of {n.metric} ({n.n_resamples:,} replicates), {100 * n.level:g} % null range "
            f"{expected}; the observed value, {value}, lies {place} that range ({p_text(n.pvalue)})."
        )
