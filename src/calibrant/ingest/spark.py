"""Frames of Spark: each partition is counted by Spark, and only the distinct rows are collected."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from calibrant._support.errors import Argument, InputError, MissingExtraError
from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.frames import frame_columns, same_name
from calibrant.ingest.pushdown import CountQuery
from calibrant.ingest.table_counter import TableCounter

__all__ = ["count_frame", "parquet_frame"]

_NUMBERS = re.compile(r"(tinyint|smallint|int|bigint|float|double|boolean|decimal\(.*\))$")
_SLICE = 1 << 21  # rows of the result that are validated together


def count_frame(frame: Any, counter: TableCounter) -> None:
    """Let Spark count the frame, and add the result to the tables."""
    _check(frame, counter)
    kinds = dict(frame.dtypes)
    text = frozenset(name for name in (counter.y, *counter.keys) if kinds[name].startswith("string"))
    counts = CountQuery(counter, DIALECTS["spark"], text)
    answer = _answer(frame, counts)
    for first in range(0, answer.num_rows, _SLICE):
        counts.take(frame_columns(answer.slice(first, _SLICE)))


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


def _answer(frame: Any, counts: CountQuery) -> Any:
    """Return the distinct rows as an Arrow table; an error if they are too many for the driver."""
    try:
        return counted(frame, counts).toArrow()
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
        spark = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower()).getOrCreate()
    except Exception as error:  # of Java or of its gateway
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if "Exception" in line), lines[0] if lines else type(error).__name__)
        raise InputError(f"No Spark session at {url!r}: {reason[:200]}", hint="For example local[4].") from error
    return spark.read.parquet(*(str(Path(name).absolute()) for name in names))
