"""A progress bar on stderr for work that lasts longer than a second."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_DELAY = 1.0  # seconds before the bar appears
_REDRAW_EVERY = 0.1  # seconds
_WIDTH = 30


def progress_bar(items: Iterable[T], total: int, what: str, *, show: bool | None = None) -> Iterator[T]:
    """Iterate over items and draw a progress bar; with `show=None` on a terminal and in a notebook only."""
    visible = _is_interactive() if show is None else show
    begun = drawn = time.monotonic()
    done = 0
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if visible and now - begun > _DELAY and now - drawn > _REDRAW_EVERY:
            drawn = now
            _draw(what, done, total, (now - begun) / done * (total - done))
    if visible and drawn > begun:  # erase the bar
        sys.stderr.write("\r" + " " * (len(what) + _WIDTH + 40) + "\r")
        sys.stderr.flush()


def _is_interactive() -> bool:
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def _draw(what: str, done: int, total: int, left: float) -> None:
    filled = _WIDTH * done // total
    bar = "█" * filled + "·" * (_WIDTH - filled)
    sys.stderr.write(f"\r{what} {bar} {done:,}/{total:,}, {left:.0f} s left   ")
    sys.stderr.flush()
