"""False findings and power of `audit`, beside a tree on residuals, MCGrad, and every pair of features.

Half of the features are normal, half have six categories. Forecasts are calibrated but for the planted segment, a rule
of one to three conditions. Designs of calibrated forecasts:

* "scores": scores of an event whose log-odds are normal;
* "clusters": rows in clusters of ten on average; outcomes in a cluster have the correlation of a normal copula with
  0.5, and the categories are those of the cluster;
* "weights": log-normal importance weights (standard deviation of the logarithm 1) that do not depend on the outcome;
* "outcome weights": weights 0.2 for rows without the event and 1 for those with it, in scores for which the weighted
  rows are calibrated;
* "top labels": probabilities of five classes;
* "points": predictions of a mean whose errors are skewed (gamma, shape 2) and larger where the prediction is.

Methods:

* "audit": `calibrant.audit`.
* "tree": scikit-learn's regression tree on the residuals (as many levels as the rule has conditions, leaves of at least
  0.5 % of the rows), fitted to all rows; its leaves are tested on the same rows, with Bonferroni's correction for the
  number of leaves. This is common practice; the test ignores that the tree chose the leaves.
* "pairs": every pair of categories of every pair of features (numbers in twelve bins), tested by the residuals, with
  Bonferroni's correction for all of them. This is what `evaluate(by=[...])` of every pair does.
* "mcgrad": the segments of MCGrad's `MulticalibrationError` whose p-value is at most 5 %, as its documentation reads
  it; "mcgrad, Bonferroni" at 5 % divided by the number of segments.

A segment counts as found if a reported segment shares at least half of the rows of both. Results are kept
in one file per design and method, so that a run can be resumed; `--table` joins the parts to
docs/studies/audit_false_findings.csv and docs/studies/audit_power.csv.

    python -m research.studies.audit --seconds 420     # works on what is missing, and stops after 420 seconds
    python -m research.studies.audit --table
"""

import argparse
import csv
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

import calibrant as cb
from calibrant._support.columns import read
from calibrant.evaluation.audit.features import count_feature
from research.studies.designs import workers, write

ALPHA = 0.05
ROOT = Path(__file__).parents[2]
PARTS, STUDIES = ROOT / "build" / "studies" / "audit", ROOT / "docs" / "studies"


@dataclass(frozen=True)
class Data:
    """Outcomes, forecasts, features, the rows of the planted segment, and options about rows."""

    y: np.ndarray
    p: Any
    features: dict[str, np.ndarray]
    planted: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)


def draw(
    seed: int,
    *,
    n: int,
    n_features: int,
    rate: float,
    design: str = "scores",
    depth: int = 0,
    share: float = 0.0,
    error: float = 0.0,
) -> Data:
    """Return a data set; the planted rule has `depth` conditions that hold for about `share` of the rows."""
    rng = np.random.default_rng([seed, n, n_features, int(1e4 * rate), depth, int(1e3 * share), int(10 * error)])
    features = {
        f"x{i}": rng.normal(size=n) if i % 2 else np.array(list("abcdef"))[rng.integers(0, 6, n)]
        for i in range(n_features)
    }
    logit = np.log(rate / (1 - rate)) + 0.8 * rng.normal(size=n)
    planted = np.zeros(n, dtype=bool)
    if depth:
        # A category has a sixth of the rows; thresholds on numbers give the rest of the share.
        numbers = depth - 1 if depth > 1 else 1
        left = share * 6 if depth > 1 else share
        threshold = left ** (1 / numbers)
        planted = np.ones(n, dtype=bool) if depth == 1 else features["x0"] == "b"
        for i in range(numbers):
            planted &= ndtr(features[f"x{2 * i + 1}"]) > 1 - threshold
    if design != "scores":
        return DESIGNS[design](rng, features, logit, planted)
    return Data(rng.random(n) < expit(logit + error * planted), expit(logit), features, planted)


