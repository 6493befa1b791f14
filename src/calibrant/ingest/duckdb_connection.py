"""Connections to DuckDB that read one file."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibrant._support.errors import InputError, MissingExtraError
from calibrant.ingest.formats import File
from calibrant.ingest.memory import address_space_left

__all__ = ["open_duckdb", "quoted_path", "quoted_text"]

_LEAST_SPACE = 128 << 20  # bytes of addresses; with fewer, DuckDB fails with a segmentation fault
_OUT_OF_MEMORY = "Out of Memory Error"  # how DuckDB begins such a message, which Arrow passes on as an OSError


@contextmanager
def open_duckdb(file: File, memory_limit: str) -> Iterator[Any]:
    """Connect to DuckDB, without its progress bar; errors name the file."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingExtraError("Reading files needs DuckDB and pyarrow", "files", name=error.name) from error
    # DuckDB must not download extensions.
    settings: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    settings |= _few_threads(file, duckdb.__version__)
    try:
        connection = duckdb.connect(config={**settings, "memory_limit": memory_limit})
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(f"There is too little memory to read {file.name}: {error}") from error
    except (duckdb.Error, TypeError) as error:
        raise InputError(
            f"memory_limit must be a size such as '1GB'; got {memory_limit!r} ({error}).", argument="memory_limit"
        ) from error
    with connection:
        connection.execute("SET enable_progress_bar = false")
        try:
            yield connection
        except duckdb.OutOfMemoryException as error:
            reason = str(error).splitlines()[0]
            raise MemoryError(f"memory_limit is too small to read {file.name}: {reason}") from error
        except (duckdb.Error, OSError, UnicodeDecodeError) as error:  # Arrow's errors while reading; undecodable texts
            if str(error).startswith(_OUT_OF_MEMORY):
                raise MemoryError(f"There is too little memory to read {file.name}: {error}") from error
            raise file.error(error) from error


def _few_threads(file: File, version: str) -> dict[str, int]:
    """Return settings where addresses are limited (``ulimit -v``), of which each thread reserves 72 MiB.

    DuckDB fails with a segmentation fault where none are left, so a minimum is required.
    """
    space = address_space_left()
    if space is None:
        return {}
    if space < _LEAST_SPACE:
        raise MemoryError(
            f"Reading {file.name} needs {_LEAST_SPACE >> 20} MiB of addresses; {space >> 20} MiB are left. "
            "Raise the limit (ulimit -v)."
        )
    # Since version 2, other threads read files.
    return {"threads": 1} if version.startswith("1.") else {"threads": 1, "async_threads": 0}


def quoted_text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def quoted_path(path: str) -> str:
    """Return a path as a literal of SQL in which DuckDB finds no pattern."""
    return quoted_text(re.sub(r"([*?\[])", r"[\1]", path))
