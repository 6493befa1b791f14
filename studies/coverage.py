"""Do 95 % intervals cover?

2,000 data sets a design, 99 replicates each: the interval of the library and, beside it, the plain percentile interval
of the same bootstrap. What must be covered: for ECE, ACE and RMSCE the value in the population, under the same kind of
bins; for TCE its mean over all samples of this size, which is estimated by the mean over the data sets.
"""

import sys

import numpy as np
from designs import DEVIATION, PREVALENCES, RIGHT, SIZES, STEEP, Truth, mean_logit, scores, spread_over_cores, write
from numpy.random import SeedSequence
from scipy.special import expit, ndtri

import calibrant as cb
from calibrant.inference.intervals import spreads

DATA_SETS = 2_000
LEVEL = 0.95
DRAWS = 99
OF_GAPS = {"ECE": cb.ECE(), "ACE": cb.ACE(), "RMSCE": cb.RMSCE()}
OF_TESTS = {"TCE, paper's bins": cb.TCE(), "TCE, consistent bins": cb.TCE(bins=cb.PAVABC.consistent())}


def limits(task: tuple[int, float, Truth, int]) -> list[tuple[float, ...]]:
    """For one data set: of every metric the value, the interval, and the percentile interval."""
    size, prevalence, truth, seed = task
    rng = np.random.default_rng([seed, size, round(1000 * prevalence)])
    p = scores(rng, size, prevalence)
    table = cb.ScoreTable.from_arrays(rng.random(size) < truth.rate(p, prevalence), p)
    found = [
        *spreads([*OF_GAPS.values()], table, seed=SeedSequence(seed), n_resamples=DRAWS, show=False, threads=False),
        *spreads(
            [*OF_TESTS.values()],
            table,
            seed=SeedSequence(seed),
            n_resamples=DRAWS,
            null=False,
            show=False,
            threads=False,
        ),
    ]
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    return [(s.value, *s.limits(LEVEL), *map(float, np.quantile(s.bootstrap, tails))) for s in found]


def population(prevalence: float, truth: Truth) -> dict[str, float]:
    """The metrics of gaps in the population, by a grid of a million scores of equal weight."""
    p = expit(mean_logit(prevalence) + DEVIATION * ndtri((np.arange(1_000_000) + 0.5) / 1_000_000))
    gap = p - truth.rate(p, prevalence)

    def gaps(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weight = np.bincount(bins, minlength=10) / p.size
        total = np.bincount(bins, weights=gap, minlength=10) / p.size
        return weight, np.divide(total, weight, out=np.zeros(10), where=weight > 0)

    weight, mean = gaps(np.minimum((p * 10).astype(int), 9))
    equal, tenth = gaps(np.arange(p.size) * 10 // p.size)
    return {
        "ECE": float(np.sum(weight * np.abs(mean))),
        "ACE": float(np.sum(equal * np.abs(tenth))),
        "RMSCE": float(np.sqrt(np.sum(weight * mean**2))),
    }


def main(sizes: tuple[int, ...]) -> None:
    rows = []
    for size in sizes:
        for prevalence in PREVALENCES:
            for truth in (RIGHT, STEEP) if prevalence == 0.5 and size == 500 else (STEEP,):
                tasks = [(size, prevalence, truth, seed) for seed in range(DATA_SETS)]
                what = f"N = {size:,}, {prevalence:.0%}, {truth.name}"
                found = np.array(list(spread_over_cores(limits, tasks, what)))
                targets = population(prevalence, truth)
                for j, name in enumerate([*OF_GAPS, *OF_TESTS]):
                    value, low, high, plain_low, plain_high = found[:, j].T
                    target = targets.get(name, float(value.mean()))
                    # 1e-12: a population value of 0 is only 0 up to rounding
                    inside = (low - 1e-12 <= target) & (target <= high + 1e-12)
                    rows.append(
                        {
                            "N": f"{size:,}",
                            "events": f"{prevalence:.0%}",
                            "truth": truth.name,
                            "metric": name,
                            "target": f"{target:.4g}" if target > 1e-12 else "0",
                            "mean reading": f"{value.mean():.4g}",
                            "coverage": f"{inside.mean():.3f}",
                            "too high": f"{(low - 1e-12 > target).mean():.3f}",
                            "too low": f"{(high + 1e-12 < target).mean():.3f}",
                            "mean width": f"{(high - low).mean():.3g}",
                            "percentile coverage": f"{((plain_low <= target) & (target <= plain_high)).mean():.3f}",
                        }
                    )
                print(what, [row["coverage"] for row in rows[-5:]], file=sys.stderr, flush=True)
        write(f"coverage_{size}", rows)
        rows = []


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
