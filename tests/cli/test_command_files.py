"""Input files of the commands: formats, encodings, standard input, limits and bad content."""

import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
run = pytest.importorskip("calibrant.cli.main").run

FEW = ("--resamples", "39")

CELLS = st.sampled_from(["0", "1", "0.5", "0.25", "1e-3", "", "NA", "nan", "-0", "2", "x", '"', "0,5", "1.0000001"])
LINES = st.lists(st.lists(CELLS, min_size=0, max_size=4).map(",".join), max_size=12)
HEADINGS = st.sampled_from(["y,p", "y,p,w", "p,y", "Y,P", "y", "", "y,p,p", '"y","p"', "y;p", "\ufeffy,p"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.tuples(HEADINGS, LINES, ENDS).map(lambda t: t[2].join([t[0], *t[1]]).encode())
GOOD = st.lists(st.tuples(st.sampled_from("01"), st.floats(0, 1)), min_size=1, max_size=20).map(
    lambda rows: "\n".join(["y,p", *(f"{y},{p}" for y, p in rows)]).encode()
)
VALUES = st.sampled_from([0, 1, 0.5, None, "x", True, [1], {"a": 1}, 1e400])
OBJECTS = st.lists(st.dictionaries(st.sampled_from("ypw"), VALUES, max_size=3)).map(
    lambda rows: "\n".join(json.dumps(row) for row in rows).encode()
)
MADE = st.one_of(
    st.tuples(st.sampled_from([".csv", ".tsv", ".csv.gz"]), st.one_of(TEXTS, GOOD)),
    st.tuples(st.just(".jsonl"), st.one_of(OBJECTS, TEXTS)),
    st.tuples(st.sampled_from([".csv", ".jsonl", ".parquet", ".csv.gz"]), st.binary(max_size=300)),
)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "jsonl"])
def test_standard_input_is_read_in_any_format(scores, call, monkeypatch, kind):
    content = Path(f"scores.{kind.removesuffix('.gz')}").read_bytes()
    content = gzip.compress(content) if kind.endswith("gz") else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    text = call("evaluate", "-", "-y", "y", "-p", "p", *FEW)
    assert "1,000 rows" in text


def test_labels_are_named_as_they_are_written(here, call):
    Path("words.csv").write_text("y,p\nyes,0.9\nno,0.2\nyes,0.7\n")
    Path("numbers.csv").write_text("y,p\n2,0.9\n1,0.2\n2,0.7\n")
    hint = call("evaluate", "words.csv", "-y", "y", "-p", "p", code=2)
    assert "got the labels 'no', 'yes'" in hint
    assert "--pos-label yes" in hint
    for file, label in (("words.csv", "yes"), ("numbers.csv", "2")):
        text = call("evaluate", file, "-y", "y", "-p", "p", "--pos-label", label, *FEW)
        assert "event rate 66.67 %" in text
    assert "--pos-label must be one of" in call(
        "evaluate", "words.csv", "-y", "y", "-p", "p", "--pos-label", "x", code=2
    )


def content(kind):
    plain = "y,p\n0,0.1\n1,0.9\n"
    return {
        "bom.csv": b"\xef\xbb\xbf" + plain.encode(),
        "utf16.csv": plain.encode("utf-16"),
        "extra.csv": b"y,p\n0,0.1\n1,0.9,7\n",
        "extra_first.csv": b"y,p\n0,0.1,7\n1,0.9,9\n",
        "short.csv": b"y,p\n0,0.1\n1\n",
        "missing.csv": b"y,p\n0,NA\n1,0.9\n",
        "comma.csv": b"y;p\n0;0,1\n1;0,9\n",
        "nul.csv": b"y,p\n0,0.1\n1,0.\x009\n",
        "twice.csv": b"y,p,p\n0,0.1,0.2\n1,0.2,0.3\n",
        "long.csv": b"y,p,t\n0,0.1," + b"x" * (1 << 24) + b"\n",
        "heading.csv": b"y,p\n",
        "empty.csv": b"",
        "cut.parquet": b"PAR1" + b"\0" * 100,
        "words.csv": b"y,p\n0,high\n1,low\n",
        "percent.csv": b"y,p\n0,10\n1,90\n",
    }[kind]


