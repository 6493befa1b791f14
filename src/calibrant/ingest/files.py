"""Files counted where they lie, through DuckDB: Parquet, CSV and JSON lines, one batch of rows at a time."""

import codecs
import csv
import glob
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant import _columns
from calibrant._progress import progress as counted
from calibrant.errors import InputError
from calibrant.ingest.counting import Counter, Options
from calibrant.ingest.groups import groups_of, in_order, named, part
from calibrant.ingest.tables import Tables
from calibrant.table import Missing, ScoreTable

__all__ = ["scan", "tables_scan"]

Format: TypeAlias = Literal["parquet", "csv", "json"]
Batch: TypeAlias = tuple[int, dict[str, _columns.Column]]  # the number of its first row, and the rows
Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_BATCH = 1 << 20
_LONGEST_LINE = 1 << 20
_FIRST_ROWS = 200
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What stands for nothing in a CSV file.
_NULLS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")


@dataclass(frozen=True)
class File:
    """A file and what is in it."""

    path: str
    format: Format

    @property
    def name(self) -> str:
        """Its base name, for messages."""
        return Path(self.path).name


def scan(
    paths: Paths,
    *,
    y: str,
    p: str,
    weight: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    importance: bool = False,
    resolution: float | None = None,
    format: Format | None = None,
    memory_limit: str = "1GB",
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
    weight : str, optional
        Name of the column of weights.
    pos_label, missing, importance
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this while reading, so that rows need not be kept: 2**-20 is a good choice. By
        default counting is exact; where that would take more memory than there is, an error says so.
    format : {"parquet", "csv", "json"}, optional
        By default the file's ending says it (.parquet, .csv, .tsv, .jsonl, .ndjson, also with .gz or .zst).
    memory_limit : str, default="1GB"
        What DuckDB may use for reading.
    progress : bool, optional
        Whether to draw a bar; by default on a terminal and in notebooks.

    Returns
    -------
    ScoreTable
        The same, bit by bit, as `ScoreTable.from_arrays` of the rows.
    """
    options = Options(pos_label, missing, importance, resolution)
    names = [y, p, *([] if weight is None else [weight])]
    counter = Counter(options, weighted=weight is not None)
    for first, batch in _batches(paths, names, names[1:], format, memory_limit, progress):
        _add(counter, [batch[name] for name in names], first)
    return counter.table(names)


def tables_scan(
    paths: Paths,
    *,
    y: str,
    p: str | Sequence[str],
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    importance: bool = False,
    resolution: float | None = None,
    format: Format | None = None,
    memory_limit: str = "1GB",
    progress: bool | None = None,
) -> Tables:
    """Count files by groups, and for several models, reading each once.

    Parameters
    ----------
    paths, y, weight, pos_label, missing, importance, resolution, format, memory_limit, progress
        See `scan`.
    p : str or list of str
        The column of scores, or one for each model.
    by : str or list of str, optional
        The columns that split the rows; Hive partitions are columns.

    Returns
    -------
    Tables
        ``tables[model, group]``; groups in sorted order.
    """
    models, keys = named(p, "p"), [] if by is None else named(by, "by")
    options = Options(pos_label, missing, importance, resolution)
    names = list(dict.fromkeys([y, *models, *keys, *([] if weight is None else [weight])]))
    counters: dict[tuple[str, Any], Counter] = {}
    numbers = [*models, *([] if weight is None else [weight])]
    for first, batch in _batches(paths, names, numbers, format, memory_limit, progress):
        w = [] if weight is None else [batch[weight]]
        for group, rows in groups_of([batch[key] for key in keys], len(batch[y])):
            for model in models:
                counter = counters.setdefault((model, group), Counter(options, weighted=bool(w) or bool(keys)))
                _add(counter, [part(c, rows) for c in (batch[y], batch[model], *w)], first)
    if not counters:
        raise InputError(f"{y} and {models[0]} hold no rows; at least one is needed.", argument=y)
    real = not all(counter.whole for counter in counters.values())
    found = {
        key: counters[key].table([y, key[0], *([] if weight is None else [weight])], importance=real)
        for key in in_order(counters, models)
    }
    return Tables(found, tuple(keys))


def _batches(
    paths: Paths,
    names: list[str],
    numbers: list[str],
    format: Format | None,
    memory_limit: str,
    show: bool | None,
) -> Iterator[Batch]:
    found = files_of(paths, format)
    with _connection(memory_limit) as connection:
        total = _batches_in(connection, found)
        if total is not None:
            every = (batch for file in found for batch in read_batches(connection, file, names, numbers))
            yield from counted(every, total, "batches", show=show)
            return
        for file in counted(found, len(found), "files", show=show):
            yield from read_batches(connection, file, names, numbers)


def _batches_in(connection: Any, files: list[File]) -> int | None:
    """How many batches Parquet files have by what they say of themselves; None of others, and where that is damaged."""
    import duckdb

    if any(file.format != "parquet" for file in files):
        return None
    paths = ", ".join(_text(_literal(file.path)) for file in files)
    try:
        rows = connection.sql(f"select num_rows from parquet_file_metadata([{paths}])").fetchall()
    except (duckdb.Error, OSError):  # reading will say what is wrong
        return None
    return sum(-(-int(count) // _BATCH) for (count,) in rows)


def _add(counter: Counter, columns: list[_columns.Column], first: int) -> None:
    try:
        counter.add(*columns)
    except InputError as error:
        raise _at_its_row(error, first) from error


def files_of(paths: Paths, format: Format | None) -> list[File]:
    """The files that paths, patterns and folders stand for, in order; each once."""
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    found: dict[str, None] = {}
    for each in [fspath(one) for one in given]:
        if "://" in each:
            raise InputError(
                f"Only files are read, and {each!r} is an address.", hint="Fetch it first.", argument="paths"
            )
        path = Path(each)
        if path.is_dir():
            some = sorted(str(f) for f in path.rglob("*") if f.is_file() and _format(f) is not None)
        else:
            some = [each] if path.is_file() else sorted(glob.glob(each, recursive=True))
        if not some:
            raise InputError(f"There is no file {each!r}.", argument="paths", value=each)
        found.update(dict.fromkeys(some))
    return [File(path, format or _known_format(path)) for path in found]


def _format(path: Path) -> Format | None:
    endings = [suffix.lower() for suffix in path.suffixes]
    endings = endings[:-1] if endings and endings[-1] in (".gz", ".zst") else endings
    return _SUFFIXES.get(endings[-1]) if endings else None


def _known_format(path: str) -> Format:
    found = _format(Path(path))
    if found is None:
        raise InputError(
            f"What is in {Path(path).name!r}? Its ending does not say.",
            hint="Pass format='parquet', 'csv' or 'json'.",
            argument="format",
        )
    return found


def _connection(memory_limit: str) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Reading files needs DuckDB and pyarrow: pip install "calibrant[files]".', name="duckdb"
        ) from error
    # Nothing is fetched from anywhere: what DuckDB has built in must do.
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    try:
        return duckdb.connect(config={**settings, "memory_limit": memory_limit})
    except duckdb.Error as error:
        raise InputError(f"memory_limit is not understood: {error}", argument="memory_limit") from error


def read_batches(
    connection: Any, file: File, names: list[str], numbers: list[str]
) -> Iterator[tuple[int, dict[str, _columns.Column]]]:
    """The named columns of a file, batch by batch, each with the number of its first row; an error names the file."""
    import duckdb

    source = _csv_source(file, names, numbers) if file.format == "csv" else _source(file)
    try:
        relation = connection.sql(f"select {', '.join(map(_quoted, names))} from {source}")
        reader = (
            relation.to_arrow_reader(_BATCH)
            if hasattr(relation, "to_arrow_reader")
            else relation.fetch_arrow_reader(_BATCH)
        )
        first = 0
        for batch in reader:
            yield first, {name: _column(batch.column(i), name, file) for i, name in enumerate(names)}
            first += batch.num_rows
    except (duckdb.Error, OSError) as error:  # what happens while reading comes through Arrow
        raise _file_error(file, names, error) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _source(file: File) -> str:
    if file.format == "parquet":
        return f"read_parquet({_text(_literal(file.path))}, hive_partitioning = true)"
    return f"read_json({_text(_literal(file.path))}, format = 'newline_delimited', hive_partitioning = true)"


def _literal(path: str) -> str:
    """A path that DuckDB takes as it is, whatever marks of patterns its name holds."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _csv_source(file: File, names: list[str], numbers: list[str]) -> str:
    """A CSV file with its columns declared, so that nothing is guessed from rows that may be wrong.

    Scores and weights are numbers; what other columns hold is said by their first rows.
    """
    options = ["header = true", f"nullstr = [{', '.join(map(_text, _NULLS))}]", "hive_partitioning = true"]
    options += ["strict_mode = true", f"max_line_size = {_LONGEST_LINE}"]
    if not file.path.endswith(".zst"):  # of which Python cannot see the beginning
        mark, heading, rows = _beginning(file)
        _check_heading(file, names, heading, rows)
        kinds = {
            name: "DOUBLE" if name in numbers else _kind([row[i] for row in rows if i < len(row)])
            for i, name in enumerate(heading)
        }
        columns = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in _apart(heading, kinds))
        options += ["auto_detect = false", f"delim = {_text(mark)}", "quote = '\"'", "escape = '\"'"]
        options.append(f"columns = {{{columns}}}")
    return f"read_csv({_text(_literal(file.path))}, {', '.join(options)})"


