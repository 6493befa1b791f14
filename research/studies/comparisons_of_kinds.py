"""Size and power of the tests behind `compare` for points, distributions, predicted classes and class probabilities.

A pair is two forecasts of the same rows: both calibrated, equally miscalibrated (the size is at most 5 %), or one of
them calibrated (power). "matched" pairs deviate in different ways by the same squared deviation of the population. Rows
are independent, in clusters of 10, or have exponential importance weights. Results are stored in
docs/studies/comparisons_of_kinds.csv after each cell; stored cells are not computed again.
"""

import csv
import sys
import time
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from calibrant.forecasts.distributions import Gaussian, Quantiles, Samples
from calibrant.inference.squared_deviations import SampledRows
from calibrant.kinds.differences import Deviations, deviations_difference
from calibrant.kinds.distribution.differences import common_levels, coverage_deviations
from calibrant.kinds.labels.differences import proportion_deviations
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.kinds.multiclass.differences import class_deviations
from calibrant.kinds.point.differences import bias_deviations
from calibrant.tables.mean_table import MeanTable
from research.studies.designs import RESULTS

SETS, FEWER_SETS = 1_000, 500  # fewer for class probabilities
ALPHA = 0.05
CLUSTER = 10
KEYS = ("kind", "table", "pair", "rows", "design")
COLUMNS = (*KEYS, "data sets", "a is better", "b is better", "p <= 0.05")
Array = np.ndarray
Pair = Callable[[np.random.Generator, SampledRows], list[Deviations]]


