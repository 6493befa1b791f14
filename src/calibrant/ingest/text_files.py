"""Text files: blocks of whole records, headers, the rows of CSV, and those of JSON lines.

CSV is parsed by Arrow block by block, and by Python where Arrow refuses a block. Types are declared, never inferred
from the first rows, and the rows of each block must be as many as its records, which are counted apart. JSON lines are
parsed by DuckDB, from blocks of lines as Arrow text.

All compressed text passes through one decompressor, `byte_chunks`. It verifies that each gzip member and zstd frame
ends, the checksum and the length of gzip, and the content checksum of zstd if the frame has one. Bytes after the end
are an error.
"""

import codecs
import collections
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import Bools
from calibrant._support.errors import InputError
from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.formats import File, binary_format, open_duckdb, quoted_text
from calibrant.ingest.memory import address_space_left

# Missing values in a CSV file, read or scored.
NULLS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")

LONGEST_LINE = 16 << 20  # bytes of one line; of one record where quoted cells hold line ends
LONGEST_CELL = 1 << 20  # bytes of one cell of CSV; a line of thousands of cells may be longer
_CHUNK = 8 << 20
_HEAD = 1 << 16
_LF, _CR, _QUOTE = 10, 13, 34
# The marks of UTF-32 come first: one of them begins with a mark of UTF-16.
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass(frozen=True)
class Block:
    """Whole records of a text file.

    Attributes
    ----------
    data : bytes-like
    first_line : int
        Number of the first line in the file, from 1.
    lines, rows : int
        Number of lines, and of records; blank lines are not records.
    quoted : bool
        Whether there are quotes.
    regular : bool
        Whether each quoted cell begins after a separator and ends before one.
    long : bool
        Whether a record is so long that a cell may exceed `LONGEST_CELL`.
    """

    data: memoryview
    first_line: int
    lines: int
    rows: int
    quoted: bool = False
    regular: bool = True
    long: bool = False


