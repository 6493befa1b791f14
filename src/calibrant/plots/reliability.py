"""`ReliabilityDisplay`: event rates against predictions per bin, of one or several models."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.arrays import Floats
from calibrant._support.errors import wrong_value
from calibrant._support.random_streams import RandomState
from calibrant.inference.bands import Band, consistency_band
from calibrant.metrics.bins import Bins, EqualInformation, EqualWidth
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import absolute_gap
from calibrant.metrics.norms import weighted_l1
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, check_breakdown, named_results, read_tables, stacked
from calibrant.plots.probability_axes import Axis, Panels, Scale, choose_scale, histogram, histogram_bars, quantile
from calibrant.results.text import bins_text, rows_text
from calibrant.tables.rows import RowOptions

Bands: TypeAlias = Literal["confidence", "consistency", "both"]


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(ScoreDisplay):
    """The reliability diagram: the event rate of each bin against its mean prediction.

    Each bin is a point at (mean prediction, rate), on a line from its lowest to its highest prediction, with the
    exact confidence interval of the rate. The consistency band is the null range of each rate, drawn as a grey bar:
    outcomes are simulated from the predictions and binned again. The lower panel shows the sizes of the bins, the
    right panel the histogram of all predictions; axes that are given (`ax`) have neither, and may hold several
    displays. Empty bins are not drawn and interrupt the line; small bins have hollow points.

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    breakdowns : mapping of name to Breakdown
    bands : mapping of name to Band
        Consistency bands of the models that have one.
    confidence_level : float
        Of intervals and bands.
    small : int
        Bins with fewer rows (with importance weights: effective rows) are small.
    scale, ymax, intervals
        See `plot`.
    figure_, ax_, ax_sizes_, ax_histogram_
        Figure and axes, after drawing; the last two are None in given axes.
    points_, lines_, intervals_, spans_, bands_, sizes_ : mappings of name to artists
        Those of single bins have the id (gid) ``reliability-<model>-bin-<number>-<part>``. `data` has one row per model
        and bin, with intervals and bands if drawn.

    See Also
    --------
    TestBasedReliabilityDisplay, CalibrationCurveDisplay, consistency_band

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> display = ReliabilityDisplay.from_breakdown(ECE()(table), fig=Figure())
    >>> display.lines_["model"].get_ydata()
    array([0.3 , 0.24,  nan, 0.52])
    """

    _takes_several = True

    breakdowns: Mapping[str, Breakdown]
    bands: Mapping[str, Band] = field(default_factory=dict)
    confidence_level: float = 0.95
    small: int = 30
    scale: Scale | None = None
    ymax: float | None = None
    intervals: bool = True

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        bins: Bins | None = None,
        band: Bands | None = "confidence",
        n_resamples: int = 999,
        random_state: RandomState = 0,
        confidence_level: float = 0.95,
        scale: Scale | None = None,
        ymax: float | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "ReliabilityDisplay":
        """Bin predictions and draw their event rates.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities, or a mapping of name to predictions for several models; or one
            `ScoreTable`, or a mapping of them.
        bins : callable, optional
            Kind of bins: ``EqualSize(10)``, ``PAVA()``, ``PAVABC()`` and others. By default ``EqualWidth(10)``; where
            at least 80 % of the predictions lie within 0.1 of an end, ``EqualInformation(10)``, which divides the
            range that has most events.
        band : {"confidence", "consistency", "both"} or None
            See `plot`. A consistency band needs `n_resamples` replicates, which take minutes for a million rows.
        n_resamples, random_state
            Of the consistency band.
        confidence_level : float, default=0.95
            Of intervals and band.
        name : str, optional
            Name of the model in the legend.
        scale, ymax, ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        if isinstance(bins, int):
            raise wrong_value(
                "bins", "must be a kind of bins", bins, hint=f"For example cb.bins.EqualWidth({bins}).", got=str(bins)
            )
        tables = read_tables(y_true, y_prob, rows, name or "model")
        if bins is None:
            crowded = choose_scale(tables.values(), None, None) == "logit"
            bins = EqualInformation(10) if crowded else EqualWidth(10)
        gce = GCE(bins, absolute_gap, weighted_l1, name="calibration gap")
        measured = {model: gce(table) for model, table in tables.items()}
        sampling: dict[str, Any] = {"n_resamples": n_resamples, "random_state": random_state}
        look: dict[str, Any] = {"scale": scale, "ymax": ymax, "name": name, "ax": ax, "fig": fig}
        return cls.from_breakdown(measured, band=band, confidence_level=confidence_level, **sampling, **look)

    @classmethod
    def from_breakdown(
        cls,
        breakdown: Breakdown | Mapping[str, Breakdown],
        *,
        band: Bands | None = "confidence",
        n_resamples: int = 999,
        random_state: RandomState = 0,
        confidence_level: float = 0.95,
        scale: Scale | None = None,
        ymax: float | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "ReliabilityDisplay":
        """Draw the result of one model, or a mapping of name to Breakdown; `name` is that of one model.

        Parameters
        ----------
        breakdown : Breakdown or mapping of name to Breakdown
            Results whose bins are drawn.
        band, n_resamples, random_state, confidence_level, scale, ymax, name, ax, fig
            See `from_predictions`.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        if band not in (None, "confidence", "consistency", "both"):
            raise wrong_value("band", "must be 'confidence', 'consistency', 'both' or None", band)
        results = named_results(breakdown, name or "model")
        breakdowns = {model: check_breakdown(each) for model, each in results.items()}
        bands = {}
        if band in ("consistency", "both"):
            options: dict[str, Any] = {"n_resamples": n_resamples, "random_state": random_state}
            options["confidence_level"] = confidence_level
            bands = {model: consistency_band(each, **options) for model, each in breakdowns.items()}
        display = cls(breakdowns, bands, confidence_level, scale=scale, ymax=ymax)
        return display.plot(ax=ax, fig=fig, intervals=band in ("confidence", "both"))

    def plot(
        self,
        *,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        scale: Scale | None = None,
        ymax: float | None = None,
        intervals: bool | None = None,
    ) -> Self:
        """Draw in `ax`, in `fig`, or in a new figure; omitted options keep their values.

        Parameters
        ----------
        ax : Axes, optional
            Used as given, without the outer panels. A second display in the same axes adds its curve with the next
            colour, and the legend names both.
        fig : Figure or SubFigure, optional
        scale : {"linear", "log", "logit"}, optional
            Of both axes of probabilities; values beyond the end of a log or logit axis are drawn at its end. By default
            that of a display in the same axes; else "logit" where at least 80 % of the predictions lie within 0.1 of an
            end, and "linear" elsewhere.
        ymax : float, optional
            Upper end of both axes; bins beyond it are not shown, and the title gives their number.
        intervals : bool, optional
            Draw the exact confidence interval of each rate (Clopper and Pearson).

        Returns
        -------
        ReliabilityDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.scale = self.scale if scale is None else scale
        self.ymax = self.ymax if ymax is None else ymax
        self.intervals = self.intervals if intervals is None else intervals
        canvas.check_place(ax, fig)
        outer = Panels(ax.figure, ax) if ax is not None else None
        drawn = [] if ax is None else ax.lines
        self._before = [line for line in drawn if re.fullmatch("reliability-.*-line", str(line.get_gid()))]
        axis = self._axis()
        panels = outer or Panels.create(None, fig, heights=(5, 1), size=(6.4, 6.4))
        self.figure_, self.ax_, self.ax_sizes_, self.ax_histogram_ = panels
        axis.apply(self.ax_.xaxis)
        axis.apply(self.ax_.yaxis)
        self._draw_diagonal(axis)
        self.points_: dict[str, list[Line2D]] = {}
        self.lines_: dict[str, Line2D] = {}
        self.intervals_: dict[str, list[Artist]] = {}
        self.spans_: dict[str, list[Artist]] = {}
        self.bands_: dict[str, list[Artist]] = {}
        self.sizes_: dict[str, list[Artist]] = {}
        self.histograms_: dict[str, list[Artist]] = {}
        fullest = []
        for i, (name, colour) in enumerate(zip(self.breakdowns, self._colours(), strict=True), start=len(self._before)):
            self._draw_model(name, colour, i, axis)
            fullest.append(self._draw_margins(name, colour, i, axis))
        panels.dress(axis, max(fullest), next(iter(self.breakdowns.values())).partition.table.importance)
        self._dress(axis)
        return self

    def _colours(self) -> list[str]:
        """Return a colour per model: those after the models that were drawn before in the same axes."""
        return canvas.model_colours(len(self._before) + len(self.breakdowns))[len(self._before) :]

    def _draw_diagonal(self, axis: Axis) -> None:
        ends = [axis.low, axis.high]
        earlier = [line for line in self.ax_.lines if line.get_gid() == "reliability-diagonal"]
        if earlier:
            self.diagonal_ = earlier[0]
            self.diagonal_.set_data(ends, ends)
            return
        (self.diagonal_,) = self.ax_.plot(ends, ends, gid="reliability-diagonal", **canvas.dashes(zorder=1))

    def _axis(self) -> Axis:
        values: list[Any] = [np.asarray(part) for line in self._before for part in line.get_data()]
        for b in self.breakdowns.values():
            table = b.partition.table
            values += [b.partition.rate, b.partition.mean_score, quantile(table, 0.01), quantile(table, 0.99)]
            values += [b.rate_interval(self.confidence_level)[1]] if self.intervals else []
        tables = [b.partition.table for b in self.breakdowns.values()]
        scale: Any = self.scale
        if scale is None and self._before:
            axes: Any = self._before[0].axes
            scale = axes.get_xscale()
        return Axis.fitting(choose_scale(tables, scale, self.ymax), values, self.ymax)

    def _draw_model(self, name: str, colour: str, number: int, axis: Axis) -> None:
        ax, breakdown = self.ax_, self.breakdowns[name]
        p, gid = breakdown.partition, f"reliability-{self._ids[name]}"
        ids, dash = f"{gid}-bin-{{}}", canvas.dash(number)
        x, y = axis.inside(p.mean_score), axis.inside(p.rate)
        if name in self.bands:
            band = self.bands[name]
            bars = canvas.vertical_lines(x, axis.inside(band.low), axis.inside(band.high))
            grey = canvas.blend(0.5) if len(self.breakdowns) + len(self._before) == 1 else colour
            width = 9 if len(p) <= 30 else 4
            self.bands_[name] = canvas.lines(ax, bars, f"{ids}-consistency", grey, width, alpha=0.35, zorder=0.8)
        if self.intervals:
            low, high = breakdown.rate_interval(self.confidence_level)
            bars = canvas.vertical_lines(x, axis.inside(low), axis.inside(high))
            self.intervals_[name] = canvas.lines(ax, bars, f"{ids}-interval", colour, 1.1, alpha=0.75)
        extent = zip(axis.inside(p.min_score), axis.inside(p.max_score), y, strict=True)
        spans = [canvas.strokes([(a, r), (z, r)]) for a, z, r in extent]
        self.spans_[name] = canvas.lines(ax, spans, f"{ids}-span", colour, 2.2, alpha=0.45)
        gaps = np.flatnonzero(p.lower[1:] > p.upper[:-1]) + 1  # the line has gaps where bins are empty
        joined = np.insert(np.column_stack([x, y]), gaps, np.nan, axis=0)
        style: dict[str, Any] = {"lw": 1.2, "ls": dash, "label": name, "zorder": 3, "gid": f"{gid}-line"}
        (self.lines_[name],) = ax.plot(*joined.T, color=colour, **style)
        marker = canvas.marker(number)
        self.points_[name] = self._points(breakdown, x, y, colour, marker, f"{ids}-point")

    def _points(self, breakdown: Breakdown, x: Floats, y: Floats, colour: str, marker: str, ids: str) -> list[Line2D]:
        hollow = breakdown.partition.effective_n < self.small
        face = self.ax_.get_facecolor()
        if x.size > canvas.MOST_SINGLE:  # one artist for each kind
            kinds = ((~hollow, colour, "all"), (hollow, face, "small"))
            drawn = [(x[k], y[k], c, ids.format(n)) for k, c, n in kinds if k.any()]
        else:
            drawn = [(x[i : i + 1], y[i : i + 1], face if hollow[i] else colour, ids.format(i)) for i in range(x.size)]
        size = 5.5 if x.size <= 60 else 3
        return [
            self.ax_.plot(a, b, ls="", marker=marker, ms=size, mfc=c, mec=colour, mew=1.2, gid=g, zorder=4)[0]
            for a, b, c, g in drawn
        ]

    def _draw_margins(self, name: str, colour: str, number: int, axis: Axis) -> float:
        """Draw bin sizes and histogram, of one model as bars, of several as lines; return the longest bar."""
        if self.ax_sizes_ is None or self.ax_histogram_ is None:
            return 0.0
        p, ids = self.breakdowns[name].partition, f"reliability-{self._ids[name]}-bin-{{}}-size"
        spans = list(zip(axis.inside(p.lower), axis.inside(p.upper), p.n.astype(np.float64), strict=True))
        if len(self.breakdowns) == 1:
            boxes = [canvas.rectangle(a, z, 0, size) for a, z, size in spans]
            edge = {"edgecolor": self.ax_.get_facecolor(), "linewidth": 0.8 if len(p) <= 30 else 0}
            self.sizes_[name] = canvas.shapes(self.ax_sizes_, boxes, ids, facecolor=canvas.ACCEPTED, **edge)
            bars = histogram_bars(self.ax_histogram_, p.table, axis, "reliability-histogram-{}")
            self.histograms_[name], longest = bars
            return longest
        tops = [canvas.strokes([(a, size), (z, size)]) for a, z, size in spans]
        self.sizes_[name] = canvas.lines(self.ax_sizes_, tops, ids, colour, 1.4)
        edges, counts = histogram(p.table, axis)
        style: dict[str, Any] = {"color": colour, "lw": 1.2, "ls": canvas.dash(number)}
        self.histograms_[name] = [self.ax_histogram_.stairs(counts, edges, orientation="horizontal", **style)]
        return float(counts.max())

    def _dress(self, axis: Axis) -> None:
        breakdowns = list(self.breakdowns.values())
        self.ax_.set_ylabel("event rate")
        if self.ax_sizes_ is None:
            self.ax_.set_xlabel("predicted probability")
            self._dress_given_axes()
            return
        self.ax_sizes_.set_ylim(0, max(float(b.partition.n.max()) for b in breakdowns) * 1.08)
        self.ax_sizes_.locator_params(axis="y", nbins=2)
        self.ax_sizes_.set_xlabel("predicted probability")
        self.ax_.tick_params(labelbottom=False)
        beyond = sum(int((np.maximum(b.partition.rate, b.partition.mean_score) > axis.high).sum()) for b in breakdowns)
        title = self._title()
        if beyond and axis.cut:
            title += f" ({bins_text(beyond)} beyond {axis.high:g} not shown)"
        canvas.legend_above(self.ax_, title, *self._keys(), reach=1.3)

    def _dress_given_axes(self) -> None:
        """Write the legend of all models in the axes of the user, and leave the title to the user."""
        lines = [*self._before, *self.lines_.values()]
        handles = [
            Line2D([], [], color=line.get_color(), ls=line.get_linestyle(), lw=1.2, marker=canvas.marker(i), ms=5.5)
            for i, line in enumerate(lines)
        ]
        labels = [canvas.shorten(str(line.get_label())) for line in lines]
        below = [float(np.nanmean(np.subtract(*np.array(line.get_data(), dtype=np.float64)))) > 0 for line in lines]
        low = sum(below) > len(below) / 2
        canvas.legend(self.ax_, handles, labels, loc="upper left" if low else "lower right")

    def _keys(self) -> tuple[list[Any], list[str]]:
        colours = self._colours()
        several = len(colours) > 1
        handles: list[Any] = [
            Line2D([], [], color=c, marker=canvas.marker(i), ms=5.5, lw=1.2, ls=canvas.dash(i))
            for i, c in enumerate(colours)
        ]
        level = f"{100 * self.confidence_level:g} %"
        single = f"bins, {level} CI" if self.intervals else "bins"
        labels = [canvas.shorten(name) for name in self.breakdowns] if several else [single]
        if any((b.partition.effective_n < self.small).any() for b in self.breakdowns.values()):
            effective = "effective " if any(b.partition.table.importance for b in self.breakdowns.values()) else ""
            handles.append(Line2D([], [], color=canvas.blend(0.6), marker="o", mfc="none", ms=5.5, lw=0))
            labels.append(f"fewer than {self.small} {effective}rows")
        if self.bands:
            handles.append(Patch(color=canvas.blend(0.5), alpha=0.25, lw=0))
            labels.append(f"{100 * next(iter(self.bands.values())).level:g} % null range")
        return handles, labels

    def _title(self) -> str:
        if len(self.breakdowns) > 1:
            return "Reliability"
        ((name, b),) = self.breakdowns.items()
        kind = bins_text(len(b.partition))
        return f"{'Reliability' if name == 'model' else name}, {rows_text(b.partition.table)} in {kind}"

    @property
    def _ids(self) -> dict[str, str]:
        return canvas.ids_by_name(self.breakdowns)

    def _columns(self) -> dict[str, Any]:
        return stacked("model", {name: self._columns_of(name) for name in self.breakdowns})

    def _columns_of(self, name: str) -> dict[str, Any]:
        breakdown, band = self.breakdowns[name], self.bands.get(name)
        count = len(breakdown.partition)
        drawn = ("lower", "upper", "min_score", "max_score", "n", "k", "rate", "mean_score")
        columns = {"bin": np.arange(count)} | {column: breakdown.per_bin[column] for column in drawn}
        if self.intervals:
            columns["rate_low"], columns["rate_high"] = breakdown.rate_interval(self.confidence_level)
        columns["small"] = breakdown.partition.effective_n < self.small
        if self.bands:
            none = np.full(count, np.nan)
            columns["band_low"], columns["band_high"] = (none, none) if band is None else (band.low, band.high)
        return columns

    def __repr__(self) -> str:
        described = [f"{name}: {bins_text(len(b.partition))}" for name, b in self.breakdowns.items()]
        return f"ReliabilityDisplay({canvas.join_short(described)})"

    def alt_text(self) -> str:
        return "Reliability diagram: " + "; ".join(self._describe(name) for name in self.breakdowns) + "."

    def _describe(self, name: str) -> str:
        p = self.breakdowns[name].partition
        gap = p.mean_score - p.rate
        worst = int(np.argmax(np.abs(gap) * p.n))
        who = "" if name == "model" else f"{name}, "
        deviation = "no deviation of event rates from predictions"
        if gap[worst]:
            side = "above" if gap[worst] > 0 else "below"
            deviation = (
                f"the largest deviation (by rows) at a mean prediction of {p.mean_score[worst]:.3g}, "
                f"{side} the event rate of {p.rate[worst]:.3g}"
            )
        return f"{who}{rows_text(p.table)} in {bins_text(len(p))}, {self._outside(name)}{deviation}"

    def _outside(self, name: str) -> str:
        """Count the bins outside the drawn intervals and bands."""
        breakdown, counts = self.breakdowns[name], []
        p = breakdown.partition
        if self.intervals:
            low, high = breakdown.rate_interval(self.confidence_level)
            count = int(((p.mean_score < low) | (p.mean_score > high)).sum())
            counts.append(f"mean predictions outside the {100 * self.confidence_level:g} % CI of their rate: {count}")
        if name in self.bands:
            band = self.bands[name]
            count = int(((p.rate < band.low) | (p.rate > band.high)).sum())
            counts.append(f"rates outside the {100 * band.level:g} % null range: {count}")
        return "".join(f"{text}, " for text in counts)
