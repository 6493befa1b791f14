"""Figures and their panels, axes of probabilities, shapes with an id, image files."""

import io
import re
import textwrap
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from os import PathLike
from pathlib import Path as Path_
from threading import Lock
from typing import Any, Literal, Protocol, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis as Side
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from calibrant._support.arrays import Bools, Floats
from calibrant._support.errors import InputError
from calibrant._support.file_writing import write_file
from calibrant._support.plain_data import frame_from_columns
from calibrant.plots._palette import blend

Scale: TypeAlias = Literal["linear", "log", "logit"]

# With more bins than this, all shapes of a kind are one artist without ids per bin, which keeps files small.
MOST_SINGLE = 200

_PASSES_OF_FIXED_ASPECT = 3  # a fourth one moves axes by less than half a point
_ONE_AT_A_TIME = Lock()  # rc_context is global: settings of one file must not affect another
_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r' id="([^"]*)"')
# Coordinates in points: a hundredth is finer than any screen or printer.
_PLACES = re.compile(r' (?:d|x|y|width|height|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
_BETWEEN_TAGS = re.compile(r">\n\s*<(?!text|tspan)")
_CLIP = re.compile(r'<clipPath id="(\w+)">(.*?)</clipPath>')


def _compact_svg(text: str) -> str:
    """Round the coordinates of an SVG to two decimals, remove blanks between tags, and name clips by their content."""

    def short(place: re.Match[str]) -> str:
        found = place.group()
        return found if "scale(" in found else _DIGITS.sub(r"\1", found).replace(" \n", " ")

    text = _BETWEEN_TAGS.sub("><", _TAG.sub(lambda tag: _PLACES.sub(short, tag.group()), text))
    names = {old: f"clip{zlib.crc32(shape.encode()):08x}" for old, shape in _CLIP.findall(text)}
    if names:
        text = re.sub("|".join(names), lambda name: names[name.group()], text)
    seen: Counter[str] = Counter()

    def once(found: re.Match[str]) -> str:
        seen[found[1]] += 1
        return found.group() if seen[found[1]] == 1 else f' id="{found[1]}-{seen[found[1]]}"'

    return _TAG.sub(lambda tag: _ID.sub(once, tag.group()), text)


class DrawnDisplay(Protocol):
    """A display that has been drawn."""

    figure_: FigureBase


def svg(display: DrawnDisplay) -> str:
    """Return the figure of a display as SVG, identical for identical input (fixed ids, no date).

    Text is stored as text, so that it can be searched, selected and read by screen readers, in the sans-serif font of
    the viewer. If two displays share a figure, the ids of the second end in ``-2``.

    Parameters
    ----------
    display : display
        A drawn display of `calibrant.plots`.

    Returns
    -------
    str
        The SVG document.

    See Also
    --------
    ReliabilityDisplay

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.plots import ReliabilityDisplay
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> display = ReliabilityDisplay.from_predictions(table)
    >>> svg(display).startswith("<?xml")
    True
    """
    stream = io.StringIO()
    figure = _drawn_figure(display)
    with _ONE_AT_A_TIME, mpl.rc_context({"svg.hashsalt": "calibrant", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": "Calibrant"})
    return _compact_svg(stream.getvalue())


def save(display: DrawnDisplay, path: str | PathLike[str], *, dpi: float = 150) -> None:
    """Write the figure of a display to a .svg, .png or .pdf file, with identical bytes for identical input.

    An existing file is replaced atomically.

    Parameters
    ----------
    display : display
        A drawn display of `calibrant.plots`.
    path : str or path
        File to write, which replaces an existing one; its suffix is the format: svg, png or pdf.
    dpi : float
        Dots per inch of a PNG.

    See Also
    --------
    load, to_sql, to_onnx

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibrant import ScoreTable
    >>> from calibrant.plots import ReliabilityDisplay
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> display = ReliabilityDisplay.from_predictions(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(display, Path(folder, "reliability.svg"))
    ...     [path.name for path in Path(folder).iterdir()]
    ['reliability.svg']
    """
    kind = Path_(path).suffix.lower()
    if kind not in (".svg", ".png", ".pdf"):
        raise InputError(f"path must end in .svg, .png or .pdf; got {str(path)!r}.", argument="path")
    if kind == ".svg":
        write_file(path, svg(display))
        return
    dated = {"CreationDate": None} if kind == ".pdf" else None
    figure = _drawn_figure(display)
    stream = io.BytesIO()
    with _ONE_AT_A_TIME:
        figure.savefig(stream, format=kind[1:], dpi=dpi, metadata=dated)
    write_file(path, stream.getvalue())


def _drawn_figure(display: DrawnDisplay) -> Figure:
    """Return the figure, ready for the layout pass of `savefig`; with a fixed aspect after the passes before it.

    The layout begins at the places of the grid, so that a figure that was shown or saved before gives the same file.
    """
    figure = _whole(display)
    engine = figure.get_layout_engine()
    if engine is None:
        return figure
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place is not None and ax.get_in_layout():  # not where the user placed it
            ax.set_subplotspec(place)
    # Axes with a fixed aspect shrink within their place, and the layout adapts to that in the next pass.
    fixed = any(ax.get_aspect() != "auto" for ax in figure.axes)
    for _ in range(_PASSES_OF_FIXED_ASPECT - 1 if fixed else 0):
        engine.execute(figure)
    return figure


def _whole(display: DrawnDisplay) -> Figure:
    figure = getattr(display, "figure_", None)
    if figure is None:
        raise InputError("display must be drawn.", hint="Call its plot() first.", argument="display")
    while isinstance(figure, SubFigure):
        figure = figure.figure
    assert isinstance(figure, Figure)
    return figure


def panels(
    ax: Axes | None,
    fig: FigureBase | None,
    *,
    widths: Sequence[float] = (1.0,),
    heights: Sequence[float] = (1.0,),
    size: tuple[float, float] = (6.4, 4.8),
) -> tuple[FigureBase, Any]:
    """Create a grid of panels in the place of `ax`, in `fig`, or in a new pyplot figure.

    Returns the figure, and a grid specification that is indexed by row and column.
    """
    check_place(ax, fig)
    shape: dict[str, Any] = {"nrows": len(heights), "ncols": len(widths)}
    shape |= {"width_ratios": widths, "height_ratios": heights}
    if ax is not None:
        place = ax.get_subplotspec()
        if place is None:
            raise InputError(
                "ax must belong to a grid, because this diagram has several panels; got axes without a grid.",
                hint="Create ax with plt.subplots(), or pass fig.",
                argument="ax",
            )
        ax.set_axis_off()
        return ax.figure, place.subgridspec(**shape)
    figure = new_figure(size) if fig is None else with_layout(fig)
    return figure, figure.add_gridspec(**shape)


def with_layout(fig: FigureBase) -> FigureBase:
    """Return the figure, with constrained layout if it is empty and has no layout engine."""
    if isinstance(fig, Figure) and fig.get_layout_engine() is None and not fig.axes:
        fig.set_layout_engine("constrained")
    return fig


def check_place(ax: Axes | None, fig: FigureBase | None) -> None:
    """Check that at most one of the two is given, and that axes are rectilinear."""
    if ax is not None and fig is not None:
        raise InputError("ax and fig must not be given together; got both.", hint="Pass one of them.", argument="ax")
    if ax is not None and ax.name != "rectilinear":
        raise InputError(f"ax must be rectilinear axes; got {ax.name} axes.", argument="ax")


def single_axes(ax: Axes | None, fig: FigureBase | None, size: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return `ax` itself, or new axes in `fig` or in a new pyplot figure."""
    check_place(ax, fig)
    if ax is not None:
        return ax
    figure, grid = panels(ax, fig, size=size)
    return figure.add_subplot(grid[0, 0])


def new_figure(size: tuple[float, float]) -> Figure:
    """Create a figure that ``plt.show()`` shows."""
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, layout="constrained")


def draw_title(
    ax: Axes, text: str, small: str = "", *, room: float = 0.0, reach: float = 1.1, size: str | None = None
) -> None:
    """Draw a title at the left, a line in small print below it, and `room` (in letter heights) below both.

    A title longer than `reach` times the width of the axes is wrapped. Math text is off, because names may contain $.
    """
    letter = FontProperties(size="small").get_size_in_points()
    above = room * letter + 6
    size = size or mpl.rcParams["axes.titlesize"]
    most = int(reach * _width(ax) / (0.54 * FontProperties(size=size).get_size_in_points()))
    lines = textwrap.fill(text.replace(" %", "\N{NO-BREAK SPACE}%"), max(most, 16))
    ax.set_title(lines, loc="left", pad=above + (1.9 * letter if small else 0), fontsize=size, parse_math=False)
    if small:
        style: dict[str, Any] = {"color": blend(0.65), "fontsize": "small", "va": "bottom", "parse_math": False}
        ax.annotate(small, (0, 1), (0, above), "axes fraction", "offset points", **style)


def legend_above(
    ax: Axes,
    title: str,
    handles: Sequence[Any],
    labels: Sequence[str],
    *,
    reach: float = 1.1,
    size: str | None = None,
) -> None:
    """Draw a title and below it a legend above the axes, in as many columns as fit."""
    letter = FontProperties(size="small").get_size_in_points()
    words = [(0.58 * len(label) + 3.6) * letter for label in labels]
    columns = len(labels)
    while columns > 1 and sum(max(words[c::columns]) for c in range(columns)) > reach * _width(ax):
        columns -= 1
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    drawn = legend(ax, handles, labels, ncols=columns, handlelength=1.6, columnspacing=1.4, **place)
    drawn.set_in_layout(False)  # it may be wider than the axes, which must keep their width
    draw_title(ax, title, room=0.5 + 1.75 * -(-len(labels) // columns), reach=reach, size=size)


def labels_fit(ax: Axes, labels: Sequence[str]) -> bool:
    """Return whether labels in small print fit along the width of the axes."""
    letter = FontProperties(size="small").get_size_in_points()
    return max(map(len, labels), default=0) * 0.62 * letter + letter < _width(ax) / max(len(labels) - 1, 1)


def _width(ax: Axes) -> float:
    """Return the initial width of axes in points."""
    return ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi * 72


def legend(ax: Axes, handles: Sequence[Any], labels: Sequence[str], **options: Any) -> Legend:
    """Draw a legend without a frame and without math text."""
    for handle, label in zip(handles, labels, strict=True):
        handle.set_label(label)
    drawn = ax.legend(handles, [""] * len(labels), frameon=False, fontsize="small", **options)
    for text, label in zip(drawn.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
    return drawn


def label_right(ax: Axes, text: str) -> None:
    """Write a label along the right side of axes."""
    ax.yaxis.set_label_position("right")
    ax.set_ylabel(text, rotation=270, va="bottom", fontsize="small")


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
        if scale not in ("linear", "log", "logit"):
            raise InputError(f"scale must be 'linear', 'log' or 'logit'; got {scale!r}.", argument="scale", value=scale)
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
        found: Bools = (p >= self.low) & (p <= self.high)
        return found

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


def unique_ids(names: Iterable[object]) -> list[str]:
    """Return a unique id per name, of letters, digits and hyphens."""
    found: dict[str, None] = {}
    often: Counter[str] = Counter()
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-") or "unnamed"
        often[plain] += 1
        taken = plain if often[plain] == 1 else f"{plain}-{often[plain]}"
        while taken in found:
            taken += "-2"
        found[taken] = None
    return list(found)


def ids_by_name(names: Sequence[str] | Mapping[str, Any]) -> dict[str, str]:
    """Map unique names to their ids."""
    return dict(zip(names, unique_ids(names), strict=True))


def shorten(name: str, most: int = 30) -> str:
    """Shorten a name with an ellipsis."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def shorten_distinct(names: Sequence[str], most: int = 30) -> list[str]:
    """Shorten names; where two would become equal, leave out the beginning that all long names share."""
    short = [shorten(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    letters = zip(*(name for name in names if len(name) > most), strict=False)
    shared = sum(1 for _ in takewhile(lambda each: len(set(each)) == 1, letters))
    start = max(shared - most // 3, 0)
    return [shorten(f"…{name[start:]}" if len(name) > most else name, most) for name in names]


def join_short(items: Sequence[str], most: int = 3) -> str:
    """Join the first items, and count the others."""
    shown = "; ".join(shorten(item, 60) for item in items[:most])
    return shown if len(items) <= most else f"{shown}; and {len(items) - most} more"


def rectangle(left: float, right: float, bottom: float, top: float) -> Path:
    """Return a rectangle as a path."""
    corners = [(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)]
    return Path(corners, closed=True)


def strokes(*lines: Sequence[tuple[float, float]]) -> Path:
    """Return line segments as one path."""
    return Path([point for line in lines for point in line], [Path.MOVETO, Path.LINETO] * len(lines))


def shapes(ax: Axes, paths: Sequence[Path | None], ids: str, **style: Any) -> list[Artist]:
    """Draw a patch per path, with the id ``ids`` in which ``{}`` is its number; None skips a number.

    More than `MOST_SINGLE` paths become one patch. The limits of the axes do not change.
    """
    present = {str(i): path for i, path in enumerate(paths) if path is not None}
    if len(paths) > MOST_SINGLE and present:
        present = {"all": Path.make_compound_path(*present.values())}
    found: list[Artist] = []
    for number, path in present.items():
        patch = PathPatch(path, gid=ids.format(number), joinstyle="round", **style)
        ax.add_artist(patch)
        patch.set_clip_path(ax.patch)
        patch.set_in_layout(False)  # clipped by the axes, so the layout need not measure it
        found.append(patch)
    return found


def vertical_lines(x: Floats, low: Floats, high: Floats) -> list[Path]:
    """Return vertical lines, one at each x."""
    return [strokes([(at, a), (at, z)]) for at, a, z in zip(x, low, high, strict=True)]


def rows_label(importance: bool) -> str:
    """Return the unit of bin sizes."""
    return "weight" if importance else "rows"


def curve_indices(values: Floats, most: int) -> Any:
    """Return the indices of points that draw a curve: first, last and extremes of each of `most` runs."""
    if values.size <= 4 * most:
        return np.arange(values.size)
    bounds = np.linspace(0, values.size, most + 1).astype(np.int64)
    lowest = [a + int(np.argmin(values[a:b])) for a, b in pairwise(bounds)]
    highest = [a + int(np.argmax(values[a:b])) for a, b in pairwise(bounds)]
    return np.unique(np.concatenate([bounds[:-1], bounds[1:] - 1, lowest, highest]))


def distinct_labels(values: Floats) -> list[str]:
    """Format values with as few digits as make them distinct, from three to six."""
    for digits in range(3, 7):
        texts = [f"{v:.{digits}g}" for v in values]
        if len(set(texts)) == len(set(values.tolist())):
            break
    return texts


def drawn_frame(columns: Mapping[str, Any], backend: str) -> Any:
    """Return arrays of equal length as a frame of the given backend."""
    return frame_from_columns({name: np.asarray(column).tolist() for name, column in columns.items()}, backend)


def stacked_frame(parts: Sequence[Mapping[str, Any]], backend: str) -> Any:
    """Concatenate parts with the same columns into one frame."""
    return drawn_frame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, backend)
