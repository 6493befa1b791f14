"""`BinningDisplay`: kinds of bins compared on one model's predictions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant.metrics.bins import PAVA, PAVABC, Bins, Quantile
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import absolute_gap
from calibrant.metrics.norms import weighted_l1
from calibrant.metrics.optimal_bins import mean_within_error, total_error
from calibrant.plots._canvas import (
    Axis,
    Scale,
    draw_title,
    ids_by_name,
    join_short,
    legend_above,
    panels,
    rectangle,
    rows_label,
    shapes,
    shorten,
    stacked_frame,
    strokes,
)
from calibrant.plots._density import quantile
from calibrant.plots._inputs import check_breakdown, named_results, predict_scores
from calibrant.plots._palette import ACCEPTED, REJECTED, blend, event_colour
from calibrant.results.text import bins_text
from calibrant.tables.partition import Partition
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import read_score_table

__all__ = ["BinningDisplay"]

_KINDS: Mapping[str, Bins] = {"PAVA": PAVA(), "PAVA-BC": PAVABC(), "10 quantiles": Quantile(10)}


@dataclass(eq=False, repr=False)
class BinningDisplay:
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
        Those of single bins have the id (gid) ``binning-<kind>-bin-<number>-<part>``.
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
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "BinningDisplay":
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
        BinningDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, predict_scores(estimator, X, options), **options)

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
    ) -> "BinningDisplay":
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
        kinds = len(self.partitions)
        figure, grid = panels(ax, fig, widths=(1, 1), heights=(1,) * kinds, size=(8, 0.6 + 2.1 * kinds))
        self.figure_ = figure
        axis = self._axis()
        self.ax_sizes_: dict[str, Axes] = {}
        self.ax_rates_: dict[str, Axes] = {}
        self.sizes_: dict[str, list[Artist]] = {}
        self.rates_: dict[str, list[Artist]] = {}
        self.boundaries_: dict[str, tuple[LineCollection, ...]] = {}
        self.violations_: dict[str, Line2D] = {}
        for row, name in enumerate(self.partitions):
            left, right = figure.add_subplot(grid[row, 0]), figure.add_subplot(grid[row, 1])
            self.ax_sizes_[name], self.ax_rates_[name] = left, right
            self._draw(name, left, right, axis)
            for side in (left, right):
                axis.apply(side.xaxis)
                side.spines[["top", "right"]].set_visible(False)
                side.tick_params(labelbottom=row == kinds - 1)
                if row == kinds - 1:
                    side.set_xlabel("predicted probability")
        return self

    def _axis(self) -> Axis:
        every = [value for p in self.partitions.values() for value in (p.mean_score, p.rate)]
        table = next(iter(self.partitions.values())).table
        return Axis.fitting(self.scale, (*every, quantile(table, 0.01), quantile(table, 0.99)), self.xmax, "xmax")

    def _draw(self, name: str, left: Axes, right: Axes, axis: Axis) -> None:
        p, ids = self.partitions[name], f"binning-{self._ids[name]}-bin-{{}}-"
        lower, upper, rate = axis.inside(p.lower), axis.inside(p.upper), p.rate
        spans = list(zip(lower, upper, p.n.tolist(), axis.inside(rate), strict=True))
        shown = p.lower < axis.high
        self.sizes_[name] = shapes(
            left,
            [rectangle(a, z, 0, n) if s else None for (a, z, n, _), s in zip(spans, shown, strict=True)],
            ids + "size",
            facecolor=ACCEPTED,
            linewidth=0,
        )
        self.rates_[name] = shapes(
            right,
            [strokes([(a, r), (z, r)]) if s else None for (a, z, _, r), s in zip(spans, shown, strict=True)],
            ids + "rate",
            facecolor="none",
            edgecolor=event_colour(),
            linewidth=2,
        )
        inner = axis.inside(p.lower[1:][p.lower[1:] <= axis.high])
        self.boundaries_[name] = tuple(
            side.vlines(inner, 0, 1, transform=side.get_xaxis_transform(), color=blend(0.55), ls=":", lw=0.8, zorder=3)
            for side in (left, right)
        )
        axis.apply(right.yaxis)
        falling = self.falling(p)
        falling = falling[shown[falling]]
        middle = axis.backward((axis.forward(p.lower[falling]) + axis.forward(p.upper[falling])) / 2)
        (self.violations_[name],) = right.plot(
            middle, axis.inside(rate[falling]), ls="", marker="v", ms=6, mfc=REJECTED, mec=blend(0.9), mew=0.7, zorder=5
        )
        left.set_ylim(0, float(p.n.max()) * 1.08)
        left.locator_params(axis="y", nbins=4)
        left.set_ylabel(rows_label(p.table.importance))
        right.set_ylabel("event rate")
        count = bins_text(len(p))
        errors = f"total error {total_error(p):.4f}, mean per bin {mean_within_error(p):.4f}"
        if name == next(iter(self.partitions)):
            self._keys(left, f"{shorten(name)}: {count}", right, errors)
        else:
            draw_title(left, f"{shorten(name)}: {count}")
            draw_title(right, errors, size="small")

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

    def _keys(self, left: Axes, sizes: str, right: Axes, rates: str) -> None:
        """Draw the titles of the first row, with legends."""
        edge = Line2D([], [], color=blend(0.55), ls=":", lw=0.8)
        legend_above(left, sizes, [Patch(color=ACCEPTED), edge], ["bin size", "edge"])
        handles, labels = [Line2D([], [], color=event_colour(), lw=2)], ["event rate"]
        if any(self.falling(p).size for p in self.partitions.values()):
            handles.append(Line2D([], [], ls="", marker="v", ms=6, mfc=REJECTED, mec=blend(0.9), mew=0.7))
            labels.append("below the previous bin")
        legend_above(right, rates, handles, labels, size="small")

    @property
    def _ids(self) -> dict[str, str]:
        return ids_by_name(self.partitions)

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per kind and bin; the errors of a kind are repeated in its rows.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        parts = []
        for name, p in self.partitions.items():
            falls = np.zeros(len(p), dtype=bool)
            falls[self.falling(p)] = True
            parts.append(
                {
                    "bins": np.full(len(p), name, dtype=object),
                    "bin": np.arange(len(p)),
                    "lower": p.lower,
                    "upper": p.upper,
                    "n": p.n,
                    "k": p.k,
                    "rate": p.rate,
                    "mean_score": p.mean_score,
                    "falls": falls,
                    "total_error": np.full(len(p), total_error(p)),
                    "mean_within_error": np.full(len(p), mean_within_error(p)),
                }
            )
        return stacked_frame(parts, backend)

    def __repr__(self) -> str:
        kinds = [f"{name}: {bins_text(len(p))}" for name, p in self.partitions.items()]
        return f"BinningDisplay({join_short(kinds)})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        ways = len(self.partitions)
        each = "; ".join(f"{name}, {self._describe(p)}" for name, p in self.partitions.items())
        return f"Bins of the same predictions in {ways} way{'s' * (ways != 1)}: {each}."

    def _describe(self, p: Partition) -> str:
        least, most = (f"{n:,.6g}" if p.table.importance else f"{n:,}" for n in (p.n.min(), p.n.max()))
        size = f"of {least}" if least == most else f"of {least} to {most}"
        falling = self.falling(p).size
        falls = f", {falling} with a rate below the previous bin" if falling else ""
        return (
            f"{bins_text(len(p))} {size} {rows_label(p.table.importance)}{falls}, "
            f"total error {total_error(p):.4f}, mean error per bin {mean_within_error(p):.4f}"
        )
