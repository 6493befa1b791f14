"""How often tests of numbers and of predictive distributions reject forecasts that are right.

Eight designs in which the forecast is the distribution that outcomes are drawn from, 10,000 replications each:
rejection rates at 1, 5 and 10 %. ``make study-numbers`` writes docs/studies/number_sizes.csv.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from designs import spread_over_cores, write
from scipy import stats

from calibrant import regression as rg

REPLICATIONS = 10_000
ROUNDS = 100
LEVELS = (0.01, 0.05, 0.1)

Drawn = tuple[np.ndarray, np.ndarray, Any]  # outcomes, their true means, forecasts


def normal(rng: np.random.Generator, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.normal(size=n), mean, rg.Gaussian(mean, 1.0)


def uneven(rng: np.random.Generator, n: int) -> Drawn:
    mean, sd = rng.normal(size=n), np.exp(0.7 * rng.normal(size=n))
    return mean + sd * rng.normal(size=n), mean, rg.Gaussian(mean, sd)


def student(rng: np.random.Generator, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.standard_t(3, size=n), mean, stats.t(3, loc=mean)


def gamma(rng: np.random.Generator, n: int) -> Drawn:
    scale = np.exp(0.5 * rng.normal(size=n))
    return scale * rng.gamma(2, size=n), 2 * scale, stats.gamma(2, scale=scale)


def counts(rng: np.random.Generator, n: int) -> Drawn:
    rate = rng.gamma(2, 1.5, size=n)
    return rng.poisson(rate).astype(float), rate, stats.poisson(rate)


def rare(rng: np.random.Generator, n: int) -> Drawn:
    rate = 0.2 * rng.gamma(2, 0.5, size=n)
    return rng.poisson(rate).astype(float), rate, stats.poisson(rate)


def quantiles(rng: np.random.Generator, n: int) -> Drawn:
    levels = np.arange(1, 10) / 10
    scale = np.exp(0.5 * rng.normal(size=n))
    known = rg.Quantiles(levels, scale[:, None] * stats.gamma(2).ppf(levels))
    return scale * rng.gamma(2, size=n), 2 * scale, known


def ensemble(rng: np.random.Generator, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.standard_t(5, size=n), mean, rg.Samples(mean[:, None] + rng.standard_t(5, size=(n, 19)))


DESIGNS: dict[str, tuple[Callable[[np.random.Generator, int], Drawn], int]] = {
    "normal, 50 rows": (normal, 50),
    "normal, spread varies, 500 rows": (uneven, 500),
    "Student's t (3), 200 rows": (student, 200),
    "gamma, 500 rows": (gamma, 500),
    "Poisson counts, 300 rows": (counts, 300),
    "rare Poisson counts, 1,000 rows": (rare, 1000),
    "9 quantiles of a gamma, 300 rows": (quantiles, 300),
    "19 draws of Student's t (5), 200 rows": (ensemble, 200),
}


def pvalues(y: np.ndarray, mean: np.ndarray, forecast: Any, seed: int) -> dict[str, float]:
    """Of every test."""
    u = rg.pit(y, forecast, random_state=seed)
    chi = rg.chi_square(u, n_resamples=999, random_state=seed)
    bins = rg.bias_by_bin(y, mean)
    error = rg.evaluate(y, mean, n_resamples=0)["mean error"].pvalue
    return {
        "Anderson-Darling": rg.anderson_darling(u).pvalue,
        "Kolmogorov-Smirnov": rg.kolmogorov_smirnov(u).pvalue,
        "chi-squared": chi.pvalue if chi.resampling_pvalue is None else chi.resampling_pvalue,
        "mean error": float("nan") if error is None else error,
        "bias in all bins": bins.test.pvalue,
        "largest bias (Holm)": float(np.nanmin(bins.per_bin["adjusted"])),
        "slope and intercept": rg.slope_intercept(y, mean).test.pvalue,
    }


def rejections(replications: int, task: tuple[str, int]) -> dict[str, Any]:
    """Of one round: how often each test rejects at each level."""
    name, round_ = task
    draw, n = DESIGNS[name]
    rng = np.random.default_rng([list(DESIGNS).index(name), round_])
    found: dict[str, list[float]] = {}
    for i in range(replications):
        for test, p in pvalues(*draw(rng, n), seed=1000 * round_ + i).items():
            found.setdefault(test, []).append(p)
    return {"design": name, **{t: [int(np.sum(np.array(p) <= a)) for a in LEVELS] for t, p in found.items()}}


def main(replications: int) -> None:
    each = replications // ROUNDS
    tasks = [(name, round_) for name in DESIGNS for round_ in range(ROUNDS)]
    total: dict[tuple[str, str], np.ndarray] = {}
    for done in spread_over_cores(partial(rejections, each), tasks, "sizes"):
        for test, times in done.items():
            if test != "design":
                key = (done["design"], test)
                total[key] = total.get(key, np.zeros(len(LEVELS))) + np.array(times)
    rows = [
        {
            "design": design,
            "test": test,
            "replications": each * ROUNDS,
            **{f"{100 * a:g} %": f"{100 * t / (each * ROUNDS):.2f}" for a, t in zip(LEVELS, times, strict=True)},
        }
        for (design, test), times in total.items()
    ]
    write("number_sizes", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPLICATIONS)
