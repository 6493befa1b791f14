"""Formats of files, known by their suffixes."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from calibrant._support.errors import Argument, InputError, MissingExtraError
from calibrant.ingest.memory import address_space_left

Format: TypeAlias = Literal["parquet", "csv", "json"]

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
# The first bytes of files that are not text, what they are, and the suffix of such files.
_MARKS = {
    b"\x1f\x8b": ("gzip", ".gz"),
    b"\x28\xb5\x2f\xfd": ("zstd", ".zst"),
    b"PAR1": ("Parquet", ".parquet"),
    b"PK\x03\x04": ("a zip archive (as .xlsx and .npz files are)", None),
}


@dataclass(frozen=True)
class File:
    """A file and its format."""

    path: str
    format: Format

    def __post_init__(self) -> None:
        check_file_name(self.path)
        # DuckDB and Arrow take ~ and file: at the start of a relative path for a home folder and a URI.
        object.__setattr__(self, "path", os.path.join(os.curdir, self.path))

    @property
    def name(self) -> str:
        """Base name, for messages."""
        return Path(self.path).name

    @property
    def compression(self) -> str | None:
        """The compression of a text file: gzip, zstd or none."""
        return None if self.format == "parquet" else _COMPRESSIONS.get(Path(self.path).suffix.lower())

    def version(self) -> tuple[int, ...]:
        """Return the numbers of the device and the file, its size, and the times when it and its names changed."""
        try:
            found = os.stat(self.path)
        except OSError:  # deleted; reading it is an error
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    @staticmethod
    def known(path: Path) -> bool:
        """Return whether the suffix is that of a known format."""
        return _format(path) is not None

    def error(self, reason: object, *, hint: str = "", line: int | None = None) -> InputError:
        """Return the error of a file that cannot be read, without the folders of its path."""
        where = "" if line is None else f", line {line}"
        lines = str(reason).replace(str(Path(self.path).parent) + "/", "").splitlines() or [type(reason).__name__]
        text = f"{self.name}{where} cannot be read: {lines[0].rstrip('.')}."
        heading = 2 if self.format == "csv" else 1  # rows are counted from 0, without the header
        return InputError(text, hint=hint, argument="paths", row=None if line is None else line - heading)


def check_file_name(path: str) -> None:
    """Raise an error if a path is not UTF-8, which the libraries that read and write files need."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The name of a file and its folders must be UTF-8; got {Path(path).name!r}.",
            hint="Rename it first.",
            argument="paths",
            value=path,
        ) from error


def binary_format(head: bytes) -> tuple[str, str | None] | None:
    """Return what a file with these first bytes is and the suffix that it should have; None if it may be text.

    >>> binary_format(b"PAR1..."), binary_format(b"y,p")
    (('Parquet', '.parquet'), None)
    """
    return next((found for mark, found in _MARKS.items() if head.startswith(mark)), None)


def _format(path: Path) -> Format | None:
    endings = [suffix.lower() for suffix in path.suffixes]
    endings = endings[:-1] if endings and endings[-1] in _COMPRESSIONS else endings
    return _SUFFIXES.get(endings[-1]) if endings else None


def guess_format(path: str) -> Format:
    """Return the format of the suffix of a file."""
    found = _format(Path(path))
    if found is None:
        raise InputError(
            f"The suffix of {Path(path).name!r} must be that of a known format.",
            hint="Pass " + Argument("format") + ": parquet, csv or json.",
            argument="format",
        )
    return found


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
    with connection:
        connection.execute("SET enable_progress_bar = false")
        try:
            yield connection
        except duckdb.OutOfMemoryException as error:
            reason = str(error).splitlines()[0]
            raise MemoryError(f"max_memory is too small to read {file.name}: {reason}") from error
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
