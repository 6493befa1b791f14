"""Colours with one meaning each, told apart by people who see few colours, and in print without any.

`tests/plots/test_palette.py` simulates three kinds of colour blindness. Grids, notes and bands take their colour
from the user's style, so that diagrams fit dark backgrounds too.
"""

from itertools import cycle, islice

import matplotlib as mpl
from matplotlib.colors import to_rgb

ACCEPTED = "#93B3CF"  # rows whose prediction a test does not reject; also plain sizes
REJECTED = "#D55E00"  # rows whose prediction it rejects
EVENT = "#9E0B1C"  # what happened: the rate of the event
EVENT_ON_DARK = "#FF9E94"  # the same where the background is dark
MODELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Of 6 colours, 7 marks and 5 dashes no two of the first 30 models share all.
DASHES: tuple[object, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))


def models(count: int) -> list[str]:
    """A colour for each of several models: those of the user's style if it sets a cycle, else ours."""
    own = mpl.rcParams["axes.prop_cycle"]
    default = own == mpl.rcParamsDefault["axes.prop_cycle"] or "color" not in own.by_key()
    return list(islice(cycle(MODELS if default else own.by_key()["color"]), count))


def event() -> str:
    """The colour of what happened, on the background of the user's style."""
    return EVENT_ON_DARK if sum(to_rgb(_paper())) < 1.2 else EVENT


def mixed(share: float) -> tuple[float, float, float]:
    """The colour of text thinned with the background: `share` of text."""
    ink, paper = to_rgb(mpl.rcParams["text.color"]), to_rgb(_paper())
    r, g, b = (share * i + (1 - share) * p for i, p in zip(ink, paper, strict=True))
    return r, g, b


def _paper() -> str:
    face = mpl.rcParams["axes.facecolor"]
    return "white" if face == "none" else str(face)
