"""Error rates and power of the verdict on class probabilities.

Each data set is decided by the library (`calibrant.kinds.multiclass.verdict`); no resampling is needed.
Results are kept per cell in docs/studies/multiclass.csv after each chunk of data sets, so that the study continues
where it was stopped.

    python -m research.studies.multiclass            run the missing data sets, then write the tables
    python -m research.studies.multiclass --tables   write the tables only
    STUDY_SECONDS=500 python -m ...                  stop after so many seconds
"""

import csv
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from calibrant.kinds.multiclass.verdict import ClassesVerdict, decide_classes
from calibrant.metrics import log_odds
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.tables.score_table import ScoreTable
from research.studies.designs import RESULTS, spread_over_cores, write

STOP = time.time() + float(os.environ.get("STUDY_SECONDS", "inf"))
CORRELATION = 0.3  # of the latent normal variables of two rows of a cluster
EVENTS = (
    "joint test",
    "false class",
    "class direction",
    "wrong class direction",
    "temperature",
    "confusions",
    "within",
)


@dataclass(frozen=True)
class Cell:
    """One design with one truth."""

    part: str
    predictions: str
    classes: int
    rows: int
    truth: str = "calibrated"
    dependence: str = "independent"
    data_sets: int = 1_000


def cells() -> list[Cell]:
    """Return all cells: those of the size first, then the cheap ones."""
    found = [
        Cell("size", p, k, n, data_sets=_affordable(k * n))
        for p, k, n in product(("dirichlet", "softmax", "rare classes"), (3, 10, 100), (500, 5_000, 50_000))
    ]
    truths = ("temperature of 1.3", "one class shifted by 0.5", "two classes confused", "all classes shifted by 0.3")
    for truth, k, n in product(truths, (3, 10, 100), (500, 5_000)):
        found.append(Cell("power", "softmax", k, n, truth, data_sets=1_000 if k < 100 else 200))
    for truth in ("calibrated", "error of 0.1, shifts", "error of 0.1, temperature"):
        for p, k, n in (
            ("softmax", 2, 20_000),
            ("softmax", 3, 5_000),
            ("softmax", 3, 20_000),
            ("softmax", 10, 5_000),
            ("softmax", 10, 20_000),
            ("rare classes", 10, 20_000),
            ("softmax", 100, 20_000),
        ):
            found.append(Cell("margin", p, k, n, truth, data_sets=40 if k == 100 else 200))
        for dependence in ("clusters of 10", "weights"):
            found.append(Cell("margin", "softmax", 3, 20_000, truth, dependence, 200))
    for p, k, n in (
        ("5 distinct rows", 10, 500),
        ("5 distinct rows", 10, 5_000),
        ("equal", 10, 500),
        ("confident", 10, 500),
        ("confident", 10, 5_000),
        ("very rare classes", 10, 2_000),
        ("very rare classes", 100, 2_000),
        ("similar classes", 10, 5_000),
        ("softmax", 2, 500),
    ):
        found.append(Cell("attack", p, k, n, data_sets=1_000 if k < 100 else 300))
    found.append(Cell("attack", "softmax", 1_000, 2_000, data_sets=100))
    for dependence, k, n in product(("clusters of 10", "weights"), (3, 10), (500, 5_000)):
        found.append(Cell("attack", "softmax", k, n, dependence=dependence))
    for p, k, n in (("softmax", 3, 5_000), ("softmax", 10, 5_000), ("softmax", 100, 5_000), ("confident", 10, 5_000)):
        found.append(Cell("attack", p, k, n, "all classes shifted by 1", data_sets=500 if k < 100 else 100))
    return sorted(found, key=lambda cell: (cell.part != "size", cell.classes * max(cell.rows, 1_000) * cell.data_sets))


def _affordable(numbers: int) -> int:
    """Return the number of data sets of so many probabilities each."""
    if numbers <= 50_000:
        return 1_000
    return 500 if numbers <= 500_000 else 150


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(axis=1, keepdims=True))
    x /= x.sum(axis=1, keepdims=True)
    return x


