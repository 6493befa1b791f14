"""How much memory can still be used, where the system says so."""

from pathlib import Path

__all__ = ["available_memory"]

_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
_STATISTICS = Path("/sys/fs/cgroup/memory.stat")


def available_memory() -> int | None:
    """Bytes that this process could still take, by Linux's own account and by its container's; None elsewhere."""
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
        # Files that were read lie in memory until somebody needs it: they are no reason to stop.
        lines = dict(line.split() for line in _STATISTICS.read_text().splitlines())
        used -= int(lines.get("inactive_file", 0))
    except (OSError, ValueError):
        return None
    return None if most == "max" else max(int(most) - used, 0)
