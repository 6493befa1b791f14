"""Benchmarks: ``python -m benchmarks`` lists them, with a name it runs one."""

import sys

from tools.programs import ONE_THREAD, Program, main

ALL_CORES: dict[str, str] = {}


def _ratios(name: str, time: str, *writes: str, options: tuple[str, ...] = ()) -> Program:
    return Program("ratios", f"benchmarks.{name}", writes, time, options, variables=ALL_CORES)


def _scale(name: str, time: str, *writes: str, options: tuple[str, ...] = ()) -> Program:
    return Program("scale", f"benchmarks.{name}", writes, time, options, variables=ALL_CORES)


def _service(name: str, time: str, *writes: str) -> Program:
    return Program("monitor", f"benchmarks.{name}", writes, time, variables=ONE_THREAD)


PROGRAMS = {
    "inference": _ratios(
        "inference", "20 minutes", "docs/performance.csv", options=("--repeats", "2", "--write", "docs/performance.csv")
    ),
    "counting": _ratios("counting", "3 minutes, 1 GB of disk"),
    "speed": _ratios("speed", "20 minutes"),
    "files": _scale("files", "5 minutes, 1 GB of disk", "docs/images/cost_per_row.svg"),
    "spark": _scale(
        "spark",
        "10 minutes, 1 GB of disk",
        "docs/studies/spark.csv",
        "docs/studies/spark_model.csv",
        "docs/studies/spark_workers.csv",
    ),
    "gpu": Program("scale", "benchmarks.gpu", (), "a minute, needs CUDA", libraries="tensors", variables=ALL_CORES),
    "audit": _scale("audit", "3 minutes"),
    "audit_file": _scale("audit", "a minute", options=("--file",)),
    "decisions": _scale("decisions", "20 minutes"),
    "threads": _scale("threads", "a minute", "docs/studies/free_threading.csv"),
    "kernels": _scale("kernels", "a minute, -- OTHER_BUILD"),
    "monitor": _service("monitor", "a minute", "docs/studies/monitor_speed.csv", "docs/studies/monitor_status.csv"),
    "service": _service("service", "20 minutes", "docs/studies/service_load.json"),
    "service_pages": _service("service_pages", "a minute", "docs/studies/service_pages.csv"),
}

if __name__ == "__main__":
    sys.exit(main("benchmarks", PROGRAMS))
