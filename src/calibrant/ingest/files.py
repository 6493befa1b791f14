"""Files counted where they lie, through DuckDB: Parquet, CSV and JSON lines, one batch of rows at a time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.progress import progress_bar
from calibrant.ingest.counting import CountOptions, Weighting
from calibrant.ingest.formats import File, Format, format_of, source_of
from calibrant.ingest.table_counter import TableCounter, check_names
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

__all__ = ["scan", "tables_scan"]

Batch: TypeAlias = dict[str, _columns.ColumnData]
Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]

_BATCH = 1 << 20


def scan(
    paths: Paths,
    *,
    y: str,
    p: str,
    sample_weight: str | None = None,
    frequency: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    resolution: float | None = None,
    format: Format | None = None,
    memory_limit: str = "1GB",
    max_memory: int | None = None,
    progress: bool | None = None,
) -> ScoreTable:
    """Count files: the table of their outcomes and scores, without the rows in memory as a frame.

    Parameters
    ----------
    paths : path, pattern, folder, or several
        ``"scores/*.parquet"``, ``"scores/"`` (all files below it), ``["a.csv", "b.csv"]``. Hive partitions
        (``day=2026-11-15/part.parquet``) are columns. No network: only files.
    y, p : str
        Names of the columns of outcomes and of scores.
    sample_weight, frequency : str, optional
        Name of the column of importance weights, or of the one of numbers of equal rows.
    pos_label, missing
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this while reading, so that rows need not be kept: 2**-20 is a good choice. By
        default counting is exact; where that would take more memory than there is, an error says so.
    format : {"parquet", "csv", "json"}, optional
        By default the file's ending says it (.parquet, .csv, .tsv, .jsonl, .ndjson, also with .gz or .zst).
    memory_limit : str, default="1GB"
        What DuckDB may use for reading.
    max_memory : int, optional
        Bytes that counting may take; by default what is free.
    progress : bool, optional
        Whether to draw a bar; by default on a terminal and in notebooks.

    Returns
    -------
    ScoreTable
        The same, bit by bit, as `ScoreTable.from_arrays` of the rows.
    """
    tables = tables_scan(
        paths,
        y=y,
        p=p,
        sample_weight=sample_weight,
        frequency=frequency,
        pos_label=pos_label,
        missing=missing,
        resolution=resolution,
        format=format,
        memory_limit=memory_limit,
        max_memory=max_memory,
        progress=progress,
    )
    return tables.total()


def tables_scan(
    paths: Paths,
    *,
    y: str,
    p: str | Sequence[str],
    by: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    frequency: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    resolution: float | None = None,
    format: Format | None = None,
    memory_limit: str = "1GB",
    max_memory: int | None = None,
    progress: bool | None = None,
) -> Tables:
    """Count files by groups, and for several models, reading each once.

    Parameters
    ----------
    paths, y, sample_weight, frequency, pos_label, missing, resolution, format, memory_limit, max_memory, progress
        See `scan`.
    p : str or list of str
        The column of scores, or one for each model.
    by : str or list of str, optional
        The columns that split the rows into groups; Hive partitions are columns.

    Returns
    -------
    Tables
        ``tables[model, group]``; groups in sorted order.
    """
    models, keys = check_names(p, "p"), [] if by is None else check_names(by, "by")
    weighting = Weighting.named(sample_weight, frequency)
    counter = TableCounter(y, models, keys, weighting, CountOptions(pos_label, missing, resolution), max_memory)
    files = files_of(paths, format)
    with _connection(memory_limit) as connection:
        sources = {
            file: source_of(file, counter.names, counter.numbers) for file in files
        }  # headings are looked at first
        counter.expected = _rows_in(files)
        for batch in _batches(connection, sources, counter.names, counter.expected, progress):
            counter.add(batch)
    return counter.tables()


def columns_scan(
    paths: Paths,
    names: list[str],
    numbers: list[str],
    *,
    format: Format | None = None,
    memory_limit: str = "1GB",
    progress: bool | None = None,
) -> Batch:
    """The named columns of files as they are, the first of them read as labels; for what needs rows, not tables."""
    files = files_of(paths, format)
    with _connection(memory_limit) as connection:
        sources = {file: source_of(file, names, numbers) for file in files}
        batches = list(_batches(connection, sources, names, _rows_in(files), progress))
    if not batches:
        raise InputError(f"{', '.join(file.name for file in files[:3])}: no rows.", argument="paths")
    return {name: _joined([batch[name] for batch in batches], name) for name in names}


def _joined(parts: list[_columns.ColumnData], name: str) -> _columns.ColumnData:
    """One column of all batches; text and numbers are never made alike."""
    kinds = {part.values.dtype.kind in "biuf" for part in parts}
    values = np.concatenate([part.values if len(kinds) == 1 else part.values.astype(object) for part in parts])
    missing = np.concatenate([part.mask for part in parts])
    shown = {part.name for part in parts}  # the column and its file
    return _columns.ColumnData(shown.pop() if len(shown) == 1 else name, values, missing if missing.any() else None)


def files_of(paths: Paths, format: Format | None) -> list[File]:
    """The files that paths, patterns and folders stand for, in order; each once, by whatever name."""
    if format not in (None, "parquet", "csv", "json"):
        raise InputError(f"format must be 'parquet', 'csv' or 'json'; it is {format!r}.", argument="format")
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths) if isinstance(paths, Sequence) else [paths]
    if not given or not all(isinstance(each, (str, PathLike)) for each in given):
        raise InputError(f"paths must name at least one file; it is {paths!r}.", argument="paths", value=paths)
    found: dict[Path, str] = {}
    for each in [fspath(one) for one in given]:
        for path in _meant(each):
            found.setdefault(Path(path).resolve(), path)
    return [File(path, format or format_of(path)) for path in found.values()]


def _meant(each: str) -> list[str]:
    """The files of a path, a pattern or a folder; in folders, what begins with a dot or underscore is no data."""
    if "://" in each:
        raise InputError(f"{each!r} is an address; only files are read.", hint="Fetch it first.", argument="paths")
    path = Path(each)
    if path.is_file():
        return [each]
    if path.is_dir():
        below = sorted(f for f in path.rglob("*") if f.is_file() and File.known(f))
        hidden = re.compile(r"[._]")
        some = [str(f) for f in below if not any(hidden.match(part) for part in f.relative_to(path).parts)]
        if not some:
            raise InputError(f"There is no Parquet, CSV or JSON file below {path.name!r}.", argument="paths")
        return some
    if path.exists():
        raise InputError(
            f"{path.name!r} is not a regular file.", hint="On the command line, - is standard input.", argument="paths"
        )
    some = [name for name in sorted(glob(each, recursive=True)) if Path(name).is_file()]
    if not some:
        raise InputError(f"There is no file {path.name!r}.", argument="paths", value=each)
    return some


def _connection(memory_limit: str) -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401  (asked for here, so that the error says what to install)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Reading files needs DuckDB and pyarrow: pip install "calibrant[files]".', name=error.name
        ) from error
    # Nothing is fetched from anywhere: what DuckDB has built in must do.
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    try:
        return duckdb.connect(config={**settings, "memory_limit": memory_limit})
    except duckdb.Error as error:
        raise InputError(f"memory_limit is not understood: {error}", argument="memory_limit") from error


def _batches(
    connection: Any, sources: dict[File, str], names: list[str], rows: int | None, show: bool | None
) -> Iterator[Batch]:
    """Return all batches; a progress bar counts rows, or files."""
    if rows is None:
        for file, source in progress_bar(sources.items(), len(sources), "files", show=show):
            yield from _read(connection, file, source, names)
        return
    every = (batch for file, source in sources.items() for batch in _read(connection, file, source, names))
    yield from progress_bar(every, -(-rows // _BATCH), "batches", show=show)


def _rows_in(files: list[File]) -> int | None:
    """How many rows Parquet files have by what they say of themselves; None of others."""
    if any(file.format != "parquet" for file in files):
        return None
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(file.path).num_rows) for file in files)


def _read(connection: Any, file: File, source: str, names: list[str]) -> Iterator[Batch]:
    """The named columns of a file, batch by batch; an error names the file."""
    import duckdb

    try:
        relation = connection.sql(source)
        new = hasattr(relation, "to_arrow_reader")  # DuckDB 2 has another name for it
        first = 0
        for batch in relation.to_arrow_reader(_BATCH) if new else relation.fetch_arrow_reader(_BATCH):
            # The first is y; groups are what is written, so that 007 is not 7.
            read = {name: _column(batch.column(i), name, file, i == 0) for i, name in enumerate(names)}
            yield {name: replace(column, first_row=first) for name, column in read.items()}
            first += batch.num_rows
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(f"memory_limit is too small to read {file.name}: {str(error).splitlines()[0]}") from error
    except (duckdb.Error, OSError) as error:  # what happens while reading comes through Arrow
        raise _file_error(file, error) from error


def _column(array: Any, name: str, file: File, labels: bool) -> _columns.ColumnData:
    """A column of a batch: numbers stay what they are, nulls and NaN are marked, labels written as text are read."""
    shown = f"{name} in {file.name}"
    missing = np.asarray(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else None
    kind = str(array.type)
    if missing is not None and kind.startswith(("int", "uint", "float", "double", "half", "bool")):
        array = array.fill_null(False if kind == "bool" else 0)
    text = labels and file.format != "parquet" and "string" in kind
    values = _labels(array) if text else array.to_numpy(zero_copy_only=False)
    return _columns.read(values, shown, missing=missing)


def _labels(array: Any) -> Any:
    """Text as the numbers or truth values that all of it says, or as it is."""
    import pyarrow as pa

    encoded = array.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    if not words:
        return array.to_numpy(zero_copy_only=False)
    if all(word.lower() in ("true", "false") for word in words):
        return np.array([word.lower() == "true" for word in words])[codes]
    try:
        return np.array([float(word) for word in words])[codes]
    except ValueError:
        return pa.array(words).take(pa.array(codes)).to_numpy(zero_copy_only=False)


def _file_error(file: File, error: Exception) -> InputError:
    """What DuckDB found, with the line if it says one, and without the folders of the path."""
    text = str(error).replace(str(Path(file.path).parent) + "/", "")
    line = re.search(r"\bline:? (\d+)", text, flags=re.IGNORECASE)
    where = f", line {line.group(1)}" if line else ""
    lines = [part for part in text.splitlines() if part.strip()]
    reasons = [part for part in lines if not part.startswith(("Original Line", "Possible"))]
    reason = reasons[1] if line and len(reasons) > 1 else reasons[0]
    heading = 2 if file.format == "csv" else 1  # rows are counted from 0, without it
    row = None if line is None else int(line.group(1)) - heading
    return InputError(f"{file.name}{where} cannot be read: {reason.strip()}", argument="paths", row=row)
