"""Exit codes of the command line, and the message of each error."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
from calibrant._support.errors import MissingExtraError  # noqa: E402
from calibrant.cli.main import run  # noqa: E402

FEW = ("--resamples", "39")


def fail_with(monkeypatch, error):
    """Let the input of evaluate raise an error."""

    def read_tables(source):
        raise error

    monkeypatch.setattr("calibrant.cli.inputs.Source.read_tables", read_tables)


def test_internal_errors_exit_with_3_and_print_no_traceback(scores, call, monkeypatch):
    fail_with(monkeypatch, RuntimeError("the sky fell"))
    text = call("evaluate", "scores.csv", "-y", "y", "-p", "p", code=3)
    assert text.startswith("calibrant: internal error: RuntimeError: the sky fell\n")
    monkeypatch.setenv("CALIBRANT_DEBUG", "1")
    with pytest.raises(RuntimeError, match="the sky fell"):
        run(["evaluate", "scores.csv", "-y", "y", "-p", "p"])


@pytest.mark.parametrize("error", [MemoryError(), np._core._exceptions._ArrayMemoryError((10**12,), np.dtype(float))])
def test_a_lack_of_memory_exits_with_4(scores, call, monkeypatch, error):
    fail_with(monkeypatch, error)
    text = call("evaluate", "scores.csv", "-y", "y", "-p", "p", code=4)
    assert text.startswith("calibrant: out of memory")
    assert str(error) in text
    assert "--resolution '2**-20'" in text


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (PermissionError(13, "Permission denied", "/secret/folder/a.csv"), 2, "Permission denied: a.csv"),
        (MissingExtraError("Spark needs PySpark", "spark"), 2, 'Spark needs PySpark: pip install "calibrant[spark]".'),
        (ModuleNotFoundError("a text with pip install"), 3, "internal error: ModuleNotFoundError"),
        (ModuleNotFoundError("No module named 'x'"), 3, "internal error: ModuleNotFoundError"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_each_kind_of_error_has_its_exit_code(scores, call, monkeypatch, error, code, text):
    fail_with(monkeypatch, error)
    assert f"calibrant: {text}" in call("evaluate", "scores.csv", "-y", "y", "-p", "p", code=code)


def test_a_memory_limit_that_is_too_small_to_read_exits_with_4(here, call, monkeypatch):
    pq.write_table(pa.table({"y": [0, 1] * 500_000, "p": np.linspace(0, 1, 1_000_000)}), "a.parquet")
    monkeypatch.setattr("calibrant.ingest.memory._LEAST_READING_MEMORY", 1)
    text = call("evaluate", "a.parquet", "-y", "y", "-p", "p", "--max-memory", "2MB", code=4)
    assert text.startswith("calibrant: out of memory: max_memory is too small to read a.parquet")


@pytest.mark.parametrize("command", [["evaluate"], ["check", "--max-ece", "1", "--junit", "j.xml"], ["--help"]])
def test_a_closed_pipe_is_not_an_error(scores, command):
    given = [] if command == ["--help"] else ["scores.csv", "-y", "y", "-p", "p", *FEW]
    with subprocess.Popen(
        [sys.executable, "-m", "calibrant", *command, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode in (0, 141)
    assert error == b""
    assert "--junit" not in command or Path("j.xml").is_file()  # files are written first
