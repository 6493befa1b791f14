"""`scan`: Parquet, CSV and JSON lines files, read and counted in batches."""

import errno
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from glob import glob
from os import PathLike, curdir, fspath, walk
from os.path import islink, join, realpath
from pathlib import Path
from typing import Any, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools
from calibrant._support.errors import (
    Argument,
    InputError,
    MissingExtraError,
    no_column,
    renamed_options,
)
from calibrant._support.lazy import warn_moved
from calibrant._support.progress import progress_bar
from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.counting import CountOptions, TableOptions, Weighting
from calibrant.ingest.formats import File, Format, guess_format, open_duckdb, quoted_path
from calibrant.ingest.memory import prepare_libraries, read_size, reading_memory
from calibrant.ingest.parquet_checks import check_pages, check_rows, count_rows, half_columns, parquet_names
from calibrant.ingest.table_counter import TableCounter, check_name, check_names
from calibrant.ingest.text_files import csv_tables, json_keys, json_tables, parse_number, read_header
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

_NAME_SHOWN = 60  # characters of a name that is too long
_BATCH = 1 << 20  # rows

Batch: TypeAlias = dict[str, _columns.ColumnData]
Paths: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]]


class FileOptions(TableOptions, total=False):
    """The options of `scan` on which the type of its result does not depend."""

    format: Format | None
    max_memory: int | str | None
    progress: bool | None


@overload
def scan(paths: Paths, *, y: str, p: str, by: None = None, **options: Unpack[FileOptions]) -> ScoreTable: ...
@overload
def scan(
    paths: Paths, *, y: str, p: str | Sequence[str], by: str | Sequence[str], **options: Unpack[FileOptions]
) -> Tables: ...
@overload
def scan(
    paths: Paths, *, y: str, p: list[str] | tuple[str, ...], by: None = None, **options: Unpack[FileOptions]
) -> Tables: ...
@renamed_options(memory_limit="max_memory")
def scan(
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
    max_memory: int | str | None = None,
    progress: bool | None = None,
) -> ScoreTable | Tables:
    r"""Count the outcomes and scores in files, as a whole or by model and group; each file is read once, not loaded.

    Parameters
    ----------
    paths : path, pattern, folder, or several
        ``"scores/*.parquet"``, ``"scores/"`` (all files below it), ``["a.csv", "b.csv"]``. Hive partitions
        (``day=2026-11-15/part.parquet``) are columns. Only local files are read.
    y : str
        Name of the column of outcomes.
    p : str or list of str
        Name of the column of scores, or a list with one name per model.
    by : str or list of str, optional
        The columns that split the rows into groups; Hive partitions are columns.
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
    max_memory : int or str, optional
        Memory for reading and counting, in bytes or as text such as "2GB"; by default the free memory.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    ScoreTable or Tables
        One table, bitwise identical to `ScoreTable.from_arrays` of the rows. With `by`, or with a list of models,
        `Tables`: ``tables[model, group]``, with groups in sorted order.

    See Also
    --------
    from_frame, from_query, ScoreTable, Tables

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("day,y,p\nmon,0,0.2\nmon,1,0.7\ntue,1,0.7\n")
    ...     table, days = scan(path, y="y", p="p"), scan(path, y="y", p="p", by="day")
    >>> table.score, table.n, table.k
    (array([0.2, 0.7]), array([1, 2]), array([0, 2]))
    >>> days["p", "mon"].size, days["p", "tue"].size
    (2, 1)
    """
    check_name(y, "y")
    for argument, name in (("sample_weight", sample_weight), ("frequency", frequency)):
        if name is not None:
            check_name(name, argument)
    memory = read_size(max_memory)
    models, keys = check_names(p, "p"), [] if by is None else check_names(by, "by")
    weighting = Weighting.named(sample_weight, frequency)
    counter = TableCounter(y, models, keys, weighting, CountOptions(pos_label, missing, resolution), memory)
    files = find_files(paths, format)
    reader = FileReader(files, counter.names, counter.numbers, memory)
    counter.expected = reader.rows
    # The text of an event is compared with the text of labels.
    for batch in reader.batches(progress, labels=not isinstance(pos_label, str)):
        reader.check_labels()
        counter.add(batch)
    tables = counter.tables()
    return tables.total() if by is None and isinstance(p, str) else tables


