"""The transcripts of docs/command_line.rst: each command is run, and its output compared."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

for library in ("click", "rich", "duckdb", "pyarrow", "sklearn", "onnx"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "command_line.rst"
OTHERS = Path(__file__).parents[2]


def steps(page):
    """Yield each command of a page with the lines that follow it."""
    for block in re.findall(r"\.\. code-block:: console\n\n((?:   .*\n|\s*\n)*)", page):
        lines = [line[3:].rstrip() for line in block.rstrip().splitlines()]
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
        for i, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield shlex.split(lines[i][2:], comments=True), lines[i + 1 : end]


@pytest.fixture
def data(here, data_folder):
    shutil.copy(data_folder / "forecasts" / "538_nhl_games.csv.gz", here)
    dogs = np.load(data_folder / "imagenet_dogs.npz")
    columns = {"is_dog": dogs["labels"], **{name: dogs[name] for name in ("alexnet", "resnet152")}}
    for name in ("dogs.parquet", "new.parquet"):
        pq.write_table(pa.table(columns), name)


def test_the_transcripts_are_the_output_of_their_commands(data, capsys):
    from calibrant.cli.main import run

    code, compared = 0, 0
    for command, expected in steps(PAGE.read_text(encoding="utf-8")):
        if command == ["echo", "$?"]:
            assert expected == [str(code)]
            continue
        if command[0] == "calibrant" and command[1] != "demo":  # tests/cli/test_demo.py runs the demo
            code = run(command[1:])
            out, err = capsys.readouterr()
            assert code in (0, 1), err
            if expected:
                assert [line.rstrip() for line in out.splitlines()] == expected
                compared += 1
    assert compared == 6


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.rst" for name in ("howto", "report", "tutorial"))])
def test_options_on_other_pages_exist(page):
    import click

    from calibrant.cli.main import COMMANDS, calibrant

    commands = re.findall(r"^\s*\$ calibrant (.+)$", (OTHERS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert commands
    for line in commands:
        name, *arguments = shlex.split(line, comments=True)
        assert name in COMMANDS
        command = calibrant.get_command(click.Context(calibrant), name)
        command.make_context(name, arguments)  # raises for an unknown option
