"""Decisions of whole bins from acceptance sets: the same as those of scipy for each score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import _kernels
from calibrant._kernels import reference
from calibrant._kernels.scipy_binomial import binomial_pvalue

if _kernels.KERNEL != "compiled":
    pytest.skip("needs the compiled kernel", allow_module_level=True)

from calibrant._kernels import _core

ALPHAS = [1e-200, 1e-30, 1e-9, 0.001, 0.05, 0.3, 0.5, 0.9, 0.999]
SIZES = [40, 3000, 10**6, 9 * 10**7]


def powers(rows):
    """Counts whose sum tells which rows it contains."""
    return 2 ** np.arange(rows, dtype=np.int64)


def binary(total, rows):
    return [bool(total >> i & 1) for i in range(rows)]


def decided_by_a_set(p, n, k, alpha):
    """Decisions for sorted scores of one bin, 62 at a time; scipy decides what the set leaves undecided."""
    reject = []
    for part in np.array_split(p, -(-p.size // 62)):
        total = _kernels.rejected(part, powers(part.size), np.array([0]), np.array([n]), np.array([k]), alpha)
        reject += binary(int(total[0]), part.size)
    return reject


def decided_by_scipy(p, n, k, alpha):
    return (binomial_pvalue(np.full(p.size, k), np.full(p.size, n), p) <= alpha).tolist()


def borders(n, k, alpha, start, certain):
    """Where the decision changes first on a bisection from an accepted to a rejected score."""
    accepted, rejected = start, certain
    for _ in range(70):
        middle = (accepted + rejected) / 2
        if decided_by_scipy(np.array([middle]), n, k, alpha)[0]:
            rejected = middle
        else:
            accepted = middle
    return rejected


def scores_around_borders(rng, n, k, alpha):
    """Sorted scores near both limits of acceptance at many distances, at steps, at the rate, at 0 and at 1."""
    near = []
    for certain in ([0.0] if k > 0 else []) + ([1.0] if k < n else []):
        limit = borders(n, k, alpha, k / n, certain)
        away = 10.0 ** rng.uniform(-16, -1, 40) * rng.choice([-1, 1], 40)
        steps = rng.uniform(-8, 8, 40) / n
        near.append(np.concatenate([limit * (1 + away), 1 - (1 - limit) * (1 + away), limit + steps]))
    rate = np.array([0.0, 1.0, k / n, np.nextafter(k / n, 0), np.nextafter(k / n, 1), (k + 1) / n, (k - 1) / n])
    p = np.concatenate([*near, rate, np.linspace(0, 1, 30)])
    return np.unique(p[(p >= 0) & (p <= 1)])


# Each level once and each size at least twice; make test-all has all pairs.
PAIRS = [
    pytest.param(alpha, largest, marks=() if (i - j) % len(SIZES) == 0 else pytest.mark.slow)
    for i, alpha in enumerate(ALPHAS)
    for j, largest in enumerate(SIZES)
]


@pytest.mark.parametrize(("alpha", "largest"), PAIRS)
def test_decisions_around_borders_are_those_of_scipy(rng, alpha, largest):
    for rate in (1e-7, 0.003, 0.2, 0.5, 0.8, 1.0):
        n = int(rng.integers(largest // 2, largest))
        k = int(rng.binomial(n, rate))
        p = scores_around_borders(rng, n, k, alpha)
        assert decided_by_a_set(p, n, k, alpha) == decided_by_scipy(p, n, k, alpha), (n, k)


@given(
    st.integers(1, 80).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.floats(1e-6, 0.999),
    st.lists(st.one_of(st.floats(0, 1), st.fractions(0, 1, max_denominator=80).map(float)), min_size=9, max_size=60),
)
def test_decisions_of_any_scores_are_those_of_scipy(bin_, alpha, scores):
    (n, k), p = bin_, np.unique(scores)
    assert decided_by_a_set(p, n, k, alpha) == decided_by_scipy(p, n, k, alpha)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 42, 97])
def test_an_alpha_equal_to_a_pvalue_decides_as_scipy(n):
    """The p-value of a score of the bin itself is alpha, so that the decision is equality."""
    for k in range(0, n + 1, max(1, n // 7)):
        p = np.unique(np.append(np.linspace(0, 1, 41), k / n))
        for alpha in np.unique(binomial_pvalue(np.full(p.size, k), np.full(p.size, n), p)):
            if 0 < alpha < 1:
                assert decided_by_a_set(p, n, k, alpha) == decided_by_scipy(p, n, k, alpha), (k, alpha)


@pytest.mark.parametrize(("n", "k"), [(43_357_632, 0), (11_766_004, 1), (61_711_586, 929)])
@pytest.mark.parametrize("alpha", [0.6, 0.82, 0.99, 0.999])
def test_ties_below_the_mean_are_not_in_the_upper_tail(n, k, alpha):
    """Above 1e7 rows, k + 1 can be within the tolerance of a tie of k although it is below the mean."""
    away = np.array([-1e-6, -1e-8, -1e-12, 1e-12, 1e-8, 5e-8, 9e-8, 1.1e-7, 1e-6, 1e-5])
    p = (k + 1) / n * (1 + away)
    assert decided_by_a_set(p, n, k, alpha) == decided_by_scipy(p, n, k, alpha)
    mirrored = np.unique(1 - p)
    assert decided_by_a_set(mirrored, n, n - k, alpha) == decided_by_scipy(mirrored, n, n - k, alpha)


def test_the_last_steps_are_ties_at_one_half(rng):
    """At p = 1/2 the probabilities of k and n - k are equal."""
    for n in (9, 10, 61, 500, 10_001):
        for k in rng.integers(0, n // 2 + 1, 4):
            p = np.sort(0.5 + rng.choice([-1, 1], 40) * 10.0 ** rng.uniform(-16, -6, 40))
            for alpha in (0.05, float(binomial_pvalue(np.array([k]), np.array([n]), np.array([0.5]))[0])):
                if 0 < alpha < 1:
                    assert decided_by_a_set(p, n, k, alpha) == decided_by_scipy(p, n, k, alpha), (n, k)


def bins(rng, rows, counts):
    p = np.sort(rng.random(rows))
    start = np.unique(np.append(0, rng.integers(0, rows, 25)))
    bin_n = np.add.reduceat(counts, start)
    rate = np.add.reduceat(p, start) / np.diff(np.append(start, rows))
    return p, start, bin_n, rng.binomial(bin_n, np.clip(rate + rng.normal(0, 0.02, rate.size), 0, 1))


@pytest.mark.parametrize("rows", [30, 1000, 20_000])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_replicates_are_decided_like_tables_without_their_absent_scores(rng, rows, alpha):
    n = rng.poisson(1.0, rows).astype(np.int64)
    n[0] = 1
    p, start, bin_n, bin_k = bins(rng, rows, n)
    keep = bin_n > 0
    total, undecided = _core.rejected_entries(p, n.astype(np.uint8), start, bin_n, bin_k, alpha)
    present, starts = n > 0, np.concatenate([[0], np.cumsum(n > 0)])[start]
    wanted = reference.rejected(p[present], n[present], starts[keep], bin_n[keep], bin_k[keep], alpha)
    assert undecided.size == 0
    assert np.array_equal(total[keep], wanted)


def test_a_bin_of_replicates_is_decided_equally_when_its_set_is_reused(rng):
    """The same 40 bins of (n, k), 50 times, and more different bins than the cache holds."""
    rows = 40 * 20
    p = np.tile(np.sort(rng.random(20)), 40)
    start = np.arange(0, rows, 20)
    ones = np.ones(rows, dtype=np.int64)
    for _ in range(50):
        bin_n = rng.integers(1, 8, 40)
        bin_k = rng.binomial(bin_n, 0.5)
        total, undecided = _core.rejected_entries(p, ones.astype(np.uint8), start, bin_n, bin_k, 0.2)
        assert undecided.size == 0
        assert np.array_equal(total, reference.rejected(p, ones, start, bin_n, bin_k, 0.2))
    n = np.repeat(np.arange(1, 201), np.arange(2, 202))
    k = np.concatenate([np.arange(size + 1) for size in range(1, 201)])
    p = np.tile([0.1, 0.45, 0.9], n.size)
    total, undecided = _core.rejected_entries(p, np.ones(p.size, dtype=np.uint8), np.arange(0, p.size, 3), n, k, 0.05)
    ones = np.ones(p.size, dtype=np.int64)
    assert undecided.size < 10
    assert np.abs(total - reference.rejected(p, ones, np.arange(0, p.size, 3), n, k, 0.05)).sum() <= undecided.size


@pytest.mark.parametrize("alpha", [1e-9, 0.05, 0.5, 0.99])
def test_hardly_any_score_is_left_to_scipy(rng, alpha):
    for rows in (1000, 200_000):
        ones = np.ones(rows, dtype=np.int64)
        p, start, bin_n, bin_k = bins(rng, rows, ones)
        _, undecided = _core.rejected(p, ones, start, bin_n, bin_k, alpha)
        assert undecided.size <= 2


def test_absent_scores_are_never_undecided():
    n, k = 2 * 10**9, 10**6  # beyond the verified size, so all scores are undecided
    p = np.array([0.0009, 0.001, 0.0010001])
    arguments = np.array([0]), np.array([n]), np.array([k]), 0.05
    total, undecided = _core.rejected_entries(p, np.array([1, 0, 2], dtype=np.uint8), *arguments)
    assert (total.tolist(), undecided.tolist()) == ([0], [0, 2])
