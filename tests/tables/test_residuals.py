"""Sums of squared weights and residuals, against loops over rows."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.tables.score_table import event_squares, residual_variance, row_squares, squared_residuals

RNG = np.random.default_rng(0)
P = RNG.integers(1, 10, 200) / 10
Y = (RNG.random(200) < P).astype(int)
W = RNG.exponential(size=200)


def by_score(values):
    return [values[score == P].sum() for score in np.unique(P)]


@pytest.mark.parametrize("weights", [None, W], ids=["counts", "importance weights"])
def test_sums_equal_those_of_rows(weights):
    w = np.ones(200) if weights is None else weights
    table = cb.ScoreTable.from_arrays(Y, P, sample_weight=weights)
    assert row_squares(table) == pytest.approx(by_score(w**2))
    assert event_squares(table) == pytest.approx(by_score(w**2 * Y))
    fitted = table.score**2
    assert squared_residuals(table, fitted) == pytest.approx(by_score(w**2 * (Y - P**2) ** 2))


def test_the_variance_of_counts_is_bernoulli_and_that_of_weights_is_robust():
    counts, weighted = cb.ScoreTable.from_arrays(Y, P), cb.ScoreTable.from_arrays(Y, P, sample_weight=W)
    assert residual_variance(counts) == pytest.approx(by_score(P * (1 - P)))
    assert residual_variance(weighted) == pytest.approx(by_score(W**2 * (Y - P) ** 2))
