"""Files that commands read and write.

Input (standard input, other encodings, limits of size, checksums) becomes plain files on disk, which the rest of
Calibrant reads. Output files are complete or not written at all, and never overwritten by mistake.
"""

import codecs
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import temporary_writes, write_file

if TYPE_CHECKING:
    from calibrant.ingest.formats import File

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
        saved = [_save_standard_input(folder, format, max_bytes)] if "-" in paths else []
        files = find_files([*saved, *(path for path in paths if path != "-")], format)
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

    of_bytes = (binary_format(head) or ("", None))[1] or ""  # Parquet or a compression
    if format is None and of_bytes == ".parquet":
        return of_bytes
    is_json = head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    suffix = _SUFFIXES[format or ("json" if is_json else "csv")]
    return suffix + (of_bytes if of_bytes != ".parquet" else "")


def check_sizes(files: "list[File]", max_bytes: int | None) -> None:
    """Raise an error if the files together have more bytes after decompression."""
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
    converted = Path(tempfile.mkdtemp(dir=folder)).joinpath(*partitions, path.stem if file.compression else path.name)
    converted.parent.mkdir(parents=True, exist_ok=True)
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with temporary_writes(folder), converted.open("w", encoding="utf-8", newline="") as out:
            for chunk in byte_chunks(file, _CHUNK):
                out.write(decoder.decode(chunk))
            out.write(decoder.decode(b"", final=True))
    except UnicodeError as error:
        hint = "Pass another " + Argument("encoding") + "."
        raise InputError(f"{file.name} is not {encoding}: {error}.", hint=hint) from error
    return str(converted)


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


def load_calibrator(path: str) -> Any:
    """Load a calibrator that `calibrant fit` saved."""
    from calibrant.export.calibrator_files import load

    if not Path(path).is_file():
        raise InputError(f"There is no file {Path(path).name!r}.", hint="`calibrant fit` writes one.")
    return load(path)


def check_outputs(*paths: str | None, inputs: Iterable[str] = (), force: bool, stream: bool = True) -> None:
    """Check before the work that each output can be written; `stream` allows - for standard output.

    No output is an input: `force` replaces earlier outputs only. `inputs` are files, folders and patterns.
    """
    given = [path for path in paths if path is not None]
    if len({_place(path) for path in given}) < len(given):
        raise InputError("Outputs must have different paths; got one path twice.", hint="Name a file for each.")
    for path in given:
        if path != "-":
            if _is_input(Path(path), inputs):
                raise InputError(f"The output must not be an input; {Path(path).name!r} is one.", hint="Name another.")
            _check_output(Path(path), force=force)
        elif not stream:
            raise InputError("The output must be a file; got - (standard output).")
        else:
            _check_standard_output()


def _check_standard_output() -> None:
    if sys.stdout is None:
        raise InputError("Standard output (-) must be open; it is closed.", hint="Name a file.")


def _place(path: str) -> tuple[str, str]:
    """Return the folder without symbolic links, and the name in it; an output is never a link itself."""
    folder, name = os.path.split(os.path.abspath(path))
    return ("", "-") if path == "-" else (os.path.realpath(folder), name)


def _is_input(path: Path, inputs: Iterable[str]) -> bool:
    """Return whether an output is among the inputs, by any path that leads to it."""
    if path.is_symlink() or not path.is_file():
        return False
    from calibrant.ingest.files import find_files

    for name in inputs:
        with suppress(InputError, OSError):  # a missing input is reported when it is read
            if any(path.samefile(file.path) for file in find_files(name, "csv")):  # of any format: nothing is read
                return True
    return False


def _check_output(path: Path, *, force: bool) -> None:
    folder = path.absolute().parent
    if path.is_symlink():
        raise InputError(f"The output must be a file; {path.name!r} is a symbolic link.", hint="Name the file itself.")
    if path.exists() and not path.is_file():
        raise InputError(f"The output must be a file; {path.name!r} is not a regular file.", hint="Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path.name!r} exists already.", hint="Pass " + Argument("force") + " to overwrite it.")
    if not folder.is_dir():
        raise InputError(f"The folder of {path.name!r} does not exist.", hint="Create it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"The folder of {path.name!r} is not writable.")


def write_text(path: str, text: str) -> None:
    """Write text to a file, or to standard output (-)."""
    if path == "-":
        _check_standard_output()
        click.echo(text)
        return
    write_file(path, text + "\n", follow_links=False)


def write_json(path: str, result: dict[str, Any]) -> None:
    """Write a result as JSON, without NaN, to a file or to standard output (-)."""
    write_text(path, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
