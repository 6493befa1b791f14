"""Error rates and power of the verdict: 180 designs of independent, clustered and weighted rows.

The library decides each data set without resampling (`calibrant.kinds.binary.verdict.decide`). Results are stored per
design and truth in docs/studies/verdicts.csv, so the study can be resumed; the tables of the documentation are written
from that file.
"""

import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

import calibrant as cb
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.paired_rows import PairedRows
from calibrant.kinds.binary.verdict import decide
from research.studies.designs import RESULTS, mean_logit, workers, write

ROWS = (200, 1_000, 5_000, 50_000)
RATES = (0.5, 0.05, 0.005)
SCORES = ("continuous", "5 distinct", "heavy ties")
DEPENDENCE = ("independent", "10 clusters", "30 clusters", "200 clusters", "weights")
TRUTHS = ("calibrated", "error of +0.1", "error of -0.1", "shift of 0.3", "slope of 1.4")
DEVIATION = 1.3  # of the logits of the scores
CORRELATION = 0.1  # of the latent normal variables of two rows of a cluster
CLAIMS = ("omnibus", "over- or underestimates", "over- or underconfident", "local")
VERDICTS = ("calibrated", "negligible", "miscalibrated", "inconclusive")
CHUNK = 100


@dataclass(frozen=True)
class Cell:
    """One design with one truth."""

    dependence: str
    event_rate: float
    scores: str
    rows: int
    truth: str

    @property
    def data_sets(self) -> int:
        """1,000; fewer for large samples that are not calibrated."""
        return 1_000 if self.rows < 50_000 or self.truth == "calibrated" else 100


def cells() -> list[Cell]:
    """Return all cells, fast ones and sizes first."""
    found = [Cell(*each) for each in product(DEPENDENCE, RATES, SCORES, ROWS, TRUTHS)]
    return sorted(found, key=lambda cell: (cell.rows == 50_000, TRUTHS.index(cell.truth), cell.rows))


def true_rates(rng: np.random.Generator, cell: Cell) -> np.ndarray:
    """Return the event probability of each row: normal logits, five levels, or about a hundred values."""
    centre = mean_logit(cell.event_rate)
    if cell.scores == "5 distinct":
        levels = expit(centre + DEVIATION * ndtri((np.arange(5) + 0.5) / 5))
        return levels[rng.integers(0, 5, cell.rows)]
    p = expit(rng.normal(centre, DEVIATION, cell.rows))
    if cell.scores == "heavy ties":
        step = {0.5: 0.01, 0.05: 0.001, 0.005: 0.0001}[cell.event_rate]
        p = np.clip(np.round(p / step) * step, step, 1 - step)
    return p


def scores(cell: Cell, q: np.ndarray) -> np.ndarray:
    """Return the scores of a model with this truth for rows with these rates."""
    shifts = {"error of +0.1": 0.1, "error of -0.1": -0.1, "shift of 0.3": 0.3}
    if cell.truth in shifts:
        return expit(logit(q) + shifts[cell.truth])
    if cell.truth == "slope of 1.4":
        centre = mean_logit(cell.event_rate)
        return expit(centre + 1.4 * (logit(q) - centre))
    return q


def design(rng: np.random.Generator, cell: Cell) -> Design:
    """Return a data set."""
    q = true_rates(rng, cell)
    if cell.dependence == "independent":
        return Design(cb.ScoreTable.from_arrays(rng.random(cell.rows) < q, scores(cell, q)))
    if cell.dependence == "weights":  # a quarter of the events is kept, with weight 4
        y = rng.random(cell.rows) < q
        kept = ~y | (rng.random(cell.rows) < 0.25)
        y, q = y[kept], q[kept]
        return Design(cb.ScoreTable.from_arrays(y, scores(cell, q), sample_weight=np.where(y, 4.0, 1.0)))
    count = int(cell.dependence.split()[0])
    cluster = np.arange(cell.rows) % count
    shared, own = rng.normal(size=count)[cluster], rng.normal(size=cell.rows)
    y = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own < ndtri(q)
    rows, (table,) = PairedRows.read(y, [scores(cell, q)], cluster=cluster)
    return Design(table, rows)


