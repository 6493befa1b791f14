"""Keeping less and taking out: merged old windows, rounded scores, deleted models, exported files."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import new_file, write_file
from calibrant.monitor import schema
from calibrant.monitor.cells import CellKey, cell_row, load_cells
from calibrant.monitor.evidence import stream_key
from calibrant.monitor.model_queries import Reader
from calibrant.monitor.observations import NO_EVENT, NO_GROUP, group_key, group_label
from calibrant.monitor.recording import Recorder
from calibrant.monitor.stored_values import check_stream
from calibrant.monitor.time_windows import time_array
from calibrant.tables.score_table import ScoreTable

__all__ = ["check_folder", "forget_tables", "round_tables", "write_files"]


def forget_tables(recorder: Recorder, before: int) -> int:
    """Merge the tables of closed windows that end at `before` or earlier, per version and group; return their number.

    Predictions of these windows and the ids of batches that arrived before are deleted too. Sums per window, evidence
    and alarms stay.
    """
    cells, windows = schema.cells, schema.windows
    merged = 0
    for version in recorder.versions:
        where = (cells.c.version_id == version.id) & windows.c.closed & (windows.c.end <= before)
        by_key: dict[CellKey, list[tuple[Any, ScoreTable]]] = {}
        for row, table in load_cells(recorder.connection, recorder.model, where):
            by_key.setdefault((row.group, row.event), []).append((row, table))
        for key, found in by_key.items():
            if len(found) < 2:
                continue
            ids = [row.id for row, _ in found]
            for start in range(0, len(ids), 500):
                recorder.connection.execute(cells.delete().where(cells.c.id.in_(ids[start : start + 500])))
            table = sum((table for _, table in found), ScoreTable.empty())
            first = min(row.first_window for row, _ in found)
            row = cell_row(version.id, found[-1][0].window, key, table, first)
            recorder.connection.execute(cells.insert().values(**row))
            merged += len(found) if key[1] == NO_EVENT else 0
        _forget_predictions(recorder, _old_predictions(recorder, version, before))
    batches = schema.batches
    old = (batches.c.model_id == recorder.model_id) & (batches.c.received < before)
    recorder.connection.execute(batches.delete().where(old))
    return merged


def _forget_predictions(recorder: Recorder, old: Any) -> None:
    """Delete predictions; the model keeps their number and that of those without an outcome."""
    pending = schema.pending
    query = sa.select(sa.func.count(), sa.func.count().filter(~pending.c.labelled)).where(old)
    n_forgotten, n_unlabelled = recorder.connection.execute(query).one()
    recorder.count_on_model(n_forgotten=n_forgotten, n_forgotten_unlabelled=n_unlabelled)
    recorder.connection.execute(pending.delete().where(old))


def _old_predictions(recorder: Recorder, version: Any, before: int) -> Any:
    """Return the predictions to forget: of closed windows, or, for windows of a number of rows, with an outcome."""
    pending = schema.pending
    own = (pending.c.version_id == version.id) & (pending.c.time < before)
    if recorder.rule.counts_rows:
        return own & pending.c.labelled
    return own & (pending.c.time < (version.horizon if version.horizon is not None else 0))


def round_tables(recorder: Recorder, resolution: float) -> tuple[int, int]:
    """Round the scores of all tables of closed windows; return the number of distinct scores before and after."""
    cells, windows = schema.cells, schema.windows
    before = after = 0
    for version in recorder.versions:
        where = (cells.c.version_id == version.id) & windows.c.closed
        for row, table in load_cells(recorder.connection, recorder.model, where):
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


def write_files(reader: Reader, folder: Path) -> list[Path]:
    """Write settings, tables, history and alarms of all versions; return the paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    settings = folder / "settings.json"
    about = {"model": reader.model, "settings": reader.settings.to_dict()}
    frames = {"tables": _counts(reader), "history": _evidence(reader), "alarms": _alarms(reader)}
    tables = {folder / f"{name}.parquet": pa.table(columns) for name, columns in frames.items()}
    write_file(settings, json.dumps(about, indent=2) + "\n")
    for path, table in tables.items():
        with new_file(path) as scratch:
            pq.write_table(table, scratch, compression="zstd")
    return [settings, *tables]


def _counts(reader: Reader) -> dict[str, Any]:
    """Return one row per version, window, group and score."""
    versions = schema.versions
    query = sa.select(versions.c.id, versions.c.name).where(versions.c.model_id == reader.model_id)
    names = {row.id: row.name for row in reader.connection.execute(query)}
    where = schema.cells.c.version_id.in_(list(names))
    found = load_cells(reader.connection, reader.model, where)
    sizes = [len(table) for _, table in found]
    return {
        "version": np.repeat([names[row.version_id] for row, _ in found], sizes).tolist(),
        "window": np.repeat(time_array([row.start for row, _ in found]), sizes),
        "group": np.repeat([_group_text(row.group) for row, _ in found], sizes).tolist(),
        "group_key": np.repeat([row.group for row, _ in found], sizes).tolist(),
        "event": np.repeat([_group_text(row.event) for row, _ in found], sizes).tolist(),
        **{
            name: np.concatenate([np.empty(0, kind), *(getattr(table, name) for _, table in found)])
            for name, kind in (("score", np.float64), ("n", np.int64), ("k", np.int64))
        },
    }


def _evidence(reader: Reader) -> dict[str, Any]:
    """Return one row per version, closed window and group ("" for all rows)."""
    evidence, versions, windows = schema.evidence, schema.versions, schema.windows
    same = (windows.c.version_id == evidence.c.version_id) & (windows.c.window == evidence.c.window)
    query = (
        sa.select(evidence, versions.c.name.label("version"), windows.c.start, windows.c.n_late, windows.c.n_unlabelled)
        .join(versions, versions.c.id == evidence.c.version_id)
        .join(windows, same)
        .where(versions.c.model_id == reader.model_id)
        .order_by(versions.c.ordinal, evidence.c.window, evidence.c.stream)
    )
    rows = [check_stream(row, "evidence") for row in reader.connection.execute(query)]
    found: dict[str, Any] = {
        "version": [row.version for row in rows],
        "window": time_array([row.start for row in rows]),
        "group": [_group_text(_group_of(row)) for row in rows],
        "group_key": [_group_of(row) for row in rows],
        "event": [_group_text(row.event) for row in rows],
    }
    names = ("n", "k", "score_sum", "information", "log_e", "n_late", "n_unlabelled")
    return found | {name: [getattr(row, name) for row in rows] for name in names}


def _alarms(reader: Reader) -> dict[str, Any]:
    """Return one row per alarm; its group is null for all rows."""
    alarms = reader.alarms()
    found = [alarm.to_dict() for alarm in alarms]
    groups = [alarm.group for alarm in alarms]
    text = {
        "group": [None if group is None else str(group) for group in groups],
        "group_key": [None if group is None else group_key(group) for group in groups],
    }
    names = ("id", "version", "group", "group_key", "window", "log_e_value", "raised", "acknowledged", "reason")
    return {name: text.get(name) or [each.get(name) for each in found] for name in names}


def _group_of(row: Any) -> str:
    """Return the key of the group of a row of evidence."""
    return str(row.stream).removeprefix(stream_key("", row.event)) if row.event else str(row.stream)


def _group_text(key: str) -> str:
    return "" if key == NO_GROUP else str(group_label(key))
