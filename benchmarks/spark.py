"""Rows counted by a Spark cluster: time, shuffled bytes and memory, and a model of them for larger sizes.

``make bench NAME=spark`` starts a master and two workers on loopback (executors of one core and 2 GB), counts 1e6 to
1e8 rows exactly and on a grid by SQL, and exactly by the kernel in Python workers. It writes docs/studies/spark.csv,
spark_workers.csv and spark_model.csv, which docs/spark_and_databases.rst shows.
``python -m benchmarks spark -- workers 2e7`` compares the two exact ways at one size.

The model: a task with n rows sends D(n) distinct pairs of score and outcome. N rows in m tasks send m D(N / m) pairs,
and D(N) of them reach the driver. If scores have density f and neighbours have distance d, then D(n) is the sum over
both outcomes of the integral of (1 - exp(-n f d)) / d. Bytes are proportional to pairs.
"""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.files import generate
from tools.servers import spark_cluster

STUDIES = Path(__file__).parent.parent / "docs" / "studies"
ROWS = (1_000_000, 10_000_000, 100_000_000)
GRID = 2**-20
SPLIT = 128 * 2**20  # bytes of a file per task, the default of Spark
DRIVER_MEMORY = {None: "4g", GRID: "1g"}
Floats = NDArray[np.float64]


