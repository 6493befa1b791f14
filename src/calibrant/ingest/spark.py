"""Spark frames, counted by Spark: partition by partition, and only the distinct rows come back."""

import re
from importlib import import_module
from typing import Any

from calibrant._sql import DIALECTS
from calibrant.errors import InputError
from calibrant.ingest.frames import columns_of
from calibrant.ingest.groups import Split
from calibrant.ingest.pushdown import Counts

__all__ = ["count_frame"]

_NUMBERS = re.compile(r"(tinyint|smallint|int|bigint|float|double|boolean|decimal\(.*\))$")
_SLICE = 1 << 21  # rows of the answer that are looked at together


def count_frame(frame: Any, split: Split) -> None:
    """Let Spark count the frame, and add its answer to the tables."""
    for name in (*split.models, *([] if split.weight is None else [split.weight])):
        kind = dict(frame.dtypes)[name]
        if not _NUMBERS.match(kind):
            raise InputError(
                f"{name} must hold numbers; its type is {kind}.",
                hint="Convert it first; nothing is parsed or converted here.",
                argument=name,
            )
    counts = Counts(split, DIALECTS["spark"])
    answer = _collected(counted(frame, counts))
    for first in range(0, answer.num_rows, _SLICE):
        counts.take(columns_of(answer.slice(first, _SLICE)))


def counted(frame: Any, counts: Counts) -> Any:
    """The frame of distinct rows: one pass, counted in each partition before anything is sent."""
    functions = import_module("pyspark.sql.connect.functions" if _is_connect(frame) else "pyspark.sql.functions")
    scores = f"{counts.scores[0]} AS score"
    if len(counts.scores) > 1:  # a row for each model, made in the partition
        each = ", ".join(f"{place}, {score}" for place, score in enumerate(counts.scores))
        scores = f"stack({len(counts.scores)}, {each}) AS (model, score)"
    rows = frame.selectExpr(*counts.shared, scores)
    sums = [functions.expr(f"{sum_} AS {name}") for name, sum_ in counts.sums.items()]
    return rows.groupBy(*counts.keys).agg(*sums)


def _is_connect(frame: Any) -> bool:
    return ".connect." in type(frame).__module__


def _collected(frame: Any) -> Any:
    """The rows of a frame as an Arrow table, unless they are too many for the driver."""
    try:
        return frame.toArrow()
    except Exception as error:
        if "maxResultSize" not in str(error):
            raise
        raise InputError(
            "The distinct scores are more than Spark's driver may take (spark.driver.maxResultSize).",
            hint="Pass resolution=2**-20, which rounds each score by at most 4.8e-07, or raise that limit.",
            argument="resolution",
        ) from error
