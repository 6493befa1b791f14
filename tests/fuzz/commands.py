"""The command line: any options of any command. Exit codes are 0 to 2; 3 is an internal error."""

import contextlib
import functools
import io
import os
import shutil
import sys
import warnings
from pathlib import Path

import click

from calibrant.cli.main import COMMANDS, calibrant
from calibrant.cli.main import run as run_command
from tests.fuzz.choices import Choices
from tests.fuzz.workplace import folder, one_database

ROWS = "y,p,q,g,w\n" + "".join(
    f"{i % 3 // 2},{i / 41:.3f},{i * i % 41 / 41:.3f},{'ab'[i % 2]},{i % 4}\n" for i in range(41)
)
NAMES = [name for name in COMMANDS if name not in ("demo", "serve")]  # which run for long
VALUES = (
    *(
        "scores.csv",
        "missing.csv",
        "cal.json",
        "out.csv",
        "out.html",
        "out.json",
        ".",
        "y",
        "p",
        "q",
        "g",
        "w",
        "p,q",
        "no",
    ),
    *(
        "0",
        "1",
        "-1",
        "0.05",
        "1e400",
        "nan",
        "inf",
        "2**-20",
        "2**",
        "x",
        "",
        "platt",
        "isotonic",
        "beta",
        "ece",
        "tce",
    ),
    *(
        "brier,ece",
        "drop",
        "raise",
        "duckdb",
        "sql",
        "onnx",
        "\ud800",
        "a\x1bb",
        "--",
        "=",
        "10",
        "99",
        "absolute:0.01",
    ),
)


@functools.cache
def options(name: str) -> tuple[str, ...]:
    """Return the options of a command."""
    command = calibrant.get_command(click.Context(calibrant), name)
    return tuple(sorted(option for each in command.params for option in each.opts if option.startswith("-")))


def seeds() -> list[bytes]:
    return [bytes([i, 5, *range(7 * i, 7 * i + 24)]) for i in range(len(NAMES))]


def run(data: bytes) -> None:
    choices = Choices(data)
    name = choices.pick(NAMES)
    arguments = [name, "scores.csv", "--label", "y", "--score", "p"][: choices.pick((1, 2, 6, 6))]
    for _ in range(choices.whole(0, 6)):
        arguments.append(choices.pick((options(name) if choices.whole(0, 3) else ()) or VALUES))
        if choices.whole(0, 3):
            arguments.append(choices.pick(VALUES))
    before, stdin, place = Path.cwd(), sys.stdin, folder() / "command"
    place.mkdir()
    os.chdir(place)
    Path("scores.csv").write_text(ROWS)
    out, error, sys.stdin = io.StringIO(), io.StringIO(), io.StringIO("")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with one_database():
                code = run_command(arguments)
    finally:
        sys.stdin = stdin
        os.chdir(before)
        shutil.rmtree(place)
    assert code in (0, 1, 2), (code, arguments, error.getvalue()[-2000:])
    assert "Traceback" not in error.getvalue(), arguments
