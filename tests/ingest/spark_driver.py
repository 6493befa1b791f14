"""A Spark driver in a process of its own, which tests can kill: counts made-up rows and keeps their table.

It says "counting" when some, and not all, of the tasks are done.
"""

import json
import sys
import threading
import time

import calibrant as cb


def score(number):
    """The score of a row, in NumPy and Spark alike."""
    return (number * 2654435761 % 1048583 / 1048583.0).astype("float32")


def session(url, settings):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]") if url == "connect" else SparkSession.builder.master(url)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def watch(spark):
    """Say when the first tasks of a count are done."""
    tracker = spark.sparkContext.statusTracker()
    while True:
        for stage in tracker.getActiveStageIds():
            about = tracker.getStageInfo(stage)
            if about and 3 <= about.numCompletedTasks < about.numTasks:
                print("counting", flush=True)
                return
        time.sleep(0.02)


def main(url, path, rows, settings):
    spark = session(url, json.loads(settings))
    frame = spark.range(0, int(rows), 1, 24).selectExpr(
        "CAST(id * 2654435761 % 1048583 / 1048583D AS FLOAT) AS p", "id * 40503 % 1009 < 400 AS y"
    )
    if url == "connect":
        cb.from_frame(frame, y="y", p="p").to_parquet(path)
        return
    executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos
    threading.Thread(target=watch, args=(spark,), daemon=True).start()
    before = len(executors())
    cb.from_frame(frame, y="y", p="p").to_parquet(path)
    print(f"lost {before - len(executors())} executor", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
