"""`scan`: Parquet, CSV and JSON lines files, read and counted in batches."""

import errno
import re
import stat
from collections.abc import Sequence
from glob import glob
from os import PathLike, curdir, fspath, walk
from os.path import islink, join, realpath
from pathlib import Path
from typing import TypeAlias

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count, known_keywords
from calibrant.ingest.counting import CountOptions, Weighting
from calibrant.ingest.file_batches import Batch, FileReader, check_types
from calibrant.ingest.formats import File, Format, guess_format
from calibrant.ingest.table_counter import TableCounter, check_name, check_names
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

__all__ = ["scan", "tables_scan"]

_NAME_SHOWN = 60  # characters of a name that is too long

Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]


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
    r"""Count the outcomes and scores in files, without loading them as a frame.

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
        See `ScoreTable.from_arrays`. In CSV and JSON files a `pos_label` that is text is compared with the text of the
        labels; one that is a number or a truth value is compared with what all of them denote.
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

    See Also
    --------
    tables_scan, from_frame, ScoreTable

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("day,y,p\nmon,0,0.2\nmon,1,0.7\ntue,1,0.7\n")
    ...     table = scan(path, y="y", p="p")
    >>> table.score, table.n, table.k
    (array([0.2, 0.7]), array([1, 2]), array([0, 2]))
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
    r"""Count files by model and group, reading each file once.

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

    See Also
    --------
    scan, tables_from_frame, Tables

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("day,y,p\nmon,0,0.2\nmon,1,0.7\ntue,1,0.7\n")
    ...     tables = tables_scan(path, y="y", p="p", by="day")
    >>> tables["p", "mon"].size, tables["p", "tue"].size
    (2, 1)
    """
    check_name(y, "y")
    for argument, name in (("sample_weight", sample_weight), ("frequency", frequency)):
        if name is not None:
            check_name(name, argument)
    if max_memory is not None:
        check_count("max_memory", max_memory)
    models, keys = check_names(p, "p"), [] if by is None else check_names(by, "by")
    weighting = Weighting.named(sample_weight, frequency)
    counter = TableCounter(y, models, keys, weighting, CountOptions(pos_label, missing, resolution), max_memory)
    files = find_files(paths, format)
    reader = FileReader(files, counter.names, counter.numbers, memory_limit)
    counter.expected = reader.rows
    # The text of an event is compared with the text of labels.
    for batch in reader.batches(progress, labels=not isinstance(pos_label, str)):
        reader.check_labels()
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
    text can be; otherwise text stays text.
    """
    files = find_files(paths, format)
    reader = FileReader(files, names, numbers, memory_limit)
    batches = list(reader.batches(progress, labels=labels))
    if reader.has_mixed_labels:
        batches = list(reader.batches(progress, labels=False))
    if not batches:
        raise InputError(f"{', '.join(file.name for file in files[:3])}: no rows.", argument="paths")
    check_types([batch[names[0]] for batch in batches])
    return {name: _joined([batch[name] for batch in batches], name) for name in names}


def _joined(parts: list[_columns.ColumnData], name: str) -> _columns.ColumnData:
    """Return one column of all batches; text and numbers of partitions keep their types."""
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
    if not each:
        raise InputError(
            "paths must name files; got an empty text.", hint="The current folder is '.'.", argument="paths"
        )
    path = Path(each)
    if _is_file(path):
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
    some = [name for name in sorted(_match(path)) if Path(name).is_file()]
    if not some:
        raise InputError(f"There is no file {path.name!r}.", argument="paths", value=each)
    return some


def _is_file(path: Path) -> bool:
    """Return whether the path names a regular file; not by `Path.is_file`, which since Python 3.14 hides all errors."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a null character is a ValueError
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        shown = path.name if len(path.name) <= _NAME_SHOWN else path.name[:_NAME_SHOWN] + "..."
        raise InputError(f"There is no file {shown!r}: {error.strerror}.", argument="paths", value=str(path)) from error


def _match(pattern: Path) -> set[str]:
    """Return the paths that match a pattern; ** stands for any number of folders, of which each is visited once."""
    found = {pattern.anchor}
    parts = pattern.relative_to(pattern.anchor).parts
    for part in [*parts, "*"] if parts and parts[-1] == "**" else parts:
        if part == "**":
            found = _folders_below(found)
        else:
            found = {join(folder, name) for folder in found for name in glob(part, root_dir=folder or None)}
    return found


def _folders_below(roots: set[str]) -> set[str]:
    """Return the folders and all below them that are not hidden; links are followed to folders not yet visited."""
    visited: dict[str, str] = {}  # the path of each real folder
    left = sorted(roots)
    while left:
        links = []
        for root in left:
            for folder, below, _ in walk(root or curdir):
                real = realpath(folder)
                below[:] = [name for name in below if not name.startswith(".") and real not in visited]
                visited.setdefault(real, folder)
                links += [join(folder, name) for name in below if islink(join(folder, name))]
        left = sorted(link for link in links if realpath(link) not in visited)
    return set(visited.values())
