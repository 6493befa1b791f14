"""The command line, as a user types it."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.calibrators import maps

for library in ("click", "rich", "duckdb"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyarrow.csv", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
run = pytest.importorskip("calibrant.cli.main").run

FEW = ("--replicates", "39")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def scores(here):
    """1,000 rows: q is calibrated, p overestimates."""
    rng = np.random.default_rng(0)
    q = rng.random(1000).round(3)
    rows = {"y": (rng.random(1000) < q).astype(int), "p": np.sqrt(q), "q": q, "g": np.where(q < 0.5, "low", "high")}
    pq.write_table(pa.table({**rows, "w": rng.integers(0, 3, 1000)}), "scores.parquet")
    cb_rows = zip(*(column.tolist() for column in rows.values()), strict=True)
    lines = ["y,p,q,g", *(",".join(map(str, row)) for row in cb_rows)]
    Path("scores.csv").write_text("\n".join(lines) + "\n")
    names = ("y", "p", "q")
    with Path("scores.jsonl").open("w") as out:
        for row in zip(*(rows[name].tolist() for name in names), strict=True):
            out.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")
    return rows


def said(capsys, *arguments, code=0):
    """What a command prints, with its exit code checked; never a traceback."""
    found = run(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert found == code, out + err
    return out + err


# First looks


def test_help_is_fast_and_imports_no_large_library():
    watch = "import sys, calibrant.cli.main as m; m.run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    assert "evaluate" in done.stdout
    loaded = done.stderr
    assert not [name for name in ("numpy", "scipy", "duckdb", "rich", "sklearn", "pyarrow") if f"'{name}'" in loaded]


@pytest.mark.parametrize("command", ["evaluate", "compare", "check", "fit", "apply", "export", "demo"])
def test_every_command_has_help_with_an_example(command, capsys):
    text = said(capsys, command, "--help")
    assert text.startswith(f"Usage: calibrant {command}")
    assert command == "demo" or f"calibrant {command} " in text.split("Options:")[0].split("\n", 1)[1]


def test_the_version_names_the_kernel(capsys):
    assert said(capsys, "--version").strip() == f"calibrant {cb.__version__} ({cb._kernels.KERNEL} kernel)"


def test_an_unknown_command_is_an_error(capsys):
    assert "no command 'evaluates'. Did you mean 'evaluate'?" in said(capsys, "evaluates", code=2)
    assert "Missing option '--label'" in said(capsys, "evaluate", "x.csv", code=2)


def test_it_runs_as_a_module(scores):
    command = [sys.executable, "-m", "calibrant", "evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Verdict: miscalibrated (overestimates, underconfident)")
    assert done.stderr == ""  # no bar where nobody looks
    assert "\x1b" not in done.stdout  # nor colours


# evaluate


def test_evaluate_prints_the_result_of_the_library(scores, capsys):
    expected = cb.evaluate(scores["y"], scores["p"], n_resamples=39)
    for file in ("scores.csv", "scores.parquet", "scores.jsonl"):
        text = said(capsys, "evaluate", file, "--label", "y", "--score", "p", *FEW, "--json", f"{file}.json")
        assert text.startswith(f"Verdict: {expected.verdict}")
        for metric in expected.metrics.values():
            assert " ".join([metric.name, *metric.cells()]) in " ".join(text.split())
        found = json.loads(Path(f"{file}.json").read_text())
        assert found["models"]["p"] == expected.to_dict()


def test_the_diagram_shows_bins(scores, capsys):
    text = said(capsys, "evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW)
    bins = cb.ACE()(scores["y"], scores["p"]).per_bin
    for said_, rate in zip(bins["mean_score"], bins["rate"], strict=True):
        assert f"{said_:7.4f}  {rate:8.4f}" in text
    assert "◇" in text
    assert "●" in text


def test_a_diagram_in_plain_text(scores):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    command = [sys.executable, "-m", "calibrant", "evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "o mean score, # event rate" in done.stdout


def test_groups_costs_weights_and_several_scores(scores, capsys):
    given = ["scores.parquet", "-y", "y", "-p", "p", "-p", "q", "--by", "g", "--frequency", "w", "--cost", "1:5", *FEW]
    text = said(capsys, "evaluate", *given, "--sha256")
    assert "p: Verdict: miscalibrated (overestimates, underconfident) overall; 2 of 2 groups are miscalibrated" in text
    assert "q: Verdict: " in text
    assert "ECC (1:5)" in text
    assert "high" in text
    assert "SHA-256" in text
    assert "Rows left out because their frequency is 0" in text
    result = json.loads(said(capsys, "evaluate", *given, "--json", "-", "--sha256"))
    assert list(result["models"]) == ["p", "q"]
    assert [group["group"] for group in result["models"]["p"]["groups"]] == ["high", "low"]
    assert len(result["inputs"][0]["sha256"]) == 64


def test_weights_are_importance_and_frequencies_are_rows(scores, capsys):
    rows = pq.read_table("scores.parquet")
    y, p, w = (np.asarray(rows.column(name)) for name in "ypw")
    given = ["scores.parquet", "-y", "y", "-p", "p", *FEW]
    for option, name in (("--weight", "sample_weight"), ("--frequency", "frequency")):
        found = json.loads(said(capsys, "evaluate", *given, option, "w", "--json", "-"))["models"]["p"]
        expected = cb.evaluate(cb.ScoreTable.from_arrays(y, p, **{name: w}), n_resamples=39).to_dict()
        assert found["metrics"] == json.loads(json.dumps(expected["metrics"]))
        compared = said(capsys, "compare", *given, "-p", "q", option, "w", "--json", "-")
        both = {"p": p, "q": np.asarray(rows.column("q"))}
        assert json.loads(compared)["differences"] == json.loads(
            json.dumps(cb.compare(y, both, **{name: w}, n_resamples=39).to_dict()["differences"])
        )
    text = said(capsys, "evaluate", *given, "--weight", "w", "--frequency", "w", code=2)
    assert "--weight and --frequency must not be given together" in text
    text = said(capsys, "evaluate", *given, "--frequency", "q", code=2)
    assert "q in scores.parquet must be a whole number of rows, 0 or more; got" in text
    assert "For real weights use --weight." in text


def test_fit_takes_weights_and_frequencies(scores, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    made = []
    for option in ("--weight", "--frequency"):
        given = ["scores.parquet", "-y", "y", "-p", "p", option, "w", "--method", "platt", "-o", f"cal{option}.json"]
        said(capsys, "fit", *given)
        made.append(cb.load(f"cal{option}.json"))
    assert maps.to_dict(made[0].map_) == maps.to_dict(made[1].map_)
    rows = pq.read_table("scores.parquet")
    y, p, w = (np.asarray(rows.column(name)) for name in "ypw")
    assert maps.to_dict(made[0].map_) == maps.to_dict(cb.Platt().fit(np.repeat(p, w), np.repeat(y, w)).map_)
    assert "must be a whole number of rows" in said(capsys, "fit", *given[:6], "q", "-o", "no.json", code=2)


def test_options_reach_the_metrics(scores, capsys):
    given = ["scores.csv", "-y", "y", "-p", "p", "--replicates", "99", "--bins", "7", "--alpha", "0.01", "--seed", "5"]
    given += ["--confidence", "0.9", "--margin", "0.2", "--resolution", "2**-20", "--json", "-"]
    result = json.loads(said(capsys, "evaluate", *given))["models"]["p"]
    assert result["settings"]["metrics"]["ECE"] == cb.ECE(n_bins=7).spec
    assert result["settings"]["metrics"]["TCE"] == cb.TCE(alpha=0.01).spec
    asked = ("alpha", "margin", "confidence_level", "random_state", "n_resamples")
    assert [result["settings"][name] for name in asked] == [0.01, 0.2, 0.9, 5, 99]
    assert any(note["code"] == "rounded" for note in result["notes"])


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "jsonl"])
def test_standard_input_is_read_in_any_format(scores, capsys, monkeypatch, kind):
    content = Path(f"scores.{kind.removesuffix('.gz')}").read_bytes()
    content = gzip.compress(content) if kind.endswith("gz") else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    text = said(capsys, "evaluate", "-", "-y", "y", "-p", "p", *FEW)
    assert "1,000 rows" in text


def test_labels_are_named_as_they_are_written(here, capsys):
    Path("words.csv").write_text("y,p\nyes,0.9\nno,0.2\nyes,0.7\n")
    Path("numbers.csv").write_text("y,p\n2,0.9\n1,0.2\n2,0.7\n")
    hint = said(capsys, "evaluate", "words.csv", "-y", "y", "-p", "p", code=2)
    assert "its labels are 'no', 'yes'" in hint
    assert "--pos-label yes" in hint
    for file, label in (("words.csv", "yes"), ("numbers.csv", "2")):
        text = said(capsys, "evaluate", file, "-y", "y", "-p", "p", "--pos-label", label, *FEW)
        assert "event rate 66.67 %" in text
    assert "--pos-label must be one of" in said(
        capsys, "evaluate", "words.csv", "-y", "y", "-p", "p", "--pos-label", "x", code=2
    )


def test_the_report_is_written(scores, capsys):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    given = ["scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    said(capsys, "evaluate", *given, "--by", "g", "--html", "r.html")
    page = Path("r.html").read_text()
    assert "<title>Calibration of scores.csv</title>" in page
    assert said(capsys, "evaluate", *given, "--by", "g", "--html", "-") == page  # the same bytes
    said(capsys, "compare", *given, "--html", "c.html")
    assert "Q is better calibrated than p" in Path("c.html").read_text()
    assert "already a file 'r.html'" in said(capsys, "evaluate", *given, "--html", "r.html", code=2)


# Bad input: the table of files


def bytes_of(kind):
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
        "long.csv": b"y,p,t\n0,0.1," + b"x" * (1 << 21) + b"\n",
        "heading.csv": b"y,p\n",
        "empty.csv": b"",
        "cut.parquet": b"PAR1" + b"\0" * 100,
        "words.csv": b"y,p\n0,high\n1,low\n",
        "percent.csv": b"y,p\n0,10\n1,90\n",
    }[kind]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("utf16.csv", "utf16.csv is UTF-16. Convert it to UTF-8 first, or pass --encoding utf-16."),
        ("extra.csv", "extra.csv, line 3 cannot be read"),
        ("extra_first.csv", "extra_first.csv, line 2 cannot be read"),
        ("short.csv", "short.csv, line 3 cannot be read"),
        ("missing.csv", "p in missing.csv has 1 missing value (first at row 0). Pass --missing drop"),
        (
            "comma.csv",
            'comma.csv, line 2 cannot be read: Error when converting column "p". Could not convert string "0,1"',
        ),
        ("nul.csv", "nul.csv, line 3 cannot be read"),
        ("twice.csv", "twice.csv has two columns named 'p'"),
        ("long.csv", "long.csv, line 2 cannot be read: Maximum line size of 1048576 bytes exceeded"),
        ("heading.csv", "no rows"),
        ("empty.csv", "empty.csv is empty"),
        ("cut.parquet", "cut.parquet cannot be read"),
        ("words.csv", "words.csv, line 2 cannot be read"),
        ("percent.csv", "percentages? Divide by 100"),
    ],
)
def test_unusable_files_raise_with_a_reason(here, capsys, kind, words):
    (here / kind).write_bytes(bytes_of(kind))
    assert words in said(capsys, "evaluate", kind, "-y", "y", "-p", "p", code=2)


def test_options_accept_unusual_files(here, capsys):
    for kind in ("bom.csv", "utf16.csv", "missing.csv"):
        (here / kind).write_bytes(bytes_of(kind))
    assert "2 rows" in said(capsys, "evaluate", "bom.csv", "-y", "y", "-p", "p", *FEW)
    assert "2 rows" in said(capsys, "evaluate", "utf16.csv", "-y", "y", "-p", "p", "--encoding", "utf-16", *FEW)
    dropped = said(capsys, "evaluate", "missing.csv", "-y", "y", "-p", "p", "--missing", "drop", *FEW)
    assert "Rows left out because a value is missing: 1." in dropped


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv", "-y", "y", "-p", "p"], "There is no file 'none.csv'"),
        (["scores.csv", "-y", "y", "-p", "P2"], "scores.csv has no column 'P2'; it has 'y', 'p', 'q', 'g'"),
        (["scores.csv", "-y", "y", "-p", "Q"], "Did you mean 'q'?"),
        (["scores.csv", "-y", "y", "-p", "p", "--encoding", "klingon"], "no encoding 'klingon'"),
        (["scores.csv", "-y", "y", "-p", "p", "--encoding", "utf-16"], "scores.csv is not utf-16"),
        (["scores.csv", "-y", "y", "-p", "p", "--max-bytes", "1kB"], "would be more than 1,000 bytes"),
        (["scores.csv", "-y", "y", "-p", "p", "--memory", "lots"], "A number of bytes is needed"),
        (["scores.csv", "-y", "y", "-p", "p", "--memory", "10kB"], "Pass --resolution 2**-20"),
        (["scores.csv", "-y", "y", "-p", "p", "--cost", "5"], "--cost must be OVER:UNDER"),
        (["scores.csv", "-y", "y", "-p", "p", "--resolution", "fine"], "--resolution must be a number"),
        (["scores.csv", "-y", "y", "-p", "p", "--bins", "0"], "--bins must be a whole number"),
        (["scores.csv", "-y", "y", "-p", "p", "--alpha", "2"], "alpha must lie"),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "scores.csv"], "already a file 'scores.csv'. Pass --force"),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "no/where.json"], "no folder for 'where.json'"),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "link.json"], "symbolic link"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--spark", "local[1]"],
            "Spark reads Parquet files only|Spark needs PySpark",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--seed", "-1"], "--seed must"),
        (["scores.csv", "-y", "y", "-p", "p", "--encoding", "rot13"], "no encoding 'rot13' of text"),
        (["scores.parquet", "-y", "y", "-p", "p", "--encoding", "latin-1"], "is Parquet, which has no encoding"),
        (["-", "none.csv", "-y", "y", "-p", "p"], "There is no file 'none.csv'"),
        (["-", "-", "-y", "y", "-p", "p"], "can be read once"),
        (
            ["pipe", "-y", "y", "-p", "p"],
            "'pipe' is not a regular file. On the command line, - is standard input|input",
        ),
        (["scores.csv", "-y", "y", "-p", "p", "--json", "pipe", "--force"], "'pipe' is not a regular file"),
        (
            ["scores.csv", "-y", "y", "-p", "p", "--json", "a", "--html", "./a"],
            "Two outputs are to go to the same place",
        ),
        (["https://example.org/x.csv", "-y", "y", "-p", "p"], "is an address; only files are read"),
    ],
)
def test_bad_requests_are_refused(scores, capsys, monkeypatch, arguments, words):
    Path("link.json").symlink_to("scores.csv")
    os.mkfifo("pipe")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y,p\n0,0.1\n1,0.9\n")))
    before = Path("scores.csv").read_bytes()
    assert re.search(words if "|" in words else re.escape(words), said(capsys, "evaluate", *arguments, *FEW, code=2))
    assert Path("scores.csv").read_bytes() == before


def test_a_decompression_bomb_stops_at_the_limit(here, capsys):
    Path("bomb.csv.gz").write_bytes(gzip.compress(b"y,p\n" + b"0,0.25\n" * 1_000_000))
    assert "more than 1,000,000 bytes" in said(
        capsys, "evaluate", "bomb.csv.gz", "-y", "y", "-p", "p", "--max-bytes", "1MB", code=2
    )


def test_unexpected_errors_print_no_traceback(scores, capsys, monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("calibrant.ingest.files._read", fails)
    text = said(capsys, "evaluate", "scores.csv", "-y", "y", "-p", "p", code=3)
    assert "an error inside calibrant, which should not happen: RuntimeError: the sky fell" in text
    monkeypatch.setenv("CALIBRANT_DEBUG", "1")
    with pytest.raises(RuntimeError, match="the sky fell"):
        run(["evaluate", "scores.csv", "-y", "y", "-p", "p"])


@pytest.mark.parametrize("command", [["evaluate"], ["check", "--max-ece", "1", "--junit", "j.xml"], ["--help"]])
def test_a_closed_pipe_does_not_fail_the_gate(scores, command):
    given = [] if command == ["--help"] else ["scores.csv", "-y", "y", "-p", "p", *FEW]
    with subprocess.Popen(
        [sys.executable, "-m", "calibrant", *command, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode in (0, 141)
    assert error == b""
    assert "--junit" not in command or Path("j.xml").is_file()  # files are written first


def test_names_are_shown_as_text_and_not_interpreted(here, capsys):
    names = ["[red]", "{count}", "\x1b[31mX", "\u00fc", "missing='drop'"]
    rows = [",".join([str(i % 2), *["0.5"] * 5, f"[/red]\x1b[{i % 2}m"]) for i in range(60)]
    Path("[red]x.csv").write_text("\n".join([",".join(["y", *names, "g"]), *rows]))
    scores = [part for name in names for part in ("-p", name)]
    text = said(capsys, "evaluate", "./[red]x.csv", "-y", "y", *scores, "--by", "g", "--sha256", *FEW)
    assert "\x1b" not in text
    for name in (
        "[red]: Verdict",
        "{count}: Verdict",
        "\\x1b[31mX: Verdict",
        "\u00fc: Verdict",
        "[red]x.csv: ",
        "[/red]",
    ):
        assert name in text
    assert "it has 'y', '[red]', '{count}', '\\x1b[31mX', '\u00fc', \"missing='drop'\"" in said(
        capsys, "evaluate", "./[red]x.csv", "-y", "y", "-p", "nothing", code=2
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "calibrant", "evaluate", "./[red]x.csv", "-y", "y", "-p", "\u00fc", "-p", "[red]"]
    done = subprocess.run([*command, *FEW], capture_output=True, text=True, check=True, env=environment)
    assert "\\xfc: Verdict" in done.stdout


def test_other_encodings_and_packed_files(here, capsys):
    text = "y,p,g\n" + "".join(f"{i % 2},0.{i % 10},\u00e9\n" for i in range(50))
    Path("l.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    assert "\u00e9" in said(
        capsys, "evaluate", "l.csv.gz", "-y", "y", "-p", "p", "--by", "g", "--encoding", "latin-1", *FEW
    )
    folder = Path("day=2026-11-15")
    folder.mkdir()
    (folder / "a.csv").write_text(text, encoding="utf-16")
    given = [".", "-y", "y", "-p", "p", "--by", "day", "--encoding", "utf-16", *FEW]
    Path("l.csv.gz").unlink()
    assert "2026-11-15" in said(capsys, "evaluate", *given)


# compare


def test_compare_is_paired(scores, capsys):
    given = ["scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    text = said(capsys, "compare", *given, "--json", "out.json")
    expected = cb.compare(scores["y"], {"p": scores["p"], "q": scores["q"]}, n_resamples=39)
    assert text.startswith("Verdict: q is better calibrated than p")
    assert {k: v for k, v in json.loads(Path("out.json").read_text()).items() if k in expected.to_dict()} == json.loads(
        json.dumps(expected.to_dict())
    )
    assert "at least two scores" in said(capsys, "compare", "scores.csv", "-y", "y", "-p", "p", code=2)
    assert "at least 10 distinct values" in said(capsys, "compare", *given, "--cluster", "g", code=2)
    lines = Path("scores.csv").read_text().splitlines()
    clustered = [f"{line},{'h' if i == 0 else i // 20}" for i, line in enumerate(lines)]
    Path("clustered.csv").write_text("\n".join(clustered))
    assert "Verdict" in said(capsys, "compare", "clustered.csv", *given[1:], "--cluster", "h")


def test_compare_drops_rows_for_all_scores(here, capsys):
    Path("holes.csv").write_text("y,p,q\n" + "".join(f"{i % 2},{'NA' if i == 3 else i / 50},0.5\n" for i in range(50)))
    given = ["holes.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    assert "--missing drop" in said(capsys, "compare", *given, code=2)
    text = said(capsys, "compare", *given, "--missing", "drop")
    assert "49 rows" in text
    assert "Rows left out because a value is missing: 1." in text


# check


def test_the_gate_passes_and_fails(scores, capsys):
    good, bad = ["scores.csv", "-y", "y", "-p", "q", *FEW], ["scores.csv", "-y", "y", "-p", "p", *FEW]
    text = said(capsys, "check", *good)
    assert text.startswith("WARN  q: must not be miscalibrated; it is inconclusive: No deviation is significant")
    assert "all gates passed" in text
    text = said(capsys, "check", *bad, "--junit", "j.xml", "--json", "c.json", code=1)
    assert "FAIL  p: must not be miscalibrated; it is miscalibrated (overestimates, underconfident)" in text
    result = json.loads(Path("c.json").read_text())
    assert not result["passed"]
    suite = ElementTree.parse("j.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "it overestimates" in suite.find("testcase/failure").get("message")


@pytest.mark.parametrize(
    ("option", "limit", "code"),
    [
        ("--max-ece", "0.5", 0),
        ("--max-ece", "0.01", 1),
        ("--max-tce-excess", "100", 0),
        ("--max-tce-excess", "1", 1),
        ("--equivalence", "0.5", 0),
        ("--equivalence", "0.01", 1),
        ("--max-ece", "-1", 2),
        ("--max-ece", "nan", 2),
        ("--equivalence", "0.5 --margin 0.3", 2),
        ("--max-tce-excess", "1 --weight q", 2),
    ],
)
def test_thresholds_decide_where_there_are_some(scores, capsys, option, limit, code):
    said(capsys, "check", "scores.csv", "-y", "y", "-p", "p", *FEW, option, *limit.split(), code=code)


def test_require_calibrated_is_strict(scores, capsys):
    q = ["scores.csv", "-y", "y", "-p", "q", *FEW]
    text = said(capsys, "check", *q, "--require", "calibrated", code=1)
    assert "FAIL  q: must be shown to be calibrated within the margin; it is inconclusive" in text
    assert "PASS" in said(capsys, "check", *q, "--require", "calibrated", "--margin", "1")
    assert "PASS" in said(capsys, "check", *q, "--require", "calibrated", "--absolute-margin", "0.2")
    assert "given thresholds decide alone" in said(
        capsys, "check", *q, "--require", "calibrated", "--max-ece", "1", code=2
    )


def test_scores_of_rare_events_fail_the_gate(here, capsys):
    """50,000 rows with 0.8 % events: scores that are far off in log-odds, but not in points."""
    rng = np.random.default_rng(0)
    t = rng.beta(0.5, 60, 50_000)
    y = (rng.random(t.size) < t).astype(int)
    columns = {"y": y, "constant": np.full(t.size, 1e-6), "tenth": t / 10, "half": t / 2, "double": 2 * t, "t": t}
    columns = {name: pa.array(column) for name, column in columns.items()}
    pa.csv.write_csv(pa.table(columns), "rare.csv")
    for score in ("constant", "tenth", "half", "double"):
        text = said(capsys, "check", "rare.csv", "-y", "y", "-p", score, *FEW, code=1)
        direction = "overestimates" if score == "double" else "underestimates"
        assert f"FAIL  {score}: must not be miscalibrated; it is miscalibrated ({direction}" in text
    said(capsys, "check", "rare.csv", "-y", "y", "-p", "t", *FEW)


def test_groups_pass_each_for_itself(scores, capsys):
    text = said(capsys, "check", "scores.csv", "-y", "y", "-p", "p", "--by", "g", *FEW, code=1)
    assert "p, g = low" in text
    assert "p, g = high" in text


def test_the_example_for_ci_runs(here, capsys):
    sample = (Path(__file__).parents[2] / "examples" / "ci" / "github-actions.yml").read_text()
    command = next(line.split("run: calibrant ")[1] for line in sample.splitlines() if "run: calibrant" in line)
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    for said_, code in ((p, 0), (p**3, 1)):
        rows = "".join(f"{a},{b}\n" for a, b in zip(y, said_, strict=True))
        Path("validation.csv").write_text(f"outcome,score\n{rows}")
        said(capsys, *command.split(), "--force", code=code)
        suite = ElementTree.parse("calibration.xml").getroot().find("testsuite")
        assert suite.get("failures") == str(code)
        assert json.loads(Path("calibration.json").read_text())["passed"] is (code == 0)


def test_junit_survives_hostile_names(capsys):
    from calibrant.cli.check import Gate, junit_xml

    names = ["<script>", "a&b", '"', "]]>", "\x00\x1b[31m", "\ud800", "é", "\uffff"]
    xml = junit_xml([Gate(name, name, "rule", False, name) for name in names])
    cases = ElementTree.fromstring(xml.encode("utf-8")).findall("testsuite/testcase")
    assert len(cases) == len(names)


# fit, apply, export


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_fit_apply_and_measure_again(scores, capsys, kind):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    said(capsys, "fit", "scores.csv", "-y", "y", "-p", "p", "--method", "beta", "-o", "cal.json")
    text = said(capsys, "apply", "cal.json", f"scores.{kind}", "-p", "p", "-o", f"out.{kind}")
    assert text == f"1,000 rows: out.{kind}\n"
    expected = cb.Beta().fit(scores["p"], scores["y"])(scores["p"])
    table = cb.scan(f"out.{kind}", y="y", p="calibrated")
    assert table == cb.ScoreTable.from_arrays(scores["y"], expected)
    if kind == "csv":
        lines, before = Path("out.csv").read_text().splitlines(), Path("scores.csv").read_text().splitlines()
        kept = [",".join(line.replace('"', "").split(",")[:4]) for line in lines]
        assert kept == before  # other cells are the text that they were
    assert "Verdict: inconclusive" in said(capsys, "evaluate", f"out.{kind}", "-y", "y", "-p", "calibrated", *FEW)


def test_fit_prints_the_improvement(scores, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    text = said(capsys, "fit", "scores.csv", "-y", "y", "-p", "p", "--method", "platt", "-o", "cal.json")
    before, after = (float(part.split()[0]) for part in text.split("ACE: ")[1].split(", "))
    assert before == pytest.approx(float(cb.ace(scores["y"], scores["p"])), abs=1e-5)
    assert after < before / 2
    assert "already a file" in said(capsys, "fit", "scores.csv", "-y", "y", "-p", "p", "-o", "cal.json", code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "nothing"], "'nothing' is not one of"),
        (["--method", "beta", "--set", "depth=3"], "beta has no setting 'depth'"),
        (["--method", "binning_average", "--set", "n_bins"], "--set must be NAME=VALUE"),
        (["--method", "binning_average", "--set", "n_bins=0"], "n_bins"),
        (["--method", "prior_shift"], "prevalence"),
    ],
)
def test_invalid_fits_are_refused(scores, capsys, arguments, words):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    given = ["scores.csv", "-y", "y", "-p", "p", "-o", "cal.json"]
    assert words in said(capsys, "fit", *given, *arguments, code=2)
    assert not Path("cal.json").exists()


def test_settings_and_costs_reach_the_method(scores, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    given = ["scores.csv", "-y", "y", "-p", "p", "--force", "-o", "cal.json"]
    said(capsys, "fit", *given, "--method", "binning_average", "--set", "n_bins=4")
    assert cb.load("cal.json").n_bins == 4
    said(capsys, "fit", *given, "--method", "cats", "--cost", "1:5")
    assert cb.load("cal.json").cost == cb.LinearCost(over=1, under=5)


def test_rows_with_a_missing_score_get_a_missing_probability(here, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rows = [(i % 2, "" if i == 7 else f"{i / 40:.3f}", "NA") for i in range(40)]
    Path("s.csv").write_text("y,p,note\n" + "".join(f"{y},{p},{note}\n" for y, p, note in rows))
    assert "left out because a value is missing: 1" in said(
        capsys, "fit", "s.csv", "-y", "y", "-p", "p", "-o", "cal.json", "--missing", "drop"
    )
    text = said(capsys, "apply", "cal.json", "s.csv", "-p", "p", "-o", "out.jsonl", "--name", "c")
    assert "Rows without a score, which get no probability: 1." in text
    found = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert found[7] == {"y": "1", "p": "", "note": "NA", "c": None}
    assert found[8]["note"] == "NA"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cal.json", "none.csv", "-p", "p", "-o", "o.csv"], "There is no file 'none.csv'"),
        (["none.json", "scores.csv", "-p", "p", "-o", "o.csv"], "There is no file 'none.json'"),
        (
            ["scores.csv", "scores.csv", "-p", "p", "-o", "o.csv"],
            "scores.csv is not a calibrator",
        ),
        (["cal.json", "scores.csv", "-p", "x", "-o", "o.csv"], "scores.csv has no column 'x'"),
        (["cal.json", "scores.csv", "-p", "g", "-o", "o.csv"], "must hold numbers; row 0 is"),
        (["cal.json", "scores.csv", "-p", "p", "--name", "q", "-o", "o.csv"], "has a column 'q' already"),
        (["cal.json", "scores.csv", "-p", "p", "-o", "o.xlsx"], "Use .parquet, .csv or .jsonl"),
        (["cal.json", "scores.csv", "-p", "p", "-o", "scores.csv"], "already a file"),
        (["cal.json", "ragged.csv", "-p", "p", "-o", "o.csv"], "ragged.csv, line 3 cannot be read: it has 3 cells"),
    ],
)
def test_invalid_applications_are_refused(scores, capsys, arguments, words):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    cb.save(cb.Platt().fit(scores["p"], scores["y"]), "cal.json")
    Path("ragged.csv").write_text("y,p\n0,0.1\n1,0.2,3\n")
    assert words in said(capsys, "apply", *arguments, code=2)
    assert not Path("o.csv").exists()
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_apply_keeps_existing_columns(here, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "cal.json")
    objects = [
        {"p": 0.5, "day": "2020-01-01T10:00:00Z", "id": 9007199254740993, "deep": {"a": [1, 2.5, None]}},
        {"p": None, "other": True},
        {"p": 1},
    ]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, objects)))
    said(capsys, "apply", "cal.json", "a.jsonl", "-p", "p", "-o", "b.jsonl", "--name", "c")
    found = [json.loads(line) for line in Path("b.jsonl").read_text().splitlines()]
    assert [{k: v for k, v in row.items() if k != "c"} for row in found] == objects
    assert found[1]["c"] is None
    text = 'id;p;"a ""b"""\n007;0.5;"x;\ny"\n1_0;1e-1;" z "\n'
    Path("a.tsv").write_text(text)
    Path("a.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    for file in ("a.tsv", "a.csv.gz"):
        said(capsys, "apply", "cal.json", file, "-p", "p", "-o", "b.csv", "--force")
        with Path("b.csv").open(newline="") as read:
            cells = [row[:3] for row in csv.reader(read)]
        assert cells == [["id", "p", 'a "b"'], ["007", "0.5", "x;\ny"], ["1_0", "1e-1", " z "]]
    table = pa.table({"p": pa.array([0.5, None], pa.float32()), "t": [[1], []], "b": [b"x", b""]})
    pq.write_table(table, "a.parquet")
    said(capsys, "apply", "cal.json", "a.parquet", "-p", "p", "-o", "b.parquet")
    assert pq.read_table("b.parquet").drop_columns(["calibrated"]) == table
    assert "no place for 'b', which holds bytes" in said(
        capsys, "apply", "cal.json", "a.parquet", "-p", "p", "-o", "c.jsonl", code=2
    )
    assert "no place for 't'" in said(capsys, "apply", "cal.json", "a.parquet", "-p", "p", "-o", "c.csv", code=2)
    Path("odd.csv").write_text("p\n0.5\n\n0.1_5\n")
    assert "row 2 is '0.1_5'" in said(capsys, "apply", "cal.json", "odd.csv", "-p", "p", "-o", "c.csv", code=2)
    Path("far.csv").write_text("p,q\n0.5,1\nNA,1\n7,1\n")
    assert "p in far.csv must lie in [0, 1]; 1 of 2 values do not, the first at row 2 is 7" in said(
        capsys, "apply", "cal.json", "far.csv", "-p", "p", "-o", "c.csv", code=2
    )


def test_the_demo_runs_and_overwrites_nothing(here, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    Path("cal.json").write_text("precious")
    assert "already a file 'cal.json'" in said(capsys, "demo", "--folder", ".", code=2)
    assert Path("cal.json").read_text() == "precious"
    text = said(capsys, "demo", "--folder", "new")
    assert "logistic is better calibrated than forest" in text
    assert "(exit code 1)" in text  # the gate
    assert set(os.listdir("new")) == {"digits.csv", "cal.json", "calibrated.csv", "calibration.xml", "report.html"}
    assert "report.html" in text.splitlines()[-1]


def test_export_gives_sql_and_onnx(scores, capsys):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    calibrator = cb.Platt().fit(scores["p"], scores["y"])
    cb.save(calibrator, "cal.json")
    text = said(capsys, "export", "cal.json", "--sql", "--column", "p", "--dialect", "spark")
    assert text.strip() == cb.to_sql(calibrator, "p", dialect="spark")
    said(capsys, "export", "cal.json", "--onnx", "cal.onnx")
    assert Path("cal.onnx").read_bytes() == cb.to_onnx(calibrator).SerializeToString()
    assert "Say --sql, or --onnx" in said(capsys, "export", "cal.json", code=2)


def test_the_methods_are_all_calibrators():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from calibrant.cli.repair import METHODS

    assert set(METHODS) == set(cb.CALIBRATORS)


# Whatever is in a file

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


@settings(
    max_examples=int(os.environ.get("CALIBRANT_TEST_FILES", "150")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(made=MADE, packed=st.booleans(), missing=st.sampled_from(["raise", "drop"]))
def test_no_file_breaks_it(here, capsys, made, packed, missing):
    ending, content = made
    file = here / f"made{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") and packed else content)
    code = run(["evaluate", str(file), "-y", "y", "-p", "p", "--missing", missing, "--replicates", "20", "--json", "-"])
    out, err = capsys.readouterr()
    assert code in (0, 2), err
    assert "Traceback" not in err
    if code == 2:
        assert err.startswith(("calibrant: ", "Usage"))
        return
    result = json.loads(out)["models"]["p"]
    assert result["n_in"] == result["n_used"] + result["n_dropped"]


def test_clusters_are_read_from_files(here, capsys):
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(40), 10)
    p = rng.uniform(0.1, 0.9, 400)
    y = (rng.random(40)[cluster] < p).astype(int)  # one draw decides for all rows of a cluster
    lines = [f"{a},{b},{c},{'xy'[c % 2]}" for a, b, c in zip(y, p, cluster, strict=True)]
    Path("clusters.csv").write_text("\n".join(["y,p,shop,kind", *lines]))
    options = ("clusters.csv", "--label", "y", "--score", "p", "--replicates", "39")
    assert "WARN" in said(capsys, "check", *options, "--cluster", "shop", "--by", "kind")
    assert "more clusters like these" in said(capsys, "evaluate", *options, "--cluster", "shop")
    assert "at most one --by" in said(
        capsys, "evaluate", *options, "--cluster", "shop", "--by", "kind", "--by", "y", code=2
    )


def test_an_inconclusive_gate_leaves_a_warning(here, capsys):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    lines = [f"{int(rng.random() < each)},{each}" for each in p]
    Path("few.csv").write_text("\n".join(["y,p", *lines, ",0.5"]))
    text = said(
        capsys,
        "check",
        "few.csv",
        "--label",
        "y",
        "--score",
        "p",
        "--missing",
        "drop",
        "--junit",
        "junit.xml",
        "--replicates",
        "39",
    )
    assert "all gates passed, 1 with a warning" in text
    assert "missing: 1" in text
    assert "Warning: p: it is inconclusive" in Path("junit.xml").read_text()
    assert "must lie between 0 and 1; got 20" in said(
        capsys, "check", "few.csv", "--label", "y", "--score", "p", "--max-ece", "20", code=2
    )
