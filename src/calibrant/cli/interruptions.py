"""Signals that stop a command: each raises KeyboardInterrupt once, and none is lost."""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_CLEANING_SECONDS = 2.0  # in which further signals do not disturb the removal of temporary files
_LOST_SECONDS = 3.0  # after which an interruption that no code handles was lost
_FINALIZER_SECONDS = 0.05


class _Interruptions:
    """The signals that were received, and the timer that looks whether a library has lost one."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._raised_at = -float("inf")
        self._timer: threading.Timer | None = None
        self._is_asking = False

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless a signal just did, or the timer asks and an exception is handled."""
        asked, self._is_asking = self._is_asking, False
        is_handled = sys.exc_info()[1] is not None if asked else time.monotonic() - self._raised_at < _CLEANING_SECONDS
        if not asked:
            self.received.append(number)
        if not is_handled:
            self._raised_at = time.monotonic()
        if asked or not is_handled:
            self._ask_after(_LOST_SECONDS)
        if not is_handled:
            raise KeyboardInterrupt

    def notice(self, unraisable: Any) -> None:
        """Raise KeyboardInterrupt again if it came in a finalizer, where Python prints and forgets it."""
        if unraisable.exc_type is KeyboardInterrupt and self.received:
            self._ask_after(_FINALIZER_SECONDS)
        else:
            sys.__unraisablehook__(unraisable)

    def end(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _ask_after(self, seconds: float) -> None:
        self.end()
        self._timer = threading.Timer(seconds, self._ask)
        self._timer.daemon = True
        self._timer.start()

    def _ask(self) -> None:
        self._is_asking = True
        _send(self.received[0])


def _send(number: int) -> None:
    """Send a signal to the main thread; a call of the system that waits is interrupted where that is possible."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        _thread.interrupt_main(signal.Signals(number))


@contextmanager
def watched_signals() -> Iterator[list[int]]:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt, so that temporary files are removed, and list those received.

    Libraries may raise an error of their own in its place. Signals that the process ignores stay ignored.
    """
    interruptions = _Interruptions()
    in_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if in_main}
    hook, sys.unraisablehook = sys.unraisablehook, interruptions.notice
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, interruptions.interrupt)
    try:
        yield interruptions.received
    finally:
        interruptions.end()
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
