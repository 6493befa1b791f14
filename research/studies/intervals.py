"""Coverage of the intervals that evaluations print, for calibrated and for miscalibrated models.

docs/studies/intervals.csv has one row per quantity and design. The logit z of the event rate is normal with standard
deviation 1.3 (or 2) around a mean that gives the event rate; the logit of the score is z (calibrated), its distance to
the mean times 4 (overconfident) or divided by 2 (underconfident), z + 0.5 (shifted), or z + 0.5 sin(2 (z - mean) / 1.3)
(wave). Rows are independent, in clusters whose scores and outcomes depend on each other, or have lognormal weights. The
target is the value of the population; for ECE, ACE and RMSCE that of the population over the bins of the sample, and
for TCE its mean over the data sets.

Run ``python -m research intervals``. Designs whose rows are in the file are skipped; delete rows to repeat them.
"""

import csv
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator, SeedSequence
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

import calibrant as cb
from calibrant.inference.design import Design
from calibrant.inference.in_the_large import in_the_large
from calibrant.inference.intervals import interval_limits
from calibrant.inference.levels import coefficients
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resampling import Replicates, resample_metrics
from calibrant.inference.table_sample import TableSample
from research.studies.coverage import target
from research.studies.designs import RESULTS

LEVEL = 0.95
FILE = RESULTS / "intervals.csv"
GRID = ndtri((np.arange(20_000) + 0.5) / 20_000)
CLOSED = {name: cb.METRICS[name]() for name in ("bias", "oe_ratio", "brier", "log_loss", "stratified_brier", "auc")}
DRAWN = {name: cb.METRICS[name]() for name in ("ece", "ace", "rmsce")} | {
    "tce": cb.TCE(bins=cb.bins.PAVABC.consistent())
}
TRUTHS = ("calibrated", "overconfident", "underconfident", "shifted", "wave")
SAMPLES = ("independent", "clusters", "weights")
RATES, SIZES = (0.5, 0.05, 0.005), (200, 2_000, 20_000)
DATA_SETS = {200: 600, 2_000: 200, 20_000: 100}


@dataclass(frozen=True)
class Cell:
    """One design of data sets."""

    truth: str
    rate: float
    size: int
    sample: str = "independent"
    spread: float = 1.3

    @property
    def key(self) -> tuple[str, ...]:
        return self.truth, f"{self.rate:g}", f"{self.size}", self.sample, f"{self.spread:g}"

    @cached_property
    def mean(self) -> float:
        return float(brentq(lambda m: expit(m + self.spread * GRID).mean() - self.rate, -30, 30))

    def score(self, standard: np.ndarray) -> np.ndarray:
        """Return the scores of rows with these standardised logits of the event rate."""
        away, m = self.spread * standard, self.mean
        return expit(
            m
            + {
                "calibrated": away,
                "overconfident": 4 * away,
                "underconfident": away / 2,
                "shifted": away + 0.5,
                "wave": away + 0.5 * np.sin(2 * standard),
            }[self.truth]
        )

    @cached_property
    def population(self) -> cb.ScoreTable:
        score, rate = self.score(GRID), expit(self.mean + self.spread * GRID)
        score, place = np.unique(score, return_inverse=True)
        n, k = np.bincount(place) / GRID.size, np.bincount(place, weights=rate) / GRID.size
        return cb.ScoreTable(score, n, k, n**2)

    def draw(self, rng: Generator) -> TableSample:
        """Draw rows; those of a cluster share a part of the logit and of the noise of the outcome."""
        z, noise, cluster = rng.normal(size=self.size), rng.normal(size=self.size), None
        if self.sample == "clusters":
            count = {200: 40, 2_000: 100, 20_000: 200}[self.size]
            cluster = np.arange(self.size) % count
            z = np.sqrt(0.3) * rng.normal(size=count)[cluster] + np.sqrt(0.7) * z
            noise = np.sqrt(0.1) * rng.normal(size=count)[cluster] + np.sqrt(0.9) * noise
        y = ndtr(noise) < expit(self.mean + self.spread * z)
        p = self.score(z)
        if cluster is not None:
            rows, (table,) = PairedRows.read(y.astype(int), [p], cluster=cluster)
            return TableSample(table, rows)
        weight = rng.lognormal(0, 0.75, self.size) if self.sample == "weights" else None
        return TableSample(cb.ScoreTable.from_arrays(y, p, sample_weight=weight))


