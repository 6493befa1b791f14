"""Error rates of heterogeneity between groups: size and power of the test, coverage of intervals, few clusters.

``python -m research heterogeneity`` runs the cells that docs/studies/heterogeneity.csv and
docs/studies/heterogeneity_clusters.csv do not have yet. Scores have a standard deviation of 1 in log-odds; all true
log-odds are shifted by 0.3 and have slope 0.7, so only differences between groups may count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calibrant.inference.heterogeneity import estimate_heterogeneity, random_effects_mean, tails
from calibrant.inference.log_odds_shifts import LogOddsShifts, common_line
from research.studies.designs import run_missing

FOLDER = Path(__file__).parent.parent.parent / "docs" / "studies"
PATH, CLUSTERS_PATH = FOLDER / "heterogeneity.csv", FOLDER / "heterogeneity_clusters.csv"
SHIFT, SLOPE = 0.3, 0.7


@dataclass(frozen=True)
class Cell:
    """Number of groups, rows of each, rate of events at the mean score, and standard deviation between groups."""

    groups: int
    rows: int
    rate: float
    sd: float


@dataclass(frozen=True)
class ClusterCell:
    """Number of clusters, their mean number of rows, whether sizes are log-normal, and the same rate and deviation."""

    clusters: int
    rows: int
    sizes: str
    rate: float
    sd: float


def cells() -> Iterator[Cell]:
    """Yield all designs of at most a million rows, small ones first, and one of 5,000 groups."""
    sizes = [(groups, rows) for groups in (10, 100, 1_000, 10_000) for rows in (5, 50, 1_000)]
    yield Cell(5_000, 20, 0.2, 0.25)
    for groups, rows in sorted(sizes, key=lambda each: each[0] * each[1]):
        for sd in (0.0, 0.1, 0.25, 0.5):
            if groups * rows <= 1_000_000:
                yield from (Cell(groups, rows, rate, sd) for rate in (0.5, 0.05, 0.005))


def cluster_cells() -> Iterator[ClusterCell]:
    """Yield all designs of few clusters."""
    for clusters in (3, 5, 9):
        for rows, rate in ((500, 0.3), (200, 0.05)):
            for sizes in ("equal", "unequal"):
                yield from (ClusterCell(clusters, rows, sizes, rate, sd) for sd in (0.0, 0.25, 0.5, 1.0))


def draw(
    sizes: np.ndarray, rate: float, sd: float, rng: np.random.Generator, line: tuple[float, float] = (SHIFT, SLOPE)
) -> tuple[np.ndarray, ...]:
    """Return log-odds of scores and outcomes, both sorted by group and score, first rows, and effects of groups."""
    group = np.repeat(np.arange(sizes.size), sizes)
    centre, effect = logit(rate), rng.normal(0, sd, sizes.size) if sd else np.zeros(sizes.size)
    away = rng.normal(size=group.size)
    away = away[np.lexsort((away, group))]
    y = rng.random(group.size) < expit(centre + line[0] + line[1] * away + effect[group])
    return centre + away, y.astype(float), np.cumsum(sizes) - sizes, effect


def effects(x: np.ndarray, y: np.ndarray, start: np.ndarray, *, sloped: bool = True) -> LogOddsShifts | None:
    """Return the effects of groups; None where all outcomes are equal."""
    order, ones = np.argsort(x), np.ones(x.size)
    line = common_line(x[order], ones, y[order], sloped=sloped)
    return None if line is None else LogOddsShifts(x, ones, y, start, line)


def measure(cell: Cell) -> dict[str, float]:
    """Return the share of rejections and, of fewer data sets, the coverage of intervals, in percent."""
    total = cell.groups * cell.rows
    data_sets = 1_000 if total <= 5_000 else 300 if total <= 50_000 else 60
    wanted = 0 if total > 100_000 else 40 if cell.groups <= 100 else 5
    rejected, covered = 0, []
    for i in range(data_sets):
        rng = np.random.default_rng([11, i])
        sizes = np.full(cell.groups, cell.rows)
        x, y, start, effect = draw(sizes, cell.rate, cell.sd, rng)
        found = effects(x, y, start)
        if found is None:
            continue
        if i >= wanted:
            moments = found.moments(0.0)
            rejected += max(tails(moments)[1], found.least_pvalue) <= 0.05  # NaN rejects nothing
            continue
        h = estimate_heterogeneity(found, range(cell.groups), name="", test="", level=0.95)
        rejected += h.pvalue <= 0.05
        if h.is_known:
            moved = logit(cell.rate) + SHIFT + SLOPE * (found.line.centre - logit(cell.rate)) - found.line.centre
            covered.append(_covered(h, moved, effect, cell.sd, rng))
    names = ("sd_covered", "own_covered", "shrunken_covered", "mean_covered", "new_covered")
    shares = np.round(100 * np.mean(covered, axis=0), 1) if covered else np.full(len(names), np.nan)
    return {
        "data_sets": data_sets,
        "rejected": round(100 * rejected / data_sets, 1),
        "intervals": len(covered),
        **dict(zip(names, shares.tolist(), strict=True)),
    }


def _covered(h: Any, mean: float, effect: np.ndarray, sd: float, rng: np.random.Generator) -> list[float]:
    groups, truth, new = np.array(list(h.groups.values())), mean + effect, mean + sd * rng.normal()
    own, shrunken = ((groups[:, c] <= truth) & (truth <= groups[:, c + 1]) for c in (1, 4))
    inside = [h.low <= sd <= h.high, own.mean(), shrunken.mean(), h.mean.low <= mean <= h.mean.high]
    return [float(each) for each in (*inside, h.new_low <= new <= h.new_high)]


def measure_clusters(cell: ClusterCell, data_sets: int = 300) -> dict[str, float]:
    """Return how often the mean over clusters of a calibrated model is significant, in percent."""
    rejected = 0
    for i in range(data_sets):
        rng = np.random.default_rng([12, i])
        sizes = np.full(cell.clusters, cell.rows)
        if cell.sizes == "unequal":
            sizes = np.maximum((cell.rows * rng.lognormal(0, 1, cell.clusters)).astype(int), 20)
        x, y, start, _ = draw(sizes, cell.rate, cell.sd, rng, (0.0, 1.0))
        found = effects(x, y, start, sloped=False)
        if found is not None:
            pvalue = random_effects_mean(found, "", 0.95).pvalue
            rejected += pvalue is not None and pvalue <= 0.05
    return {"data_sets": data_sets, "rejected": round(100 * rejected / data_sets, 1)}


def main() -> None:
    """Run both studies."""
    run_missing(CLUSTERS_PATH, cluster_cells(), measure_clusters)
    run_missing(PATH, cells(), measure)


if __name__ == "__main__":
    main()
