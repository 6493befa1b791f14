"""Names of the columns in files."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import InputError, no_column
from calibrant.ingest.formats import File
from calibrant.ingest.text_blocks import LONGEST_LINE, first_line

__all__ = [
    "Header",
    "check_rows",
    "column_names",
    "count_rows",
    "csv_reader",
    "half_columns",
    "json_fault",
    "parquet_errors",
    "partitions",
    "read_header",
]


@dataclass(frozen=True)
class Header:
    """The separator and the names of the columns of a CSV file."""

    mark: str
    names: list[str]


def column_names(file: File) -> list[str]:
    """Return the names of the columns in a file, without those of Hive partitions."""
    if file.format == "parquet":
        return _parquet_names(file)
    return read_header(file).names if file.format == "csv" else _keys(file)


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


def read_header(file: File) -> Header:
    """Return the header of a CSV file."""
    line = first_line(file)
    plain = re.sub(r'"(?:[^"]|"")*"', "", line)  # quoted text has no separators
    mark = max(",;\t|", key=plain.count)
    try:
        return Header(mark, next(csv_reader([line], mark)))
    except csv.Error as error:
        raise InputError(f"The header of {file.name} cannot be read: {error}.", argument="paths") from error


def csv_reader(lines: Iterable[str], mark: str) -> Any:
    """Return Python's reader of CSV; the lengths of lines and cells are limited by `text_blocks`."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))  # Python's own limit is 128 KiB
    return csv.reader(lines, delimiter=mark, strict=True)


def count_rows(file: File) -> int:
    """Return the number of rows in the metadata of a Parquet file."""
    import pyarrow.parquet as pq

    with parquet_errors(file):
        return int(pq.read_metadata(file.path).num_rows)


def check_rows(file: File, found: int, known: int | None = None) -> None:
    """Raise an error if a Parquet file holds another number of rows than its metadata states, by default read again."""
    known = count_rows(file) if known is None else known
    if known != found:
        raise file.error(f"its metadata state {known:,} rows, but {found:,} were found")


def _parquet_names(file: File) -> list[str]:
    import pyarrow.parquet as pq

    with parquet_errors(file):
        return list(pq.read_schema(file.path).names)


def half_columns(file: File) -> list[str]:
    """Return the names of the columns of a Parquet file that are float16."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with parquet_errors(file):
        return [field.name for field in pq.read_schema(file.path) if pa.types.is_float16(field.type)]


@contextmanager
def parquet_errors(file: File) -> Iterator[None]:
    """Name the file in errors of Arrow."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        raise file.error("the name of a column is not UTF-8", hint="The file may be damaged; copy it again.") from error
    except (pa.ArrowException, OSError) as error:
        raise file.error(error) from error


def json_fault(error: Exception) -> str:
    """Return what is wrong with a line of JSON, and where; Python's text counts lines too, of which there is one."""
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}, {error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')}"
    return str(error)


def _keys(file: File) -> list[str]:
    """Return the names in the first object of a file of JSON lines."""
    line = first_line(file)
    try:
        first = json.loads(line, object_pairs_hook=lambda pairs: [name for name, _ in pairs])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file.name}, line 1 must be JSON: {json_fault(error)}.", argument="paths", row=0) from error
    if not isinstance(first, list) or not all(isinstance(name, str) for name in first):
        raise InputError(f"{file.name}, line 1 must be an object with names.", argument="paths", row=0)
    return first
