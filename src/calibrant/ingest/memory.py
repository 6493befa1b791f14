"""Available memory, on systems that report it."""

from pathlib import Path

__all__ = ["available_memory"]

_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
_STATISTICS = Path("/sys/fs/cgroup/memory.stat")


def available_memory() -> int | None:
    """Return the bytes that this process can still use, on Linux and in its container; None on other systems."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), None)
    limit = _container()
    return limit if free is None else free if limit is None else min(free, limit)


def _container() -> int | None:
    try:
        most, used = _LIMIT.read_text().strip(), int(_USED.read_text())
        # Cached files are freed when memory is needed.
        lines = dict(line.split() for line in _STATISTICS.read_text().splitlines())
        used -= int(lines.get("inactive_file", 0))
    except (OSError, ValueError):
        return None
    return None if most == "max" else max(int(most) - used, 0)