def tables_scan(paths: Paths, *, p: str | Sequence[str], **options: Any) -> Tables:
    """Count files by model and group; deprecated: use `scan` with `by` or a list of models."""
    warn_moved("calibrant.tables_scan", "calibrant.scan(by=...)")
    return scan(paths, p=[p] if isinstance(p, str) else list(p), **options)


def read_columns(
    paths: Paths,
    names: list[str],
    numbers: list[str],
    *,
    labels: bool = True,
    format: Format | None = None,
    max_memory: int | None = None,
    progress: bool | None = None,
) -> Batch:
    """Read the named columns of files.

    `labels`: text in the first column, if it is not of a Parquet file, is read as numbers or truth values where all
    text can be; otherwise text stays text.
    """
    files = find_files(paths, format)
    reader = FileReader(files, names, numbers, max_memory)
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


@dataclass(frozen=True)
class _Part:
    """A file, its version, and those of the columns that are Hive partitions or float16."""

    file: File
    version: tuple[int, ...]
    partitions: list[str]
    halves: list[str]

    @classmethod
    def checked(cls, file: File, names: list[str]) -> "_Part":
        """Check the header of a file."""
        version = file.version()
        found = partitions(file, names, column_names(file))
        halves = half_columns(file) if file.format == "parquet" else []
        return cls(file, version, found, [name for name in names if name in halves])

    @contextmanager
    def read(self) -> Iterator[None]:
        """Raise an error if the file is replaced while it is read, or changed if it is Parquet.

        Lines may be added to a text file. Other errors of a file that changed in any way come from that.
        """
        try:
            yield
        except InputError as error:
            if self.file.version() != self.version:
                raise self.changed() from error
            raise
        kept = 4 if self.file.format == "parquet" else 2
        if self.file.version()[:kept] != self.version[:kept]:
            raise self.changed()

    def changed(self) -> InputError:
        """Return the error of a file that changed while it was read."""
        return self.file.error("it was replaced or changed meanwhile", hint="Read it again.")


