"""Checksums of Parquet pages, which DuckDB does not verify.

Writers may store the CRC-32 of each page in its header (Spark does), and gzip pages end with one of their own. Other
pages have none: a changed value in them cannot be detected.
"""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

from calibrant.ingest.formats import File, quoted_path

Fields: TypeAlias = dict[int, Any]

_CHUNK = 1 << 20
_HEADERS = (1 << 12, 1 << 24)  # bytes to read for a header; statistics can be long
_DEEPEST = 8  # structs in structs
# Fields of a page header, and of the header of a data page of version 2.
_COMPRESSED_SIZE, _CRC, _VERSION_2 = 3, 4, 8
_DEFINITION_LEVELS, _REPETITION_LEVELS, _IS_COMPRESSED = 5, 6, 7


@dataclass(frozen=True)
class _Chunk:
    """A column chunk: where its pages lie, and how they are compressed."""

    path: str
    compression: str
    dictionary_page_offset: int | None
    data_page_offset: int | None
    size: int


def check_pages(file: File, names: Iterable[str], connection: Any) -> None:
    """Raise an error if a page of the named columns does not have its checksum; `connection` is one to DuckDB."""
    import duckdb

    columns = "path_in_schema, compression, dictionary_page_offset, data_page_offset, total_compressed_size"
    try:  # pyarrow ends the process if it reads the name of an unknown compression
        rows = connection.sql(f"select {columns} from parquet_metadata({quoted_path(file.path)})").fetchall()
    except duckdb.Error:  # about statistics, which are not needed, or an error of the whole file, which follows
        return
    roots = tuple(f"{name}, " for name in names)  # DuckDB joins the names of nested columns so
    with open(file.path, "rb", buffering=0) as stream:
        for chunk in (_Chunk(*row) for row in rows if f"{row[0]}, ".startswith(roots)):
            if not _is_intact(chunk, stream):
                raise file.error(
                    f"a page of column {chunk.path!r} does not have its checksum",
                    hint="The file is damaged; copy it again.",
                )


def _is_intact(chunk: _Chunk, stream: BinaryIO) -> bool:
    """Return whether all pages of a column chunk have the checksums that they state."""
    has_checksum = chunk.compression == "GZIP"
    try:
        for header, first, last in _pages(chunk, stream):
            if _CRC in header:
                has_checksum = True
                if _integer(header, _CRC, 0) & 0xFFFFFFFF != _crc32(stream, first, last):
                    return False
            if chunk.compression == "GZIP" and not _is_gzip(header, stream, first, last):
                return False
    except (IndexError, ValueError):
        # Old writers state other sizes of column chunks; those that write checksums do not.
        return not has_checksum
    return True


def _pages(chunk: _Chunk, stream: BinaryIO) -> Iterator[tuple[Fields, int, int]]:
    """Yield the header of each page in a column chunk, and the range of its bytes."""
    starts = [chunk.dictionary_page_offset, chunk.data_page_offset]
    place = min((start for start in starts if start), default=0)
    last = place + chunk.size
    while place < last:
        header, size = _read_header(stream, place)
        first = place + size
        place = first + _integer(header, _COMPRESSED_SIZE, -1)
        if not first <= place <= last:
            raise ValueError("the sizes of the pages are not those of the column chunk")
        yield header, first, place


def _integer(fields: Fields, number: int, default: int) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise ValueError("a field of a page header is not a number")
    return value


def _read_header(stream: BinaryIO, place: int) -> tuple[Fields, int]:
    for size in _HEADERS:
        stream.seek(place)
        data = stream.read(size)
        try:
            return _Compact(data).read_struct()
        except IndexError:
            if size == _HEADERS[-1] or len(data) < size:
                raise
    raise AssertionError


def _chunks(stream: BinaryIO, first: int, last: int) -> Iterator[bytes]:
    stream.seek(first)
    while first < last and (data := stream.read(min(_CHUNK, last - first))):
        first += len(data)
        yield data


def _crc32(stream: BinaryIO, first: int, last: int) -> int:
    found = 0
    for data in _chunks(stream, first, last):
        found = zlib.crc32(data, found)
    return found


def _is_gzip(header: Fields, stream: BinaryIO, first: int, last: int) -> bool:
    """Return whether a page can be decompressed, which verifies its checksum."""
    version_2 = header.get(_VERSION_2, {})
    if not isinstance(version_2, dict):
        return False
    first += _integer(version_2, _DEFINITION_LEVELS, 0) + _integer(version_2, _REPETITION_LEVELS, 0)  # not compressed
    if first >= last or not version_2.get(_IS_COMPRESSED, True):
        return True
    unpacked = zlib.decompressobj(wbits=31)
    try:
        for data in _chunks(stream, first, last):
            rest = data
            while rest and not unpacked.eof:
                unpacked.decompress(rest, _CHUNK)
                rest = unpacked.unconsumed_tail
    except zlib.error:
        return False
    return unpacked.eof


class _Compact:
    """A struct in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def read_struct(self, depth: int = 0) -> tuple[Fields, int]:
        """Return the fields by number, and the size of the struct in bytes."""
        if depth > _DEEPEST:
            raise ValueError("structs are nested too deeply")
        fields: Fields = {}
        number = 0
        while byte := self._byte():
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            fields[number] = self._value(byte & 15, depth)
        return fields, self.place

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number in a page header is too long")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 12:
            return self.read_struct(depth + 1)[0]
        if kind in (3, 7, 8):  # a byte, a double, or text
            size = {3: 1, 7: 8}.get(kind) or self._unsigned()
            self.place += size
            return None
        raise ValueError(f"page headers have no fields of type {kind}")


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


def parquet_names(file: File) -> list[str]:
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
