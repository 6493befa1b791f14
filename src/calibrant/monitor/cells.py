"""Tables of windows and groups as checksummed bytes, with their sums as columns."""

import hashlib
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support.errors import InputError, MissingExtraError
from calibrant.monitor import schema
from calibrant.monitor.observations import NO_GROUP, group_label
from calibrant.monitor.stored_values import StoreError, damaged
from calibrant.monitor.time_windows import to_datetime
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.storage import from_arrow, to_arrow

__all__ = ["CellKey", "cell_row", "decode_table", "encode_table", "load_cells", "table_sums"]

CellKey = tuple[str, str]  # the keys of a group and of an event
_DIGEST = hashlib.sha256().digest_size


def encode_table(table: ScoreTable) -> bytes:
    """Return a table as compressed Arrow bytes, after their checksum."""
    frame = to_arrow(table)
    arrow = _arrow()
    sink = arrow.BufferOutputStream()
    # Small tables: handing them to threads of Arrow takes longer than writing them.
    options = arrow.ipc.IpcWriteOptions(compression="zstd" if len(table) > 64 else None, use_threads=False)
    with arrow.ipc.new_stream(sink, frame.schema, options=options) as writer:
        writer.write_table(frame)
    data: bytes = sink.getvalue().to_pybytes()
    return hashlib.sha256(data).digest() + data


def decode_table(data: bytes, name: str) -> ScoreTable:
    """Return the table of checksummed bytes; changed bytes are an error that names the cell."""
    arrow = _arrow()
    text = f"{name} is damaged: its checksum does not match its content. Restore the store from a backup."
    digest, content = bytes(data[:_DIGEST]), bytes(data[_DIGEST:])
    # The checksum of the bytes comes first: Arrow trusts the lengths that it reads.
    if hashlib.sha256(content).digest() != digest:
        raise StoreError(text)
    try:
        with arrow.ipc.open_stream(content, options=arrow.ipc.IpcReadOptions(use_threads=False)) as reader:
            return from_arrow(reader.read_all(), name=name)
    except (InputError, arrow.ArrowException) as error:
        raise StoreError(text) from error


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ModuleNotFoundError as error:
        raise MissingExtraError("The monitor needs pyarrow", "monitor", name="pyarrow") from error
    return pyarrow


def table_sums(table: ScoreTable) -> dict[str, Any]:
    """Return the number of rows and events, the sum of scores, and the information, the sum of p (1 - p)."""
    p = table.score
    return {
        "n": int(table.size),
        "k": int(table.positives),
        "score_sum": float(np.dot(table.n, p)),
        "information": float(np.dot(table.n, p * (1 - p))),
    }


def cell_row(version_id: int, window: int, key: CellKey, table: ScoreTable, first: int | None = None) -> dict[str, Any]:
    """Return the row of the cell of a group and an event; `first` is the first window whose rows it holds."""
    return {
        "version_id": version_id,
        "window": window,
        "first_window": window if first is None else first,
        "group": key[0],
        "event": key[1],
        **table_sums(table),
        "data": encode_table(table),
    }


def load_cells(connection: sa.Connection, model: str, where: Any) -> list[tuple[Any, ScoreTable]]:
    """Return the rows of cells and their tables, in the order in which they were stored."""
    query = sa.select(schema.cells, schema.windows.c.start).join(
        schema.windows,
        sa.and_(
            schema.windows.c.version_id == schema.cells.c.version_id,
            schema.windows.c.window == schema.cells.c.window,
        ),
    )
    rows = connection.execute(query.where(where).order_by(schema.cells.c.window, schema.cells.c.id)).all()
    return [(row, _checked_table(row, _name(model, row))) for row in rows]


def _checked_table(row: Any, name: str) -> ScoreTable:
    """Return the table of a cell, which has the counts of the row."""
    table = decode_table(row.data, name)
    if (table.size, table.positives) != (row.n, row.k):
        found = f"n = {row.n} and k = {row.k}, the table has {table.size} rows and {table.positives} events"
        raise damaged(f"{name} must have the counts of its row; the row has {found}")
    return table


def _name(model: str, row: Any) -> str:
    group = "without group" if row.group == NO_GROUP else f"group {group_label(row.group)!r}"
    event = "" if row.event == "" else f" event {group_label(row.event)!r},"
    return f"The table of model {model!r}, window {to_datetime(row.start):%Y-%m-%d %H:%M}, {group},{event}"
