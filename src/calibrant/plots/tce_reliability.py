"""`TestBasedReliabilityDisplay`: the reliability diagram of TCE."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path

from calibrant._support.arrays import Bools, Floats, Ints, true_runs
from calibrant._support.errors import InputError
from calibrant._support.formatting import NumberFormat, p_text
from calibrant._support.random_streams import RandomState
from calibrant._support.workers import cached_property
from calibrant.evaluation.metric_inference import null
from calibrant.metrics.calibration_errors import TCE
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import tests_scores
from calibrant.metrics.rejection_profile import MAX_BINS, RejectionProfile, cells_per_bin
from calibrant.plots._canvas import (
    MOST_SINGLE,
    Axis,
    Scale,
    check_place,
    distinct_labels,
    drawn_frame,
    labels_fit,
    legend,
    legend_above,
    rectangle,
    shapes,
    strokes,
)
from calibrant.plots._density import Violin, choose_scale, quantile, violins
from calibrant.plots._inputs import check_breakdown, predict_scores
from calibrant.plots._palette import ACCEPTED, REJECTED, blend, event_colour
from calibrant.plots._panels import Panels, histogram_bars
from calibrant.plots._split_bins import DrawnBins
from calibrant.results.text import bins_text, rows_text
from calibrant.results.uncertainty import Null
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, read_score_table

__all__ = ["TestBasedReliabilityDisplay"]

_HALF = 0.42  # half the width of the shapes of a bin; bins are 1 apart
_PANELS: dict[str, Any] = {"heights": (4, 1), "size": (8, 5.6)}
_MANY = 60  # bins; with more, shapes are simpler and files smaller


@dataclass(eq=False, repr=False)
class TestBasedReliabilityDisplay:
    """The test-based reliability diagram: Figure 1 (left) of Matsubara et al. (2023), the diagram of TCE.

    Each bin shows the distribution of its predictions (a violin, orange where the exact test against the bin's outcomes
    rejects them) and the event rate as a dark red line with its exact confidence interval. The lower panel shows the
    size of each bin with the rejected rows in orange, the right panel the histogram of all predictions. If a model is
    calibrated, the lines lie within the violins.

    Where scores crowd an end of [0, 1] and the bin at an end has most events (or most of the other outcome, if that
    is rarer), it is drawn in up to five parts of equal information, which depend on no outcome: each with its own
    predictions, rate and size, on a grey ground. The test still compares each prediction with the rate of the whole
    bin, a dashed line, so that the rejected rows of all parts add up to those of the metric.

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    breakdown : Breakdown
        Of TCE, or any metric whose loss tests scores, such as `losses.RejectionRate`.
    null : Null or None
        Null distribution of the metric; its range is part of the title.
    confidence_level : float
        Of the confidence intervals of the rates (Clopper and Pearson).
    profile : RejectionProfile or None
        Decisions of the test within each bin, if they are known; otherwise they are computed when drawn.
    figure_, ax_, ax_sizes_, ax_histogram_
        Figure and axes, after drawing; the last two are None in given axes.
    accepted_violins_, rejected_violins_, rates_, intervals_, accepted_sizes_, rejected_sizes_, histogram_
        Lists of artists: one per drawn bin that has such a shape. The id (gid) of each is
        ``test-based-bin-<number>-<shape>``, numbered from 0 as the rows of `data`. With more than 60 bins rate and
        interval are one shape; with more than 200 there are no intervals, and all shapes of a kind are one artist.
    scale : str
        Scale of the axes.
    ymax : float or None
        End of the axis of rates.

    See Also
    --------
    ReliabilityDisplay, TCE, BinningDisplay

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> display = TestBasedReliabilityDisplay.from_breakdown(TCE()(table), fig=Figure())
    >>> [bar.get_gid() for bar in display.rejected_sizes_]
    ['test-based-bin-0-size-rejected']
    >>> display.data()["rejected"].tolist()
    [50, 0, 0]
    """

    __test__ = False  # not a test case of pytest

    breakdown: Breakdown
    null: Null | None = None
    confidence_level: float = 0.95
    scale: Scale | None = None
    ymax: float | None = None
    profile: RejectionProfile | None = None

    def __post_init__(self) -> None:
        if not tests_scores(check_breakdown(self.breakdown).definition.loss):
            raise InputError(
                f"breakdown must be of a metric whose loss tests scores, such as TCE; got {self.breakdown.metric}.",
                hint="Pass the Breakdown of cb.TCE(), or use ReliabilityDisplay.",
                argument="breakdown",
            )
        if len(self.breakdown.partition) > MAX_BINS:
            raise InputError(
                f"breakdown must have at most {MAX_BINS:,} bins; got {len(self.breakdown.partition):,}.",
                hint="Use larger bins, such as PAVABC() or Quantile(100).",
                argument="breakdown",
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        metric: GCE | None = None,
        n_resamples: int = 199,
        random_state: RandomState = 0,
        confidence_level: float = 0.95,
        scale: Scale | None = None,
        ymax: float | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "TestBasedReliabilityDisplay":
        """Compute TCE and draw its diagram.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`.
        metric : GCE, default=TCE()
            Any whose loss tests scores: ``TCE(bins=PAVABC.consistent(), alpha=0.01)``.
        n_resamples : int, default=199
            Replicates of the null distribution; 0 skips it.
        random_state : int, Generator or None, default=0
        confidence_level : float, default=0.95
            Of the confidence intervals of the rates.
        scale, ymax, ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        TestBasedReliabilityDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        gce = TCE() if metric is None else metric
        table = read_score_table(y_true, y_prob, rows)
        breakdown = gce(table)
        display = cls(breakdown, None, confidence_level, scale, ymax)  # rejects other losses before resampling
        if n_resamples:
            display.null = null(gce, table, n_resamples=n_resamples, random_state=random_state)
        return display.plot(ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "TestBasedReliabilityDisplay":
        """Predict with a fitted classifier and draw; options as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted classifier
        X : array or frame of n rows
            Features, as the estimator takes them.
        y : column of n outcomes
        **options
            Those of `from_predictions`.

        Returns
        -------
        TestBasedReliabilityDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, predict_scores(estimator, X, options), **options)

    @classmethod
    def from_breakdown(
        cls,
        breakdown: Breakdown,
        *,
        null: Null | None = None,
        confidence_level: float = 0.95,
        scale: Scale | None = None,
        ymax: float | None = None,
        profile: RejectionProfile | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "TestBasedReliabilityDisplay":
        """Draw a result.

        Parameters
        ----------
        breakdown : Breakdown
            Result of TCE.
        null : Null, optional
            Result of `calibrant.null`; adds the null range to the title.
        confidence_level : float, default=0.95
            Of the intervals of event rates.
        scale, ymax, ax, fig
            See `plot`.
        profile : RejectionProfile, optional
            Decisions of the test that an evaluation stores.

        Returns
        -------
        TestBasedReliabilityDisplay
            The display, drawn.
        """
        return cls(breakdown, null, confidence_level, scale, ymax, profile).plot(ax=ax, fig=fig)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        scale: Scale | None = None,
        ymax: float | None = None,
    ) -> "TestBasedReliabilityDisplay":
        """Draw in `ax`, in `fig`, or in a new figure; omitted options keep their values.

        Parameters
        ----------
        ax : Axes, optional
            Used as given, without the outer panels and the title.
        fig : Figure or SubFigure, optional
        scale : {"linear", "log", "logit"}, optional
            Of the axis of probabilities; by default "logit" where at least 80 % of the predictions lie within 0.1 of an
            end, else "linear". "log" magnifies rare events, "logit" both ends. Values beyond an end, such as
            0 and 1, are drawn at the end, and its tick label starts with "≤" or "≥".
        ymax : float, optional
            Upper end of the axis; triangles mark bins that continue above it. The default is 1, or less if a linear
            axis contains all values.

        Returns
        -------
        TestBasedReliabilityDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.scale = self.scale if scale is None else scale
        self.ymax = self.ymax if ymax is None else ymax
        check_place(ax, fig)
        self._axis()  # an error about the axis before there is a figure
        own = Panels(ax.figure, ax) if ax is not None else None
        return self._draw(own or Panels.create(None, fig, **_PANELS))

    def plot_panels(self, ax: Axes) -> "TestBasedReliabilityDisplay":
        """Draw all panels in the place of `ax`, which must belong to a grid and is replaced by them.

        Parameters
        ----------
        ax : Axes
            Axes of a grid.

        Returns
        -------
        TestBasedReliabilityDisplay
            This display.
        """
        return self._draw(Panels.create(ax, None, **_PANELS))

    def _draw(self, panels: Panels) -> "TestBasedReliabilityDisplay":
        table, axis = self.breakdown.partition.table, self._axis()
        low, high = self.drawn.rate_interval(self.confidence_level)
        self.figure_, self.ax_ = panels.figure, panels.main
        self.ax_sizes_, self.ax_histogram_ = panels.sizes, panels.histogram
        axis.apply(self.ax_.yaxis)
        self._draw_ground(axis)
        self._draw_violins(axis)
        self._draw_rates(axis, low, high)
        fullest = self._draw_margins(table, axis)
        panels.dress(axis, fullest, table.importance)
        self._mark_beyond(axis, np.maximum(self.drawn.partition.max_score, self.drawn.partition.rate))
        self._dress()
        return self

    @cached_property
    def drawn(self) -> DrawnBins:
        """The bins as drawn, of which one may be in parts."""
        return DrawnBins.create(self.breakdown)

    def _axis(self) -> Axis:
        p, (_, high) = self.drawn.partition, self.drawn.rate_interval(self.confidence_level)
        scale = choose_scale([p.table], self.scale, self.ymax)
        if scale == "linear" and self.ymax is None:
            top = float(max(p.max_score.max(), high.max()))
            steps = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
            return Axis("linear", 0.0, next((step for step in steps if top <= step), 1.0))  # contains all values
        extremes = quantile(p.table, 0.01), quantile(p.table, 0.99)
        return Axis.fitting(scale, (p.rate, p.mean_score, *extremes), self.ymax)

    def _draw_violins(self, axis: Axis) -> None:
        partition = self.drawn.partition
        outlines = violins(partition, axis, cells_per_bin(len(partition)))
        lengths = [v.at.size for v in outlines]
        bins = np.repeat(np.arange(len(outlines)), lengths)
        score = np.concatenate([v.score for v in outlines])
        rejected = np.split(self._rejects(bins, score), np.cumsum(lengths)[:-1])
        pairs = list(enumerate(zip(outlines, rejected, strict=True)))
        shape = _outline if len(pairs) <= MOST_SINGLE else _spine
        self.accepted_violins_ = self._draw_filled(self.ax_, [shape(i, v, ~r) for i, (v, r) in pairs], "violin")
        self.rejected_violins_ = self._draw_filled(self.ax_, [shape(i, v, r) for i, (v, r) in pairs], "violin-rejected")

    def _rejects(self, bins: Ints, score: Floats) -> Bools:
        """Return whether the bins reject these scores: the stored decisions if they are of these scores."""
        if self.profile is not None and np.array_equal(self.profile.score, score):
            return self.profile.rejected
        loss = self.breakdown.definition.loss
        assert tests_scores(loss)
        return loss.rejects(self.breakdown.partition, self.drawn.owner[bins], score)

    def _draw_ground(self, axis: Axis) -> None:
        """Mark the parts of a bin by a grey ground, and the rate of the whole bin by a dashed line."""
        parts = self.drawn.split
        self.whole_rate_: Line2D | None = None
        if not parts.size:
            return
        left, right = float(parts[0]) - 0.5, float(parts[-1]) + 0.5
        for ax in (self.ax_, self.ax_sizes_):
            if ax is not None:
                ax.axvspan(left, right, facecolor=blend(0.5), alpha=0.1, lw=0, zorder=0)
        rate = float(axis.inside(self.breakdown.partition.rate[self.drawn.owner[parts[0]]]))
        style: dict[str, Any] = {"color": event_colour(), "lw": 1, "ls": (0, (4, 3)), "zorder": 0.9}
        (self.whole_rate_,) = self.ax_.plot([left, right], [rate, rate], gid="test-based-whole-rate", **style)

    def _draw_margins(self, table: ScoreTable, axis: Axis) -> float:
        """Draw bin sizes and histogram where there is room; return the longest bar of the histogram."""
        self.accepted_sizes_: list[Artist] = []
        self.rejected_sizes_: list[Artist] = []
        self.histogram_: list[Artist] = []
        if self.ax_sizes_ is None or self.ax_histogram_ is None:
            return 0.0
        self._draw_sizes(self.ax_sizes_)
        self.histogram_, fullest = histogram_bars(self.ax_histogram_, table, axis, "test-based-histogram-{}")
        return fullest

    def _draw_sizes(self, ax: Axes) -> None:
        n, rejected = self.drawn.partition.n, self.drawn.rejected
        if len(n) > MOST_SINGLE:
            self.accepted_sizes_ = self._stairs(ax, n, "size")
            self.rejected_sizes_ = self._stairs(ax, rejected, "size-rejected")
            ax.set_ylim(0, float(n.max()) * 1.05)
            return
        half = self._half
        cells = list(enumerate(zip(rejected.tolist(), n.tolist(), strict=True)))
        accepted = [rectangle(i - half, i + half, r, size) if r < size else None for i, (r, size) in cells]
        parts = [rectangle(i - half, i + half, 0, r) if r > 0 else None for i, (r, _) in cells]
        self.accepted_sizes_ = self._draw_filled(ax, accepted, "size")
        self.rejected_sizes_ = self._draw_filled(ax, parts, "size-rejected")
        labels = [f"{share:.0f} %" for share in 100 * rejected / n]
        fit = labels_fit(ax, labels)
        ax.set_ylim(0, float(n.max()) * (1.32 if fit else 1.05))
        for i, (size, label) in enumerate(zip(n, labels, strict=True)) if fit else ():
            ax.annotate(label, (i, size), (0, 2), textcoords="offset points", ha="center", fontsize="x-small")

    def _stairs(self, ax: Axes, sizes: Any, part: str) -> list[Artist]:
        """Draw all bars as one outline, rejected rows in front."""
        colour = REJECTED if part.endswith("rejected") else ACCEPTED
        edges = np.arange(len(sizes) + 1) - 0.5
        return [ax.stairs(sizes, edges, fill=True, color=colour, gid=f"test-based-bin-all-{part}")]

    @property
    def _shows_intervals(self) -> bool:
        return len(self.drawn) <= MOST_SINGLE

    @property
    def _half(self) -> float:
        """Half the width of a bar; many bins have no gaps between them."""
        return _HALF if len(self.drawn) <= _MANY else 0.5

    def _draw_filled(self, ax: Axes, paths: list[Path | None], part: str) -> list[Artist]:
        colour = REJECTED if part.endswith("rejected") else ACCEPTED
        outline = {"edgecolor": colour, "linewidth": 1.2} if "violin" in part else {"linewidth": 0}
        return shapes(ax, paths, f"test-based-bin-{{}}-{part}", facecolor=colour, **outline)

    def _draw_rates(self, axis: Axis, low: Any, high: Any) -> None:
        """Draw rates and intervals: with many bins as one shape, with very many without intervals."""
        rate = self.drawn.partition.rate
        ends = list(enumerate(zip(axis.inside(rate), axis.inside(low), axis.inside(high), strict=True)))
        style = {"facecolor": "none", "edgecolor": event_colour()}
        if len(ends) > _MANY:
            both = [strokes([(i - 0.5, r), (i + 0.5, r)], [(i, a), (i, z)]) for i, (r, a, z) in ends]
            if not self._shows_intervals:
                both = [strokes([(i - 0.5, r), (i + 0.5, r)]) for i, (r, _, _) in ends]
            self.rates_ = self.intervals_ = shapes(self.ax_, both, "test-based-bin-{}-rate", linewidth=1.1, **style)
            return
        cap = 0.12
        whiskers = [
            strokes([(i - cap, a), (i + cap, a)], [(i, a), (i, z)], [(i - cap, z), (i + cap, z)])
            for i, (_, a, z) in ends
        ]
        marks = [strokes([(i - _HALF, r), (i + _HALF, r)]) for i, (r, _, _) in ends]
        self.intervals_ = shapes(self.ax_, whiskers, "test-based-bin-{}-interval", linewidth=1.1, **style)
        self.rates_ = shapes(self.ax_, marks, "test-based-bin-{}-rate", linewidth=2.4, **style)

    def _mark_beyond(self, axis: Axis, top: Any) -> None:
        beyond = np.flatnonzero(top > axis.high) if axis.cut else np.empty(0, dtype=np.int64)
        self.beyond_: list[Line2D] = []
        if beyond.size:
            high = np.full(beyond.size, axis.high)
            self.beyond_ = self.ax_.plot(
                beyond, high, ls="", marker="^", ms=5, color=event_colour(), clip_on=False, zorder=5
            )

    def _dress(self) -> None:
        loss = self.breakdown.definition.loss
        assert tests_scores(loss)
        self.ax_.set_xlim(-0.6, len(self.drawn) - 0.4)
        self.ax_.set_ylabel("prediction and event rate")
        below = self.ax_ if self.ax_sizes_ is None else self.ax_sizes_
        self._label_edges(below)
        below.set_xlabel("bins and their edges")
        level = f", {100 * self.confidence_level:g} % CI" if self._shows_intervals else ""
        rate = Line2D([], [], color=event_colour(), linewidth=2.4, marker="|", markersize=10, markeredgewidth=1.1)
        keys: list[Any] = [Patch(color=ACCEPTED), Patch(color=REJECTED), rate]
        words = ["predictions", f"rejected at {loss.alpha:g}", "event rate" + level]
        if self.drawn.split.size:
            keys.append(Line2D([], [], color=event_colour(), lw=1, ls=(0, (4, 3))))
            keys.append(Patch(color=blend(0.5), alpha=0.2, lw=0))
            words += ["rate of the whole bin", f"one bin in {self.drawn.split.size} parts"]
        if self.ax_sizes_ is None:
            legend(self.ax_, keys, words, loc="best")
            return
        self.ax_.tick_params(labelbottom=False, bottom=False)
        self.ax_sizes_.locator_params(axis="y", nbins=3)
        legend_above(self.ax_, self.headline(), keys, words, reach=1.3)

    def _label_edges(self, ax: Axes) -> None:
        """Label as many edges as fit; two labels where empty bins lie between."""
        lower, upper = self.drawn.lower, self.drawn.upper
        for step in range(1, lower.size + 1):
            shown = np.arange(0, lower.size + 1, step)
            edges = [np.unique([*upper[max(i - 1, 0) : i], *lower[i : i + 1]]) for i in shown]
            every = np.unique(np.concatenate(edges))
            words = dict(zip(every, distinct_labels(every), strict=True))
            labels = [" … ".join(words[e] for e in pair) for pair in edges]
            if labels_fit(ax, labels):
                break
        ax.set_xticks(shown - 0.5, labels)
        ax.tick_params(axis="x", labelsize="small")

    def headline(self) -> str:
        """Return the value, with its null range if known.

        Returns
        -------
        str
            The title of the diagram.
        """
        b = self.breakdown
        text = f"{b.metric} = {b.value:.1f} %"
        if self.null is None:
            return text
        form = NumberFormat.for_spread("%", 0, signed=False)
        expected = form.range(self.null.low, self.null.high)
        return f"{text}   (expected if calibrated: {expected}; {p_text(self.null.pvalue)})"

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values: edges, sizes, rate with interval, predictions, rejected rows.

        One row per bin, or per part of a bin; `part` is its number within the bin.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        drawn, p = self.drawn, self.drawn.partition
        low, high = drawn.rate_interval(self.confidence_level)
        columns: dict[str, Any] = {"bin": drawn.owner, "part": drawn.part, "lower": drawn.lower, "upper": drawn.upper}
        columns |= {"min_score": p.min_score, "max_score": p.max_score, "n": p.n, "k": p.k, "rate": p.rate}
        columns |= {"mean_score": p.mean_score, "loss": 100 * drawn.rejected / p.n, "rejected": drawn.rejected}
        return drawn_frame({**columns, "rate_low": low, "rate_high": high}, backend)

    def __repr__(self) -> str:
        size = rows_text(self.breakdown.partition.table)
        bins = bins_text(len(self.breakdown.partition))
        return f"TestBasedReliabilityDisplay({self.breakdown.metric} = {self.breakdown.value:.1f} %, {size}, {bins})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        b, cells = self.breakdown, self.breakdown.per_bin
        assert tests_scores(b.definition.loss)
        share = 100 * float(cells["rejected"].sum() / cells["n"].sum())
        expected = ""
        if self.null is not None:
            expected = f"; expected if calibrated: {self.null.low:.1f} to {self.null.high:.1f} %"
        return (
            f"Test-based reliability diagram of {b.metric} ({b.value:.1f} %{expected}), "
            f"{rows_text(b.partition.table)} in {bins_text(len(b.partition))}: at {b.definition.loss.alpha:g} "
            f"{share:.1f} % of predictions are rejected{self._worst()}."
        )

    def _worst(self) -> str:
        """Describe the bin with the most rejected rows."""
        cells = self.breakdown.per_bin
        if not cells["rejected"].any():
            return ""
        worst = int(np.argmax(cells["rejected"]))
        mean, rate = cells["mean_score"][worst], cells["rate"][worst]
        side = "above" if mean > rate else "below"
        return (
            f", most of them in the bin from {cells['lower'][worst]:.3g} to {cells['upper'][worst]:.3g}, where the "
            f"mean prediction of {mean:.3g} is {side} the event rate of {rate:.3g}"
        )


def _outline(place: int, violin: Violin, shown: Any) -> Path | None:
    """Return the parts of a violin where `shown` is true, as closed shapes that reach half way to their neighbours."""
    at, half = violin.at, _HALF * violin.width
    parts = []
    for first, after in true_runs(shown):
        y, x = _part_points(at, half, first, after)
        vertices = np.concatenate([np.column_stack([place - x, y]), np.column_stack([place + x, y])[::-1]])
        parts.append(Path(np.concatenate([vertices, vertices[:1]]), closed=True))
    return Path.make_compound_path(*parts) if parts else None


def _spine(place: int, violin: Violin, shown: Any) -> Path | None:
    """Return the same parts as lines, for narrow bins."""
    parts = []
    for first, after in true_runs(shown):
        y, _ = _part_points(violin.at, violin.width, first, after)
        parts.append([(float(place), float(y[0])), (float(place), float(y[-1]))])
    return strokes(*parts) if parts else None


def _part_points(at: Any, half: Any, first: int, after: int) -> tuple[Any, Any]:
    """Return the points of a part, from half way to its lower neighbour to half way to the upper one."""
    y, x = [*at[first:after]], [*half[first:after]]
    if first > 0:
        y, x = [(at[first - 1] + at[first]) / 2, *y], [(half[first - 1] + half[first]) / 2, *x]
    if after < at.size:
        y, x = [*y, (at[after - 1] + at[after]) / 2], [*x, (half[after - 1] + half[after]) / 2]
    return np.array(y), np.array(x)
