"""`scan`: Parquet, CSV and JSON lines files, read by DuckDB and counted in batches."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, MissingExtraError
from calibrant._support.option_checks import known_keywords
from calibrant._support.progress import progress_bar
from calibrant.ingest.arrow_arrays import missing_cells, parse_labels, read_values
from calibrant.ingest.counting import CountOptions, Weighting
from calibrant.ingest.formats import File, Format, guess_format, source_query
from calibrant.ingest.table_counter import TableCounter, check_names
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

__all__ = ["scan", "tables_scan"]

Batch: TypeAlias = dict[str, _columns.ColumnData]
Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]

_BATCH = 1 << 20


@known_keywords
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
    """Count the outcomes and scores in files, without loading them as a frame.

    Parameters
    ----------
    paths : path, pattern, folder, or several
        ``"scores/*.parquet"``, ``"scores/"`` (all files below it), ``["a.csv", "b.csv"]``. Hive partitions
        (``day=2026-11-15/part.parquet``) are columns. Only local files are read.
    y, p : str
        Names of the columns of outcomes and of scores.
    sample_weight, frequency : str, optional
        Name of the column of importance weights, or of the column of numbers of equal rows.
    pos_label, missing
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this while reading, so that rows are not kept in memory: 2**-20 is a good choice.
        By default counting is exact; an error is raised if that would exceed the memory.
    format : {"parquet", "csv", "json"}, optional
        By default from the suffix of the file (.parquet, .csv, .tsv, .jsonl, .ndjson, also with .gz or .zst).
    memory_limit : str, default="1GB"
        Memory that DuckDB may use.
    max_memory : int, optional
        Bytes that counting may use; by default the free memory.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    ScoreTable
        Bitwise identical to `ScoreTable.from_arrays` of the rows.
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


