"""Blocks of text files: verified decompression, limits on lines, and the number of records."""

import csv
import gzip
import io
import json
import subprocess
import sys
import textwrap
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant._support.errors import InputError
from calibrant.ingest import text_files
from calibrant.ingest.formats import File

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

RNG = np.random.default_rng(0)
P = RNG.random(100_000)
Y = (RNG.random(100_000) < P).astype(int)
ROWS = list(zip(Y.tolist(), P.tolist(), strict=True))
# Long enough that damage at the end lies far behind the header, even where the header is read in a megabyte.
LONG = {
    "csv": ("y,p\n" + "".join(f"{y},{p!r}\n" for y, p in ROWS)).encode(),
    "jsonl": "".join(f'{{"y": {y}, "p": {p!r}}}\n' for y, p in ROWS).encode(),
}
Y, P = Y[:5_000], P[:5_000]
CSV = b"".join(LONG["csv"].splitlines(keepends=True)[:5_001])
JSON = b"".join(LONG["jsonl"].splitlines(keepends=True)[:5_000])
EXPECTED = cb.ScoreTable.from_arrays(Y, P)
TEXTS = {"csv": CSV, "jsonl": JSON}


def zstd(data, *, checksum=True):
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(data)


PACK = {"gz": gzip.compress, "zst": zstd}


