"""Checks of tables that come from outside: unpickled or copied ones, Arrow tables and Parquet files.

Constructors of rows validate rows; these checks validate columns that anybody may have written. They compare whole
columns, once per table. A pickle can run code before any check: the checks are against damaged and foreign content.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._support.errors import InputError, MissingExtraError, Note
from calibrant._support.file_writing import check_path, new_file
from calibrant.tables.score_table import ScoreTable

_MOST_ROWS = 2**53  # sums of whole numbers in doubles are exact up to this
_ROUNDING = 1 + 1e-9  # sums of weights in another order may differ by less
_SUM_OF_ROW = 1e-6  # by which probabilities of a row may miss 1, per class; rounding adds to it
_COUNT_AGAIN = "Count the rows again."


def restore(table: Any, state: object, check: Callable[[Any], None], *, keep: tuple[str, ...] = ()) -> None:
    """Set the fields of a table that is unpickled or copied, and check them; other values, cached ones, are dropped."""
    name = type(table).__name__
    known = {field.name: field.default for field in fields(table)}
    if not isinstance(state, Mapping):
        raise InputError(f"The state of a {name} must be a mapping; got {type(state).__name__}.", hint=_COUNT_AGAIN)
    for field, default in known.items():
        if field not in state and default is MISSING:
            raise InputError(f"The state of a {name} must have a field {field!r}; got none.", hint=_COUNT_AGAIN)
        table.__dict__[field] = state.get(field, default)
    table.__dict__.update({each: state[each] for each in keep if each in state})
    check(table)
    if hasattr(table, "__post_init__"):
        table.__post_init__()  # a copy's arrays are writeable again


def check_score_table(table: Any, where: str = "a ScoreTable") -> None:
    """Check distinct scores in [0, 1], in increasing order, with their counts or sums of weights."""
    weighted = table.w2 is not None or table.k2 is not None
    columns = {"score": table.score, "n": table.n, "k": table.k}
    columns |= {"w2": table.w2, "k2": table.k2} if weighted else {}
    sums = np.float64 if weighted else np.int64
    _check_columns(columns, {name: np.float64 if name == "score" else sums for name in columns}, where)
    score = table.score
    _check_values("score", score, (score >= 0) & (score <= 1), "from 0 to 1", where)
    _check_values("score", score[1:], score[1:] > score[:-1], "strictly increasing", where, first=1)
    _check_counts(table.n, table.k, where)
    if weighted:
        _check_sums("w2", table.w2, where)
        _check_parts("k2", table.k2, "w2", table.w2, where)
    _check_about(table, table._notes, where)


def check_stored_score_table(table: Any, where: str) -> None:
    """Check a table from a file: as `check_score_table`, and that the rows that were read can have its sums."""
    check_score_table(table, where)
    n, used = table.n, table.n_in - table.n_dropped
    # Each pair of a score and an outcome needs a row.
    least = int(np.count_nonzero(table.k > 0) + np.count_nonzero(table.k < n))
    most = int(n.sum()) if table.w2 is None else 2**63
    if table.w2 is not None and n.size:
        least = max(least, _effective_rows(n, table.w2, where))
    if not least <= used <= most:
        condition = f"at least {least:,}" if used < least else f"at most {most:,}"
        raise _error("n_in", f"such that the number of used rows is {condition}; got {used:,}", where, value=used)


def _effective_rows(n: Any, w2: Any, where: str) -> int:
    """Return the least number of rows with these sums of weights and of their squares: the sum of n^2 / w2.

    The squares of one score are at most the square of its sum. w2 = n stands for numbers of rows that are not whole.
    """
    if np.array_equal(w2, n) and n.sum() >= 1:
        return 1
    _check_values("w2", w2, (w2 > 0) & (w2 <= n**2 * _ROUNDING), "above 0, and at most the square of n", where)
    with np.errstate(over="ignore"):
        return int(min(float(np.sum(n**2 / w2)) / _ROUNDING, _MOST_ROWS))


def check_mean_table(table: Any, where: str = "a MeanTable") -> None:
    """Check finite predictions and mean outcomes, positive counts or sums of weights, and sums of squares."""
    columns = {"prediction": table.prediction, "n": table.n, "mean": table.mean, "m2": table.m2}
    columns |= {} if table.w2 is None else {"w2": table.w2}
    types = {name: np.int64 if name == "n" and table.w2 is None else np.float64 for name in columns}
    _check_columns(columns, types, where)
    for name in ("prediction", "mean"):
        _check_values(name, columns[name], np.isfinite(columns[name]), "finite", where)
    _check_counts(table.n, None, where)
    for name in ("m2", "w2") if "w2" in columns else ("m2",):
        _check_sums(name, columns[name], where)
    if type(table.single) is not bool:
        raise _error("single", f"True or False; got {table.single!r}", where)
    if table.single:
        _check_values(
            "n", table.n, (table.n == 1) & (table.m2 == 0), "1, with m2 = 0, in a table of single rows", where
        )
    _check_about(table, table.notes, where)


def check_class_table(table: Any, where: str = "a ClassTable") -> None:
    """Check rows of probabilities that sum to 1, the classes that occurred, and the weights of rows."""
    _check_labels(table.labels, where)
    proba, classes = table.proba, len(table.labels)
    if not isinstance(proba, np.ndarray) or proba.ndim != 2 or proba.shape[1] != classes or proba.dtype.kind != "f":
        raise _error("proba", f"an array of numbers with {classes} columns; got {_shape(proba)}", where)
    columns = {"code": table.code} | ({} if table.weight is None else {"weight": table.weight})
    floats = getattr(table.weight, "dtype", None) == np.float64
    _check_columns(columns, {"code": np.int64, "weight": np.float64 if floats else np.int64}, where)
    if len(proba) != table.code.size:
        raise _error("code", f"as long as proba; got {table.code.size} and {len(proba)} rows", where)
    valid = ((proba >= 0) & (proba <= 1)).all(axis=1)
    valid &= np.abs(proba.sum(axis=1, dtype=np.float64) - 1) <= 2 * _SUM_OF_ROW * classes
    _check_values("proba", proba, valid, "from 0 to 1, with rows that sum to 1", where)
    _check_values("code", table.code, (table.code >= 0) & (table.code < classes), "a position of a class", where)
    if table.weight is not None:
        _check_counts(table.weight, None, where, name="weight")
    _check_about(table, table.notes, where)


def check_confusion_table(table: Any, where: str = "a ConfusionTable") -> None:
    """Check a square array of counts, or of sums of weights, for each pair of classes."""
    _check_labels(table.labels, where)
    shape, sums = (len(table.labels),) * 2, np.int64 if table.w2 is None else np.float64
    for name, cells in (("n", table.n), ("w2", table.w2)):
        if cells is None and name == "w2":
            continue
        if not isinstance(cells, np.ndarray) or cells.shape != shape or cells.dtype != sums:
            raise _error(name, f"an array of shape {shape} and type {np.dtype(sums)}; got {_shape(cells)}", where)
        _check_sums(name, cells.reshape(-1), where)
    _check_total("n", table.n, where)
    _check_about(table, table.notes, where)


def check_partition(partition: Any, where: str = "a Partition") -> None:
    """Check that bins begin with rising entries of the table, or have sums of their own."""
    sums = partition.__dict__.get("_sums")
    _check_columns({"start": partition.start}, {"start": np.int64}, where)
    start, most = partition.start, len(partition.table) if sums is None else partition.start.size
    inside = (start >= 0) & (start < most) if sums is None else start >= 0
    _check_values("start", start, inside, "an entry of the table", where)
    _check_values("start", start[1:], start[1:] > start[:-1], "strictly increasing", where, first=1)
    if sums is None and most and (not start.size or start[0] != 0):
        raise _error("start", "0 for the first bin", where)
    if sums is not None:
        _check_bin_sums(sums, start.size, where)
    edges = partition._nominal
    alike = isinstance(edges, tuple) and len(edges) == 2
    if edges is not None and not (alike and all(getattr(edge, "shape", None) == start.shape for edge in edges)):
        raise _error("edges", "None, or the lower and the upper edge of each bin", where)


def check_mean_partition(partition: Any, where: str = "a MeanPartition") -> None:
    """Check that each entry of the table has a bin, and each bin its edges."""
    columns = {"lower": partition.lower, "upper": partition.upper}
    _check_columns(columns, {"lower": np.float64, "upper": np.float64}, where)
    _check_columns({"labels": partition.labels}, {"labels": np.int64}, where)
    labels, bins, entries = partition.labels, partition.lower.size, len(partition.table)
    if labels.size != entries:
        raise _error("labels", f"as long as the table; got {labels.size} and {entries} entries", where)
    _check_values("labels", labels, (labels >= 0) & (labels < bins), f"from 0 to {bins - 1}", where)


def _check_bin_sums(sums: Any, size: int, where: str) -> None:
    if not isinstance(sums, tuple) or len(sums) != 3:
        raise _error("sums", f"three arrays; got {type(sums).__name__}", where)
    for name, column in zip(("n", "k", "score"), sums, strict=True):
        if not isinstance(column, np.ndarray) or column.shape != (size,) or column.dtype.kind not in "if":
            raise _error(name, f"an array of {size} numbers; got {_shape(column)}", where)
        _check_values(name, column, np.isfinite(column), "finite", where)


def _check_about(table: Any, notes: object, where: str) -> None:
    """Check the number of rows that were read and dropped, and the notes."""
    for name in ("n_in", "n_dropped"):
        value = getattr(table, name)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 0 <= value < 2**63:
            raise _error(name, f"a whole number of at least 0 and below 2**63; got {str(value)[:40]}", where)
    if table.n_dropped > table.n_in:
        raise _error("n_dropped", f"at most n_in; got {table.n_dropped} of {table.n_in}", where)
    if not isinstance(notes, tuple) or not all(_is_note(note) for note in notes):
        raise _error("notes", "a tuple of notes", where)


def _check_columns(columns: Mapping[str, Any], types: Mapping[str, Any], where: str) -> None:
    """Check that all columns are 1-D arrays of their types and of one length."""
    for name, column in columns.items():
        if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype != types[name]:
            raise _error(name, f"a 1-D array of type {np.dtype(types[name])}; got {_shape(column)}", where)
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise _error(next(iter(sizes)), f"as long as the other columns; got the lengths {sizes}", where)


def _check_values(name: str, column: Any, good: Any, condition: str, where: str, *, first: int = 0) -> None:
    """Check a condition that was evaluated for each value of a column, which begins with row `first`."""
    if not good.all():
        row = int(np.argmin(good))
        value = column[row].tolist()
        raise _error(name, f"{condition}; got {value!r}", f"row {row + first} of {where}", row=row + first, value=value)


def _check_counts(n: Any, k: Any, where: str, name: str = "n") -> None:
    """Check numbers of rows and events, or sums of weights: n positive, k from 0 to n, the total below 2**53."""
    _check_values(name, n, n >= 1 if n.dtype.kind == "i" else (n > 0) & (n < np.inf), "positive and finite", where)
    if k is not None:
        _check_parts("k", k, name, n, where)
    _check_total(name, n, where)


def _check_total(name: str, n: Any, where: str) -> None:
    total = float(n.sum(dtype=np.float64))
    if not total <= _MOST_ROWS:
        raise _error(name, f"at most 2**53 in total; got {total:.6g}", where, value=total)


def _check_sums(name: str, sums: Any, where: str) -> None:
    _check_values(name, sums, (sums >= 0) & (sums < np.inf), "at least 0 and finite", where)


def _check_parts(name: str, part: Any, of: str, whole: Any, where: str) -> None:
    most = whole if part.dtype.kind == "i" else whole * _ROUNDING
    _check_values(name, part, (part >= 0) & (part <= most), f"from 0 to {of}", where)


def _check_labels(labels: object, where: str) -> None:
    try:
        different = isinstance(labels, tuple) and len(labels) > 0 and len(set(labels)) == len(labels)
    except TypeError:
        different = False
    if not different:
        raise _error("labels", f"a tuple of different classes; got {labels!r}", where)


def _is_note(note: object) -> bool:
    if not isinstance(note, Note):
        return False
    counted = isinstance(note.count, (int, np.integer)) and not isinstance(note.count, bool) and note.count >= 0
    return isinstance(note.code, str) and isinstance(note.template, str) and counted


def _shape(value: object) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


def _error(name: str, condition: str, where: str, **place: Any) -> InputError:
    return InputError(f"{name} must be {condition} ({where}).", hint=_COUNT_AGAIN, argument=name, **place)


_VERSION = 2
# Version 1 has no k2: its tables of counts are the same; its tables of importance weights cannot be tested.
_READABLE = (1, _VERSION)
_KEY = b"calibrant"
_COLUMNS = ("score", "n", "k", "w2", "k2")


def load_arrow(need: str = "Storing tables needs", extra: str = "files") -> Any:
    """Return pyarrow; an error that names the extra where it is missing."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{need} pyarrow", extra, name="pyarrow") from error
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
    return load_arrow().table(arrays).replace_schema_metadata({_KEY: json.dumps(about)})


