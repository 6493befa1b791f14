"""Time and memory of counting one hundred million rows of a Parquet file, compared with group-bys of the full key.

``make bench NAME=files`` writes the file once (build/bench, 0.5 GB), runs each method in a separate process, and draws
the time per row from 1e6 to 1e8 rows (docs/images/cost_per_row.svg).
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "build" / "bench"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "cost_per_row.svg"
MOST = 100_000_000
CHUNK = 5_000_000

WAYS = {
    "calibrant, exact: TCE and ECE": """
table = cb.scan(path, y="y", p="p")
counting = time.perf_counter() - began
values = cb.TCE()(table).value, cb.ECE()(table).value
""",
    "calibrant, grid of 2^-20: TCE and ECE": """
table = cb.scan(path, y="y", p="p", resolution=2**-20)
counting = time.perf_counter() - began
values = cb.TCE()(table).value, cb.ECE()(table).value
""",
    "DuckDB, group by the full key": """
import duckdb
found = duckdb.sql(f"select p, count(*) n, sum(y) k from read_parquet('{path}') group by p").fetchnumpy()
counting = time.perf_counter() - began
values = len(found["p"]),
""",
    "Polars, group by the full key": """
import polars as pl
rows = pl.scan_parquet(path).group_by("p").agg(pl.len(), pl.col("y").cast(pl.Int64).sum())
rows = rows.collect(engine="streaming")
counting = time.perf_counter() - began
values = rows.height,
""",
}
SCRIPT = """
import json, sys, time
import calibrant as cb
def memory(name):
    return int(next(l for l in open("/proc/self/status") if l.startswith(name)).split()[1]) / 1024
for path in sys.argv[1:]:  # first a small file: loading libraries is not counting rows
    began = time.perf_counter()
    exec({work!r})
    took = time.perf_counter() - began
found = {{"seconds": took, "counting": counting, "MiB": memory("VmHWM")}}
print(json.dumps({{**found, "values": [float(v) for v in values]}}))
"""


def generate(rows: int) -> Path:
    """Write a file of float32 scores of a network, and slightly miscalibrated outcomes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{rows}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    schema = pa.schema([("y", pa.int8()), ("p", pa.float32())])
    with pq.ParquetWriter(path.with_suffix(".part"), schema) as writer:
        for first in range(0, rows, CHUNK):
            size = min(CHUNK, rows - first)
            z = rng.normal(-2, 1.5, size).astype(np.float32)
            p = 1 / (1 + np.exp(-z))
            y = (rng.random(size, dtype=np.float32) < p**1.05).astype(np.int8)
            writer.write_table(pa.table({"y": y, "p": p}, schema=schema))
    path.with_suffix(".part").rename(path)
    return path


def run(way: str, path: Path) -> dict[str, float]:
    """Return time and peak memory of one method, in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(work=WAYS[way]), str(generate(100_000)), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def cost_per_row() -> None:
    """Draw nanoseconds per row, exact and on the grid, for several numbers of rows."""
    from matplotlib.figure import Figure

    sizes = [10**6, 3 * 10**6, 10**7, 3 * 10**7, 10**8]
    again = [5, 5, 3, 2, 1]  # repetitions, of which the fastest counts
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = figure.add_subplot()
    for way, color in zip(list(WAYS)[:2], ("#0072B2", "#D55E00"), strict=True):
        cost = [
            1e9 * min(run(way, generate(size))["counting"] for _ in range(times)) / size
            for size, times in zip(sizes, again, strict=True)
        ]
        print(way, [f"{c:.0f} ns" for c in cost])
        ax.plot(sizes, cost, marker="o", color=color, label=way.partition(":")[0])
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("rows in the file")
    ax.set_ylabel("nanoseconds a row")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})


def main(rows: int) -> None:
    began = time.perf_counter()
    path = generate(rows)
    print(f"{rows:,} rows, {path.stat().st_size / 2**20:.0f} MiB ({time.perf_counter() - began:.0f} s to write)")
    results = {}
    for way in WAYS:
        results[way] = run(way, path)
        result = results[way]
        times = f"{result['counting']:5.1f} s to count, {result['seconds']:5.1f} s in all"
        print(f"{way:40} {times} {result['MiB']:8.0f} MiB   {result['values']}")
    exact, grid, duck, polars = results.values()
    checks = {
        "exact in less than 4 GiB": exact["MiB"] < 4096,
        "grid in less than 700 MiB": grid["MiB"] < 700,
        "counting exactly is not slower than either group-by": exact["counting"]
        <= min(duck["counting"], polars["counting"]),
        "nor is counting on the grid": grid["counting"] <= min(duck["counting"], polars["counting"]),
    }
    for what, ok in checks.items():
        print(f"  {'ok ' if ok else 'NOT'} {what}")
    if rows == MOST:
        cost_per_row()
    if not all(checks.values()):
        sys.exit("A target was missed.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MOST)
