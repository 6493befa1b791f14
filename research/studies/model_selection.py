"""Several models: size of `compare`, coverage of the set of the best, and the error of non-inferiority at the margin.

Binary models are functions of normal logits of P(y = 1) (see `comparisons`), with 50, 5 and 0.5 % events; outcomes of
points are one + two + noise. In "equal" sets the models are wrong in different ways by the same deviation of the
population, or all calibrated; "one best" sets have one model with a smaller deviation. At the margin the deviation of a
challenger, or its loss, exceeds that of the champion by exactly the margin. Results are stored in
docs/studies/best_sets.csv and docs/studies/non_inferiority.csv after each cell; stored cells are not computed again.
"""

import csv
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from calibrant.inference.model_pairs import ComparisonPlan, all_pairs
from calibrant.inference.paired import (
    ModelPair,
    PairedDifference,
    brier_losses,
    calibration_difference,
    log_losses,
    log_odds_difference,
    mean_difference,
)
from calibrant.kinds.binary.differences import TERMS
from calibrant.kinds.differences import deviations_difference
from calibrant.kinds.point.differences import bias_deviations
from calibrant.tables.mean_table import MeanTable
from research.studies.comparisons import (
    DEVIATION,
    Data,
    bins_at,
    outcomes,
    probit_logit,
    read,
    shift,
    slope,
    squared_error,
    wave,
)
from research.studies.comparisons_of_kinds import outcomes as numbers
from research.studies.comparisons_of_kinds import sampled, slope_like_shift
from research.studies.designs import RESULTS

SETS, FEWER_SETS, MORE_SETS = 1_000, 400, 4_000  # fewer of large sets; more if the error is above 6 % in the first
LARGE = 20_000  # rows
DESIGNS = ("independent", "clusters", "weights")
ALPHA = 0.05
MEANS = {"50 %": 0.0, "5 %": -3.6, "0.5 %": -6.0}
SIZES = {"50 %": (500, 2_000, 20_000), "5 %": (2_000, 20_000), "0.5 %": (20_000,)}
SETTINGS: Any = SimpleNamespace(alpha=ALPHA, confidence_level=0.95)
KEYS = ("kind", "models", "number", "events", "rows", "design")
BEST = (*KEYS, "data sets", "any difference shown", "all best in the set", "a best one in the set", "size of the set")
MARGIN = ("kind", "challenger", "metric", "events", "rows", "design", "margin", "data sets", "shown not worse")

Array = np.ndarray
Tests = dict[tuple[int, int], PairedDifference]
Models = Callable[[Array], list[Array]]


# Sets of models of one event: functions of the true logits.


@cache
def population(mean: float) -> Array:
    from scipy.special import ndtri

    return mean + DEVIATION * ndtri((np.arange(200_000) + 0.5) / 200_000)


def like_shift(by: float, change: Callable[..., Array], bracket: tuple[float, float], mean: float, size: int) -> float:
    """Return the parameter of a change with the squared log-odds error of a shift."""
    x = population(mean)
    target = squared_error(x + by, x, bins_at(x + by, size))

    def lacking(parameter: float) -> float:
        changed = change(x, parameter, mean)
        return squared_error(changed, x, bins_at(changed, size)) - target

    return float(brentq(lacking, *bracket, xtol=1e-6))


def equally_wrong(count: int, mean: float, size: int) -> Models:
    """Two shifts, an overconfident and an underconfident model and a wave, all with the log-odds error of 0.4."""
    found = {
        name: like_shift(0.4, change, bracket, mean, size)
        for name, change, bracket in (
            ("over", slope, (1.01, 3.0)),
            ("under", slope, (0.1, 0.99)),
            ("wave", wave, (0.05, 2.0)),
        )
    }

    def models(x: Array) -> list[Array]:
        over, under = slope(x, found["over"], mean), slope(x, found["under"], mean)
        return [x + 0.4, over, x - 0.4, wave(x, found["wave"], mean), under][:count]

    return models


def equal_ace(count: int, mean: float, size: int) -> Models:
    """The pair of line 9 of the table of failures: its ACE is equal, not its log-odds errors."""
    return lambda x: [shift(x, 0.4103), slope(x, 1.3275, mean)]


