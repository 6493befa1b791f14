"""The transcripts of docs/command_line.rst: each command is run, and its output compared."""

import csv
import gzip
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


CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def write_cifar(folder):
    """Write the labels of CIFAR-10, and the probabilities and labels that two networks predict."""
    columns = {}
    for name, file in (("lenet", "cifar10_lenet5"), ("wide", "cifar10_wideresnet_16_4")):
        scores = np.load(folder / "forecasts" / f"{file}.npz")
        columns["class"] = np.array(CIFAR)[scores["ground_truth"]]
        columns |= {f"{name}_{label}": scores["predictions"][:, i] for i, label in enumerate(CIFAR)}
        columns[name] = np.array(CIFAR)[scores["predictions"].argmax(axis=1)]
    pq.write_table(pa.table(columns), "cifar10.parquet")


def write_houses(folder):
    """Write house prices with the mean and standard deviation of a linear regression that other rows are fitted to."""
    with gzip.open(folder / "regression" / "california_housing.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    names = ("median_income", "housing_median_age", "latitude", "longitude")
    X = np.array([[1.0, *(float(row[name]) for name in names)] for row in rows])
    price = np.array([float(row["median_house_value"]) for row in rows]) / 1000
    coefficients, squares, *_ = np.linalg.lstsq(X[::2], price[::2])
    predicted = X[1::2] @ coefficients
    sd = np.full(predicted.size, np.sqrt(squares[0] / (len(X[::2]) - X.shape[1])))
    columns = {"price": price[1::2], "predicted": predicted, "sd": sd}
    columns |= dict(zip(("income", "age", "latitude", "longitude"), X[1::2, 1:].T, strict=True))
    columns |= {"q0.05": predicted - 1.645 * sd, "q0.5": predicted, "q0.95": predicted + 1.645 * sd}
    pq.write_table(pa.table(columns), "houses.parquet")


@pytest.fixture
def data(here, data_folder):
    for name in ("538_nhl_games.csv.gz", "538_governors_elections.csv.gz"):
        shutil.copy(data_folder / "forecasts" / name, here)
    write_cifar(data_folder)
    write_houses(data_folder)
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
    assert len(BLOCK.findall(page)) == 16
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
