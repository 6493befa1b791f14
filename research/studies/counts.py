"""Error rates of verdicts on counts, on means of skewed outcomes, and on widths and tails of distributions.

``python -m research counts`` runs the designs that docs/studies/counts.csv does not have yet, and compares the expected
coverage of intervals with simulated outcomes (docs/studies/counts_coverage.csv).
"""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import calibrant as cb

Rng = np.random.Generator
Drawn = tuple[np.ndarray, Any]
Cell = tuple[str, str, Callable[[Rng, int], Drawn], int, int]

STUDIES = Path(__file__).parent.parent.parent / "docs" / "studies"
OUTPUT, COVERAGE = STUDIES / "counts.csv", STUDIES / "counts_coverage.csv"
VERDICTS = ("calibrated", "negligible", "miscalibrated", "inconclusive")
DIRECTIONS = (
    *("overestimates", "underestimates", "overconfident", "underconfident"),
    *("heavy tails", "light tails", "local"),
)
COLUMNS = ("question", "design", "rows", "data sets", "significant", *VERDICTS, *DIRECTIONS)


def rates(mean: float, rng: Rng, n: int) -> np.ndarray:
    """Return means of rows with a coefficient of variation of about a half."""
    return mean * np.exp(0.5 * rng.normal(size=n) - 0.125)


def poisson(mean: float, factor: float, rng: Rng, n: int, kind: Any = cb.Poisson) -> Drawn:
    """Poisson outcomes; predicted means are `factor` times too high."""
    rate = rates(mean, rng, n)
    return rng.poisson(rate), kind(factor * rate)


def negative_binomial(mean: float, dispersion: float, predicted: float, rng: Rng, n: int) -> Drawn:
    """Negative binomial outcomes; a predicted dispersion of 0 is Poisson's."""
    rate = rates(mean, rng, n)
    y = rng.negative_binomial(1 / dispersion, 1 / (1 + dispersion * rate))
    return y, cb.NegativeBinomial(rate, predicted) if predicted else cb.Poisson(rate)


def quantiles(mean: float, factor: float, levels: int, rng: Rng, n: int) -> Drawn:
    """Poisson outcomes, whose distribution is given as quantiles."""
    rate, at = rates(mean, rng, n), np.arange(1, levels + 1) / (levels + 1)
    return rng.poisson(rate), cb.Quantiles(at, stats.poisson(factor * rate[:, None]).ppf(at))


def losses(factor: float, rng: Rng, n: int) -> Drawn:
    """Zero-inflated gamma outcomes whose predictions explain nearly nothing of them."""
    mean = np.exp(0.05 * rng.normal(size=n))
    return mean * rng.gamma(0.3, 1 / 0.3, n) * (rng.random(n) < 0.3) / 0.3, cb.Point(factor * mean)


def skewed(sigma: float, factor: float, rng: Rng, n: int) -> Drawn:
    """Lognormal outcomes around lognormal means."""
    mean = np.exp(rng.normal(size=n))
    return mean * np.exp(sigma * rng.normal(size=n) - sigma**2 / 2), cb.Point(factor * mean)


def gamma(shape: float, factor: float, rng: Rng, n: int) -> Drawn:
    """Gamma outcomes around lognormal means."""
    mean = np.exp(rng.normal(size=n))
    return mean * rng.gamma(shape, 1 / shape, n), cb.Point(factor * mean)


def widths(rng: Rng, n: int) -> Drawn:
    """Predicted standard deviations of half, 1.2 and 2 times the true one."""
    mean, sd = rng.normal(size=n), rng.choice([0.5, 1.2, 2.0], n, p=[0.26, 0.5, 0.24])
    return mean + rng.normal(size=n), cb.Gaussian(mean, sd)


def tails(draw: Callable[[Rng, int], np.ndarray], rng: Rng, n: int) -> Drawn:
    """Errors with standard deviation 1, predicted as normal."""
    mean = rng.normal(size=n)
    return mean + draw(rng, n), cb.Gaussian(mean, np.ones(n))


def cells() -> Iterator[Cell]:
    """Yield question, design, the function that draws a data set, rows, and the number of data sets."""
    yield from cells_of_means()
    yield from cells_of_counts()


