"""A progress bar for work that lasts longer than a second: on stderr, or below the cell of a notebook."""

import sys
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")

_DELAY = 1.0  # seconds before the bar appears
_REDRAW_EVERY = 0.1  # seconds
_WIDTH = 30


def progress_bar(items: Iterable[T], total: int, what: str, *, show: bool | None = None) -> Iterator[T]:
    """Iterate over items and draw a progress bar; with `show=None` on a terminal and in a notebook only."""
    visible = (_in_notebook() or is_terminal()) if show is None else show
    return _with_bar(items, total, what) if visible else iter(items)


def _with_bar(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    begun = drawn = time.monotonic()
    done, bar = 0, None
    for done, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - begun > _DELAY and now - drawn > _REDRAW_EVERY:
            drawn = now
            bar = bar or (_NotebookBar() if _in_notebook() else _TerminalBar())
            bar.draw(_text(what, done, total, (now - begun) / done * (total - done)))
    if bar is not None:
        bar.erase()


def _in_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this code; libraries may import IPython elsewhere."""
    interactive: Any = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return getattr(shell, "kernel", None) is not None


def is_terminal() -> bool:
    """Return whether standard error is open and a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def _text(what: str, done: int, total: int, left: float) -> str:
    filled = _WIDTH * done // total
    bar = "█" * filled + "·" * (_WIDTH - filled)
    return f"{what} {bar} {done:,}/{total:,}, {left:.0f} s left"


class _TerminalBar:
    """A line on stderr that is written over."""

    def __init__(self) -> None:
        self._longest = 0

    def draw(self, text: str) -> None:
        self._longest = max(self._longest, len(text))
        self._write(text.ljust(self._longest))

    def erase(self) -> None:
        self._write(" " * self._longest + "\r")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text}")
        sys.stderr.flush()


class _NotebookBar:
    """One output of the cell, which is updated and is empty at the end; stderr would leave a red line."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, text: str) -> None:
        self._show({"text/plain": text})

    def erase(self) -> None:
        self._show({"text/plain": "", "text/html": ""})

    def _show(self, data: dict[str, str]) -> None:
        if self._handle is None:
            display: Any = import_module("IPython.display").display  # a library without types
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
