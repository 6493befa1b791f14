"""`from_frame`: frames of all libraries that Narwhals supports, eager or lazy, counted into tables."""

from collections.abc import Sequence
from typing import Any, Unpack, overload

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, no_column
from calibrant._support.lazy import warn_moved
from calibrant.ingest.counting import CountOptions, TableOptions, Weighting
from calibrant.ingest.table_counter import TableCounter, check_names
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable


@overload
def from_frame(frame: Any, *, y: str, p: str, by: None = None, **options: Unpack[TableOptions]) -> ScoreTable: ...
@overload
def from_frame(
    frame: Any, *, y: str, p: str | Sequence[str], by: str | Sequence[str], **options: Unpack[TableOptions]
) -> Tables: ...
@overload
def from_frame(
    frame: Any, *, y: str, p: list[str] | tuple[str, ...], by: None = None, **options: Unpack[TableOptions]
) -> Tables: ...
def from_frame(
    frame: Any,
    *,
    y: str,
    p: str | Sequence[str],
    by: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    frequency: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    resolution: float | None = None,
) -> ScoreTable | Tables:
    """Count the outcomes and scores of a frame, as a whole or by model and group; the frame is read once.

    Parameters
    ----------
    frame : frame of pandas, polars (lazy too), pyarrow, DuckDB, Spark, dask, ibis, ...
        All that Narwhals supports. Of lazy frames only the needed columns are collected. Spark counts its own frames,
        and only the distinct rows are collected.
    y : str
        Name of the column of outcomes.
    p : str or list of str
        Name of the column of scores, or a list with one name per model.
    by : str or list of str, optional
        The columns that split the rows into groups. A missing group is an error, and so are more than 1,000 groups of
        fewer than 2 rows on average, which a column of ids has.
    sample_weight, frequency : str, optional
        Name of the column of importance weights, or of the column of numbers of equal rows.
    pos_label, missing
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this (2**-20 is a good choice); see `ScoreTable.round`.

    Returns
    -------
    ScoreTable or Tables
        One table, bitwise identical to `ScoreTable.from_arrays` of the columns. With `by`, or with a list of models,
        `Tables`: ``tables[model, group]``, with groups in sorted order.

    See Also
    --------
    scan, from_query, ScoreTable, Tables

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table({"y": [0, 1, 1, 0], "old": [0.2, 0.7, 0.7, 0.1], "land": ["a", "b", "a", "b"]})
    >>> from_frame(frame, y="y", p="old")
    ScoreTable(4 rows, 3 distinct scores, 2 positives)
    >>> from_frame(frame, y="y", p="old", by="land")["old", "b"].size
    2
    """
    models, keys = check_names(p, "p"), [] if by is None else check_names(by, "by")
    weighting = Weighting.named(sample_weight, frequency)
    counter = TableCounter(y, models, keys, weighting, CountOptions(pos_label, missing, resolution))
    known = _checked(frame, counter.names)
    if _is_spark(known):
        from calibrant.ingest import spark

        spark.count_frame(frame, counter)
    else:
        counter.add(_collected(known, counter.names))
    tables = counter.tables()
    return tables.total() if by is None and isinstance(p, str) else tables


def tables_from_frame(frame: Any, *, p: str | Sequence[str], **options: Any) -> Tables:
    """Count a frame by model and group; deprecated: use `from_frame` with `by` or a list of models."""
    warn_moved("calibrant.tables_from_frame", "calibrant.from_frame(by=...)")
    return from_frame(frame, p=[p] if isinstance(p, str) else list(p), **options)


def _checked(frame: Any, names: list[str]) -> Any:
    """Return the frame as one of Narwhals; it must have all named columns."""
    import narwhals as nw

    try:
        known: Any = nw.from_native(frame)
        there = known.collect_schema().names()
    except TypeError as error:
        raise InputError(
            f"frame must be a frame that Narwhals supports; got {type(frame).__name__}.",
            hint="Pass a frame of pandas, polars, pyarrow, DuckDB, ...; or arrays to ScoreTable.from_arrays.",
            argument="frame",
        ) from error
    except nw.exceptions.NarwhalsError as error:
        raise InputError(f"The frame cannot be read: {error}", argument="frame") from error
    absent = [name for name in names if name not in there]
    if absent:
        raise no_column(absent[0], there, "The frame")
    if len(set(there)) < len(there):
        twice = next(name for name in there if there.count(name) > 1)
        raise same_name(twice, [twice, twice])
    return known


def same_name(name: str, alike: list[str]) -> InputError:
    """Return the error that a name denotes several columns."""
    if alike.count(name) != 1:
        return InputError(f"Two columns are named {name!r}.", hint="Rename one of them.", argument=name)
    return InputError(
        f"The engine does not distinguish column {name!r} from one that differs in case.",
        hint="Rename one of them.",
        argument=name,
    )


def _is_spark(known: Any) -> bool:
    return bool(known.implementation.is_pyspark() or known.implementation.is_pyspark_connect())


def _collected(known: Any, names: list[str]) -> dict[str, _columns.ColumnData]:
    """Collect the named columns and read them."""
    import narwhals as nw

    try:
        # polars takes * and ^...$ as patterns of names, except in rename.
        plain = {
            name: f"column \N{NUMBER SIGN}{i}" for i, name in enumerate(names) if name == "*" or name.startswith("^")
        }
        chosen = known.rename(plain).select([plain.get(name, name) for name in names]) if plain else known.select(names)
        chosen = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    except nw.exceptions.NarwhalsError as error:
        raise InputError(f"The frame cannot be read: {error}", argument="frame") from error
    lost = [name for name in names if plain.get(name, name) not in chosen.columns]
    if lost:
        raise same_name(lost[0], lost)
    return {name: _column(chosen[plain.get(name, name)], name) for name in names}


def frame_columns(table: Any) -> dict[str, _columns.ColumnData]:
    """Read all columns of an eager frame."""
    import narwhals as nw

    known = nw.from_native(table)
    return {name: _column(known[name], name) for name in known.columns}


def _column(series: Any, name: str) -> _columns.ColumnData:
    """Read a column of a frame; nulls are missing, and numbers keep their type."""
    import narwhals as nw

    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if missing.any() and series.dtype.is_numeric():
        series = series.fill_null(0)  # otherwise NumPy would convert all values to objects or floats
    elif missing.any() and series.dtype == nw.Boolean:
        series = series.fill_null(False)
    return _columns.read(series.to_numpy(), name, missing=missing)
