"""A progress bar for long work: drawn on stderr where somebody can see it, once the work has lasted a second."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_PATIENCE = 1.0  # seconds without a bar
_PAUSE = 0.1  # seconds between two drawings
_WIDTH = 30


def progress(items: Iterable[T], total: int, what: str, *, show: bool | None = None) -> Iterator[T]:
    """The items, with a bar that counts them. `show`: None draws it on a terminal or in a notebook only."""
    visible = _watched() if show is None else show
    begun = drawn = time.monotonic()
    done = 0
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if visible and now - begun > _PATIENCE and now - drawn > _PAUSE:
            drawn = now
            _draw(what, done, total, (now - begun) / done * (total - done))
    if visible and drawn > begun:  # leave a clean line
        sys.stderr.write("\r" + " " * (len(what) + _WIDTH + 40) + "\r")
        sys.stderr.flush()


def _watched() -> bool:
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


def _draw(what: str, done: int, total: int, left: float) -> None:
    filled = _WIDTH * done // total
    bar = "█" * filled + "·" * (_WIDTH - filled)
    sys.stderr.write(f"\r{what} {bar} {done:,}/{total:,}, {left:.0f} s left   ")
    sys.stderr.flush()