class FileReader:
    """Reads the named columns of files; all headers are checked first."""

    def __init__(self, files: list[File], names: list[str], numbers: list[str], max_memory: int | None = None) -> None:
        self.names = names
        self.numbers = numbers
        self.memory_limit: str = reading_memory(max_memory)
        _check_libraries(files)
        self._parts = [_Part.checked(file, names) for file in files]
        known = [count_rows(file) for file in files if file.format == "parquet"]
        # Types of labels in text files, and the first column of each.
        self._label_types: dict[str, _columns.ColumnData] = {}
        self._sizes: dict[str, int] = {}  # rows of each text file that was read to its end
        # The first column with a value, and its file, of each name that is neither the first one nor of numbers.
        self._first: dict[str, tuple[_columns.ColumnData, _Part]] = {}
        self.rows: int | None = (
            sum(known) if len(known) == len(files) else None
        )  # number of rows, if all files are Parquet

    def batches(self, show: bool | None, *, labels: bool = True) -> Iterator[Batch]:
        """Yield all batches; a progress bar counts batches, or files if their rows are not known.

        `labels`: text in the first column, if it is not of a Parquet file, is read as numbers or truth values where all
        text of a batch can be; see `check_labels`.
        """
        self._label_types.clear()
        if self.rows is None:
            for part in progress_bar(self._parts, len(self._parts), "files", show=show):
                yield from self._read(part, labels)
            return
        every = (batch for part in self._parts for batch in self._read(part, labels))
        yield from progress_bar(every, -(-self.rows // _BATCH), "batches", show=show)

    @property
    def has_mixed_labels(self) -> bool:
        """Whether the labels of the batches so far were not all read as numbers, as truth values or as text."""
        return len(self._label_types) > 1

    def check_labels(self) -> None:
        """Raise an error if labels were read as different types, which depend on the rows of a batch."""
        if self.has_mixed_labels:
            (first, _), (other, column) = list(self._label_types.items())[:2]
            raise column.error(
                f"must hold labels of one type in all rows; got {other} after {first}.",
                hint="Write the label of the event as text in " + Argument("pos_label") + ": all labels are then text.",
            )

    def _note_type(self, column: _columns.ColumnData) -> None:
        if column.missing is None or not column.missing.all():
            kind = {"b": "truth values", "O": "text"}.get(column.values.dtype.kind, "numbers")
            self._label_types.setdefault(kind, column)

    def _check_types(self, batch: Batch, part: _Part, labels: bool) -> None:
        if labels and part.file.format != "parquet":
            self._note_type(batch[self.names[0]])
        for name in self.names[1:]:
            if name not in self.numbers:
                self._check_type(name, batch[name], part)

    def _check_type(self, name: str, column: _columns.ColumnData, part: _Part) -> None:
        """Raise an error if a column has another type in another file; values of partitions may be of any type."""
        if _type_name(column) is None:
            return
        row = int(np.argmin(column.mask))
        first, other = self._first.setdefault(name, (column.part(slice(row, row + 1)), part))
        if not (name in part.partitions and name in other.partitions):
            check_types([first, column])

    def _read(self, part: _Part, labels: bool) -> Iterator[Batch]:
        """Yield the columns of a file in batches; lines that were added to it since it was read before are left out."""
        first, most = 0, self._sizes.get(part.file.path)
        with part.read():
            for whole in self._arrow(part):
                if first == most:
                    break
                batch = whole if most is None else whole.slice(0, most - first)
                # The first column is y. Groups stay text, so that 007 is not 7.
                columns = zip(self.names, batch.columns, strict=True)
                read = {name: _column(cells, name, part, labels and name == self.names[0]) for name, cells in columns}
                self._check_types(read, part, labels)
                yield {name: replace(column, first_row=first) for name, column in read.items()}
                first += batch.num_rows
            if part.file.format == "parquet":
                check_rows(part.file, first)
            elif first < self._sizes.setdefault(part.file.path, first):
                raise part.changed()

    def _arrow(self, part: _Part) -> Iterator[Any]:
        """Yield Arrow batches of a file."""
        if part.file.format == "parquet":
            yield from self._parquet(part)
            return
        own = [name for name in self.names if name not in part.partitions]
        if part.file.format == "csv":
            tables = csv_tables(part.file, own, self.numbers)
        else:
            tables = json_tables(part.file, own, self.numbers, self.memory_limit)
        yield from _join_batches(self._with_partitions(tables, part))

    def _parquet(self, part: _Part) -> Iterator[Any]:
        names = ", ".join(map(DIALECTS["duckdb"].name, self.names))
        path = quoted_path(part.file.path)
        hive = str(bool(part.partitions)).lower()
        with open_duckdb(part.file, self.memory_limit) as connection:
            check_pages(part.file, self.names, connection)
            relation = connection.sql(f"select {names} from read_parquet({path}, hive_partitioning = {hive})")
            new = hasattr(relation, "to_arrow_reader")  # DuckDB 2 has another name for it
            yield from relation.to_arrow_reader(_BATCH) if new else relation.fetch_arrow_reader(_BATCH)

    def _with_partitions(self, tables: Iterator[Any], part: _Part) -> Iterator[Any]:
        """Yield tables with all columns; the value of a partition is repeated."""
        import pyarrow as pa

        values = self._partition_values(part)
        for table in tables:
            columns = {
                name: pa.repeat(values[name], table.num_rows) if name in values else table.column(name)
                for name in self.names
            }
            yield pa.table(columns)

    def _partition_values(self, part: _Part) -> dict[str, Any]:
        """Return the values of Hive partitions, with the types that DuckDB gives to those of Parquet files."""
        if not part.partitions:
            return {}
        names = ", ".join(map(DIALECTS["duckdb"].name, part.partitions))
        folders = [folder for folder in Path(part.file.path).parts[:-1] if "=" in folder]
        with tempfile.TemporaryDirectory(prefix="calibrant-") as root:
            path = Path(root).joinpath(*folders, "one.csv")
            path.parent.mkdir(parents=True)
            path.write_text("one\n1\n", encoding="utf-8")
            source = f"read_csv({quoted_path(str(path))}, hive_partitioning = true, columns = {{'one': 'VARCHAR'}})"
            with open_duckdb(part.file, self.memory_limit) as connection:
                table = connection.sql(f"select {names} from {source}").to_arrow_table()
        return {name: table.column(name)[0] for name in part.partitions}


def check_types(columns: Sequence[_columns.ColumnData]) -> None:
    """Raise an error unless columns have one type in all files: text and numbers that look alike are not equal."""
    typed = [(column, kind) for column in columns if (kind := _type_name(column)) is not None]
    for column, kind in typed[1:]:
        first, expected = typed[0]
        if kind != expected:
            raise column.error(
                f"must have the type of {first.name}, which holds {expected}; got {kind}.",
                hint="A column must have one type in all files: convert it in some of them.",
            )


def _type_name(column: _columns.ColumnData) -> str | None:
    """Return what a column holds; None if all its cells are missing. Truth values are numbers: True equals 1."""
    if column.mask.all():
        return None
    kind, cell = column.values.dtype.kind, column.values[int(np.argmin(column.mask))]
    if kind in "biuf" or isinstance(cell, Decimal):
        return "numbers"
    return "text" if isinstance(cell, str) else {"M": "times", "m": "durations"}.get(kind, type(cell).__name__)


def _join_batches(tables: Iterator[Any]) -> Iterator[Any]:
    """Yield batches of `_BATCH` rows."""
    import pyarrow as pa

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(each.num_rows for each in held) >= _BATCH:
            whole = pa.concat_tables(held)
            count = whole.num_rows // _BATCH * _BATCH
            yield from _whole_batches(whole.slice(0, count))
            held = [whole.slice(count)]
    yield from _whole_batches(pa.concat_tables(held)) if held else ()


def _whole_batches(table: Any) -> Iterator[Any]:
    """Yield batches of `_BATCH` rows of a table, at most."""
    for first in range(0, table.num_rows, _BATCH):
        yield from table.slice(first, _BATCH).combine_chunks().to_batches()


def _check_libraries(files: list[File]) -> None:
    """Check that the libraries are installed; CSV files without Hive partitions do not need DuckDB."""
    prepare_libraries()
    try:
        import pyarrow  # noqa: F401

        if any(file.format != "csv" for file in files):
            import duckdb  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("Reading files needs DuckDB and pyarrow", "files", name=error.name) from error


def _halves(array: Any) -> Any:
    """Return the float16 numbers of cells of two bytes, as which DuckDB 1.2 reads them."""
    import pyarrow as pa

    return array.cast(pa.binary(2)).view(pa.float16())


def _column(array: Any, name: str, part: _Part, labels: bool) -> _columns.ColumnData:
    """Read a column of a batch; labels that are written as text become numbers or booleans if all of them are."""
    if name in part.halves and "binary" in str(array.type):
        array = _halves(array)
    missing = missing_cells(array)
    text = labels and part.file.format != "parquet" and "string" in str(array.type)
    values = parse_labels(array, missing) if text else read_values(array, missing)
    if name in part.halves:  # DuckDB reads float16 as float32 (1.3 and later)
        values = values.astype(np.float16)
    return _columns.read(values, f"{name} in {part.file.name}", missing=missing)


_NUMBERS = {"float": "float32", "double": "float64", "halffloat": "float16"} | {
    f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}


def missing_cells(array: Any) -> Bools | None:
    """Return the mask of null cells; None if there are none."""
    if not array.null_count:
        return None
    valid = array.buffers()[0]
    return np.ones(len(array), dtype=bool) if valid is None else ~_bits(valid, array.offset, len(array))


def read_values(array: Any, missing: Bools | None) -> NDArray[Any]:
    """Return the values; null cells are 0, False or None."""
    kind = str(array.type)
    if kind in _NUMBERS:
        return _filled(_slice(array, np.dtype(_NUMBERS[kind])), missing)
    if kind == "bool":
        return _filled(_bits(array.buffers()[1], array.offset, len(array)), missing)
    if kind in ("string", "large_string"):
        words, codes = _encode(array)
        return _select(np.array([*words, None], dtype=object), codes, missing)
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values


def parse_labels(array: Any, missing: Bools | None) -> NDArray[Any]:
    """Return text as booleans or numbers if all of it can be read so, else as text."""
    digits = _single_digits(array)
    if digits is not None:
        return digits
    words, codes = _encode(array)
    values: NDArray[Any] = np.array([*words, None], dtype=object)
    if words and all(word.lower() in ("true", "false") for word in words):
        values = np.array([*(word.lower() == "true" for word in words), False])
    elif words:
        numbers = [parse_number(word.strip()) for word in words]
        values = values if None in numbers else np.array([*numbers, 0.0], dtype=np.float64)
    return _select(values, codes, missing)


def _single_digits(array: Any) -> NDArray[Any] | None:
    """Return text of one digit per cell as numbers: the usual labels, for which a dictionary takes ten times longer."""
    if str(array.type) != "string" or array.null_count or not len(array):
        return None
    _, places, text = array.buffers()
    start = np.frombuffer(places, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    if start[-1] - start[0] != len(array) or not (np.diff(start) == 1).all():
        return None
    digit = np.frombuffer(text, dtype=np.uint8)[start[0] : start[-1]] - np.uint8(ord("0"))  # wraps below 0
    return digit.view(np.int8) if (digit <= 9).all() else None


def _encode(array: Any) -> tuple[list[str], NDArray[Any]]:
    """Return the distinct words, and the index of the word of each cell; that of null cells is arbitrary."""
    encoded = array.dictionary_encode()
    return encoded.dictionary.to_pylist(), _slice(encoded.indices, np.dtype(np.int32))


def _select(values: NDArray[Any], codes: NDArray[Any], missing: Bools | None) -> NDArray[Any]:
    """Return values by index; the last one in missing cells."""
    chosen: NDArray[Any] = values[codes if missing is None else np.where(missing, len(values) - 1, codes)]
    return chosen


def _slice(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    data = array.buffers()[1]
    return np.frombuffer(data or b"", dtype=dtype)[array.offset : array.offset + len(array)]


def _bits(data: Any, offset: int, size: int) -> Bools:
    octets = np.frombuffer(data or b"", dtype=np.uint8)
    return np.unpackbits(octets, count=offset + size, bitorder="little")[offset:].astype(bool)


def _filled(values: NDArray[Any], missing: Bools | None) -> NDArray[Any]:
    return values if missing is None else np.where(missing, values.dtype.type(0), values)


def column_names(file: File) -> list[str]:
    """Return the names of the columns in a file, without those of Hive partitions."""
    if file.format == "parquet":
        return parquet_names(file)
    return read_header(file).names if file.format == "csv" else json_keys(file)


def partitions(file: File, names: list[str], there: list[str]) -> list[str]:
    """Return the names that are Hive partitions; each name must denote one column. Names are case-sensitive."""
    folders = _folders(file, names)
    known, alike = Counter(there), Counter(map(str.lower, there))
    for name in names:
        if known[name] > 1:
            raise InputError(f"{file.name} has two columns named {name!r}.", argument="paths")
        if known[name] and alike[name.lower()] > 1 and file.format != "csv":
            other = next(other for other in there if other != name and other.lower() == name.lower())
            raise InputError(
                f"{file.name} has the columns {name!r} and {other!r}, which DuckDB does not distinguish.",
                hint="Rename one of them.",
                argument="paths",
            )
        if known[name] and name in folders:
            raise InputError(
                f"{file.name} has a column {name!r}, and lies in a folder {name}={folders[name]}.", argument="paths"
            )
        if not known[name] and name not in folders:
            raise no_column(name, [*there, *folders], file.name)
    return [name for name in names if name in folders]


def _folders(file: File, names: list[str]) -> dict[str, str]:
    """Return the names and values of the Hive folders of a file; a folder of a named column must be clear."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"([^/\\=]+)=([^/\\]*)[/\\]", file.path):
        if name in names and name in found:
            raise InputError(
                f"{file.name} lies in two folders of {name!r}: {name}={found[name]} and {name}={value}.",
                hint="Rename one of them.",
                argument="paths",
            )
        if name in names and "=" in value:
            raise InputError(
                f"A folder of {name!r} must have one =; got '{name}={value}'.", hint="Write %3D.", argument="paths"
            )
        found[name] = value
    return found
