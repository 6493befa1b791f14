"""`TestBasedReliabilityDisplay`: the reliability diagram of TCE."""

from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, Unpack

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
from calibrant._support.lazy import cached_property
from calibrant._support.random_streams import RandomState
from calibrant.metrics.bins import PANEL_BINS, EqualInformation
from calibrant.metrics.calibration_errors import TCE
from calibrant.metrics.gce import GCE, MAX_BINS, Breakdown, RejectionProfile, cells_per_bin
from calibrant.metrics.losses import tests_scores
from calibrant.metrics.significance import clopper_pearson
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, check_breakdown
from calibrant.plots.probability_axes import Axis, Panels, Scale, choose_scale, histogram_bars, quantile
from calibrant.results.text import bins_text, rows_text
from calibrant.results.uncertainty import Null
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import Partition, ScoreTable, read_score_table

_HALF = 0.42  # half the width of the shapes of a bin; bins are 1 apart
_PANELS: dict[str, Any] = {"heights": (4, 1), "size": (8, 5.6)}
_MANY = 60  # bins; with more, shapes are simpler and files smaller
_MOST_PARTS = 5  # of a bin
_EVENTS_PER_PART = 10  # expected events; fewer leave an interval that says little


@dataclass(eq=False, repr=False)
class TestBasedReliabilityDisplay(ScoreDisplay):
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
        `data` has one row per bin, or per part of a bin: edges, sizes, rate with interval, predictions, rejected rows;
        ``part`` is its number within the bin.
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
            )
        if len(self.breakdown.partition) > MAX_BINS:
            raise InputError(
                f"breakdown must have at most {MAX_BINS:,} bins; got {len(self.breakdown.partition):,}.",
                hint="Use larger bins, such as PAVABC() or EqualSize(100).",
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
        metric : GCE, optional
            Any whose loss tests scores, such as ``TCE()`` with the bins of the paper. By default TCE has one bin per
            score where at most 20 scores are distinct, and elsewhere bins that shrink as the number of rows grows:
            ``TCE(bins=PAVABC(sizes="grades"))``.
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
        from calibrant.evaluation.metric_inference import null

        gce = TCE(bins=PANEL_BINS) if metric is None else metric
        table = read_score_table(y_true, y_prob, rows)
        breakdown = gce(table)
        display = cls(breakdown, None, confidence_level, scale, ymax)  # rejects other losses before resampling
        if n_resamples:
            display.null = null(gce, table, n_resamples=n_resamples, random_state=random_state)
        return display.plot(ax=ax, fig=fig)

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
    ) -> Self:
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
        canvas.check_place(ax, fig)
        self._axis()  # an error about the axis before there is a figure
        outer = Panels(ax.figure, ax) if ax is not None else None
        return self._draw_panels(outer or Panels.create(None, fig, **_PANELS))

    def plot_panels(self, ax: Axes) -> Self:
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
        return self._draw_panels(Panels.create(ax, None, **_PANELS))

    def _draw_panels(self, panels: Panels) -> Self:
        table, axis = self.breakdown.partition.table, self._axis()
        low, high = self.drawn.rate_interval(self.confidence_level)
        self.figure_, self.ax_, self.ax_sizes_, self.ax_histogram_ = panels
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
    def drawn(self) -> "DrawnBins":
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
        lengths = [at.size for at, _, _ in outlines]
        bins = np.repeat(np.arange(len(outlines)), lengths)
        score = np.concatenate([scores for *_, scores in outlines])
        rejected = np.split(self._rejects(bins, score), np.cumsum(lengths)[:-1])
        pairs = list(enumerate(zip(outlines, rejected, strict=True)))
        shape = _outline if len(pairs) <= canvas.MOST_SINGLE else _spine
        self.accepted_violins_: list[Artist] = self._draw_filled(
            self.ax_, [shape(i, v, ~r) for i, (v, r) in pairs], "violin"
        )
        self.rejected_violins_: list[Artist] = self._draw_filled(
            self.ax_, [shape(i, v, r) for i, (v, r) in pairs], "violin-rejected"
        )

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
                ax.axvspan(left, right, facecolor=canvas.blend(0.5), alpha=0.1, lw=0, zorder=0)
        rate = float(axis.inside(self.breakdown.partition.rate[self.drawn.owner[parts[0]]]))
        style = canvas.dashes(gid="test-based-whole-rate", zorder=0.9) | {"color": canvas.event_colour()}
        (self.whole_rate_,) = self.ax_.plot([left, right], [rate, rate], **style)

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
        if len(n) > canvas.MOST_SINGLE:
            self.accepted_sizes_ = self._stairs(ax, n, "size")
            self.rejected_sizes_ = self._stairs(ax, rejected, "size-rejected")
            ax.set_ylim(0, float(n.max()) * 1.05)
            return
        half = _HALF if len(self.drawn) <= _MANY else 0.5
        cells = list(enumerate(zip(rejected.tolist(), n.tolist(), strict=True)))
        accepted = [canvas.rectangle(i - half, i + half, r, size) if r < size else None for i, (r, size) in cells]
        parts = [canvas.rectangle(i - half, i + half, 0, r) if r > 0 else None for i, (r, _) in cells]
        self.accepted_sizes_ = self._draw_filled(ax, accepted, "size")
        self.rejected_sizes_ = self._draw_filled(ax, parts, "size-rejected")
        labels = [f"{share:.0f} %" for share in 100 * rejected / n]
        fit = canvas.labels_fit(ax, labels)
        ax.set_ylim(0, float(n.max()) * (1.32 if fit else 1.05))
        for i, (size, label) in enumerate(zip(n, labels, strict=True)) if fit else ():
            ax.annotate(label, (i, size), (0, 2), textcoords="offset points", ha="center", fontsize="x-small")

    def _stairs(self, ax: Axes, sizes: Any, part: str) -> list[Artist]:
        """Draw all bars as one outline, rejected rows in front."""
        colour = canvas.REJECTED if part.endswith("rejected") else canvas.ACCEPTED
        edges = np.arange(len(sizes) + 1) - 0.5
        return [ax.stairs(sizes, edges, fill=True, color=colour, gid=f"test-based-bin-all-{part}")]

    @property
    def _shows_intervals(self) -> bool:
        return len(self.drawn) <= canvas.MOST_SINGLE

    def _draw_filled(self, ax: Axes, paths: list[Path | None], part: str) -> list[Artist]:
        colour = canvas.REJECTED if part.endswith("rejected") else canvas.ACCEPTED
        outline = {"edgecolor": colour, "linewidth": 1.2} if "violin" in part else {"linewidth": 0}
        return canvas.shapes(ax, paths, f"test-based-bin-{{}}-{part}", facecolor=colour, **outline)

    def _draw_rates(self, axis: Axis, low: Any, high: Any) -> None:
        """Draw rates and intervals: with many bins as one shape, with very many without intervals."""
        ax, ids, colour = self.ax_, "test-based-bin-{}", canvas.event_colour()
        rate = self.drawn.partition.rate
        ends = list(enumerate(zip(axis.inside(rate), axis.inside(low), axis.inside(high), strict=True)))
        if len(ends) > _MANY:
            marks = [canvas.strokes([(i - 0.5, r), (i + 0.5, r)], [(i, a), (i, z)]) for i, (r, a, z) in ends]
            if not self._shows_intervals:
                marks = [canvas.strokes([(i - 0.5, r), (i + 0.5, r)]) for i, (r, _, _) in ends]
            self.rates_ = self.intervals_ = canvas.lines(ax, marks, f"{ids}-rate", colour, 1.1)
            return
        cap = 0.12
        whiskers = [
            canvas.strokes([(i - cap, a), (i + cap, a)], [(i, a), (i, z)], [(i - cap, z), (i + cap, z)])
            for i, (_, a, z) in ends
        ]
        marks = [canvas.strokes([(i - _HALF, r), (i + _HALF, r)]) for i, (r, _, _) in ends]
        self.intervals_ = canvas.lines(ax, whiskers, f"{ids}-interval", colour, 1.1)
        self.rates_ = canvas.lines(ax, marks, f"{ids}-rate", colour, 2.4)

    def _mark_beyond(self, axis: Axis, top: Any) -> None:
        beyond = np.flatnonzero(top > axis.high) if axis.cut else np.empty(0, dtype=np.int64)
        self.beyond_: list[Line2D] = []
        if beyond.size:
            style: dict[str, Any] = {"ls": "", "marker": "^", "ms": 5, "clip_on": False, "zorder": 5}
            self.beyond_ = self.ax_.plot(beyond, np.full(beyond.size, axis.high), color=canvas.event_colour(), **style)

    def _dress(self) -> None:
        loss = self.breakdown.definition.loss
        assert tests_scores(loss)
        self.ax_.set_xlim(-0.6, len(self.drawn) - 0.4)
        self.ax_.set_ylabel("prediction and event rate")
        below = self.ax_ if self.ax_sizes_ is None else self.ax_sizes_
        p = self.drawn.partition
        if np.array_equal(p.min_score, p.max_score):
            self._label_scores(below, p.min_score)
        else:
            self._label_edges(below)
        level = f", {100 * self.confidence_level:g} % CI" if self._shows_intervals else ""
        red = canvas.event_colour()
        rate = Line2D([], [], color=red, linewidth=2.4, marker="|", markersize=10, markeredgewidth=1.1)
        keys: list[Any] = [Patch(color=canvas.ACCEPTED), Patch(color=canvas.REJECTED), rate]
        words = ["predictions", f"rejected at {loss.alpha:g}", "event rate" + level]
        if self.drawn.split.size:
            keys.append(Line2D([], [], **canvas.dashes() | {"color": red}))
            keys.append(Patch(color=canvas.blend(0.5), alpha=0.2, lw=0))
            words += ["rate of the whole bin", f"one bin in {self.drawn.split.size} parts"]
        if self.ax_sizes_ is None:
            canvas.legend(self.ax_, keys, words, loc="best")
            return
        self.ax_.tick_params(labelbottom=False, bottom=False)
        self.ax_sizes_.locator_params(axis="y", nbins=3)
        canvas.legend_above(self.ax_, self.headline(), keys, words, reach=1.3)

    def _label_scores(self, ax: Axes, scores: Floats) -> None:
        """Label as many bins as fit with their only score."""
        words = canvas.distinct_labels(scores)
        for step in range(1, scores.size + 1):
            shown = np.arange(0, scores.size, step)
            labels = [words[i] for i in shown]
            if canvas.labels_fit(ax, labels):
                break
        ax.set_xticks(shown, labels)
        ax.tick_params(axis="x", labelsize="small")
        ax.set_xlabel("scores, one bin each")

    def _label_edges(self, ax: Axes) -> None:
        """Label as many edges as fit; two labels where empty bins lie between."""
        lower, upper = self.drawn.lower, self.drawn.upper
        for step in range(1, lower.size + 1):
            shown = np.arange(0, lower.size + 1, step)
            edges = [np.unique([*upper[max(i - 1, 0) : i], *lower[i : i + 1]]) for i in shown]
            every = np.unique(np.concatenate(edges))
            words = dict(zip(every, canvas.distinct_labels(every), strict=True))
            labels = [" … ".join(words[e] for e in pair) for pair in edges]
            if canvas.labels_fit(ax, labels):
                break
        ax.set_xticks(shown - 0.5, labels)
        ax.tick_params(axis="x", labelsize="small")
        ax.set_xlabel("bins and their edges")

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

    def _columns(self) -> dict[str, Any]:
        drawn, p = self.drawn, self.drawn.partition
        low, high = drawn.rate_interval(self.confidence_level)
        columns: dict[str, Any] = {"bin": drawn.owner, "part": drawn.part, "lower": drawn.lower, "upper": drawn.upper}
        columns |= {"min_score": p.min_score, "max_score": p.max_score, "n": p.n, "k": p.k, "rate": p.rate}
        columns |= {"mean_score": p.mean_score, "loss": 100 * drawn.rejected / p.n, "rejected": drawn.rejected}
        return {**columns, "rate_low": low, "rate_high": high}

    def __repr__(self) -> str:
        size = rows_text(self.breakdown.partition.table)
        bins = bins_text(len(self.breakdown.partition))
        return f"TestBasedReliabilityDisplay({self.breakdown.metric} = {self.breakdown.value:.1f} %, {size}, {bins})"

    def alt_text(self) -> str:
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


