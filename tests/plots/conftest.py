"""Rows of a model, its evaluation in groups, and an empty figure."""

import numpy as np
import pytest

import calibrant as cb


@pytest.fixture
def rows(rng):
    """600 rows of an overconfident model."""
    p = rng.beta(2, 5, 600)
    return rng.random(600) < p**1.4, p


@pytest.fixture
def evaluation(rng):
    """An evaluation of three groups, one of which is miscalibrated."""
    p = rng.beta(2, 5, 3000)
    group = rng.choice(["north", "south", "$east"], 3000)
    y = rng.random(3000) < np.where(group == "south", p**1.6, p)
    return cb.evaluate(y, p, by=group, n_resamples=99)


@pytest.fixture
def figure():
    from matplotlib.figure import Figure

    return Figure(figsize=(8, 6), layout="constrained")