def byte_chunks(file: File, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file that may be compressed; a truncated or damaged file is an error that names it."""
    import pyarrow as pa

    try:
        with pa.input_stream(file.path, compression=file.compression) as stream:
            while chunk := stream.read(size):
                yield chunk
    except (pa.ArrowException, OSError) as error:
        damaged = file.compression is not None and getattr(error, "errno", None) is None
        raise file.error(error, hint="The file is truncated or damaged; copy it again." if damaged else "") from error


def first_line(file: File) -> str:
    """Return the first line of a text file, without a byte-order mark."""
    parts, size, after = [], 0, b""
    for chunk in byte_chunks(file, _HEAD):
        end = re.search(rb"[\r\n]", chunk)
        parts.append(chunk[: end.start()] if end else chunk)
        size += len(parts[-1])
        if end or size > LONGEST_LINE + len(codecs.BOM_UTF8):
            after = chunk[len(parts[-1]) :]
            break
    head = b"".join(parts)
    _check_text(file, head)
    line = head.removeprefix(codecs.BOM_UTF8)
    if len(line) > LONGEST_LINE:
        raise _too_long(file, 1)
    if not line.strip():
        if not after.strip():
            raise InputError(f"{file.name} is empty.", argument="paths")
        raise InputError(f"{file.name} must begin with a header; got a blank line.", argument="paths")
    return line.decode("utf-8", errors="replace")


def _check_text(file: File, head: bytes) -> None:
    """Raise an error if the first bytes are the mark of another format or encoding."""
    binary = binary_format(head)
    if binary is not None:
        hint = "Convert it to CSV or Parquet first." if binary[1] is None else f"Let its name end with {binary[1]}."
        raise InputError(f"{file.name} must hold text; it holds {binary[0]}.", hint=hint, argument="paths")
    found = next((name for mark, name in _OTHER_ENCODINGS.items() if head.startswith(mark)), None)
    if found is not None:
        raise InputError(
            f"{file.name} is {found}.",
            hint=f"Convert it to UTF-8 first (on the command line: --encoding {found.lower()}).",
            argument="paths",
        )


def line_blocks(file: File) -> Iterator[Block]:
    """Yield whole lines, each a record."""
    return _blocks(file, _line_ends)


def csv_blocks(file: File, mark: str, *, blank_rows: bool) -> Iterator[Block]:
    """Yield whole records of a CSV file, with the header; a quoted cell may hold line ends.

    `blank_rows`: a blank line is a record, as in a file of one column.
    """
    return _blocks(file, lambda data, final: _csv_ends(data, final, mark, blank_rows))


@dataclass(frozen=True)
class _Ends:
    """The end of the last whole record, and the number of lines and records before it."""

    cut: int
    lines: int
    rows: int
    quoted: bool = False
    regular: bool = True
    long: bool = False  # a record is longer than a cell may be
    is_open: bool = False  # the last quoted cell does not end

    def block(self, data: memoryview, first_line: int) -> Block:
        """Return the records before the cut."""
        return Block(data, first_line, self.lines, self.rows, self.quoted, self.regular, self.long)


def _blocks(file: File, find_ends: Callable[[bytes, bool], _Ends]) -> Iterator[Block]:
    rest, line, start = b"", 1, True
    for chunk in byte_chunks(file, _CHUNK):
        data = (rest + chunk).removeprefix(codecs.BOM_UTF8) if start else rest + chunk
        start = False
        if not data:
            continue
        found = find_ends(data, False)
        # Only a record that began in an earlier chunk can be longer than the limit.
        first = find_ends(data[:LONGEST_LINE], False).cut if len(data) > LONGEST_LINE else found.cut
        if len(data) > LONGEST_LINE and not first:
            raise _too_long(file, line)
        if found.cut:
            yield found.block(memoryview(data)[: found.cut], line)
        rest, line = data[found.cut :], line + found.lines
    if rest:
        found = find_ends(rest, True)
        if found.is_open:
            raise file.error("a quoted cell does not end", line=line)
        yield found.block(memoryview(rest), line)


def _too_long(file: File, line: int) -> InputError:
    return InputError(
        f"{file.name}, line {line} must have at most {LONGEST_LINE:,} bytes; it has more.", argument="paths"
    )


def _line_ends(data: bytes, final: bool) -> _Ends:
    cut = len(data) if final else data.rfind(b"\n") + 1
    lines = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8, count=cut) == _LF))
    lines += final and not data.endswith(b"\n")
    return _Ends(cut, lines, lines, long=_has_long_line(data, cut))


def _has_long_line(data: bytes, cut: int) -> bool:
    """Return whether a line may be longer than a cell: it fills half of that length, at a multiple of it."""
    half = LONGEST_CELL // 2
    return any(data.find(b"\n", start, start + half) < 0 for start in range(0, cut - half + 1, half))


def _csv_ends(data: bytes, final: bool, mark: str, blank_rows: bool) -> _Ends:
    if (not final and b"\n" not in data) or any(data.find(each) >= 0 for each in (b'"', b"\r")):
        return _scan_ends(data, final, mark, blank_rows)
    is_end = np.frombuffer(data, dtype=np.uint8) == _LF
    if is_end[0] or (is_end[1:] & is_end[:-1]).any():  # blank lines
        return _scan_ends(data, final, mark, blank_rows)
    return _line_ends(data, final)


def _scan_ends(data: bytes, final: bool, mark: str, blank_rows: bool) -> _Ends:
    """Find the ends of records where there are quotes, blank lines, or lines that end with CR."""
    octets = np.frombuffer(data, dtype=np.uint8)
    is_end = octets == _LF
    lone = octets == _CR
    lone[:-1] &= ~is_end[1:]
    lone[-1] &= final  # LF may follow
    line_ends = is_end | lone
    quoted, regular, is_open = b'"' in data, True, False
    if quoted:
        inside, regular = _quoted_cells(data, octets, ord(mark))
        is_end, is_open = line_ends & ~inside, bool(inside[-1])
    else:
        is_end = line_ends
    ends = np.flatnonzero(is_end)
    if final and (not ends.size or ends[-1] + 1 < octets.size):
        ends = np.append(ends, octets.size)
    if not ends.size:
        return _Ends(0, 0, 0)
    cut = min(int(ends[-1]) + 1, octets.size)
    lengths = np.diff(ends, prepend=-1) - 1
    ended_by_two = (octets[np.minimum(ends, octets.size - 1)] == _LF) & (octets[np.maximum(ends - 1, 0)] == _CR)
    blank = 0 if blank_rows else int(((lengths - (ended_by_two & (lengths > 0))) == 0).sum())
    lines = int(line_ends[:cut].sum()) + (ends[-1] == octets.size)
    long = bool((lengths > LONGEST_CELL).any())
    return _Ends(cut, int(lines), ends.size - blank, quoted, regular, long, is_open)


def _quoted_cells(data: bytes, octets: NDArray[np.uint8], mark: int) -> tuple[Bools, bool]:
    """Return the mask of bytes in quoted cells, with the quote at the start, and whether all quotes are regular.

    A quote begins a cell after a separator and ends it before one; inside, two quotes are one. If all quotes are so,
    their parity decides. A quote elsewhere belongs to the text of an unquoted cell.
    """
    places = np.flatnonzero(octets == _QUOTE)
    begins, ends = places[0::2], places[1::2]
    around = np.zeros(256, dtype=bool)
    around[[mark, _LF, _CR, _QUOTE]] = True
    before, after = begins[begins > 0] - 1, ends[ends < octets.size - 1] + 1
    if around[octets[before]].all() and around[octets[after]].all():
        return (np.cumsum(octets == _QUOTE, dtype=np.uint8) & 1).astype(bool), True
    inside = np.zeros(octets.size, dtype=bool)
    separator = re.escape(bytes([mark]))
    for cell in re.finditer(rb"(?:(?<=[\r\n" + separator + rb'])|\A)"[^"]*(?:""[^"]*)*("|\Z)', data):
        inside[cell.start() : cell.end() - bool(cell.group(1))] = True
    return inside, False


@dataclass(frozen=True)
class Header:
    """The separator and the names of the columns of a CSV file."""

    mark: str
    names: list[str]


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
    """Return Python's reader of CSV; lines and cells have the lengths `LONGEST_LINE` and `LONGEST_CELL` at most."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))  # Python's own limit is 128 KiB
    return csv.reader(lines, delimiter=mark, strict=True)


_CSV_PARSED = LONGEST_CELL  # bytes that one thread parses; each record of a block that is not long fits
# Numbers in text are written as in most languages, without Python's underscores and other digits.
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity)", flags=re.IGNORECASE)