def _beginning(file: File) -> tuple[str, list[str], list[list[str]]]:
    """The separator, the heading and the first rows of a CSV file."""
    opened = gzip.open if file.path.endswith(".gz") else open
    with opened(file.path, "rb") as stream:
        lines = [stream.readline(_LONGEST_LINE) for _ in range(_FIRST_ROWS + 1)]
    if lines[0].startswith(_UTF16):
        raise InputError(f"{file.name} is UTF-16.", hint="Convert it to UTF-8 first.", argument="paths")
    if not lines[0].strip():
        raise InputError(f"{file.name} is empty: not even a heading.", argument="paths")
    texts = [line.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace") for line in lines if line.strip()]
    mark = max(",;\t|", key=texts[0].count)
    heading, *rows = csv.reader(texts, delimiter=mark)
    return mark, heading, rows


def _check_heading(file: File, names: list[str], heading: list[str], rows: list[list[str]]) -> None:
    twice = [name for name in names if heading.count(name) > 1]
    if twice:
        raise InputError(f"{file.name} has two columns named {twice[0]!r}.", argument="paths")
    if rows and len(rows[0]) != len(heading):
        raise InputError(
            f"{file.name}, line 2 has {len(rows[0])} fields, its heading has {len(heading)}.", argument="paths", row=0
        )


def _apart(heading: list[str], kinds: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Names and kinds of all columns, names that occur again made different."""
    seen: set[str] = set()
    for place, name in enumerate(heading):
        yield (name if name and name not in seen else f"{name} ({place})"), kinds[name]
        seen.add(name)


def _kind(cells: list[str]) -> str:
    """What a column holds, by its first cells."""
    known = [cell.strip() for cell in cells if cell not in _NULLS]
    if known and all(re.fullmatch(r"[+-]?\d{1,18}", cell) for cell in known):
        return "BIGINT"
    if known and all(cell.lower() in ("true", "false") for cell in known):
        return "BOOLEAN"
    if known and all(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", cell) for cell in known):
        return "DOUBLE"
    return "VARCHAR"


def _column(array: Any, name: str, file: File) -> _columns.Column:
    """A column of a batch; numbers stay what they are, and nulls are marked."""
    missing = np.asarray(array.is_null()) if array.null_count else None
    if missing is not None and _is_number(array):
        array = array.fill_null(False if str(array.type) == "bool" else 0)
    read = _columns.read(array.to_numpy(zero_copy_only=False), f"{name} in {file.name}")
    return _columns.Column(read.name, read.values, missing if missing is None else missing | read.mask, read.notes)


def _is_number(array: Any) -> bool:
    return str(array.type).startswith(("int", "uint", "float", "double", "half", "bool"))


def _at_its_row(error: InputError, first: int) -> InputError:
    """The error with the row counted from the beginning of the file, not of the batch."""
    if error.row is None or not first:
        return error
    row = error.row + first
    text = re.sub(rf"\brow {error.row}\b", f"row {row}", str(error)).removesuffix(error.hint).rstrip()
    return InputError(text, hint=error.hint, argument=error.argument, row=row, value=error.value)


def _file_error(file: File, names: list[str], error: Exception) -> InputError:
    text = str(error).replace(str(Path(file.path).parent) + "/", "")  # base names only
    line = re.search(r"\bline:? (\d+)", text, flags=re.IGNORECASE)
    if "not found in FROM clause" in text or "Referenced column" in text:
        absent = next((name for name in names if f'"{name}"' in text), names[0])
        return InputError(f"{file.name} has no column {absent!r}.", argument=absent)
    where = f", line {line.group(1)}" if line else ""
    reasons = [
        part for part in text.splitlines() if part.strip() and not part.startswith(("Original Line", "Possible"))
    ]
    reason = reasons[1] if line and len(reasons) > 1 else reasons[0]
    row = None if line is None else int(line.group(1)) - 2  # counted from 0, without the heading
    return InputError(f"{file.name}{where} cannot be read: {reason.strip()}", argument="paths", row=row)