@known_keywords
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
    """Count files by model and group, reading each file once.

    Parameters
    ----------
    paths, y, sample_weight, frequency, pos_label, missing, resolution, format, memory_limit, max_memory, progress
        See `scan`.
    p : str or list of str
        The column of scores, or one per model.
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
    files = find_files(paths, format)
    with _connection(memory_limit) as connection:
        sources = {
            file: source_query(file, counter.names, counter.numbers) for file in files
        }  # all headers are checked first
        counter.expected = _count_rows(files)
        for batch in _batches(connection, sources, counter.names, counter.expected, progress):
            counter.add(batch)
    return counter.tables()


def read_columns(
    paths: Paths,
    names: list[str],
    numbers: list[str],
    *,
    labels: bool = True,
    format: Format | None = None,
    memory_limit: str = "1GB",
    progress: bool | None = None,
) -> Batch:
    """Read the named columns of files.

    `labels`: text in the first column, if it is not of a Parquet file, is read as numbers or truth values where all
    text of a batch can be; otherwise text stays text.
    """
    files = find_files(paths, format)
    with _connection(memory_limit) as connection:
        sources = {file: source_query(file, names, numbers) for file in files}
        batches = list(_batches(connection, sources, names, _count_rows(files), progress, labels=labels))
    if not batches:
        raise InputError(f"{', '.join(file.name for file in files[:3])}: no rows.", argument="paths")
    return {name: _joined([batch[name] for batch in batches], name) for name in names}


def _joined(parts: list[_columns.ColumnData], name: str) -> _columns.ColumnData:
    """Return one column of all batches; text and numbers keep their types."""
    kinds = {part.values.dtype.kind in "biuf" for part in parts}
    values = np.concatenate([part.values if len(kinds) == 1 else part.values.astype(object) for part in parts])
    missing = np.concatenate([part.mask for part in parts])
    shown = {part.name for part in parts}  # the column and its file
    return _columns.ColumnData(shown.pop() if len(shown) == 1 else name, values, missing if missing.any() else None)


def find_files(paths: Paths, format: Format | None) -> list[File]:
    """Return the files of paths, patterns and folders, in order and each once."""
    if format not in (None, "parquet", "csv", "json"):
        raise InputError(f"format must be 'parquet', 'csv' or 'json'; got {format!r}.", argument="format")
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths) if isinstance(paths, Sequence) else [paths]
    if not given or not all(isinstance(each, (str, PathLike)) for each in given):
        raise InputError(f"paths must name at least one file; got {paths!r}.", argument="paths", value=paths)
    found: dict[Path, str] = {}
    for each in [fspath(one) for one in given]:
        for path in _expand(each):
            found.setdefault(Path(path).resolve(), path)
    return [File(path, format or guess_format(path)) for path in found.values()]


def _expand(each: str) -> list[str]:
    """Return the files of a path, a pattern or a folder; names in a folder that begin with . or _ are ignored."""
    if "://" in each:
        raise InputError(f"paths must name local files; got {each!r}.", hint="Download it first.", argument="paths")
    path = Path(each)
    if path.is_file():
        return [each]
    if path.is_dir():
        below = sorted(f for f in path.rglob("*") if f.is_file() and File.known(f))
        hidden = re.compile(r"[._]")
        some = [str(f) for f in below if not any(hidden.match(part) for part in f.relative_to(path).parts)]
        if not some:
            raise InputError(
                f"paths must contain Parquet, CSV or JSON files; got none below {path.name!r}.", argument="paths"
            )
        return some
    if path.exists():
        raise InputError(
            f"paths must name regular files; got {path.name!r}.",
            hint="On the command line, - is standard input.",
            argument="paths",
        )
    some = [name for name in sorted(glob(each, recursive=True)) if Path(name).is_file()]
    if not some:
        raise InputError(f"There is no file {path.name!r}.", argument="paths", value=each)
    return some


def _connection(memory_limit: str) -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401  (imported here, so that the error says what to install)
    except ModuleNotFoundError as error:
        raise MissingExtraError("Reading files needs DuckDB and pyarrow", "files", name=error.name) from error
    # DuckDB must not download extensions.
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    try:
        return duckdb.connect(config={**settings, "memory_limit": memory_limit})
    except duckdb.Error as error:
        raise InputError(
            f"memory_limit must be a size such as '1GB'; got {memory_limit!r} ({error}).", argument="memory_limit"
        ) from error


def _batches(
    connection: Any,
    sources: dict[File, str],
    names: list[str],
    rows: int | None,
    show: bool | None,
    *,
    labels: bool = True,
) -> Iterator[Batch]:
    """Return all batches; a progress bar counts rows, or files."""
    if rows is None:
        for file, source in progress_bar(sources.items(), len(sources), "files", show=show):
            yield from _read(connection, file, source, names, labels=labels)
        return
    every = (b for file, source in sources.items() for b in _read(connection, file, source, names, labels=labels))
    yield from progress_bar(every, -(-rows // _BATCH), "batches", show=show)


def _count_rows(files: list[File]) -> int | None:
    """Return the number of rows in the metadata of Parquet files; None for other files."""
    if any(file.format != "parquet" for file in files):
        return None
    import pyarrow.parquet as pq

    return sum(int(pq.read_metadata(file.path).num_rows) for file in files)


def _read(connection: Any, file: File, source: str, names: list[str], *, labels: bool) -> Iterator[Batch]:
    """Yield the named columns of a file in batches; an error names the file."""
    import duckdb

    try:
        relation = connection.sql(source)
        new = hasattr(relation, "to_arrow_reader")  # DuckDB 2 has another name for it
        first = 0
        for batch in relation.to_arrow_reader(_BATCH) if new else relation.fetch_arrow_reader(_BATCH):
            # The first column is y. Groups stay text, so that 007 is not 7.
            read = {name: _column(batch.column(i), name, file, labels and i == 0) for i, name in enumerate(names)}
            yield {name: replace(column, first_row=first) for name, column in read.items()}
            first += batch.num_rows
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(f"memory_limit is too small to read {file.name}: {str(error).splitlines()[0]}") from error
    except (duckdb.Error, OSError) as error:  # Arrow raises OSError for errors while reading
        raise _file_error(file, error) from error


def _column(array: Any, name: str, file: File, labels: bool) -> _columns.ColumnData:
    """Read a column of a batch; labels that are written as text become numbers or booleans if all of them are."""
    missing = missing_cells(array)
    text = labels and file.format != "parquet" and "string" in str(array.type)
    values = parse_labels(array, missing) if text else read_values(array, missing)
    return _columns.read(values, f"{name} in {file.name}", missing=missing)


def _file_error(file: File, error: Exception) -> InputError:
    """Return the error of DuckDB, with the line if it is known, and without the folders of the path."""
    text = str(error).replace(str(Path(file.path).parent) + "/", "")
    line = re.search(r"\bline:? (\d+)", text, flags=re.IGNORECASE)
    where = f", line {line.group(1)}" if line else ""
    lines = [part for part in text.splitlines() if part.strip()]
    reasons = [part for part in lines if not part.startswith(("Original Line", "Possible"))]
    reason = reasons[1] if line and len(reasons) > 1 else reasons[0]
    heading = 2 if file.format == "csv" else 1  # rows are counted from 0, without the header
    row = None if line is None else int(line.group(1)) - heading
    return InputError(f"{file.name}{where} cannot be read: {reason.strip()}", argument="paths", row=row)