def parse_number(text: str) -> float | None:
    """Return the number that a text denotes, or None.

    >>> parse_number("1e-3"), parse_number("+.5"), parse_number("1_0"), parse_number("0,5")
    (0.001, 0.5, None, None)
    """
    return float(text) if _NUMBER.fullmatch(text) else None


def csv_tables(file: File, names: Sequence[str], numbers: Sequence[str]) -> Iterator[Any]:
    """Yield Arrow tables of the named columns; `numbers` are read as numbers, the others as text."""
    header = read_header(file)
    for block in csv_blocks(file, header.mark, blank_rows=len(header.names) == 1):
        heading = block.first_line == 1
        rows = block.rows - heading
        if block.long:
            collections.deque(csv_cells(file, block, header), maxlen=0)  # checks the length of each cell
        table = _parse_csv(block, header, names, numbers) if rows and block.regular else None
        if table is None:
            table = _parse_csv_slowly(file, block, header, names, numbers)
        if table.num_rows != rows:
            last = block.first_line + block.lines - 1
            raise file.error(
                f"lines {block.first_line} to {last} hold {rows:,} records, but {table.num_rows:,} rows were found"
            )
        yield table


def _parse_csv(block: Block, header: Header, names: Sequence[str], numbers: Sequence[str]) -> Any:
    """Return the rows of a block as Arrow reads them; None if it refuses them."""
    import pyarrow as pa
    import pyarrow.csv

    places = [str(header.names.index(name)) for name in names]
    kinds = {place: pa.float64() if name in numbers else pa.string() for place, name in zip(places, names, strict=True)}
    convert = pa.csv.ConvertOptions(
        column_types=kinds, include_columns=places, null_values=NULLS, strings_can_be_null=True
    )
    parse = pa.csv.ParseOptions(
        delimiter=header.mark, newlines_in_values=block.quoted, ignore_empty_lines=len(header.names) > 1
    )
    columns = list(map(str, range(len(header.names))))
    # A record must fit into the share of one thread: up to version 24 Arrow may wait forever where it does not.
    read = pa.csv.ReadOptions(
        column_names=columns,
        block_size=len(block.data) if block.long else _CSV_PARSED,
        skip_rows=int(block.first_line == 1),
        use_threads=address_space_left() is None,  # threads reserve addresses
    )
    try:
        table = pa.csv.read_csv(pa.py_buffer(block.data), read, parse, convert)
    except pa.ArrowInvalid:
        return None
    return table.rename_columns(list(names))


