"""Definition 3 and Proposition 1 of the TCE paper, by brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import count

import calibrant as cb
from calibrant import ScoreTable
from calibrant.metrics import OptimalBins, Partition, mean_within_error, total_error
from calibrant.metrics.bins import PAVA, PAVABC

small = st.lists(st.tuples(st.booleans(), st.integers(0, 8).map(lambda v: v / 8)), min_size=1, max_size=12)


def partitions(table):
    inner = range(1, len(table))
    for size in range(len(table)):
        for cuts in combinations(inner, size):
            yield Partition.from_cuts(table, list(cuts))


def rates_do_not_fall(partition):
    return (partition.k[:-1] * partition.n[1:] <= partition.k[1:] * partition.n[:-1]).all()


@given(small)
def test_proposition_1_no_bins_with_rising_rates_beat_pava(pairs):
    table = count(pairs)
    best = min(total_error(partition) for partition in partitions(table) if rates_do_not_fall(partition))
    assert total_error(PAVA()(table)) == pytest.approx(best, abs=1e-15)


@given(small, st.integers(0, 5), st.integers(0, 6))
def test_the_dynamic_programme_finds_the_optimum_under_limits(pairs, n_min, extra):
    table, n_max = count(pairs), n_min + extra
    allowed = [
        total_error(p) for p in partitions(table) if rates_do_not_fall(p) and p.n.min() >= n_min and p.n.max() <= n_max
    ]
    if not allowed:
        with pytest.raises(cb.InputError, match="n_min and n_max must allow bins with non-decreasing rates"):
            OptimalBins(n_min, n_max)(table)
        return
    found = OptimalBins(n_min, n_max)(table)
    assert total_error(found) == pytest.approx(min(allowed), abs=1e-15)
    assert rates_do_not_fall(found)
    assert n_min <= found.n.min() <= found.n.max() <= n_max


def test_pava_bc_comes_within_two_per_cent_of_the_optimum(rng):
    """On 20 calibrated samples of 150 rows with limits of 15 and 45: the mean excess of total error."""
    excess = []
    for _ in range(20):
        p = rng.random(150)
        table = ScoreTable.from_arrays(rng.random(150) < p, p)
        best = total_error(OptimalBins(15, 45)(table))
        excess.append(total_error(PAVABC(15, 45)(table)) / best - 1)
    assert abs(np.mean(excess)) < 0.02


def test_counts_too_large_for_products_in_64_bits_are_compared_exactly():
    n, k = np.full(4, 2**40), np.array([2**39, 2**38, 2**39 + 5, 2**40 - 1])
    table = ScoreTable.from_counts([0.1, 0.2, 0.3, 0.4], n, k)
    assert np.array_equal(OptimalBins()(table).start, PAVA()(table).start)


def test_empty_input_is_an_error():
    with pytest.raises(cb.InputError, match="partition must have at least one bin"):
        total_error(PAVA()(ScoreTable.empty()))
    with pytest.raises(cb.InputError, match="table must have at least one row"):
        OptimalBins()(ScoreTable.empty())
    with pytest.raises(cb.InputError, match="n_min and n_max"):
        OptimalBins(-5, 1)


def test_any_estimation_error_can_be_measured():
    table = ScoreTable.from_counts([0.1, 0.9], [4, 4], [1, 3])
    partition = PAVA()(table)

    def absolute(k, n, q):
        return (k * (1 - q) + (n - k) * q) / n

    assert total_error(partition, absolute) == pytest.approx(0.375)
    assert total_error(partition) == pytest.approx(0.1875)


def test_the_mean_within_bins_does_not_weigh_them():
    table = ScoreTable.from_counts([0.1, 0.9], [10, 2], [5, 2])
    partition = Partition.from_cuts(table, [1])
    assert mean_within_error(partition) == pytest.approx(0.125)
    assert total_error(partition) == pytest.approx(10 / 12 * 0.25)
