"""Evaluations for tests and screenshots of the report: five models that differ in kind, rate, verdict and groups."""

import numpy as np

import calibrant as cb

__all__ = ["CASES"]

CLASSES = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
LEVELS, NORMAL_QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95], np.array([-1.645, -0.674, 0, 0.674, 1.645])


def _expit(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def calibrated(n_resamples: int) -> cb.Evaluation:
    """Calibrated scores."""
    rng = np.random.default_rng(7)
    p = _expit(rng.normal(-0.6, 1.3, 20_000))
    return cb.evaluate(rng.random(p.size) < p, p, n_resamples=n_resamples)


def rare(n_resamples: int) -> cb.Evaluation:
    """Scores of an event that occurs in about one of a thousand rows; most are many times too high."""
    rng = np.random.default_rng(8)
    z = rng.normal(-8, 1.5, 200_000)
    return cb.evaluate(rng.random(z.size) < _expit(z), _expit(0.6 * z - 0.4), n_resamples=n_resamples)


def many_groups(n_resamples: int) -> cb.Evaluation:
    """300 groups, six of which are miscalibrated."""
    rng = np.random.default_rng(9)
    group, z = rng.integers(0, 300, 30_000), rng.normal(-0.6, 1.2, 30_000)
    y = rng.random(z.size) < _expit(z + np.where(group % 50 == 3, 1.8, 0.0))
    stores = np.array([f"store {g:03d}" for g in group], dtype=object)
    return cb.evaluate(y, _expit(z), by=stores, n_resamples=n_resamples)


def multiclass(n_resamples: int) -> cb.Evaluation:
    """Overconfident probabilities of ten classes."""
    rng = np.random.default_rng(10)
    true = rng.dirichlet(np.full(10, 2.0), 3000)
    code = (true.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(0, 9)
    predicted = true**1.7
    predicted /= predicted.sum(axis=1, keepdims=True)
    return cb.evaluate(np.array(CLASSES)[code], predicted, classes=CLASSES, n_resamples=n_resamples)


def quantiles(n_resamples: int) -> cb.Evaluation:
    """Quantiles of a regression that are too close to each other, in two groups."""
    rng = np.random.default_rng(11)
    mean = rng.normal(50, 12, 2000)
    y = mean + 6 * rng.normal(size=2000)
    forecast = cb.Quantiles(LEVELS, mean[:, None] + 4 * NORMAL_QUANTILES)
    return cb.evaluate(y, forecast, by=rng.choice(["north", "south"], 2000), n_resamples=n_resamples)


CASES = {make.__name__: make for make in (calibrated, rare, many_groups, multiclass, quantiles)}