def csv_cells(file: File, block: Block, header: Header) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line and the cells of each row, as Python reads them; the header is not a row.

    Each row must have as many cells as the header; in a file of one column it may be blank. A cell has at most
    `LONGEST_CELL` bytes.
    """
    try:
        text = str(block.data, "utf-8")
    except UnicodeDecodeError as error:
        line = block.first_line + bytes(block.data[: error.start]).count(b"\n")
        raise file.error("it is not UTF-8", line=line) from error
    rows = csv_reader(io.StringIO(text, newline=""), header.mark)
    try:
        for row in rows:
            line = block.first_line + rows.line_num - 1
            if line == 1 or (not row and len(header.names) > 1):
                continue
            cells = row or [""]
            if len(cells) != len(header.names):
                raise file.error(f"it has {len(cells)} cells, the heading {len(header.names)}", line=line)
            if block.long:
                _check_cells(file, line, header.names, cells)
            yield line, cells
    except csv.Error as error:
        raise file.error(error, line=block.first_line + rows.line_num - 1) from error


def _check_cells(file: File, line: int, names: Sequence[str], cells: Sequence[str]) -> None:
    """Check the length of the cells of a row."""
    for name, cell in zip(names, cells, strict=True):
        if len(cell.encode()) > LONGEST_CELL:
            raise file.error(f"the cell of {name!r} must have at most {LONGEST_CELL:,} bytes; it has more", line=line)


def _parse_csv_slowly(file: File, block: Block, header: Header, names: Sequence[str], numbers: Sequence[str]) -> Any:
    """Return the rows of a block as Python reads them; an error names the line and the cell."""
    import pyarrow as pa

    places = [header.names.index(name) for name in names]
    columns: list[list[Any]] = [[] for _ in names]
    for line, cells in csv_cells(file, block, header):
        for place, name, column in zip(places, names, columns, strict=True):
            cell: str | float | None = None if cells[place] in NULLS else cells[place]
            if cell is not None and name in numbers:
                cell = parse_number(cells[place].strip())
                if cell is None:
                    raise file.error(f"{name} must hold numbers; got {cells[place][:40]!r}", line=line)
            column.append(cell)
    kinds = [pa.float64() if name in numbers else pa.string() for name in names]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(names))


_JSON_PARSED = 1 << 14  # lines that one thread parses at a time


def json_tables(file: File, names: Sequence[str], numbers: Sequence[str], memory_limit: str) -> Iterator[Any]:
    """Yield Arrow tables of the named keys; `numbers` must be numbers, the others are read as text."""
    kinds = {name: "JSON" if name in numbers else "VARCHAR" for name in names}
    chosen = ", ".join(_number(name) if name in numbers else DIALECTS["duckdb"].name(name) for name in names)
    with open_duckdb(file, memory_limit) as connection:
        for block in line_blocks(file):
            yield _parse_json(connection, file, block, _query(chosen, kinds), names, numbers)


def number_keys(file: File, names: Sequence[str], memory_limit: str) -> list[str]:
    """Return the named keys that have numbers, and no other values, in the first block of lines."""
    block = next(line_blocks(file), None)
    if block is None or not names:
        return []
    chosen = ", ".join(_is_number(name) for name in names)
    with open_duckdb(file, memory_limit) as connection:
        table = _parse_json(connection, file, block, _query(chosen, dict.fromkeys(names, "JSON")), names, ())
    found = [set(column.drop_null().unique().to_pylist()) for column in table.columns]
    return [name for name, values in zip(names, found, strict=True) if values == {True}]


def _query(chosen: str, kinds: dict[str, str]) -> str:
    """Return the query for keys of lines, each read as a kind."""
    parsed = f"select unnest(json_transform(line, {quoted_text(json.dumps(kinds))})) from calibrant_lines"
    return f"select {chosen} from ({parsed})"


def _parse_json(
    connection: Any, file: File, block: Block, query: str, names: Sequence[str], numbers: Sequence[str]
) -> Any:
    """Return the rows of a block; an error names the line."""
    import duckdb

    lines = _lines(file, block)
    connection.register("calibrant_lines", lines)
    try:
        table = connection.sql(query).to_arrow_table()
        repeats = connection.sql(_repeats(names)).to_arrow_table().num_rows
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, UnicodeDecodeError) as error:  # the text of DuckDB's error may be cut within a character
        raise _line_error(file, block, numbers, error) from error
    finally:
        connection.unregister("calibrant_lines")
    if repeats:
        collections.deque(json_objects(file, block, names), maxlen=0)  # raises the error of the line
    if table.num_rows != lines.num_rows:
        raise file.error(f"it holds {lines.num_rows:,} objects, but {table.num_rows:,} rows were found")
    return table


def _lines(file: File, block: Block) -> Any:
    """Return the lines that are not blank as an Arrow table, in batches."""
    import pyarrow as pa

    octets = np.frombuffer(block.data, dtype=np.uint8)
    ends = np.flatnonzero(octets == ord("\n")) + 1
    places = np.concatenate([[0], ends, [] if octets[-1] == ord("\n") else [octets.size]]).astype(np.int32)
    text = pa.StringArray.from_buffers(places.size - 1, pa.py_buffer(places), pa.py_buffer(block.data))
    kept = np.ones(places.size - 1, dtype=bool)
    for row in np.flatnonzero(octets[places[:-1]] != ord("{")).tolist():
        line = bytes(block.data[places[row] : places[row + 1]]).strip()
        kept[row] = bool(line)
        if line and not line.startswith(b"{"):
            raise file.error("it must be an object with names", line=block.first_line + row)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _line_error(file, block, (), error) from error
    table = pa.table({"line": text if kept.all() else text.filter(pa.array(kept))})
    return pa.Table.from_batches(table.to_batches(max_chunksize=_JSON_PARSED), schema=table.schema)


def json_objects(file: File, block: Block, names: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of the line and the object of each line that is not blank, as Python reads them.

    Of the keys in `names`, by default of all keys, also of objects inside, each may occur once.
    """
    for place, raw in enumerate(bytes(block.data).split(b"\n")):
        if not raw.strip():
            continue
        line, repeats = block.first_line + place, _Repeats(names)
        try:
            found = json.loads(raw.decode("utf-8"), object_pairs_hook=repeats.join)
            if b"\\u" in raw:  # half of a surrogate pair cannot be encoded
                json.dumps(found, ensure_ascii=False).encode("utf-8")
        except UnicodeDecodeError as error:
            raise file.error("it is not UTF-8", line=line) from error
        except UnicodeEncodeError as error:
            raise file.error("it has half of a surrogate pair, which is not a character", line=line) from error
        except (ValueError, RecursionError) as error:
            raise file.error(f"it must be JSON: {json_fault(error)}", line=line) from error
        if not isinstance(found, dict):
            raise file.error("it must be an object with names", line=line)
        if repeats.found:
            raise file.error(f"it has the key {repeats.found[0]!r} twice", line=line)
        yield line, found


