"""The command `calibrant`: help, and errors in its own words."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
from calibrant._support.errors import Argument  # noqa: E402
from calibrant.cli.main import COMMANDS, write_option  # noqa: E402

FEW = ("--resamples", "39")


LARGE = ("numpy", "scipy", "duckdb", "rich", "sklearn", "pyarrow", "matplotlib", "jinja2")


@pytest.mark.parametrize("arguments", [[], *([command] for command in COMMANDS)])
def test_help_imports_no_large_library(arguments):
    watch = (
        f"import sys, calibrant.cli.main as m; m.run({[*arguments, '--help']}); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(" ".join(["Usage: calibrant", *arguments]))
    assert not set(LARGE) & set(done.stderr.split())


def loaded(arguments):
    watch = f"import sys, calibrant.cli.main as m; code = m.run({arguments}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_version_is_printed_without_a_large_library():
    assert not set(LARGE) & loaded(["--version"])


def test_evaluating_a_csv_file_loads_only_what_it_uses(scores):
    modules = loaded(["evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW])
    unused = {
        "calibrant.metrics.distribution",
        "calibrant.metrics.point",
        "calibrant.metrics.multiclass",
        "matplotlib",
        "narwhals",
        "pandas",
        "pyarrow.compute",
        "scipy.optimize",
        "scipy.stats",
        "sklearn",
    }
    assert not unused & modules


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, call):
    text = call(command, "--help")
    assert text.startswith(f"Usage: calibrant {command}")
    assert command == "demo" or f"calibrant {command} " in text.split("Options:")[0].split("\n", 1)[1]


def test_the_version_names_the_kernel(call):
    assert call("--version").startswith(f"calibrant {cb.__version__}, kernel: {cb._kernels.KERNEL}")


def test_an_unknown_command_is_an_error(call):
    assert "no command 'evaluates'. Did you mean 'evaluate'?" in call("evaluates", code=2)
    assert "Missing option '--label'" in call("evaluate", "x.csv", code=2)


def test_it_runs_as_a_module(scores):
    command = [sys.executable, "-m", "calibrant", "evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Verdict: miscalibrated (overestimates, underconfident)")
    assert done.stderr == ""  # no bar where nobody looks
    assert "\x1b" not in done.stdout  # nor colours


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--alpha 2", "--alpha must lie between 0 and 1"),
        ("--alpha 0.6", "--alpha must lie below 0.5; got 0.6."),
        ("--confidence-level 2", "--confidence-level must lie between 0 and 1"),
        ("--resamples 0", "--resamples must be a whole number of at least 1"),
        ("--absolute-margin 0.1 --resamples 5", "--resamples must be at least 19 for a p-value of 0.05"),
        ("--bins 0", "--bins must be a whole number of at least 1"),
        ("--margin -1", "--margin must be a positive number in log-odds, at most 2; got -1.0."),
        ("--margin -1", "For a margin of ACE use --absolute-margin."),
        ("--margin 1 --absolute-margin 0.1", "--margin and --absolute-margin must not be given together; got both."),
        ("--absolute-margin 2", "--absolute-margin must lie between 0 and 1; got 2.0. 0.01 is one percentage point."),
        ("--resolution 2", "--resolution must lie between 1e-300 and 1"),
        ("--cluster g", "--cluster must have at least 3 distinct values for inference; got 2."),
        ("--sample-weight w --frequency w", "--sample-weight and --frequency must not be given together; got both."),
        ("--frequency q", "For real weights use --sample-weight."),
        ("--pos-label 7", "--pos-label must be one of the labels of y, which are 0, 1"),
        ("--spark local[1] --max-memory 1GB", "--spark must not be given with --max-memory or standard input (-)."),
        ("--json a.json --html a.json", "Outputs must have different paths; got one path twice."),
    ],
)
def test_errors_name_the_options_of_the_command(scores, call, options, words):
    assert words in call("evaluate", "scores.parquet", "-y", "y", "-p", "p", *options.split(), code=2)


def test_hints_are_options_with_quoted_values(here, call):
    Path("a.csv").write_text("y,p\nno spam,0.1\nspam mail,0.9\nspam mail,\nno spam,0.2\nno spam,0.2\n")
    given = ("a.csv", "-y", "y", "-p", "p")
    assert "for example --pos-label 'spam mail'." in call("evaluate", *given, code=2)
    hint = "p in a.csv has 1 missing value (first at row 2). Pass --missing drop to"
    assert hint in call("evaluate", *given, "--pos-label", "spam mail", code=2)


@pytest.mark.parametrize("command", [("evaluate",), ("compare", "-p", "q"), ("fit", "-o", "cal.json")])
def test_errors_name_the_column_the_file_and_the_row(here, call, command):
    Path("a.csv").write_text("y,p,q\nno,0.1,0.1\nyes,0.9,0.9\n")
    given = (*command, "a.csv", "-y", "y", "-p", "p")
    assert re.search(r"\by in a.csv must hold 0 and 1; got the labels 'no', 'yes'", call(*given, code=2))
    Path("a.csv").write_text("y,p,q\n0,0.1,0.1\n1,1.9,0.9\n")
    if command[0] != "fit":  # isotonic regression takes any score
        assert re.search(r"\bp in a.csv must lie in \[0, 1\]; .* the first at row 1 is 1.9", call(*given, code=2))
    Path("a.csv").write_text("y,p,q\n0,0.1,0.1\n1,,0.9\n")
    assert re.search(r"\bp in a.csv has 1 missing value \(first at row 1\). Pass --missing drop", call(*given, code=2))


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("p", "", "p in a.csv has 1 missing value (first at row 9). Pass --missing drop"),
        ("p", "7", "the first at row 9 is 7"),
        ("y", "0.5", "y in a.csv must hold 0 and 1; row 9 is 0.5."),
        ("w", "0.5", "got 0.5 (row 9). For real weights use --sample-weight."),
    ],
)
def test_rows_are_counted_from_the_start_of_the_file(here, call, monkeypatch, column, cell, words):
    monkeypatch.setattr("calibrant.ingest.files._BATCH", 4)
    rows = [{"y": i % 2, "p": 0.5, "w": 1} for i in range(12)]
    rows[9][column] = cell
    Path("a.csv").write_text("y,p,w\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows))
    text = call("evaluate", "a.csv", "-y", "y", "-p", "p", "--frequency", "w", code=2)
    assert words in text


@pytest.mark.parametrize("name", ["missing='drop'", "pos_label=1", "alpha", "sample_weight", "{count}", "{0}"])
def test_names_of_columns_in_errors_are_never_rewritten(here, call, name):
    Path("a.csv").write_text(f"y,{name}\n0,0.1\n1,7\n")
    text = call("evaluate", "a.csv", "-y", "y", "-p", name, code=2)
    assert text.startswith(f"calibrant: {name} in a.csv must lie in [0, 1]; ")


def test_an_argument_without_an_option_is_written_as_in_python():
    assert write_option(Argument("metrics", "ece"), {"alpha": "--alpha"}) == "metrics='ece'"
    assert write_option(Argument("alpha", 0.1), {"alpha": "--alpha"}) == "--alpha 0.1"


def test_names_are_shown_as_text_and_not_interpreted(here, call):
    names = ["[red]", "{count}", "\x1b[31mX", "\u00fc", "missing='drop'"]
    rows = [",".join([str(i % 2), *["0.5"] * 5, f"[/red]\x1b[{i % 2}m"]) for i in range(60)]
    Path("[red]x.csv").write_text("\n".join([",".join(["y", *names, "g"]), *rows]))
    scores = [part for name in names for part in ("-p", name)]
    text = call("evaluate", "./[red]x.csv", "-y", "y", *scores, "--by", "g", "--sha256", *FEW)
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
    assert "it has 'y', '[red]', '{count}', '\\x1b[31mX', '\u00fc', \"missing='drop'\"" in call(
        "evaluate", "./[red]x.csv", "-y", "y", "-p", "nothing", code=2
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "calibrant", "evaluate", "./[red]x.csv", "-y", "y", "-p", "\u00fc", "-p", "[red]"]
    done = subprocess.run([*command, *FEW], capture_output=True, text=True, check=True, env=environment)
    assert "\\xfc: Verdict" in done.stdout


DEFERRED = """
import sys
from calibrant.cli.main import main
try:
    main(["evaluate", sys.argv[1], "--label", "y", "--score", "p"])
except SystemExit as stop:
    assert stop.code == 0
import numpy
assert "numpy.f2py" in sys.modules and "numpy.f2py.crackfortran" not in sys.modules
assert "numpy.testing._private" not in sys.modules
numpy.testing.assert_equal(numpy.ma.array([1, 2], mask=[False, True]).sum(), 1)
assert "numpy.testing._private" in sys.modules
assert callable(numpy.f2py.get_include)
"""


def test_a_command_loads_modules_of_numpy_that_only_scipy_names_at_their_first_use(tmp_path):
    rows = "\n".join(f"{i % 2},{(i % 10) / 10 + 0.05}" for i in range(100))
    (tmp_path / "rows.csv").write_text(f"y,p\n{rows}\n")
    done = subprocess.run(
        [sys.executable, "-c", DEFERRED, str(tmp_path / "rows.csv")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