def probabilities(rng: np.random.Generator, predictions: str, classes: int, rows: int) -> np.ndarray:
    """Return the predictions of one data set."""
    if predictions == "dirichlet":
        return softmax(np.log(np.maximum(rng.standard_gamma(max(0.1, classes**-0.5), (rows, classes)), 1e-12)))
    if predictions == "5 distinct rows":
        return softmax(1.5 * rng.standard_normal((5, classes)))[rng.integers(0, 5, rows)]
    if predictions == "equal":
        return np.full((rows, classes), 1 / classes)
    if predictions == "similar classes":  # in eight dimensions
        place = np.random.default_rng(5).standard_normal((classes, 8))
        return softmax(1.5 * rng.standard_normal((rows, 8)) @ place.T)
    x = rng.standard_normal((rows, classes))
    if predictions == "confident":
        x[np.arange(rows), rng.integers(0, classes, rows)] += 5
        return softmax(1.6 * x)
    if predictions == "rare classes":
        return softmax(1.3 * x - np.linspace(0, 7, classes))
    if predictions == "very rare classes":  # half of the classes expect 0.1 events
        x[:, classes // 2 :] += np.log(0.1 / rows)
    return softmax(1.5 * x if predictions == "softmax" else x)


def shifts(classes: int) -> np.ndarray:
    """Return shifts of the classes with a standard deviation of 1."""
    found = np.random.default_rng(11).standard_normal(classes)
    return (found - found.mean()) / found.std()


def true_probabilities(p: np.ndarray, truth: str, size: float) -> np.ndarray:
    """Return the probabilities of the labels."""
    logs = np.log(np.maximum(p, 1e-300))
    if truth == "two classes confused":
        q, both = p.copy(), p[:, 0] + p[:, 1]
        q[:, 0] = both * expit(logs[:, 0] - logs[:, 1] + size)
        q[:, 1] = both - q[:, 0]
        return q
    if "temperature" in truth:
        return softmax(logs / size)
    if truth == "one class shifted by 0.5":
        logs[:, 0] += size
        return softmax(logs)
    return p if truth == "calibrated" else softmax(logs + size * shifts(p.shape[1]))


SIZES = {
    "calibrated": 0.0,
    "temperature of 1.3": 1.3,
    "one class shifted by 0.5": 0.5,
    "two classes confused": 0.5,
    "all classes shifted by 0.3": 0.3,
    "all classes shifted by 1": 1.0,
}


@lru_cache
def size_of(predictions: str, classes: int, rows: int, truth: str) -> float:
    """Return the size of the deviation: given, or that with a class-wise log-odds error of 0.1."""
    if truth in SIZES:
        return SIZES[truth]
    p = probabilities(np.random.default_rng(1), predictions, classes, 20_000)
    low, high = (1.0001, 3.0) if "temperature" in truth else (1e-4, 3.0)
    return brentq(lambda size: error(p, true_probabilities(p, truth, size), rows) - 0.1, low, high, xtol=1e-4)


def error(p: np.ndarray, q: np.ndarray, rows: int) -> float:
    """Return the class-wise log-odds error of predictions p with true probabilities q, over bins of so many rows."""
    squares = total = 0.0
    for c in range(p.shape[1]):
        order = np.argsort(p[:, c])
        score, one = p[order, c], np.ones(len(p), dtype=np.int64)
        table = ScoreTable(score, one, 0 * one)
        count = information_bins(float(np.sum(score * (1 - score))) * rows / len(p))
        bins = LogOddsBins.from_table(table, EqualInformation(count))
        events = bins.total(q[order, c])
        d = log_odds.offsets(bins.scores.x, one, events, bins.start)
        squares, total = squares + float(bins.information @ d**2), total + float(bins.information.sum())
    return float(np.sqrt(squares / total))


def data_set(rng: np.random.Generator, cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return predictions, true probabilities, labels and row options."""
    p = probabilities(rng, cell.predictions, cell.classes, cell.rows)
    q = true_probabilities(p, cell.truth, size_of(cell.predictions, cell.classes, cell.rows, cell.truth))
    options = {}
    u = rng.random(cell.rows)
    if cell.dependence == "clusters of 10":
        options["cluster"] = np.arange(cell.rows) % (cell.rows // 10)
        shared = rng.standard_normal(cell.rows // 10)[options["cluster"]]
        u = ndtr(np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * rng.standard_normal(cell.rows))
    cumulative = np.cumsum(q, axis=1)
    code = np.sum(cumulative < u[:, None] * cumulative[:, -1:], axis=1)
    if cell.dependence == "weights":  # three of four rows of the first class are lost; those kept have weight 4
        kept = (code != 0) | (rng.random(cell.rows) < 0.25)
        p, q, code = p[kept], q[kept], code[kept]
        options["weight"] = np.where(code == 0, 4.0, 1.0)
    return p, q, code, options


def outcomes(found: ClassesVerdict, p: np.ndarray, q: np.ndarray) -> dict[str, float]:
    """Return what one decision claims."""
    away = np.sum(q - p, axis=0)
    calibrated = np.all(np.isclose(q, p, rtol=1e-9), axis=0)
    sides = {"overestimates": -1, "underestimates": 1}
    claims = [(each.label, sides[each.direction(0.05)]) for each in found.classes if each.direction(0.05)]
    return {
        "joint test": found.verdict.pvalue <= 0.05,
        "false class": any(each.adjusted_pvalue <= 0.05 for each in found.classes if calibrated[each.label]),
        "class direction": bool(claims),
        "wrong class direction": any(calibrated[label] or side * away[label] < 0 for label, side in claims),
        "temperature": "confident" in found.verdict.direction,
        "confusions": found.n_confusions > 0,
        "within": found.verdict.deviation.within,
    }


PATH = RESULTS / "multiclass.csv"
KEYS = [each.name for each in fields(Cell)][:-1]
COLUMNS = [*KEYS, "data_sets", *EVENTS, "mean squared error"]


def known() -> dict[tuple[str, ...], dict[str, float]]:
    """Return the results of the data sets that were run."""
    if not PATH.exists():
        return {}
    with PATH.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return {tuple(line[key] for key in KEYS): {name: float(line[name]) for name in COLUMNS[6:]} for line in lines}


def key(cell: Cell) -> tuple[str, ...]:
    return tuple(map(str, astuple(cell)))[:-1]


def save(results: dict[tuple[str, ...], dict[str, float]]) -> None:
    """Write all results, through a temporary file."""
    new = PATH.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for cell in cells():
            if key(cell) in results:
                found = results[key(cell)]
                writer.writerow([*key(cell), *(f"{found[name]:.6g}" for name in COLUMNS[6:])])
    new.replace(PATH)


def missing(results: dict[tuple[str, ...], dict[str, float]]) -> Iterator[tuple[Cell, int, int]]:
    """Yield the missing chunks of data sets: cell, number of data sets before it, and number in it."""
    for cell in cells():
        done = int(results.get(key(cell), {}).get("data_sets", 0))
        chunk = max(1, min(100, 2_000_000 // (cell.classes * cell.rows)))
        yield from ((cell, start, chunk) for start in range(done, cell.data_sets, chunk))


def decide(task: tuple[Cell, int, int]) -> dict[str, float]:
    """Return the sums over a chunk of data sets, which has its own seed."""
    cell, start, count = task
    if time.time() > STOP:
        return {}
    rng = np.random.default_rng([start, cell.rows, *map(ord, "".join(key(cell)))])
    found = dict.fromkeys(COLUMNS[6:], 0.0)
    for _ in range(count):
        p, q, code, options = data_set(rng, cell)
        decision = decide_classes(p, code, **options)
        for name, value in outcomes(decision, p, q).items():
            found[name] += value
        found["mean squared error"] += decision.estimate.error.value**2
        found["data_sets"] += 1
    return found


def run() -> None:
    """Run the missing data sets; those of a cell are added in the order of their seeds."""
    results, tasks = known(), list(missing(known()))
    stopped = set()
    for (cell, *_), sums in zip(tasks, spread_over_cores(decide, tasks, "chunks"), strict=True):
        if not sums:
            stopped.add(cell)
        if cell in stopped:
            continue
        found = results.setdefault(key(cell), dict.fromkeys(COLUMNS[6:], 0.0))
        for name, value in sums.items():
            found[name] += value
        save(results)


def tables() -> None:
    """Write the tables of the documentation."""
    results = known()
    shown = {
        "size": ("joint test", "false class", "class direction", "temperature", "confusions"),
        "power": ("joint test", "false class", "class direction", "wrong class direction", "temperature", "confusions"),
        "margin": ("within", "joint test"),
        "attack": ("joint test", "false class", "wrong class direction", "temperature", "confusions", "within"),
    }
    for part, events in shown.items():
        lines = []
        for cell in sorted((c for c in cells() if c.part == part), key=lambda c: (c.predictions, c.classes, c.rows)):
            found = results.get(key(cell))
            if found is None:
                continue
            count = found["data_sets"]
            line: dict[str, Any] = {name: getattr(cell, name) for name in KEYS[1:]}
            line["data_sets"] = f"{count:.0f}"
            line |= {f"{name} (%)": f"{100 * found[name] / count:.1f}" for name in events}
            line["log-odds error"] = f"{(found['mean squared error'] / count) ** 0.5:.3f}"
            lines.append(line)
        write(f"multiclass_{part}", lines)


if __name__ == "__main__":
    if "--tables" not in sys.argv:
        run()
    tables()
