"""Text files as blocks of whole records.

All compressed text passes through one decompressor, `byte_chunks`. It verifies that each gzip member and zstd frame
ends, the checksum and the length of gzip, and the content checksum of zstd if the frame has one. Bytes after the end
are an error.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._support.errors import InputError
from calibrant._support.typing import Bools
from calibrant.ingest.formats import File, binary_format

__all__ = ["LONGEST_CELL", "LONGEST_LINE", "Block", "byte_chunks", "csv_blocks", "first_line", "line_blocks"]

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
