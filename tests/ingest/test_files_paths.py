"""Paths, patterns and names of files."""

import os
import time

import pytest

import calibrant as cb
from calibrant._support.errors import InputError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")
import pyarrow.parquet as pq  # noqa: E402

ROWS = "y,p\n0,.1\n1,.5\n"


def scan(paths, **options):
    return cb.scan(paths, y="y", p="p", progress=False, **options)


def write(path, text=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_pattern_visits_folders_that_link_to_their_parent_once(folder):
    write(folder / "rows" / "s.csv")
    for name in ("a", "b", "c"):
        (folder / "rows" / name / "x").mkdir(parents=True)
        (folder / "rows" / name / "x" / "up").symlink_to("../..")
    start = time.process_time()
    for pattern in ("rows/**/*.csv", "**/*.csv", "**/**/**/s.csv", "rows/**", str(folder / "**" / "*.csv")):
        assert scan(pattern).size == 2
    assert time.process_time() - start < 5


def test_a_pattern_follows_links_to_other_folders(folder):
    write(folder / "elsewhere" / "day" / "s.csv")
    write(folder / "rows" / "t.csv")
    (folder / "rows" / "link").symlink_to("../elsewhere")
    assert scan("rows/**/*.csv").size == 4
    assert scan("rows/**/day/*.csv").size == 2


def test_patterns_match_as_in_the_shell(folder):
    for name in ("a/1.csv", "a/b/2.csv", "a/b[1]/3.csv", "a/.hidden/4.csv", "c/5.csv"):
        write(folder / name)
    found = {"a/*.csv": 1, "a/**/*.csv": 3, "**/b/*.csv": 1, "*/[0-9].csv": 2, "a/b[[]1]/*": 1, "./a/../c/?.csv": 1}
    assert {pattern: scan(pattern).size // 2 for pattern in found} == found
    with pytest.raises(InputError, match=r"There is no file '\*.csv'"):
        scan("nowhere/**/*.csv")


def test_an_empty_path_is_refused(folder):
    write(folder / "s.csv")
    for paths in ("", ["s.csv", ""]):
        with pytest.raises(InputError, match="paths must name files; got an empty text. The current folder is '.'"):
            scan(paths)
    assert scan(".").size == 2


def test_a_name_that_is_too_long_is_refused(folder):
    for name in ("x" * 300 + ".csv", "x" * 5000 + ".csv", ("x" * 200 + "/") * 50 + "a.csv"):
        with pytest.raises(InputError, match=r"There is no file '.{0,63}': File name too long"):
            scan(name)


@pytest.mark.skipif(os.name != "posix", reason="names of files are text on this system")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_name_that_is_not_utf_8_is_refused(folder, ending):
    name = os.fsdecode(b"x\xe9." + ending.encode())
    (folder / name).write_text(ROWS)
    for paths in (name, ".", f"*.{ending}", [folder / name]):
        with pytest.raises(InputError, match=r"must be UTF-8; got 'x\\udce9.*Rename it first"):
            scan(paths)


@pytest.mark.parametrize("name", ["~x", "file:x", "~", "a b"])
def test_relative_names_are_those_of_files(folder, name):
    table = pa.table({"y": [0, 1], "p": [0.1, 0.5]})
    with open(f"{name}.parquet", "wb") as stream:
        pq.write_table(table, stream)
    write(folder / f"{name}.csv")
    (folder / f"{name}.jsonl").write_text('{"y": 0, "p": 0.1}\n{"y": 1, "p": 0.5}\n')
    for ending in ("parquet", "csv", "jsonl"):
        assert scan(f"{name}.{ending}").size == 2


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_each_folder_states_one_value_of_one_column(folder, ending):
    for place, words in (("g=1/g=2", "two folders of 'g': g=1 and g=2"), ("g=a=b", "one =; got 'g=a=b'")):
        path = folder / ending / place / f"a.{ending}"
        write(path)
        if ending == "parquet":
            pq.write_table(pa.table({"y": [0, 1], "p": [0.1, 0.5]}), path)
        with pytest.raises(InputError, match=words):
            cb.scan(path.parent.parent if "/" not in place else path.parent.parent.parent, y="y", p="p", by="g")
        assert scan(path).size == 2
        path.unlink()
