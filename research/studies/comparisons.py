"""Size and power of the test behind `compare`: pairs of equally miscalibrated models, calibrated pairs, and others.

Population: logits of P(y = 1) are normal with standard deviation 1.2 and mean -3.6 (4.8 % events) or 0 (50 % events). A
pair is two transformations of these logits. In a "matched" pair one parameter is chosen so that both models have the
same population log-odds error over the number of bins of equal information of that sample size. Results are stored in
docs/studies/comparisons.csv after each cell; stored cells are not computed again. A cell has 1,000 data sets, or 4,000
if the share in the first 1,000 leaves a size above 6 % possible.
"""

import csv
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr

from calibrant.inference.paired import ModelPair, calibration_difference
from calibrant.inference.paired_rows import PairedRows
from calibrant.metrics.bins import information_bins
from calibrant.tables.score_table import ScoreTable
from research.studies.designs import RESULTS

SETS = 1_000
MORE_SETS = 4_000  # for pairs of equal errors if more than 5.5 % of the first sets have p <= 0.05
ALPHA = 0.05
DEVIATION = 1.2
MEANS = {"5 %": -3.6, "50 %": 0.0}
KEYS = ("table", "pair", "events", "rows", "design")
ERRORS = ("log-odds error of a", "of b", "ACE of a", "ACE of b")
COLUMNS = (*KEYS, *ERRORS, "data sets", "a is better", "b is better", "p <= 0.05")
Logits = np.ndarray


@dataclass(frozen=True)
class Data:
    """One data set: logits of both models, and logits of the event probability."""

    a: Logits
    b: Logits
    truth: Logits


Draw = Callable[[np.random.Generator, int, float], Data]


def population(rng: np.random.Generator, size: int, mean: float) -> Logits:
    return rng.normal(mean, DEVIATION, size)


def distorted(change: Callable[[Logits, float], tuple[Logits, Logits]]) -> Draw:
    """Return a pair of functions of the true logits."""

    def draw(rng: np.random.Generator, size: int, mean: float) -> Data:
        x = population(rng, size, mean)
        return Data(*change(x, mean), x)

    return draw


def shift(x: Logits, by: float) -> Logits:
    return x + by


def slope(x: Logits, by: float, mean: float) -> Logits:
    return mean + by * (x - mean)


def probit_logit(z: Logits) -> Logits:
    """Return the logit of the normal distribution function."""
    return log_ndtr(z) - log_ndtr(-z)


def noisy(share: float, gain_a: float = 1.0, gain_b: float = 1.0, noise: tuple[float, float] = (1.0, 1.0)) -> Draw:
    """Return two calibrated models of a noisy latent variable, distorted by slopes; `share` of the noise is common.

    y = 1 if latent + normal noise > threshold, so P(y = 1 | observed) is a normal distribution function.
    """

    def draw(rng: np.random.Generator, size: int, mean: float) -> Data:
        threshold = 0.0 if mean == 0 else 2.3
        latent = rng.normal(size=size)
        common = rng.normal(size=size)
        seen = []
        for sigma in noise:
            own = np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=size)
            part = 1 / (1 + sigma**2)
            middle = part * (latent + sigma * own)
            seen.append(probit_logit((middle - threshold) / np.sqrt(1 + sigma**2 * part)))
        centre = 0.0 if mean == 0 else -2.95
        return Data(slope(seen[0], gain_a, centre), slope(seen[1], gain_b, centre), probit_logit(latent - threshold))

    return draw


def nested(rng: np.random.Generator, size: int, mean: float) -> Data:
    """Return two calibrated models, each with one of two independent covariates."""
    one, two = rng.normal(size=(2, size))
    threshold = 0.0 if mean == 0 else 2.85
    truth = probit_logit(one + two - threshold)
    return Data(*(probit_logit((x - threshold) / np.sqrt(2)) for x in (one, two)), truth)


def squared_error(model: Logits, truth: Logits, n_bins: int) -> float:
    """Return the population value over bins of equal information; the log-odds error of a bin solves its equation."""
    order = np.argsort(model)
    p, t, x = expit(model)[order], expit(truth)[order], model[order]
    info = p * (1 - p)
    label = np.minimum((np.cumsum(info) / info.sum() * n_bins).astype(int), n_bins - 1)
    events = np.bincount(label, t)
    d = np.zeros(n_bins)
    for _ in range(50):
        q = expit(x + d[label])
        step = (events - np.bincount(label, q)) / np.bincount(label, q * (1 - q))
        d += np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-10:
            break
    return float(np.bincount(label, info) @ d**2 / info.sum())


