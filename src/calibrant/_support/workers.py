"""The number of threads that this process may use."""

import math
import os
from pathlib import Path

__all__ = ["available_cores"]

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
