"""Threads: how many this process may use, work in them, and properties that do not wait for other threads."""

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Begins a call in another thread; returns the function that waits for its result.
Submit: TypeAlias = Callable[[Callable[[], Any]], Callable[[], Any]]

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_LONGEST_WAIT = 0.2  # seconds


if sys.version_info >= (3, 12):
    from functools import cached_property
else:
    from typing import Generic, overload

    class cached_property(Generic[T]):  # noqa: N801  # the name of Python's own
        """A property that is computed once for each object; twice if two threads need it at the same time.

        That of Python 3.11 has a lock: one thread at a time computes a property of a class.
        """

        def __init__(self, func: Callable[[Any], T]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> "cached_property[T]": ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object | None, owner: type | None = None) -> "cached_property[T] | T":
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


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


def has_interpreter_lock() -> bool:
    """Return whether one thread at a time runs Python: so in all but free-threaded builds."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def map_in_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[R]:
    """Yield the results in order.

    Work that has not begun is dropped if the caller stops or is interrupted, also that of pools inside the function. An
    interruption does not wait for work that has begun.
    """
    work = _Work(getattr(_of_thread, "work", None))
    if threads == 1 or len(items) < 2:
        for item in items:
            work.check()
            yield function(item)
        return

    def run(item: T) -> R:
        work.check()
        return function(item)

    with _pool(work, min(threads, len(items))) as pool:
        futures = deque(pool.submit(run, item) for item in items)
        while futures:
            yield _result(futures.popleft())


def map_ahead(
    start: Callable[[T, Submit], Callable[[], R]], items: Iterable[T], threads: int, ahead: int
) -> Iterator[R]:
    """Yield the results in order; Python runs in the caller's thread only.

    `start` begins work of an item that needs no Python lock in other threads, by its second argument, and returns the
    function that finishes the item. So many items are started `ahead` of the one that is finished. An error of an item
    is raised in its turn. Work that has not begun is dropped if the caller stops or is interrupted.
    """
    work = _Work(getattr(_of_thread, "work", None))
    with _pool(work, threads) as pool:

        def submit(function: Callable[[], Any]) -> Callable[[], Any]:
            return partial(_result, pool.submit(function))

        def begin(item: T) -> Callable[[], R]:
            try:
                return start(item, submit)
            except Exception as error:
                return partial(_raise, error)

        begun: deque[Callable[[], R]] = deque()
        for item in items:
            work.check()
            begun.append(begin(item))
            if len(begun) > ahead:
                yield begun.popleft()()
        while begun:
            work.check()
            yield begun.popleft()()


def run_together(first: Callable[[], T], second: Callable[[], R], *, threads: bool) -> tuple[T, R]:
    """Return the results of two functions; if `threads`, the second one runs meanwhile in another thread."""
    if not threads:
        return first(), second()
    with _pool(_Work(getattr(_of_thread, "work", None)), 1) as pool:
        other = pool.submit(second)
        return first(), _result(other)


def _raise(error: Exception) -> NoReturn:
    raise error


def _result(future: "Future[R]") -> R:
    """Wait for a result. A signal that arrives just before a wait does not end it, so each wait is short."""
    while not future.done():
        wait([future], _LONGEST_WAIT)
    return future.result()


@contextmanager
def _pool(work: "_Work", threads: int) -> Iterator[ThreadPoolExecutor]:
    """Make threads for this work, and drop what is left of it at the end. An interruption does not wait for them."""
    pool = ThreadPoolExecutor(threads, initializer=setattr, initargs=(_of_thread, "work", work))
    interrupted = False
    try:
        yield pool
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        work.is_dropped = True
        pool.shutdown(wait=not interrupted, cancel_futures=True)


class _Work:
    """Work in threads; it may be part of the work of another pool."""

    def __init__(self, whole: "_Work | None") -> None:
        self.whole, self.is_dropped = whole, False

    def check(self) -> None:
        """Raise if this work, or the work that it is a part of, was dropped."""
        if self.is_dropped:
            raise CancelledError
        if self.whole is not None:
            self.whole.check()


_of_thread = threading.local()