def _clusters(rng: np.random.Generator, features: dict[str, np.ndarray], logit: np.ndarray, planted: Any) -> Data:
    n = logit.size
    cluster = rng.integers(0, n // 10, n)
    shared = {
        name: rng.permutation(column)[cluster] if i % 2 == 0 else column
        for i, (name, column) in enumerate(features.items())
    }
    common = rng.normal(size=n // 10)[cluster]
    y = ndtr(np.sqrt(0.5) * common + np.sqrt(0.5) * rng.normal(size=n)) < expit(logit)
    return Data(y, expit(logit), shared, planted, {"cluster": cluster})


def _weights(rng: np.random.Generator, features: dict[str, np.ndarray], logit: np.ndarray, planted: Any) -> Data:
    weight = rng.lognormal(0, 1, logit.size)
    return Data(rng.random(logit.size) < expit(logit), expit(logit), features, planted, {"sample_weight": weight})


def _outcome_weights(
    rng: np.random.Generator, features: dict[str, np.ndarray], logit: np.ndarray, planted: Any
) -> Data:
    y = rng.random(logit.size) < expit(logit)
    score = expit(logit + np.log(5))  # of rows by weight
    return Data(y, score, features, planted, {"sample_weight": np.where(y, 1.0, 0.2)})


def _top_labels(rng: np.random.Generator, features: dict[str, np.ndarray], logit: np.ndarray, planted: Any) -> Data:
    proba = rng.dirichlet([0.7] * 5, logit.size)
    y = (proba.cumsum(axis=1) > rng.random((logit.size, 1))).argmax(axis=1)
    return Data(y, proba, features, planted)


def _points(rng: np.random.Generator, features: dict[str, np.ndarray], logit: np.ndarray, planted: Any) -> Data:
    mean = 10 + 3 * logit
    spread = 0.5 + expit(logit)
    return Data(mean + spread * (rng.gamma(2, 1, logit.size) - 2), cb.Point(mean), features, planted)


DESIGNS = {
    "clusters": _clusters,
    "weights": _weights,
    "outcome weights": _outcome_weights,
    "top labels": _top_labels,
    "points": _points,
}


def audited(data: Data, depth: int) -> list[np.ndarray]:
    """Return the rows of each reported segment."""
    found = cb.audit(data.y, data.p, data.features, depth=max(depth, 2), n_resamples=0, **data.options)
    forecast = {"score": data.p} if isinstance(data.p, np.ndarray) and data.p.ndim == 1 else None
    if forecast is None:
        return [np.zeros(data.y.size, dtype=bool) for _ in found.segments]
    return [segment.mask(data.features, forecast=forecast) for segment in found.segments]


def mcgrad(data: Data, depth: int, share: float = 1.0) -> list[np.ndarray]:
    """Return the rows of the segments whose p-value is at most 5 %, or 5 % divided by their number."""
    import pandas as pd
    from mcgrad._segmentation import get_segment_masks
    from mcgrad.metrics import MulticalibrationError

    frame = pd.DataFrame({**data.features, "score": data.p, "label": data.y.astype(int)})
    numbers = [name for name, column in data.features.items() if column.dtype.kind == "f"]
    columns: dict[str, Any] = {
        "numerical_segment_columns": numbers,
        "categorical_segment_columns": [name for name in data.features if name not in numbers],
        "max_depth": max(depth, 2),
    }
    found = MulticalibrationError(frame, "label", "score", **columns)
    pvalues = found.segments_ecce_pvalue
    masks = np.concatenate([chunk[:count] for chunk, count, _ in get_segment_masks(frame, **columns)])[: pvalues.size]
    limit = ALPHA if share == 1 else ALPHA / pvalues.size
    return [masks[i] for i in np.flatnonzero(pvalues <= limit)]


def tree(data: Data, depth: int) -> list[np.ndarray]:
    """Return the rows of the significant leaves."""
    from sklearn.tree import DecisionTreeRegressor

    columns = []
    for column in data.features.values():
        if column.dtype.kind == "f":
            columns.append(column)
        else:
            columns += [(column == value).astype(float) for value in "abcdef"]
    x = np.column_stack([*columns, data.p])
    residual = data.y - data.p
    model = DecisionTreeRegressor(max_depth=max(depth, 2), min_samples_leaf=max(50, data.y.size // 200), random_state=0)
    leaf = model.fit(x, residual).apply(x)
    return _significant(data, [leaf == each for each in np.unique(leaf)])


def pairs(data: Data, depth: int) -> list[np.ndarray]:
    """Return the rows of the significant cells of all pairs of features."""
    columns = [read(column, name) for name, column in data.features.items()]
    encoded = [(count_feature(column.name, column).encode(column)[0], 32) for column in columns]
    residual, variance = data.y - data.p, data.p * (1 - data.p)
    cells: list[tuple[float, Callable[[], np.ndarray]]] = []
    for (one, _), (two, width) in combinations(encoded, 2):
        code = one.astype(int) * width + two
        size = np.bincount(code)
        z = np.bincount(code, weights=residual) / np.sqrt(np.maximum(np.bincount(code, weights=variance), 1e-12))
        cells += [(abs(z[c]), lambda c=c, code=code: code == c) for c in np.flatnonzero(size >= 50)]
    return [rows() for z, rows in cells if 2 * ndtr(-z) <= ALPHA / len(cells)]


def _significant(data: Data, segments: list[np.ndarray]) -> list[np.ndarray]:
    z = [(data.y - data.p)[rows].sum() / np.sqrt((data.p * (1 - data.p))[rows].sum()) for rows in segments]
    return [rows for rows, each in zip(segments, z, strict=True) if 2 * ndtr(-abs(each)) <= ALPHA / len(segments)]


METHODS: dict[str, Callable[[Data, int], list[np.ndarray]]] = {
    "audit": audited,
    "tree": tree,
    "pairs": pairs,
    "mcgrad": mcgrad,
    "mcgrad, Bonferroni": lambda data, depth: mcgrad(data, depth, 0.0),
}


@dataclass(frozen=True)
class Task:
    """One cell of a table: a design, a method and a number of data sets."""

    method: str
    sets: int
    n: int
    n_features: int
    rate: float
    design: str = "scores"
    depth: int = 0
    share: float = 0.0
    error: float = 0.0

    @property
    def part(self) -> Path:
        """The file of the results."""
        return PARTS / ("-".join(f"{value}".replace(" ", "_") for value in asdict(self).values()) + ".json")

    def results(self) -> list[tuple[bool, bool]]:
        """Return the results so far."""
        return json.loads(self.part.read_text()) if self.part.exists() else []

    def run(self, seed: int) -> tuple[bool, bool]:
        """Return whether anything, and whether the planted segment was found in one data set."""
        settings = {name: value for name, value in asdict(self).items() if name not in ("method", "sets")}
        data = draw(seed, **settings)
        found = METHODS[self.method](data, self.depth)
        right = any((rows & data.planted).sum() >= 0.5 * (rows | data.planted).sum() > 0 for rows in found)
        return bool(found), right


def false_findings() -> list[Task]:
    """Return the cells of the table of calibrated forecasts."""
    plain = [(2_000, 10, 0.3), (5_000, 10, 0.1), (5_000, 50, 0.1), (20_000, 20, 0.01)]
    tasks = [Task(method, 500, *each) for each in plain for method in ("audit", "tree", "pairs")]
    tasks += [Task("mcgrad", 50, 5_000, 10, 0.1), Task("mcgrad, Bonferroni", 50, 5_000, 10, 0.1)]
    tasks += [Task("audit", 500, 5_000, 10, 0.1, design) for design in DESIGNS]
    return tasks


def power() -> list[Task]:
    """Return the cells of the table of planted segments."""
    designs = [(d, share, error) for d in (1, 2, 3) for share in (0.01, 0.03, 0.1) for error in (0.3, 0.6)]
    sets = {"audit": 100, "tree": 100, "pairs": 100, "mcgrad": 20, "mcgrad, Bonferroni": 20}
    return [Task(method, count, 20_000, 10, 0.2, "scores", *each) for each in designs for method, count in sets.items()]


def run(tasks: list[Task], seconds: float, most: int) -> None:
    """Work on the data sets that have no results, twenty at a time, and stop after a time."""
    begun = time.monotonic()
    PARTS.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers()) as pool:
        for task in tasks:
            found = task.results()
            while len(found) < min(task.sets, most):
                if time.monotonic() - begun > seconds:
                    print(f"stopped in {task.part.name} after {len(found)} data sets")
                    return
                seeds = range(len(found), min(len(found) + 20, task.sets, most))
                found += list(pool.map(task.run, seeds, chunksize=4))
                task.part.write_text(json.dumps(found))


def table(tasks: list[Task], name: str, columns: dict[str, int], skip: tuple[str, ...]) -> None:
    """Write a table of the results; cells without any keep the row of the table as it is."""
    with (STUDIES / f"{name}.csv").open(encoding="utf-8") as file:
        known = list(csv.DictReader(file))
    rows = []
    for task in tasks:
        about = {key: value for key, value in asdict(task).items() if key not in (*skip, "method", "sets")}
        same = {**about, "method": task.method}
        kept = [row for row in known if all(row.get(key, "scores") == str(value) for key, value in same.items())]
        results = task.results()
        if results:
            shares = np.mean(results, axis=0)
            found = {column: f"{shares[place]:.3f}" for column, place in columns.items()}
            rows.append({**same, "sets": len(results), **found})
        elif kept:
            rows.append({**same, **{key: kept[0][key] for key in ("sets", *columns)}})
        print(f"{'new' if results else 'kept' if kept else 'missing'}: {task.part.name}")
    write(name, rows)


_NO_LIMIT = 1e9  # seconds


def main() -> None:
    """Run what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=_NO_LIMIT)
    parser.add_argument("--only", help="run the cells of this method only")
    parser.add_argument("--cells", help="run the cells whose file has this text in its name only")
    parser.add_argument("--most", type=int, default=500, help="run at most so many data sets per cell")
    parser.add_argument("--table", action="store_true", help="write the tables of the parts, without running any")
    given = parser.parse_args()
    if not given.table:
        tasks = [task for task in (*false_findings(), *power()) if given.only in (None, task.method)]
        tasks = [task for task in tasks if given.cells is None or given.cells in task.part.name]
        run(tasks, given.seconds, given.most)
        if given.only or given.cells or given.seconds < _NO_LIMIT:
            return
    table(false_findings(), "audit_false_findings", {"sets with a finding": 0}, ("depth", "share", "error"))
    columns = {"any finding": 0, "planted segment found": 1}
    table(power(), "audit_power", columns, ("design",))


if __name__ == "__main__":
    main()
