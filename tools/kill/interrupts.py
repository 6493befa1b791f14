"""Measure how soon Ctrl-C ends a call of `evaluate`, `compare`, `scan` or `audit`.

``make kill NAME=interrupts``: each moment has a process of its own. It reads its data, says that it begins, and is
interrupted at a random moment of the call. The time runs from the signal to the end of the process: seconds of the
clock, and seconds of the processor, which do not depend on other programs. A process that ended before is replaced by
another one. Results go to docs/studies/interrupts.csv, a line per call; ``--calls evaluate scan`` measures some of them
anew.
"""

import argparse
import csv
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

OUT = Path("docs/studies/interrupts.csv")
FIELDS = ("call", "rows", "seconds", "cpu_seconds", "moments", "median", "maximum", "cpu_median", "cpu_maximum")
ROWS = {"evaluate": 3_000_000, "compare": 3_000_000, "scan": 6_000_000, "audit": 3_000_000}
CALLS = {
    "evaluate": "cb.evaluate(y, p)",
    "compare": "cb.compare(y, {'a': p, 'b': p**1.1})",
    "scan": "cb.scan('rows.csv', y='y', p='p')",
    "audit": "cb.audit(y, p, {'a': x[0], 'b': x[1], 'c': x[2]})",
}
_PROGRAM = """
import signal
import numpy as np
import calibrant as cb
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may let its background jobs ignore Ctrl-C
y, p, x = (np.load(f"{name}.npy") for name in ("y", "p", "x"))
print("begin", flush=True)
CALL
print("end", flush=True)
"""


def write_rows(folder: Path, call: str) -> None:
    """Write the data of a call."""
    rng, rows = np.random.default_rng(0), ROWS[call]
    p = rng.random(rows)
    y = rng.random(rows) < p
    if call == "scan":
        pa.csv.write_csv(pa.table({"y": y.astype(int), "p": p}), folder / "rows.csv")
        y, p = y[:2], p[:2]
    np.save(folder / "y.npy", y)
    np.save(folder / "p.npy", p)
    np.save(folder / "x.npy", rng.integers(0, 12, (3, len(y) if call == "audit" else 0)))


class Seconds(NamedTuple):
    """Seconds of the clock and of the processor."""

    clock: float
    processor: float


class Child:
    """A process that makes the call."""

    def __init__(self, folder: Path, call: str) -> None:
        program = _PROGRAM.replace("CALL", CALLS[call])
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "begin\n":
            raise RuntimeError(self.process.communicate()[1])

    def last(self) -> Seconds:
        """Return the time of the whole call."""
        return self._end()[0]

    def interrupt(self, after: float) -> Seconds | None:
        """Return the time from Ctrl-C to the end; None if the call ended before."""
        time.sleep(after)
        os.kill(self.process.pid, signal.SIGINT)  # a process that has ended is not waited for yet
        took, out, error = self._end()
        if out == "end\n":
            return None
        if "KeyboardInterrupt" not in error.splitlines()[-1]:
            raise RuntimeError(error)
        return took

    def _end(self) -> tuple[Seconds, str, str]:
        """Wait for the end of the process; return the time from now on, and what it printed."""
        begun, used = time.monotonic(), self._processor()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, error = self.process.stdout.read(), self.process.stderr.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return Seconds(time.monotonic() - begun, usage.ru_utime + usage.ru_stime - used), out, error

    def _processor(self) -> float:
        """Return the seconds of the processor until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(call: str, moments: int, chosen: random.Random) -> dict[str, object]:
    """Interrupt a call at random moments."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, call)
        whole = Child(folder, call).last()
        delays = list[Seconds]()
        while len(delays) < moments:
            took = Child(folder, call).interrupt(chosen.uniform(0, whole.clock))
            delays += [] if took is None else [took]
            print(call, took, flush=True)
    times = [number for column in zip(*delays, strict=True) for number in (statistics.median(column), max(column))]
    numbers = (round(number, 2) for number in (*whole, moments, *times))
    return dict(zip(FIELDS, (call, ROWS[call], *numbers), strict=True))


def main() -> None:
    """Measure the calls and replace their lines in the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.kill.interrupts", description=__doc__)
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--rows", type=int, help="of each call; by default 3 to 6 million")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    ROWS.update({} if options.rows is None else dict.fromkeys(options.calls, options.rows))
    for call in options.calls:
        rows = {row["call"]: row for row in csv.DictReader(OUT.open())} if OUT.exists() else {}
        rows[call] = measure(call, options.moments, random.Random(f"{call} {options.seed}"))
        with OUT.open("w", newline="") as file:
            table = csv.DictWriter(file, FIELDS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[name] for name in CALLS if name in rows)
        print(rows[call], flush=True)


if __name__ == "__main__":
    main()
