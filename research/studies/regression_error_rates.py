"""Error rates and power of `calibrant.evaluate` for points and distributions.

Three questions, each in several designs and sample sizes: how often a calibrated model is significant and how often
each direction is reported ("size"); how often a deviation equal to the margin is shown to lie within it ("margin"); how
often deviations are detected ("power"). ``make study NAME=regression`` writes docs/studies/regression_error_rates.csv.
Finished rows are kept, so an interrupted run can be resumed; one process.
"""

import csv
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

import calibrant as cb
from calibrant import regression as rg

REPLICATIONS = 2_000
SIZES = (200, 1000, 5000)
VERDICTS = ("calibrated", "negligible", "miscalibrated", "inconclusive")
DIRECTIONS = ("overestimates", "underestimates", "overconfident", "underconfident", "local")
COLUMNS = ("question", "design", "rows", "data sets", "significant", *VERDICTS, *DIRECTIONS, "skewed")
OUTPUT = Path(__file__).parents[2] / "docs" / "studies" / "regression_error_rates.csv"

Rng = np.random.Generator
Drawn = tuple[np.ndarray, Any, dict[str, Any]]  # outcomes, predictions or forecasts, options
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def scales(rng: Rng, n: int) -> np.ndarray:
    """Return scales of predictions that vary by a factor."""
    return np.exp(0.5 * rng.normal(size=n))


# Calibrated models


