"""Cells: the tables of each window, group and event as checksummed bytes; merged, rounded and exported cells."""

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import new_file, write_file
from calibrant.monitor import schema
from calibrant.monitor.alarm_log import read_alarms
from calibrant.monitor.observations import NO_EVENT, NO_GROUP, group_key, group_label
from calibrant.monitor.schema import StoreError, check_stream, damaged, stream_key
from calibrant.monitor.time_windows import time_array, to_datetime
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.storage import from_arrow, load_arrow, to_arrow

if TYPE_CHECKING:
    from calibrant.monitor.model_settings import StoredModel, Version
    from calibrant.monitor.recording import Recorder

_ALARM_COLUMNS = ("id", "version", "group", "group_key", "window", "log_e_value", "raised", "acknowledged", "reason")
CellKey = tuple[str, str]  # the keys of a group and of an event
_DIGEST = hashlib.sha256().digest_size


def encode_table(table: ScoreTable) -> bytes:
    """Return a table as compressed Arrow bytes, after their checksum."""
    frame = to_arrow(table)
    arrow = load_arrow("The monitor needs", "monitor")
    sink = arrow.BufferOutputStream()
    # Small tables: handing them to threads of Arrow takes longer than writing them.
    options = arrow.ipc.IpcWriteOptions(compression="zstd" if len(table) > 64 else None, use_threads=False)
    with arrow.ipc.new_stream(sink, frame.schema, options=options) as writer:
        writer.write_table(frame)
    data: bytes = sink.getvalue().to_pybytes()
    return hashlib.sha256(data).digest() + data


def decode_table(data: bytes, name: str) -> ScoreTable:
    """Return the table of checksummed bytes; changed bytes are an error that names the cell."""
    arrow = load_arrow("The monitor needs", "monitor")
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
    cells, windows = schema.cells, schema.windows
    query = sa.select(cells, windows.c.start).join(windows, schema.same_window(cells)).where(where)
    rows = connection.execute(query.order_by(cells.c.window, cells.c.id)).all()
    return [(row, _checked_table(row, _cell_name(model, row))) for row in rows]


def _checked_table(row: Any, name: str) -> ScoreTable:
    """Return the table of a cell, which has the counts of the row."""
    table = decode_table(row.data, name)
    if (table.size, table.positives) != (row.n, row.k):
        counts = f"n = {row.n} and k = {row.k}, the table has {table.size} rows and {table.positives} events"
        raise damaged(f"{name} must have the counts of its row; the row has {counts}")
    return table


def _cell_name(model: str, row: Any) -> str:
    group = "without group" if row.group == NO_GROUP else f"group {group_label(row.group)!r}"
    event = "" if row.event == "" else f" event {group_label(row.event)!r},"
    return f"The table of model {model!r}, window {to_datetime(row.start):%Y-%m-%d %H:%M}, {group},{event}"


def forget_tables(recorder: "Recorder", before: int) -> int:
    """Merge the tables of closed windows that end at `before` or earlier, per version and group; return their number.

    Predictions of these windows and the ids of batches that arrived before are deleted too. Sums per window, evidence
    and alarms stay.
    """
    cells, windows, connection = schema.cells, schema.windows, recorder.connection
    n_merged = 0
    for version in recorder.versions:
        where = (cells.c.version_id == version.id) & windows.c.closed & (windows.c.end <= before)
        by_key: dict[CellKey, list[tuple[Any, ScoreTable]]] = {}
        for row, table in load_cells(connection, recorder.model.name, where):
            by_key.setdefault((row.group, row.event), []).append((row, table))
        for key, parts in by_key.items():
            if len(parts) < 2:
                continue
            ids = [row.id for row, _ in parts]
            for start in range(0, len(ids), 500):
                connection.execute(cells.delete().where(cells.c.id.in_(ids[start : start + 500])))
            table = sum((table for _, table in parts), ScoreTable.empty())
            first = min(row.first_window for row, _ in parts)
            row = cell_row(version.id, parts[-1][0].window, key, table, first)
            connection.execute(cells.insert().values(**row))
            n_merged += len(parts) if key[1] == NO_EVENT else 0
        _forget_predictions(recorder, version, before)
    batches = schema.batches
    old = (batches.c.model_id == recorder.model.id) & (batches.c.received < before)
    connection.execute(batches.delete().where(old))
    return n_merged


def _forget_predictions(recorder: "Recorder", version: "Version", before: int) -> None:
    """Delete predictions of closed windows; for windows of a number of rows, those with an outcome.

    The model keeps their number and that of those without an outcome.
    """
    pending = schema.pending
    old = (pending.c.version_id == version.id) & (pending.c.time < before)
    old &= pending.c.labelled if recorder.rule.counts_rows else pending.c.time < (version.horizon or 0)
    query = sa.select(sa.func.count(), sa.func.count().filter(~pending.c.labelled)).where(old)
    n_forgotten, n_unlabelled = recorder.connection.execute(query).one()
    recorder.count_on_model(n_forgotten=n_forgotten, n_forgotten_unlabelled=n_unlabelled)
    recorder.connection.execute(pending.delete().where(old))


