"""Available memory, on systems that report it, and the guard that keeps exact counting within it."""

import os
import re
from pathlib import Path

from calibrant._support.errors import Argument, InputError, check_count

_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
_STATISTICS = Path("/sys/fs/cgroup/memory.stat")
# Bytes per row of exact counting, at most: the row and its group, its key, and its place in the result, which scratch
# space shares. A weight is sorted along, and squared.
_BYTES_PER_ROW, _BYTES_PER_WEIGHT = 32, 64
_SHARE_OF_MEMORY = 0.8
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_LEAST_READING_MEMORY = 64 * 2**20
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


def read_size(size: int | str | None) -> int | None:
    """Return a size of memory in bytes; text has a unit, such as 2GB, 500 MB, 1GiB or 1e9."""
    if isinstance(size, str):
        number = parse_size(size)
        if number is None:
            raise InputError(
                Argument("max_memory") + f" must be a number of bytes, such as 2GB; got {size!r}.", value=size
            )
        return number
    return None if size is None else check_count("max_memory", size)


def parse_size(text: str) -> int | None:
    """Return the number of bytes of a text, or None if it is none."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*([kmgt]?i?)b?\s*", text, flags=re.IGNORECASE)
    try:
        size = float(found[1]) * _UNITS[found[2].lower()] if found else -1.0
    except (ValueError, KeyError):
        size = -1.0
    return int(size) if 1 <= size < 2**63 else None


def reading_memory(max_memory: int | None) -> str:
    """Return the memory of DuckDB, which reads files and keeps no rows, as a part of all memory that may be used."""
    return "1GB" if max_memory is None else f"{max(max_memory // 4, _LEAST_READING_MEMORY)}B"


def prepare_libraries() -> None:
    """Let Arrow reserve no memory in advance where addresses are limited: it takes 1 GiB of them otherwise."""
    if address_space_left() is not None:
        os.environ.setdefault(_ARROW_POOL, "system")


class MemoryGuard:
    """Raises an error before exact counting exceeds the memory; shared by all tables that are counted together."""

    def __init__(self, most: int | None = None) -> None:
        self.needed, self._most = 0, most  # None: the free memory

    def add(self, rows: int, weighted: bool) -> None:
        """Reserve memory for more rows."""
        self.reserve(rows_bytes(rows, weighted))

    def allows(self, more: int) -> bool:
        """Return whether so many more bytes may be used."""
        free = self._free()
        return free is None or self.needed + more <= _SHARE_OF_MEMORY * free

    def reserve(self, more: int) -> None:
        """Reserve memory, or give it back if the number is negative; an error if there is not enough."""
        allowed = self.allows(more)
        self.needed += more
        if not allowed and more > 0:
            free = self._free() or 0
            limit = f"{_bytes(free)} are free" if self._most is None else f"{_bytes(self._most)} are allowed"
            raise InputError(
                f"Counting these rows exactly may take {_bytes(self.needed)}; {limit}.",
                hint="Pass "
                + Argument("resolution", "2**-20", python="resolution=2**-20")
                + ": scores are then rounded to that grid, each by at most 4.8e-07.",
                argument="resolution",
            )

    def _free(self) -> int | None:
        return available_memory() if self._most is None else int(self._most / _SHARE_OF_MEMORY)


def rows_bytes(rows: int, weighted: bool) -> int:
    """Return the memory that counting rows exactly takes, at most."""
    return rows * (_BYTES_PER_ROW + weighted * _BYTES_PER_WEIGHT)


def _bytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
