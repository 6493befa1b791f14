"""Damaged files are refused by each command where their format lets the damage be detected.

``make env NAME=corruption`` runs all cases. Each case gives the result of the whole file, or an error about input;
commands never fail in another way.
"""

import importlib

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow", "sklearn", "zstandard"):
    pytest.importorskip(library, reason=f"{library} is not installed")

damaged_files = importlib.import_module("tests.ingest.damaged_files")


@pytest.mark.parametrize("kind", damaged_files.KINDS)
def test_detectable_damage_is_refused(kind):
    found = damaged_files.matrix(kind, cuts=3, flips=8)
    assert damaged_files.unnoticed(kind, found) == 0
    assert not [case for case in found if case[2] == "failed"]
    assert sum(found.values()) == 11 * len(damaged_files.COMMANDS)


@pytest.mark.parametrize("kind", [kind for kind, own in damaged_files.KINDS.items() if own.ends])
def test_each_byte_of_an_end_is_needed(kind, tmp_path):
    runner = damaged_files.Runner(tmp_path)
    data = damaged_files.KINDS[kind].write(runner.table)
    for size in range(len(data) - 20, len(data)):
        assert runner.outcome("scan", kind, data[:size], None) == "refused"


def test_a_changed_byte_in_a_stored_table_is_detected(tmp_path):
    path, rng = tmp_path / "table.parquet", np.random.default_rng(0)
    p = rng.random(300)
    table = cb.ScoreTable.from_arrays(rng.random(300) < p, p)
    table.to_parquet(path)
    data = path.read_bytes()
    refused = 0
    for _, copy in damaged_files.damaged(data, cuts=20, flips=300):
        path.write_bytes(copy)
        try:
            assert cb.ScoreTable.from_parquet(path) == table
        except ValueError:
            refused += 1
    assert refused > 250


def test_a_compression_that_is_not_known_is_bad_input(tmp_path):
    """pyarrow ends the process if the name of an unknown compression is read from the metadata."""
    runner = damaged_files.Runner(tmp_path)
    data = damaged_files.KINDS["parquet, snappy"].write(runner.table)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    refused = 0
    for place in range(footer, len(data) - 9):
        if data[place : place + 2] == b"\x15\x02":  # a number 1, as the compression is written
            copy = data[: place + 1] + b"\x22" + data[place + 2 :]
            outcomes = {command: runner.outcome(command, "parquet", copy, None) for command in ("scan", "apply")}
            assert set(outcomes.values()) <= {"refused", "changed"}
            refused += outcomes["scan"] == "refused"
    assert refused >= 6
