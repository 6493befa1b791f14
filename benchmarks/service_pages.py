"""Measure the pages of the service.

``make bench NAME=service_pages``: a store with many models is served. Each page is asked for once after a change (it is
drawn) and then again (it is not). The memory of the service and the size of the store are those after all models were
shown.
"""

import argparse
import csv
import os
import tempfile
import urllib.request
from pathlib import Path

import numpy as np

import calibrant as cb
from tools.service_process import ROOT, ServiceProcess

GROUPS = np.array(["a", "b", "c", "d", "e"])


def fill(store: str, models: int, days: int, rows: int) -> None:
    """Observe `rows` rows per day and model, in five groups."""
    rng = np.random.default_rng(0)
    for number in range(models):
        day = np.repeat(np.arange(days), rows)
        p = rng.uniform(0.02, 0.4, day.size).round(3)
        y = rng.random(day.size) < p
        monitor = cb.Monitor(store, model=f"model-{number:03}")
        monitor.observe(y, p, time=np.datetime64("2026-01-01") + day, group=rng.choice(GROUPS, day.size))


class Stopwatch:
    """Loads pages and measures the processor time of the service, which other programs hardly change."""

    def __init__(self, service: ServiceProcess) -> None:
        self.service = service

    def processor(self) -> float:
        """Return the processor time of the service in seconds."""
        fields = Path(f"/proc/{self.service.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def milliseconds(self, paths: list[str]) -> float:
        """Return the mean processor time per page."""
        begun = self.processor()
        for path in paths:
            with urllib.request.urlopen(self.service.url + path, timeout=120) as answer:
                answer.read()
        return 1000 * (self.processor() - begun) / len(paths)


def measure(service: ServiceProcess, models: int) -> dict[str, float]:
    """Return processor times per page in milliseconds."""
    watch = Stopwatch(service)
    times = {"overview_first": watch.milliseconds(["/"]), "overview": watch.milliseconds(["/"] * 50)}
    watch.milliseconds(["/model?name=model-000"])  # imports the drawing library
    pages = [f"/model?name=model-{number:03}" for number in range(1, min(models, 20))]
    return times | {"model_drawn": watch.milliseconds(pages), "model": watch.milliseconds(pages * 5)}


def main() -> None:
    """Run the benchmark and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "studies" / "service_pages.csv")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = f"{place}/store.db"
        fill(store, given.models, given.days, given.rows)
        size = sum(path.stat().st_size for path in Path(place).iterdir())
        service = ServiceProcess(store, Path(place))
        service.start()
        try:
            times, memory = measure(service, given.models), service.memory()
        finally:
            service.stop()
    cells = given.models * given.days * len(GROUPS)
    rows = [
        ("models; windows and groups of each", f"{given.models}; {given.days} and {len(GROUPS)}"),
        ("list of models for the first time", f"{times['overview_first']:,.0f} ms"),
        ("list of models again", f"{times['overview']:,.0f} ms"),
        ("page of a model after a change (figures are drawn)", f"{times['model_drawn']:,.0f} ms"),
        ("page of a model again", f"{times['model']:,.0f} ms"),
        ("resident memory of the service after that", f"{memory / 1024:,.0f} MiB"),
        ("size of the SQLite store per window and group", f"{size / cells:,.0f} bytes"),
    ]
    with given.out.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("what", "processor time or size"), *rows])
    print("\n".join(": ".join(row) for row in rows))


if __name__ == "__main__":
    main()
