"""`from_frame`: frames of all libraries that Narwhals supports, eager or lazy, counted into tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, no_column
from calibrant.ingest.counting import CountOptions, Weighting
from calibrant.ingest.table_counter import TableCounter, check_names
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable


def from_frame(
    frame: Any,
    *,
    y: str,
    p: str,
    sample_weight: str | None = None,
    frequency: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    resolution: float | None = None,
) -> ScoreTable:
    """Count the outcomes and scores of a frame.

    Parameters
    ----------
    frame : frame of pandas, polars (lazy too), pyarrow, DuckDB, Spark, dask, ibis, ...
        All that Narwhals supports. Of lazy frames only the needed columns are collected. Spark counts its own frames,
        and only the distinct rows are collected.
    y, p : str
        Names of the columns of outcomes and of scores.
    sample_weight, frequency : str, optional
        Name of the column of importance weights, or of the column of numbers of equal rows.
    pos_label, missing
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this (2**-20 is a good choice); see `ScoreTable.round`.

    Returns
    -------
    ScoreTable
        Bitwise identical to `ScoreTable.from_arrays` of the columns.

    See Also
    --------
    tables_from_frame, scan, from_query, ScoreTable

    Examples
    --------
    >>> import pyarrow as pa
    >>> from_frame(pa.table({"event": [0, 1, 1], "score": [0.2, 0.7, 0.7]}), y="event", p="score")
    ScoreTable(3 rows, 2 distinct scores, 2 positives)
    """
    tables = tables_from_frame(
        frame,
        y=y,
        p=p,
        sample_weight=sample_weight,
        frequency=frequency,
        pos_label=pos_label,
        missing=missing,
        resolution=resolution,
    )
    return tables.total()


def tables_from_frame(
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
) -> Tables:
    """Count a frame by model and group, reading it once.

    Parameters
    ----------
    frame, y, sample_weight, frequency, pos_label, missing, resolution
        See `from_frame`.
    p : str or list of str
        The column of scores, or one per model.
    by : str or list of str, optional
        The columns that split the rows into groups. A missing group is an error, and so are more than 1,000 groups of
        fewer than 2 rows on average, which a column of ids has.

    Returns
    -------
    Tables
        ``tables[model, group]``; groups in sorted order.

    See Also
    --------
    from_frame, tables_scan, Tables

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table({"y": [0, 1, 1, 0], "old": [0.2, 0.7, 0.7, 0.1], "land": ["a", "b", "a", "b"]})
    >>> tables = tables_from_frame(frame, y="y", p="old", by="land")
    >>> tables["old", "b"].size
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
    return counter.tables()


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
