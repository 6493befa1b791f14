"""Damaged files: each format, cut and with changed bytes, read by each command, in one process.

``python -m tests.ingest.damaged_files FILE.csv`` runs all cases and writes a table: for each format and command the
number of damaged files that are refused, that give the result of the whole file, and that give another one. Formats
that the table has for the installed versions are not run again.
"""

import argparse
import contextlib
import csv
import gzip
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cb
from calibrant.cli.main import run
from calibrant.ingest import text_files
from tests.fuzz.workplace import one_database

ROWS = 400
COMMANDS = ("scan", "evaluate", "check", "fit", "apply")
OUTCOMES = ("refused", "same", "changed", "failed")
_CUTS, _FLIPS = 10, 200
_CASE = ("format", "damage", "detectable")  # columns of the tables


@dataclass(frozen=True)
class Kind:
    """A format of files, and which damage can be detected in it.

    Attributes
    ----------
    write : function of an Arrow table that returns the bytes of a file
    ends : bool
        Whether the format marks its end, so that a cut is detected.
    checked : bool
        Whether the format has a checksum of all values, so that a changed byte is detected, or changes no value.
    """

    write: Callable[[Any], bytes]
    ends: bool
    checked: bool


def _csv(table: Any) -> bytes:
    columns = zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
    return "\n".join([",".join(table.column_names), *(",".join(map(str, row)) for row in columns), ""]).encode()


def _json(table: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def _zstd(data: bytes, *, checksum: bool) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=checksum).compress(data)


def _parquet(compression: str, *, checksum: bool = False) -> Callable[[Any], bytes]:
    def write(table: Any) -> bytes:
        stream = io.BytesIO()
        pq.write_table(table, stream, compression=compression, write_page_checksum=checksum, row_group_size=150)
        return stream.getvalue()

    return write


KINDS = {
    "csv": Kind(_csv, ends=False, checked=False),
    "csv.gz": Kind(lambda table: gzip.compress(_csv(table), mtime=0), ends=True, checked=True),
    "csv.zst": Kind(lambda table: _zstd(_csv(table), checksum=True), ends=True, checked=True),
    "csv.zst, no checksum": Kind(lambda table: _zstd(_csv(table), checksum=False), ends=True, checked=False),
    "jsonl": Kind(_json, ends=False, checked=False),
    "jsonl.gz": Kind(lambda table: gzip.compress(_json(table), mtime=0), ends=True, checked=True),
    "parquet, none": Kind(_parquet("none"), ends=True, checked=False),
    "parquet, snappy": Kind(_parquet("snappy"), ends=True, checked=False),
    "parquet, zstd": Kind(_parquet("zstd"), ends=True, checked=False),
    "parquet, gzip": Kind(_parquet("gzip"), ends=True, checked=True),
    "parquet, page checksums": Kind(_parquet("snappy", checksum=True), ends=True, checked=True),
}


