"""`NullDisplay`: where a value falls among those that a right model would read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch

from calibrant._support.errors import InputError
from calibrant._support.formatting import Form, p_is
from calibrant._support.random_streams import RandomState
from calibrant.inference.intervals import Null
from calibrant.inference.intervals import null as null_of
from calibrant.inference.resampling import Measure
from calibrant.metrics.calibration_errors import TCE
from calibrant.plots._canvas import frame_of, headline, single
from calibrant.plots._palette import ACCEPTED, event, mixed
from calibrant.plots._sources import counted, estimated, metric_of

__all__ = ["NullDisplay"]


@dataclass(eq=False)
class NullDisplay:
    """A value of a metric in its null distribution: what the same predictions would read if they were right.

    The histogram holds the readings of data sets whose outcomes were drawn from the predictions; their middle 95 % is
    the grey band. A value far to the right of it is not chance.

    Make it with `from_predictions`, `from_estimator`, `from_breakdown` or `from_null`, which draw it.

    Attributes
    ----------
    null : Null
    figure_, ax_, histogram_, band_, value_, expected_
        After drawing.

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> display = NullDisplay.from_breakdown(ECE()(table), fig=Figure())
    >>> bool(display.value_.get_xdata()[0] == ECE()(table).value)
    True
    """

    null: Null

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        metric: Measure | None = None,
        n_resamples: int = 999,
        random_state: RandomState = 0,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Any,
    ) -> "NullDisplay":
        """Measure predictions, draw outcomes from them, and draw.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`.
        metric : metric object, default=TCE()
        n_resamples, random_state
            See `calibrant.null`.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.
        """
        chosen = TCE() if metric is None else metric
        found = null_of(chosen, y_true, y_prob, n_resamples=n_resamples, random_state=random_state, **rows)
        return cls.from_null(found, ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "NullDisplay":
        """Predict with a fitted classifier, measure, and draw; options as for `from_predictions`."""
        return cls.from_predictions(y, estimated(estimator, X, options), **options)

    @classmethod
    def from_breakdown(cls, breakdown: Any, **options: Any) -> "NullDisplay":
        """The null of what was measured; options as for `from_predictions` but the metric."""
        return cls.from_predictions(counted(breakdown), metric=metric_of([breakdown]), **options)

    @classmethod
    def from_null(cls, null: Null, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "NullDisplay":
        """Draw what `calibrant.null` gave."""
        return cls(null).plot(ax=ax, fig=fig)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "NullDisplay":
        """Draw in `ax`, in `fig`, or in a new figure."""
        n, counts, edges = self.null, *self._counts()
        self.ax_ = single(ax, fig, (6.4, 3.6))
        self.figure_ = self.ax_.figure
        self.histogram_: StepPatch = self.ax_.stairs(counts, edges, fill=True, color=ACCEPTED, gid="null-histogram")
        self.band_: Patch = self.ax_.axvspan(n.low, n.high, color=mixed(0.5), alpha=0.18, lw=0, gid="null-band")
        self.expected_: Line2D = self.ax_.axvline(
            n.expected, color=mixed(0.6), lw=1, ls=(0, (4, 3)), gid="null-expected"
        )
        self.value_: Line2D = self._mark_value(edges)
        self.ax_.set_ylim(0, counts.max() * 1.15)
        self.ax_.set_xlabel(f"{n.metric}{' (%)' if n.unit == '%' else ''} of right models", parse_math=False)
        self.ax_.set_ylabel("draws")
        self.ax_.locator_params(axis="x", nbins=6)
        self.ax_.spines[["top", "right"]].set_visible(False)
        form = Form.of(n.unit, n.high - n.low, signed=n.low < 0)
        headline(
            self.ax_,
            f"{n.metric} = {form.amount(n.value)} (red), {p_is(n.pvalue)}",
            f"a right model reads {form.span(n.low, n.high)} (grey; dashed: on average)",
        )
        return self

    def _mark_value(self, edges: Any) -> Line2D:
        """A line at the value; an infinite one has an arrow at the end of the axis."""
        n = self.null
        if np.isfinite(n.value):
            return self.ax_.axvline(n.value, color=event(), lw=2.4, gid="null-value")
        end = 1.0 if n.value > 0 else 0.0
        style: dict[str, Any] = {"color": event(), "ms": 10, "clip_on": False, "transform": self.ax_.transAxes}
        (mark,) = self.ax_.plot([end], [0.5], ls="", marker=">" if end else "<", gid="null-value", **style)
        return mark

    def _counts(self) -> tuple[Any, Any]:
        values = self.null.replicates[np.isfinite(self.null.replicates)]
        if not values.size:
            raise InputError("This null has no finite replicates to draw.", argument="null")
        low, high = float(values.min()), float(values.max())
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):  # all equal: one narrow bar
            reach = max(abs(low), abs(self.null.value), 1.0) * 0.01
            return np.array([values.size]), np.array([low - reach, low + reach])
        return np.histogram(values, bins=int(np.clip(np.sqrt(values.size) * 1.3, 8, 60)))

    def data(self, backend: str = "pandas") -> Any:
        """What was drawn, one row a bar; the value, what is expected and the band stand in each."""
        counts, edges = self._counts()
        n = self.null
        marks = {"value": n.value, "expected": n.expected, "band_low": n.low, "band_high": n.high, "pvalue": n.pvalue}
        bars = {"left": edges[:-1], "right": edges[1:], "draws": counts}
        return frame_of(bars | {name: np.full(counts.size, mark) for name, mark in marks.items()}, backend)

    def alt_text(self) -> str:
        """The diagram in one sentence."""
        n = self.null
        form = Form.of(n.unit, n.high - n.low, signed=n.low < 0)
        place = "above" if n.value > n.high else "below" if n.value < n.low else "inside"
        return (
            f"Histogram of {n.metric} in {n.n_resamples:,} draws from a right model, the middle {100 * n.level:g} % "
            f"from {form.span(n.low, n.high)}; the value of the data, {form.amount(n.value)}, lies {place} that band "
            f"({p_is(n.pvalue)})."
        )