def scan(path, data):
    path.write_bytes(data)
    return cb.scan(path, y="y", p="p", progress=False)


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("kind", TEXTS)
def test_members_and_frames_are_read_one_after_the_other(tmp_path, kind, packed):
    text, pack = TEXTS[kind], PACK[packed]
    path = tmp_path / f"a.{kind}.{packed}"
    assert scan(path, pack(text)) == EXPECTED
    assert scan(path, pack(text[:1000]) + pack(text[1000:2000]) + pack(text[2000:])) == EXPECTED


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_compressed_file_must_be_complete_and_end_there(tmp_path, kind, packed):
    whole, path = PACK[packed](LONG[kind]), tmp_path / f"a.{kind}.{packed}"
    cuts = [*range(1, 30, 9), *range(30, len(whole), len(whole) // 10), *range(len(whole) - 12, len(whole), 3)]
    damaged = [*(whole[:cut] for cut in cuts), *(whole + rest for rest in (b"\0", b"x", b"\0" * 512, b"garbage" * 99))]
    for data in damaged:
        with pytest.raises(InputError, match=f"a.{kind}.{packed} cannot be read: .* truncated or damaged"):
            scan(path, data)


def test_the_checksum_and_the_length_of_gzip_are_verified(tmp_path):
    path, whole = tmp_path / "a.csv.gz", bytearray(gzip.compress(LONG["csv"]))
    for place in (-8, -5, -4, -1):
        damaged = whole.copy()
        damaged[place] ^= 1
        with pytest.raises(InputError, match="truncated or damaged"):
            scan(path, damaged)
    # A stored block has no structure, so that only the checksum shows the change.
    stored = bytearray(gzip.compress(LONG["csv"], compresslevel=0))
    place = stored.index(b"0.", 2_000_000) + 3
    stored[place] = ord("8") if stored[place] != ord("8") else ord("7")
    with pytest.raises(InputError, match="truncated or damaged"):
        scan(path, stored)


def test_the_content_checksum_of_zstd_is_verified(tmp_path):
    path, whole = tmp_path / "a.csv.zst", zstd(LONG["csv"])
    for place in range(20, len(whole), len(whole) // 20):
        damaged = bytearray(whole)
        damaged[place] ^= 16
        with pytest.raises(InputError, match="truncated or damaged"):
            scan(path, damaged)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl"])
def test_a_long_last_line_is_refused(tmp_path, ending):
    text = b"x" * 40_000_000
    data = (
        b'{"y": 1, "p": 0.5}\n{"y": 0, "p": 0.5, "t": "' + text
        if ending == "jsonl"
        else b"y,p,t\n1,0.5,a\n0,0.5," + text
    )
    line = 2 if ending == "jsonl" else 3
    with pytest.raises(InputError, match=f"line {line} must have at most 16,777,216 bytes; it has more"):
        scan(tmp_path / f"a.{ending}", gzip.compress(data, 1) if ending.endswith("gz") else data)


def test_a_line_up_to_the_limit_is_read(tmp_path):
    text = "x" * (text_files.LONGEST_LINE - 1000)
    count = 17
    cells, names = ",".join(["x" * ((1 << 20) - 99)] * (count - 2)), ",".join(f"t{i}" for i in range(count - 2))
    assert scan(tmp_path / "a.csv", f"y,p,{names}\n0,0.25,{cells}\n0,0.25,{cells}\n".encode()).size == 2
    assert scan(tmp_path / "a.jsonl", f'{{"y": 1, "p": 0.5}}\n{{"y": 0, "p": 0.25, "t": "{text}"}}'.encode()).size == 2


LONG_CELLS = {
    "plain": "{}",
    "quoted": '"{}"',
    "with line ends": '"{}\n{}"',
    "with a quote inside": 'x"{}',
}


@pytest.mark.parametrize("cell", LONG_CELLS)
@pytest.mark.parametrize("before", [0, 150_000])
def test_a_cell_of_csv_has_at_most_one_mebibyte(tmp_path, cell, before):
    template = LONG_CELLS[cell]

    def content(size):
        text = template.format(*["x" * (size // template.count("{}"))] * template.count("{}"))
        return "y,p,t\n" + "1,0.5,a\n" * before + f"0,0.25,{text}\n1,0.5,b\n"

    line = before + 2 + ("line ends" in cell)
    with pytest.raises(InputError, match=f"a.csv, line {line} .*the cell of 't' must have at most 1,048,576 bytes"):
        scan(tmp_path / "a.csv", content((1 << 20) + 2).encode())
    assert scan(tmp_path / "a.csv", content((1 << 20) - 2).encode()).size == before + 2


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc to read the peak memory from")
@pytest.mark.parametrize("command", ["scan", "apply"])
def test_one_line_of_a_gigabyte_takes_little_memory(tmp_path, command):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pack = zlib.compressobj(level=1, wbits=31)
    zeros = b"0" * (1 << 24)
    parts = [pack.compress(b"p,q\n0.5,1\n0.5,"), *(pack.compress(zeros) for _ in range(64)), pack.flush()]
    (tmp_path / "bomb.csv.gz").write_bytes(b"".join(parts))
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), tmp_path / "cal.json")
    program = f"""
        import re
        import calibrant as cb
        from calibrant.cli.main import run
        if {command == "apply"}:
            assert run(["apply", "cal.json", "bomb.csv.gz", "-p", "p", "-o", "out.csv"]) == 2
        else:
            try:
                cb.scan("bomb.csv.gz", y="q", p="p")
            except cb.InputError as error:
                assert "line 3 must have at most" in str(error)
            else:
                raise AssertionError
        # The peak of getrusage would include that of the parent process.
        print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert int(done.stdout.split()[-1]) * 1024 < 500e6


@pytest.mark.parametrize("command", ["scan", "apply"])
def test_twenty_thousand_columns_take_seconds(tmp_path, command):
    from calibrant.export.scored_files import calibrate_file

    names = ["y", "p", *(f"c{i}" for i in range(19_998))]
    row = ",".join(["1", "0.5", *("2" * 19_998)])
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([",".join(names), *[row] * 20]) + "\n")
    start = time.process_time()
    if command == "scan":
        assert cb.scan(path, y="y", p="p").size == 20
    else:
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
        fitted = cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9)
        assert calibrate_file(fitted, path, tmp_path / "o.csv", "csv", scores=["p"], name="c")["rows"] == 20
    assert time.process_time() - start < 10


CELLS = st.text(st.sampled_from('ab,"\n\r'), max_size=5)
WRITTEN = st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=30)


def write(rows, end):
    stream = io.StringIO()
    # Python's writer quotes only the line end that it writes itself.
    has_ends = any({"\r", "\n"} & set(cell) for row in rows for cell in row)
    quoting = csv.QUOTE_ALL if has_ends else csv.QUOTE_MINIMAL
    csv.writer(stream, lineterminator=end, quoting=quoting).writerows([["first", "second"], *rows])
    return stream.getvalue()


def blocks(folder, data, chunk):
    path = folder / "a.csv"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_CHUNK", chunk)
        return list(text_files.csv_blocks(File(str(path), "csv"), ",", blank_rows=False))


@settings(max_examples=3 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=WRITTEN, end=st.sampled_from(["\n", "\r\n", "\r"]), chunk=st.integers(1, 60), last=st.booleans())
def test_blocks_hold_whole_records(tmp_path, rows, end, chunk, last):
    text = write(rows, end) if last else write(rows, end).removesuffix(end)
    found = blocks(tmp_path, text.encode(), chunk)
    assert b"".join(block.data for block in found) == text.encode()
    assert all(block.regular for block in found)
    read = [list(csv.reader(io.StringIO(str(block.data, "utf-8"), newline=""), strict=True)) for block in found]
    assert [row for block in read for row in block] == [["first", "second"], *rows]
    assert [block.rows for block in found] == [len(rows) for rows in read]
    lines = np.cumsum([1, *(block.lines for block in found)]).tolist()
    assert [block.first_line for block in found] == lines[:-1]


@settings(max_examples=3 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from('ab,,"\n\n\r'), max_size=80), chunk=st.integers(1, 60))
def test_stray_quotes_and_blank_lines_are_read_as_by_python(tmp_path, text, chunk):
    try:
        rows = [row for row in csv.reader(io.StringIO("x\n" + text, newline=""), strict=True) if row]
    except csv.Error:  # a quoted cell is followed by text, or does not end
        return
    found = blocks(tmp_path, b"x\n" + text.encode(), chunk)
    assert sum(block.rows for block in found) == len(rows)
    read = [csv.reader(io.StringIO(str(block.data, "utf-8"), newline=""), strict=True) for block in found]
    assert [row for block in read for row in block if row] == rows


@pytest.mark.parametrize("text", ['1,0.5,"ab"c\n', '1,0.5,"ab\n0,0.5,c\n', '1,0.5,"ab""\n'])
def test_quotes_that_do_not_end_a_cell_are_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"a\.csv, line 3 cannot be read"):
        scan(tmp_path / "a.csv", b"y,p,t\n0,0.5,x\n" + text.encode())


def test_a_quote_in_an_unquoted_cell_is_text(tmp_path):
    table = scan(tmp_path / "a.csv", b"y,p,t\n" + b'1,0.5,5" pipe\n0,0.25,"two\nlines"\n' * 3)
    assert (table.size, table.positives) == (6, 3)


def test_numbers_are_read_alike_by_arrow_and_python(tmp_path):
    cells = ["0.5", "+0.5", ".5", " 0.5 ", "5e-1", '"0.5"', "1.", "-0", "1e-400", "0.1234567890123456789"]
    plain = "".join(f"1,{cell},x\n" for cell in cells)
    fast = scan(tmp_path / "a.csv", b"y,p,t\n" + plain.encode())
    slow = scan(tmp_path / "a.csv", b"y,p,t\n" + plain.encode() + b'1,0.5,5" x"\n')
    assert fast.score.tolist() == slow.score.tolist()
    assert (fast.size, slow.size) == (len(cells), len(cells) + 1)
    for cell in ("1_0", "0x1p-1", "0,5", "0.5f", "½"):
        with pytest.raises(InputError, match="line 2 cannot be read: p must hold numbers"):
            scan(tmp_path / "a.tsv", f"y\tp\n1\t{cell}\n".encode())


def test_rows_that_the_parser_drops_are_noticed(tmp_path, monkeypatch):
    import pyarrow.csv

    real = pyarrow.csv.read_csv
    monkeypatch.setattr(pyarrow.csv, "read_csv", lambda *given: real(*given)[:-1])
    with pytest.raises(InputError, match="lines 1 to 5001 hold 5,000 records, but 4,999 rows were found"):
        scan(tmp_path / "a.csv", CSV)


def test_rows_that_are_not_in_the_metadata_are_noticed(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"y": Y, "p": P}), tmp_path / "a.parquet")
    monkeypatch.setattr("calibrant.ingest.parquet_checks.count_rows", lambda file: 5_001)
    with pytest.raises(InputError, match="its metadata state 5,001 rows, but 5,000 were found"):
        cb.scan(tmp_path / "a.parquet", y="y", p="p")


@pytest.mark.parametrize("line", [1, 2])
@pytest.mark.parametrize("column", ["y", "t"])
def test_a_deeply_nested_line_is_bad_input_or_text(tmp_path, line, column, capsys):
    pytest.importorskip("click", reason="click is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from calibrant.cli.main import run

    deep = '{"y": 1, "p": 0.5, "t": 0}'.replace(f'"{column}": ', f'"{column}": {"[" * 100_000}{"]" * 100_000}, "z": ')
    lines = ['{"y": 1, "p": 0.5, "t": 0}'] * (line - 1) + [deep]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), tmp_path / "cal.json")
    file, fitted, out = (str(tmp_path / name) for name in ("a.jsonl", "cal.json", "o.jsonl"))
    code = run(["evaluate", file, "-y", "y", "-p", "p", "--resamples", "20"])
    assert code == (0 if (column, line) == ("t", 2) else 2)  # a cell that is not read is not decoded
    assert run(["apply", fitted, file, "-p", "p", "-o", out]) == 2
    assert f"a.jsonl, line {line}" in capsys.readouterr().err


def test_json_lines_report_the_line_and_what_is_wrong(tmp_path):
    good = '{"y": 1, "p": 0.5}\n'
    for bad, words in (
        ('{"y": 1, "p": "0.5"}', "line 4 cannot be read: p must hold numbers; got '0.5'"),
        ('{"y": 1, "p": true}', "line 4 cannot be read: p must hold numbers; got 'True'"),
        ('{"y": 1, "p": 0.5', "line 4 cannot be read: it must be JSON"),
        ("[1, 0.5]", "line 4 cannot be read: it must be an object with names"),
        ("1", "line 4 cannot be read: it must be an object with names"),
    ):
        with pytest.raises(InputError, match=words):
            scan(tmp_path / "a.jsonl", f"{good}\n  \n{bad}\n{good}".encode())
    assert scan(tmp_path / "a.jsonl", f"{good}\n  \r\n {good}\n{good.strip()}".encode()).size == 3
    with pytest.raises(InputError, match="line 2 cannot be read: it is not UTF-8"):
        scan(tmp_path / "a.jsonl", good.encode() + b'{"y": "\xff", "p": 0.5}\n')


@pytest.mark.parametrize("kind", TEXTS)
def test_partitions_of_text_files_have_the_types_of_those_of_parquet_files(tmp_path, kind):
    import pyarrow.parquet as pq

    for day in ("2026-11-15", "7", "007", "a%20b", "1.5"):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        (folder / f"a.{kind}").write_bytes(TEXTS[kind])
        pq.write_table(pa.table({"y": Y, "p": P}), folder / "b.parquet")
        text, parquet = (cb.scan(folder / name, y="y", p="p", by="day") for name in (f"a.{kind}", "b.parquet"))
        assert text.groups == parquet.groups
        assert text.total() == EXPECTED


def test_the_progress_bar_of_duckdb_is_off(tmp_path, monkeypatch):
    import duckdb

    from calibrant.ingest.formats import open_duckdb

    real = duckdb.connect

    def connect(**given):
        connection = real(**given)
        connection.execute("SET enable_progress_bar = true")
        return connection

    monkeypatch.setattr(duckdb, "connect", connect)
    with open_duckdb(File("a.parquet", "parquet"), "1GB") as connection:
        assert connection.sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": None}, "y must name one column; got None"),
        ({"y": ["y"]}, r"y must name one column; got \['y'\]"),
        ({"p": None}, "p must name at least one column"),
        ({"sample_weight": ["w"]}, r"sample_weight must name one column; got \['w'\]"),
        ({"frequency": 3}, "frequency must name one column; got 3"),
        ({"max_memory": "x"}, "max_memory must be a number of bytes, such as 2GB; got 'x'"),
    ],
)
def test_arguments_that_name_no_column_are_refused(tmp_path, options, words):
    (tmp_path / "a.csv").write_bytes(CSV)
    with pytest.raises(InputError, match=words):
        cb.scan(tmp_path / "a.csv", **{"y": "y", "p": "p", **options})


def test_a_name_that_is_not_text_in_a_parquet_file_is_bad_input(tmp_path, capsys):
    pytest.importorskip("click", reason="click is not installed")
    import pyarrow.parquet as pq

    from calibrant.cli.main import run

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"y": Y, "p": P, "another": P}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"another", b"an\xff\xfeher"))
    assert run(["evaluate", str(path), "-y", "y", "-p", "p", "--resamples", "20"]) == 2
    assert "a.parquet cannot be read: the name of a column is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv.gz", "jsonl.gz", "parquet"])
def test_apply_says_that_its_input_is_truncated(tmp_path, capsys, kind):
    pytest.importorskip("click", reason="click is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    import pyarrow.parquet as pq

    from calibrant.cli.main import run

    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"y": Y, "p": P}), path)
    else:
        path.write_bytes(gzip.compress(LONG[kind.removesuffix(".gz")]))
    path.write_bytes(path.read_bytes()[:-100])
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), tmp_path / "cal.json")
    out = tmp_path / "out.csv"
    assert run(["apply", str(tmp_path / "cal.json"), str(path), "-p", "p", "-o", str(out)]) == 2
    text = capsys.readouterr().err
    assert f"a.{kind} cannot be read" in text
    assert "cannot be written" not in text
    assert not out.exists()


def test_apply_limits_the_bytes_that_it_reads(tmp_path, capsys):
    pytest.importorskip("click", reason="click is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from calibrant.cli.main import run

    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV))
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), tmp_path / "cal.json")
    given = ["apply", *(str(tmp_path / name) for name in ("cal.json", "a.csv.gz")), "-p", "p", "-o"]
    assert run([*given, str(tmp_path / "out.csv"), "--max-bytes", "1kB"]) == 2
    assert "a.csv.gz must have at most 1,000 bytes; it has more. Raise --max-bytes." in capsys.readouterr().err
    assert run([*given, str(tmp_path / "out.csv"), "--max-bytes", "1MB"]) == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == len(CSV.splitlines())


def test_tables_of_text_files_do_not_depend_on_the_size_of_chunks(tmp_path, monkeypatch):
    for kind, text in TEXTS.items():
        path = tmp_path / f"a.{kind}.gz"
        path.write_bytes(gzip.compress(text))
        for chunk in (1 << 10, 1 << 14, 1 << 23):
            monkeypatch.setattr(text_files, "_CHUNK", chunk)
            assert cb.scan(path, y="y", p="p") == EXPECTED


def test_the_keys_of_json_lines_may_be_any_text(tmp_path):
    names = {"y": 'it\'s "y"; $.a[0]', "p": "p.q/~*"}
    text = "".join(json.dumps({names["y"]: y, names["p"]: p}) + "\n" for y, p in ((1, 0.5), (0, 0.25)))
    Path(tmp_path / "a.jsonl").write_text(text)
    assert cb.scan(tmp_path / "a.jsonl", **names) == cb.ScoreTable.from_arrays([1, 0], [0.5, 0.25])


def test_names_of_csv_columns_that_differ_in_case_are_two_columns(tmp_path):
    (tmp_path / "a.csv").write_text("y,p,P\n1,0.5,0.75\n0,0.25,0.125\n")
    for name, scores in (("p", [0.5, 0.25]), ("P", [0.75, 0.125])):
        assert cb.scan(tmp_path / "a.csv", y="y", p=name) == cb.ScoreTable.from_arrays([1, 0], scores)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_text_of_parquet_files_that_is_not_utf8_is_bad_input(tmp_path, capsys, ending):
    pytest.importorskip("click", reason="click is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    import pyarrow.parquet as pq

    from calibrant.cli.main import run

    path = tmp_path / "a.parquet"
    rows = pa.table({"p": [0.5, 0.25], "t": ["abcd", "efgh"]})
    pq.write_table(rows, path, compression="none", use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"efgh", b"e\xff\xfeh"))
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), tmp_path / "cal.json")
    out = tmp_path / f"out.{ending}"
    assert run(["apply", str(tmp_path / "cal.json"), str(path), "-p", "p", "-o", str(out)]) == 2
    assert "a.parquet cannot be read: " in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(("ending", "pack"), [("csv", bytes), ("csv.gz", gzip.compress), ("jsonl", bytes)])
def test_a_long_first_line_is_refused_in_linear_time(tmp_path, ending, pack):
    start = time.process_time()
    with pytest.raises(InputError, match=rf"^a.{ending}, line 1 must have at most 16,777,216 bytes; it has more"):
        scan(tmp_path / f"a.{ending}", pack(b"a" * 40_000_000))
    assert time.process_time() - start < 3


def test_a_header_of_many_columns_is_read_in_linear_time(tmp_path):
    header = ",".join(["y", "p", *(f"c{i}" for i in range(1_000_000))]).encode()
    (tmp_path / "a.csv").write_bytes(header + b"\n")
    start = time.process_time()
    assert text_files.first_line(File(str(tmp_path / "a.csv"), "csv")).encode() == header
    assert time.process_time() - start < 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_the_mark_of_another_encoding_names_it(tmp_path, encoding):
    for data in (CSV.decode().encode(encoding), JSON.decode().encode(encoding)):
        with pytest.raises(InputError, match=rf"a.csv is {encoding.upper()}.*--encoding {encoding}\)"):
            scan(tmp_path / "a.csv", data)


@pytest.mark.parametrize("name", ["y", "p"])
@pytest.mark.parametrize("key", ["{}", "\\u{:04x}"])
def test_a_key_that_occurs_twice_in_a_line_of_json_is_refused(tmp_path, name, key):
    from calibrant.export.scored_files import calibrate_file

    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    path, again = tmp_path / "a.jsonl", key.format(name if key == "{}" else ord(name))
    fitted = cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9)
    for before in (1, 3):
        data = b'{"y": 0, "p": 0.25}\n' * before + b'{"y": 1, "p": 0.1, "%s": 0}\n' % again.encode()
        with pytest.raises(InputError, match=f"a.jsonl, line {before + 1} cannot be read: it has the key '{name}' twi"):
            scan(path, data)
        with pytest.raises(InputError, match=f"a.jsonl, line {before + 1} cannot be read: it has the key '{name}' twi"):
            calibrate_file(fitted, path, tmp_path / "o.jsonl", "json", scores=["p"], name="c")


def test_other_keys_of_json_may_occur_twice_unless_they_are_written_again(tmp_path):
    from calibrant.export.scored_files import calibrate_file

    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    path, line = tmp_path / "a.jsonl", b'{"y": 1, "p": 0.5, "t": {"p": 1, "p": 2}, "z": 1, "z": 2, "q": {"y": 1}}\n'
    assert scan(path, line * 3).size == 3
    fitted = cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9)
    with pytest.raises(InputError, match="line 1 cannot be read: it has the key 'p' twice"):
        calibrate_file(fitted, path, tmp_path / "o.jsonl", "json", scores=["p"], name="c")


@pytest.mark.parametrize("before", [0, 2])
def test_half_of_a_surrogate_pair_is_refused_with_its_line(tmp_path, before):
    from calibrant.export.scored_files import calibrate_file

    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    path, words = tmp_path / "a.jsonl", f"a.jsonl, line {before + 1} cannot be read: it has half of a surrogate pair"
    with pytest.raises(InputError, match=words):
        scan(path, b'{"y": 1, "p": 0.5}\n' * before + b'{"y": "\\ud800", "p": 0.5}\n')
    fitted = cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9)
    with pytest.raises(InputError, match=words):
        calibrate_file(fitted, path, tmp_path / "o.jsonl", "json", scores=["p"], name="c")


FOREIGN = {
    "gzip": (gzip.compress(CSV), "Let its name end with .gz"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(20), "Let its name end with .zst"),
    "Parquet": (b"PAR1" + bytes(20) + b"PAR1", "Let its name end with .parquet"),
    "a zip archive": (b"PK\x03\x04" + bytes(20), "Convert it to CSV or Parquet"),
}


@pytest.mark.parametrize("ending", TEXTS)
@pytest.mark.parametrize("found", FOREIGN)
def test_a_text_file_that_holds_another_format_is_named(tmp_path, found, ending):
    data, hint = FOREIGN[found]
    with pytest.raises(InputError, match=f"^a.{ending} must hold text; it holds {found}.*{hint}"):
        scan(tmp_path / f"a.{ending}", data)
    with pytest.raises(InputError, match=f"^a.{ending}.gz must hold text; it holds {found}"):
        scan(tmp_path / f"a.{ending}.gz", gzip.compress(data))


@pytest.mark.parametrize(
    ("before", "words"), [(0, "line 1 must be JSON: column 14, expecting"), (3, "line 4 .* JSON: c")]
)
def test_an_error_of_json_names_one_line(tmp_path, before, words):
    with pytest.raises(InputError, match=words) as caught:
        scan(tmp_path / "a.jsonl", b'{"y": 1, "p": 0.5}\n' * before + b'{"y":1, "p": x}\n')
    assert str(caught.value).count("line") == 1


def test_errors_of_the_first_line_of_json_are_not_wrapped(tmp_path):
    for data, words in ((b"", "^a.jsonl is empty"), (JSON.decode().encode("utf-16"), "^a.jsonl is UTF-16")):
        with pytest.raises(InputError, match=words):
            scan(tmp_path / "a.jsonl", data)
