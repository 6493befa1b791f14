"""One split of one data set: each method with each cost, and variants that may explain the printed values.

70 % of the rows train and 30 % evaluate; scaling methods are fitted on 50 % and tuned on 20 % of all rows. Splits are
stratified by class, as in R's caret: without stratification a tree costs 0.008 on Bank, where the paper prints 0.0046.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib.util import find_spec

import numpy as np
from scipy.optimize import minimize
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import calibrant as cb
from calibrant.metrics.costs import Cost
from research.reproduction.costs.data import features
from research.reproduction.costs.models import classifier, learner

UNDER = 5  # unit cost of underestimation, if overestimation costs 1
COSTS: dict[str, Cost] = {
    "linear": cb.costs.LinearCost(over=1, under=UNDER),
    "sqrt": cb.costs.PowerCost(k=0.5, over=1, under=UNDER),
    "exp": cb.costs.ExponentialCost(over=1, under=UNDER),
    "log": cb.costs.LogCost(over=1, under=UNDER),
}
EQUAL = cb.costs.LinearCost(over=1, under=1)
BINS = cb.bins.EqualWidth(10, closed="right")
METHODS = ("NoCal", "IR", "TS", "PS", "CATS", "CAPS", "MetaCal")
ROUNDS = 100  # number of bootstrap models, except in the fourth table
OTHER_ROUNDS = (50, 200)
_GRID = np.arange(1, 201) / 100
# Compiled trees are ten times as fast. In small sets two features often split a node equally well and scikit-learn
# takes one at random, so results would depend on whether numba is installed; in Default and Bank they do not.
_COMPILED = 10_000 if find_spec("numba") else math.inf  # least number of training rows
_LOCAL_SEEDS = 20  # splits with L-BFGS-B, which on small sets takes longer than all other methods

Found = dict[str, float]  # "linear: MetaCal" -> ECC
Line = tuple[float, float]


class Split:
    """One split of a data set, with predictions of models of its parts."""

    def __init__(self, name: str, model: str, seed: int) -> None:
        self.X, self.y = features(name)
        self.model, self.seed = model, seed
        rows = np.arange(self.y.size)
        self.train, self.measured = train_test_split(rows, test_size=0.3, random_state=seed, stratify=self.y)
        self.fit_on, self.tune_on = train_test_split(
            self.train, test_size=2 / 7, random_state=seed, stratify=self.y[self.train]
        )

    @cached_property
    def p(self) -> np.ndarray:
        """Uncalibrated probabilities of the evaluation rows, by the model of all training rows."""
        return self.predict(self.train, self.measured)

    @cached_property
    def tuning(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of the tuning rows, by a model of the other training rows, and their outcomes."""
        return self.predict(self.fit_on, self.tune_on), self.y[self.tune_on]

    def predict(self, fitted_on: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Return the probabilities of the given rows by a model of other rows."""
        fitted = classifier(self.model, self.seed).fit(self.X[fitted_on], self.y[fitted_on])
        return fitted.predict_proba(self.X[asked])[:, 1]

    def learned(self, labels: np.ndarray) -> np.ndarray:
        """Return the predictions of the last model of MetaCal for the evaluation rows, from labels of training rows."""
        fitted = learner(self.model).fit(self.X[self.train], labels)
        return np.clip(fitted.predict(self.X[self.measured]), 0, 1)

    def ecc(self, cost: str, predicted: np.ndarray) -> float:
        return _ecc(cost, self.y[self.measured], predicted)


def scores(name: str, model: str, seed: int) -> Found:
    """Return ECC on the evaluation rows of each method that maps scores, tuned as in the paper."""
    split = Split(name, model, seed)
    temperatures, pairs = _temperatures(), _pairs(seed)
    predicted = {
        "NoCal": split.p,
        "IR": cb.Isotonic(extremes=True).fit(*split.tuning)(split.p),
        "TS": _scaled(split.p, _best(temperatures, *split.tuning, EQUAL)),
        "PS": _scaled(split.p, _best(pairs, *split.tuning, EQUAL)),
    }
    found = {f"{cost}: {method}": split.ecc(cost, q) for cost in COSTS for method, q in predicted.items()}
    for cost, kind in COSTS.items():
        found[f"{cost}: CATS"] = split.ecc(cost, _scaled(split.p, _best(temperatures, *split.tuning, kind)))
        found[f"{cost}: CAPS"] = split.ecc(cost, _scaled(split.p, _best(pairs, *split.tuning, kind)))
    found |= {f"linear: {method}": split.ecc("linear", q) for method, q in _by_default(split).items()}
    return found | (_other_trees(split) if model == "tree" else {})


def isotonic(name: str, model: str, seed: int) -> Found:
    """Return ECC of variants of isotonic regression: R's step function, fitted on training rows, with two errors."""
    split = Split(name, model, seed)
    p, (rough, _), known = split.p, split.tuning, split.predict(split.train, split.train)

    def fitted(score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return cb.Isotonic(extremes=True).fit(score, y)(p)

    predicted = {
        "IR, upper block": _upper_block(*split.tuning)(p),
        "IR, on training rows": fitted(known, split.y[split.train]),
        "IR, left sorted": np.sort(fitted(p, split.y[split.measured])),
        "IR, 0 outside": np.where((p < rough.min()) | (p > rough.max()), 0.0, fitted(*split.tuning)),
    }
    return {f"{cost}: {method}": split.ecc(cost, q) for cost in COSTS for method, q in predicted.items()}


def _upper_block(score: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """R's ``as.stepfun(isoreg(score, y))``: scores between two blocks belong to the upper one."""
    knots = np.unique(score)
    fitted = cb.Isotonic(extremes=True).fit(score, y)(knots)
    return lambda p: fitted[np.minimum(np.searchsorted(knots, p, side="left"), knots.size - 1)]


def metacal(name: str, model: str, seed: int) -> Found:
    """Return ECC on the evaluation rows of MetaCal, which takes most of the time."""
    split = Split(name, model, seed)
    others = OTHER_ROUNDS if model == "tree" else ()
    draws = _bootstrapped(split, max((ROUNDS, *others)))
    found = {}
    for rounds in others:
        labels = cb.metrics.optimal_prediction(draws[:, :rounds], COSTS["linear"])
        found[f"linear: MetaCal, R = {rounds}"] = split.ecc("linear", split.learned(labels))
    # The order of draws does not matter, and many rows have the same: their label is computed once.
    vectors, row, n = np.unique(np.sort(draws[:, :ROUNDS], axis=1), axis=0, return_inverse=True, return_counts=True)
    for cost, kind in COSTS.items():
        if model == "forest" and cost != "linear":  # the paper has forests with linear costs only
            continue
        found[f"{cost}: MetaCal"] = split.ecc(cost, split.learned(cb.metrics.optimal_prediction(vectors, kind)[row]))
        if cost != "linear" and seed < _LOCAL_SEEDS:
            labels, above = _by_local_search(vectors, n, kind)
            found[f"{cost}: MetaCal, L-BFGS-B"] = split.ecc(cost, split.learned(labels[row]))
            found[f"{cost}: L-BFGS-B above the least cost"] = above
    return found


PARTS: dict[str, Callable[[str, str, int], Found]] = {"scores": scores, "isotonic": isotonic, "MetaCal": metacal}


def timed(part: str, name: str, model: str, seed: int) -> Found:
    """Return a part of a split and its running time."""
    began = time.perf_counter()
    found = PARTS[part](name, model, seed)
    return found | {f"seconds, {part}": time.perf_counter() - began}


def _ecc(cost: str, y: np.ndarray, p: np.ndarray) -> float:
    return cb.metrics.ECC(cost=COSTS[cost], bins=BINS).value(cb.ScoreTable.from_arrays(y, p))


def _temperatures() -> list[Line]:
    return [(float(slope), 0.0) for slope in _GRID]


def _pairs(seed: int) -> list[Line]:
    return [(float(a), float(b)) for a, b in np.random.default_rng(seed).choice(_GRID, (200, 2))]


def _scaled(p: np.ndarray, line: Line) -> np.ndarray:
    """Scale as R does: the logit of 0 stays minus infinity. (The library clips, with a note.)"""
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / (1 + np.exp(-(line[0] * (np.log(p) - np.log1p(-p)) + line[1])))


def _best(lines: Iterable[Line], p: np.ndarray, y: np.ndarray, cost: Cost) -> Line:
    """Return the line with the least ECC on the tuning rows, the first of several."""
    score, row = np.unique(p, return_inverse=True)
    n, k = np.bincount(row), np.bincount(row, y)

    def ecc(line: Line) -> float:
        moved = _scaled(score, line)
        bin_ = np.searchsorted(np.arange(1, 10) / 10, moved, side="left")  # closed on the right
        size, ones, predicted = (np.bincount(bin_, values, 10) for values in (n, k, n * moved))
        full = size > 0
        return float(np.sum(size[full] / size.sum() * cost(predicted[full] / size[full], ones[full] / size[full])))

    return min(lines, key=ecc)


def _by_default(split: Split) -> dict[str, np.ndarray]:
    """Return the results of the default settings of the library, with linear costs."""
    calibrators = {
        "CATS, continuous": cb.calibrators.CATS(COSTS["linear"], bins=BINS),
        "CAPS, continuous": cb.calibrators.CAPS(COSTS["linear"], bins=BINS),
        "Isotonic, strict": cb.Isotonic(strict=True),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about scores of 0 and 1, in nearly every split
        return {method: calibrator.fit(*split.tuning)(split.p) for method, calibrator in calibrators.items()}


def _other_trees(split: Split) -> Found:
    """Return ECC without calibration, with a fully grown tree and with unstratified splits."""
    X, y, seed = split.X, split.y, split.seed
    grown = DecisionTreeClassifier(random_state=seed).fit(X[split.train], y[split.train])
    free, rest = train_test_split(np.arange(y.size), test_size=0.3, random_state=seed)
    return {
        "linear: NoCal, tree fully grown": split.ecc("linear", grown.predict_proba(X[split.measured])[:, 1]),
        "linear: NoCal, parts drawn freely": _ecc("linear", y[rest], split.predict(free, rest)),
    }


def _bootstrapped(split: Split, rounds: int) -> np.ndarray:
    """Return predictions of bootstrap models for the training rows, one column per model."""
    rng, train = np.random.default_rng(split.seed), split.train
    samples = (rng.choice(train, train.size) for _ in range(rounds))
    if split.model == "tree" and train.size >= _COMPILED:
        from research.reproduction.costs import trees

        features, y = trees.Features.of(split.X[train]), split.y[train]
        counts = (np.bincount(sample, minlength=split.y.size)[train] for sample in samples)
        return np.column_stack([trees.predictions(features, y, count) for count in counts])
    return np.column_stack([split.predict(sample, train) for sample in samples])


def _by_local_search(vectors: np.ndarray, n: np.ndarray, cost: Cost) -> tuple[np.ndarray, float]:
    """Return labels by the local search of the paper for nonlinear costs, and the relative excess of their mean cost.

    L-BFGS-B, with finite differences of 0.001 as in R's optim. The starting point of the paper is unknown; here it is
    1/2. Each vector of draws counts as n rows.
    """
    labels = np.array([_local_minimum(vector, cost) for vector in vectors])
    exact = cb.metrics.optimal_prediction(vectors, cost)
    reached, least = (np.average(_mean_cost(q, vectors, cost), weights=n) for q in (labels, exact))
    return labels, float(reached / least - 1) if least > 0 else 0.0


def _mean_cost(q: np.ndarray, vectors: np.ndarray, cost: Cost) -> np.ndarray:
    return np.asarray(cost(q[:, None], vectors)).mean(axis=1)


def _local_minimum(vector: np.ndarray, cost: Cost, step: float = 1e-3) -> float:
    def value(q: np.ndarray) -> float:
        return float(np.mean(cost(np.clip(q, 0, 1), vector)))

    def slope(q: np.ndarray) -> np.ndarray:
        low, high = np.maximum(q - step, 0), np.minimum(q + step, 1)
        return np.array([(value(high) - value(low)) / (high - low)[0]])

    return float(minimize(value, [0.5], jac=slope, method="L-BFGS-B", bounds=[(0, 1)]).x[0])
