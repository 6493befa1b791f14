"""Rows of JSON lines: blocks of lines as Arrow text, parsed by DuckDB."""

import collections
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calibrant._support.sql_dialects import DIALECTS
from calibrant.ingest.duckdb_connection import open_duckdb, quoted_text
from calibrant.ingest.formats import File
from calibrant.ingest.headers import json_fault
from calibrant.ingest.text_blocks import Block, line_blocks

__all__ = ["json_objects", "json_tables", "number_keys"]

_PARSED = 1 << 14  # lines that one thread parses at a time


def json_tables(file: File, names: Sequence[str], numbers: Sequence[str], memory_limit: str) -> Iterator[Any]:
    """Yield Arrow tables of the named keys; `numbers` must be numbers, the others are read as text."""
    kinds = {name: "JSON" if name in numbers else "VARCHAR" for name in names}
    chosen = ", ".join(_number(name) if name in numbers else DIALECTS["duckdb"].name(name) for name in names)
    with open_duckdb(file, memory_limit) as connection:
        for block in line_blocks(file):
            yield _parse(connection, file, block, _query(chosen, kinds), names, numbers)


def number_keys(file: File, names: Sequence[str], memory_limit: str) -> list[str]:
    """Return the named keys that have numbers, and no other values, in the first block of lines."""
    block = next(line_blocks(file), None)
    if block is None or not names:
        return []
    chosen = ", ".join(_is_number(name) for name in names)
    with open_duckdb(file, memory_limit) as connection:
        table = _parse(connection, file, block, _query(chosen, dict.fromkeys(names, "JSON")), names, ())
    found = [set(column.drop_null().unique().to_pylist()) for column in table.columns]
    return [name for name, values in zip(names, found, strict=True) if values == {True}]


def _query(chosen: str, kinds: dict[str, str]) -> str:
    """Return the query for keys of lines, each read as a kind."""
    parsed = f"select unnest(json_transform(line, {quoted_text(json.dumps(kinds))})) from calibrant_lines"
    return f"select {chosen} from ({parsed})"


def _parse(connection: Any, file: File, block: Block, query: str, names: Sequence[str], numbers: Sequence[str]) -> Any:
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
    return pa.Table.from_batches(table.to_batches(max_chunksize=_PARSED), schema=table.schema)


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
