"""The transcripts of docs/command_line.rst: each command is run, and its output compared."""

import os
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

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command_line.rst"
BLOCK = re.compile(r"(?<=\.\. code-block:: console\n\n)(?:   .*\n)+")


def transcribe(block, run):
    """Return a block of commands with their output, where the block shows some; `run` runs one command."""
    lines = [line.removeprefix("   ").rstrip() for line in block.splitlines()]
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    found = []
    for i, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        output = run(shlex.split(lines[i][2:], comments=True))
        found += [lines[i], *(output if end > i + 1 else [])]
    return "".join(f"   {line}\n" for line in found)


@pytest.fixture
def data(here, data_folder):
    shutil.copy(data_folder / "forecasts" / "538_nhl_games.csv.gz", here)
    dogs = np.load(data_folder / "imagenet_dogs.npz")
    columns = {"is_dog": dogs["labels"], **{name: dogs[name] for name in ("alexnet", "resnet152")}}
    for name in ("dogs.parquet", "new.parquet"):
        pq.write_table(pa.table(columns), name)


def test_the_transcripts_are_the_output_of_their_commands(data, capsys):
    """To update the page, run this test with CALIBRANT_UPDATE_TRANSCRIPTS=1."""
    from calibrant.cli.main import run

    code = 0

    def output(command):
        nonlocal code
        if command == ["echo", "$?"]:
            return [str(code)]
        if command[1] == "demo":  # tests/cli/test_demo.py runs the demo
            return []
        code = run(command[1:])
        out, err = capsys.readouterr()
        assert code in (0, 1), err
        return [line.rstrip() for line in out.splitlines()]

    page = PAGE.read_text(encoding="utf-8")
    found = BLOCK.sub(lambda block: transcribe(block[0], output), page)
    assert len(BLOCK.findall(page)) == 6
    if os.environ.get("CALIBRANT_UPDATE_TRANSCRIPTS"):
        PAGE.write_text(found, encoding="utf-8")
    assert found.splitlines() == page.splitlines()


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.rst" for name in ("howto", "report", "tutorial"))])
def test_options_on_other_pages_exist(page):
    import click

    from calibrant.cli.main import COMMANDS, calibrant

    commands = re.findall(r"^\s*\$ calibrant (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert commands
    for line in commands:
        name, *arguments = shlex.split(line, comments=True)
        assert name in COMMANDS
        command = calibrant.get_command(click.Context(calibrant), name)
        command.make_context(name, arguments)  # raises for an unknown option
