"""Measure the pages of the service: ``make bench-pages``.

A store with many models is served. Each page is asked for once after a change (it is drawn) and then again (it is not).
The memory of the service and the size of the store are those after all models were shown.
"""

import argparse
import statistics
import tempfile
import time
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


def seconds(address: str) -> float:
    """Return the time to load a page."""
    begun = time.perf_counter()
    with urllib.request.urlopen(address, timeout=120) as answer:
        answer.read()
    return time.perf_counter() - begun


def measure(service: ServiceProcess, models: int) -> dict[str, float]:
    """Return medians in milliseconds."""
    address = service.url
    found = {"overview_first": seconds(f"{address}/")}
    found["overview"] = statistics.median(seconds(f"{address}/") for _ in range(20))
    seconds(f"{address}/model?name=model-000")  # imports the drawing library
    pages = [f"{address}/model?name=model-{number:03}" for number in range(1, min(models, 20))]
    found["model_drawn"] = statistics.median(map(seconds, pages))
    found["model"] = statistics.median(map(seconds, pages))
    return {name: round(1000 * value, 1) for name, value in found.items()}


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
            found, memory = measure(service, given.models), service.memory()
        finally:
            service.stop()
    cells = given.models * given.days * len(GROUPS)
    lines = [
        f"models; windows and groups of each,{given.models}; {given.days} and {len(GROUPS)}",
        f"list of models for the first time,{found['overview_first']:,} ms",
        f"list of models again,{found['overview']:,} ms",
        f"page of a model after a change (figures are drawn),{found['model_drawn']:,} ms",
        f"page of a model again,{found['model']:,} ms",
        f"resident memory of the service after that,{round(memory / 1024):,} MiB",
        f"size of the SQLite store per window and group,{round(size / cells):,} bytes",
    ]
    given.out.write_text("what,measured\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
