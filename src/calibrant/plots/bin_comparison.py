"""`BinningDisplay`: kinds of bins compared on one model's predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant.metrics.bins import PAVA, PAVABC, Bins, EqualSize
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import absolute_gap
from calibrant.metrics.norms import weighted_l1
from calibrant.metrics.optimal_bins import mean_within_error, total_error
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, check_breakdown, named_results, stacked
from calibrant.plots.probability_axes import Axis, Scale, quantile
from calibrant.results.text import bins_text
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import Partition, read_score_table

_KINDS: Mapping[str, Bins] = {"PAVA": PAVA(), "PAVA-BC": PAVABC(), "10 quantiles": EqualSize(10)}


@dataclass(eq=False, repr=False)
class BinningDisplay(ScoreDisplay):
    """Kinds of bins compared: Figures 2 to 4 of Matsubara et al. (2023).

    Each kind has a row of panels: at the left the size of each bin between its edges (dotted), at the right its event
    rate. A triangle marks a bin whose rate is below that of the previous bin (a violation of monotonicity). The titles
    have the two criteria of the paper's Table 1: the total estimation error (equation (8)) and the mean over bins of
    the error within each.

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    partitions : mapping of name to Partition
    figure_ : Figure or SubFigure
    ax_sizes_, ax_rates_ : mappings of name to Axes
    sizes_, rates_, boundaries_, violations_ : mappings of name to artists
        Those of single bins have the id (gid) ``binning-<kind>-bin-<number>-<part>``. `data` has one row per kind and
        bin; the errors of a kind are repeated in its rows.
    scale : str
        Scale of the axis of scores.
    xmax : float or None
        End of the axis of scores.

    See Also
    --------
    TestBasedReliabilityDisplay, PAVABC

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = BinningDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9], fig=Figure())
    >>> [len(partition) for partition in display.partitions.values()]
    [3, 4, 4]
    """

    partitions: Mapping[str, Partition]
    scale: Scale = "linear"
    xmax: float | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        bins: Mapping[str, Bins] | None = None,
        scale: Scale = "linear",
        xmax: float | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "BinningDisplay":
        """Bin predictions in several ways and draw the bins.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`.
        bins : mapping of name to kind of bins, optional
            By default PAVA, PAVA-BC and ten quantiles, as in the paper.
        scale, xmax, ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        BinningDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        table = read_score_table(y_true, y_prob, rows)
        kinds = _KINDS if bins is None else bins
        measured = {name: GCE(kind, absolute_gap, weighted_l1)(table) for name, kind in kinds.items()}
        return cls.from_breakdown(measured, scale=scale, xmax=xmax, ax=ax, fig=fig)

    @classmethod
    def from_breakdown(
        cls,
        breakdown: Breakdown | Mapping[str, Breakdown],
        *,
        scale: Scale = "linear",
        xmax: float | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "BinningDisplay":
        """Draw the bins of one Breakdown, or of a mapping of name to Breakdown.

        Parameters
        ----------
        breakdown : Breakdown or mapping of name to Breakdown
            Results whose bins are drawn.
        scale, xmax, ax, fig
            See `plot`.

        Returns
        -------
        BinningDisplay
            The display, drawn.
        """
        measured = named_results(breakdown, default="bins")
        partitions = {name: check_breakdown(each).partition for name, each in measured.items()}
        return cls(partitions, scale, xmax).plot(ax=ax, fig=fig)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        scale: Scale | None = None,
        xmax: float | None = None,
    ) -> Self:
        """Draw in the place of `ax`, in `fig`, or in a new figure; omitted options keep their values.

        Parameters
        ----------
        ax : Axes, optional
            Axes whose place the panels take.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.
        scale : {"linear", "log", "logit"}, optional
            Scale of predictions and rates.
        xmax : float, optional
            Upper end of both axes, as in the paper's Figure 4.

        Returns
        -------
        BinningDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.scale = self.scale if scale is None else scale
        self.xmax = self.xmax if xmax is None else xmax
        count = len(self.partitions)
        places: dict[str, Any] = {"widths": (1, 1), "heights": (1,) * count, "size": (8, 0.6 + 2.1 * count)}
        self.figure_, grid = canvas.panels(ax, fig, **places)
        axis, ids = self._axis(), canvas.ids_by_name(self.partitions)
        self.ax_sizes_: dict[str, Axes] = {}
        self.ax_rates_: dict[str, Axes] = {}
        self.sizes_: dict[str, list[Artist]] = {}
        self.rates_: dict[str, list[Artist]] = {}
        self.boundaries_: dict[str, tuple[LineCollection, ...]] = {}
        self.violations_: dict[str, Line2D] = {}
        for row, name in enumerate(self.partitions):
            left, right = self.figure_.add_subplot(grid[row, 0]), self.figure_.add_subplot(grid[row, 1])
            self.ax_sizes_[name], self.ax_rates_[name] = left, right
            self._draw_bins(name, f"binning-{ids[name]}-bin-{{}}", axis)
            self._dress(name)
            lowest = row == count - 1
            for side in (left, right):
                axis.apply(side.xaxis)
                canvas.dress(side, xlabel="predicted probability" if lowest else "")
                side.tick_params(labelbottom=lowest)
        return self

    def _axis(self) -> Axis:
        every = [value for p in self.partitions.values() for value in (p.mean_score, p.rate)]
        table = next(iter(self.partitions.values())).table
        return Axis.fitting(self.scale, (*every, quantile(table, 0.01), quantile(table, 0.99)), self.xmax, "xmax")

    def _draw_bins(self, name: str, ids: str, axis: Axis) -> None:
        p, left, right = self.partitions[name], self.ax_sizes_[name], self.ax_rates_[name]
        lower, upper, rate = axis.inside(p.lower), axis.inside(p.upper), axis.inside(p.rate)
        visible = p.lower < axis.high
        bins = list(zip(lower, upper, p.n.tolist(), rate, visible, strict=True))
        boxes = [canvas.rectangle(a, z, 0, n) if seen else None for a, z, n, _, seen in bins]
        self.sizes_[name] = canvas.shapes(left, boxes, f"{ids}-size", facecolor=canvas.ACCEPTED, linewidth=0)
        levels = [canvas.strokes([(a, r), (z, r)]) if seen else None for a, z, _, r, seen in bins]
        self.rates_[name] = canvas.lines(right, levels, f"{ids}-rate", canvas.event_colour(), 2)
        inner = axis.inside(p.lower[1:][p.lower[1:] <= axis.high])
        self.boundaries_[name] = tuple(
            side.vlines(inner, 0, 1, transform=side.get_xaxis_transform(), zorder=3, **self._marks["edge"])
            for side in (left, right)
        )
        axis.apply(right.yaxis)
        falling = self.falling(p)
        falling = falling[visible[falling]]
        middle = axis.backward((axis.forward(p.lower[falling]) + axis.forward(p.upper[falling])) / 2)
        (self.violations_[name],) = right.plot(middle, rate[falling], zorder=5, **self._marks["violation"])

    @property
    def _marks(self) -> dict[str, dict[str, Any]]:
        """The styles of edges and violations, here and in the legends."""
        violation = {"ls": "", "marker": "v", "ms": 6, "mfc": canvas.REJECTED, "mec": canvas.blend(0.9), "mew": 0.7}
        return {"edge": {"color": canvas.blend(0.55), "ls": ":", "lw": 0.8}, "violation": violation}

    def _dress(self, name: str) -> None:
        p, left, right = self.partitions[name], self.ax_sizes_[name], self.ax_rates_[name]
        left.set(ylim=(0, float(p.n.max()) * 1.08), ylabel=canvas.rows_label(p.table.importance))
        left.locator_params(axis="y", nbins=4)
        right.set_ylabel("event rate")
        sizes = f"{canvas.shorten(name)}: {bins_text(len(p))}"
        errors = f"total error {total_error(p):.4f}, mean per bin {mean_within_error(p):.4f}"
        if name != next(iter(self.partitions)):
            canvas.draw_title(left, sizes)
            canvas.draw_title(right, errors, size="small")
            return
        edge = Line2D([], [], **self._marks["edge"])
        canvas.legend_above(left, sizes, [Patch(color=canvas.ACCEPTED), edge], ["bin size", "edge"])
        handles, labels = [Line2D([], [], color=canvas.event_colour(), lw=2)], ["event rate"]
        if any(self.falling(p).size for p in self.partitions.values()):
            handles.append(Line2D([], [], **self._marks["violation"]))
            labels.append("below the previous bin")
        canvas.legend_above(right, errors, handles, labels, size="small")

    @staticmethod
    def falling(partition: Partition) -> Any:
        """Return the indices of bins whose rate is below that of the previous bin, by exact products of counts.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        array of int
            Positions of these bins.
        """
        k, n = partition.k.astype(object), partition.n.astype(object)
        return np.flatnonzero((k[1:] * n[:-1] < k[:-1] * n[1:]).astype(bool)) + 1

    def _columns(self) -> dict[str, Any]:
        parts = {}
        for name, p in self.partitions.items():
            count = len(p)
            columns = {column: getattr(p, column) for column in ("lower", "upper", "n", "k", "rate", "mean_score")}
            errors = {"total_error": total_error(p), "mean_within_error": mean_within_error(p)}
            falls = {"falls": np.isin(np.arange(count), self.falling(p))}
            parts[name] = {"bin": np.arange(count), **columns, **falls}
            parts[name] |= {error: np.full(count, value) for error, value in errors.items()}
        return stacked("bins", parts)

    def __repr__(self) -> str:
        kinds = [f"{name}: {bins_text(len(p))}" for name, p in self.partitions.items()]
        return f"BinningDisplay({canvas.join_short(kinds)})"

    def alt_text(self) -> str:
        ways = len(self.partitions)
        each = "; ".join(f"{name}, {self._describe(p)}" for name, p in self.partitions.items())
        return f"Bins of the same predictions in {ways} way{'s' * (ways != 1)}: {each}."

    def _describe(self, p: Partition) -> str:
        least, most = (f"{n:,.6g}" if p.table.importance else f"{n:,}" for n in (p.n.min(), p.n.max()))
        size = f"of {least}" if least == most else f"of {least} to {most}"
        falling = self.falling(p).size
        falls = f", {falling} with a rate below the previous bin" if falling else ""
        return (
            f"{bins_text(len(p))} {size} {canvas.rows_label(p.table.importance)}{falls}, "
            f"total error {total_error(p):.4f}, mean error per bin {mean_within_error(p):.4f}"
        )