def sampled(rng: np.random.Generator, size: int, design: str) -> SampledRows:
    weight = rng.exponential(size=size) + 0.1 if design == "weights" else None
    return SampledRows(size, weight, np.arange(size) // CLUSTER if design == "clusters" else None)


def normal(rng: np.random.Generator, rows: SampledRows, common: float = 0.3) -> Array:
    """Return standard normal numbers; in clusters with a common part."""
    own = rng.normal(size=rows.size)
    if rows.cluster is None:
        return own
    shared = rng.normal(size=rows.n_units)[rows.cluster]
    return np.sqrt(common) * shared + np.sqrt(1 - common) * own


# Numeric outcomes: y = one + two + error, each standard normal.


def outcomes(rng: np.random.Generator, rows: SampledRows) -> tuple[Array, Array, Array]:
    one, two, error = (normal(rng, rows) for _ in range(3))
    return one, two, one + two + error


def points(change: Callable[[Array, Array], tuple[Array, Array]], *, skewed: bool = False) -> Pair:
    def draw(rng: np.random.Generator, rows: SampledRows) -> list[Deviations]:
        one, two, y = outcomes(rng, rows)
        if skewed:
            y = one + two + rng.exponential(size=rows.size) - 1
        weight = {} if rows.weight is None else {"sample_weight": rows.weight}
        tables = [MeanTable.from_arrays(y, prediction, **weight) for prediction in change(one, two)]
        return bias_deviations(tables, rows, 1.0)

    return draw


@cache
def slope_like_shift(shift: float, spread: float) -> float:
    """Return the slope whose bias over ten quantile bins has the same mean square as a shift."""
    x = spread * ndtri((np.arange(100_000) + 0.5) / 100_000)
    between = np.mean(x.reshape(10, -1).mean(axis=1) ** 2)
    return 1 + shift / float(np.sqrt(between))


POINTS = {
    "size": {
        "calibrated, different covariates": points(lambda one, two: (one, two)),
        "calibrated, one has more covariates": points(lambda one, two: (one + two, one)),
        "equal shifts, different covariates": points(lambda one, two: (one + 0.4, two + 0.4)),
        "equal shifts, one has more covariates": points(lambda one, two: (one + two + 0.4, one + 0.4)),
        "opposite shifts": points(lambda one, two: (one + two + 0.4, one + two - 0.4)),
        "opposite shifts, skewed outcomes": points(lambda one, two: (one + two + 0.4, one + two - 0.4), skewed=True),
        "shift and slope, matched": points(lambda one, two: (one + 0.4, slope_like_shift(0.4, 1.0) * two)),
    },
    "power": {
        "calibrated, shift of 0.3": points(lambda one, two: (one + two, one + two + 0.3)),
        "calibrated, slope of 1.3": points(lambda one, two: (one + two, 1.3 * (one + two))),
    },
}


def as_quantiles(mean: Array, sd: float) -> Quantiles:
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    return Quantiles(levels, mean[:, None] + sd * ndtri(levels))


def distributions(change: Callable[[Array, Array, np.random.Generator], tuple[object, object]]) -> Pair:
    def draw(rng: np.random.Generator, rows: SampledRows) -> list[Deviations]:
        one, two, y = outcomes(rng, rows)
        forecasts = change(one, two, rng)
        levels = common_levels(forecasts)
        return [coverage_deviations(y, forecast, levels, rows) for forecast in forecasts]

    return draw


@cache
def width_like_shift(shift: float) -> float:
    """Return the factor of the standard deviation with the same mean squared coverage error as a shift (of SD 1)."""
    levels = np.arange(1, 20) / 20
    target = np.mean((ndtr(ndtri(levels) + shift) - levels) ** 2)
    return float(brentq(lambda s: np.mean((ndtr(s * ndtri(levels)) - levels) ** 2) - target, 0.1, 1.0))


def drawn(rng: np.random.Generator, mean: Array, sd: float, members: int = 20) -> Samples:
    return Samples(rng.normal(mean[:, None], sd, (mean.size, members)))


TWO = np.sqrt(2.0)
DISTRIBUTIONS = {
    "size": {
        "calibrated, different covariates": distributions(
            lambda one, two, rng: (Gaussian(one, TWO), Gaussian(two, TWO))
        ),
        "calibrated, one has more covariates": distributions(
            lambda one, two, rng: (Gaussian(one + two, 1.0), Gaussian(one, TWO))
        ),
        "calibrated, samples and normal": distributions(
            lambda one, two, rng: (drawn(rng, one + two, 1.0), Gaussian(one, TWO))
        ),
        "equal shifts, different covariates": distributions(
            lambda one, two, rng: (Gaussian(one + 0.3, TWO), Gaussian(two + 0.3, TWO))
        ),
        "equal shifts, samples": distributions(
            lambda one, two, rng: (drawn(rng, one + two + 0.2, 1.0), drawn(rng, one + 0.2 * TWO, TWO))
        ),
        "opposite shifts": distributions(
            lambda one, two, rng: (Gaussian(one + two + 0.2, 1.0), Gaussian(one + two - 0.2, 1.0))
        ),
        "shift and width, matched": distributions(
            lambda one, two, rng: (Gaussian(one + two + 0.2, 1.0), Gaussian(one + two, width_like_shift(0.2)))
        ),
        "opposite shifts, quantiles and normal": distributions(
            lambda one, two, rng: (as_quantiles(one + two + 0.2, 1.0), Gaussian(one + two - 0.2, 1.0))
        ),
    },
    "power": {
        "calibrated, shift of 0.2 SD": distributions(
            lambda one, two, rng: (Gaussian(one + two, 1.0), Gaussian(one + two + 0.2, 1.0))
        ),
        "calibrated, 25 % too narrow": distributions(
            lambda one, two, rng: (Gaussian(one + two, 1.0), Gaussian(one + two, 0.75))
        ),
        "calibrated, 25 % too narrow, samples": distributions(
            lambda one, two, rng: (drawn(rng, one + two, 1.0), drawn(rng, one + two, 0.75))
        ),
    },
}


# Four classes. A prediction is the actual class with some probability, else drawn from the marginal distribution.

SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def marginal(rng: np.random.Generator, size: int) -> Array:
    return rng.choice(SHARES.size, size=size, p=SHARES)


def guesses(rng: np.random.Generator, actual: Array, hit: float, moves: dict[tuple[int, int], float]) -> Array:
    """Return calibrated predictions in which some share of all rows moves from one class to another."""
    found = np.where(rng.random(actual.size) < hit, actual, marginal(rng, actual.size))
    chance = rng.random(actual.size)
    moved = found.copy()
    for (before, after), share in moves.items():
        inside = found == before
        moved[inside & (chance < share / SHARES[before])] = after
        chance = np.where(inside, chance - share / SHARES[before], chance)
        chance = np.where(chance < 0, 2.0, chance)
    return moved


def labels(hits: tuple[float, float], *moves: dict[tuple[int, int], float]) -> Pair:
    def draw(rng: np.random.Generator, rows: SampledRows) -> list[Deviations]:
        actual = marginal(rng, rows.size)
        if rows.cluster is not None:  # half of the rows have the class of their cluster
            actual = np.where(rng.random(rows.size) < 0.5, marginal(rng, rows.n_units)[rows.cluster], actual)
        predicted = [guesses(rng, actual, hit, each) for hit, each in zip(hits, moves, strict=True)]
        return [proportion_deviations(actual, each, SHARES.size, rows) for each in predicted]

    return draw


LABELS = {
    "size": {
        "calibrated, equally accurate": labels((0.6, 0.6), {}, {}),
        "calibrated, one more accurate": labels((0.9, 0.4), {}, {}),
        "equal differences": labels((0.6, 0.6), {(0, 1): 0.05}, {(0, 1): 0.05}),
        "equal differences, one more accurate": labels((0.9, 0.4), {(0, 1): 0.05}, {(0, 1): 0.05}),
        "opposite differences": labels((0.6, 0.6), {(0, 1): 0.05}, {(1, 0): 0.05}),
        "different classes, matched": labels(
            (0.6, 0.6), {(0, 1): 0.02, (0, 2): 0.02, (0, 3): 0.02}, {(1, 2): float(np.sqrt(0.0048 / 2))}
        ),
    },
    "power": {
        "calibrated, difference of 0.05": labels((0.6, 0.6), {}, {(0, 1): 0.05}),
        "calibrated, difference of 0.05, accurate": labels((0.9, 0.9), {}, {(0, 1): 0.05}),
    },
}


# Class probabilities: P has a Dirichlet distribution, and a model observes some classes drawn from P.

PRIOR, OBSERVED = 1.0, 6


def posterior(rng: np.random.Generator, p: Array, observed: int = OBSERVED) -> Array:
    """Return the calibrated probabilities of a model that has observed some classes drawn from P."""
    counts = rng.multinomial(observed, p / p.sum(axis=1, keepdims=True))
    return (PRIOR + counts) / (PRIOR * p.shape[1] + observed)


def temper(p: Array, gain: float) -> Array:
    powered = p**gain
    return powered / powered.sum(axis=1, keepdims=True)


def tilt(p: Array, column: int, by: float) -> Array:
    moved = p * np.where(np.arange(p.shape[1]) == column, np.exp(by), 1.0)
    return moved / moved.sum(axis=1, keepdims=True)


Change = Callable[[Array, Array], tuple[Array, Array]]


def probabilities(n_classes: int, change: Change) -> Pair:
    def draw(rng: np.random.Generator, rows: SampledRows) -> list[Deviations]:
        p = rng.dirichlet(np.full(n_classes, PRIOR), rows.n_units)
        p = p if rows.cluster is None else p[rows.cluster]
        code = np.minimum((rng.random((rows.size, 1)) > p.cumsum(axis=1)).sum(axis=1), n_classes - 1)
        models = change(posterior(rng, p), posterior(rng, p))
        given = (rows.weight, rows.weight is not None, rows.cluster)
        return [class_deviations(ClassRows(model, code, *given), rows) for model in models]

    return draw


@cache
def gain_like_tilt(n_classes: int, by: float, scale: int, size: int = 2_000, sets: int = 60) -> float:
    """Return the gain with the same mean deviation on one scale as a tilt, over data sets of the same size."""
    rng, rows = np.random.default_rng(0), SampledRows(size)
    data = []
    for _ in range(sets):
        p = rng.dirichlet(np.full(n_classes, PRIOR), size)
        code = np.minimum((rng.random((size, 1)) > p.cumsum(axis=1)).sum(axis=1), n_classes - 1)
        data.append((posterior(rng, p), code))

    def deviation(change: Callable[[Array], Array]) -> float:
        found = [class_deviations(ClassRows(change(model), code), rows) for model, code in data]
        return float(np.mean([(each.first, *each.others)[scale].value for each in found]))

    target = deviation(lambda p: tilt(p, 0, by))
    return float(brentq(lambda gain: deviation(lambda p: temper(p, gain)) - target, 1.0, 4.0, xtol=1e-3))


def matched(n_classes: int, scale: int) -> Pair:
    by = 1.0
    return probabilities(n_classes, lambda a, b: (tilt(a, 0, by), temper(b, gain_like_tilt(n_classes, by, scale))))


def classes(n_classes: int) -> dict[str, dict[str, Pair]]:
    return {
        "size": {
            "calibrated": probabilities(n_classes, lambda a, b: (a, b)),
            "equally overconfident": probabilities(n_classes, lambda a, b: (temper(a, 1.5), temper(b, 1.5))),
            "different classes shifted": probabilities(n_classes, lambda a, b: (tilt(a, 0, 0.7), tilt(b, 1, 0.7))),
            "shift and gain, matched in log-odds": matched(n_classes, 0),
            "shift and gain, matched in gaps": matched(n_classes, 1),
        },
        "power": {
            "calibrated, gain of 1.3": probabilities(n_classes, lambda a, b: (a, temper(b, 1.3))),
            "calibrated, class shifted by 0.5": probabilities(n_classes, lambda a, b: (a, tilt(b, 0, 0.5))),
            "overconfident, more overconfident": probabilities(
                n_classes, lambda a, b: (temper(a, 1.2), temper(b, 1.6))
            ),
        },
    }


def many_classes(n_classes: int) -> dict[str, dict[str, Pair]]:
    """Some pairs only: covariances between so many classes are bounded, not computed."""
    equal = ("calibrated", "equally overconfident", "different classes shifted")
    return {
        "size": {name: pair for name, pair in classes(n_classes)["size"].items() if name in equal},
        "power": {
            f"calibrated, gain of {gain:g}": probabilities(n_classes, partial(overconfident, gain=gain))
            for gain in (1.5, 2.0)
        },
    }


def overconfident(a: Array, b: Array, gain: float) -> tuple[Array, Array]:
    return a, temper(b, gain)


# Pairs, numbers of rows, and designs of each kind.
KINDS = {
    "point": (POINTS, (500, 2_000), ("independent", "clusters", "weights")),
    "distribution": (DISTRIBUTIONS, (500, 2_000), ("independent", "clusters")),
    "labels": (LABELS, (500, 2_000), ("independent", "clusters", "weights")),
    "3 classes": (classes(3), (2_000,), ("independent", "clusters", "weights")),
    "10 classes": (classes(10), (2_000,), ("independent",)),
    "50 classes": (many_classes(50), (2_000,), ("independent",)),
}


def cell(pair: Pair, size: int, design: str, sets: int) -> Array:
    """Return in how many data sets a, and b, is better calibrated."""
    better = np.zeros(2)
    for seed in range(sets):
        rng = np.random.default_rng([seed, size])
        rows = sampled(rng, size, design)
        found = deviations_difference(*pair(rng, rows), rows)
        if found.pvalue <= ALPHA:
            better[int(found.value > 0)] += 1
    return better


def cells() -> list[tuple[str, str, str, int, str]]:
    return [
        (kind, table, pair, size, design)
        for kind, (tables, sizes, designs) in KINDS.items()
        for table, pairs in tables.items()
        for pair in pairs
        for size in sizes
        for design in designs
        if design == "independent" or size == sizes[-1]
    ]


def main() -> None:
    path = RESULTS / "comparisons_of_kinds.csv"
    done: dict[tuple[str, ...], dict[str, str]] = {}
    if path.exists():
        with path.open(newline="") as file:
            done = {tuple(row[name] for name in KEYS): row for row in csv.DictReader(file)}
    order = [(kind, table, pair, f"{size:,}", design) for kind, table, pair, size, design in cells()]
    for key, (kind, table, pair, size, design) in zip(order, cells(), strict=True):
        if key in done:
            continue
        began = time.time()
        sets = FEWER_SETS if "classes" in kind else SETS
        found = cell(KINDS[kind][0][table][pair], size, design, sets)
        shares = [f"{count / sets:.3f}" for count in (*found, found.sum())]
        done[key] = dict(zip(COLUMNS, (*key, f"{sets:,}", *shares), strict=True))
        print(*key, *shares, f"{time.time() - began:.0f} s", sep=" | ", file=sys.stderr, flush=True)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(done[each] for each in order if each in done)


if __name__ == "__main__":
    main()
