"""Connections to DuckDB that read one file."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibrant._support.errors import InputError, MissingExtraError
from calibrant.ingest.formats import File

__all__ = ["open_duckdb", "quoted_path", "quoted_text"]


@contextmanager
def open_duckdb(file: File, memory_limit: str) -> Iterator[Any]:
    """Connect to DuckDB, without its progress bar; errors name the file."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingExtraError("Reading files needs DuckDB and pyarrow", "files", name=error.name) from error
    # DuckDB must not download extensions.
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    try:
        connection = duckdb.connect(config={**settings, "memory_limit": memory_limit})
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
            raise file.error(error) from error


def quoted_text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def quoted_path(path: str) -> str:
    """Return a path as a literal of SQL in which DuckDB finds no pattern."""
    return quoted_text(re.sub(r"([*?\[])", r"[\1]", path))