def round_tables(recorder: "Recorder", resolution: float) -> tuple[int, int]:
    """Round the scores of all tables of closed windows; return the number of distinct scores before and after."""
    cells, windows = schema.cells, schema.windows
    before = after = 0
    for version in recorder.versions:
        where = (cells.c.version_id == version.id) & windows.c.closed
        for row, table in load_cells(recorder.connection, recorder.model.name, where):
            rounded = table.round(resolution)
            before, after = before + len(table), after + len(rounded)
            values = cell_row(version.id, row.window, (row.group, row.event), rounded, row.first_window)
            recorder.connection.execute(cells.update().where(cells.c.id == row.id).values(**values))
    return before, after


def check_folder(folder: str | PathLike[str]) -> Path:
    """Return the folder of an export, created if needed; it must be empty."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(Argument("folder") + f" must be a new or empty folder; {path.name!r} is not.")
    path.mkdir(parents=True, exist_ok=True)
    return path


def write_files(connection: sa.Connection, model: "StoredModel", folder: Path) -> list[Path]:
    """Write settings, tables, history and alarms of all versions; return the paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    settings = folder / "settings.json"
    write_file(settings, json.dumps({"model": model.name, "settings": model.settings.to_dict()}, indent=2) + "\n")
    frames = {
        "tables": _table_columns(connection, model),
        "history": _history_columns(connection, model.id),
        "alarms": _alarm_columns(connection, model.id),
    }
    paths = []
    for name, columns in frames.items():
        paths.append(folder / f"{name}.parquet")
        with new_file(paths[-1]) as scratch:
            pq.write_table(pa.table(columns), scratch, compression="zstd")
    return [settings, *paths]


def _table_columns(connection: sa.Connection, model: "StoredModel") -> dict[str, Any]:
    """Return one row per version, window, group and score."""
    names = {version.id: version.name for version in model.versions(connection)}
    cells = load_cells(connection, model.name, schema.cells.c.version_id.in_(list(names)))
    sizes = [len(table) for _, table in cells]
    return {
        "version": np.repeat([names[row.version_id] for row, _ in cells], sizes).tolist(),
        "window": np.repeat(time_array([row.start for row, _ in cells]), sizes),
        "group": np.repeat([_label_text(row.group) for row, _ in cells], sizes).tolist(),
        "group_key": np.repeat([row.group for row, _ in cells], sizes).tolist(),
        "event": np.repeat([_label_text(row.event) for row, _ in cells], sizes).tolist(),
        **{
            name: np.concatenate([np.empty(0, kind), *(getattr(table, name) for _, table in cells)])
            for name, kind in (("score", np.float64), ("n", np.int64), ("k", np.int64))
        },
    }


def _history_columns(connection: sa.Connection, model_id: int) -> dict[str, Any]:
    """Return one row per version, closed window and group ("" for all rows)."""
    evidence, versions, windows = schema.evidence, schema.versions, schema.windows
    query = (
        sa.select(evidence, versions.c.name.label("version"), windows.c.start, windows.c.n_late, windows.c.n_unlabelled)
        .join(versions, versions.c.id == evidence.c.version_id)
        .join(windows, schema.same_window(evidence))
        .where(versions.c.model_id == model_id)
        .order_by(versions.c.ordinal, evidence.c.window, evidence.c.stream)
    )
    rows = [check_stream(row, "evidence") for row in connection.execute(query)]
    groups = [row.stream.removeprefix(stream_key("", row.event)) if row.event else row.stream for row in rows]
    names = ("n", "k", "score_sum", "information", "log_e", "n_late", "n_unlabelled")
    return {
        "version": [row.version for row in rows],
        "window": time_array([row.start for row in rows]),
        "group": [_label_text(group) for group in groups],
        "group_key": groups,
        "event": [_label_text(row.event) for row in rows],
        **{name: [getattr(row, name) for row in rows] for name in names},
    }


def _alarm_columns(connection: sa.Connection, model_id: int) -> dict[str, Any]:
    """Return one row per alarm; its group is null for all rows."""
    alarms = read_alarms(connection, model_id)
    keys = [None if alarm.group is None else group_key(alarm.group) for alarm in alarms]
    columns = {name: [alarm.to_dict().get(name) for alarm in alarms] for name in _ALARM_COLUMNS}
    return columns | {
        "group": [None if alarm.group is None else str(alarm.group) for alarm in alarms],
        "group_key": keys,
    }


def _label_text(key: str) -> str:
    return str(group_label(key)) if key else ""
