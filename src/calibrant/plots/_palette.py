"""Colours with one meaning each, distinguishable with colour blindness and in greyscale.

`tests/plots/test_palette.py` simulates three kinds of colour blindness. The colours of grids, notes and bands
follow the user's style, so diagrams suit dark backgrounds too.
"""

from itertools import cycle, islice

import matplotlib as mpl
from matplotlib.colors import to_rgb

ACCEPTED = "#93B3CF"  # rows whose prediction the test does not reject; also bin sizes
REJECTED = "#D55E00"  # rows whose prediction the test rejects
EVENT = "#9E0B1C"  # event rate
EVENT_ON_DARK = "#FF9E94"  # event rate on a dark background
MODELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# With 6 colours, 7 markers and 5 dashes no two of the first 30 models share all three.
DASHES: tuple[object, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))


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


def _paper() -> str:
    face = mpl.rcParams["axes.facecolor"]
    return "white" if face == "none" else str(face)
