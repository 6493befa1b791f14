"""What diagrams are drawn with: places, colours, text and legends, shapes with an id.

Colours have one meaning each, and are distinguishable with colour blindness and in greyscale: tests of this module
simulate three kinds of colour blindness. The colours of grids, notes and bands follow the user's style, so diagrams
suit dark backgrounds too.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice, pairwise, takewhile
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError

ACCEPTED = "#93B3CF"  # rows whose prediction the test does not reject; also bin sizes
REJECTED = "#D55E00"  # rows whose prediction the test rejects
EVENT = "#9E0B1C"  # event rate
EVENT_ON_DARK = "#FF9E94"  # event rate on a dark background
MODELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# With 6 colours, 7 markers and 5 dashes no two of the first 30 models share all three.
DASHES: tuple[object, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))


# With more bins than this, all shapes of a kind are one artist without ids per bin, which keeps files small.
MOST_SINGLE = 200


def model_colours(count: int) -> list[str]:
    """Return a colour per model, from the cycle of the user's style or from `MODELS`."""
    own = mpl.rcParams["axes.prop_cycle"]
    default = own == mpl.rcParamsDefault["axes.prop_cycle"] or "color" not in own.by_key()
    return list(islice(cycle(MODELS if default else own.by_key()["color"]), count))


def event_colour() -> str:
    """Return the colour of the event rate for the background of the user's style."""
    return EVENT_ON_DARK if sum(to_rgb(_paper())) < 1.2 else EVENT


def blend(share: float) -> tuple[float, float, float]:
    """Return the text colour mixed with the background, `share` of it text."""
    ink, paper = to_rgb(mpl.rcParams["text.color"]), to_rgb(_paper())
    r, g, b = (share * i + (1 - share) * p for i, p in zip(ink, paper, strict=True))
    return r, g, b


def dash(number: int) -> Any:
    """Return the dashes of the line of a model by its number."""
    return DASHES[number % len(DASHES)]


def marker(number: int) -> str:
    """Return the marker of a model by its number."""
    return MARKERS[number % len(MARKERS)]


def dashes(share: float = 0.45, **style: Any) -> dict[str, Any]:
    """Return the style of a dashed line of reference, such as the diagonal; `share` is that of `blend`."""
    return {"color": blend(share), "lw": 1, "ls": (0, (4, 3)), **style}


def point(ax: Axes, *, significant: bool) -> dict[str, Any]:
    """Return the style of the point of an estimate: filled and orange if it is significant."""
    edge = REJECTED if significant else model_colours(1)[0]
    face = REJECTED if significant else ax.get_facecolor()
    return {"ls": "", "marker": "o", "ms": 6, "mfc": face, "mec": edge, "mew": 1.4, "zorder": 4}


def _paper() -> str:
    face = mpl.rcParams["axes.facecolor"]
    return "white" if face == "none" else str(face)


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
        raise InputError(f"ax must be rectilinear axes; got {ax.name} axes.")


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


def new_canvas(width: float, height: float) -> Figure:
    """Create a figure outside of pyplot, of the given size in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def dress(ax: Axes, **properties: Any) -> None:
    """Set labels, limits and other properties of axes, and remove their frame above and at the right."""
    ax.set(**properties)
    ax.spines[["top", "right"]].set_visible(False)


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
    ax: Axes, title: str, handles: Sequence[Any], labels: Sequence[str], *, reach: float = 1.1, size: str | None = None
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


def lines(ax: Axes, paths: Sequence[Path | None], ids: str, colour: Any, width: float, **style: Any) -> list[Artist]:
    """Draw lines as `shapes` draws patches."""
    return shapes(ax, paths, ids, facecolor="none", edgecolor=colour, linewidth=width, **style)


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