def damaged(data: bytes, cuts: int = _CUTS, flips: int = _FLIPS, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield damaged copies of a file: cut at places from its first byte to its last, and with one changed bit."""
    rng = np.random.default_rng(seed)
    for place in np.linspace(1, len(data) - 1, cuts).astype(int).tolist():
        yield "cut", data[:place]
    for place in rng.choice(len(data), min(flips, len(data)), replace=False).tolist():
        copy = bytearray(data)
        copy[place] ^= 1 << int(rng.integers(8))
        yield "flip", bytes(copy)


class Runner:
    """Runs the commands on files in a folder."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(1)
        p = rng.random(ROWS)
        y = (rng.random(ROWS) < p).astype(int)
        self.table = pa.table({"y": y, "p": p, "g": [f"group {i % 7}" for i in range(ROWS)]})
        self.folder = folder
        cb.save(cb.Platt().fit(p, y), str(folder / "fitted.json"))

    def outcome(self, command: str, kind: str, data: bytes, expected: Any) -> str:
        """Return what a command does with a damaged file: one of `OUTCOMES`."""
        try:
            found = self.result(command, kind, data)
        except ValueError:
            return "refused"
        except Exception as error:
            sys.stderr.write(f"{command}, {kind}: {error!r}\n")
            return "failed"
        return "same" if found == expected else "changed"

    def result(self, command: str, kind: str, data: bytes) -> Any:
        """Return what a command computes from a file; bad input raises a ValueError."""
        path = self.folder / f"rows.{kind.partition(',')[0]}"
        path.write_bytes(data)
        if command == "scan":
            table = cb.scan(path, y="y", p="p", progress=False)
            return table.score.tolist(), table.n.tolist(), table.k.tolist(), table.n_in
        columns = ("-p", "p") if command == "apply" else ("-y", "y", "-p", "p")
        if command in ("evaluate", "check"):
            return self._run(command, str(path), *columns, "--resamples", "20", "--json", "-")
        out = self.folder / ("out.json" if command == "fit" else "out.jsonl")
        first = ("fit", str(path)) if command == "fit" else ("apply", str(self.folder / "fitted.json"), str(path))
        method = ("--method", "platt") if command == "fit" else ()
        self._run(*first, *columns, *method, "-o", str(out), "--force")
        return out.read_bytes()

    def _run(self, *arguments: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(list(arguments))
        if code == 2:
            raise ValueError(err.getvalue())
        if code not in (0, 1):
            raise RuntimeError(f"exit code {code}: {err.getvalue()}")
        return out.getvalue()


def matrix(kind: str, commands: tuple[str, ...] = COMMANDS, **places: int) -> Counter[tuple[str, str, str]]:
    """Return the number of cases by command, damage and outcome."""
    found: Counter[tuple[str, str, str]] = Counter()
    # Small chunks: the damage then lies behind the header and behind rows that have been counted.
    chunks = mock.patch.multiple(text_files, _CHUNK=1 << 12, _HEAD=1 << 8)
    with chunks, one_database(), tempfile.TemporaryDirectory() as name:
        runner = Runner(Path(name))
        data = KINDS[kind].write(runner.table)
        expected = {command: runner.result(command, kind, data) for command in commands}
        for damage, copy in damaged(data, **places):
            for command in commands:
                found[command, damage, runner.outcome(command, kind, copy, expected[command])] += 1
    return found


def unnoticed(kind: str, found: Counter[tuple[str, str, str]]) -> int:
    """Return the number of cases with another result where the format lets the damage be detected."""
    detected = {"cut": KINDS[kind].ends, "flip": KINDS[kind].checked}
    return sum(count for (_, damage, outcome), count in found.items() if outcome == "changed" and detected[damage])


def main() -> int:
    """Append the cases to a table; return 1 if detectable damage in it was not refused, or a command failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    target = parser.parse_args().file
    versions = [duckdb.__version__, pa.__version__]
    done = {tuple(row[name] for name in ("duckdb", "pyarrow", "format")) for row in _read(target)}
    for kind in KINDS:
        if (*versions, kind) not in done:
            _append(target, [[*versions, *row] for row in _rows(kind)])
    summarize(target)
    wrong = [row for row in _read(target) if int(row["failed"]) or (row["detectable"] == "yes" and int(row["changed"]))]
    for row in wrong:
        sys.stderr.write(f"{row}\n")
    return int(bool(wrong))


def _rows(kind: str) -> Iterator[list[Any]]:
    """Yield the lines of the table for one format."""
    found, own = matrix(kind), KINDS[kind]
    sys.stderr.write(f"{kind}: {unnoticed(kind, found)} unnoticed\n")
    for damage, detected in (("cut", own.ends), ("flip", own.checked)):
        for command in COMMANDS:
            counts = [found[command, damage, outcome] for outcome in OUTCOMES]
            yield [kind, damage, "yes" if detected else "no", command, *counts]


def _read(target: Path) -> list[dict[str, str]]:
    if not target.exists():
        return []
    with target.open(newline="", encoding="utf-8") as read:
        return list(csv.DictReader(read))


def _append(target: Path, rows: list[list[Any]]) -> None:
    new = not target.exists()
    with target.open("a", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([["duckdb", "pyarrow", *_CASE, "command", *OUTCOMES]] * new + rows)


def summarize(target: Path) -> None:
    """Add up the cases of all versions and commands, and write them beside the table."""
    sums: dict[tuple[str, ...], Counter[str]] = {}
    for row in _read(target):
        own = sums.setdefault(tuple(row[name] for name in _CASE), Counter())
        own.update({outcome: int(row[outcome]) for outcome in OUTCOMES})
    with target.with_name(f"{target.stem}_summary.csv").open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*_CASE, *OUTCOMES])
        writer.writerows([*case, *(counts[outcome] for outcome in OUTCOMES)] for case, counts in sums.items())


if __name__ == "__main__":
    sys.exit(main())
