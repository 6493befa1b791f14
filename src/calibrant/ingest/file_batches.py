"""Batches of columns of files: Parquet read by DuckDB, CSV by Arrow, JSON lines by DuckDB."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError, MissingExtraError
from calibrant._support.progress import progress_bar
from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.arrow_arrays import missing_cells, parse_labels, read_values
from calibrant.ingest.csv_rows import csv_tables
from calibrant.ingest.duckdb_connection import open_duckdb, quoted_path
from calibrant.ingest.formats import File
from calibrant.ingest.headers import check_rows, column_names, count_rows, half_columns, partitions
from calibrant.ingest.json_rows import json_tables
from calibrant.ingest.memory import prepare_libraries
from calibrant.ingest.parquet_pages import check_pages

__all__ = ["Batch", "FileReader", "check_types"]

Batch: TypeAlias = dict[str, _columns.ColumnData]

_BATCH = 1 << 20


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

    def __init__(self, files: list[File], names: list[str], numbers: list[str], memory_limit: str) -> None:
        self.names, self.numbers, self.memory_limit = names, numbers, memory_limit
        _check_libraries(files)
        self._parts = [_Part.checked(file, names) for file in files]
        known = [count_rows(file) for file in files if file.format == "parquet"]
        # Types of labels in text files, and the first column of each.
        self._label_types: dict[str, _columns.ColumnData] = {}
        self._sizes: dict[str, int] = {}  # rows of each text file that was read to its end
        # The first column with a value, and its file, of each name that is neither the first one nor of numbers.
        self._first: dict[str, tuple[_columns.ColumnData, _Part]] = {}
        self.rows = sum(known) if len(known) == len(files) else None  # number of rows, if all files are Parquet

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
