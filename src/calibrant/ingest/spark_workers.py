"""Counting a frame of Spark with the kernel, in Python workers.

Each task counts its rows in chunks and divides every table among parts, by a hash of the score. Tasks of a second stage
merge the parts of equal number, so the result has each score once. A part is one row of bytes: Spark does not handle
single scores, which takes it most of the time of a GROUP BY.

A task that finds a value that must be clipped or refused says so, and SQL counts the frame instead: its rows reach the
shared reader, which writes notes and errors.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.typing import Bools, Floats, Ints
from calibrant.tables.rows import missing_note
from calibrant.tables.score_table import ScoreTable, add_tables
from calibrant.versions import __version__

__all__ = ["MERGED", "CountRows", "merge_parts", "read_parts", "report_version"]

# The columns of a part. A value of `score`, `n` and `k` has 4 bytes or 8.
MERGED = "model int, part int, size long, score binary, n binary, k binary, missing long, irregular boolean"
_PARTS = 256
_CHUNK = 2**22  # rows that are counted together, and entries that are merged together
_ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplication by it hashes
_NO_PART = -1  # of rows that report on a task


@dataclass(frozen=True)
class CountRows:
    """Counts the rows of one task: the outcomes `y` and the scores `p0`, `p1`, ... of the models."""

    models: int
    drop: bool  # rows with a missing value
    resolution: float | None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return the parts of the tables of all chunks."""
        for chunk in _chunks(batches):
            y, absent = _column([batch.column(0) for batch in chunk])
            for model in range(self.models):
                p, missing = _column([batch.column(1 + model) for batch in chunk])
                if np.isnan(p.min()):
                    missing |= np.isnan(p)
                yield from self._parts(model, y, p, missing | absent)

    def _parts(self, model: int, y: NDArray[Any], p: NDArray[Any], missing: Bools) -> Iterator[Any]:
        lost = int(missing.sum())
        if lost and self.drop:
            y, p = y[~missing], p[~missing]
        narrow = p.dtype == np.float32 and self.resolution is None
        irregular = bool(lost and not self.drop) or (p.size > 0 and not (p.min() >= 0 and p.max() <= 1))
        counts = None if irregular or not p.size else _kernels.count(self._rounded(p), y.view(f"i{y.dtype.itemsize}"))
        irregular = irregular or (counts is None and p.size > 0)
        if lost or irregular:
            yield _batch([_row(model, _NO_PART, missing=lost, irregular=irregular)])
        if counts is not None:
            yield _batch([_row(model, part, *own, narrow=narrow) for part, own in _divided(*counts)])

    def _rounded(self, p: NDArray[Any]) -> NDArray[Any]:
        if self.resolution is None:
            return p
        return np.minimum(np.rint(p.astype(np.float64) / self.resolution) * self.resolution, 1.0)


def _chunks(batches: Iterable[Any]) -> Iterator[list[Any]]:
    held, rows = list[Any](), 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield held
            held, rows = [], 0
    if rows:
        yield held


def _column(arrays: list[Any]) -> tuple[NDArray[Any], Bools]:
    """Return the values of some Arrow arrays, and which are null."""
    missing = np.concatenate([np.asarray(array.is_null()) for array in arrays])
    filled = [array.fill_null(False if str(array.type) == "bool" else 0) for array in arrays]
    return np.concatenate([array.to_numpy(zero_copy_only=False) for array in filled]), missing


def _divided(score: Floats, n: Ints, k: Ints) -> Iterator[tuple[int, tuple[Floats, Ints, Ints]]]:
    """Divide a table among parts; scores of a part are in increasing order too."""
    part = ((score.view(np.uint64) * _ODD) >> np.uint64(56)).astype(np.uint8)
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=_PARTS))
    for number, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if last > first:
            own = order[first:last]
            yield number, (score[own], n[own], k[own])


def _row(
    model: int,
    part: int,
    score: Floats | None = None,
    n: Ints | None = None,
    k: Ints | None = None,
    *,
    narrow: bool = False,
    missing: int = 0,
    irregular: bool = False,
) -> tuple[Any, ...]:
    if score is None or n is None or k is None:
        return model, part, 0, b"", b"", b"", missing, irregular
    count = np.int32 if n.max() < 2**31 else np.int64
    columns = (score.astype(np.float32 if narrow else np.float64), n.astype(count), k.astype(count))
    return model, part, score.size, *(column.tobytes() for column in columns), missing, irregular


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    kinds = (pa.int32(), pa.int32(), pa.int64(), pa.binary(), pa.binary(), pa.binary(), pa.int64(), pa.bool_())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[each.split()[0] for each in MERGED.split(", ")])


def merge_parts(batches: Iterable[Any]) -> Iterator[Any]:
    """Merge the parts that one task of the second stage has; reports pass through."""
    held: dict[tuple[int, int], list[ScoreTable]] = {}
    narrow = True
    for batch in batches:
        for row in batch.to_pylist():
            if row["part"] == _NO_PART:
                yield _batch([tuple(row.values())])
                continue
            narrow = narrow and len(row["score"]) == 4 * row["size"]
            own = held.setdefault((row["model"], row["part"]), [])
            own.append(_table(row))
            if sum(map(len, own[1:])) > max(_CHUNK, len(own[0])):
                own[:] = [add_tables(own)]
    for (model, part), own in held.items():
        table = add_tables(own)
        yield _batch([_row(model, part, table.score, table.n, table.k, narrow=narrow)])


def _table(row: dict[str, Any]) -> ScoreTable:
    wide = len(row["score"]) == 8 * row["size"]
    count = np.int64 if len(row["n"]) == 8 * row["size"] else np.int32
    n, k = (np.frombuffer(row[name], dtype=count).astype(np.int64) for name in ("n", "k"))
    score = np.frombuffer(row["score"], dtype=np.float64 if wide else np.float32).astype(np.float64)
    return ScoreTable(score, n, k)


def read_parts(answer: Any, models: int, resolution: float | None) -> list[ScoreTable] | None:
    """Return the table of each model from the collected parts; None if a value was irregular."""
    rows = answer.to_pylist()
    if any(row["irregular"] for row in rows):
        return None
    found = []
    for model in range(models):
        own = [row for row in rows if row["model"] == model]
        table = add_tables([_table(row) for row in own if row["part"] != _NO_PART])
        lost = sum(row["missing"] for row in own)
        size = int(table.n.sum()) + lost
        table = table if resolution is None or not len(table) else table.round(resolution)
        table = table.with_notes((missing_note(lost),) if lost else ())
        found.append(replace(table, n_in=size, n_dropped=lost))
    return found


def report_version(batches: Iterable[Any]) -> Iterator[Any]:
    """Return the version of Calibrant in a worker."""
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [__version__]})
