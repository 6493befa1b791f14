"""Coverage of the bands of calibration curves, and size of the test of the calibration belt.

Nine designs whose curve is a line in the logit, and one with a wave that no spline of five knots contains: independent
rows, clusters (a Gaussian copula, so that the event rate given the score is exact) and importance weights (events
thinned to a quarter, with weight 4, times lognormal weights). A band covers if it contains the true event rate at all
points of its grid. Writes docs/studies/curves.csv and docs/studies/belts.csv.
"""

import argparse
import csv
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from calibrant._support.progress import progress_bar
from calibrant.inference import calibration_belt, calibration_curve
from research.studies.designs import CALIBRATED, RESULTS, SHIFTED, STEEP, WAVED, Truth, scores, workers, write

REPLICATIONS = {"spline": 600, "local": 400, "isotonic": 50, "belt": 600}
CORRELATION = 0.1


@dataclass(frozen=True)
class Design:
    """How rows are drawn."""

    name: str
    size: int
    prevalence: float
    truth: Truth
    clusters: int = 0
    weighted: bool = False

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return outcomes, scores and the options that describe the rows."""
        rng = np.random.default_rng([seed, self.size, self.clusters, int(1e4 * self.prevalence)])
        p = scores(rng, self.size, self.prevalence)
        noise, options = rng.normal(size=self.size), dict[str, Any]()
        if self.clusters:
            cluster = np.arange(self.size) % self.clusters
            shared = rng.normal(size=self.clusters)[cluster]
            noise = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * noise
            options["cluster"] = cluster
        y = ndtr(noise) < self.rate(p)
        if self.weighted:
            kept = ~y | (rng.random(self.size) < 0.25)
            weight = np.where(y, 4.0, 1.0) * np.exp(0.5 * rng.normal(size=self.size))
            y, p, options = y[kept], p[kept], {"sample_weight": weight[kept]}
        return y, p, options

    def rate(self, score: np.ndarray) -> np.ndarray:
        """Return the true event rate at a score."""
        return self.truth.rate(score, self.prevalence)


DESIGNS = (
    Design("500 rows, calibrated", 500, 0.5, CALIBRATED),
    Design("2,000 rows, slope of 1.4", 2_000, 0.5, STEEP),
    Design("20,000 rows, calibrated", 20_000, 0.5, CALIBRATED),
    Design("5,000 rows, calibrated", 5_000, 0.05, CALIBRATED),
    Design("5,000 rows, shift of 0.4", 5_000, 0.05, SHIFTED),
    Design("20,000 rows, slope of 1.4", 20_000, 0.01, STEEP),
    Design("100 clusters of 20, calibrated", 2_000, 0.5, CALIBRATED, clusters=100),
    Design("200 clusters of 50, slope of 1.4", 10_000, 0.1, STEEP, clusters=200),
    Design("weights, 5,000 rows, calibrated", 5_000, 0.2, CALIBRATED, weighted=True),
)
WAVE = Design("20,000 rows, wave of 0.3", 20_000, 0.5, WAVED)
METHODS = ("spline", "local", "isotonic")


def band(task: tuple[Design, str, int]) -> tuple[bool, float, float]:
    """Return whether the simultaneous band covers, the share of points that the pointwise one covers, and the width."""
    design, method, seed = task
    y, p, options = design.draw(seed)
    curve = calibration_curve(y, p, method=method, n_resamples=999, **options)
    truth = design.rate(curve.score)
    whole = bool(((curve.low <= truth) & (truth <= curve.high)).all())
    middle = np.searchsorted(curve.score, np.quantile(p, 0.5))
    width = float(curve.high[middle] - curve.low[middle])
    if curve.pointwise_low is None or curve.pointwise_high is None:
        return whole, np.nan, width
    return whole, float(np.mean((curve.pointwise_low <= truth) & (truth <= curve.pointwise_high))), width


def belt(task: tuple[Design, str, int]) -> tuple[bool, bool]:
    """Return whether the test rejects a calibrated model, and whether the 95 % belt of the design covers its curve."""
    design, _, seed = task
    y, p, options = replace(design, truth=CALIBRATED).draw(seed)
    rejected = calibration_belt(y, p, **options).pvalue <= 0.05
    y, p, options = design.draw(seed + 10_000_000)
    found = calibration_belt(y, p, **options)
    truth, (low, high) = design.rate(found.score), found.limits[0.95]
    return rejected, bool(((low <= truth) & (truth <= high)).all())


def simulate(work: Callable[[Any], Any], design: Design, method: str) -> np.ndarray:
    """Return the results of all replications, one row each."""
    tasks = [(design, method, seed) for seed in range(REPLICATIONS[method])]
    with ProcessPoolExecutor(workers()) as pool:
        done = pool.map(work, tasks, chunksize=10)
        return np.array(list(progress_bar(done, len(tasks), f"{method}, {design.name}")), dtype=np.float64)


def describe(design: Design) -> dict[str, Any]:
    """Return the first columns of a table."""
    rows = "clusters" if design.clusters else "weights" if design.weighted else "independent"
    return {"design": design.name, "rows": rows, "events": f"{100 * design.prevalence:g} %"}


CELLS = [(design, method) for design in (*DESIGNS, WAVE) for method in METHODS]


def curves(most: int | None = None, cells: Iterable[tuple[Design, str]] = CELLS) -> None:
    """Write the coverage of the bands; run at most so many cells, of those that are not in the table."""
    missing = [cell for cell in cells if cell_key(*cell) not in known_cells()]
    for cell in missing[:most]:
        found = simulate(band, *cell)
        whole, alone, width = found.mean(axis=0)
        points = "" if np.isnan(alone) else f"{alone:.3f}"  # the isotonic curve has no pointwise band
        measured = {"simultaneous": f"{whole:.3f}", "pointwise": points, "width": f"{width:.3f}"}
        row = describe(cell[0]) | {"method": cell[1], **measured, "data sets": len(found)}
        known = known_cells() | {cell_key(*cell): row}  # read again: another process may have added rows
        write("curves", [known[cell_key(*each)] for each in CELLS if cell_key(*each) in known])


def cell_key(design: Design, method: str) -> tuple[str, str, str]:
    """Return what identifies a row of the table."""
    return (*key(design), method)


def known_cells() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the rows of the table that exists."""
    return {(row["design"], row["events"], row["method"]): row for row in read("curves")}


def belts(designs: Iterable[Design] = DESIGNS) -> None:
    """Write the size of the belt's test and the coverage of the belt."""
    rows = read("belts")
    for design in designs:
        if not any((row["design"], row["events"]) == key(design) for row in rows):
            found = simulate(belt, design, "belt")
            size, cover = found.mean(axis=0)
            rows.append(describe(design) | {"size": f"{size:.3f}", "coverage": f"{cover:.3f}", "data sets": len(found)})
            write("belts", rows)


def key(design: Design) -> tuple[str, str]:
    """Return what identifies a design in a table."""
    return design.name, describe(design)["events"]


def read(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table that exists."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--missing", type=int, metavar="N", help="run at most N cells that the file does not have")
    belts()
    curves(parser.parse_args().missing)