def from_arrow(frame: Any, *, name: str = "The Arrow table") -> ScoreTable:
    """Return the table that `to_arrow` wrote; other Arrow tables, and changed ones, are an error."""
    try:
        is_table = hasattr(frame, "schema") and hasattr(frame, "column_names")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is damaged: a name of a column is not text.", hint="Count the rows again.") from error
    if not is_table:
        raise InputError(f"frame must be an Arrow table; got {type(frame).__name__}.")
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
    load_arrow()
    import pyarrow.parquet as pq

    with new_file(path) as file:
        pq.write_table(to_arrow(table), file, compression="zstd")


def from_parquet(path: str | PathLike[str]) -> ScoreTable:
    """Read a table that `to_parquet` wrote; a changed or truncated file is an error that names it."""
    arrow = load_arrow()
    import pyarrow.parquet as pq

    name = check_path(path).name
    if Path(path).is_dir():
        raise InputError(f"path must be a file; got the folder {name!r}.")
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"path must be a regular file; got a device or a pipe, {name!r}.")
    try:
        with arrow.OSFile(str(path)) as stream:  # opened once: another process may replace the file meanwhile
            frame = pq.read_table(stream, page_checksum_verification=False)
    except FileNotFoundError:
        raise InputError(f"There is no file {name!r}.", argument="path") from None
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0].replace(str(path), name)
        raise InputError(f"{name} cannot be read: {reason}", hint="Count the rows again.", argument="path") from error
    return from_arrow(frame, name=name)
