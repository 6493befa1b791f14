"""Rows counted by a Spark cluster: time, bytes shuffled and memory, and a model of them for sizes that are not here.

``make bench-spark`` starts a master and two workers on loopback (executors of one core and 2 GB), counts 1e6 to 1e8
rows exactly and on a grid, and writes docs/studies/spark.csv, from which docs/scale.rst takes its numbers.
"""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.files import generate
from tools.servers import spark_cluster

RESULT = Path(__file__).parent.parent / "docs" / "studies" / "spark.csv"
ROWS = (1_000_000, 10_000_000, 100_000_000)
GRID = 2**-20
DRIVER_MEMORY = {None: "4g", GRID: "1g"}


def measure(url: str, rows: int, resolution: float | None) -> dict[str, float]:
    """One count, in a driver of its own."""
    command = [sys.executable, __file__, "driver", url, str(rows), json.dumps(resolution)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return json.loads(done.stdout.splitlines()[-1])


def drive(url: str, rows: int, resolution: float | None) -> dict[str, float]:
    """Count in this process, and ask Spark what it did."""
    from pyspark.sql import SparkSession

    import calibrant as cb

    builder = SparkSession.builder.master(url).appName("calibrant")
    memory = DRIVER_MEMORY[resolution]
    for name, value in {
        "spark.executor.memory": "2g",
        "spark.driver.memory": memory,
        "spark.driver.maxResultSize": memory,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    small, path = generate(100_000), generate(rows)
    cb.from_frame(spark.read.parquet(str(small)), y="y", p="p", resolution=resolution)  # executors are there
    before = shuffled(spark)
    began = time.perf_counter()
    table = cb.from_frame(spark.read.parquet(str(path)), y="y", p="p", resolution=resolution)
    seconds = time.perf_counter() - began
    after = shuffled(spark)
    expected = cb.scan(path, y="y", p="p", resolution=resolution)
    if table != expected:
        raise AssertionError("Spark's table is not that of the file")
    found = {name: after[name] - before[name] for name in after}
    jvm = spark.sparkContext._gateway.proc.pid
    found["predicted"] = records(table, int(found["tasks"]))
    found |= {"rows": rows, "seconds": seconds, "scores": len(table)}
    return found | {"python_mib": peak(os.getpid()), "jvm_mib": peak(jvm)}


def shuffled(spark) -> dict[str, int]:
    """Bytes and records that stages have written for others to read, and the tasks of these stages."""
    store = spark.sparkContext._jsc.sc().statusStore()
    found = {"bytes": 0, "records": 0, "tasks": 0}
    stages = store.stageList(None, False, False, spark.sparkContext._gateway.new_array(spark._jvm.double, 0), None)
    for i in range(stages.size()):
        stage = stages.apply(i)
        if stage.shuffleWriteBytes():
            found["bytes"] += stage.shuffleWriteBytes()
            found["records"] += stage.shuffleWriteRecords()
            found["tasks"] += stage.numCompleteTasks()
    return found


def records(table, tasks: int) -> float:
    """Distinct pairs of score and outcome that all tasks together are expected to send.

    Of c rows that agree in both, each lies with any of m tasks: m (1 - (1 - 1/m)^c) of these send the pair.
    """
    counts = np.concatenate([table.k, table.n - table.k])
    return float(tasks * (1 - (1 - 1 / tasks) ** counts).sum())


def peak(process: int) -> float:
    """The height of a process's memory, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def main() -> None:
    """Measure all sizes both ways."""
    found = []
    with spark_cluster(workers=2, memory="2g") as cluster:
        for resolution in (None, GRID):
            for rows in ROWS:
                way = "exact" if resolution is None else "grid"
                found.append({"way": way, **measure(cluster.url, rows, resolution)})
                print(json.dumps(found[-1]), flush=True)
    with RESULT.open("w", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=list(found[0]))
        writer.writeheader()
        writer.writerows({key: v if isinstance(v, str) else f"{v:.6g}" for key, v in row.items()} for row in found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["driver"]:
        print(json.dumps(drive(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))))
    else:
        main()
