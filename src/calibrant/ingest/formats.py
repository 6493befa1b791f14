"""Formats of files: names of columns, and the query that reads the columns that are needed.

Types are declared, never inferred from the first rows, so that a later row of another type is an error.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

from calibrant._support.columns import NULLS
from calibrant._support.errors import Argument, InputError, no_column

__all__ = ["File", "Format", "column_names", "guess_format", "read_header", "source_query", "text_stream"]

Format: TypeAlias = Literal["parquet", "csv", "json"]

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
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_LONGEST_LINE = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class File:
    """A file and its format."""

    path: str
    format: Format

    @property
    def name(self) -> str:
        """Base name, for messages."""
        return Path(self.path).name

    @staticmethod
    def known(path: Path) -> bool:
        """Return whether the suffix is that of a known format."""
        return _format(path) is not None


def _format(path: Path) -> Format | None:
    endings = [suffix.lower() for suffix in path.suffixes]
    endings = endings[:-1] if endings and endings[-1] in _PACKED else endings
    return _SUFFIXES.get(endings[-1]) if endings else None


def guess_format(path: str) -> Format:
    """Return the format of the suffix of a file."""
    found = _format(Path(path))
    if found is None:
        raise InputError(
            f"The suffix of {Path(path).name!r} must be that of a known format.",
            hint="Pass " + Argument("format") + ": parquet, csv or json.",
            argument="format",
        )
    return found


def column_names(file: File) -> list[str]:
    """Return the names of the columns in a file, without those of Hive partitions."""
    if file.format == "parquet":
        return _parquet_names(file)
    return read_header(file)[1] if file.format == "csv" else _keys(file)


def source_query(file: File, names: list[str], numbers: list[str]) -> str:
    """Return the query for the named columns; names are case-sensitive."""
    there = column_names(file)
    partitions = dict(re.findall(r"([^/\\=]+)=([^/\\]*)[/\\]", file.path))
    hive = _check_names(file, names, there, partitions)
    path, options = _text(_literal(file.path)), f"hive_partitioning = {str(hive).lower()}"
    if file.format == "parquet":
        source = f"read_parquet({path}, {options})"
    elif file.format == "csv":
        source = f"read_csv({path}, {options}, {_csv_options(there, numbers, read_header(file)[0])})"
    else:
        own = {name: "JSON" if name in numbers else "VARCHAR" for name in names if name in there}
        source = f"read_json({path}, {options}, format = 'newline_delimited', columns = {_struct(own)})"
    chosen = (_json_number(name) if file.format == "json" and name in numbers else _quoted(name) for name in names)
    return f"select {', '.join(chosen)} from {source}"


def _check_names(file: File, names: list[str], there: list[str], partitions: dict[str, str]) -> bool:
    """Return whether a folder of the path is one of the columns; each name must denote one column."""
    hive = False
    for name in names:
        alike = [other for other in there if other.lower() == name.lower()]
        if there.count(name) > 1:
            raise InputError(f"{file.name} has two columns named {name!r}.", argument="paths")
        if name in there and len(alike) > 1:
            other = next(other for other in alike if other != name)
            raise InputError(
                f"{file.name} has the columns {name!r} and {other!r}, which DuckDB does not distinguish.",
                hint="Rename one of them.",
                argument="paths",
            )
        if name in there and name in partitions:
            raise InputError(
                f"{file.name} has a column {name!r}, and lies in a folder {name}={partitions[name]}.", argument="paths"
            )
        if name not in there and name not in partitions:
            raise no_column(name, [*there, *partitions], file.name)
        hive |= name in partitions
    return hive


def _parquet_names(file: File) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(file.path).names)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].replace(str(Path(file.path).parent) + "/", "")
        raise InputError(f"{file.name} cannot be read: {reason}", argument="paths") from error


def _first_line(file: File) -> str:
    """Return the first line of a text file that may be compressed."""
    import pyarrow as pa

    try:
        with pa.input_stream(file.path, compression=_PACKED.get(Path(file.path).suffix.lower())) as stream:
            head: bytes = stream.read(_LONGEST_LINE)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].replace(str(Path(file.path).parent) + "/", "")
        raise InputError(f"{file.name} cannot be read: {reason}", argument="paths") from error
    if head.startswith(_UTF16):
        raise InputError(
            f"{file.name} is UTF-16.",
            hint="Convert it to UTF-8 first (on the command line: --encoding utf-16).",
            argument="paths",
        )
    if not head.strip():
        raise InputError(f"{file.name} is empty.", argument="paths")
    line = re.split(rb"[\r\n]", head.removeprefix(codecs.BOM_UTF8), maxsplit=1)[0]
    if not line.strip():
        raise InputError(f"{file.name} must begin with a header; got a blank line.", argument="paths")
    return line.decode("utf-8", errors="replace")


@contextmanager
def text_stream(file: File) -> Iterator[TextIO]:
    """Open a text file that may be compressed, without a byte-order mark; line ends are not converted."""
    import pyarrow as pa

    with (
        pa.input_stream(file.path, compression=_PACKED.get(Path(file.path).suffix.lower())) as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text,
    ):
        yield text


def read_header(file: File) -> tuple[str, list[str]]:
    """Return the separator and the names of the columns of a CSV file."""
    line = _first_line(file)
    plain = re.sub(r'"(?:[^"]|"")*"', "", line)  # quoted text has no separators
    mark = max(",;\t|", key=plain.count)
    try:
        return mark, next(csv.reader([line], delimiter=mark))
    except csv.Error as error:
        raise InputError(f"The header of {file.name} cannot be read: {error}.", argument="paths") from error


def _keys(file: File) -> list[str]:
    """Return the names in the first object of a file of JSON lines."""
    try:
        first = json.loads(_first_line(file), object_pairs_hook=lambda pairs: [name for name, _ in pairs])
    except ValueError as error:
        raise InputError(f"{file.name}, line 1 must be JSON: {error}.", argument="paths", row=0) from error
    if not isinstance(first, list) or not all(isinstance(name, str) for name in first):
        raise InputError(f"{file.name}, line 1 must be an object with names.", argument="paths", row=0)
    return first


def _csv_options(header: list[str], numbers: list[str], mark: str) -> str:
    kinds: dict[str, str] = {}
    for place, name in enumerate(header):
        known = {other.lower() for other in kinds}
        own = name if name and name.lower() not in known else f"{name} ({place})"
        kinds[own] = "DOUBLE" if own in numbers else "VARCHAR"
    nulls = ", ".join(map(_text, NULLS))
    return (
        f"auto_detect = false, header = true, strict_mode = true, delim = {_text(mark)}, quote = '\"', escape = '\"', "
        f"nullstr = [{nulls}], max_line_size = {_LONGEST_LINE}, columns = {_struct(kinds)}"
    )


def _json_number(name: str) -> str:
    """Return the SQL for a JSON cell as a number; text is an error, even if it looks like a number."""
    cell = _quoted(name)
    wrong = f"error({_text(name + ' must hold numbers; it holds ')} || {cell}::varchar)"
    number = f"json_type({cell}) in ('DOUBLE', 'BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT')"
    nothing = f"{cell} is null or json_type({cell}) = 'NULL'"
    return f"case when {nothing} then null when {number} then {cell}::double else {wrong} end as {cell}"


def _struct(kinds: dict[str, str]) -> str:
    return "{" + ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in kinds.items()) + "}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: str) -> str:
    """Return a path in which DuckDB finds no pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _text(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"
