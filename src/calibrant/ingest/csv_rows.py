"""Rows of CSV files: parsed by Arrow block by block, and by Python where Arrow refuses a block.

Types are declared, never inferred from the first rows. The rows of each block must be as many as its records, which
are counted apart.
"""

import collections
import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from calibrant._support.columns import NULLS
from calibrant.ingest.formats import File
from calibrant.ingest.headers import Header, csv_reader, read_header
from calibrant.ingest.memory import address_space_left
from calibrant.ingest.text_blocks import LONGEST_CELL, Block, csv_blocks

__all__ = ["csv_cells", "csv_tables", "parse_number"]

_PARSED = LONGEST_CELL  # bytes that one thread parses at a time; records of a block that is not long fit in
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
        table = _parse(block, header, names, numbers) if rows and block.regular else None
        if table is None:
            table = _parse_slowly(file, block, header, names, numbers)
        if table.num_rows != rows:
            last = block.first_line + block.lines - 1
            raise file.error(
                f"lines {block.first_line} to {last} hold {rows:,} records, but {table.num_rows:,} rows were found"
            )
        yield table


def _parse(block: Block, header: Header, names: Sequence[str], numbers: Sequence[str]) -> Any:
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
        block_size=len(block.data) if block.long else _PARSED,
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


def _parse_slowly(file: File, block: Block, header: Header, names: Sequence[str], numbers: Sequence[str]) -> Any:
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