def _outline(place: int, violin: "Violin", shown: Any) -> Path | None:
    """Return the parts of a violin where `shown` is true, as closed shapes that reach half way to their neighbours."""
    at, width, _ = violin
    parts = []
    for first, after in true_runs(shown):
        y, x = _part_points(at, _HALF * width, first, after)
        vertices = np.concatenate([np.column_stack([place - x, y]), np.column_stack([place + x, y])[::-1]])
        parts.append(Path(np.concatenate([vertices, vertices[:1]]), closed=True))
    return Path.make_compound_path(*parts) if parts else None


def _spine(place: int, violin: "Violin", shown: Any) -> Path | None:
    """Return the same parts as lines, for narrow bins."""
    parts = []
    for first, after in true_runs(shown):
        y, _ = _part_points(violin[0], violin[1], first, after)
        parts.append([(float(place), float(y[0])), (float(place), float(y[-1]))])
    return canvas.strokes(*parts) if parts else None


def _part_points(at: Any, half: Any, first: int, after: int) -> tuple[Any, Any]:
    """Return the points of a part, from half way to its lower neighbour to half way to the upper one."""
    y, x = [*at[first:after]], [*half[first:after]]
    if first > 0:
        y, x = [(at[first - 1] + at[first]) / 2, *y], [(half[first - 1] + half[first]) / 2, *x]
    if after < at.size:
        y, x = [*y, (at[after - 1] + at[after]) / 2], [*x, (half[after - 1] + half[after]) / 2]
    return np.array(y), np.array(x)


