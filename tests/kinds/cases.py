"""One sample of each kind of forecast, for the tests of all kinds; a new kind of the registry fails them without one.

>>> y, right, wrong, make = draw("point", size=3)
>>> make(right).kind
'point'
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import expit, softmax

import calibrant as cb
from calibrant.kinds import base

KINDS = tuple(base.KINDS)
AUDITED = tuple(name for name, kind in base.KINDS.items() if kind.optional("audit.AUDIT"))
MONITORED = tuple(name for name, kind in base.KINDS.items() if kind.optional("windows"))

each_kind = pytest.mark.parametrize("kind", KINDS)


class Sample(NamedTuple):
    """Outcomes, the columns of a calibrated and of a miscalibrated model, and the function to a forecast."""

    y: Any
    right: Any
    wrong: Any
    make: Callable[[Any], Any]


def draw(kind: str, size: int = 800, seed: int = 0) -> Sample:
    """Return a sample of one kind; forecasts of some rows are ``make(right[rows])``."""
    return _SAMPLES[kind](np.random.default_rng(seed), size)


def _scores(rng, size):
    x = rng.normal(size=size)
    return Sample((rng.random(size) < expit(x)).astype(int), expit(x), expit(x + 1), lambda p: p)


def _classes(rng, size, make=lambda p: p):
    z = rng.normal(size=(size, 3))
    p = softmax(z, axis=1)
    y = (rng.random((size, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return Sample(y, p, softmax(2.5 * z, axis=1), make)


def _labels(rng, size):
    """Each class is mistaken for each other one equally often, or class 0 is predicted too rarely."""
    y = _classes(rng, size).y
    guess = np.where(rng.random(size) < 0.8, y, rng.permutation(y))
    moved = np.where((guess == 0) & (rng.random(size) < 0.6), 1, guess)
    return Sample(y, guess, moved, cb.Labels)


def _numbers(rng, size, make=cb.Point):
    x = rng.normal(size=size)
    return Sample(x + rng.normal(size=size), x, x + 0.6, make)


_SAMPLES = {
    "binary": _scores,
    "multiclass": _classes,
    "ordinal": lambda rng, size: _classes(rng, size, cb.Ordinal),
    "labels": _labels,
    "point": _numbers,
    "distribution": lambda rng, size: _numbers(rng, size, lambda mean: cb.Gaussian(mean, 1.0)),
}