def targets(cell: Cell) -> dict[str, float]:
    """Return the values of the population."""
    design = Design(cell.population)
    found = {name: float(metric.value(cell.population)) for name, metric in CLOSED.items()}
    line = design.cox_line
    assert line is not None
    found |= {"O/E": found["oe_ratio"], "calibration in the large": float(design.logits.whole.error[0])}
    return found | {"calibration slope": line[0], "Cox intercept": line[1]}


def closed_limits(sample: TableSample) -> dict[str, tuple[float, float]]:
    """Return the limits of all intervals without replicates."""
    empty = np.empty(0)
    found = {}
    for name, metric in CLOSED.items():
        if not sample.interval_refusal(metric):
            found[name] = interval_limits(Replicates(metric, metric.value(sample.table), empty, empty, sample), LEVEL)
    large = in_the_large(sample.design, LEVEL)
    estimates = [*coefficients(sample.design, LEVEL), *([large.ratio] if large.ratio else [])]
    return found | {each.name: (each.low, each.high) for each in estimates}


def drawn_limits(sample: TableSample, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return limits and value of the intervals by replicates."""
    metrics = {name: each for name, each in DRAWN.items() if name != "tce" or sample.has_exact_null}
    drawn = resample_metrics(
        list(metrics.values()), sample, seed=SeedSequence(seed), n_resamples=199, skip_missing=True, show=False
    )
    return {
        name: (*interval_limits(each, LEVEL), each.value)
        for name, each in zip(metrics, drawn, strict=True)
        if each.exists
    }


def log_odds_limits(sample: TableSample) -> tuple[float, float]:
    error = LogOddsDeviation(sample.design)
    return error.lower((1 - LEVEL) / 2), error.upper((1 - LEVEL) / 2)


def run(cell: Cell, data_sets: int, drawn: int) -> list[dict[str, object]]:
    """Return the rows of one design: intervals with replicates for the first `drawn` data sets."""
    known, population = targets(cell), cell.population
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for i in range(data_sets):
        rng = np.random.default_rng([i, zlib.crc32("/".join(cell.key).encode())])
        sample = cell.draw(rng)
        if min(sample.table.positives, sample.table.size - sample.table.positives) == 0:
            continue
        for name, (low, high) in closed_limits(sample).items():
            found.setdefault(name, []).append((low, high, known[name], 0.0))
        if i < drawn:
            for name, (low, high, value) in drawn_limits(sample, i).items():
                true = target(DRAWN[name], population, sample.table)
                found.setdefault(name, []).append((low, high, true, value))
            if cell.sample == "independent":
                error = target(cb.metrics.LogOddsError(), population, sample.table)
                found.setdefault("log_odds_error", []).append((*log_odds_limits(sample), error, 0.0))
    return [_row(cell, name, np.array(values), data_sets) for name, values in found.items()]


def _row(cell: Cell, name: str, values: np.ndarray, data_sets: int) -> dict[str, object]:
    low, high, true, value = values.T
    true = np.full(true.size, value.mean()) if np.isnan(true).all() else true
    above, below = np.mean(low - 1e-12 > true), np.mean(high + 1e-12 < true)
    names = ("model", "event rate", "rows", "sample", "spread")
    return {
        **dict(zip(names, cell.key, strict=True)),
        "quantity": name,
        "target": f"{np.mean(true):.4g}",
        "coverage": f"{1 - above - below:.3f}",
        "interval above target": f"{above:.3f}",
        "interval below target": f"{below:.3f}",
        "intervals": true.size,
    }


def cells() -> Iterator[tuple[Cell, int, int]]:
    """Return designs with the number of data sets, and the number of them with replicates."""
    for size in SIZES:
        for sample in SAMPLES:
            for rate in RATES:
                for truth in TRUTHS:
                    drawn = 100 if size == 200 else 30 if (size, sample) == (2_000, "independent") else 0
                    yield Cell(truth, rate, size, sample), DATA_SETS[size], drawn
    for truth in TRUTHS:  # few events among many rows, and spread scores
        for spread in (1.3, 2.0):
            yield Cell(truth, 0.002, 20_000, "independent", spread), 100, 0
        yield Cell(truth, 0.01, 20_000), 100, 0


def main() -> None:
    rows: list[dict[str, object]] = []
    if FILE.exists():
        with FILE.open(newline="") as file:
            rows = list(csv.DictReader(file))
    done = {tuple(str(value) for value in list(row.values())[:5]) for row in rows}
    for cell, data_sets, drawn in cells():
        if cell.key in done:
            continue
        rows += run(cell, data_sets, drawn)
        with FILE.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(*cell.key, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
