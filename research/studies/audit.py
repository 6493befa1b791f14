"""False findings and power of `audit`, beside a tree on residuals and the evaluation of every pair of features.

Half of the features are normal, half have six categories. Scores are calibrated but for the planted segment, a rule of
one to three conditions.

* "tree": scikit-learn's regression tree on the residuals (as many levels as the rule has conditions, leaves of at least
  0.5 % of the rows), fitted to all rows; its leaves are tested on the same rows, with Bonferroni's correction for the
  number of leaves. This is common practice; the test ignores that the tree chose the leaves.
* "pairs": every pair of categories of every pair of features (numbers in twelve bins), tested by the residuals, with
  Bonferroni's correction for all of them. This is what `evaluate(by=[...])` of every pair does.

A segment counts as found if a reported segment shares at least half of the rows of both. Writes
docs/studies/audit_false_findings.csv and docs/studies/audit_power.csv.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

import calibrant as cb
from calibrant._support.columns import read
from calibrant._support.progress import progress_bar
from calibrant.evaluation.audit.features import encode_feature
from research.studies.designs import workers, write

ALPHA = 0.05


@dataclass(frozen=True)
class Data:
    """Outcomes, scores, features, and the rows of the planted segment."""

    y: np.ndarray
    p: np.ndarray
    features: dict[str, np.ndarray]
    planted: np.ndarray


def draw(
    seed: int, *, n: int, n_features: int, rate: float, depth: int = 0, share: float = 0.0, error: float = 0.0
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
    return Data(rng.random(n) < expit(logit + error * planted), expit(logit), features, planted)


def audited(data: Data, depth: int) -> list[np.ndarray]:
    """Return the rows of each reported segment."""
    found = cb.audit(data.y, data.p, data.features, depth=max(depth, 2))
    encoded = {name: encode_feature(name, read(column, name)) for name, column in data.features.items()}
    encoded["score"] = encode_feature("score", read(data.p, "score"))
    texts = {c.text: f.rows(i) for f in encoded.values() for i, c in enumerate(f.conditions)}
    return [
        np.logical_and.reduce([texts[text] for text in segment.rule.split(" and ")])
        if segment.rule != "all rows"
        else np.ones(data.y.size, dtype=bool)
        for segment in found.segments
    ]


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
    encoded = [encode_feature(name, read(column, name)) for name, column in data.features.items()]
    residual, variance = data.y - data.p, data.p * (1 - data.p)
    cells: list[tuple[float, Callable[[], np.ndarray]]] = []
    for one, two in combinations(encoded, 2):
        code = one.codes.astype(int) * two.n_codes + two.codes
        size = np.bincount(code)
        z = np.bincount(code, weights=residual) / np.sqrt(np.maximum(np.bincount(code, weights=variance), 1e-12))
        cells += [(abs(z[c]), lambda c=c, code=code: code == c) for c in np.flatnonzero(size >= 50)]
    return [rows() for z, rows in cells if 2 * ndtr(-z) <= ALPHA / len(cells)]


def _significant(data: Data, segments: list[np.ndarray]) -> list[np.ndarray]:
    z = [(data.y - data.p)[rows].sum() / np.sqrt((data.p * (1 - data.p))[rows].sum()) for rows in segments]
    return [rows for rows, each in zip(segments, z, strict=True) if 2 * ndtr(-abs(each)) <= ALPHA / len(segments)]


METHODS = {"audit": audited, "tree": tree, "pairs": pairs}


@dataclass(frozen=True)
class Task:
    """One data set and one method."""

    method: str
    seed: int
    n: int
    n_features: int
    rate: float
    depth: int = 0
    share: float = 0.0
    error: float = 0.0

    def run(self) -> tuple[bool, bool]:
        """Return whether anything, and whether the planted segment was found."""
        data = draw(
            self.seed,
            n=self.n,
            n_features=self.n_features,
            rate=self.rate,
            depth=self.depth,
            share=self.share,
            error=self.error,
        )
        found = METHODS[self.method](data, self.depth)
        right = any((rows & data.planted).sum() >= 0.5 * (rows | data.planted).sum() for rows in found)
        return bool(found), right


def table(designs: list[dict[str, Any]], n_sets: int, name: str, columns: dict[str, str]) -> None:
    """Run the designs by all methods and write a table."""
    rows = []
    with ProcessPoolExecutor(workers()) as pool:
        futures = [
            (design, method, [pool.submit(Task(method, seed, **design).run) for seed in range(n_sets)])
            for design in designs
            for method in METHODS
        ]
        for design, method, results in progress_bar(futures, len(futures), "cells"):
            found = np.array([future.result() for future in results])
            shares = {"any": f"{found[:, 0].mean():.3f}", "planted": f"{found[:, 1].mean():.3f}"}
            rows.append({**design, "method": method, "sets": n_sets, **{columns[key]: shares[key] for key in columns}})
    write(name, rows)


def main() -> None:
    calibrated = [
        {"n": n, "n_features": k, "rate": rate}
        for n, k, rate in ((2_000, 10, 0.3), (5_000, 10, 0.1), (5_000, 50, 0.1), (20_000, 20, 0.01))
    ]
    table(calibrated, 500, "audit_false_findings", {"any": "sets with a finding"})
    planted = [
        {"n": 20_000, "n_features": 10, "rate": 0.2, "depth": depth, "share": share, "error": error}
        for depth in (1, 2, 3)
        for share in (0.01, 0.03, 0.1)
        for error in (0.3, 0.6)
    ]
    table(planted, 100, "audit_power", {"any": "any finding", "planted": "planted segment found"})


if __name__ == "__main__":
    main()
