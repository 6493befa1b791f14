"""`SegmentMapDisplay`: all rows of an audit as tiles, one per segment."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Rectangle

from calibrant._support.formatting import printable
from calibrant._support.plain_data import frame_from_columns
from calibrant.plots._canvas import draw_title, shorten, single_axes
from calibrant.plots._palette import MODELS, REJECTED, blend
from calibrant.results.audit import Audit, Segment

__all__ = ["SegmentMapDisplay"]

UNDER, OVER = REJECTED, MODELS[0]
_LETTERS_PER_INCH, _LINES_PER_INCH = 13.5, 5.6
_REST = "in no segment shown"


@dataclass(frozen=True)
class _Tile:
    x: float
    y: float
    width: float
    height: float


@dataclass(eq=False, repr=False)
class SegmentMapDisplay:
    """The rows of an audit as a map of tiles (a treemap): areas are numbers of rows, colours are errors.

    A row that several segments have belongs to the tile of the first of them. Orange tiles are underestimated, blue
    ones overestimated; stronger colours are larger errors. The last tile has the rows in no segment.

    `from_audit` creates and draws it.

    Attributes
    ----------
    audit : Audit
    figure_, ax_ : Figure, Axes

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

    audit: Audit

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "SegmentMapDisplay":
        """Draw the rows of an audit.

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
        SegmentMapDisplay
            The display, drawn.
        """
        return cls(audit).plot(ax=ax, fig=fig)

    @property
    def rest(self) -> int:
        """Number of rows in no segment."""
        return self.audit.n_rows - sum(segment.n_new_rows for segment in self.audit.segments)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "SegmentMapDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        SegmentMapDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.ax_ = single_axes(ax, fig, (9.0, 5.0))
        self.figure_ = self.ax_.figure
        whole: Any = self.figure_
        inches = whole.get_size_inches() if hasattr(whole, "get_size_inches") else whole.figure.get_size_inches()
        wide, high = float(inches[0]) * 0.96, float(inches[1]) * 0.86
        shown = [segment for segment in self.audit.segments if segment.n_new_rows]
        sizes = [segment.n_new_rows for segment in shown] + ([self.rest] if self.rest else [])
        tiles = squarified(sizes, wide, high)
        largest = max((abs(s.error) for s in shown if np.isfinite(s.error)), default=1.0) or 1.0
        for place, segment in enumerate(shown):
            self._draw(place, tiles[place], segment, largest)
        if self.rest:
            self._draw_rest(tiles[-1])
        self._dress(wide, high)
        return self

    def _draw(self, place: int, tile: _Tile, segment: Segment, largest: float) -> None:
        strength = 1.0 if not np.isfinite(segment.error) else abs(segment.error) / largest
        colour = UNDER if segment.direction == "underestimates" else OVER
        self._add(tile, colour, 0.2 + 0.4 * strength, f"segment-tile-{place + 1}")
        if not segment.terms.is_share:
            means = f"{segment.predicted:.4g} → {segment.observed:.4g}"
        else:
            means = f"{100 * segment.predicted:.3g} → {100 * segment.observed:.3g} %"
        self._write(tile, segment.rule, [f"{segment.n_new_rows:,} rows", means])

    def _draw_rest(self, tile: _Tile) -> None:
        self._add(tile, blend(0.5), 0.12, "segment-tile-rest")
        self._write(tile, f"{self.rest:,} rows {_REST}", [])

    def _add(self, tile: _Tile, colour: Any, alpha: float, name: str) -> None:
        gap = 0.02
        shape = Rectangle(
            (tile.x + gap, tile.y + gap), max(tile.width - 2 * gap, 0), max(tile.height - 2 * gap, 0), color=colour
        )
        shape.set(alpha=alpha, linewidth=0, gid=name)
        self.ax_.add_patch(shape)

    def _write(self, tile: _Tile, heading: str, below: list[str]) -> None:
        """Write as much text as fits into a tile; none into small ones."""
        letters, lines = int((tile.width - 0.16) * _LETTERS_PER_INCH), int((tile.height - 0.1) * _LINES_PER_INCH)
        if letters < 9 or lines < 1:
            return
        above = textwrap.wrap(printable(heading), letters)
        fits = len(above) + len(below) <= lines and all(len(line) <= letters for line in below)
        if len(above) > lines:
            above = [*above[: lines - 1], shorten(" ".join(above[lines - 1 :]), letters)]
        text = "\n".join([*above, *(below if fits else [])])
        place = (tile.x + 0.09, tile.y + 0.08)
        self.ax_.text(*place, text, va="top", ha="left", fontsize="small", parse_math=False, linespacing=1.25)

    def _dress(self, wide: float, high: float) -> None:
        ax = self.ax_
        ax.set(xlim=(0, wide), ylim=(high, 0), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        title = f"{self.audit.n_rows:,} rows, {self.audit.verdict}"
        small = "area: rows; predicted → observed; orange: underestimated, blue: overestimated; strong: large error"
        draw_title(ax, title, small if self.audit.segments else "")

    def data(self, backend: str = "pandas") -> Any:
        """Return the tiles: rule, rows and error; the last one has the rows in no segment.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        segments = self.audit.segments
        rules = [*(segment.rule for segment in segments), None]
        rows = [*(segment.n_new_rows for segment in segments), self.rest]
        errors = [*(segment.error for segment in segments), np.nan]
        return frame_from_columns({"rule": rules, "n_rows": rows, self.audit.error_name: errors}, backend)

    def __repr__(self) -> str:
        return f"SegmentMapDisplay({self.audit.verdict})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        each = "; ".join(f"{s.rule}: {s.n_new_rows:,} rows, {s.direction}" for s in self.audit.segments)
        return f"Map of {self.audit.n_rows:,} rows ({self.audit.verdict}){': ' + each if each else ''}."


def squarified(sizes: Sequence[float], width: float, height: float) -> list[_Tile]:
    """Return tiles of a rectangle with areas in proportion to sizes, in their order and close to squares.

    Bruls, Huizing and van Wijk (2000): rows of tiles along the shorter side, each as long as that improves its ratios.
    """
    total, tiles = float(sum(sizes)), list[_Tile]()
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
            tiles.append(_Tile(x, y + along, depth, length) if upright else _Tile(x + along, y, length, depth))
            along += length
        x, y = (x + depth, y) if side == height - y else (x, y + depth)
    return tiles


def _worst(areas: Sequence[float], side: float) -> float:
    """Return the largest ratio of the sides of the tiles of a row."""
    depth = sum(areas) / side
    return max(max(depth / (area / depth), area / depth / depth) for area in areas)
