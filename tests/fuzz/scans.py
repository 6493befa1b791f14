"""Files of rows: CSV, JSON lines and Parquet, plain or compressed, with any content."""

import gzip
import io
import warnings

import calibrant as cb
from tests.fuzz.choices import Choices
from tests.fuzz.workplace import folder, one_database

ENDINGS = ("csv", "jsonl", "csv.gz", "jsonl.gz", "csv.zst", "parquet", "tsv", "json")
ROWS = {"csv": b"y,p\n0,0.2\n1,0.7\n", "jsonl": b'{"y": 0, "p": 0.2}\n{"y": 1, "p": 0.7}\n'}
CELLS = (
    *(
        b"0",
        b"1",
        b"0.5",
        b"1.0",
        b"",
        b"NA",
        b"nan",
        b"NaN",
        b"inf",
        b"-1",
        b"2",
        b"0,5",
        b"1e400",
        b"1e-400",
        b"true",
    ),
    *(b'"', b'"0.5"', b"'", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\r", b";", b"\t", b" ", b"null"),
    *(b"{}", b"[]", b"[" * 300, b'{"y": 1}', b"0x1", b"1_0", b"9" * 400, b"\xc3\xa9", b"y", b"p", b"#", b"\\", b"p.1"),
)


def seeds() -> list[bytes]:
    plain = [bytes([i, 0]) + ROWS["jsonl" if "json" in each else "csv"] for i, each in enumerate(ENDINGS)]
    cells = [bytes([i, 1, 2, 20, *range(3 * i, 3 * i + 30)]) for i in range(len(ENDINGS))]
    return [
        *plain,
        *cells,
        b"\x02\x02" + b"a" * 20,
        *(bytes([ENDINGS.index("parquet"), 0]) + each for each in _parquet()),
    ]


def _parquet() -> list[bytes]:
    """Return Parquet files of the rows, with some encodings and compressions."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, found = pa.table({"y": [0, 1, 1, 0], "p": [0.2, 0.7, None, 0.2]}), []
    for compression, checksum in (("none", False), ("zstd", True), ("snappy", False)):
        out = io.BytesIO()
        pq.write_table(table, out, compression=compression, store_schema=False, write_page_checksum=checksum)
        found.append(out.getvalue())
    return found


def run(data: bytes) -> None:
    choices = Choices(data)
    ending = choices.pick(ENDINGS)
    content = _content(choices, ending)
    if ending.endswith(".gz") and choices.whole(0, 7):
        content = gzip.compress(content, mtime=0)
        cut = choices.whole(0, 30)
        content = content[: len(content) - cut] if cut < 8 else content
    path = folder() / f"rows.{ending}"
    path.write_bytes(content)
    with warnings.catch_warnings(), one_database():
        warnings.simplefilter("ignore")
        try:
            table = cb.scan(path, y="y", p="p", missing=choices.pick(("raise", "drop")))
        except (cb.InputError, MemoryError):  # a damaged size may ask for any amount of memory
            return
        finally:
            path.unlink()
        assert ((table.score >= 0) & (table.score <= 1)).all()
        assert (table.k <= table.n).all()


def _content(choices: Choices, ending: str) -> bytes:
    """Return any bytes, or rows with strange cells."""
    kind = choices.whole(0, 2)
    if kind == 0:
        return choices.rest
    rows = ROWS["jsonl" if "json" in ending else "csv"]
    cells = []
    for _ in range(choices.whole(0, 40)):
        cells.append(choices.pick(CELLS))
        cells.append(choices.pick((b",", b",", b"\n", b"", b": ")))
    return (rows if kind == 1 else b"y,p\n") + b"".join(cells)