def cells_of_means() -> Iterator[Cell]:
    """Yield designs of skewed outcomes, of relative margins, and of widths and tails."""
    for sigma in (1.0, 1.5, 2.0, 2.2):
        for n in (50, 100, 200, 500):
            yield "size", f"lognormal mean, sigma {sigma:g}", partial(skewed, sigma, 1.0), n, 1000
    for n in (50, 100, 200, 500):
        yield "power", "gamma (4) mean, 1.4 times too high", partial(gamma, 4.0, 1.4), n, 400
        yield "power", "lognormal mean, sigma 0.5, 1.4 times too high", partial(skewed, 0.5, 1.4), n, 400
    for factor in (1.0, 1.2, 0.8):
        yield "margin", f"zero-inflated gamma mean, times {factor:g}", partial(losses, factor), 100_000, 60
    for factor in (1.0, 1.15, 0.85):
        of_points = partial(poisson, 0.085, factor, kind=cb.Point)
        yield "margin", f"Point of counts, mean 0.085, times {factor:g}", of_points, 200_000, 60
        yield "margin", f"Poisson, mean 0.085, times {factor:g}", partial(poisson, 0.085, factor), 200_000, 20
    for n, count in ((500, 200), (5000, 60)):
        yield "power", "Gaussian, sd times 0.5, 1.2 or 2", widths, n, count
        student = partial(tails, lambda rng, n: rng.standard_t(5, n) / np.sqrt(5 / 3))
        yield "power", "Gaussian, errors of Student's t (5)", student, n, count
        yield (
            "power",
            "Gaussian, uniform errors",
            partial(tails, lambda rng, n: rng.uniform(-(3**0.5), 3**0.5, n)),
            n,
            count,
        )


def cells_of_counts() -> Iterator[Cell]:
    """Yield designs of distributions of counts."""
    for n, count in ((200, 400), (1000, 300), (5000, 40)):
        for mean in (0.085, 0.5, 5.0):
            yield "size", f"Poisson, mean {mean:g}", partial(poisson, mean, 1.0), n, count
        for mean, dispersion in ((0.5, 1.0), (5.0, 0.5)):
            design = f"negative binomial, mean {mean:g}, dispersion {dispersion:g}"
            yield "size", design, partial(negative_binomial, mean, dispersion, dispersion), n, count
    for n, count in ((1000, 60), (5000, 20)):
        for mean in (0.085, 0.5, 5.0):
            yield "power", f"Poisson, mean {mean:g}, 15 % too high", partial(poisson, mean, 1.15), n, count
            design = f"Poisson, mean {mean:g}, outcomes with dispersion 0.5"
            yield "power", design, partial(negative_binomial, mean, 0.5, 0.0), n, count
    for levels in (3, 9, 19):
        for factor in (1.0, 0.7):
            design = f"{levels} quantiles of counts, mean 2, times {factor:g}"
            yield "power" if factor < 1 else "size", design, partial(quantiles, 2.0, factor, levels), 2000, 30


def measure(draw: Callable[[Rng, int], Drawn], n: int, data_sets: int) -> dict[str, float]:
    """Return the shares of verdicts and directions, in percent."""
    times = dict.fromkeys(COLUMNS[4:], 0)
    for i in range(data_sets):
        y, forecast = draw(np.random.default_rng([11, i]), n)
        found = cb.evaluate(y, forecast, n_resamples=0)
        for shown in {found.verdict, *found.direction.split(", ")} & times.keys():
            times[shown] += 1
        times["significant"] += found.decision.is_significant
    return {name: round(100 * count / data_sets, 1) for name, count in times.items()}


def coverage_rows(n: int = 200_000) -> Iterator[dict[str, Any]]:
    """Yield the expected coverage of central intervals beside that of simulated outcomes."""
    rng = np.random.default_rng(12)
    forecasts: dict[str, Any] = {
        f"Poisson, mean {mean:g}": cb.Poisson(rates(mean, rng, n)) for mean in (0.085, 0.5, 5.0)
    }
    forecasts["negative binomial, mean 2, dispersion 1"] = cb.NegativeBinomial(rates(2.0, rng, n), 1.0)
    for name, forecast in forecasts.items():
        y = forecast.at_row_score(rng.normal(size=n))
        covered = cb.regression.coverage(y, forecast).per_level
        for level, expected, observed in zip(*(covered[key] for key in ("level", "expected", "observed")), strict=True):
            error = np.sqrt(expected * (1 - expected) / n)
            shares = {"expected": f"{expected:.4f}", "simulated": f"{observed:.4f}", "error": f"{error:.4f}"}
            yield {"design": name, "rows": n, "level": f"{level:g}", **shares}


def main() -> None:
    """Run the designs that are missing, and write each result at once."""
    known: list[dict[str, Any]] = []
    if OUTPUT.exists():
        with OUTPUT.open(newline="") as file:
            known = list(csv.DictReader(file))
    done = {(line["question"], line["design"], line["rows"]) for line in known}
    for question, design, draw, n, data_sets in cells():
        if (question, design, str(n)) in done:
            continue
        head = {"question": question, "design": design, "rows": n, "data sets": data_sets}
        known.append({**head, **measure(draw, n, data_sets)})
        write(OUTPUT, known)
        print(*known[-1].values(), sep=", ", flush=True)
    write(COVERAGE, list(coverage_rows()))


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write one line per dict."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
