"""Frames of Spark: each partition is counted in the cluster, and only the distinct rows are collected.

Outcomes that are integers or booleans and scores that are floats, without groups and weights, are counted by the kernel
in Python workers; see `spark_workers`. SQL counts all others, and all frames where workers do not have this version of
Calibrant. Both give the same tables.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from calibrant._support.errors import Argument, InputError, MissingExtraError
from calibrant._support.progress import is_terminal
from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.frames import frame_columns, same_name
from calibrant.ingest.pushdown import CountQuery
from calibrant.ingest.spark_workers import MERGED, CountRows, merge_parts, read_parts, report_version
from calibrant.ingest.table_counter import TableCounter
from calibrant.versions import __version__

__all__ = ["WORKERS_OPTION", "count_frame", "parquet_frame"]

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
