"""Input files of the commands: standard input, other encodings, size limits and checksums.

The result is plain files on disk, which the rest of Calibrant reads.
"""

import codecs
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import temporary_writes

if TYPE_CHECKING:
    from calibrant.ingest.formats import File

__all__ = ["check_sizes", "plain_files"]

_CHUNK = 1 << 20
_SUFFIXES = {"parquet": ".parquet", "csv": ".csv", "json": ".jsonl"}
_STANDARD_INPUT = "standard input"


@contextmanager
def plain_files(
    paths: tuple[str, ...], *, format: Any, encoding: str | None, max_bytes: int | None, sha256: bool
) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """Return UTF-8 or Parquet files on disk and the checksums of the input; temporary files are deleted at the end."""
    from calibrant.ingest.files import find_files

    if paths.count("-") > 1:
        raise InputError(f"Standard input (-) must be given at most once; got it {paths.count('-')} times.")
    with tempfile.TemporaryDirectory(prefix="calibrant-") as name:
        folder = Path(name)
        found = [_save_standard_input(folder, format, max_bytes)] if "-" in paths else []
        found += [path for path in paths if path != "-"]
        files = find_files(found, format)
        check_sizes(files, max_bytes)
        inputs = [_checksum(Path(file.path)) for file in files] if sha256 else []
        yield [file.path if encoding is None else _convert(file, encoding, folder) for file in files], inputs


def _save_standard_input(folder: Path, format: str | None, max_bytes: int | None) -> str:
    """Write standard input to a file whose suffix states its format."""
    if sys.stdin is None:
        raise InputError("Standard input (-) must be open; it is closed.")
    path, size = folder / _STANDARD_INPUT, 0
    with temporary_writes(folder), path.open("wb") as out:
        while chunk := sys.stdin.buffer.read(_CHUNK):
            size += len(chunk)
            if max_bytes is not None and size > max_bytes:
                raise _too_large(_STANDARD_INPUT, max_bytes)
            out.write(chunk)
    with path.open("rb") as stream:
        named = path.with_name(f"{_STANDARD_INPUT}{_suffix(stream.read(4096), format)}")
    return str(path.rename(named))


def _suffix(head: bytes, format: str | None) -> str:
    """Return the suffix of a file by its format or, if that is not given, by its first bytes."""
    from calibrant.ingest.formats import binary_format

    own = (binary_format(head) or ("", None))[1] or ""
    if format is None and own == ".parquet":
        return own
    is_json = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    suffix = _SUFFIXES[format or ("json" if is_json else "csv")]
    return suffix + (own if own != ".parquet" else "")


def check_sizes(files: "list[File]", max_bytes: int | None) -> None:
    """Raise an error if files have more bytes together, after decompression."""
    from calibrant.ingest.text_files import byte_chunks

    if max_bytes is None:
        return
    left = max_bytes
    for file in files:
        sizes = [Path(file.path).stat().st_size] if file.compression is None else map(len, byte_chunks(file, _CHUNK))
        for size in sizes:
            left -= size
            if left < 0:
                raise _too_large(file.name, max_bytes)


def _checksum(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"file": file.name, "bytes": file.stat().st_size, "sha256": digest}


def _convert(file: "File", encoding: str, folder: Path) -> str:
    """Write a text file as UTF-8; Hive folders of its path are kept, because they are columns."""
    from calibrant.ingest.text_files import byte_chunks

    _check_encoding(encoding)
    path = Path(file.path)
    if file.format == "parquet":
        hint = "Leave out " + Argument("encoding") + "."
        raise InputError(f"{file.name} must be a text file to have an encoding; it is Parquet.", hint=hint)
    partitions = [part for part in path.parts[:-1] if "=" in part]
    own = Path(tempfile.mkdtemp(dir=folder)).joinpath(*partitions, path.stem if file.compression else path.name)
    own.parent.mkdir(parents=True, exist_ok=True)
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with temporary_writes(folder), own.open("w", encoding="utf-8", newline="") as out:
            for chunk in byte_chunks(file, _CHUNK):
                out.write(decoder.decode(chunk))
            out.write(decoder.decode(b"", final=True))
    except UnicodeError as error:
        hint = "Pass another " + Argument("encoding") + "."
        raise InputError(f"{file.name} is not {encoding}: {error}.", hint=hint) from error
    return str(own)


def _check_encoding(encoding: str) -> None:
    try:
        is_text = codecs.lookup(encoding)._is_text_encoding
    except (LookupError, UnicodeError):
        is_text = False
    if not is_text:
        raise InputError(
            Argument("encoding") + f" must be an encoding of text, such as utf-16 or latin-1; got {encoding!r}."
        )


def _too_large(name: str, max_bytes: int) -> InputError:
    return InputError(
        f"{name} must have at most {max_bytes:,} bytes; it has more.", hint="Raise " + Argument("max_bytes") + "."
    )