def one_best(count: int, mean: float, size: int) -> Models:
    """The best model has half the error of the others, which are shifted to both sides."""
    return lambda x: [x + 0.1, x + 0.2, x - 0.2, x + 0.2 * np.sign(x - mean), x - 0.25][:count]


def clearly_best(count: int, mean: float, size: int) -> Models:
    return lambda x: [x, x + 0.4, x - 0.4, slope(x, 1.5, mean), x + 0.6][:count]


def draw_functions(
    make: Callable[..., Models], count: int, rng: np.random.Generator, size: int, mean: float
) -> list[Array]:
    x = rng.normal(mean, DEVIATION, size)
    return [x, *_cached(make, count, mean, size)(x)]


@cache
def _cached(make: Callable[..., Models], count: int, mean: float, size: int) -> Models:
    return make(count, mean, size)


def draw_calibrated(count: int, rng: np.random.Generator, size: int, mean: float) -> list[Array]:
    """Calibrated models that see the latent variable with independent noise."""
    threshold = {0.0: 0.0, -3.6: 2.3, -6.0: 3.5}[mean]
    latent = rng.normal(size=size)
    seen = [(latent + rng.normal(size=size)) / 2 for _ in range(count)]
    models = [probit_logit((each - threshold) / np.sqrt(1.5)) for each in seen]
    return [probit_logit(latent - threshold), *models]


Draw = Callable[[int, np.random.Generator, int, float], list[Array]]
# Name: how logits are drawn, and the number of best models (None: all).
BINARY: dict[str, tuple[Draw, int | None, tuple[int, ...]]] = {
    "equally wrong": (partial(draw_functions, equally_wrong), None, (2, 3, 5)),
    "equal ACE": (partial(draw_functions, equal_ace), None, (2,)),
    "calibrated": (draw_calibrated, None, (2, 3, 5)),
    "one best by half": (partial(draw_functions, one_best), 1, (2, 3, 5)),
    "one best": (partial(draw_functions, clearly_best), 1, (2, 3, 5)),
}


def binary_tests(draw: Draw, count: int, mean: float, size: int, design: str, seed: int) -> Tests:
    rng = np.random.default_rng([count, size, seed])
    truth, *models = draw(count, rng, size, mean)
    # Rows that a design does not keep are lost for all models: the logits travel as columns of one matrix.
    y, data, options = outcomes(rng, Data(np.column_stack(models), truth, truth), design)
    rows, tables = read(y, list(data.a.T), **options)
    return {(i, j): calibration_difference(ModelPair(rows, tables, i, j)) for i, j in all_pairs(count)}


# Sets of point predictions.


def points(count: int, one: Array, two: Array, name: str) -> list[Array]:
    both, root = one + two, np.sqrt(2.0)
    wide = slope_like_shift(0.4, root)
    return {
        "equally wrong": [both + 0.4, one + 0.4, both - 0.4, wide * both, (2 - wide) * both],
        "calibrated": [both, one, two, (one + 2 * two) * 0.6, (2 * one + two) * 0.6],
        "one best by half": [both + 0.1, both + 0.2, both - 0.2, one + 0.2, two - 0.25],
        "one best": [both, one + 0.4, both - 0.4, wide * both, two + 0.6],
    }[name][:count]


def point_tests(name: str, count: int, size: int, design: str, seed: int) -> Tests:
    rng = np.random.default_rng([count, size, seed])
    rows = sampled(rng, size, design)
    one, two, y = numbers(rng, rows)
    weight = {} if rows.weight is None else {"sample_weight": rows.weight}
    tables = [MeanTable.from_arrays(y, each, **weight) for each in points(count, one, two, name)]
    found = bias_deviations(tables, rows, 1.0)
    return {(i, j): deviations_difference(found[i], found[j], rows) for i, j in all_pairs(count)}


def best_set(tests: Tests, count: int, best: int | None) -> Array:
    """Return whether a difference is shown, all and the first of the best models are in the set, and its size."""
    names = [str(i) for i in range(count)]
    plan = ComparisonPlan(names, is_all_pairs=True, margins={})
    differences = plan.differences(TERMS.decides, tests, 0.95, test="decides")
    fields = plan.finish(differences, {TERMS.decides: tests}, TERMS, SETTINGS, {})
    found = {each.model for each in fields["ranked"] if each.is_best_set}
    shown = any(d.adjusted_pvalue <= ALPHA for d in fields["differences"])
    return np.array([shown, set(names[:best]) <= found, names[0] in found, len(found)], dtype=float)