@pytest.mark.parametrize("label", ["1", "1.0", "true"])
def test_the_label_of_the_event_is_found_if_all_rows_have_it(here, call, label):
    Path("ones.csv").write_text("y,p,q\n" + f"{label},0.9,0.8\n" * 5)
    given = ("ones.csv", "-y", "y", "-p", "p", "--pos-label", label, *FEW)
    assert "event rate 100 %" in call("evaluate", *given)
    assert "100 % events" in call("compare", *given, "-p", "q")
    text = call("evaluate", *given[:-3], "7", *FEW)
    assert "event rate 0 %" in text
    assert "No row has the label of the event, 7." in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("utf16.csv", "utf16.csv is UTF-16. Convert it to UTF-8 first (on the command line: --encoding utf-16)."),
        ("extra.csv", "extra.csv, line 3 cannot be read"),
        ("extra_first.csv", "extra_first.csv, line 2 cannot be read"),
        ("short.csv", "short.csv, line 3 cannot be read"),
        ("missing.csv", "p in missing.csv has 1 missing value (first at row 0). Pass --missing drop"),
        (
            "comma.csv",
            "comma.csv, line 2 cannot be read: p must hold numbers; got '0,1'.",
        ),
        ("nul.csv", "nul.csv, line 3 cannot be read"),
        ("twice.csv", "twice.csv has two columns named 'p'"),
        ("long.csv", "long.csv, line 2 must have at most 16,777,216 bytes; it has more."),
        ("heading.csv", "no rows"),
        ("empty.csv", "empty.csv is empty"),
        ("cut.parquet", "cut.parquet cannot be read"),
        ("words.csv", "words.csv, line 2 cannot be read"),
        ("percent.csv", "percentages, divide them by 100"),
    ],
)
def test_files_that_cannot_be_read_are_errors_with_a_reason(here, call, kind, words):
    (here / kind).write_bytes(content(kind))
    assert words in call("evaluate", kind, "-y", "y", "-p", "p", code=2)


def test_options_read_other_encodings_and_missing_values(here, call):
    for kind in ("bom.csv", "utf16.csv", "missing.csv"):
        (here / kind).write_bytes(content(kind))
    assert "2 rows" in call("evaluate", "bom.csv", "-y", "y", "-p", "p", *FEW)
    assert "2 rows" in call("evaluate", "utf16.csv", "-y", "y", "-p", "p", "--encoding", "utf-16", *FEW)
    dropped = call("evaluate", "missing.csv", "-y", "y", "-p", "p", "--missing", "drop", *FEW)
    assert "Rows dropped because a value is missing: 1." in dropped


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv", "-y", "y", "-p", "p"], "There is no file 'none.csv'"),
        (["scores.csv", "-y", "y", "-p", "P2"], "scores.csv has no column 'P2'; it has 'y', 'p', 'q', 'g'"),
        (["scores.csv", "-y", "y", "-p", "Q"], "Did you mean 'q'?"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--encoding", "klingon"],
            "--encoding must be an encoding of text, such as utf-16 or latin-1; got 'klingon'.",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--encoding", "utf-16"], "scores.csv is not utf-16"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--max-bytes", "1kB"],
            "scores.csv must have at most 1,000 bytes; it has more. Raise --max-bytes.",
        ),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--max-memory", "lots"],
            "Invalid value for '--max-memory': 'lots' is not a number of bytes",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--max-memory", "10kB"], "Pass --resolution '2**-20'"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--cost", "5"],
            "Invalid value for '--cost': '5' is not OVER:UNDER, such as 1:5.",
        ),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--resolution", "fine"],
            "Invalid value for '--resolution': 'fine' is not a number",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--bins", "0"], "--bins must be a whole number"),
        (["scores.csv", "-y", "y", "-p", "p", "--alpha", "2"], "--alpha must lie between 0 and 1"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--json", "scores.jsonl"],
            "'scores.jsonl' exists already. Pass --force to overwrite it.",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "no/where.json"], "The folder of 'where.json' does not exist."),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "link.json"], "symbolic link"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--spark", "local[1]"],
            "Spark reads Parquet files only|Spark needs PySpark",
        ),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--random-state", "-1"],
            "Invalid value for '--random-state': -1 is not in the range",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--encoding", "rot13"], "--encoding must be an encoding of text"),
        (
            ["scores.parquet", "-y", "y", "-p", "p", "--encoding", "latin-1"],
            "scores.parquet must be a text file to have an encoding; it is Parquet. Leave out --encoding.",
        ),
        (["-", "none.csv", "-y", "y", "-p", "p"], "There is no file 'none.csv'"),
        (["-", "-", "-y", "y", "-p", "p"], "Standard input (-) must be given at most once; got it 2 times."),
        (
            ["pipe", "-y", "y", "-p", "p"],
            "got 'pipe'. On the command line, - is standard input|input",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "pipe", "--force"], "'pipe' is not a regular file"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--json", "a", "--html", "./a"],
            "Outputs must have different paths; got one path twice.",
        ),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--json", "folder/a", "--html", "same/a", "--force"],
            "Outputs must have different paths; got one path twice.",
        ),
        (["https://example.org/x.csv", "-y", "y", "-p", "p"], "paths must name local files; got"),
    ],
)
def test_invalid_options_are_errors(scores, call, monkeypatch, arguments, words):
    Path("link.json").symlink_to("scores.csv")
    Path("folder").mkdir()
    Path("same").symlink_to("folder")
    os.mkfifo("pipe")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y,p\n0,0.1\n1,0.9\n")))
    before = Path("scores.csv").read_bytes()
    assert re.search(words if "|" in words else re.escape(words), call("evaluate", *arguments, *FEW, code=2))
    assert Path("scores.csv").read_bytes() == before


