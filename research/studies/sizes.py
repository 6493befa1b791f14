"""Size and power of tests of calibration.

10,000 data sets per design for sizes (2,000 for power): 100 (50) sets of scores, 100 (40) sets of outcomes for each.
Tests by resampling compare each data set with 199 resamples, which are shared by the data sets with the same scores.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

import calibrant as cb
from research.studies.designs import (
    BUMPED,
    CALIBRATED,
    PREVALENCES,
    SHIFTED,
    SIZES,
    STEEP,
    Truth,
    scores,
    spread_over_cores,
    write,
)

ALPHA = 0.05
N_RESAMPLES = 199
BY_RESAMPLING = {
    "ECE": cb.ECE(),
    "ACE": cb.metrics.ACE(),
    "TCE, paper's bins": cb.TCE(),
    "TCE, consistent bins": cb.TCE(bins=cb.bins.PAVABC.consistent()),
    "ECCE-MAD": cb.METRICS["ecce_mad"](),
    "ECCE-R": cb.METRICS["ecce_r"](),
    "MCB": cb.METRICS["mcb"](),
    "Brier": cb.METRICS["brier"](),
}
ASYMPTOTIC = {
    "Spiegelhalter": cb.inference.spiegelhalter,
    "Hosmer-Lemeshow": cb.inference.hosmer_lemeshow,
    "ECCE-MAD": partial(cb.inference.ecce_test, kind="mad"),
    "ECCE-R": partial(cb.inference.ecce_test, kind="r"),
    "slope and intercept": cb.inference.slope_intercept_test,
}


def kernel_block_pvalue(y: np.ndarray, p: np.ndarray) -> float:
    """Kernel test of Widmann, Lindsten & Zachariah (2019): block estimator, Laplacian kernel, blocks of sqrt(N)."""
    from scipy.stats import norm

    block = int(np.sqrt(y.size))
    count = y.size // block
    residual = (y - p)[: block * count].reshape(count, block)
    at = p[: block * count].reshape(count, block)
    width = np.median(np.abs(at[:, :, None] - at[:, None, :])) + 1e-12
    kernel = np.exp(-np.abs(at[:, :, None] - at[:, None, :]) / width)
    kernel[:, np.arange(block), np.arange(block)] = 0
    each = np.einsum("bi,bij,bj->b", residual, kernel, residual) / (block * (block - 1))
    return float(norm.sf(np.sqrt(count) * each.mean() / each.std(ddof=1)))


def rejections(task: tuple[int, float, Truth, int, int]) -> dict[str, int]:
    """Return for one set of scores the number of data sets that each test rejects."""
    size, prevalence, truth, outcomes, seed = task
    rng = np.random.default_rng([seed, size, round(1000 * prevalence)])
    p = scores(rng, size, prevalence)
    rate = truth.rate(p, prevalence)

    def table() -> cb.ScoreTable:
        return cb.ScoreTable.from_arrays(rng.random(size) < p, p)

    resampled = np.array(
        [[metric.value(t) for metric in BY_RESAMPLING.values()] for t in (table() for _ in range(N_RESAMPLES))]
    )
    by_resampling = [f"{name} (resampling)" for name in BY_RESAMPLING]
    found = dict.fromkeys([*by_resampling, *ASYMPTOTIC, "kernel (blocks)"], 0)
    for _ in range(outcomes):
        y = rng.random(size) < rate
        data = cb.ScoreTable.from_arrays(y, p)
        for j, (name, metric) in enumerate(BY_RESAMPLING.items()):
            value = metric.value(data)
            above, below = (
                (1 + np.sum(side)) / (1 + N_RESAMPLES) for side in (resampled[:, j] >= value, resampled[:, j] <= value)
            )
            pvalue = above if metric.measures_gaps else 2 * min(above, below)
            found[f"{name} (resampling)"] += pvalue <= ALPHA
        for name, test in ASYMPTOTIC.items():
            found[name] += test(data, n_resamples=1).pvalue <= ALPHA
        if size <= 5_000:
            found["kernel (blocks)"] += kernel_block_pvalue(y.astype(float), p) <= ALPHA
    return found


def shares(size: int, prevalence: float, truth: Truth, outcomes: int, sets: int) -> dict[str, str]:
    tasks = [(size, prevalence, truth, outcomes, seed) for seed in range(sets)]
    totals: dict[str, int] = {}
    for found in spread_over_cores(rejections, tasks, f"N = {size:,}, {prevalence:.0%}, {truth.name}"):
        for name, count in found.items():
            totals[name] = totals.get(name, 0) + int(count)
    if size > 5_000:
        totals.pop("kernel (blocks)")
    return {name: f"{count / (sets * outcomes):.3f}" for name, count in totals.items()}


def columns(truth: Truth, sizes: Iterable[int], outcomes: int, sets: int) -> list[dict[str, str]]:
    """Return a row per test and a column per design."""
    rows: dict[str, dict[str, str]] = {}
    for size in sizes:
        for prevalence in PREVALENCES:
            for name, share in shares(size, prevalence, truth, outcomes, sets).items():
                rows.setdefault(name, {"test": name})[f"N={size:,} {prevalence:.0%}"] = share
    return list(rows.values())


def main() -> None:
    power = [
        {"truth": truth.name, **row}
        for truth in (SHIFTED, STEEP, BUMPED)
        for row in columns(truth, SIZES[:2], outcomes=40, sets=50)
    ]
    write("power", power)
    write("sizes", columns(CALIBRATED, SIZES, outcomes=100, sets=100))


if __name__ == "__main__":
    main()
