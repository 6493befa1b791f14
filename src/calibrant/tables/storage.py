"""Storage of tables: Arrow tables and Parquet files with a version and a checksum."""

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._support.atomic_files import check_path, new_file
from calibrant._support.errors import InputError, MissingExtraError, Note
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.validation import check_stored_score_table

__all__ = ["from_arrow", "from_parquet", "to_arrow", "to_parquet"]

_VERSION = 2
# Version 1 has no k2: its tables of counts are the same; its tables of importance weights cannot be tested.
_READABLE = (1, _VERSION)
_KEY = b"calibrant"
_COLUMNS = ("score", "n", "k", "w2", "k2")


def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise MissingExtraError("Storing tables needs pyarrow", "files", name="pyarrow") from error
    return pyarrow


def to_arrow(table: ScoreTable) -> Any:
    """Return an Arrow table with version, number of rows, notes and a checksum in its metadata."""
    arrays = {name: getattr(table, name) for name in _COLUMNS if getattr(table, name) is not None}
    about = {
        "version": _VERSION,
        "n_in": int(table.n_in),
        "n_dropped": int(table.n_dropped),
        "notes": [[note.code, int(note.count), note.template] for note in table._notes],
    }
    about["sha256"] = _checksum(arrays, about)
    frame = _arrow().table(arrays)
    return frame.replace_schema_metadata({_KEY: json.dumps(about)})


def from_arrow(frame: Any, *, name: str = "The Arrow table") -> ScoreTable:
    """Return the table that `to_arrow` wrote; other Arrow tables, and changed ones, are an error."""
    try:
        is_table = hasattr(frame, "schema") and hasattr(frame, "column_names")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is damaged: a name of a column is not text.", hint="Count the rows again.") from error
    if not is_table:
        raise InputError(f"frame must be an Arrow table; got {type(frame).__name__}.", argument="frame")
    about = _about(frame.schema.metadata or {}, name)
    if type(about.get("version")) is not int or about["version"] not in _READABLE:
        raise InputError(f"{name} must have a format up to {_VERSION}; got {about.get('version')!r}.")
    if len(set(frame.column_names)) < len(frame.column_names):
        raise InputError(f"{name} is damaged: a column occurs twice.", hint="Count the rows again.")
    arrays = {c: np.asarray(frame.column(c)) for c in _COLUMNS if c in frame.column_names}
    if about["version"] == 1 and "w2" in arrays:
        raise InputError(
            f"{name} must hold the sums of w^2 y of its importance weights; got a file of format 1, which has none.",
            hint="Count the rows again with sample_weight, or with frequency if the weights were numbers of rows.",
        )
    sha = about.pop("sha256", None)
    whole = {"score", "n", "k"} <= set(arrays) and all(a.dtype in (np.float64, np.int64) for a in arrays.values())
    if not whole or _checksum(arrays, about) != sha:
        raise InputError(f"{name} is damaged: its checksum does not match its content.", hint="Count the rows again.")
    # A checksum shows damage, not who wrote the file: the content is checked too.
    table = ScoreTable(
        **arrays, n_in=about.get("n_in", -1), n_dropped=about.get("n_dropped", -1), _notes=_notes(about, name)
    )
    check_stored_score_table(table, name)
    return table


def _notes(about: dict[str, Any], name: str) -> tuple[Note, ...]:
    try:
        return tuple(Note(code, number, template) for code, number, template in about["notes"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{name} is damaged: its notes cannot be read.", hint="Count the rows again.") from error


def _about(metadata: dict[bytes, bytes], name: str) -> dict[str, Any]:
    try:
        found = json.loads(metadata[_KEY])
    except (KeyError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name} is not a table that calibrant wrote.",
            hint="For rows of outcomes and scores use calibrant.scan or calibrant.from_frame.",
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"{name} is damaged: its metadata cannot be read.")
    return found


def _checksum(arrays: dict[str, Any], about: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.size}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def to_parquet(table: ScoreTable, path: str | PathLike[str]) -> None:
    """Write the table to a Parquet file; an existing file is replaced atomically."""
    _arrow()
    import pyarrow.parquet as pq

    with new_file(path) as file:
        pq.write_table(to_arrow(table), file, compression="zstd")


def from_parquet(path: str | PathLike[str]) -> ScoreTable:
    """Read a table that `to_parquet` wrote; a changed or truncated file is an error that names it."""
    arrow = _arrow()
    import pyarrow.parquet as pq

    name = check_path(path).name
    if Path(path).is_dir():
        raise InputError(f"path must be a file; got the folder {name!r}.", argument="path")
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"path must be a regular file; got a device or a pipe, {name!r}.", argument="path")
    try:
        with arrow.OSFile(str(path)) as stream:  # opened once: another process may replace the file meanwhile
            frame = pq.read_table(stream, page_checksum_verification=False)
    except FileNotFoundError:
        raise InputError(f"There is no file {name!r}.", argument="path") from None
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0].replace(str(path), name)
        raise InputError(f"{name} cannot be read: {reason}", hint="Count the rows again.", argument="path") from error
    return from_arrow(frame, name=name)
