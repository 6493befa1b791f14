"""Predictions that wait for their outcomes."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError
from calibrant.monitor import schema
from calibrant.monitor.observations import RowChunk, check_name, read_groups
from calibrant.monitor.recording import Recorder, Version
from calibrant.monitor.time_windows import read_times
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import check_scores

__all__ = ["Outcomes", "Predictions"]

_IDS_PER_QUERY = 500


@dataclass(frozen=True, eq=False)
class Predictions:
    """Ids, scores, times and groups of predictions without outcomes."""

    ids: list[str]
    scores: list[float]
    times: list[int]
    groups: list[str]

    @classmethod
    def read(cls, id: Any, p: Any, time: Any, group: Any) -> "Predictions":
        """Read the columns of a call; single values are one row."""
        ids = _read_ids(id)
        scores = _columns.scores(_columns.read([p] if np.ndim(p) == 0 else p, "p"))
        _columns.check_lengths([_columns.ColumnData("id", np.array(ids, dtype=object)), scores])
        _columns.refuse_missing([scores])
        codes, keys = read_groups(group, len(ids))
        times = read_times(time, len(ids)).tolist()
        return cls(ids, scores.values.tolist(), times, [keys[code] for code in codes])

    def sha256(self) -> str:
        """Return the checksum of the predictions in any order."""
        return _digest(zip(self.ids, self.scores, self.times, self.groups, strict=True))

    def store(self, recorder: Recorder, version: Version) -> int:
        """Store the predictions of new ids; return the number of duplicates, which are left out."""
        recorder.check_groups(version, self.groups)
        seen = {row.row_id for row in _known(recorder, self.ids) if row.version_id == version.id}
        rows = []
        for row_id, score, time, group in zip(self.ids, self.scores, self.times, self.groups, strict=True):
            if row_id not in seen:
                seen.add(row_id)
                rows.append({"row_id": row_id, "score": score, "time": time, "group": group})
        shared = {"model_id": recorder.model_id, "version_id": version.id, "labelled": False}
        if rows:
            recorder.connection.execute(schema.pending.insert(), [{**shared, **row} for row in rows])
        return len(self.ids) - len(rows)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Ids and outcomes of earlier predictions."""

    ids: list[str]
    events: list[int]

    @classmethod
    def read(cls, id: Any, y: Any, pos_label: object = None) -> "Outcomes":
        """Read the columns of a call; single values are one row."""
        ids = _read_ids(id)
        y = _columns.events(_columns.read([y] if np.ndim(y) == 0 else y, "y"), pos_label)
        _columns.check_lengths([_columns.ColumnData("id", np.array(ids, dtype=object)), y])
        _columns.refuse_missing([y])
        return cls(ids, [int(each) for each in y.values])

    def sha256(self) -> str:
        """Return the checksum of the outcomes in any order."""
        return _digest(zip(self.ids, self.events, strict=True))

    def match(self, recorder: Recorder) -> "tuple[list[tuple[Version, RowChunk]], int, int]":
        """Return the labelled rows of each version, and the numbers of duplicates and of unknown ids.

        An outcome counts in every version that predicted its id. The predictions are marked as labelled.
        """
        known: dict[str, list[Any]] = {}
        for row in _known(recorder, self.ids):
            known.setdefault(row.row_id, []).append(row)
        used: dict[str, int] = {}
        duplicates = unknown = 0
        for row_id, event in zip(self.ids, self.events, strict=True):
            if row_id not in known:
                unknown += 1
            elif row_id in used or all(row.labelled for row in known[row_id]):
                duplicates += 1
            else:
                used[row_id] = event
        table = schema.pending
        for ids in _pieces(list(used)):
            same = (table.c.model_id == recorder.model_id) & table.c.row_id.in_(ids)
            recorder.connection.execute(table.update().where(same).values(labelled=True))
        chunks = []
        for version in recorder.versions:
            rows = [
                (row, event)
                for row_id, event in used.items()
                for row in known[row_id]
                if row.version_id == version.id and not row.labelled
            ]
            if rows:
                chunks.append((version, _chunk(rows)))
        return chunks, duplicates, unknown


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    return hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()


def _chunk(rows: list[tuple[Any, int]]) -> RowChunk:
    keys = sorted({row.group for row, _ in rows})
    position = {key: i for i, key in enumerate(keys)}
    scores = np.array([row.score for row, _ in rows])
    checked = check_scores(Rows.read(np.array([event for _, event in rows]), {"p": scores}, outcome="y"))
    times = np.array([row.time for row, _ in rows], dtype=np.int64)
    return RowChunk(checked, times, np.array([position[row.group] for row, _ in rows], dtype=np.int64), keys)


def _read_ids(id: Any) -> list[str]:
    if np.ndim(id) == 0:
        return [check_name("id", _whole(id.item() if isinstance(id, np.generic) else id))]
    column = _columns.read(id, "id")
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError(Argument("id") + " must have at least one row; got none.")
    return [check_name("id", _whole(each)) for each in column.values.tolist()]


def _whole(value: Any) -> Any:
    """Return a whole number as an int, so that the ids 1 and 1.0 are one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _known(recorder: Recorder, ids: Sequence[str]) -> Iterator[Any]:
    table = schema.pending
    for piece in _pieces(list(dict.fromkeys(ids))):
        where = (table.c.model_id == recorder.model_id) & table.c.row_id.in_(piece)
        yield from recorder.connection.execute(sa.select(table).where(where))


def _pieces(ids: list[str]) -> Iterator[list[str]]:
    return (ids[i : i + _IDS_PER_QUERY] for i in range(0, len(ids), _IDS_PER_QUERY))