class _Repeats:
    """The keys that occur twice in an object: those in `names` of the outer object, or all."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.names = names
        self.found: list[str] = []

    def join(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the object with these keys and values; the outer object comes last."""
        joined = dict(pairs)
        count = collections.Counter(key for key, _ in pairs) if len(joined) < len(pairs) else {}
        own = [key for key, times in count.items() if times > 1 and (self.names is None or key in self.names)]
        self.found = self.found + own if self.names is None else own
        return joined


def _line_error(file: File, block: Block, numbers: Sequence[str], error: Exception) -> Exception:
    """Return the error of the first line that cannot be read."""
    for line, found in json_objects(file, block, ()):
        for name in numbers:
            cell = found.get(name)
            if isinstance(cell, bool) or not (cell is None or isinstance(cell, (int, float))):
                return file.error(f"{name} must hold numbers; got {str(cell)[:40]!r}", line=line)
    return file.error(error)


def _repeats(names: Sequence[str]) -> str:
    """Return the query for lines in which one of the keys may occur twice: its first and last places differ."""
    places = "list_position(keys, {0}) + list_position(list_reverse(keys), {0}) != len(keys) + 1"
    differ = " or ".join(places.format(quoted_text(name)) for name in names) or "false"
    return f"select 1 from (select json_keys(line) as keys from calibrant_lines) where {differ}"


def _number(name: str) -> str:
    """Return the SQL for a JSON cell as a number; text is an error, even if it looks like a number."""
    cell = DIALECTS["duckdb"].name(name)
    wrong = f"error({quoted_text(name + ' must hold numbers; it holds ')} || {cell}::varchar)"
    return f"case {_nothing(cell)} when {_type_is_number(cell)} then {cell}::double else {wrong} end as {cell}"


def _is_number(name: str) -> str:
    """Return the SQL for whether a JSON cell is a number; null where it is missing."""
    cell = DIALECTS["duckdb"].name(name)
    return f"case {_nothing(cell)} else {_type_is_number(cell)} end as {cell}"


def _nothing(cell: str) -> str:
    return f"when {cell} is null or json_type({cell}) = 'NULL' then null"


def _type_is_number(cell: str) -> str:
    return f"json_type({cell}) in ('DOUBLE', 'BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT')"


def json_keys(file: File) -> list[str]:
    """Return the names in the first object of a file of JSON lines."""
    line = first_line(file)
    try:
        first = json.loads(line, object_pairs_hook=lambda pairs: [name for name, _ in pairs])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file.name}, line 1 must be JSON: {json_fault(error)}.", argument="paths", row=0) from error
    if not isinstance(first, list) or not all(isinstance(name, str) for name in first):
        raise InputError(f"{file.name}, line 1 must be an object with names.", argument="paths", row=0)
    return first


def json_fault(error: Exception) -> str:
    """Return what is wrong with a line of JSON, and where; Python's text counts lines too, of which there is one."""
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}, {error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')}"
    return str(error)
