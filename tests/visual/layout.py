"""Checks of the text of a figure: no overlap, nothing outside the figure."""

from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

SLACK = 3.0  # overlap of neighbouring boxes that is allowed, in pixels at 100 dpi: letters do not fill their boxes


def unreadable(figure) -> list[str]:
    """Return descriptions of the problems."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    page = figure.bbox
    hidden = _out_of_sight(figure)
    boxes = []
    for text in figure.findobj(Text):
        if not text.get_visible() or not text.get_text().strip() or id(text) in hidden:
            continue
        box = text.get_window_extent(renderer)
        if box.width > 0 and box.height > 0:
            boxes.append((text.get_text().replace("\n", " / "), box, text.get_rotation() % 90 != 0))
    found = [
        f"{words!r} leaves the page"
        for words, b, _ in boxes
        if b.x0 < page.x0 - SLACK or b.y0 < page.y0 - SLACK or b.x1 > page.x1 + SLACK or b.y1 > page.y1 + SLACK
    ]
    # The box of rotated text is far larger than the text.
    for (one, a, _), (other, b, _) in combinations([each for each in boxes if not each[2]], 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > SLACK and high > SLACK:
            found.append(f"{one!r} overlaps {other!r}")
    return found


def _out_of_sight(figure) -> set[int]:
    """Return labels that are not drawn: ticks beyond the limits, and axes that are off."""
    found = set()
    for axes in figure.findobj(Axes):
        for axis in (axes.xaxis, axes.yaxis):
            drawn = axis._update_ticks() if axes.axison and axis.get_visible() else []
            ticks = [tick for tick in (*axis.majorTicks, *axis.minorTicks) if tick not in drawn]
            found |= {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
            if not axes.axison:
                found.add(id(axis.label))
    return found