def normal(rng: Rng, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.normal(size=n), mean, {}


def student(rng: Rng, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.standard_t(3, size=n), mean, {}


def gamma(rng: Rng, n: int) -> Drawn:
    mean = scales(rng, n)
    return mean * rng.gamma(2, size=n) / 2, mean, {}


def lognormal(sigma: float, rng: Rng, n: int) -> Drawn:
    mean = scales(rng, n)
    return mean * np.exp(sigma * rng.normal(size=n) - sigma**2 / 2), mean, {}


def zero_inflated(rng: Rng, n: int) -> Drawn:
    amount = scales(rng, n)
    claims = (rng.random(n) < 0.03) * amount * np.exp(rng.normal(size=n) - 0.5)
    return claims, 0.03 * amount, {}


def poisson(rng: Rng, n: int) -> Drawn:
    rate = 0.5 * scales(rng, n)
    return rng.poisson(rate).astype(float), rate, {}


def ensemble(members: int, rng: Rng, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.normal(size=n), rg.Samples(mean[:, None] + rng.normal(size=(n, members))), {}


def gaussian(rng: Rng, n: int) -> Drawn:
    mean, sd = rng.normal(size=n), scales(rng, n)
    return mean + sd * rng.normal(size=n), rg.Gaussian(mean, sd), {}


def quantiles(rng: Rng, n: int, outer: float = 1.0) -> Drawn:
    mean, at = rng.normal(size=n), stats.norm.ppf(LEVELS)
    at[[0, -1]] *= outer
    return mean + rng.normal(size=n), rg.Quantiles(LEVELS, mean[:, None] + at), {}


def clustered(rng: Rng, n: int) -> Drawn:
    """Clusters of ten rows with a common latent variable, in predictions and in outcomes."""
    shop = np.repeat(np.arange(n // 10), 10)
    mean = rng.normal(size=n // 10)[shop] + rng.normal(size=n)
    return mean + 0.6 * rng.normal(size=n // 10)[shop] + 0.8 * rng.normal(size=n), mean, {"cluster": shop}


def clustered_gaussian(rng: Rng, n: int) -> Drawn:
    y, mean, options = clustered(rng, n)
    return y, rg.Gaussian(mean, 1.0), options


# Deviations


def shifted(shift: float, rng: Rng, n: int) -> Drawn:
    """Predictions that overestimate by a given number of standard deviations of the outcome."""
    y, mean, options = normal(rng, n)
    return y, mean + shift * np.sqrt(2), options


def tilted(slope: float, rng: Rng, n: int) -> Drawn:
    """Predictions with a given slope of the outcomes on them."""
    y, mean, options = normal(rng, n)
    return y, mean / slope, options


def moved(shift: float, scale: float, rng: Rng, n: int) -> Drawn:
    mean = rng.normal(size=n)
    return mean + rng.normal(size=n), rg.Gaussian(mean + shift, np.full(n, scale)), {}


def coverage_error(shift: float, scale: float) -> float:
    """Return the mean absolute coverage error of normal forecasts with these errors of mean and spread."""
    q = np.arange(1, 20) / 20
    return float(np.mean(np.abs(stats.norm.cdf(shift + scale * stats.norm.ppf(q)) - q)))


def at_margin() -> dict[str, Callable[[Rng, int], Drawn]]:
    shift = optimize.brentq(lambda s: coverage_error(s, 1) - 0.01, 0, 1)
    scale = optimize.brentq(lambda s: coverage_error(0, s) - 0.01, 0.5, 1)
    # Root mean square of the means of ten equal bins of a normal variable.
    edges = stats.norm.ppf(np.arange(11) / 10)
    spread = float(np.sqrt(np.mean((10 * np.diff(-stats.norm.pdf(edges))) ** 2)))
    tilt = 0.05 * np.sqrt(2) / spread
    return {
        "point, shift": partial(shifted, 0.05),
        "point, slope": partial(tilted, 1 / (1 + tilt)),
        "Gaussian, shift": partial(moved, shift, 1.0),
        "Gaussian, too narrow": partial(moved, 0.0, scale),
    }


CALIBRATED: dict[str, Callable[[Rng, int], Drawn]] = {
    "normal": normal,
    "Student's t (3)": student,
    "gamma": gamma,
    "lognormal, sigma 1": partial(lognormal, 1.0),
    "lognormal, sigma 2": partial(lognormal, 2.0),
    "3 % non-zero, lognormal": zero_inflated,
    "Poisson (0.5)": poisson,
    "ensemble of 5": partial(ensemble, 5),
    "ensemble of 10": partial(ensemble, 10),
    "ensemble of 50": partial(ensemble, 50),
    "Gaussian forecasts": gaussian,
    "5 quantiles": quantiles,
    "clusters of 10, points": clustered,
    "clusters of 10, Gaussian": clustered_gaussian,
}
DEVIATING: dict[str, Callable[[Rng, int], Drawn]] = {
    "point, shift of 0.1 sd": partial(shifted, 0.1),
    "point, slope 0.8": partial(tilted, 0.8),
    "Gaussian, sd 20 % too small": partial(moved, 0.0, 0.8),
    "5 quantiles, outer ones 10 % too narrow": partial(quantiles, outer=0.9),
}


def cells() -> Iterator[tuple[str, str, Callable[[Rng, int], Drawn], int]]:
    for name, draw in CALIBRATED.items():
        own = (*SIZES, 500, 2000) if "ensemble" in name else (*SIZES, 2000) if "clusters" in name else SIZES
        yield from (("size", name, draw, n) for n in sorted(own))
    for name, draw in at_margin().items():
        yield from (("margin", name, draw, n) for n in (1000, 5000, 20_000))
    for name, draw in DEVIATING.items():
        yield from (("power", name, draw, n) for n in (200, 1000, 2000, 5000))


def rates(question: str, name: str, draw: Callable[[Rng, int], Drawn], n: int, replications: int) -> dict[str, Any]:
    """Return one row of the result: percentages over data sets."""
    rng = np.random.default_rng([sum(map(ord, question + name)), n])
    times = dict.fromkeys(COLUMNS[4:], 0)
    for i in range(replications):
        y, forecast, options = draw(rng, n)
        forecast = cb.Point(forecast) if isinstance(forecast, np.ndarray) else forecast
        found = cb.evaluate(y, forecast, n_resamples=0, random_state=i, **options)
        shown = {found.verdict, *found.direction.split(", "), *(note.code for note in found.notes)}
        for column in shown & times.keys():
            times[column] += 1
        times["significant"] += found.pvalue <= found.settings.alpha
    share = {column: f"{100 * count / replications:.1f}" for column, count in times.items()}
    return {"question": question, "design": name, "rows": n, "data sets": replications, **share}


def finished() -> dict[tuple[str, str, str], dict[str, str]]:
    if not OUTPUT.exists():
        return {}
    with OUTPUT.open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            return {}
        return {(row["question"], row["design"], row["rows"]): row for row in reader}


def main(replications: int) -> None:
    done = finished()
    rows: list[dict[str, Any]] = []
    for question, name, draw, n in cells():
        row: dict[str, Any] = done.get((question, name, str(n))) or rates(question, name, draw, n, replications)
        rows.append(row)
        print(*row.values(), sep=", ", flush=True)
        rest = [
            each
            for key, each in done.items()
            if key not in {(r["question"], r["design"], str(r["rows"])) for r in rows}
        ]
        with OUTPUT.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows([*rows, *rest])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPLICATIONS)