def population_ace(model: Logits, truth: Logits) -> float:
    """Return the population ACE over ten quantiles."""
    order = np.argsort(model)
    gaps = (expit(model) - expit(truth))[order]
    return float(np.abs([part.mean() for part in np.array_split(gaps, 10)]).mean())


@cache
def large_population(mean: float) -> Logits:
    from scipy.special import ndtri

    return mean + DEVIATION * ndtri((np.arange(200_000) + 0.5) / 200_000)


def bins_at(model: Logits, size: int) -> int:
    p = expit(model)
    return information_bins(size * float(np.mean(p * (1 - p))))


def matched(
    fixed: Callable[[Logits, float], Logits],
    free: Callable[[Logits, float, float], Logits],
    bracket: tuple[float, float],
) -> Callable[[float, int], Draw]:
    """Return the pair in which the parameter of the second model makes the population log-odds errors equal."""

    def at(mean: float, size: int) -> Draw:
        x = large_population(mean)
        a = fixed(x, mean)
        target = squared_error(a, x, bins_at(a, size))

        def lacking(parameter: float) -> float:
            b = free(x, parameter, mean)
            return squared_error(b, x, bins_at(b, size)) - target

        parameter = brentq(lacking, *bracket, xtol=1e-6)
        return distorted(lambda z, m: (fixed(z, m), free(z, parameter, m)))

    return at


def plain(draw: Draw) -> Callable[[float, int], Draw]:
    return lambda mean, size: draw


def wave(x: Logits, height: float, mean: float) -> Logits:
    """A smooth error with both signs: the sine of the standardised logit."""
    return x + height * np.sin(1.5 * (x - mean) / DEVIATION)


def equal_ace(mean: float, size: int) -> Draw:
    """A shift of 0.4103 and the slope with the same ACE, 1.3275 at 5 % events; their log-odds errors differ."""
    x = large_population(mean)
    target = population_ace(shift(x, 0.4103), x)
    found = brentq(lambda by: population_ace(slope(x, by, mean), x) - target, 1.01, 4.0, xtol=1e-6)
    by = 1.3275 if mean == MEANS["5 %"] else found
    return distorted(lambda z, m: (shift(z, 0.4103), slope(z, by, m)))


EQUAL_ACE = {"shift 0.4103, slope with the same ACE": equal_ace}
EQUAL = {
    "shift 0.4103, matched slope": matched(lambda x, m: shift(x, 0.4103), slope, (1.01, 2.0)),
    "shift 0.4, shift -0.4": plain(distorted(lambda x, m: (shift(x, 0.4), shift(x, -0.4)))),
    "shift 0.2, shift -0.2": plain(distorted(lambda x, m: (shift(x, 0.2), shift(x, -0.2)))),
    "slope 1.4, matched slope below 1": matched(lambda x, m: slope(x, 1.4, m), slope, (0.4, 0.99)),
    "slope 0.7, matched shift": matched(lambda x, m: slope(x, 0.7, m), lambda x, by, m: shift(x, by), (0.01, 1.5)),
    "shift 0.3, matched wave": matched(lambda x, m: shift(x, 0.3), wave, (0.05, 1.5)),
    "noisy, slopes 1.5 and 1.5, uncorrelated": plain(noisy(0.0, 1.5, 1.5)),
    "noisy, slopes 1.5 and 1.5, correlated 0.9": plain(noisy(0.9, 1.5, 1.5)),
    "noisy, slopes 0.7 and 0.7, correlated 0.5": plain(noisy(0.5, 0.7, 0.7)),
    "calibrated: independent noise": plain(noisy(0.0)),
    "calibrated: noise correlated 0.9": plain(noisy(0.9)),
    "calibrated: different covariates": plain(nested),
    "calibrated: noise 0.3 and 1": plain(noisy(0.0, noise=(0.3, 1.0))),
}
POWER = {
    "shift 0.2, calibrated": plain(distorted(lambda x, m: (shift(x, 0.2), x))),
    "shift 0.4, calibrated": plain(distorted(lambda x, m: (shift(x, 0.4), x))),
    "slope 1.4, calibrated": plain(distorted(lambda x, m: (slope(x, 1.4, m), x))),
}
CLUSTERS_OF = 10