def best_cells() -> Iterator[tuple[tuple[str, ...], Callable[[int], Array]]]:
    """Return the keys of each cell, and the results of one data set by its seed."""
    for name, (draw, best, counts) in BINARY.items():
        for events, mean in MEANS.items():
            for size in SIZES[events]:
                for count in counts:
                    if size == LARGE and (count == 3 or name == "one best"):
                        continue
                    if name == "equal ACE" and events != "5 %":
                        continue
                    for design in DESIGNS if (size, count) == (2_000, 3) else DESIGNS[:1]:
                        key = ("binary", name, str(count), events, f"{size:,}", design)
                        yield key, partial(binary_best, best, draw, count, mean, size, design)
    for name in ("equally wrong", "calibrated", "one best by half", "one best"):
        best = 1 if name.startswith("one best") else None
        for size in (500, 2_000):
            for count in (2, 3, 5):
                for design in DESIGNS if (size, count) == (2_000, 3) else DESIGNS[:1]:
                    key = ("point", name, str(count), "", f"{size:,}", design)
                    yield key, partial(point_best, best, name, count, size, design)


def binary_best(best: int | None, draw: Draw, count: int, *given: Any) -> Array:
    return best_set(binary_tests(draw, count, *given), count, best)


def point_best(best: int | None, name: str, count: int, *given: Any) -> Array:
    return best_set(point_tests(name, count, *given), count, best)


# Non-inferiority: the log-odds of challenger and champion as functions of the true logits.

PAIRS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "shift 0.1, champion calibrated": (lambda x: x + 0.1, lambda x: x),
    "shift -0.1, champion calibrated": (lambda x: x - 0.1, lambda x: x),
    "shift -0.3, champion calibrated": (lambda x: x - 0.3, lambda x: x),
    "shift 0.42, champion 0.4": (lambda x: x + 0.42, lambda x: x + 0.4),
    "shift -0.42, champion -0.4": (lambda x: x - 0.42, lambda x: x - 0.4),
    "slope 1.3, champion calibrated": (lambda x: x.mean() + 1.3 * (x - x.mean()), lambda x: x),
}
EQUAL = "both calibrated, margin 0.2"
POINT_PAIRS: dict[str, tuple[float, Callable[[Array, Array], tuple[Array, Array]]]] = {
    "shift 0.2, champion calibrated": (0.04, lambda one, two: (one + two + 0.2, one + two)),
    "shift 0.3, champion with fewer covariates": (0.09, lambda one, two: (one + two + 0.3, one)),
    "shift -0.3, champion with other covariates": (0.09, lambda one, two: (one - 0.3, two)),
    "shift 0.5, champion 0.4": (0.09, lambda one, two: (one + two + 0.5, one + two + 0.4)),
}
METRICS = ("log-odds error", "Brier", "log loss")
OF_LOSSES = ("shift 0.42, champion 0.4", "slope 1.3, champion calibrated")


def losses_of(model: Array, truth: Array, metric: str) -> float:
    """Return the expected loss of a model."""
    p, t = expit(model), expit(truth)
    if metric == "Brier":
        return float(np.mean(t * (1 - p) ** 2 + (1 - t) * p**2))
    return float(np.mean(-t * np.log(p) - (1 - t) * np.log1p(-p)))


