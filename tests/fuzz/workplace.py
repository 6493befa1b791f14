"""What the inputs of a target share: a folder in memory, and one DuckDB database with one thread."""

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

_SHARED = Path("/dev/shm")


@functools.cache
def _holder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="calibrant-fuzz-", dir=_SHARED if _SHARED.is_dir() else None)


def folder() -> Path:
    """Return a folder of this process, which is removed at its end."""
    return Path(_holder().name)


@functools.cache
def _database(settings: tuple[tuple[str, Any], ...]) -> Any:
    import duckdb

    return duckdb.connect(config={**dict(settings), "threads": 1})


def _cursor(settings: tuple[tuple[str, Any], ...]) -> Any:
    """Return a cursor of the database; a database that a damaged file has stopped is opened again."""
    import duckdb

    try:
        return _database(settings).cursor().execute("SELECT 1")
    except duckdb.FatalException:
        _database.cache_clear()
        return _database(settings).cursor()


@contextlib.contextmanager
def one_database() -> Iterator[None]:
    """Let connections with the same settings share a database; to open one takes most of the time of an input."""
    import duckdb

    connect = duckdb.connect

    def cursor(*arguments: Any, config: dict[str, Any] | None = None, **options: Any) -> Any:
        if arguments or options or config is None:
            return connect(*arguments, config=config or {}, **options)
        with mock.patch.object(duckdb, "connect", connect):
            return _cursor(tuple(sorted(config.items())))

    with mock.patch.object(duckdb, "connect", cursor):
        yield
