"""Axes of probabilities: scale, ticks, the distribution of predictions along an axis, and panels beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Side
from matplotlib.figure import FigureBase
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import InputError, check_option
from calibrant.plots import canvas
from calibrant.tables.score_table import ScoreTable

Scale: TypeAlias = Literal["linear", "log", "logit"]


@dataclass(frozen=True)
class Axis:
    """An axis of probabilities from `low` to `high`.

    A log or logit axis does not contain 0 (and 1): values beyond its ends are drawn at the ends. If the user sets the
    upper end (`cut`), values beyond it are not shown. An axis that contains all its values does not say that its ends
    hold others (`complete`).
    """

    scale: Scale
    low: float
    high: float
    cut: bool = False
    complete: bool = False

    @classmethod
    def fitting(cls, scale: Scale, values: Iterable[Any], limit: float | None = None, name: str = "ymax") -> "Axis":
        """Return an axis that contains all of these probabilities, up to `limit` if given.

        A linear axis starts at 0 and ends at 1, or at the limit. A log axis starts below the smallest positive value. A
        logit axis also ends above the largest value below 1.
        """
        check_option("scale", scale, ("linear", "log", "logit"))
        if limit is not None and not 0 < limit <= 1:
            raise InputError(f"{name} must lie in (0, 1]; got {limit!r}.", argument=name, value=limit)
        limit = None if limit == 1 else limit
        if scale == "linear":
            return cls(scale, 0.0, limit or 1.0, limit is not None)
        every = np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
        low = _step_below(min(every[every > 0], default=0.1))
        if scale == "log":
            return cls(scale, min(low, (limit or 1.0) / 10), limit or 1.0, limit is not None)
        if limit is not None:
            return cls(scale, min(low, limit / 10), min(limit, 1 - 1e-9), cut=True)
        inner = every[(every > 0) & (every < 1)]
        if not inner.size:
            return cls(scale, 0.1, 0.9)
        return cls(scale, _end_below(inner.min()), 1 - _end_below(1 - inner.max()))

    def inside(self, p: Any) -> Any:
        """Clip probabilities to the ends of a log or logit axis."""
        if self.scale == "linear":
            return np.asarray(p, dtype=np.float64)
        top = 1.0 if self.scale == "log" else 1 - 1e-12 if self.cut else self.high
        return np.clip(p, self.low, top)

    def contains(self, p: Floats) -> Bools:
        """Return which probabilities lie between the ends of the axis."""
        return (p >= self.low) & (p <= self.high)

    def forward(self, p: Any) -> Any:
        """Transform probabilities to positions along the axis."""
        p = np.asarray(self.inside(p), dtype=np.float64)
        if self.scale == "linear":
            return p
        return np.log(p) if self.scale == "log" else np.log(p / (1 - p))

    def backward(self, place: Any) -> Any:
        """Transform positions along the axis to probabilities."""
        if self.scale == "linear":
            return place
        return np.exp(place) if self.scale == "log" else 1 / (1 + np.exp(-place))

    def apply(self, side: Side) -> None:
        """Set scale, limits and ticks of one side of axes; tick labels at clipping ends start with ≤ or ≥."""
        axes, upright = side.axes, side is side.axes.yaxis
        if self.scale == "linear":
            (axes.set_ylim if upright else axes.set_xlim)(-0.025 * self.high, 1.025 * self.high)
            return
        (axes.set_yscale if upright else axes.set_xscale)(self.scale)
        low, high = self.forward(self.low), self.forward(self.high)
        room = 0.02 * (high - low)
        (axes.set_ylim if upright else axes.set_xlim)(self.backward(low - room), self.backward(high + room))
        narrow = max(1.0, 6.4 * axes.figure.dpi / axes.figure.bbox.width)  # labels are wider than high
        side.set_major_locator(FixedLocator(self._ticks(0.07 if upright else 0.15 * narrow)))
        side.set_minor_locator(NullLocator())
        side.set_major_formatter(FuncFormatter(self._label))

    def _ticks(self, room: float) -> list[float]:
        """Return both ends, and the powers of ten between them (or more, if there are few) that have enough room."""
        nearest = self.low if self.scale == "log" else min(self.low, 1 - self.high)
        tens = [10.0**d for d in np.arange(np.floor(np.log10(nearest) + 1e-9), 0)]
        more = [m * p for p in tens for m in (2, 5) if m * p < 0.5 or self.scale == "log"]
        every, more = ([*tens, 1.0], more) if self.scale == "log" else ([*_both_sides(tens), 0.5], _both_sides(more))
        if sum(self.low < p < self.high for p in every) < 4:
            every += more
        low, high = self.forward(self.low), self.forward(self.high)
        taken, kept = low, []
        for p in sorted(every):
            place = self.forward(p)
            if p < self.high and min(place - taken, high - place) > room * (high - low):
                kept.append(p)
                taken = place
        return [self.low, *kept, self.high]

    def _label(self, p: float, position: int | None = None) -> str:
        text = _plain(p)
        if self.complete:
            return text
        if np.isclose(p, self.low, rtol=1e-6, atol=0):
            return f"≤ {text}"
        gathers = self.scale == "logit" and not self.cut
        return f"≥ {text}" if gathers and np.isclose(1 - p, 1 - self.high, rtol=1e-6, atol=0) else text


def _both_sides(values: list[float]) -> list[float]:
    """Return probabilities, and those at the same distances from 1."""
    return [*values, *(1 - p for p in values)]


def _end_below(value: float) -> float:
    """Return the end of a logit axis below the value: a step below it, or, above 1/2, a step closer to 1/2."""
    return _step_below(value) if value <= 0.5 else 1 - _step_above(1 - value)


def _step_above(value: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten above the value."""
    decade = 10.0 ** np.floor(np.log10(max(float(value), 1e-9)))
    return float(min(m * decade for m in (1, 2, 5, 10) if m * decade > value * (1 + 1e-9)))


