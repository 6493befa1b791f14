"""Regions of the scores: what the verdict says about models that are wrong in few rows or at tiny scores.

Each data set is judged with the test of regions and the factor per region ("with"), and without both ("without"), as
version 0.2 did. The table is written to docs/studies/regions.csv; ``--missing N`` continues it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

import calibrant as cb
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.region_tests import NAME
from research.studies.designs import run_cells

Scores = Callable[[np.random.Generator, int], np.ndarray]


def normal(mean: float, deviation: float) -> Scores:
    """Return scores with normal logits."""
    return lambda rng, n: expit(rng.normal(mean, deviation, n))


def grades(levels: tuple[float, ...], shares: tuple[float, ...]) -> Scores:
    """Return scores of a few grades."""
    return lambda rng, n: rng.choice(levels, n, p=shares)


def halves(low: float) -> Scores:
    """Return scores of which half lie near `low`."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        tiny = np.arange(n) < n // 2
        return expit(np.where(tiny, rng.normal(logit(low), 0.1, n), rng.normal(0, 1.5, n)))

    return draw


SCORES: dict[str, Scores] = {
    "uniform": lambda rng, n: rng.random(n),
    "beta(.5, .5)": lambda rng, n: rng.beta(0.5, 0.5, n),
    "beta(.8, 12)": lambda rng, n: rng.beta(0.8, 12, n),
    "expit N(-4, 1.2)": normal(-4, 1.2),
    "beta(.5, 60)": lambda rng, n: rng.beta(0.5, 60, n),
    "expit N(-6, 1)": normal(-6, 1),
    "expit N(-8, 1.5)": normal(-8, 1.5),
    "expit N(0, 4)": normal(0, 4),
    "7 grades": grades((0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25), (0.1, 0.2, 0.3, 0.2, 0.12, 0.05, 0.03)),
    "5 grades": grades((0.002, 0.01, 0.05, 0.2, 0.6), (0.5, 0.25, 0.15, 0.08, 0.02)),
    "12 grades": grades(
        tuple(expit(np.linspace(-8, -1, 12)).tolist()),
        tuple((np.minimum(np.arange(1, 13), np.arange(12, 0, -1)) / 42).tolist()),
    ),
    "2 grades": grades((0.001, 0.1), (0.6, 0.4)),
    "half near 0.001": halves(0.001),
    "half near 0.0001": halves(0.0001),
}
CALIBRATED = ("uniform", "beta(.5, .5)", "beta(.8, 12)", "expit N(-4, 1.2)", "beta(.5, 60)")


@dataclass(frozen=True)
class Truth:
    """Which scores are wrong, and the factor by which their odds are too high (below 1: too low).

    `where` is "all", "none", a grade ("grade 1"), rows between two percentiles ("rows 99.9 to 100") or "slope".
    """

    where: str = "none"
    factor: float = 1.0

    def rates(self, p: np.ndarray) -> np.ndarray:
        """Return the event probabilities of these scores."""
        x = logit(p)
        if self.where == "slope":
            centre = np.mean(x)
            return expit(centre + (x - centre) / self.factor)
        return expit(x - math.log(self.factor) * self.wrong(p))

    def wrong(self, p: np.ndarray) -> np.ndarray:
        """Return which scores are wrong."""
        words = self.where.split()
        wrong = np.full(p.size, words[0] in ("all", "slope"))
        if words[0] == "grade":
            wrong = p == np.unique(p)[int(words[1]) - 1]
        elif words[0] == "rows":
            low, high = np.percentile(p, [float(words[1]), float(words[3])])
            wrong = ((p > low) | (float(words[1]) == 0)) & (p <= high)
        return wrong


