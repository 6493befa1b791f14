"""Designs of the simulation studies: models with known event rates, and parallel execution.

The logit of a score is normal with standard deviation 1.3 and a mean that gives the prevalence. The truth is
P(y = 1) = expit(shift + slope * logit(score)); for a "bump" only the middle fifth of the scores is shifted, by 0.6 on
the logit scale; a "wave" adds 0.3 sin(2 z), z the standardised logit.
"""

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from calibrant._support.progress import progress_bar

RESULTS = Path(__file__).parents[2] / "docs" / "studies"
SIZES = (500, 5_000, 50_000)
PREVALENCES = (0.5, 0.05, 0.01)
DEVIATION = 1.3
BUMP = 0.6


@dataclass(frozen=True)
class Truth:
    """The event rate as a function of the score."""

    name: str
    shift: float = 0.0
    slope: float = 1.0
    bump: float = 0.0
    wave: float = 0.0

    def rate(self, score: np.ndarray, prevalence: float) -> np.ndarray:
        x = logit(score)
        standard = (x - mean_logit(prevalence)) / DEVIATION
        middle = np.abs(standard) < ndtri(0.6)
        return expit(self.shift + self.slope * x + self.bump * middle + self.wave * np.sin(2 * standard))


CALIBRATED = Truth("calibrated")
SHIFTED = Truth("shift of 0.4", shift=-0.4)
STEEP = Truth("slope of 1.4", slope=1 / 1.4)
WAVED = Truth("wave of 0.3", wave=0.3)
BUMPED = Truth("bump of 0.6", bump=BUMP)


def mean_logit(prevalence: float) -> float:
    """Return the mean of the logits for which the mean score equals the prevalence."""
    if prevalence not in _MEANS:
        grid = ndtri((np.arange(4096) + 0.5) / 4096)
        _MEANS[prevalence] = brentq(lambda m: expit(m + DEVIATION * grid).mean() - prevalence, -20, 20)
    return _MEANS[prevalence]


_MEANS: dict[float, float] = {}


def scores(rng: np.random.Generator, size: int, prevalence: float) -> np.ndarray:
    return expit(rng.normal(mean_logit(prevalence), DEVIATION, size))


def workers() -> int:
    """Return the number of processes: STUDY_WORKERS, or one per core."""
    return int(os.environ.get("STUDY_WORKERS", os.cpu_count() or 1))


def spread_over_cores(work: Callable[[Any], Any], tasks: Iterable[Any], what: str) -> Iterator[Any]:
    """Yield the results in the order of the tasks, which must carry their own seeds."""
    tasks = list(tasks)
    with ProcessPoolExecutor(workers()) as pool:
        chunk = max(1, min(32, len(tasks) // (8 * workers())))
        yield from progress_bar(pool.map(work, tasks, chunksize=chunk), len(tasks), what)


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write a table of the documentation; without rows, write nothing."""
    if not rows:
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{path.name}: {len(rows)} rows", file=sys.stderr)


def run_cells(name: str, cells: Mapping[tuple[str, ...], Any]) -> list[dict[str, Any]]:
    """Run the cells of a table, write and return it; the key of a cell are the columns of its row that name it.

    ``--missing N`` runs at most N cells that the file does not have yet, and keeps the others.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--missing", type=int, metavar="N", help="run at most N cells that the file does not have")
    options = parser.parse_args()
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    size = len(next(iter(cells)))
    if options.missing is not None and (RESULTS / f"{name}.csv").exists():
        with (RESULTS / f"{name}.csv").open() as file:
            known = {tuple(list(row.values())[:size]): row for row in csv.DictReader(file)}
    chosen = [key for key in cells if key not in known][: options.missing]
    for key, row in zip(chosen, spread_over_cores(_run_cell, [cells[key] for key in chosen], "cells"), strict=True):
        known[key] = row
    rows = [known[key] for key in cells if key in known]
    write(name, rows)
    return rows


def run_missing(path: Path, cells: Iterable[Any], measure: Callable[[Any], dict[str, float]]) -> None:
    """Measure the cells, dataclasses, that a table does not have yet; after each one, write and print its row."""
    known: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            known = list(csv.DictReader(file))
    for cell in cells:
        if any(all(str(row[name]) == str(value) for name, value in asdict(cell).items()) for row in known):
            continue
        known.append({**asdict(cell), **measure(cell)})
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(known[-1]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(known)
        print(*known[-1].values(), flush=True)


def _run_cell(cell: Any) -> dict[str, Any]:
    found: dict[str, Any] = cell.run()
    return found