def margin_cells() -> Iterator[tuple[tuple[str, ...], Callable[[int], Array]]]:
    for events, mean in MEANS.items():
        x = population(mean)
        for size in SIZES[events]:
            for name, pair in PAIRS.items():
                a, b = (change(x) for change in pair)
                limits = [squared_error(a, x, bins_at(a, size)) - squared_error(b, x, bins_at(b, size))]
                limits += [losses_of(a, x, metric) - losses_of(b, x, metric) for metric in METRICS[1:]]
                for metric, limit in zip(METRICS, limits, strict=True):
                    is_loss = metric != METRICS[0]
                    if is_loss and name not in OF_LOSSES:
                        continue
                    for design in DESIGNS if size == 2_000 and name in OF_LOSSES else DESIGNS[:1]:
                        margin = limit if is_loss else np.sqrt(limit)
                        key = ("binary", name, metric, events, f"{size:,}", design, f"{margin:.3g}")
                        yield key, partial(not_worse, pair, metric, limit, mean, size, design)
            key = ("binary", EQUAL, METRICS[0], events, f"{size:,}", "independent", "0.2")
            yield key, partial(not_worse, None, METRICS[0], 0.04, mean, size, "independent")
    for name, (limit, change) in POINT_PAIRS.items():
        for size in (500, 2_000):
            for design in DESIGNS if size == 2_000 else DESIGNS[:1]:
                key = ("point", name, "bias by bin", "", f"{size:,}", design, f"{np.sqrt(limit):.3g}")
                yield key, partial(points_not_worse, change, limit, size, design)


def not_worse(pair: Any, metric: str, limit: float, mean: float, size: int, design: str, seed: int) -> Array:
    """Return whether the challenger is shown to be not worse; without a pair two almost equal calibrated models."""
    rng = np.random.default_rng([7 + METRICS.index(metric), size, seed])
    if pair is None:
        x = rng.normal(mean, DEVIATION, size)
        models = x, x + 0.01 * rng.normal(size=size)
    else:
        x = rng.normal(mean, DEVIATION, size)
        of = population(mean)
        models = tuple(np.interp(x, of, change(of)) for change in pair)
    y, data, options = outcomes(rng, Data(*models, x), design)
    rows, tables = read(y, [data.a, data.b], **options)
    if metric == METRICS[0]:
        found = log_odds_difference(ModelPair(rows, tables, 0, 1))
    else:
        losses = brier_losses if metric == "Brier" else log_losses
        found = mean_difference(losses(rows, 0), losses(rows, 1), rows.weight, rows.cluster)
    return np.array([found.below(limit, 1 - ALPHA)[1] <= ALPHA], dtype=float)


def points_not_worse(change: Any, limit: float, size: int, design: str, seed: int) -> Array:
    rng = np.random.default_rng([7, size, seed])
    rows = sampled(rng, size, design)
    one, two, y = numbers(rng, rows)
    weight = {} if rows.weight is None else {"sample_weight": rows.weight}
    tables = [MeanTable.from_arrays(y, each, **weight) for each in change(one, two)]
    found = deviations_difference(*bias_deviations(tables, rows, 1.0), rows)
    return np.array([found.below(limit, 1 - ALPHA)[1] <= ALPHA], dtype=float)


def write(
    path: Path, columns: Sequence[str], n_keys: int, cells: Any, more: Callable[[tuple[str, ...], Array], bool]
) -> None:
    """Compute the cells that the file does not have; `more` says whether the mean needs more data sets."""
    done: dict[tuple[str, ...], dict[str, str]] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            done = {tuple(list(row.values())[:n_keys]): row for row in csv.DictReader(file)}
    for key, run in cells:
        if key in done:
            continue
        began = time.time()
        found = [run(seed) for seed in range(FEWER_SETS if f"{LARGE:,}" in key else SETS)]
        if more(key, np.mean(found, axis=0)):
            found += [run(seed) for seed in range(len(found), MORE_SETS)]
        numbers = [f"{value:.3f}" for value in np.mean(found, axis=0)]
        done[key] = dict(zip(columns, (*key, f"{len(found):,}", *numbers), strict=True))
        print(*done[key].values(), f"{time.time() - began:.0f} s", sep=" | ", file=sys.stderr, flush=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(done[each] for each in sorted(done))


def main() -> None:
    write(
        RESULTS / "best_sets.csv",
        BEST,
        len(KEYS),
        best_cells(),
        lambda key, means: means[1] < 0.94 if key[1] != "equal ACE" else means[0] > 0.06,
    )
    write(
        RESULTS / "non_inferiority.csv",
        MARGIN,
        7,
        margin_cells(),
        lambda key, means: key[1] != EQUAL and means[0] > 0.06,
    )


if __name__ == "__main__":
    main()