@dataclass(frozen=True)
class Cell:
    """One design: scores, truth, number of rows, and how rows depend on each other."""

    scores: str
    truth: Truth
    rows: int
    data_sets: int
    dependence: str = "independent"

    def run(self) -> dict[str, Any]:
        """Return the shares of the verdicts in percent."""
        seed = [self.rows, round(1000 * self.truth.factor), *map(ord, self.scores + self.truth.where + self.dependence)]
        found = np.array([judge(self.design(np.random.default_rng([i, *seed]))) for i in range(self.data_sets)])
        shares = {
            name: f"{share:.1f}" for name, share in zip(RESULTS, (100 * found.mean(axis=0)).tolist(), strict=True)
        }
        p = SCORES[self.scores](np.random.default_rng(seed), self.rows)
        events = (float(np.sum(each[self.truth.wrong(p)])) for each in (p, self.truth.rates(p)))
        counts = {
            f"{name} events where wrong": f"{count:.3g}"
            for name, count in zip(("expected", "true"), events, strict=True)
        }
        return {**self.columns, **counts, "data_sets": self.data_sets, **shares}

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that name the cell."""
        wrong = f"{self.truth.where} x {self.truth.factor:.3g}" if self.truth.where != "none" else "none"
        return {"scores": self.scores, "wrong": wrong, "rows": self.rows, "dependence": self.dependence}

    def design(self, rng: np.random.Generator) -> Design:
        """Return a data set."""
        p = SCORES[self.scores](rng, self.rows)
        rates = self.truth.rates(p)
        words = self.dependence.split()
        if words[-1] == "clusters":
            count = int(words[0])
            cluster = np.arange(self.rows) % count
            shared, own = rng.normal(size=count)[cluster], rng.normal(size=self.rows)
            y = math.sqrt(0.1) * shared + math.sqrt(0.9) * own < ndtri(rates)
            rows, (table,) = PairedRows.read(y, [p], cluster=cluster)
            return Design(table, rows)
        y = rng.random(self.rows) < rates
        if words[0] == "lognormal":
            return Design(
                cb.ScoreTable.from_arrays(y, p, sample_weight=np.exp(rng.normal(0, float(words[-1]), p.size)))
            )
        if words[0] == "thinned":  # a quarter of the events is kept, with weight 4
            kept = ~y | (rng.random(p.size) < 0.25)
            return Design(cb.ScoreTable.from_arrays(y[kept], p[kept], sample_weight=np.where(y[kept], 4.0, 1.0)))
        return Design(cb.ScoreTable.from_arrays(y, p))


RESULTS = (
    "rejected without (%)",
    "rejected with (%)",
    "regions alone (%)",
    "calibrated without (%)",
    "calibrated with (%)",
    "calibrated or negligible without (%)",
    "calibrated or negligible with (%)",
)


def judge(design: Design) -> list[bool]:
    """Return the columns of `RESULTS` for one data set."""
    margin, alpha = 0.1, 0.05
    tests = BinaryTests.from_design(design)
    components = tests.omnibus.components
    before = join_tests(test for name, test in components.items() if name != NAME)
    old = BinaryTests(before, tests.deviation, None)
    rejected = [each.omnibus.pvalue <= alpha for each in (old, tests)]
    within = [each.equivalence_pvalue(margin, alpha) <= alpha for each in (old, tests)]
    alone = NAME in components and components[NAME].pvalue <= alpha
    good = [w and not r for w, r in zip(within, rejected, strict=True)]
    return [*rejected, alone, *good, *within]


def blind_spots() -> Iterator[Cell]:
    """Yield cells in which one region is wrong by a factor of 3 or more."""
    found = [
        *(("7 grades", f"grade {g}", f, 200_000) for g, f in ((1, 1 / 10.6), (1, 11), (1, 1 / 3), (2, 1 / 3), (2, 3))),
        *(("7 grades", f"grade {g}", f, 200_000) for g in (6, 7) for f in (1 / 3, 3)),
        *(("5 grades", f"grade {g}", f, 20_000) for g in (1, 5) for f in (1 / 3, 3)),
        *(("12 grades", f"grade {g}", f, 300_000) for g in (1, 2, 3, 12) for f in (1 / 3, 3)),
        *(("2 grades", "grade 1", f, 60_000) for f in (1 / 3, 3)),
        *(("expit N(-6, 1)", f"rows {low} to 100", f, 1_000_000) for low in (99.95, 99.9, 99, 98) for f in (1 / 3, 3)),
        *(("expit N(-4, 1.2)", f"rows {low} to 100", f, 100_000) for low in (99.9, 99.5, 98) for f in (1 / 3, 3)),
        *(("expit N(-6, 1)", "rows 0 to 50", f, 300_000) for f in (1 / 3, 3)),
        *(("beta(.5, 60)", "rows 0 to 50", f, 300_000) for f in (1 / 3, 3)),
        *(("expit N(-6, 1)", f"rows {low} to {low + 20}", f, 300_000) for low in (20, 40) for f in (1 / 3, 3)),
        *(("half near 0.001", "rows 0 to 50", f, 20_000) for f in (1 / 3, 1 / 5)),
        *(("half near 0.001", "rows 0 to 50", f, 40_000) for f in (1 / 3, 3)),
        *(("half near 0.0001", "rows 0 to 50", f, 200_000) for f in (1 / 10, 1 / 3, 3)),
    ]
    for scores, where, factor, rows in found:
        yield Cell(scores, Truth(where, factor), rows, max(min(400, 40_000_000 // rows), 40))


def calibrated_models() -> Iterator[Cell]:
    """Yield calibrated models: those that are large enough for a verdict, and the size of the tests."""
    for scores, rows in zip(CALIBRATED, (10_000, 15_000, 40_000, 150_000, 300_000), strict=True):
        for times in (1, 2):
            yield Cell(scores, Truth(), times * rows, max(min(400, 20_000_000 // (times * rows)), 40))
    for scores in SCORES:
        for rows in (1_000, 10_000, 100_000):
            yield Cell(scores, Truth(), rows, 1_000 if rows < 100_000 else 200)


def smooth_shifts() -> Iterator[Cell]:
    """Yield models whose odds are wrong everywhere, for power, and regions that are wrong by a factor of 2."""
    for scores, sizes in (
        ("uniform", (1_000, 4_000)),
        ("beta(.8, 12)", (5_000,)),
        ("expit N(-4, 1.2)", (10_000,)),
        ("beta(.5, 60)", (30_000,)),
        ("expit N(-8, 1.5)", (200_000,)),
    ):
        for rows in sizes:
            for truth in (Truth("all", 1.105), Truth("all", 1.22), Truth("all", 1.35), Truth("slope", 1.2)):
                yield Cell(scores, truth, rows, 400 if rows < 100_000 else 300)
    for scores, where, rows in (
        ("7 grades", "grade 2", 210_000),
        ("7 grades", "grade 3", 60_000),
        ("5 grades", "grade 1", 50_000),
        ("2 grades", "grade 1", 80_000),
        ("expit N(-4, 1.2)", "rows 99.5 to 100", 60_000),
    ):
        for factor in (0.5, 2):
            yield Cell(scores, Truth(where, factor), rows, 400)


def dependent_rows() -> Iterator[Cell]:
    """Yield clusters and weights."""
    for dependence in (
        "10 clusters",
        "20 clusters",
        "50 clusters",
        "500 clusters",
        "lognormal 0.8",
        "lognormal 1.5",
        "thinned",
    ):
        for scores in ("uniform", "beta(.8, 12)", "beta(.5, 60)", "7 grades"):
            for rows in (1_000, 20_000):
                yield Cell(scores, Truth(), rows, 400 if rows == 1_000 else 200, dependence)
    for dependence in ("500 clusters", "lognormal 0.8", "thinned"):
        for truth in (Truth(), Truth("grade 1", 1 / 10.6), Truth("grade 2", 1 / 3)):
            yield Cell("7 grades", truth, 300_000, 40, dependence)


if __name__ == "__main__":
    cells = (*blind_spots(), *calibrated_models(), *smooth_shifts(), *dependent_rows())
    run_cells("regions", {tuple(map(str, cell.columns.values())): cell for cell in cells})
