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
from typing import Any

from calibrant._support.errors import Argument, InputError

__all__ = ["plain_files"]

_CHUNK = 1 << 20
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
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
        files = [_save_standard_input(folder, format, max_bytes)] if "-" in paths else []
        named = [path for path in paths if path != "-"]
        files += [file.path for file in find_files(named, format)] if named else []
        _check_sizes(files, max_bytes)
        inputs = [_checksum(Path(file)) for file in files] if sha256 else []
        if encoding is not None:
            files = [_convert(Path(file), encoding, folder) for file in files]
        yield files, inputs


def _save_standard_input(folder: Path, format: str | None, max_bytes: int | None) -> str:
    """Write standard input to a file whose suffix states its format."""
    if sys.stdin is None:
        raise InputError("Standard input (-) must be open; it is closed.")
    path, size = folder / _STANDARD_INPUT, 0
    with path.open("wb") as out:
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
    if format is None and head.startswith(b"PAR1"):
        return ".parquet"
    is_json = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    suffix = _SUFFIXES[format or ("json" if is_json else "csv")]
    return suffix + {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}.get(head[:2], "")


def _check_sizes(files: list[str], max_bytes: int | None) -> None:
    if max_bytes is None:
        return
    left = max_bytes
    for file in files:
        left -= _size(Path(file), left)
        if left < 0:
            raise _too_large(Path(file).name, max_bytes)


def _size(file: Path, most: int) -> int:
    """Return the number of bytes after decompression, counted until they exceed `most`."""
    import pyarrow as pa

    compression = _COMPRESSIONS.get(file.suffix.lower())
    if compression is None:
        return file.stat().st_size
    size = 0
    try:
        with pa.input_stream(str(file), compression=compression) as stream:
            while size <= most and (chunk := stream.read(_CHUNK)):
                size += len(chunk)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error
    return size


def _checksum(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"file": file.name, "bytes": file.stat().st_size, "sha256": digest}


def _convert(file: Path, encoding: str, folder: Path) -> str:
    """Write a text file as UTF-8; Hive folders of its path are kept, because they are columns."""
    import pyarrow as pa

    _check_encoding(encoding)
    if file.suffix.lower() in (".parquet", ".pq"):
        hint = "Leave out " + Argument("encoding") + "."
        raise InputError(f"{file.name} must be a text file to have an encoding; it is Parquet.", hint=hint)
    compression = _COMPRESSIONS.get(file.suffix.lower())
    partitions = [part for part in file.parts[:-1] if "=" in part]
    own = Path(tempfile.mkdtemp(dir=folder)).joinpath(*partitions, file.stem if compression else file.name)
    own.parent.mkdir(parents=True, exist_ok=True)
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with (
            pa.input_stream(str(file), compression=compression) as raw,
            own.open("w", encoding="utf-8", newline="") as out,
        ):
            while chunk := raw.read(_CHUNK):
                out.write(decoder.decode(chunk))
            out.write(decoder.decode(b"", final=True))
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error
    except UnicodeError as error:
        hint = "Pass another " + Argument("encoding") + "."
        raise InputError(f"{file.name} is not {encoding}: {error}.", hint=hint) from error
    return str(own)


def _check_encoding(encoding: str) -> None:
    try:
        is_text = codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        is_text = False
    if not is_text:
        raise InputError(
            Argument("encoding") + f" must be an encoding of text, such as utf-16 or latin-1; got {encoding!r}."
        )


def _unreadable(file: Path, error: Exception) -> InputError:
    return InputError(f"{file.name} cannot be read: {str(error).splitlines()[0]}")


def _too_large(name: str, max_bytes: int) -> InputError:
    return InputError(
        f"{name} must have at most {max_bytes:,} bytes; it has more.", hint="Raise " + Argument("max_bytes") + "."
    )