def outcomes(rng: np.random.Generator, data: Data, design: str) -> tuple[np.ndarray, Data, dict[str, np.ndarray]]:
    """Return outcomes and the options of `compare`."""
    size = data.truth.size
    if design == "clusters":  # a shared latent variable: uniform numbers of a cluster are dependent
        from scipy.special import ndtr

        code = np.arange(size) // CLUSTERS_OF
        shared = rng.normal(size=code[-1] + 1)[code]
        uniform = ndtr(np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=size))
        return uniform < expit(data.truth), data, {"cluster": code}
    y = rng.random(size) < expit(data.truth)
    if design == "independent":
        return y, data, {}
    rare = bool(y.mean() < 0.25)  # a quarter of the frequent outcome is kept, with weight 4
    kept = (y == rare) | (rng.random(size) < 0.25)
    weight = np.where(y == rare, 1.0, 4.0)[kept]
    return y[kept], Data(data.a[kept], data.b[kept], data.truth[kept]), {"sample_weight": weight}


def read(y: np.ndarray, models: list[Logits], **options: np.ndarray) -> tuple[PairedRows, list[ScoreTable]]:
    """Return the rows and tables of `PairedRows.read`, for scores without ties."""
    event, weight, cluster = y.astype(np.int64), options.get("sample_weight"), options.get("cluster")
    scores, places, tables = [], [], []
    for p in map(expit, models):
        order = np.argsort(p)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        scores.append(p[order])
        places.append(place)
        columns = [np.ones(y.size, dtype=np.int64), event]
        if weight is not None:
            columns = [weight, weight * event, weight**2, weight**2 * event]
        tables.append(ScoreTable(p[order], *(column[order] for column in columns)))
    draws = y.size if cluster is None else int(cluster[-1]) + 1
    return PairedRows(tuple(scores), tuple(places), event, weight, cluster, draws), tables


def cell(draw: Draw, mean: float, size: int, design: str, seeds: range, seed: int) -> np.ndarray:
    """Return the number of data sets in which each model is shown to be better calibrated."""
    better = np.zeros(2, dtype=int)
    for i in seeds:
        rng = np.random.default_rng([seed, size, i])
        y, data, options = outcomes(rng, draw(rng, size, mean), design)
        rows, tables = read(y, [data.a, data.b], **options)
        found = calibration_difference(ModelPair(rows, tables, 0, 1))
        better[int(found.value > 0)] += found.pvalue <= ALPHA
    return better


def errors(draw: Draw, mean: float, size: int) -> list[str]:
    """Return the population log-odds errors of both models over the bins of this size, and their ACE."""
    data = draw(np.random.default_rng(0), 200_000, mean)
    models = (data.a, data.b)
    found = [f"{squared_error(m, data.truth, bins_at(m, size)) ** 0.5:.2f}" for m in models]
    return found + [f"{population_ace(m, data.truth):.3f}" for m in models]


TABLES = {"size": EQUAL, "equal ACE": EQUAL_ACE, "power": POWER}


def cells() -> list[tuple[str, str, str, int, str]]:
    """Return table, pair, event rate, rows and design of each cell; those with many rows come last."""
    found = []
    for table in ("size", "equal ACE"):
        for design, sizes in (("independent", (2_000, 20_000)), ("clusters", (2_000,)), ("weights", (2_000,))):
            found += [(table, pair, e, n, design) for pair in TABLES[table] for e in MEANS for n in sizes]
    found += [("power", pair, e, n, "independent") for pair in POWER for e in MEANS for n in (1_000, 5_000, 20_000)]
    return sorted(found, key=lambda each: each[3] == 20_000)


def main() -> None:
    path = RESULTS / "comparisons.csv"
    done: dict[tuple[str, ...], dict[str, str]] = {}
    if path.exists():
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) == COLUMNS:
                done = {tuple(row[name] for name in KEYS): row for row in reader}
    order = sorted((t, pair, e, f"{n:,}", design) for t, pair, e, n, design in cells())
    for table, pair, events, size, design in cells():
        key = (table, pair, events, f"{size:,}", design)
        if key in done:
            continue
        began = time.time()
        draw = TABLES[table][pair](MEANS[events], size)
        given = (draw, MEANS[events], size, design)
        seed, sets = list(TABLES[table]).index(pair), SETS
        found = cell(*given, range(SETS), seed)
        if table == "size" and found.sum() > 0.055 * SETS:
            sets = MORE_SETS
            found = found + cell(*given, range(SETS, MORE_SETS), seed)
        shares = [f"{count / sets:.3f}" for count in (*found, found.sum())]
        numbers = (*errors(draw, MEANS[events], size), str(sets), *shares)
        done[key] = dict(zip(COLUMNS, (*key, *numbers), strict=True))
        print(*key, *numbers, f"{time.time() - began:.0f} s", sep=" | ", file=sys.stderr, flush=True)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(done[each] for each in order if each in done)


if __name__ == "__main__":
    main()
