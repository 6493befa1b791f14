"""Arrow streams from the network: checked before any of their data are used."""

import struct
from collections.abc import Callable
from typing import Any

from calibrant._support.errors import InputError
from calibrant.monitor.service.problems import ServiceProblem

__all__ = ["read_arrow"]

_MOST_MESSAGES = 10_000
_LONGEST_TEXT = 2000  # bytes: 500 characters, the limit of the store
_MOST_BYTES = 2**26  # of a column of text after its dictionary is resolved
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2


def read_arrow(body: bytes, max_rows: int, check_names: Callable[[list[str]], None]) -> Any:
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
            text = f"A request must have at most {max_rows:,} rows; got {n_rows:,}. Send it in parts."
            raise ServiceProblem(413, text)
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