def _step_below(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten below the value, at least 1e-9."""
    value = max(float(value), 2e-9)
    decade = 10.0 ** np.floor(np.log10(value))
    return float(max(m * decade for m in (0.5, 1, 2, 5) if m * decade < value * (1 - 1e-9)))


def _plain(p: float) -> str:
    """Format a probability with as few digits as needed."""
    if 0 < p < 1e-4:
        return f"{p:.0e}".replace("e-0", "e-")
    if 0 < 1 - p < 1e-3:
        return f"1 - {1 - p:.0e}".replace("e-0", "e-")
    return f"{p:.9f}".rstrip("0").rstrip(".")


def histogram(table: ScoreTable, axis: Axis, cells: int = 40) -> tuple[Floats, Floats]:
    """Return edges of cells of equal length along the axis, and the rows between them.

    Cells are closed on the left, the last one on both sides. Values beyond the ends count in the outer cells.
    """
    edges = axis.backward(np.linspace(axis.forward(axis.low), axis.forward(axis.high), cells + 1))
    inner = np.searchsorted(table.score, edges[1:-1])
    before = np.concatenate([[0.0], np.cumsum(table.n, dtype=np.float64)])
    end = np.searchsorted(table.score, axis.high, side="right") if axis.cut else len(table)
    return edges, np.diff(before[np.concatenate([[0], inner, [end]])])


def choose_scale(tables: Iterable[ScoreTable], scale: Scale | None, ymax: float | None) -> Scale:
    """Return the given scale; without one "logit" where scores crowd an end of [0, 1], and "linear" elsewhere.

    Scores crowd an end if at least 80 % of the rows lie within 0.1 of it, in each table. With `ymax` a linear axis
    already magnifies the low end.
    """
    if scale is not None or ymax is not None:
        return scale or "linear"
    return "logit" if all(table.crowds_end for table in tables) else "linear"


def quantile(table: ScoreTable, share: float) -> float:
    """Return the lowest score that at least this share of rows does not exceed."""
    reached = np.cumsum(table.n, dtype=np.float64)
    return float(table.score[min(np.searchsorted(reached, share * reached[-1]), len(table) - 1)])


class Panels(NamedTuple):
    """The figure and its axes; the outer panels are None in the axes of a user, where there is no room for them."""

    figure: FigureBase
    main: Axes
    sizes: Axes | None = None
    histogram: Axes | None = None

    @classmethod
    def create(
        cls, ax: Axes | None, fig: FigureBase | None, heights: tuple[float, float], size: tuple[float, float]
    ) -> "Panels":
        """Create panels in the place of `ax`, in `fig`, or in a new figure, with shared axes."""
        figure, grid = canvas.panels(ax, fig, widths=(6, 1), heights=heights, size=size)
        main = figure.add_subplot(grid[0, 0])
        below = figure.add_subplot(grid[1, 0], sharex=main)
        return cls(figure, main, below, figure.add_subplot(grid[0, 1], sharey=main))

    def dress(self, axis: Axis, fullest: float, importance: bool) -> None:
        """Set ticks, labels and limits of the outer panels; `fullest` is the longest bar of the histogram."""
        canvas.dress(self.main)
        if self.sizes is None or self.histogram is None:
            return
        unit = canvas.rows_label(importance)
        canvas.dress(self.sizes, ylabel=unit)
        canvas.dress(self.histogram, xlim=(0, max(fullest, 1.0) * 1.05))
        self.histogram.locator_params(axis="x", nbins=2)
        self.histogram.tick_params(labelleft=False)
        self.histogram.yaxis.set_label_position("right")
        label = f"{unit} up to {axis.high:g}" if axis.cut else f"all {unit}"
        self.histogram.set_ylabel(label, rotation=270, va="bottom", fontsize="small")


def histogram_bars(ax: Axes, table: ScoreTable, axis: Axis, ids: str) -> tuple[list[Artist], float]:
    """Draw the histogram of all predictions along the vertical axis; return its bars and the longest length."""
    edges, counts = histogram(table, axis)
    bars = [canvas.rectangle(0, c, a, z) for c, a, z in zip(counts, edges[:-1], edges[1:], strict=True) if c > 0]
    return canvas.shapes(ax, bars, ids, facecolor=canvas.blend(0.45), linewidth=0), float(counts.max())
