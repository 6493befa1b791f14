"""Files counted where they lie: every format gives the table of the rows, and what is wrong names file and row."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.errors import InputError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

pc = pytest.importorskip("pyarrow.csv", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

ROWS = 30_000
RNG = np.random.default_rng(0)
P = np.where(RNG.random(ROWS) < 0.3, RNG.random(ROWS).round(2), RNG.random(ROWS))
P[:3] = -0.0
Y = (RNG.random(ROWS) < P).astype(int)
W = RNG.integers(0, 3, ROWS)
V = RNG.random(ROWS)
DAY = np.arange(ROWS) // (ROWS // 3)
TABLE = pa.table({"y": Y, "p": P, "q": P**2, "w": W, "v": V, "day": DAY})
EXPECTED = cb.ScoreTable.from_arrays(Y, P)


def parquet(path):
    pq.write_table(TABLE, path / "rows.parquet", row_group_size=7_000)
    return path / "rows.parquet"


def csv(path):
    pc.write_csv(TABLE, path / "rows.csv")
    return path / "rows.csv"


def zipped(path):
    (path / "rows.csv.gz").write_bytes(gzip.compress(csv(path).read_bytes()))
    (path / "rows.csv").unlink()
    return str(path / "rows.csv.gz")


def with_mark(path):
    text = csv(path).read_text()
    (path / "rows.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return path / "rows.csv"


def json_lines(path):
    lines = (f'{{"y": {y}, "p": {p!r}, "w": {w}}}' for y, p, w in zip(Y.tolist(), P.tolist(), W.tolist(), strict=True))
    (path / "rows.jsonl").write_text("\n".join(lines))
    return path / "rows.jsonl"


def pattern(path):
    for i in range(3):
        pq.write_table(TABLE.slice(i * 10_000, 10_000), path / f"part-{i}.parquet")
    return str(path / "part-*.parquet")


def folder(path):
    pattern(path)
    return path


def several(path):
    pattern(path)
    return [path / f"part-{i}.parquet" for i in (2, 0, 1)]


@pytest.mark.parametrize("make", [parquet, csv, zipped, with_mark, json_lines, pattern, folder, several])
def test_every_kind_of_file_gives_the_table_of_its_rows(make, tmp_path):
    paths = make(tmp_path)
    found = cb.scan(paths, y="y", p="p")
    assert found == EXPECTED
    assert (found.n_in, found.n_dropped) == (ROWS, 0)
    assert cb.scan(paths, y="y", p="p", frequency="w") == cb.ScoreTable.from_arrays(Y, P, frequency=W)
    grid = cb.scan(paths, y="y", p="p", resolution=2**-20)
    assert grid == EXPECTED.round(2**-20)
    assert any("rounded to multiples" in note.text for note in grid.notes)
    assert cb.scan(paths, y="y", p="p", resolution=1 / 3) == EXPECTED.round(1 / 3)


def test_real_weights_agree_within_rounding(tmp_path):
    found = cb.scan(several(tmp_path), y="y", p="p", sample_weight="v")
    expected = cb.ScoreTable.from_arrays(Y, P, sample_weight=V)
    assert found.n == pytest.approx(expected.n, rel=1e-12)
    assert found.k == pytest.approx(expected.k, rel=1e-12)
    assert found.w2 == pytest.approx(expected.w2, rel=1e-12)
    assert found.k2 == pytest.approx(expected.k2, rel=1e-12)
    assert cb.scan(several(tmp_path), y="y", p="p", sample_weight="w").importance


def test_float32_scores_keep_their_values(tmp_path):
    p = P.astype(np.float32)
    pq.write_table(pa.table({"y": Y == 1, "p": p}), tmp_path / "f.parquet")
    assert cb.scan(tmp_path / "f.parquet", y="y", p="p") == cb.ScoreTable.from_arrays(Y, p)


def test_groups_models_and_hive_partitions_come_from_one_pass(tmp_path):
    for day in range(3):
        (tmp_path / f"day={day}").mkdir()
        own = TABLE.slice(day * 10_000, 10_000).drop_columns(["day"])
        pq.write_table(own, tmp_path / f"day={day}" / "rows.parquet")
    tables = cb.scan(tmp_path, y="y", p=["p", "q"], by="day", frequency="w")
    assert tables.models == ["p", "q"]
    assert [int(group) for group in tables.groups] == [0, 1, 2]
    assert tables.total("p") == cb.ScoreTable.from_arrays(Y, P, frequency=W)
    own = DAY == 1
    day = tables.groups[1]
    assert tables["q", day] == cb.ScoreTable.from_arrays(Y[own], P[own] ** 2, frequency=W[own])
    rounded = cb.scan(tmp_path, y="y", p="p", by="day", resolution=2**-10)
    assert rounded.total() == EXPECTED.round(2**-10)
    frame = cb.from_frame(TABLE, y="y", p=["p", "q"], by="day", frequency="w")
    assert [frame["p", g] for g in range(3)] == [tables["p", g] for g in tables.groups]


def test_weights_of_each_group_are_importance_weights(tmp_path):
    whole = pa.table({"y": [0, 1], "p": [0.2, 0.7], "g": ["a", "a"], "w": [1.0, 2.0]})
    real = pa.table({"y": [0, 1], "p": [0.2, 0.7], "g": ["b", "b"], "w": [1.5, 2.0]})
    pq.write_table(whole, tmp_path / "1.parquet")
    pq.write_table(real, tmp_path / "2.parquet")
    tables = cb.scan(tmp_path, y="y", p="p", by="g", sample_weight="w")
    assert all(table.importance for table in tables.values())


def test_names_of_files_and_columns_are_taken_as_they_are(tmp_path):
    odd = tmp_path / "it's [1] really?" / "day=a b"
    odd.mkdir(parents=True)
    names = {"y": "y'); drop table x; --", "p": 'p "quoted", twice'}
    frame = TABLE.select(["y", "p"]).rename_columns(list(names.values()))
    pq.write_table(frame, odd / "x*y.parquet")
    pc.write_csv(frame, odd / "x[0].csv")
    for file in ("x*y.parquet", "x[0].csv"):
        assert cb.scan(odd / file, **names) == EXPECTED
    tables = cb.scan(odd / "x*y.parquet", **names, by="day")
    assert tables.groups == ["a b"]


def test_a_bar_counts_batches(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("calibrant.ingest.files._BATCH", 2048)
    monkeypatch.setattr("calibrant._support.progress._DELAY", 0.0)
    monkeypatch.setattr("calibrant._support.progress._REDRAW_EVERY", 0.0)
    cb.scan(parquet(tmp_path), y="y", p="p", progress=True)
    assert "/15" in capsys.readouterr().err


# Hazards


def bad_csv(path, lines, encoding="utf-8"):
    (path / "bad.csv").write_bytes("\n".join(lines).encode(encoding))
    return path / "bad.csv"


GOOD = ["y,p"] + [f"{y},{p!r}" for y, p in zip(Y[:9000].tolist(), P[:9000].tolist(), strict=True)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [*GOOD[:5000], "1,0.5,9", *GOOD[5000:]],
            r"bad.csv, line 5001 cannot be read: it has 3 cells, the heading 2\.",
        ),
        ([*GOOD[:5000], "1,abc", *GOOD[5000:]], r"bad.csv, line 5001 cannot be read: p must hold numbers; got 'abc'\."),
        ([*GOOD[:5000], "1", *GOOD[5000:]], "bad.csv, line 5001 cannot be read"),
        ([*GOOD[:100], "1,NA", *GOOD[100:200]], r"p in bad.csv has 1 missing value \(first at row 99\)"),
        ([*GOOD[:100], "1,1.5", *GOOD[100:200]], r"p in bad.csv must lie in \[0, 1\].* at row 99 is 1.5"),
        ([*GOOD[:100], "2,0.5", *GOOD[100:200]], "y in bad.csv"),
        (["y,p,p", "1,0.5,0.4"], "two columns named 'p'"),
        (["y,p", "1,0.5,7", "0,0.4,9"], "line 2 cannot be read: it has 3 cells, the heading 2"),
        (["y,p"], "hold no rows"),
        ([""], "is empty"),
        (["y;p", "1;0,5", "0;0,25"], r"bad.csv, line 2 cannot be read: .*0,5"),
        (["y,p", "1,0.5", "1,0.\x005"], "bad.csv, line 3 cannot be read"),
        (["y,q", "1,0.5"], "bad.csv has no column 'p'"),
    ],
)
@pytest.mark.parametrize("resolution", [None, 2**-20])
def test_bad_lines_are_refused_with_file_and_place(lines, words, resolution, tmp_path):
    with pytest.raises(InputError, match=words):
        cb.scan(bad_csv(tmp_path, lines), y="y", p="p", resolution=resolution)


def test_rows_are_numbered_within_their_file(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.ingest.files._BATCH", 2048)
    p = P.copy()
    p[25_000] = 1.5
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(pa.table({"y": Y, "p": p}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"p in b.parquet .*the first at row 25000 is 1.5") as caught:
        cb.scan(tmp_path, y="y", p="p")
    assert caught.value.row == 25_000


def test_missing_rows_are_dropped_on_request_and_counted(tmp_path):
    path = bad_csv(tmp_path, [*GOOD[:100], "1,NA", ",0.5", *GOOD[100:200]])
    for resolution in (None, 2**-20):
        table = cb.scan(path, y="y", p="p", missing="drop", resolution=resolution)
        assert (table.n_in, table.n_dropped, table.size) == (201, 2, 199)
        assert any("missing: 2" in note.text for note in table.notes)


def test_other_encodings_and_broken_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="is UTF-16"):
        cb.scan(bad_csv(tmp_path, GOOD[:50], "utf-16"), y="y", p="p")
    whole = parquet(tmp_path).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut.parquet cannot be read") as caught:
        cb.scan(tmp_path / "cut.parquet", y="y", p="p")
    assert str(tmp_path) not in str(caught.value)
    for paths, words in (
        (tmp_path / "none.parquet", "There is no file"),
        ("https://example.org/a.parquet", "paths must name local files"),
        (bad_csv(tmp_path, GOOD[:5]).rename(tmp_path / "rows.dat"), "must be that of a known format"),
    ):
        with pytest.raises(InputError, match=words):
            cb.scan(paths, y="y", p="p")
    assert cb.scan(tmp_path / "rows.dat", y="y", p="p", format="csv").size == 4
    with pytest.raises(InputError, match="max_memory must be a number of bytes, such as 2GB; got 'plenty'"):
        cb.scan(parquet(tmp_path), y="y", p="p", max_memory="plenty")


def test_no_row_is_counted_twice_when_a_later_file_is_bad(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"b.parquet"):
        cb.scan(tmp_path, y="y", p="p")
    assert cb.scan([tmp_path / "a.parquet", tmp_path / "a.parquet"], y="y", p="p").size == ROWS


def test_too_many_rows_for_memory_are_refused_with_a_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.ingest.memory.available_memory", lambda: 100_000)
    with pytest.raises(InputError, match=r"Pass resolution=2\*\*-20"):
        cb.scan(parquet(tmp_path), y="y", p="p")
    assert cb.scan(parquet(tmp_path), y="y", p="p", resolution=2**-20).size == ROWS


def test_labels_are_two_over_all_files(tmp_path):
    for i, labels in enumerate((["no", "yes"], ["yes", "yes"], ["no", "maybe"])):
        pq.write_table(pa.table({"y": labels, "p": [0.2, 0.7]}), tmp_path / f"{i}.parquet")
    two = cb.scan([tmp_path / "0.parquet", tmp_path / "1.parquet"], y="y", p="p", pos_label="yes")
    assert two == cb.ScoreTable.from_arrays([0, 1, 1, 1], [0.2, 0.7, 0.2, 0.7])
    with pytest.raises(InputError, match="must have two labels; got 'maybe', 'no', 'yes'"):
        cb.scan(tmp_path, y="y", p="p", pos_label="yes")


def test_available_memory_is_a_number_or_unknown():
    from calibrant.ingest.memory import available_memory

    found = available_memory()
    assert found is None or found > 2**20


# What a later row says must be seen


def test_nan_is_missing_whether_or_not_a_null_is_beside_it(tmp_path):
    nan = float("nan")
    for column in ("y", "p", "w"):
        rows = {"y": [0.0, 1.0, 1.0], "p": [0.1, 0.2, 0.3], "w": [1.0, 1.0, 2.0]}
        rows[column][2] = nan
        pq.write_table(pa.table(rows), tmp_path / "nan.parquet")
        with pytest.raises(InputError, match=f"{column} in nan.parquet has 1 missing value"):
            cb.scan(tmp_path / "nan.parquet", y="y", p="p", frequency="w")
        table = cb.scan(tmp_path / "nan.parquet", y="y", p="p", frequency="w", missing="drop")
        assert (table.size, table.n_dropped) == (2, 1)
    pq.write_table(pa.table({"y": [0, 1], "p": [0.1, 0.2], "g": [1.0, nan]}), tmp_path / "nan.parquet")
    with pytest.raises(InputError, match="g in nan.parquet has 1 missing value"):
        cb.scan(tmp_path / "nan.parquet", y="y", p="p", by="g")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.zst"])
def test_types_are_not_guessed_from_the_first_rows(kind, tmp_path):
    def written(*last):
        rows = [(1, 1), (0, 0)] * 20_000 + list(last)
        path = tmp_path / f"rows.{kind}"
        if kind == "jsonl":
            path.write_text("\n".join(f'{{"y": {y}, "p": {p}}}' for y, p in rows))
        else:
            text = "y,p\n" + "\n".join(f"{y},{p}" for y, p in rows)
            with pa.output_stream(str(path), compression="zstd" if kind.endswith("zst") else None) as stream:
                stream.write(text.encode())
        return path

    table = cb.scan(written((1, 0.75), (1, 0.25)), y="y", p="p")
    assert table.score.tolist() == [0.0, 0.25, 0.75, 1.0]
    with pytest.raises(InputError, match=r"y in rows.* must hold 0 and 1"):
        cb.scan(written((0.6, 0.25)), y="y", p="p")
    if kind == "jsonl":
        with pytest.raises(InputError, match="p must hold numbers"):
            cb.scan(written((1, '"0.75"')), y="y", p="p")


def test_truth_values_words_and_codes_of_text_files_stay_apart(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p,g\nTrue,0.5,007\nFalse,0.25,07\ntrue,0.5,7\n")
    assert cb.scan(path, y="y", p="p") == cb.ScoreTable.from_arrays([1, 0, 1], [0.5, 0.25, 0.5])
    assert cb.scan(path, y="y", p="p", by="g").groups == ["007", "07", "7"]
    path.write_text("y,p\nham,0.5\nspam,0.25\n")
    assert cb.scan(path, y="y", p="p", pos_label="spam").positives == 1


def test_column_names_are_case_sensitive(tmp_path):
    pq.write_table(pa.table({"y": [1, 0], "P": [0.1, 0.2], "p": [0.8, 0.9]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="columns 'p' and 'P'"):
        cb.scan(tmp_path / "a.parquet", y="y", p="p")
    with pytest.raises(InputError, match="has no column 'Y'; it has 'y', 'P', 'p'"):
        cb.scan(tmp_path / "a.parquet", y="Y", p="p")
    with pytest.raises(InputError, match="has no column 'p2'"):
        cb.scan(parquet(tmp_path), y="y", p=["p", "p2"])


def test_the_label_of_the_event_is_looked_for_in_all_files_and_groups(tmp_path):
    for name, label in (("1", "no"), ("2", "yes")):
        (tmp_path / f"{name}.csv").write_text(f"y,p,g\n{label},0.2,{name}\n")
    with pytest.raises(InputError, match="pos_label must be one of the labels of y, which are 'no', 'yes'"):
        cb.scan(tmp_path, y="y", p="p", pos_label="Yes")
    with pytest.raises(InputError, match="pos_label must be one of"):
        cb.scan(tmp_path, y="y", p="p", by="g", pos_label="Yes")
    absent = cb.scan(tmp_path / "1.csv", y="y", p="p", pos_label="yes")
    assert any("No row has the label" in note.text for note in absent.notes)


def test_each_file_is_counted_once_and_hidden_files_are_skipped(tmp_path):
    path = parquet(tmp_path)
    (tmp_path / "link.parquet").symlink_to(path)
    assert cb.scan([path, tmp_path / "." / path.name, tmp_path / "link.parquet"], y="y", p="p").size == ROWS
    for hidden in (".ipynb_checkpoints", "_temporary"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "a.parquet").write_bytes(path.read_bytes())
    (tmp_path / "._rows.parquet").write_bytes(b"nothing")
    assert cb.scan(tmp_path, y="y", p="p").size == ROWS
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="Parquet, CSV or JSON files; got none below 'empty'"):
        cb.scan(tmp_path / "empty", y="y", p="p")
    for paths in ([], None, 5):
        with pytest.raises(InputError, match="at least one file"):
            cb.scan(paths, y="y", p="p")


def test_a_folder_does_not_stand_for_a_column_of_the_file(tmp_path):
    folder = tmp_path / "day=old"
    folder.mkdir()
    pq.write_table(TABLE, folder / "a.parquet")
    with pytest.raises(InputError, match="a column 'day', and lies in a folder day=old"):
        cb.scan(folder, y="y", p="p", by="day")
    assert cb.scan(folder, y="y", p="p") == EXPECTED


def test_rows_of_all_groups_count_for_memory_and_a_grid_needs_none(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.ingest.table_counter._FOLD", 5_000)
    whole = cb.scan(parquet(tmp_path), y="y", p="p", by="day", frequency="w", resolution=2**-12)
    expected = cb.ScoreTable.from_arrays(Y, P, frequency=W).round(2**-12)
    assert whole.total() == expected
    assert whole.total().n_dropped == expected.n_dropped
    real = cb.scan(parquet(tmp_path), y="y", p="p", sample_weight="v", resolution=2**-12)
    assert real.n == pytest.approx(cb.ScoreTable.from_arrays(Y, P, sample_weight=V).round(2**-12).n, rel=1e-12)
    monkeypatch.setattr("calibrant.ingest.memory.available_memory", lambda: 400_000)
    with pytest.raises(InputError, match=r"Pass resolution=2\*\*-20"):
        cb.scan(parquet(tmp_path), y="y", p="p", by="day")
    assert cb.scan(parquet(tmp_path), y="y", p="p", by="day", resolution=2**-12).total().size == ROWS


def test_groups_without_a_row_that_counts_are_empty(tmp_path):
    rows = pa.table({"y": [0, 1, None], "p": [0.1, 0.2, 0.3], "g": ["a", "a", "b"], "w": [1.0, 1.0, 0.5]})
    pq.write_table(rows, tmp_path / "a.parquet")
    for tables in (
        cb.scan(tmp_path / "a.parquet", y="y", p="p", by="g", sample_weight="w", missing="drop"),
        cb.from_frame(rows, y="y", p="p", by="g", sample_weight="w", missing="drop"),
    ):
        assert len(tables["p", "b"]) == 0
        assert tables["p", "b"].n_dropped == 1
        assert tables["p", "a"].importance
        assert tables.total() == tables["p", "a"]


def test_rows_are_numbered_before_they_are_split(tmp_path):
    rows = pa.table({"y": [0] * 6, "p": [0.1] * 5 + [1.5], "g": list("aabaab")})
    pq.write_table(rows, tmp_path / "a.parquet")
    for call in (
        lambda: cb.scan(tmp_path / "a.parquet", y="y", p="p", by="g"),
        lambda: cb.from_frame(rows, y="y", p="p", by="g"),
    ):
        with pytest.raises(InputError, match="at row 5 is 1.5"):
            call()


def test_packed_files_that_are_damaged_are_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip at all")
    whole = zipped(tmp_path)
    cut = tmp_path / "cut.csv.gz"
    with open(whole, "rb") as file:
        cut.write_bytes(file.read()[:2000])
    for path in (tmp_path / "a.csv.gz", cut):
        with pytest.raises(InputError, match=f"{path.name}"):
            cb.scan(path, y="y", p="p")
    with pytest.raises(InputError, match="format must be"):
        cb.scan(path, y="y", p="p", format="xml")


LIMITED = """
import resource, sys
import calibrant as cb
limit = int(sys.argv[2]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(cb.scan(sys.argv[1], y="y", p="p").size)
except MemoryError as error:
    print("out of memory:", error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc to read the addresses from")
@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_a_limit_of_addresses_ends_in_a_result_or_in_a_memory_error(tmp_path, ending):
    """DuckDB and Arrow reserve addresses per thread and in advance, and crashed with limits of 500 to 1,500 MB."""
    path, size = tmp_path / f"a.{ending}", 20_000
    rows = {"y": np.arange(size) % 2, "p": np.arange(size) / size}
    if ending == "parquet":
        pq.write_table(pa.table(rows), path)
    else:
        form = "{},{}" if ending == "csv" else '{{"y": {}, "p": {}}}'
        lines = [form.format(*row) for row in zip(*rows.values(), strict=True)]
        path.write_text("\n".join(["y,p"] * (ending == "csv") + lines) + "\n")
    for limit in (450, 600, 800, 1500):
        command = [sys.executable, "-c", LIMITED, str(path), str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (limit, done.returncode, done.stderr[-500:])
        few = limit == 450 and done.stdout.startswith("out of memory: ")
        assert few or done.stdout == f"{size}\n", (limit, done.stdout)


def test_a_lack_of_memory_inside_duckdb_is_a_memory_error():
    from calibrant.ingest.formats import File, open_duckdb

    for error in (duckdb.OutOfMemoryException("x"), OSError("Out of Memory Error: ArrowBuffer: failed to allocate")):
        with pytest.raises(MemoryError, match="a.parquet"), open_duckdb(File("a.parquet", "parquet"), "1GB"):
            raise error


# Labels of text files do not depend on the rows that are read together


def write_labels(folder, kind, *files):
    folder.mkdir()
    for i, labels in enumerate(files):
        if kind == "jsonl":
            text = "".join(f'{{"y": {json.dumps(label)}, "p": 0.{place}}}\n' for place, label in enumerate(labels))
        else:
            text = "y,p\n" + "".join(f"{label},0.{place}\n" for place, label in enumerate(labels))
        (folder / f"{i}.{kind}").write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("rows", [1, 2, 1 << 20])
@pytest.mark.parametrize("label", ["0", "fraud"])
def test_labels_are_the_same_in_one_file_and_in_several(tmp_path, monkeypatch, kind, rows, label):
    monkeypatch.setattr("calibrant.ingest.files._BATCH", rows)
    one = write_labels(tmp_path / "one", kind, ["0", "0", "0", "fraud"])
    two = write_labels(tmp_path / "two", kind, ["0", "0"], ["0", "fraud"])
    events = 3 if label == "0" else 1
    for folder in (one, two):
        assert cb.scan(folder, y="y", p="p", pos_label=label).positives == events
        with pytest.raises(InputError, match=r"one type in all rows; got text after numbers|pos_label must be one of"):
            cb.scan(folder, y="y", p="p", pos_label=0)
        with pytest.raises(InputError, match=r"one type in all rows; got text after numbers|must hold 0 and 1"):
            cb.scan(folder, y="y", p="p")


@pytest.mark.parametrize("rows", [1, 2, 1 << 20])
def test_truth_values_and_numbers_are_not_mixed(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("calibrant.ingest.files._BATCH", rows)
    folder = write_labels(tmp_path / "a", "csv", ["true", "true", "1", "1"])
    with pytest.raises(InputError, match="one type in all rows; got numbers after|must hold 0 and 1; got the la"):
        cb.scan(folder, y="y", p="p")
    assert cb.scan(folder, y="y", p="p", pos_label="1").k.tolist() == [0, 0, 1, 1]


def test_the_text_of_the_event_is_compared_with_the_text_of_labels(tmp_path):
    one = write_labels(tmp_path / "one", "csv", ["1", "1"])
    table = cb.scan(one, y="y", p="p", pos_label="1")
    assert (table.positives, [note.code for note in table.notes]) == (2, ["one_class"])
    assert cb.scan(one, y="y", p="p", pos_label=1).positives == 2
    codes = write_labels(tmp_path / "codes", "csv", ["1", "01"])
    assert cb.scan(codes, y="y", p="p", pos_label="01").k.tolist() == [0, 1]
    ways = write_labels(tmp_path / "ways", "csv", ["1", "1.0", "0"])
    with pytest.raises(InputError, match="pos_label must be a number .* has the labels '0', '1', '1.0'") as caught:
        cb.scan(ways, y="y", p="p", pos_label="1")
    assert caught.value.argument == "pos_label"
    assert cb.scan(ways, y="y", p="p", pos_label=1).positives == 2


@pytest.mark.parametrize(
    ("texts", "cell", "text", "event"),
    [(["1"], 1, "1", 1), (["1", "1.0"], 1.0, "1", 1), (["True"], True, "True", True), (["True", "true"], 1, "True", 1)],
)
def test_a_label_that_is_written_in_two_ways_is_not_compared_as_text(tmp_path, texts, cell, text, event):
    folder = write_labels(tmp_path / "a", "csv", *([label, label] for label in texts))
    if len(texts) == 1:
        pq.write_table(pa.table({"y": [cell, cell], "p": [0.5, 0.5]}), folder / "z.parquet")
    with pytest.raises(InputError, match="pos_label must be a (number|truth value) to compare labels") as caught:
        cb.scan(folder, y="y", p="p", pos_label=text)
    assert caught.value.argument == "pos_label"
    assert cb.scan(folder, y="y", p="p", pos_label=event).positives == 4


@pytest.mark.parametrize("label", ["0_1", "\u0661", "1_", "0x1"])
def test_labels_are_numbers_only_if_scores_are(tmp_path, label):
    folder = write_labels(tmp_path / "a", "csv", [label, "0"])
    with pytest.raises(InputError, match="must hold 0 and 1; got the labels"):
        cb.scan(folder, y="y", p="p")
    assert cb.scan(folder, y="y", p="p", pos_label=label).positives == 1


def test_columns_of_several_files_have_one_type_of_labels(tmp_path):
    from calibrant.ingest.files import read_columns

    folder = write_labels(tmp_path / "a", "csv", ["0", "0"], ["0", "fraud"])
    assert read_columns(folder, ["y", "p"], ["p"])["y"].values.tolist() == ["0", "0", "0", "fraud"]
    (folder / "1.csv").write_text("y,p\n0,0.5\n1,0.5\n")
    assert read_columns(folder, ["y", "p"], ["p"])["y"].values.tolist() == [0, 0, 0, 1]


def test_groups_and_labels_of_all_files_have_one_type(tmp_path):
    from calibrant.ingest.files import read_columns

    files = [tmp_path / name for name in ("a.csv", "b.parquet", "c.parquet", "d.parquet")]
    files[0].write_text("y,p,g\n0,0.2,0\n1,0.7,1\n")
    for file, groups in zip(files[1:], ([0, 1], ["0", "1"], [None, None]), strict=True):
        pq.write_table(pa.table({"y": [0, 1], "p": [0.2, 0.7], "g": groups}), file)
    words = "g in b.parquet must have the type of g in a.csv, which holds text; got numbers. A column must have one"
    with pytest.raises(InputError, match=words):
        cb.scan(files[:2], y="y", p="p", by="g")
    with pytest.raises(InputError, match="g in c.parquet must have .* holds numbers; got text"):
        read_columns(files[1:3], ["y", "p", "g"], ["p"])
    with pytest.raises(InputError, match="y in b.parquet must have .* holds text; got numbers"):
        read_columns(files[:2], ["y", "p"], ["p"], labels=False)
    assert read_columns(files[:2], ["y", "p"], ["p"])["y"].values.tolist() == [0, 1, 0, 1]
    assert list(cb.scan([files[0], files[2]], y="y", p="p", by="g")) == [("p", "0"), ("p", "1")]
    missing = read_columns([files[3], *files[1:2]], ["y", "p", "g"], ["p"])["g"]
    assert missing.mask.tolist() == [True, True, False, False]
    for value in ("1", "other"):  # values of partitions have the types that DuckDB finds
        (tmp_path / f"r={value}").mkdir()
        (tmp_path / f"r={value}" / "a.csv").write_text("y,p\n0,0.2\n1,0.7\n")
    assert set(cb.scan(str(tmp_path / "r=*/*.csv"), y="y", p="p", by="r")) == {("p", 1), ("p", "other")}


def test_float16_scores_of_files_are_noted_as_those_of_arrays(tmp_path):
    p = np.array([0.1, 0.5, 0.9, 0.5], dtype=np.float16)
    array = pa.array(p, mask=np.array([False, False, True, False]))
    pq.write_table(pa.table({"y": [0, 1, 1, 0], "p": pa.array(p), "q": array}), tmp_path / "a.parquet")
    expected = cb.ScoreTable.from_arrays([0, 1, 1, 0], p)
    found = cb.scan(tmp_path / "a.parquet", y="y", p="p")
    assert found == expected
    assert [note.code for note in found.notes] == [note.code for note in expected.notes] == ["float16"]
    dropped = cb.scan(tmp_path / "a.parquet", y="y", p="q", missing="drop")
    assert (dropped.size, sorted(note.code for note in dropped.notes)) == (3, ["float16", "missing"])


# Files that are replaced while they are read


def test_a_parquet_file_that_is_replaced_is_not_called_damaged(tmp_path):
    from calibrant.ingest.files import FileReader, find_files

    table = pa.table({"y": [0, 1] * 50, "p": [0.25, 0.75] * 50})
    for after in (table.slice(0, 7), table):
        pq.write_table(table, tmp_path / "a.parquet")
        reader = FileReader(find_files(tmp_path / "a.parquet", None), ["y", "p"], ["p"])
        pq.write_table(after, tmp_path / "b.pq", compression="gzip")
        (tmp_path / "b.pq").replace(tmp_path / "a.parquet")
        with pytest.raises(InputError, match="a.parquet cannot be read: it was replaced or changed meanwhile. Read it"):
            list(reader.batches(False))
    assert cb.scan(tmp_path / "a.parquet", y="y", p="p").size == 100


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_header_and_the_rows_of_text_are_those_of_one_file(tmp_path, kind):
    from calibrant.ingest.files import FileReader, find_files

    rows = {"csv": ("y,p\n", "1,0.5\n", "p,y\n1,0\n"), "jsonl": ("", '{"y": 1, "p": 0.5}\n', '{"y": 0, "p": 1}\n')}
    header, row, other = rows[kind]
    path = tmp_path / f"a.{kind}"
    path.write_text(header + row)
    reader = FileReader(find_files(path, None), ["y", "p"], ["p"])
    with path.open("a") as stream:
        stream.write(row)
    assert [len(batch["y"]) for batch in reader.batches(False)] == [2]
    (tmp_path / "new").write_text(other)
    (tmp_path / "new").replace(path)
    with pytest.raises(InputError, match="it was replaced or changed meanwhile"):
        list(reader.batches(False))


def test_deprecated_functions_of_groups_warn_and_count_by_model_and_group(tmp_path):
    frame = pa.table({"y": [0, 1, 1], "p": [0.2, 0.7, 0.4], "g": ["a", "b", "b"]})
    pq.write_table(frame, tmp_path / "a.parquet")
    connection = duckdb.connect()
    for old, new, place in (
        (cb.tables_scan, cb.scan, (tmp_path / "a.parquet",)),
        (cb.tables_from_frame, cb.from_frame, (frame,)),
        (cb.tables_from_query, cb.from_query, (connection, f"SELECT * FROM '{tmp_path}/a.parquet'")),
    ):
        text = rf"^calibrant\.{old.__name__} is deprecated: use calibrant\.{new.__name__}\(by=\.\.\.\); the old"
        for options in ({"p": "p"}, {"p": ["p"], "by": "g"}):
            with pytest.warns(DeprecationWarning, match=text) as caught:
                tables = old(*place, y="y", **options)
            assert tables == new(*place, y="y", **{**options, "p": ["p"]})
            assert caught[0].filename == __file__
        assert list(new(*place, y="y", p="p", by="g")) == [("p", "a"), ("p", "b")]
        assert new(*place, y="y", p="p") == new(*place, y="y", p=["p"]).total()


def test_memory_is_given_in_bytes_or_as_text(tmp_path):
    path = parquet(tmp_path)
    expected = cb.scan(path, y="y", p="p", frequency="w")
    assert cb.scan(path, y="y", p="p", frequency="w", max_memory=10**9) == expected
    assert cb.scan(path, y="y", p="p", frequency="w", max_memory="1GB") == expected
    with pytest.warns(DeprecationWarning, match=r"^memory_limit= of scan\(\) is deprecated: use max_memory="):
        assert cb.scan(path, y="y", p="p", frequency="w", memory_limit="1GB") == expected
    with pytest.raises(InputError, match="may take .* 10,000 bytes are allowed|are allowed"):
        cb.scan(path, y="y", p="p", frequency="w", max_memory="10kB")
