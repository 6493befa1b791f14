"""Counting by groups, the first call on large arrays, threads, and sums of many tables, as ratios in one run.

Run with ``make bench NAME=counting``. A Parquet file of 5e7 rows in 50 groups is written once (build/bench, 0.5 GB).
Both libraries use all cores of the process.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import calibrant as cb
from calibrant._kernels import _core
from calibrant._support.workers import available_cores

FOLDER = Path(__file__).parent.parent / "build" / "bench"
CHUNK = 5_000_000


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the time and the CPU time of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def report(what: str, value: float, most: float) -> bool:
    ok = value <= most
    print(f"  {'ok  ' if ok else 'MISS'}  {what:<76} {value:8.2f}   at most {most:g}")
    return ok


def grouped_file(rows: int) -> Path:
    """Write uniform scores in 50 groups, which are numbers and words."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"groups-{rows}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    names = pa.array([f"region {i:02d}" for i in range(50)])
    schema = pa.schema([("y", pa.int8()), ("p", pa.float64()), ("code", pa.int32()), ("name", pa.string())])
    with pq.ParquetWriter(path.with_suffix(".part"), schema) as writer:
        for first in range(0, rows, CHUNK):
            p = rng.random(min(CHUNK, rows - first))
            code = rng.integers(0, 50, p.size).astype(np.int32)
            y = (rng.random(p.size) < p).astype(np.int8)
            writer.write_table(
                pa.table({"y": y, "p": p, "code": code, "name": names.take(pa.array(code))}, schema=schema)
            )
    path.with_suffix(".part").rename(path)
    return path


def by_groups(rows: int) -> bool:
    """Compare `scan` with both engines of polars."""
    import polars as pl

    path, good = grouped_file(rows), True

    def polars(key: str, engine: str) -> None:
        query = pl.scan_parquet(path).group_by([key, "p"]).agg(pl.len(), pl.col("y").cast(pl.Int64).sum())
        query.collect(engine=engine)

    for key in ("code", "name"):
        wall, cpu = timed(lambda key=key: cb.scan(path, y="y", p="p", by=key, progress=False))
        for engine in ("streaming", "in-memory"):
            other, other_cpu = timed(lambda key=key, engine=engine: polars(key, engine))
            print(
                f"{rows:,} rows by {key}: {wall:.1f} s ({cpu:.1f} s CPU); "
                f"polars, {engine}: {other:.1f} s ({other_cpu:.1f} s CPU)"
            )
            good &= report(f"time relative to polars ({engine}), groups by {key}", wall / other, 1)
            good &= report(f"CPU time relative to polars ({engine}), groups by {key}", cpu / other_cpu, 1)
    return good


CALLS = """
import json, os, sys, time
import numpy as np
import calibrant as cb
rows, rng = int(sys.argv[1]), np.random.default_rng(1)
p = rng.random(rows)
y = (rng.random(rows, dtype=np.float32) < p).astype(np.int8)
cb.tce(y[:1000], p[:1000])  # loads all modules
found = []
for _ in range(3):
    before, began = os.times(), time.perf_counter()
    cb.tce(y, p)
    took, after = time.perf_counter() - began, os.times()
    found.append([1e9 * t / rows for t in (took, after.user - before.user, after.system - before.system)])
print(json.dumps([found[0], min(found[1:])]))
"""


def calls(small: int, large: int, repeats: int = 3) -> bool:
    """Compare TCE per row of two sizes, for the first call of a process and for later calls.

    The first call gets its memory from the system, which clears it; on a virtual machine the host may have to find it
    first. Later calls use it again.
    """
    cost: dict[int, list[list[list[float]]]] = {small: [], large: []}
    for _ in range(repeats):
        for rows, costs in cost.items():
            done = subprocess.run([sys.executable, "-c", CALLS, str(rows)], capture_output=True, check=True)
            costs.append(json.loads(done.stdout))
    times = {rows: np.median(costs, axis=0) for rows, costs in cost.items()}
    good = True
    for place, which in enumerate(("first call of a process", "later calls")):
        for rows, costs in times.items():
            wall, user, system = costs[place]
            print(
                f"TCE of {rows:,} rows, {which}: {wall:.1f} ns per row; CPU {user:.1f} here, {system:.1f} in the system"
            )
        ratio = float(times[large][place][0] / times[small][place][0])
        good &= report(f"time per row, {large:g} against {small:g} rows, {which}", ratio, 1.3)
    return good


def threads(rows: int) -> bool:
    """Compare the time of one and of all threads."""
    rng = np.random.default_rng(2)
    p, y = rng.random(rows), rng.integers(0, 2, rows).astype(np.int8)
    times = {count: [] for count in (1, available_cores())}
    for _ in range(7):
        for count, seconds in times.items():
            seconds.append(timed(lambda count=count: _core.count(p, y, count))[0])
    best = {count: min(seconds) for count, seconds in times.items()}
    print(
        f"counting {rows:,} rows: "
        + ", ".join(f"{1e9 * t / rows:.1f} ns per row, {c} threads" for c, t in best.items())
    )
    if len(best) < 2:
        return True
    return report(f"time of {available_cores()} threads relative to one", best[available_cores()] / best[1], 0.75)


def totals(groups: int) -> bool:
    """Time the sum of the tables of many groups."""
    rng = np.random.default_rng(3)
    rows = 30 * groups
    frame = {"y": rng.integers(0, 2, rows), "p": rng.random(rows), "g": np.arange(rows) % groups}
    import pyarrow as pa

    tables = cb.from_frame(pa.table(frame), y="y", p="p", by="g")
    return report(f"seconds for the total of {groups:,} groups of 30 rows", timed(tables.total)[0], 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the file")
    parser.add_argument("--largest", type=int, default=100_000_000, help="rows of the largest array")
    arguments = parser.parse_args()
    checks = [
        by_groups(arguments.rows),
        calls(arguments.largest // 10, arguments.largest),
        threads(arguments.largest // 10),
        totals(100_000),
    ]
    if not all(checks):
        raise SystemExit("A target was missed.")


if __name__ == "__main__":
    main()
