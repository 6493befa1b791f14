"""Threads: how many this process may use, and work in them."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

__all__ = ["available_cores", "map_in_threads"]

T = TypeVar("T")
R = TypeVar("R")

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


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


def map_in_threads(function: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[R]:
    """Yield the results in order. Work that has not begun is dropped if the caller stops, or is interrupted."""
    if threads == 1 or len(items) < 2:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(min(threads, len(items)))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
