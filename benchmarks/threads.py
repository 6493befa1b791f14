"""Eight threads on a shared table: identical results, and the time beside that of one thread.

In a Python without the GIL all of the work runs at the same time; with the GIL only the loops of the kernel do. The
table is evaluated with 32 seeds, by one thread and by eight in turn. It is so small that an evaluation itself starts no
threads.

    python -m benchmarks threads [-- --write docs/studies/free_threading.csv]
"""

import argparse
import csv
import hashlib
import json
import os
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import calibrant as cb
from calibrant._support.workers import available_cores

THREADS, ROWS, EVALUATIONS, REPEATS = 8, 5_000, 32, 3
COLUMNS = (
    "python",
    "gil",
    "cores",
    "threads",
    "rows",
    "evaluations",
    "one_thread_s",
    "threads_s",
    "speed_up",
    "identical",
)


def evaluate(table: cb.ScoreTable, seed: int) -> str:
    """Return a digest of all numbers of an evaluation."""
    result = cb.evaluate(table, n_resamples=199, random_state=seed)
    return hashlib.sha256(json.dumps(result.to_dict()).encode()).hexdigest()


def run(table: cb.ScoreTable, threads: int) -> tuple[float, list[str]]:
    """Return the seconds of all evaluations in so many threads, and their digests."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda seed: evaluate(table, seed), range(EVALUATIONS)))
    return time.perf_counter() - start, found


def measure() -> dict[str, object]:
    """Return the row of this Python."""
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    table = cb.ScoreTable.from_arrays(rng.random(ROWS) < p, p)
    evaluate(table, 0)  # loads modules
    seconds: dict[int, list[float]] = {1: [], THREADS: []}
    digests = set()
    for _ in range(REPEATS):
        for threads, taken in seconds.items():
            each, found = run(table, threads)
            taken.append(each)
            digests.add(tuple(found))
    one, several = min(seconds[1]), min(seconds[THREADS])
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return dict(
        zip(
            COLUMNS,
            (
                *(platform.python_version(), "yes" if gil else "no", available_cores(), THREADS, ROWS, EVALUATIONS),
                *(round(one, 2), round(several, 2), round(one / several, 2), "yes" if len(digests) == 1 else "no"),
            ),
            strict=True,
        )
    )


def write(path: Path, row: dict[str, object]) -> None:
    """Put the row into the table, in the place of an older one of the same Python."""
    key = ("python", "gil")
    old = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    rows = [each for each in old if any(each[name] != str(row[name]) for name in key)] + [row]
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda each: (str(each["python"]), str(each["gil"]))))


def main() -> None:
    """Measure, print, and write the row if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    row = measure()
    print(", ".join(f"{name} {value}" for name, value in row.items()))
    if given.write is not None:
        write(given.write, row)
    sys.exit(row["identical"] != "yes")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
