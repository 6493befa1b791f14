"""`ReliabilityDisplay`: rates against predictions, bin by bin, of one model or several."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._typing import Floats
from calibrant.bins import Bins, EqualWidth
from calibrant.errors import InputError
from calibrant.gce import GCE, Breakdown
from calibrant.inference.bands import Band, consistency_band
from calibrant.inference.resampling import RandomState
from calibrant.lines import rows_in_words
from calibrant.losses import absolute_gap
from calibrant.norms import weighted_l1
from calibrant.plots._canvas import (
    Axis,
    Scale,
    frame_of,
    ids_of,
    label_right,
    legend_above,
    panels,
    rectangle,
    rows_label,
    shapes,
    strokes,
)
from calibrant.plots._density import histogram, quantile
from calibrant.plots._palette import ACCEPTED, DASHES, MARKERS, mixed, models
from calibrant.plots._sources import estimated, named, need_breakdown, tables

__all__ = ["ReliabilityDisplay"]

Bands: TypeAlias = Literal["confidence", "consistency", "both"]


_COLUMNS = ("lower", "upper", "min_score", "max_score", "n", "k", "rate", "mean_score")


@dataclass(eq=False)
class ReliabilityDisplay:
    """The reliability diagram: the rate of the event in every bin against its mean prediction.

    Each bin is a point at (mean prediction, rate), on a line from its lowest to its highest prediction, with the exact
    interval of the rate. A right model's points lie on the diagonal but for chance, which the consistency band shows, a
    grey bar for every bin: outcomes drawn from the predictions, binned anew. Below are the sizes of the bins, at the
    right the histogram of all predictions. A bin without rows is left out and the line to it broken; small bins have
    hollow points.

    Make it with `from_predictions`, `from_estimator` or `from_breakdown`, which draw it.

    Attributes
    ----------
    breakdowns : mapping of name to Breakdown
    bands : mapping of name to Band
        Consistency bands, of those models that have one.
    confidence_level : float
        Of intervals and bands.
    small : int
        Bins of fewer rows than this are small.
    figure_, ax_, ax_sizes_, ax_histogram_
        Figure and axes, after drawing.
    points_, lines_, intervals_, spans_, bands_, sizes_ : mappings of name to artists
        Those of single bins have the id (gid) ``reliability-<model>-bin-<number>-<part>``.

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> display = ReliabilityDisplay.from_breakdown(ECE()(table), fig=Figure())
    >>> display.lines_["model"].get_ydata()
    array([0.3 , 0.24,  nan, 0.52])
    """

    breakdowns: Mapping[str, Breakdown]
    bands: Mapping[str, Band] = field(default_factory=dict)
    confidence_level: float = 0.95
    small: int = 30

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        bins: Bins = EqualWidth(10),  # noqa: B008  (frozen)
        band: Bands | None = "confidence",
        n_resamples: int = 999,
        random_state: RandomState = 0,
        scale: Scale = "linear",
        ymax: float | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Any,
    ) -> "ReliabilityDisplay":
        """Bin predictions, and draw.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities, or a mapping of name to predictions for several models; or one
            `ScoreTable`, or a mapping of them.
        bins : callable, default=EqualWidth(10)
            Kind of bins: ``Quantile(10)``, ``PAVA()``, ``PAVABC()`` and others.
        band : {"confidence", "consistency", "both"} or None
            See `plot`. A consistency band takes `n_resamples` draws, which for a million rows is minutes of work.
        n_resamples, random_state
            Of the consistency band.
        scale, ymax, ax, fig
            See `plot`.
        sample_weight, pos_label, missing, importance
            How rows are read; see `ScoreTable.from_arrays`.
        """
        gce = GCE(bins, absolute_gap, weighted_l1, name="calibration gap")
        measured = {name: gce(table) for name, table in tables(y_true, y_prob, rows).items()}
        drawing: dict[str, Any] = {"scale": scale, "ymax": ymax, "ax": ax, "fig": fig}
        return cls.from_breakdown(measured, band=band, n_resamples=n_resamples, random_state=random_state, **drawing)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "ReliabilityDisplay":
        """Predict with a fitted classifier, or a mapping of them, and draw; options as for `from_predictions`."""
        return cls.from_predictions(y, estimated(estimator, X, options), **options)

    @classmethod
    def from_breakdown(
        cls,
        breakdown: Breakdown | Mapping[str, Breakdown],
        *,
        band: Bands | None = "confidence",
        n_resamples: int = 999,
        random_state: RandomState = 0,
        scale: Scale = "linear",
        ymax: float | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "ReliabilityDisplay":
        """Draw what was measured, of one model or a mapping of name to Breakdown for several."""
        if band not in (None, "confidence", "consistency", "both"):
            raise InputError(
                f"band must be 'confidence', 'consistency', 'both' or None; it is {band!r}.",
                argument="band",
                value=band,
            )
        breakdowns = {name: need_breakdown(each) for name, each in named(breakdown).items()}
        bands = {}
        if band in ("consistency", "both"):
            draws: dict[str, Any] = {"n_resamples": n_resamples, "random_state": random_state}
            bands = {name: consistency_band(each, **draws) for name, each in breakdowns.items()}
        intervals = band in ("confidence", "both")
        return cls(breakdowns, bands).plot(ax=ax, fig=fig, scale=scale, ymax=ymax, intervals=intervals)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        scale: Scale = "linear",
        ymax: float | None = None,
        intervals: bool = True,
    ) -> "ReliabilityDisplay":
        """Draw in the place of `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Its place is divided into the panels.
        fig : Figure or SubFigure, optional
        scale : {"linear", "log", "logit"}
            Of both axes of probabilities; what is beyond the end of a log or logit axis is drawn at its end.
        ymax : float, optional
            Where both axes end; what lies beyond is not shown, and the title says how many bins that are.
        intervals : bool, default=True
            Draw the exact interval of every rate (Clopper and Pearson).
        """
        axis = self._axis(scale, ymax)
        figure, grid = panels(ax, fig, widths=(6, 1), heights=(5, 1), size=(6.4, 6.4))
        self.figure_ = figure
        self.ax_: Axes = figure.add_subplot(grid[0, 0])
        self.ax_sizes_: Axes = figure.add_subplot(grid[1, 0], sharex=self.ax_)
        self.ax_histogram_: Axes = figure.add_subplot(grid[0, 1], sharey=self.ax_)
        axis.apply(self.ax_.xaxis)
        axis.apply(self.ax_.yaxis)
        self.diagonal_ = self.ax_.plot(
            [axis.low, axis.high], [axis.low, axis.high], color=mixed(0.45), lw=1, ls=(0, (4, 3)), zorder=1
        )[0]
        self.points_: dict[str, list[Line2D]] = {}
        self.lines_: dict[str, Line2D] = {}
        self.intervals_: dict[str, list[Artist]] = {}
        self.spans_: dict[str, list[Artist]] = {}
        self.bands_: dict[str, list[Artist]] = {}
        self.sizes_: dict[str, list[Artist]] = {}
        self.histograms_: dict[str, list[Artist]] = {}
        styles = zip(self.breakdowns, models(len(self.breakdowns)), range(len(self.breakdowns)), strict=True)
        for name, colour, i in styles:
            self._draw(name, colour, i, axis, intervals)
        self._dress(axis, intervals)
        return self

    def _axis(self, scale: Scale, ymax: float | None) -> Axis:
        every: list[Any] = []
        for b in self.breakdowns.values():
            table = b.partition.table
            every += [b.partition.rate, b.partition.mean_score, quantile(table, 0.01), quantile(table, 0.99)]
        return Axis.fitting(scale, every, ymax)

    def _draw(self, name: str, colour: str, number: int, axis: Axis, intervals: bool) -> None:
        breakdown = self.breakdowns[name]
        p, ids = breakdown.partition, f"reliability-{self._ids[name]}-bin-{{}}-"
        x, y = axis.inside(p.mean_score), axis.inside(p.rate)
        single = len(self.breakdowns) == 1
        if name in self.bands:
            band = self.bands[name]
            ends = zip(x, axis.inside(band.low), axis.inside(band.high), strict=True)
            self.bands_[name] = shapes(
                self.ax_,
                [strokes([(a, lo), (a, hi)]) for a, lo, hi in ends],
                ids + "consistency",
                facecolor="none",
                edgecolor=mixed(0.5) if single else colour,
                alpha=0.35,
                linewidth=9 if len(p) <= 30 else 4,
                zorder=0.8,
            )
        if intervals:
            low, high = breakdown.rate_interval(self.confidence_level)
            ends = zip(x, axis.inside(low), axis.inside(high), strict=True)
            self.intervals_[name] = shapes(
                self.ax_,
                [strokes([(a, lo), (a, hi)]) for a, lo, hi in ends],
                ids + "interval",
                facecolor="none",
                edgecolor=colour,
                linewidth=1.1,
                alpha=0.75,
            )
        extent = zip(axis.inside(p.min_score), axis.inside(p.max_score), y, strict=True)
        self.spans_[name] = shapes(
            self.ax_,
            [strokes([(a, r), (z, r)]) for a, z, r in extent],
            ids + "span",
            facecolor="none",
            edgecolor=colour,
            linewidth=2.2,
            alpha=0.45,
        )
        joined = _broken(np.column_stack([x, y]), breakdown)
        (self.lines_[name],) = self.ax_.plot(*joined.T, color=colour, lw=1.2, ls=DASHES[number % len(DASHES)], zorder=3)
        self.points_[name] = self._points(breakdown, x, y, colour, MARKERS[number % len(MARKERS)], ids + "point")
        self._draw_sizes(name, colour, number, axis, ids + "size")

    def _points(self, breakdown: Breakdown, x: Floats, y: Floats, colour: str, marker: str, ids: str) -> list[Line2D]:
        hollow = breakdown.partition.n < self.small
        face = self.ax_.get_facecolor()
        if x.size > 200:  # one artist for each kind
            kinds = ((~hollow, colour, "all"), (hollow, face, "small"))
            drawn = [(x[k], y[k], c, ids.format(n)) for k, c, n in kinds if k.any()]
        else:
            drawn = [(x[i : i + 1], y[i : i + 1], face if hollow[i] else colour, ids.format(i)) for i in range(x.size)]
        size = 5.5 if x.size <= 60 else 3
        return [
            self.ax_.plot(a, b, ls="", marker=marker, ms=size, mfc=c, mec=colour, mew=1.2, gid=g, zorder=4)[0]
            for a, b, c, g in drawn
        ]

    def _draw_sizes(self, name: str, colour: str, number: int, axis: Axis, ids: str) -> None:
        p = self.breakdowns[name].partition
        left, right, n = axis.inside(p.lower), axis.inside(p.upper), p.n.astype(np.float64)
        edges, counts = histogram(p.table, axis)
        if len(self.breakdowns) == 1:
            boxes = [rectangle(a, z, 0, size) for a, z, size in zip(left, right, n, strict=True)]
            edge = {"edgecolor": self.ax_.get_facecolor(), "linewidth": 0.8 if len(p) <= 30 else 0}
            self.sizes_[name] = shapes(self.ax_sizes_, boxes, ids, facecolor=ACCEPTED, **edge)
            bars = [rectangle(0, c, a, z) for c, a, z in zip(counts, edges[:-1], edges[1:], strict=True) if c > 0]
            self.histograms_[name] = shapes(
                self.ax_histogram_, bars, "reliability-histogram-{}", facecolor=mixed(0.45), linewidth=0
            )
            return
        dashes = DASHES[number % len(DASHES)]
        tops = [strokes([(a, size), (z, size)]) for a, z, size in zip(left, right, n, strict=True)]
        self.sizes_[name] = shapes(self.ax_sizes_, tops, ids, facecolor="none", edgecolor=colour, linewidth=1.4)
        self.histograms_[name] = [
            self.ax_histogram_.stairs(counts, edges, orientation="horizontal", color=colour, lw=1.2, ls=dashes)
        ]

    def _dress(self, axis: Axis, intervals: bool) -> None:
        breakdowns = list(self.breakdowns.values())
        largest = max(float(b.partition.n.max()) for b in breakdowns)
        fullest = max(histogram(b.partition.table, axis)[1].max() for b in breakdowns)
        unit = rows_label(breakdowns[0].partition.table.importance)
        self.ax_sizes_.set_ylim(0, largest * 1.08)
        self.ax_sizes_.locator_params(axis="y", nbins=2)
        self.ax_sizes_.set_ylabel(unit)
        self.ax_sizes_.set_xlabel("predicted probability")
        self.ax_histogram_.set_xlim(0, max(float(fullest), 1.0) * 1.08)
        self.ax_histogram_.locator_params(axis="x", nbins=2)
        self.ax_histogram_.tick_params(labelleft=False)
        label_right(self.ax_histogram_, f"all {unit}")
        self.ax_.tick_params(labelbottom=False)
        self.ax_.set_ylabel("rate of the event")
        for ax in (self.ax_, self.ax_sizes_, self.ax_histogram_):
            ax.spines[["top", "right"]].set_visible(False)
        handles, labels = self._keys(intervals)
        rows = -(-len(labels) // 3)
        legend_above(self.ax_, handles, labels, columns=3)
        beyond = sum(int((np.maximum(b.partition.rate, b.partition.mean_score) > axis.high).sum()) for b in breakdowns)
        title = self._title()
        if beyond and axis.cut:
            title += f"   ({beyond} bin{'s' * (beyond != 1)} beyond {axis.high:g} not shown)"
        self.ax_.set_title(title, loc="left", pad=8 + 16 * rows, parse_math=False)

    def _keys(self, intervals: bool) -> tuple[list[Any], list[str]]:
        colours = models(len(self.breakdowns))
        several = len(colours) > 1
        handles: list[Any] = [
            Line2D([], [], color=c, marker=MARKERS[i % len(MARKERS)], ms=5.5, lw=1.2, ls=DASHES[i % len(DASHES)])
            for i, c in enumerate(colours)
        ]
        level = f"{100 * self.confidence_level:g} %"
        single = f"bins, {level} interval" if intervals else "bins"
        labels = list(self.breakdowns) if several else [single]
        if any((b.partition.n < self.small).any() for b in self.breakdowns.values()):
            handles.append(Line2D([], [], color=mixed(0.6), marker="o", mfc="none", ms=5.5, lw=0))
            labels.append(f"fewer than {self.small} rows")
        if self.bands:
            handles.append(Patch(color=mixed(0.5), alpha=0.25, lw=0))
            labels.append(f"{level} of right models")
        return handles, labels

    def _title(self) -> str:
        if len(self.breakdowns) > 1:
            return "Reliability"
        ((name, b),) = self.breakdowns.items()
        kind = f"{len(b.partition)} bin{'s' * (len(b.partition) != 1)}"
        return f"{'Reliability' if name == 'model' else name}, {rows_in_words(b.partition.table)} in {kind}"

    @property
    def _ids(self) -> dict[str, str]:
        return ids_of(self.breakdowns)

    def data(self, backend: str = "pandas") -> Any:
        """What was drawn, one row a model and bin."""
        parts = []
        for name, b in self.breakdowns.items():
            low, high = b.rate_interval(self.confidence_level)
            columns = {
                "model": np.full(low.size, name, dtype=object),
                "bin": np.arange(low.size),
                **{
                    c: b.per_bin[c]
                    for c in ("lower", "upper", "min_score", "max_score", "n", "k", "rate", "mean_score")
                },
                "rate_low": low,
                "rate_high": high,
                "small": b.partition.n < self.small,
            }
            if self.bands:
                columns |= {"band_low": self.bands[name].low, "band_high": self.bands[name].high}
            parts.append(columns)
        return frame_of({c: np.concatenate([part[c] for part in parts]) for c in parts[0]}, backend)

    def alt_text(self) -> str:
        """The diagram in one sentence."""
        return "Reliability diagram: " + "; ".join(self._in_words(name) for name in self.breakdowns) + "."

    def _in_words(self, name: str) -> str:
        breakdown = self.breakdowns[name]
        p = breakdown.partition
        low, high = breakdown.rate_interval(self.confidence_level)
        off = (p.mean_score < low) | (p.mean_score > high)
        gap = p.mean_score - p.rate
        worst = int(np.argmax(np.abs(gap) * p.n))
        side = "above" if gap[worst] > 0 else "below"
        who = "" if name == "model" else f"{name}, "
        return (
            f"{who}{rows_in_words(p.table)} in {len(p)} bin{'s' * (len(p) != 1)}, of which {int(off.sum())} have a "
            f"mean prediction outside of their rate's {100 * self.confidence_level:g} % interval; the heaviest gap is "
            f"at {p.mean_score[worst]:.3g}, {side} the rate of {p.rate[worst]:.3g}"
        )


def _broken(points: Floats, breakdown: Breakdown) -> Floats:
    """The points with a gap wherever bins without rows lie between two of them."""
    p = breakdown.partition
    gaps = np.flatnonzero(p.lower[1:] > p.upper[:-1]) + 1
    return np.insert(points, gaps, np.nan, axis=0)