def measure(url: str, rows: int, resolution: float | None, *, workers: bool = False) -> dict[str, float]:
    """Run one count in a separate driver process, by SQL or in Python workers."""
    arguments = [url, str(rows), json.dumps(resolution), json.dumps(workers)]
    command = [sys.executable, "-m", "benchmarks.spark", "driver", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return json.loads(done.stdout.splitlines()[-1])


def drive(url: str, rows: int, resolution: float | None, workers: bool) -> dict[str, float]:
    """Count in this process, and return the metrics of Spark."""
    from pyspark.sql import SparkSession

    import calibrant as cb

    builder = SparkSession.builder.master(url).appName("calibrant")
    memory = DRIVER_MEMORY[resolution]
    for name, value in {
        "spark.executor.memory": "2g",
        "spark.driver.memory": memory,
        "spark.driver.maxResultSize": memory,
        "spark.ui.enabled": "false",
        "spark.calibrant.pythonWorkers": json.dumps(workers),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    small, path = generate(100_000), generate(rows)
    cb.from_frame(spark.read.parquet(str(small)), y="y", p="p", resolution=resolution)  # wait for the executors
    before = shuffled(spark)
    began = time.perf_counter()
    table = cb.from_frame(spark.read.parquet(str(path)), y="y", p="p", resolution=resolution)
    seconds = time.perf_counter() - began
    after = shuffled(spark)
    memory_now = {"python_mib": peak(os.getpid()), "jvm_mib": peak(spark.sparkContext._gateway.proc.pid)}
    expected = cb.scan(path, y="y", p="p", resolution=resolution)
    if table != expected:
        raise AssertionError("Spark's table is not that of the file")
    found = {name: after[name] - before[name] for name in after}
    return {**found, "seconds": seconds, "scores": len(table), **memory_now}


def shuffled(spark) -> dict[str, int]:
    """Return the shuffled bytes and records, and the number of tasks of these stages."""
    store = spark.sparkContext._jsc.sc().statusStore()
    found = {"tasks": 0, "pairs": 0, "shuffle_bytes": 0}
    stages = store.stageList(None, False, False, spark.sparkContext._gateway.new_array(spark._jvm.double, 0), None)
    for i in range(stages.size()):
        stage = stages.apply(i)
        if stage.shuffleWriteBytes():
            found["shuffle_bytes"] += stage.shuffleWriteBytes()
            found["pairs"] += stage.shuffleWriteRecords()
            found["tasks"] += stage.numCompleteTasks()
    return found


def distinct(rows: float, spacing: Callable[[Floats], Floats]) -> float:
    """Return D(n) of the scores of benchmarks/files.py: normal logits, float32 or coarser."""
    z = np.linspace(-15.5, 11.5, 200_001)
    p = 1 / (1 + np.exp(-z))
    density = np.exp(-0.5 * ((z + 2) / 1.5) ** 2) / (1.5 * np.sqrt(2 * np.pi))
    width = spacing(p) / (p * (1 - p))  # of a cell, in logits
    shares = (p**1.05, 1 - p**1.05)
    return float(sum(((z[1] - z[0]) / width * -np.expm1(-rows * density * share * width)).sum() for share in shares))


SPACINGS: dict[str, Callable[[Floats], Floats]] = {
    "exact, float32": lambda p: np.spacing(p.astype(np.float32)).astype(float),
    "exact, float64": np.spacing,
    "grid": lambda p: np.full(p.shape, GRID),
}


def predict(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Predict the costs of 1e9 to 1e12 rows by the model, with measured constants."""
    bytes_a_pair = sum(row["shuffle_bytes"] for row in measured) / sum(row["pairs"] for row in measured)
    largest = [row for row in measured if row["rows"] == ROWS[-1]]
    seconds_a_row = {row["way"]: row["seconds"] * 2 / row["rows"] for row in largest}  # of one core
    kept = max(largest, key=lambda row: row["scores"])
    driver_bytes = kept["python_mib"] * 2**20 / distinct(kept["rows"], SPACINGS[kept["way"]])
    size = generate(ROWS[-1]).stat().st_size / ROWS[-1]
    found = []
    for rows in (1e9, 1e10, 1e12):
        for way, spacing in SPACINGS.items():
            row_bytes = size + 4 if way == "exact, float64" else size
            tasks = max(1.0, rows * row_bytes / SPLIT)
            pairs, answer = tasks * distinct(rows / tasks, spacing), distinct(rows, spacing)
            found.append(
                {
                    "rows": f"{rows:.0e}",
                    "way": way,
                    "read, GB": rows * row_bytes / 1e9,
                    "tasks": tasks,
                    "pairs sent": pairs,
                    "shuffled, GB": pairs * bytes_a_pair / 1e9,
                    "pairs in the answer": answer,
                    "driver, GB": answer * driver_bytes / 1e9,
                    "core hours": seconds_a_row.get(way, seconds_a_row["exact, float32"]) * rows / 3600,
                }
            )
    return found


def peak(process: int) -> float:
    """Return the peak memory of a process in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def compare_ways(url: str, rows: int) -> list[dict[str, Any]]:
    """Count exactly by SQL and in Python workers, one after the other."""
    found = []
    for way, workers in (("SQL", False), ("Python workers", True)):
        row = measure(url, rows, None, workers=workers)
        names = ("seconds", "tasks", "shuffle_bytes", "scores", "python_mib", "jvm_mib")
        found.append({"way": way, "rows": rows, **{name: row[name] for name in names}})
        print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Measure all sizes, exactly and on the grid, and predict larger ones."""
    found: list[dict[str, Any]] = []
    with spark_cluster(workers=2, memory="2g") as cluster:
        write("spark_workers.csv", compare_ways(cluster.url, ROWS[-1]))
        for way, resolution in (("exact, float32", None), ("grid", GRID)):
            for rows in ROWS:
                row = measure(cluster.url, rows, resolution)
                model = row["tasks"] * distinct(rows / row["tasks"], SPACINGS[way])
                found.append({"way": way, "rows": rows, **row, "pairs_by_the_model": model})
                print(json.dumps(found[-1]), flush=True)
    a_pair = sum(row["shuffle_bytes"] for row in found) / sum(row["pairs"] for row in found)
    for row in found:
        row["bytes_by_the_model"] = row["pairs_by_the_model"] * a_pair
        row["ratio"] = row["shuffle_bytes"] / row["bytes_by_the_model"]
    write("spark.csv", found)
    write("spark_model.csv", predict(found))


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write a table with three significant digits of each real number."""
    with (STUDIES / name).open("w", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: v if isinstance(v, (str, int)) else f"{v:.3g}" for key, v in row.items()})


if __name__ == "__main__":
    if sys.argv[1:2] == ["driver"]:
        print(json.dumps(drive(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]), json.loads(sys.argv[5]))))
    elif sys.argv[1:2] == ["workers"]:
        with spark_cluster(workers=2, memory="2g") as local:
            write("spark_workers.csv", compare_ways(local.url, int(float(sys.argv[2]))))
    else:
        main()
