"""Bodies of requests: JSON, CSV and Arrow, checked before their data are used, become the columns of a call."""

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from csv import Error as CsvError
from csv import reader
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._support.errors import Argument, InputError, is_number, nearest
from calibrant.monitor.service.problems import ServiceProblem

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
_SCALARS = (str, int, float, bool, type(None))
_MOST_COLUMNS = 50
_NUMBERS = ("p", "score", "n", "k")  # columns of CSV; y may be a label


@dataclass(frozen=True)
class Columns:
    """The members that a body of rows may have.

    Attributes
    ----------
    required, optional : tuple of str
        Columns.
    constants : tuple of str
        Members that are one value; in a table (CSV, Arrow) the query has them.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()


def media_type(header: str | None, allowed: Iterable[str]) -> str:
    """Return the media type of a request; a problem 415 if it is not allowed."""
    kind = (header or "").partition(";")[0].strip().lower()
    known = list(allowed)
    if kind not in known:
        raise ServiceProblem(
            415, f"The Content-Type must be {' or '.join(known)}; got {kind[:80] or 'none'!r}.", argument="Content-Type"
        )
    return kind


def read_columns(kind: str, body: bytes, columns: Columns, query: Mapping[str, Any], max_rows: int) -> dict[str, Any]:
    """Return the arguments of a call from a body of the given media type."""
    if kind == JSON:
        found = read_object(body, (*columns.required, *columns.optional, *columns.constants))
        for name, value in found.items():
            _check_column(name, value, max_rows)
        if isinstance(found.get("p"), list) and found["p"] and isinstance(found["p"][0], list):
            found["p"] = _matrix(found["p"])
    else:
        by = [] if "group" in columns.constants else list(query.get("group") or [])
        check = partial(_check_names, columns=columns, by=by)
        table = _read_csv(body, check) if kind == CSV else _read_arrow(body, max_rows, check)
        found = _table_columns(table, columns, by, query, max_rows)
    missing = [name for name in columns.required if found.get(name) is None]
    if missing:
        raise InputError(
            Argument(missing[0]) + " must be given; the body has none.", hint=f"It needs {', '.join(columns.required)}."
        )
    for name in columns.constants:
        if isinstance(found.get(name), (list, dict)):
            raise InputError(Argument(name) + " must be one value; got several.")
    return {name: value for name, value in found.items() if value is not None}


def read_object(body: bytes, known: Iterable[str]) -> dict[str, Any]:
    """Return the JSON object of a body; unknown members are an error."""
    try:
        found = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant, object_pairs_hook=_members)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"The body must be JSON in UTF-8; {reason[:200]}.") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError("The body must be JSON with numbers of at most 4,300 digits.") from error
    if not isinstance(found, dict):
        raise InputError("The body must be a JSON object.")
    names = list(known)
    for name in found:
        if name not in names:
            hint = nearest(name, names).strip() or f"It may have {', '.join(names)}."
            raise InputError(f"The body has an unknown member {name[:80]!r}.", argument=name[:80], hint=hint)
    return found


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("The body must name each member once.")
    return found


def _refuse_constant(text: str) -> None:
    raise InputError(f"The body must be JSON, which has no {text}.", hint="Leave such rows out.")


def _check_column(name: str, value: Any, max_rows: int) -> None:
    """Check that a member is a value or a list; a group may be an object of lists, and `p` a list of lists."""
    if isinstance(value, dict) and name == "group" and value:
        for key, each in value.items():
            if not isinstance(each, list):
                raise InputError(Argument("group") + f" must be an object of lists; {key[:80]!r} is none.")
            _check_column(key, each, max_rows)
        return
    if isinstance(value, _SCALARS):
        return
    if not isinstance(value, list):
        raise InputError(Argument(name) + " must be a value or a list of values; got an object.")
    if len(value) > max_rows:
        raise _too_many(len(value), max_rows)
    for row, cell in enumerate(value):
        inner = cell if isinstance(cell, list) and name == "p" else [cell]
        if not all(isinstance(each, _SCALARS) for each in inner):
            raise InputError(Argument(name) + f" must hold values; row {row} is not one.", row=row)
    if name == "p" and value and len({len(each) if isinstance(each, list) else -1 for each in value}) > 1:
        raise InputError(Argument("p") + " must have the same number of probabilities in each row.")


def _matrix(rows: list[list[Any]]) -> Any:
    """Return class probabilities as an array."""
    for row, cells in enumerate(rows):
        if not all(is_number(cell) for cell in cells):
            raise InputError(Argument("p") + f" must hold numbers; row {row} has another value.", row=row)
    try:
        return np.array(rows, dtype=np.float64)
    except OverflowError as error:
        raise InputError(Argument("p") + " must hold numbers from 0 to 1.") from error


def _too_many(n_rows: int, max_rows: int) -> ServiceProblem:
    """Return the problem of a body with too many rows."""
    return ServiceProblem(413, f"A request must have at most {max_rows:,} rows; got {n_rows:,}. Send it in parts.")


def _read_csv(body: bytes, check_names: Callable[[list[str]], None]) -> Any:
    """Return a CSV body as a table of Arrow; ids, times and groups are text.

    The names of columns are checked first: Arrow takes some kilobytes of memory for each column.
    """
    import pyarrow as pa
    from pyarrow import csv

    content = body.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    names = _header(content)
    check_names(names)
    types = {name: pa.string() for name in names if name not in ("y", *_NUMBERS)}
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    try:
        table = csv.read_csv(
            pa.BufferReader(content), read_options=csv.ReadOptions(use_threads=False), convert_options=options
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"The body must be CSV with a header, in UTF-8; {reason}.") from error
    for name in _NUMBERS:
        if name in names and pa.types.is_string(table.schema.field(name).type):
            _refuse_text(name, table.column(name).to_pylist(), options.null_values)
    return table


def _refuse_text(name: str, cells: list[str], missing: list[str]) -> None:
    """Raise an error about the first cell that is no number: one makes text of the whole column."""
    for row, cell in enumerate(cells):
        try:
            float("nan" if cell in missing else cell)
        except ValueError:
            raise InputError(Argument(name) + f" must hold numbers; row {row} is {cell[:40]!r}.", row=row) from None


def _header(content: bytes) -> list[str]:
    """Return the names in the first line."""
    head = re.split(rb"[\r\n]", content, maxsplit=1)[0]
    if not head:
        raise InputError("The body must be CSV with a header, in UTF-8; it is empty.")
    n_columns = head.count(b",") + 1
    if n_columns > _MOST_COLUMNS:
        raise InputError(f"The table must have at most {_MOST_COLUMNS} columns; got {n_columns:,}.")
    try:
        return next(reader([head.decode("utf-8")], strict=True))
    except (UnicodeDecodeError, CsvError) as error:
        raise InputError(f"The body must be CSV with a header, in UTF-8; {str(error)[:200]}.") from error


def _check_names(names: list[str], columns: Columns, by: list[str]) -> None:
    """Check the names of the columns of a table; `by` are those of groups."""
    if len(names) > _MOST_COLUMNS:
        raise InputError(f"The table must have at most {_MOST_COLUMNS} columns; got {len(names):,}.")
    if len(set(names)) < len(names):
        raise InputError("The columns of the table must have different names.")
    for name in by:
        if name not in names:
            raise InputError(Argument("group") + f" must name columns of the table; there is no {name[:80]!r}.")
    for name in names:
        if name not in (*columns.required, *columns.optional, *by):
            hint = "Remove it, or name it with group= in the query if it is a group."
            raise InputError(f"The table has an unknown column {name[:80]!r}.", argument=name[:80], hint=hint)


def _table_columns(
    table: Any, columns: Columns, by: list[str], query: Mapping[str, Any], max_rows: int
) -> dict[str, Any]:
    """Return the columns of a table by name, and the constants of the query."""
    if table.num_rows > max_rows:
        raise _too_many(table.num_rows, max_rows)
    found: dict[str, Any] = {name: query.get(name) for name in (*columns.constants, "time")}
    if by:
        found["group"] = table.column(by[0]) if len(by) == 1 else {name: table.column(name) for name in by}
    for name in table.column_names:
        if name in (*columns.required, *columns.optional) and not (name == "group" and by):
            found[name] = table.column(name)
    return found


_MOST_MESSAGES = 10_000
_LONGEST_TEXT = 2000  # bytes: 500 characters, the limit of the store
_MOST_BYTES = 2**26  # of a column of text after its dictionary is resolved
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2


def _read_arrow(body: bytes, max_rows: int, check_names: Callable[[list[str]], None]) -> Any:
    """Return a body in the format of Arrow streams as a table; `check_names` gets the names of its columns first.

    Only plain columns are read: numbers, booleans, text, times, and dictionaries of text. Compressed buffers, nested
    or run-end encoded columns and long texts in dictionaries are refused: a small body could then need any amount of
    memory.
    """
    import pyarrow as pa

    try:
        _check_messages(body, max_rows)
        with pa.ipc.open_stream(pa.BufferReader(body)) as reader:
            check_names(reader.schema.names)
            _check_types(reader.schema)
            table = reader.read_all()
        table.validate(full=True)
        return _plain_columns(table)
    except (InputError, ServiceProblem):
        raise
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError, MemoryError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"The body must be an Arrow stream; {reason}.") from error


def _check_messages(body: bytes, max_rows: int) -> None:
    """Check compression and the number of rows in the headers of all messages, before their buffers are read."""
    import pyarrow as pa

    source, n_rows = pa.BufferReader(body), 0
    for _ in range(_MOST_MESSAGES):
        try:
            message = pa.ipc.read_message(source)
        except EOFError:
            return
        if message.type not in ("record batch", "dictionary"):
            continue
        length, compressed = _batch_header(message.metadata.to_pybytes())
        if compressed:
            raise InputError("The Arrow stream must not be compressed.", hint="Write it without compression.")
        n_rows += length if message.type == "record batch" else 0
        if n_rows > max_rows or length > max_rows or length < 0:
            raise _too_many(n_rows, max_rows)
    raise InputError(f"The Arrow stream must have at most {_MOST_MESSAGES:,} messages.")


def _batch_header(data: bytes) -> tuple[int, bool]:
    """Return the number of rows and whether buffers are compressed, from the FlatBuffers header of a message.

    Message.fbs of Arrow: Message has version (0), header type (1), header (2); RecordBatch has length (0), nodes (1),
    buffers (2), compression (3); DictionaryBatch has id (0), data (1), which is a RecordBatch.
    """
    message = _offset(data, 0)
    kind = data[_field(data, message, 1)]
    header = _table(data, message, 2)
    if kind == _DICTIONARY_BATCH:
        header = _table(data, header, 1)
    elif kind != _RECORD_BATCH:
        raise InputError("The Arrow stream must hold record batches only.")
    at = _field(data, header, 0)
    length = struct.unpack_from("<q", data, at)[0] if at else 0
    return length, bool(_field(data, header, 3))


def _offset(data: bytes, at: int) -> int:
    return int(at + struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return the position of a field of a table of FlatBuffers; 0 if it is not there."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    entry = 4 + 2 * number
    if entry + 2 > size:
        return 0
    shift = struct.unpack_from("<H", data, fields + entry)[0]
    return int(table + shift) if shift else 0


def _table(data: bytes, table: int, number: int) -> int:
    at = _field(data, table, number)
    if not at:
        raise InputError("The Arrow stream has a message without a header.")
    return _offset(data, at)


def _check_types(schema: Any) -> None:
    import pyarrow as pa

    kinds = pa.types
    for each in schema:
        kind = each.type.value_type if kinds.is_dictionary(each.type) else each.type
        plain = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind) or kinds.is_temporal(kind)
        text = kinds.is_string(kind) or kinds.is_large_string(kind)
        if not plain and not text:
            raise InputError(
                f"The columns of the Arrow stream must be numbers, booleans, text or times; {each.name[:80]!r} is "
                f"{str(each.type)[:80]}."
            )


def _plain_columns(table: Any) -> Any:
    """Return the table with dictionaries as their values."""
    import pyarrow as pa

    columns = [
        _plain_column(column, name) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _plain_column(column: Any, name: str) -> Any:
    """Return the values of a column of a dictionary; their size is checked before they are written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type.value_type) or pa.types.is_large_string(column.type.value_type):
        lengths = [(pc.binary_length(chunk.dictionary), chunk.indices) for chunk in column.chunks]
        if max((pc.max(each).as_py() or 0 for each, _ in lengths), default=0) > _LONGEST_TEXT:
            raise InputError(f"The texts of {name[:80]!r} must have at most 500 characters.", argument=name[:80])
        size = sum(pc.sum(each.take(indices)).as_py() or 0 for each, indices in lengths)
        if size > _MOST_BYTES:
            text = f"The texts of {name[:80]!r} must have at most {_MOST_BYTES:,} bytes in all; got {size:,}. "
            raise ServiceProblem(413, text + "Send the rows in parts.", argument=name[:80])
    return column.cast(column.type.value_type)