def count(task: tuple[Cell, int]) -> dict[str, int]:
    """Return directions and verdicts of CHUNK data sets."""
    cell, chunk = task
    seed = [chunk, cell.rows, round(10_000 * cell.event_rate), *(map(ord, cell.dependence + cell.scores + cell.truth))]
    rng = np.random.default_rng(seed)
    found = dict.fromkeys([*CLAIMS, *VERDICTS], 0)
    for _ in range(CHUNK):
        tests = BinaryTests.from_design(design(rng, cell))
        verdict, _ = decide(tests, margin=0.1, alpha=0.05, confidence_level=0.95)
        direction = verdict.direction
        found["omnibus"] += verdict.is_significant
        found["over- or underestimates"] += "estimates" in direction
        found["over- or underconfident"] += "confident" in direction
        found["local"] += direction == "local"
        found[verdict.verdict] += 1
    return found


PATH = RESULTS / "verdicts.csv"
COLUMNS = ["dependence", "event_rate", "scores", "rows", "truth", "data_sets", *CLAIMS, *VERDICTS]


def known() -> dict[tuple[str, ...], dict[str, str]]:
    """Return the finished cells."""
    if not PATH.exists():
        return {}
    with PATH.open(newline="") as file:
        return {tuple(row[name] for name in COLUMNS[:5]): row for row in csv.DictReader(file)}


def key(cell: Cell) -> tuple[str, ...]:
    return tuple(map(str, astuple(cell)))


def run() -> None:
    """Run the missing cells one after the other, each on all cores."""
    done = known()
    missing = [cell for cell in cells() if key(cell) not in done]
    with ProcessPoolExecutor(workers()) as pool, PATH.open("a", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not done:
            out.writeheader()
        for place, cell in enumerate(missing, 1):
            total = dict.fromkeys([*CLAIMS, *VERDICTS], 0)
            for found in pool.map(count, [(cell, chunk) for chunk in range(cell.data_sets // CHUNK)]):
                total = {name: total[name] + value for name, value in found.items()}
            out.writerow(dict(zip(COLUMNS, [*key(cell), cell.data_sets, *total.values()], strict=True)))
            file.flush()
            print(f"{place} of {len(missing)}: {cell}", file=sys.stderr)


def shares(row: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return counts as percentages."""
    return {name: f"{100 * int(row[name]) / int(row['data_sets']):.1f}" for name in names}


def tables() -> None:
    """Write the tables of the documentation."""
    found = sorted(known().values(), key=_order)
    head = ("dependence", "event_rate", "scores", "rows", "data_sets")

    def table(truths: tuple[str, ...], names: tuple[str, ...], *, truth: bool) -> list[dict[str, Any]]:
        return [
            {**{name: row[name] for name in head}, **({"truth": row["truth"]} if truth else {}), **shares(row, names)}
            for row in found
            if row["truth"] in truths
        ]

    write("verdicts_size", table(("calibrated",), (*CLAIMS, "calibrated", "miscalibrated"), truth=False))
    write("verdicts_margin", table(TRUTHS[1:3], ("calibrated", "negligible", "miscalibrated"), truth=True))
    write("verdicts_power", table(TRUTHS[3:], (*CLAIMS, "miscalibrated"), truth=True))
    write("verdicts_summary", summary(found))


def summary(found: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return for each kind of dependence the largest error rates over all cells, and the cells beyond 7 %."""
    rows = []
    for dependence in DEPENDENCE:
        own = [row for row in found if row["dependence"] == dependence]
        sizes = [float(shares(row, ("omnibus",))["omnibus"]) for row in own if row["truth"] == "calibrated"]
        wrong = [_within(row) for row in own if row["truth"] in TRUTHS[1:3]]
        if sizes and wrong:
            rows.append(
                {
                    "dependence": dependence,
                    "designs": len(sizes),
                    "largest size of the omnibus test (%)": max(sizes),
                    "designs above 7 %": sum(size > 7 for size in sizes),
                    "largest false within at the margin (%)": max(wrong),
                    "designs above 7 % (within)": sum(share > 7 for share in wrong),
                }
            )
    return rows


def _within(row: dict[str, str]) -> float:
    return round(100 * (int(row["calibrated"]) + int(row["negligible"])) / int(row["data_sets"]), 1)


def _order(row: dict[str, str]) -> tuple[int, ...]:
    lists = (DEPENDENCE, tuple(map(str, RATES)), SCORES, tuple(map(str, ROWS)), TRUTHS)
    return tuple(values.index(row[name]) for values, name in zip(lists, COLUMNS, strict=False))


if __name__ == "__main__":
    if "--tables" not in sys.argv:
        run()
    tables()
