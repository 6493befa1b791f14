"""Threads: how many this process may use, and independent pieces of work in them.

Nothing else decides about threads: callers say how large their work is and who does it, and their results do not depend
on the number of threads.
"""

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, overload

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

# Begins a call in another thread; returns the function that waits for its result.
Submit: TypeAlias = Callable[[Callable[[], Any]], Callable[[], Any]]

# Rows from which threads pay off: where much of the work is done by Python, which runs one thread at a
# time, by the kernel alone, or by the kernel in one pass over memory.
Work: TypeAlias = Literal["Python", "kernel", "memory"]
_FEWEST_ROWS: Mapping[Work, float] = {"Python": 100_000, "kernel": 10_000, "memory": 2**21}

_CORES_PER_OTHER_THREAD = 4  # about the ratio of the work on replicates to that of another thread
_THREADS_PER_PIECE = 2  # a piece of work that runs beside others may use a second thread

_MOST_THREADS_OF_GROUPS = 4  # more wait for Python's lock
# Threads for the kernel: one may wait for Python's lock while another computes. Larger groups keep more of them busy.
_FEWEST_THREADS, _ROWS_PER_THREAD = 2, 200
_STARTED_PER_THREAD = 4

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_LONGEST_WAIT = 0.2  # seconds


def available_cores() -> int:
    """Return the number of cores: those of the affinity mask, at most the quota of the container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota()))


def _quota() -> int:
    """Return the cores that the quota of a control group allows, rounded up."""
    try:
        allowed, period = _QUOTA.read_text().split()
        return math.ceil(int(allowed) / int(period))
    except (OSError, ValueError):  # no control group, or "max"
        return os.cpu_count() or 1


def _has_interpreter_lock() -> bool:
    """Return whether one thread at a time runs Python: so in all but free-threaded builds."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def thread_count(rows: float, work: Work = "Python") -> int:
    """Return the number of threads for work on so many rows: 1 where they are few.

    Where cores are many, each thread that works meanwhile on another piece of the same work keeps one of them.
    """
    if rows < _FEWEST_ROWS[work]:
        return 1
    cores, whole = available_cores(), _current_pieces()
    beside = 0 if whole is None else whole.beside
    return max(1, cores - min(beside, cores // _CORES_PER_OTHER_THREAD))


@overload
def run_together(first: Callable[[], T], second: Callable[[], R], /, *, rows: float) -> tuple[T, R]: ...
@overload
def run_together(
    first: Callable[[], T], second: Callable[[], R], third: Callable[[], S], /, *, rows: float
) -> tuple[T, R, S]: ...
def run_together(first: Callable[[], Any], /, *others: Callable[[], Any], rows: float) -> tuple[Any, ...]:
    """Return the results of independent pieces of work on so many rows, all but the first one in other threads.

    On one core they would only take the cache from each other, so they run one after the other.
    """
    if thread_count(rows) == 1:
        return (first(), *(piece() for piece in others))
    outer = _current_pieces()
    pieces = _Pieces(outer, _THREADS_PER_PIECE * len(others))
    with _pool(pieces, len(others)) as pool:
        futures = [pool.submit(piece) for piece in others]
        _of_thread.pieces = pieces
        try:
            return (first(), *(_result(future) for future in futures))
        finally:
            _of_thread.pieces = outer


def map_in_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[R]:
    """Yield the results in order.

    Work that has not begun is dropped if the caller stops or is interrupted, also that of pools inside the function. An
    interruption does not wait for work that has begun.
    """
    pieces = _Pieces(_current_pieces())
    if threads == 1 or len(items) < 2:
        for item in items:
            pieces.check()
            yield function(item)
        return

    def run(item: T) -> R:
        pieces.check()
        return function(item)

    with _pool(pieces, min(threads, len(items))) as pool:
        futures = deque(pool.submit(run, item) for item in items)
        while futures:
            yield _result(futures.popleft())


def map_groups(
    function: Callable[[T], R],
    groups: Sequence[T],
    start: Callable[[T, Submit], Callable[[], R]] | None = None,
    *,
    rows: float,
) -> Iterator[R]:
    """Yield the results of groups of so many rows on average, in order.

    Small groups are started ahead (see `map_ahead`), and Python runs in one thread: two would wait for its lock. Large
    ones are computed in threads, and use threads themselves.
    """
    cores = available_cores()
    if start is None or cores == 1 or rows >= _FEWEST_ROWS["kernel"] or not _has_interpreter_lock():
        return map_in_threads(function, groups, min(cores, _MOST_THREADS_OF_GROUPS))
    threads = min(cores, _FEWEST_THREADS + int(rows / _ROWS_PER_THREAD))
    return map_ahead(start, groups, threads, _STARTED_PER_THREAD * threads)


def map_ahead(
    start: Callable[[T, Submit], Callable[[], R]], items: Sequence[T], threads: int, ahead: int
) -> Iterator[R]:
    """Yield the results in order; Python runs in the caller's thread only.

    `start` begins work of an item that needs no Python lock in other threads, by its second argument, and returns the
    function that finishes the item. So many items are started `ahead` of the one that is finished. An error of an item
    is raised in its turn. Work that has not begun is dropped if the caller stops or is interrupted.
    """
    pieces = _Pieces(_current_pieces())
    with _pool(pieces, threads) as pool:

        def submit(function: Callable[[], Any]) -> Callable[[], Any]:
            return partial(_result, pool.submit(function))

        def begin(item: T) -> Callable[[], R]:
            try:
                return start(item, submit)
            except Exception as error:
                return partial(_raise, error)

        begun: deque[Callable[[], R]] = deque()
        for item in items:
            pieces.check()
            begun.append(begin(item))
            if len(begun) > ahead:
                yield begun.popleft()()
        while begun:
            pieces.check()
            yield begun.popleft()()


def _raise(error: Exception) -> NoReturn:
    raise error


def _result(future: "Future[R]") -> R:
    """Wait for a result. A signal that arrives just before a wait does not end it, so each wait is short."""
    while not future.done():
        wait([future], _LONGEST_WAIT)
    return future.result()


@contextmanager
def _pool(pieces: "_Pieces", threads: int) -> Iterator[ThreadPoolExecutor]:
    """Make threads for these pieces, and drop what is left of them at the end. An interruption does not wait for it."""
    pool = ThreadPoolExecutor(threads, initializer=setattr, initargs=(_of_thread, "pieces", pieces))
    interrupted = False
    try:
        yield pool
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        pieces.is_dropped = True
        pool.shutdown(wait=not interrupted, cancel_futures=True)


class _Pieces:
    """Pieces of work in threads; `whole` has the piece that they are part of. `beside` threads work meanwhile."""

    def __init__(self, whole: "_Pieces | None", beside: int = 0) -> None:
        self.whole, self.is_dropped = whole, False
        self.beside: int = beside + (0 if whole is None else whole.beside)

    def check(self) -> None:
        """Raise if this work, or the work that it is a part of, was dropped."""
        if self.is_dropped:
            raise CancelledError
        if self.whole is not None:
            self.whole.check()


_of_thread = threading.local()


def _current_pieces() -> _Pieces | None:
    """Return the work that this thread does a piece of."""
    return getattr(_of_thread, "pieces", None)