def test_a_decompression_bomb_stops_at_the_limit(here, call):
    Path("bomb.csv.gz").write_bytes(gzip.compress(b"y,p\n" + b"0,0.25\n" * 1_000_000))
    assert "must have at most 1,000,000 bytes" in call(
        "evaluate", "bomb.csv.gz", "-y", "y", "-p", "p", "--max-bytes", "1MB", code=2
    )


def test_other_encodings_and_packed_files(here, call):
    text = "y,p,g\n" + "".join(f"{i % 2},0.{i % 10},\u00e9\n" for i in range(50))
    Path("l.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    assert "\u00e9" in call("evaluate", "l.csv.gz", "-y", "y", "-p", "p", "--by", "g", "--encoding", "latin-1", *FEW)
    folder = Path("day=2026-11-15")
    folder.mkdir()
    (folder / "a.csv").write_text(text, encoding="utf-16")
    given = [".", "-y", "y", "-p", "p", "--by", "day", "--encoding", "utf-16", *FEW]
    Path("l.csv.gz").unlink()
    assert "2026-11-15" in call("evaluate", *given)


@settings(
    max_examples=3 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(made=MADE, packed=st.booleans(), missing=st.sampled_from(["raise", "drop"]))
def test_any_file_gives_a_result_or_an_error_about_input(here, capsys, made, packed, missing):
    ending, content = made
    file = here / f"made{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") and packed else content)
    code = run(["evaluate", str(file), "-y", "y", "-p", "p", "--missing", missing, "--resamples", "20", "--json", "-"])
    out, err = capsys.readouterr()
    assert code in (0, 2), err
    assert "Traceback" not in err
    if code == 2:
        assert err.startswith(("calibrant: ", "Usage"))
        return
    result = json.loads(out)["models"]["p"]
    assert result["n_in"] == result["n_used"] + result["n_dropped"]


def test_standard_output_and_a_file_named_so_are_two_outputs(scores, call):
    call("evaluate", "scores.csv", "-y", "y", "-p", "p", "--json", "-", "--html", "./-", *FEW)
    assert Path("./-").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "--json"),
        ("evaluate", "--html"),
        ("compare", "-p", "q", "--json"),
        ("check", "--junit"),
        ("audit", "--features", "g", "--csv"),
        ("fit", "-o"),
    ],
)
def test_no_output_replaces_an_input(scores, call, command):
    """Neither with --force, nor by another path that leads to the same file."""
    os.link("scores.csv", "hard.csv")
    Path("link.csv").symlink_to("scores.csv")
    Path("below").mkdir()
    before = Path("scores.csv").read_bytes()
    name, *options = command
    for path in ("scores.csv", "*.csv", ".", "link.csv", "hard.csv", "below/../scores.csv"):
        found = call(name, path, "-y", "y", "-p", "p", *options, "scores.csv", "--force", code=2)
        assert found == "calibrant: The output must not be an input; 'scores.csv' is one. Name another.\n"
    assert Path("scores.csv").read_bytes() == before


def test_no_output_replaces_a_calibrator_or_a_store(scores, call):
    for library in ("sklearn", "sqlalchemy"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    cb.save(cb.Isotonic().fit(scores["p"], scores["y"]), "cal.csv")
    cb.Monitor("store.db").observe(scores["y"], scores["p"], time="2026-01-01T00:00:00Z")
    before = {name: Path(name).read_bytes() for name in ("cal.csv", "scores.csv")}
    for command in (
        ("apply", "cal.csv", "scores.csv", "-p", "p", "-o", "cal.csv"),
        ("apply", "cal.csv", "scores.csv", "-p", "p", "-o", "scores.csv"),
        ("export", "cal.csv", "--onnx", "cal.csv"),
        ("monitor", "report", "--store", "store.db", "--html", "store.db"),
        ("monitor", "report", "--store", "sqlite:///store.db", "--html", "store.db"),
    ):
        assert "The output must not be an input" in call(*command, "--force", code=2)
    assert {name: Path(name).read_bytes() for name in before} == before
    assert cb.Monitor("store.db").status().n_rows == 1000
