"""Available memory, on systems that report it."""

import os
from pathlib import Path

__all__ = ["address_space_left", "available_memory", "prepare_libraries"]

_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
_STATISTICS = Path("/sys/fs/cgroup/memory.stat")
_ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"


def available_memory() -> int | None:
    """Return the bytes that this process can still use, on Linux and in its container; None on other systems."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), None)
    known = [each for each in (free, _container(), address_space_left()) if each is not None]
    return min(known) if known else None


def _container() -> int | None:
    try:
        most, used = _LIMIT.read_text().strip(), int(_USED.read_text())
        # Cached files are freed when memory is needed.
        lines = dict(line.split() for line in _STATISTICS.read_text().splitlines())
        used -= int(lines.get("inactive_file", 0))
    except (OSError, ValueError):
        return None
    return None if most == "max" else max(int(most) - used, 0)


def address_space_left() -> int | None:
    """Return the bytes that are left of a limit of addresses (``ulimit -v``); None if there is none."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(limit - pages * os.sysconf("SC_PAGE_SIZE"), 0)


def prepare_libraries() -> None:
    """Let Arrow reserve no memory in advance where addresses are limited: it takes 1 GiB of them otherwise."""
    if address_space_left() is not None:
        os.environ.setdefault(_ARROW_POOL, "system")
