"""`SegmentDisplay` and `SegmentMapDisplay`: the segments of an audit as a forest plot, and all its rows as tiles."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Rectangle

from calibrant._support.formatting import printable
from calibrant._support.plain_data import frame_from_columns
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay
from calibrant.results.audit import Audit, Segment

UNDER, OVER = canvas.REJECTED, canvas.MODELS[0]
_MOST_LETTERS = 44
Tile: TypeAlias = tuple[float, float, float, float]  # left, top, width and height, in inches
_LETTERS_PER_INCH, _LINES_PER_INCH = 13.5, 5.6


@dataclass(eq=False, repr=False)
class AuditDisplay(AxesDisplay):
    """A diagram of an audit."""

    audit: Audit

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None, fig: FigureBase | None = None) -> Self:
        """Draw the result of `calibrant.audit`.

        Parameters
        ----------
        audit : Audit
            Result of `calibrant.audit`.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        Display
            The display, drawn.
        """
        return cls(audit).plot(ax=ax, fig=fig)

    def _means(self, segment: Segment, form: str, form_of_shares: str) -> str:
        """Format the mean forecast and the mean outcome of a segment, probabilities as percent."""
        if self.audit.terms.is_share:
            return form_of_shares.format(100 * segment.predicted, 100 * segment.observed)
        return form.format(segment.predicted, segment.observed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.audit.verdict})"


@dataclass(eq=False, repr=False)
class SegmentDisplay(AuditDisplay):
    """Segments of an audit as a forest plot: the largest errors first; areas show numbers of rows.

    Log-odds errors to the right are underestimated (more events than predicted), those to the left overestimated. Mean
    errors of numbers are predictions less outcomes: those to the right are overestimated. At the right margin stand
    rows and means.

    `from_audit` creates and draws it.

    Attributes
    ----------
    audit : Audit
    figure_, ax_ : Figure, Axes
        After drawing; `data` has one row per segment.

    See Also
    --------
    SegmentMapDisplay, audit

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> found.plot().data()["rule"].tolist()
    ['region = 2']
    """

    def __post_init__(self) -> None:
        self._size = 10.0, 1.5 + 0.34 * max(len(self.audit.segments), 1)

    @property
    def segments(self) -> list[Segment]:
        """The segments in the order in which they are drawn, from above."""
        return sorted(self.audit.segments, key=lambda s: -abs(s.error) if np.isfinite(s.error) else 0.0)

    def _draw(self) -> None:
        ax, segments = self.ax_, self.segments
        largest = max((segment.n_rows for segment in segments), default=1)
        style: dict[str, Any] = {"va": "center", "fontsize": "small", "color": canvas.blend(0.75), "parse_math": False}
        for place, segment in enumerate(segments):
            colour = UNDER if segment.direction == "underestimates" else OVER
            ax.plot([segment.low, segment.high], [place, place], color=colour, lw=2.2, solid_capstyle="round")
            size = 16 + 60 * segment.n_rows / largest
            ax.scatter(segment.error, place, s=size, color=colour, zorder=3, gid=f"segment-{place + 1}")
            means = self._means(segment, "{:.4g} predicted, {:.4g} observed", "{:.3g} % predicted, {:.3g} % observed")
            where = (1.0, place), (6, 0), ("axes fraction", "data"), "offset points"
            ax.annotate(f"{segment.n_rows:,} rows: {means}", *where, **style)
        rules = [canvas.shorten(segment.rule, _MOST_LETTERS) for segment in segments]
        ax.set_yticks(range(len(segments)), rules, parse_math=False, fontsize="small")
        ax.axvline(0, **canvas.dashes(0.4, zorder=0.5))
        ends = [abs(end) for s in segments for end in (s.low, s.high, s.error) if np.isfinite(end)]
        reach = 1.1 * max(ends, default=1.0)
        canvas.dress(ax, xlim=(-reach, reach), ylim=(max(len(segments), 1) - 0.4, -0.6))
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        error = self.audit.error_name.replace("log_odds", "log-odds").replace("_", " ")
        left, right = ("overestimated", "underestimated")[:: 1 if self.audit.terms.is_share else -1]
        ax.set_xlabel(f"{error}{'' if self.audit.terms.is_share else ', prediction less outcome'}")
        small = f"{left} to the left, {right} to the right; {100 * self.audit.confidence_level:g} % CI"
        title = self.audit.verdict[:1].upper() + self.audit.verdict[1:]
        canvas.draw_title(ax, title, small if segments else "")

    def data(self, backend: str = "pandas") -> Any:
        return self.audit.to_frame(backend)

    def alt_text(self) -> str:
        name = "Log-odds errors" if self.audit.terms.is_share else "Mean errors"
        each = "; ".join(f"{s.rule}: {s.error:{self.audit.terms.error_format}}" for s in self.segments)
        return f"{name} of segments ({self.audit.verdict}){': ' + each if each else ''}."


@dataclass(eq=False, repr=False)
class SegmentMapDisplay(AuditDisplay):
    """The rows of an audit as a map of tiles (a treemap): areas are numbers of rows, colours are errors.

    A row that several segments have belongs to the tile of the first of them. Orange tiles are underestimated, blue
    ones overestimated; stronger colours are larger errors. The last tile has the rows in no segment.

    `from_audit` creates and draws it.

    Attributes
    ----------
    audit : Audit
    figure_, ax_ : Figure, Axes
        After drawing; `data` has one row per tile: rule, rows and error; the last one has the rows in no segment.

    See Also
    --------
    SegmentDisplay, audit

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> int(found.plot_map().data()["n_rows"].sum())
    6000
    """

    _size = (9.0, 5.0)

    @property
    def rest(self) -> int:
        """Number of rows in no segment."""
        return self.audit.n_rows - sum(segment.n_new_rows for segment in self.audit.segments)

    def _draw(self) -> None:
        whole: Any = self.figure_
        inches = (whole if hasattr(whole, "get_size_inches") else whole.figure).get_size_inches()
        wide, high = float(inches[0]) * 0.96, float(inches[1]) * 0.86
        segments = [segment for segment in self.audit.segments if segment.n_new_rows]
        sizes = [segment.n_new_rows for segment in segments] + ([self.rest] if self.rest else [])
        tiles = squarified(sizes, wide, high)
        largest = max((abs(s.error) for s in segments if np.isfinite(s.error)), default=1.0) or 1.0
        for number, segment in enumerate(segments):
            strength = 1.0 if not np.isfinite(segment.error) else abs(segment.error) / largest
            colour = UNDER if segment.direction == "underestimates" else OVER
            self._add(tiles[number], colour, 0.2 + 0.4 * strength, f"segment-tile-{number + 1}")
            means = self._means(segment, "{:.4g} → {:.4g}", "{:.3g} → {:.3g} %")
            self._write(tiles[number], segment.rule, [f"{segment.n_new_rows:,} rows", means])
        if self.rest:
            self._add(tiles[-1], canvas.blend(0.5), 0.12, "segment-tile-rest")
            self._write(tiles[-1], f"{self.rest:,} rows in no segment shown", [])
        self.ax_.set(xlim=(0, wide), ylim=(high, 0), xticks=[], yticks=[])
        self.ax_.spines[:].set_visible(False)
        title = f"{self.audit.n_rows:,} rows, {self.audit.verdict}"
        small = "area: rows; predicted → observed; orange: underestimated, blue: overestimated; strong: large error"
        canvas.draw_title(self.ax_, title, small if self.audit.segments else "")

    def _add(self, tile: Tile, colour: Any, alpha: float, name: str) -> None:
        gap, (x, y, width, height) = 0.02, tile
        shape = Rectangle((x + gap, y + gap), max(width - 2 * gap, 0), max(height - 2 * gap, 0), color=colour)
        shape.set(alpha=alpha, linewidth=0, gid=name)
        self.ax_.add_patch(shape)

    def _write(self, tile: Tile, heading: str, below: list[str]) -> None:
        """Write as much text as fits into a tile; none into small ones."""
        x, y, width, height = tile
        letters, lines = int((width - 0.16) * _LETTERS_PER_INCH), int((height - 0.1) * _LINES_PER_INCH)
        if letters < 9 or lines < 1:
            return
        above = textwrap.wrap(printable(heading), letters)
        fits = len(above) + len(below) <= lines and all(len(line) <= letters for line in below)
        if len(above) > lines:
            above = [*above[: lines - 1], canvas.shorten(" ".join(above[lines - 1 :]), letters)]
        text = "\n".join([*above, *(below if fits else [])])
        self.ax_.text(
            x + 0.09, y + 0.08, text, va="top", ha="left", fontsize="small", parse_math=False, linespacing=1.25
        )

    def data(self, backend: str = "pandas") -> Any:
        segments = self.audit.segments
        rules = [*(segment.rule for segment in segments), None]
        rows = [*(segment.n_new_rows for segment in segments), self.rest]
        errors = [*(segment.error for segment in segments), np.nan]
        return frame_from_columns({"rule": rules, "n_rows": rows, self.audit.error_name: errors}, backend)

    def alt_text(self) -> str:
        each = "; ".join(f"{s.rule}: {s.n_new_rows:,} rows, {s.direction}" for s in self.audit.segments)
        return f"Map of {self.audit.n_rows:,} rows ({self.audit.verdict}){': ' + each if each else ''}."


def squarified(sizes: Sequence[float], width: float, height: float) -> list[Tile]:
    """Return tiles of a rectangle with areas in proportion to sizes, in their order and close to squares.

    Bruls, Huizing and van Wijk (2000): rows of tiles along the shorter side, each as long as that improves its ratios.
    """
    total, tiles = float(sum(sizes)), list[Tile]()
    areas = [size / total * width * height for size in sizes] if total else []
    x = y = 0.0
    while areas:
        side = min(width - x, height - y)
        count = 1
        while count < len(areas) and _worst(areas[: count + 1], side) <= _worst(areas[:count], side):
            count += 1
        row, areas = areas[:count], areas[count:]
        depth, along = sum(row) / side, 0.0
        for area in row:
            length = area / depth
            upright = side == height - y
            tiles.append((x, y + along, depth, length) if upright else (x + along, y, length, depth))
            along += length
        x, y = (x + depth, y) if side == height - y else (x, y + depth)
    return tiles


def _worst(areas: Sequence[float], side: float) -> float:
    """Return the largest ratio of the sides of the tiles of a row."""
    depth = sum(areas) / side
    return max(max(depth / (area / depth), area / depth / depth) for area in areas)
