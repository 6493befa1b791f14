"""The cheapest shift of each bin of point predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import equal_size_bins
from strategies import point_columns, point_rows

import calibrant as cb
from calibrant import regression as rg


@given(point_rows, st.sampled_from([(1, 1), (1, 3), (5, 1), (0, 1)]))
def test_the_shift_of_linear_costs_is_a_quantile_and_no_other_is_cheaper(pairs, units):
    y, p = point_columns(pairs)
    cost = cb.costs.LinearCost(over=units[0], under=units[1])
    found = rg.cost_by_bin(y, p, cost=cost, n_bins=1)
    shift = found.per_bin["shift"][0]
    grid = np.concatenate([y - p, [0.0]])
    cheapest = min(np.mean(cost(p + s, y)) for s in grid)
    assert np.mean(cost(p + shift, y)) == pytest.approx(cheapest, abs=1e-9)
    assert found.value == pytest.approx(np.mean(cost(p, y)), abs=1e-12)
    assert found.avoidable == pytest.approx(found.value - cheapest, abs=1e-9)


def test_other_costs_are_minimised_too(skewed):
    y, p = skewed

    def squared(p, a):
        return np.where(p > a, 1.0, 4.0) * (p - a) ** 2

    found = rg.cost_by_bin(y, p, cost=squared, n_bins=3)
    labels = equal_size_bins(p, 3)
    for b in range(3):
        own = labels == b
        tries = np.linspace(-5, 5, 4001)
        best = min(np.mean(squared(p[own] + s, y[own])) for s in tries)
        assert found.per_bin["least"][b] <= best + 1e-9
