"""Counting a frame of Spark with the kernel, in Python workers.

Each task counts its rows in chunks and divides every table among parts, by a hash of the score. Tasks of a second stage
merge the parts of equal number, so the result has each score once. A part is one row of bytes: Spark does not handle
single scores, which takes it most of the time of a GROUP BY.

A task that finds a value that must be clipped or refused says so, and SQL counts the frame instead: its rows reach the
shared reader, which writes notes and errors.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.errors import Argument, InputError, MissingExtraError
from calibrant._support.progress import is_terminal
from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.frames import frame_columns, same_name
from calibrant.ingest.queries import CountQuery
from calibrant.ingest.table_counter import TableCounter
from calibrant.tables.rows import missing_note
from calibrant.tables.score_table import ScoreTable, add_tables
from calibrant.versions import __version__

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


_NUMBERS = re.compile(r"(tinyint|smallint|int|bigint|float|double|boolean|decimal\(.*\))$")
_OUTCOMES = ("boolean", "tinyint", "smallint", "int", "bigint")
WORKERS_OPTION = "spark.calibrant.pythonWorkers"  # "false" makes SQL count every frame
_tried: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_SLICE = 1 << 21  # rows of the result that are validated together


def count_frame(frame: Any, counter: TableCounter) -> None:
    """Let the cluster count the frame, and add the result to the tables."""
    _check(frame, counter)
    if not (_suits_kernel(frame, counter) and _has_workers(frame.sparkSession) and _count_by_kernel(frame, counter)):
        _count_by_sql(frame, counter)


def _count_by_sql(frame: Any, counter: TableCounter) -> None:
    kinds = dict(frame.dtypes)
    text = frozenset(name for name in (counter.y, *counter.keys) if kinds[name].startswith("string"))
    counts = CountQuery(counter, DIALECTS["spark"], text)
    answer = _answer(lambda: counted(frame, counts))
    for first in range(0, answer.num_rows, _SLICE):
        counts.take(frame_columns(answer.slice(first, _SLICE)))


def _suits_kernel(frame: Any, counter: TableCounter) -> bool:
    """Return whether the kernel can count the columns: plain numbers, without groups, weights and other labels."""
    if counter.keys or counter.weighting is not None or counter.options.pos_label is not None:
        return False
    kinds = dict(frame.dtypes)
    return kinds[counter.y] in _OUTCOMES and all(kinds[model] in ("float", "double") for model in counter.models)


def _has_workers(session: Any) -> bool:
    """Return whether Python workers have this version of Calibrant; one task of each session tries."""
    if str(session.conf.get(WORKERS_OPTION, "true")).lower() != "true":
        return False
    if session not in _tried:
        try:
            found = _map(session.range(0, 1, 1, 1), report_version, "version string").collect()
            _tried[session] = [row.version for row in found] == [__version__]
        except Exception:  # no Python, another version of Python, no Calibrant, no pyarrow: all are errors of Spark
            _tried[session] = False
    return _tried[session]


def _map(frame: Any, function: Callable[[Iterable[Any]], Iterable[Any]], schema: str) -> Any:
    with warnings.catch_warnings():  # pyspark warns of new versions of pandas, which is not used
        warnings.filterwarnings("ignore", message="PySpark does not yet", category=FutureWarning)
        return frame.mapInArrow(function, schema)


def _count_by_kernel(frame: Any, counter: TableCounter) -> bool:
    """Count in Python workers; return False, and add nothing, if a value must be clipped or refused."""
    name, options = DIALECTS["spark"].name, counter.options
    scores = [f"{name(model)} AS p{place}" for place, model in enumerate(counter.models)]
    rows = frame.selectExpr(f"{name(counter.y)} AS y", *scores)
    count = CountRows(len(counter.models), options.missing == "drop", options.resolution)
    parts = _map(_map(rows, count, MERGED).repartition("model", "part"), merge_parts, MERGED)
    tables = read_parts(_answer(lambda: parts), len(counter.models), options.resolution)
    if tables is None:
        return False
    for model, table in zip(counter.models, tables, strict=True):
        counter.add_table(model, table)
    return True


def _check(frame: Any, counter: TableCounter) -> None:
    """Check that each name denotes one column, and that scores and weights are numbers."""
    if frame.isStreaming:
        raise InputError("frame must be finite; got a stream.", hint="Pass the frame of one batch.", argument="frame")
    exact = str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    for name in counter.names:
        alike = [other for other in frame.columns if other == name or (not exact and other.lower() == name.lower())]
        if len(alike) > 1:
            raise same_name(name, alike)
    kinds = dict(frame.dtypes)
    for name in counter.numbers:
        if not _NUMBERS.match(kinds[name]):
            raise InputError(
                f"{name} must hold numbers; got type {kinds[name]}.",
                hint="Convert it first; text is not parsed.",
                argument=name,
            )


def counted(frame: Any, counts: CountQuery) -> Any:
    """Return the frame of distinct rows; each partition is counted before rows are exchanged."""
    functions = import_module("pyspark.sql.connect.functions" if _is_connect(frame) else "pyspark.sql.functions")
    scores = f"{counts.scores[0]} AS score"
    if len(counts.scores) > 1:  # one row per model, made in the partition
        each = ", ".join(f"{place}, {score}" for place, score in enumerate(counts.scores))
        scores = f"stack({len(counts.scores)}, {each}) AS (model, score)"
    rows = frame.selectExpr(*counts.shared, scores)
    sums = [functions.expr(f"{sum_} AS {name}") for name, sum_ in counts.sums.items()]
    return rows.groupBy(*counts.keys).agg(*sums)


def _is_connect(frame: Any) -> bool:
    return ".connect." in type(frame).__module__


def _answer(count: Callable[[], Any]) -> Any:
    """Return the counts as an Arrow table; an error if Spark cannot count, or they are too many for the driver."""
    try:
        return count().toArrow()
    except Exception as error:
        if "maxResultSize" in str(error):
            raise InputError(
                "The distinct scores exceed the limit of Spark's driver (spark.driver.maxResultSize).",
                hint="Pass "
                + Argument("resolution", "2**-20", python="resolution=2**-20")
                + ", which rounds each score by at most 4.8e-07, or raise that limit.",
                argument="resolution",
            ) from error
        if "AnalysisException" in [kind.__name__ for kind in type(error).__mro__]:  # classic and Connect have their own
            raise InputError(f"Spark cannot count the frame: {str(error).splitlines()[0]}", argument="frame") from error
        raise


def parquet_frame(url: str, names: list[str], files: list[str]) -> Any:
    """Read Parquet files as a frame of the Spark session at an address, for the command line.

    `names` are the paths as given, so that folders stay Hive partitions; `files` are the files of these paths.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise MissingExtraError("Spark needs PySpark", "spark", name=error.name) from error
    if not all(Path(file).suffix in (".parquet", ".pq") for file in files):
        raise InputError("Spark reads Parquet files only.", hint="Leave out --spark to read CSV and JSON lines.")
    builder = SparkSession.builder.master(url).appName("calibrant").config("spark.log.level", "ERROR")
    try:
        spark = builder.config("spark.ui.showConsoleProgress", str(is_terminal()).lower()).getOrCreate()
    except Exception as error:  # of Java or of its gateway
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if "Exception" in line), lines[0] if lines else type(error).__name__)
        raise InputError(f"No Spark session at {url!r}: {reason[:200]}", hint="For example local[4].") from error
    return spark.read.parquet(*(str(Path(name).absolute()) for name in names))