# The outline of a distribution: several probabilities, half the width there, at most 1, and the scores; at the ends
# these are the lowest and the highest of the bin, which the axis may have clipped.
Violin: TypeAlias = tuple[Floats, Floats, Floats]


def violins(partition: Partition, axis: Axis, cells: int) -> list[Violin]:
    """Return the distribution of predictions per bin, from its lowest to its highest score.

    Rows are counted in cells of equal length along the axis, exactly, and smoothed over neighbouring cells, reflected
    at the ends: by 0.9 s n^(-1/5), s the standard deviation (Silverman's rule), and at least 0.6 cells.
    """
    from scipy.ndimage import gaussian_filter1d

    table = partition.table
    before = np.concatenate([[0.0], np.cumsum(table.n, dtype=np.float64)])
    stops = np.append(partition.start[1:], len(table))
    outlines: list[Violin] = []
    for start, stop, size in zip(partition.start, stops, partition.effective_n, strict=True):
        ends = axis.forward(table.score[[start, stop - 1]])
        if ends[0] == ends[1]:
            outlines.append((axis.backward(ends), np.ones(2), table.score[[start, stop - 1]]))
            continue
        edges = np.linspace(ends[0], ends[1], cells + 1)
        inner = start + np.searchsorted(table.score[start:stop], axis.backward(edges[1:-1]))
        counts = np.diff(before[np.concatenate([[start], inner, [stop]])])
        middle = np.arange(cells)
        mean = np.average(middle, weights=counts)
        spread = np.sqrt(np.average((middle - mean) ** 2, weights=counts))
        smooth = gaussian_filter1d(counts, max(0.6, 0.9 * spread * size**-0.2), mode="reflect")
        places = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        width = np.concatenate([smooth[:1], smooth, smooth[-1:]])
        at = axis.backward(places)
        score = np.concatenate([table.score[start : start + 1], at[1:-1], table.score[stop - 1 : stop]])
        outlines.append((at, width / width.max(), score))
    return outlines


@dataclass(frozen=True, eq=False)
class DrawnBins:
    """The bins of a breakdown as drawn: one of them may be in several parts.

    Attributes
    ----------
    breakdown : Breakdown
    partition : Partition
        One bin for each part.
    owner : ndarray of int64
        The bin of the breakdown to which each part belongs. Its outcomes test the scores of all its parts.
    lower, upper : ndarray of float64
    rejected : ndarray
        Rows of each part whose score the outcomes of the whole bin reject.
    """

    breakdown: Breakdown
    partition: Partition
    owner: Ints
    lower: Floats
    upper: Floats
    rejected: Ints | Floats

    def __len__(self) -> int:
        """Number of parts."""
        return len(self.partition)

    @classmethod
    def create(cls, breakdown: Breakdown) -> "DrawnBins":
        """Return the bins, with the bin in parts that `_crowded_bin` names."""
        whole, number = breakdown.partition, _crowded_bin(breakdown.partition)
        cuts = np.empty(0, dtype=np.int64) if number is None else _inner_cuts(whole, number)
        if number is None or not cuts.size:
            b = breakdown.per_bin
            return cls(breakdown, whole, np.arange(len(whole)), b["lower"], b["upper"], b["rejected"])
        parts = Partition.from_cuts(whole.table, np.sort(np.concatenate([whole.start[1:], cuts])))
        owner = np.searchsorted(whole.start, parts.start, side="right") - 1
        lower, upper = whole.lower[owner], whole.upper[owner]
        inside = np.flatnonzero(owner == number)
        lower[inside[1:]], upper[inside[:-1]] = parts.lower[inside[1:]], parts.upper[inside[:-1]]
        return cls(breakdown, parts, owner, lower, upper, _rejected_rows(breakdown, parts, owner, number))

    @property
    def split(self) -> Ints:
        """Numbers of the parts of the bin that is in parts; empty if there is none."""
        return np.asarray(np.flatnonzero(np.bincount(self.owner)[self.owner] > 1))

    @property
    def part(self) -> Ints:
        """Number of each part within its bin."""
        return np.asarray(np.arange(len(self)) - np.searchsorted(self.owner, self.owner))

    def rate_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the exact confidence limits of the rate of each part."""
        p = self.partition
        if p is self.breakdown.partition:
            return self.breakdown.rate_interval(level)
        return clopper_pearson(p.effective_k, p.effective_n, confidence_level=level)


def _crowded_bin(partition: Partition) -> int | None:
    """Return the first or last bin if it has most of the rarer outcome, in a table whose scores crowd an end."""
    if choose_scale([partition.table], None, None) != "logit":
        return None
    rare = partition.k if 2 * partition.k.sum() <= partition.n.sum() else partition.n - partition.k
    number = int(np.argmax(rare))
    at_end = number in (0, len(partition) - 1)
    return number if at_end and 2 * rare[number] > rare.sum() else None


def _inner_cuts(partition: Partition, number: int) -> Ints:
    """Return the entries at which the parts of a bin begin, without the first; they depend on no outcome."""
    start = int(partition.start[number])
    stop = int(np.append(partition.start, len(partition.table))[number + 1])
    table = _run(partition.table, slice(start, stop))
    information = float(np.sum(table.n * table.score * (1 - table.score)))
    if table.w2 is not None:
        information *= float(table.n.sum() / table.w2.sum())
    count = min(int(information / _EVENTS_PER_PART), _MOST_PARTS)
    return EqualInformation(count)(table).start[1:] + start if count > 1 else np.empty(0, dtype=np.int64)


def _run(table: ScoreTable, entries: slice) -> ScoreTable:
    squares: dict[str, Any] = {
        name: None if (column := getattr(table, name)) is None else column[entries] for name in ("w2", "k2")
    }
    return replace(table, score=table.score[entries], n=table.n[entries], k=table.k[entries], **squares)


def _rejected_rows(breakdown: Breakdown, parts: Partition, owner: Ints, number: int) -> Ints | Floats:
    loss, table, whole = breakdown.definition.loss, parts.table, breakdown.partition
    assert tests_scores(loss)
    rejected = np.asarray(breakdown.per_bin["rejected"])[owner]
    entries = np.flatnonzero(whole.labels == number)
    decided = loss.rejects(whole, whole.labels[entries], table.score[entries])
    rows = np.bincount(parts.labels[entries], weights=np.where(decided, table.n[entries], 0), minlength=len(parts))
    return np.where(owner == number, rows.astype(rejected.dtype), rejected)
