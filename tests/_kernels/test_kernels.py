"""Compiled kernel = reference kernel = row-by-row oracle, and every decision = scipy's."""

import os
import subprocess
import sys

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kernel_results import agree
from scipy.stats import binom, binomtest
from strategies import score, tables

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference
from calibrant._kernels.scipy_binomial import binomial_pvalue

RUNNING = _kernels.KERNEL
compiled_only = pytest.mark.skipif(RUNNING != "compiled", reason=f"needs the compiled kernel; {RUNNING} runs")

sizes = st.integers(1, 40)


def same(left, right):
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(left, right, strict=True))


# counting


@given(hnp.arrays(float, st.integers(0, 200), elements=score), st.randoms(use_true_random=False))
def test_counting_equals_counting_by_hand(p, random):
    y = np.array([random.random() < 0.4 for _ in p], dtype=np.int64)
    values, n, k = _kernels.count(p, y)
    by_hand = {v: (int(sum(p == v)), int(sum(y[p == v]))) for v in p}
    assert {v: (a, b) for v, a, b in zip(values, n, k, strict=True)} == by_hand
    assert (np.diff(values) > 0).all()


SHAPES = {
    "uniform": lambda r, n: r.random(n),
    "rare": lambda r, n: r.beta(0.05, 5, n),
    "grid": lambda r, n: r.integers(0, 101, n) / 100,
    "one value": lambda r, n: np.full(n, 0.25),
    "float32 values": lambda r, n: r.random(n).astype(np.float32).astype(float),
    "clusters that share their leading bits": lambda r, n: 0.5 + r.integers(0, 40, n) * 2.0**-50 * (r.random(n) < 0.9),
    "subnormal": lambda r, n: r.random(n) * 1e-310,
    "borders": lambda r, n: r.choice([0.0, -0.0, 1.0, np.nextafter(0, 1), np.nextafter(1, 0)], n),
}


@compiled_only
@pytest.mark.parametrize("rows", [1, 2, 25, 1000, 70_000, 300_000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counting_is_the_same_on_both_kernels(rng, shape, rows, dtype):
    p = SHAPES[shape](rng, rows).astype(dtype)
    y = (rng.random(rows) < 0.3).astype(np.int64)
    assert same(_kernels.count(p, y), reference.count(p, y))


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "f4", "f8"])
def test_labels_of_every_type_count_the_same(rng, dtype):
    p, y = rng.random(500), rng.integers(0, 2, 500)
    assert same(_kernels.count(p, y.astype(dtype)), reference.count(p, y))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e-300, 1.0000000000000002, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counting_refuses_invalid_probabilities(rng, bad, dtype):
    p = rng.random(100).astype(dtype)
    p[37] = bad
    if 0 <= p[37] <= 1:
        p[37] = -1  # float32 rounded the value into the range
    assert _kernels.count(p, np.zeros(100, dtype=np.int64)) is None


@pytest.mark.parametrize("bad", [2, -1, 127])
def test_counting_refuses_invalid_labels(bad):
    assert _kernels.count(np.array([0.1, 0.2]), np.array([1, bad])) is None


# PAVA-BC


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 20), st.integers(0, 40))
def test_pava_bc_is_algorithm_2_without_ties(y, n_min, extra):
    n_max = 2 * n_min + extra
    if n_min >= len(y):
        n_min = len(y) // 2
    k = np.array(y, dtype=np.int64)
    starts = _kernels.pava_bc(np.ones_like(k), k, n_min, n_max)
    wanted, _ = oracles.pava_bc_blocks(y, n_min, n_max)
    assert np.diff(np.append(starts, len(y))).tolist() == wanted


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=50), st.integers(0, 30), sizes)
def test_pava_bc_with_ties_is_its_definition(rows, n_min, extra):
    y, p = [y for y, _ in rows], [v / 9 for _, v in rows]
    _, n, k = _kernels.count(np.array(p), np.array(y, dtype=np.int8))
    starts = _kernels.pava_bc(n, k, n_min, n_min + extra - 1)
    wanted = oracles.pooled_pava_bc_blocks(p, y, n_min, n_min + extra - 1)
    assert (np.add.reduceat(n, starts).tolist(), np.add.reduceat(k, starts).tolist()) == wanted


@compiled_only
@pytest.mark.parametrize("scale", [1, 2**33])  # the second needs products of more than 64 bits
def test_pava_bc_is_the_same_on_both_kernels(rng, scale):
    for _ in range(300):
        m = int(rng.integers(1, 120))
        n = rng.integers(1, 6, m) * scale
        k = rng.binomial(5, rng.random(m)) * n // 5
        n_min = int(rng.integers(0, n.sum() + 2))
        n_max = n_min + int(rng.integers(0, n.sum() + 2))
        assert np.array_equal(_kernels.pava_bc(n, k, n_min, n_max), reference.pava_bc(n, k, n_min, n_max))


@compiled_only
def test_pava_bc_of_real_weights_is_the_same_on_both_kernels(rng):
    for _ in range(300):
        m = int(rng.integers(1, 120))
        n = rng.choice([0.1, 0.2, 0.3, 1.5, 1.0], m)
        k = n * rng.integers(0, 2, m)
        n_min, extra = rng.random(2) * n.sum()
        assert np.array_equal(
            _kernels.pava_bc(n, k, n_min, n_min + extra), reference.pava_bc(n, k, n_min, n_min + extra)
        )


# sums


@compiled_only
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_sums_agree_on_both_kernels(rng, dtype):
    p = np.sort(rng.random(10_000))
    n = rng.integers(1, 9, p.size).astype(dtype)
    start = np.unique(np.append(0, rng.integers(0, p.size, 30)))
    assert agree(_kernels.bin_sums(p, n, n // 2, start), reference.bin_sums(p, n, n // 2, start))


@compiled_only
def test_bad_starts_are_refused():
    p, n = np.array([0.1, 0.2]), np.array([1, 1])
    for start in ([0, 2], [1, 1], [-1]):
        with pytest.raises(ValueError, match="start"):
            _kernels.bin_sums(p, n, n, np.array(start))


# windows


@given(hnp.arrays(float, st.integers(0, 30), elements=score), hnp.arrays(float, st.integers(0, 60), elements=score))
def test_values_are_located_among_edges(edges, values):
    edges = np.unique(edges)
    found = _kernels.locate(edges, values)
    assert found.tolist() == [int(np.sum(edges <= value)) for value in values]
    assert found.dtype == np.int64


@compiled_only
@given(tables, st.sampled_from([1, 2**33]), st.booleans())
def test_venn_abers_has_the_same_bits_on_both_kernels(table, scale, weighted):
    n, k = table.n * scale, table.k * scale
    if weighted:
        n, k = n * 1.1, k * 1.1
    assert same(_kernels.venn_abers(n, k), reference.venn_abers(n, k))


@compiled_only
def test_windows_have_the_same_bits_on_both_kernels(rng):
    for rows in (1, 2, 50, 3000):
        p = np.sort(rng.choice([rng.random(rows), rng.integers(0, 9, rows) / 9]))
        rate = rng.random(rows)
        for window in {1, max(1, rows // 10), rows}:
            ours = _kernels.window_distances(p, rate, window)
            assert np.array_equal(ours, reference.window_distances(p, rate, window))
    with pytest.raises(ValueError, match="window"):
        _kernels.window_distances(p, rate, 0)


# decisions


def decisions(k, n, p, alpha):
    """What the running kernel decides, for one score a bin."""
    each = np.arange(p.size)
    return _kernels.rejected(p, np.ones(p.size, dtype=np.int64), each, n, k, alpha).astype(bool)


def near_a_border(rng, k, n, p, alpha, tries=60):
    """Move p along a bisection to where the p-value crosses alpha, then away from it by 1e-3 .. 1e-12."""
    low, high = p.copy(), np.where(p > k / n, 1.0, 0.0)  # towards certain rejection
    for _ in range(tries):
        middle = (low + high) / 2
        reject = binomial_pvalue(k, n, middle) <= alpha
        low, high = np.where(reject, low, middle), np.where(reject, middle, high)
    away = 10.0 ** rng.uniform(-12, -3, p.size) * rng.choice([-1, 1], p.size)
    return np.clip(high * (1 + away), 0, 1)


def random_tests(rng, size, largest):
    n = np.exp(rng.uniform(0, np.log(largest), size)).astype(np.int64)
    p = np.where(rng.random(size) < 0.5, rng.random(size), 10.0 ** rng.uniform(-6, 0, size))
    k = rng.binomial(n, p)
    p = np.clip(p + rng.normal(0, 2, size) * np.sqrt(p * (1 - p) / n), 0, 1)
    return k, n, p


def test_pvalues_have_the_bits_of_scipys(rng):
    k, n, p = random_tests(rng, 1500, 10**6)
    wanted = [binomtest(int(a), int(b), float(c)).pvalue for a, b, c in zip(k, n, p, strict=True)]
    assert np.array_equal(binomial_pvalue(k, n, p), wanted)


@pytest.mark.parametrize("alpha", [1e-9, 0.001, 0.05, 0.3, 0.9, 0.9999])
def test_decisions_are_those_of_scipy(rng, alpha):
    k, n, p = random_tests(rng, 6000, 10**6)
    p[::3] = near_a_border(rng, k[::3], n[::3], np.clip(k[::3] / n[::3], 1e-9, 1 - 1e-9), alpha)
    assert np.array_equal(decisions(k, n, p, alpha), binomial_pvalue(k, n, p) <= alpha)


def test_decisions_of_every_small_bin_on_a_grid():
    """All (k, n) up to n = 40 against 400 scores each, where the accepted set has its holes."""
    for n in (*range(1, 31), 34, 40, 42):
        p = np.arange(401) / 400
        for k in range(n + 1):
            rejected = _kernels.rejected(
                p, np.ones(p.size, dtype=np.int64), np.array([0]), np.array([n]), np.array([k]), 0.05
            )
            many = np.full(p.size, k), np.full(p.size, n), p
            assert rejected[0] == (binomial_pvalue(*many) <= 0.05).sum(), (k, n)


# (alpha, n, k): the borders between rejected, accepted again, and rejected for good
HOLES = {
    (0.05, 30, 1): (0.1632, 0.1751, 0.1772),
    (0.05, 42, 0): (0.0798, 0.0891, 0.0892),
    (0.05, 34, 2): (0.1884, 0.1998, 0.2011),
    (0.1, 18, 0): (0.1404, 0.1626, 0.1627),
}


@pytest.mark.parametrize(("alpha", "n", "k"), HOLES)
def test_the_accepted_scores_are_not_an_interval(alpha, n, k):
    first, again, last = HOLES[alpha, n, k]
    inside = np.linspace(again - 1e-4, last + 1e-4, 1001)  # the borders are known to four digits
    accepted = inside[binomial_pvalue(np.full(1001, k), np.full(1001, n), inside) > alpha]
    p = np.array([first - 2e-4, first + 2e-4, accepted[accepted.size // 2], last + 2e-4])
    assert decisions(np.full(4, k), np.full(4, n), p, alpha).tolist() == [False, True, False, True]
    dense = np.linspace(k / n, min(1, last + 0.05), 5000)
    total = _kernels.rejected(dense, np.ones(5000, dtype=np.int64), np.array([0]), np.array([n]), np.array([k]), alpha)
    assert total[0] == (binomial_pvalue(np.full(5000, k), np.full(5000, n), dense) <= alpha).sum()


@pytest.mark.parametrize("n", [10**5, 10**6, 10**7, 10**8, 10**9])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.97])
def test_runs_of_scores_in_large_bins_are_decided_like_single_ones(rng, n, rate):
    k = round(n * rate)
    spread = 3 * np.sqrt(max(rate * (1 - rate), 1 / n) / n)
    p = np.unique(np.clip(rate + rng.uniform(-spread, spread, 300), 0, 1))
    total = _kernels.rejected(p, np.ones(p.size, dtype=np.int64), np.array([0]), np.array([n]), np.array([k]), 0.05)
    assert total[0] == (binomial_pvalue(np.full(p.size, k), np.full(p.size, n), p) <= 0.05).sum()


def test_bins_beyond_the_verified_size_use_scipy():
    n, k = 10**10, 10**7
    p = np.array([0.0009, 0.001, 0.0010001])
    total = _kernels.rejected(p, np.array([5, 7, 11]), np.array([0]), np.array([n]), np.array([k]), 0.05)
    each = [binomtest(k, n, float(q)).pvalue <= 0.05 for q in p]
    assert total[0] == np.dot(each, [5, 7, 11])


@pytest.mark.parametrize("p", [0.0, 1.0, 1e-280, 1 - 2**-53])
@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 50), (1, 50), (49, 50), (50, 50)])
def test_borders_of_the_unit_interval(p, k, n):
    wanted = binomtest(k, n, p).pvalue <= 0.05
    assert decisions(np.array([k]), np.array([n]), np.array([p]), 0.05)[0] == wanted


@pytest.mark.parametrize("p", [5e-324, 1e-310, 1e-300, 1e-291])
def test_scores_too_small_for_scipy_are_decided(p):
    k, n = np.array([0, 1, 2, 50]), np.full(4, 50)
    assert decisions(k, n, np.full(4, p), 0.05).tolist() == [False, True, True, True]
    assert binomial_pvalue(k, n, np.full(4, p)).tolist() == [1, 50 * p, 0, 0]


def test_ties_of_the_two_tails_count_as_in_scipy():
    """p = 1/2 makes both tails equally likely to the last bit or two."""
    n = np.arange(1, 400)
    for k in (0, 1, 2, 5):
        m = n[n >= k]
        half = np.full(m.size, 0.5)
        alpha = float(2 * binom.cdf(k, 60, 0.5))
        assert np.array_equal(
            decisions(np.full(m.size, k), m, half, alpha), binomial_pvalue(np.full(m.size, k), m, half) <= alpha
        )


# which kernel runs


@compiled_only
def test_the_compiled_kernel_takes_no_function_from_the_reference():
    from calibrant._kernels import compiled

    for name in compiled.__all__:
        assert getattr(_kernels, name) is getattr(compiled, name)
        assert getattr(compiled, name).__module__ in (compiled.__name__, f"{_kernels.__name__}._core"), name


def test_the_environment_forces_a_kernel():
    wanted = os.environ.get("CALIBRANT_KERNEL")
    assert wanted in (None, "", RUNNING)


# sums over a table


@given(tables)
def test_sums_over_a_table_agree_and_are_those_of_rows(table):
    weighted = cb.ScoreTable(table.score, table.n / 3, table.k / 3, table.n / 9, table.k / 9)
    for each in (table, weighted):
        for name in ("squared_errors", "cumulative_extremes"):
            ours = getattr(_kernels, name)(each.score, each.n, each.k)
            assert agree(ours, getattr(reference, name)(each.score, each.n, each.k))
    rows = [(p, j < k) for p, n, k in zip(table.score, table.n, table.k, strict=True) for j in range(n)]
    squares = sum((p - y) ** 2 for p, y in rows)
    assert _kernels.squared_errors(table.score, table.n, table.k) == pytest.approx(squares, abs=1e-12)
    path = [0.0]
    for p, n, k in zip(table.score, table.n, table.k, strict=True):
        path.append(path[-1] + (k - n * p))
    assert _kernels.cumulative_extremes(table.score, table.n, table.k) == (min(path), max(path))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_bins_that_are_shared_among_threads_give_the_same_sums_and_decisions(rng, monkeypatch, threads):
    compiled = pytest.importorskip("calibrant._kernels.compiled", reason="no compiled kernel", exc_type=ImportError)
    score = np.unique(rng.random(5000))
    n = rng.integers(1, 9, score.size)
    k = rng.binomial(n, score)
    for start in ([0], [0, 1], [0, 4998], np.arange(0, score.size, 7), np.arange(score.size)):
        start = np.asarray(start, dtype=np.int64)  # noqa: PLW2901
        monkeypatch.setattr(compiled, "thread_count", lambda rows, work: 1)
        sums = compiled.bin_sums(score, n, k, start)
        rejected = compiled.rejected(score, n, start, sums[0], sums[1], 0.05)
        monkeypatch.setattr(compiled, "thread_count", lambda rows, work: threads)
        for one, other in zip(sums, compiled.bin_sums(score, n, k, start), strict=True):
            assert one.tobytes() == other.tobytes()
            assert one.dtype == other.dtype
        assert np.array_equal(compiled.rejected(score, n, start, sums[0], sums[1], 0.05), rejected)


@pytest.mark.parametrize("entries", [1, 90, 700, 5000])
@pytest.mark.parametrize("most", [1, 3, 300])
def test_sums_of_a_replicate_do_not_depend_on_those_computed_with_it(rng, entries, most):
    score, n = np.sort(rng.random(entries)), rng.integers(1, most + 1, entries)
    size, linear = int(n.sum()), (score**2, 1 - 2 * score)
    blocks = _kernels.TestedBlocks(size // 20, max(size // 5, 1), 0.05)
    plan = _kernels.Plan([np.arange(0, entries, 17)], [10], [blocks], [linear, linear])
    replicates = _kernels.replicates(score, n, rng.binomial(n, score), plan)
    for draw in (replicates.simulate, replicates.resample):
        together = draw(5, 0, 11)
        for first, count in ((0, 1), (3, 1), (2, 5), (9, 2)):
            alone = draw(5, first, count)
            assert all(np.array_equal(x, y[first : first + count]) for x, y in zip(alone, together, strict=True))


# groups


@compiled_only
@pytest.mark.parametrize("rows", [0, 1, 1000, 70_000, 300_000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [1, 3, 50, 5000])
def test_groups_are_counted_the_same_on_both_kernels(rng, shape, rows, dtype, groups):
    p = SHAPES[shape](rng, rows).astype(dtype)
    y = (rng.random(rows) < 0.3).astype(np.int8)
    group = rng.integers(0, groups, rows).astype(np.int32)
    assert same(_kernels.count_groups(p, y, group, groups), reference.count_groups(p, y, group, groups))


def test_groups_are_counted_as_each_group_alone(rng):
    p, y = rng.integers(0, 101, 20_000) / 100, rng.integers(0, 2, 20_000).astype(np.int8)
    group = rng.integers(0, 7, 20_000).astype(np.int32)
    start, *columns = _kernels.count_groups(p, y, group, 9)  # two groups have no rows
    for g in range(9):
        own = group == g
        alone = _kernels.count(p[own], y[own])
        assert same([column[start[g] : start[g + 1]] for column in columns], alone)


@compiled_only
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [1, 50])
def test_counts_are_identical_for_every_number_of_threads(rng, shape, dtype, groups):
    from calibrant._kernels import _core

    p = SHAPES[shape](rng, 400_000).astype(dtype)
    y, group = rng.integers(0, 2, p.size).astype(np.int8), rng.integers(0, groups, p.size).astype(np.int32)
    start, table = _core.count_groups(p, y, group, groups, 1)
    for threads in (2, 3, 16):
        again, other = _core.count_groups(p, y, group, groups, threads)
        assert np.array_equal(start, again)
        assert same(table, other)
        assert same(_core.count(p, y, 1), _core.count(p, y, threads))


def test_one_group_with_most_rows_and_outliers_beyond_the_sample(rng):
    """The first digit comes from a sample of rows: all of these have one score, and the other rows lie outside."""
    p = np.full(200_000, 0.5)
    p[1::1000], p[2::1000] = rng.random(200) * 0.5, 0.5 + rng.random(200) * 0.5
    y, group = rng.integers(0, 2, p.size).astype(np.int8), np.zeros(p.size, dtype=np.int32)
    group[5::5000] = 3
    assert same(_kernels.count(p, y), reference.count(p, y))
    assert same(_kernels.count_groups(p, y, group, 4), reference.count_groups(p, y, group, 4))


@pytest.mark.parametrize("bad", [-1, 3, 2**31 - 1])
def test_numbers_of_groups_are_checked(bad):
    p, y = np.full(100, 0.5), np.zeros(100, dtype=np.int8)
    group = np.zeros(100, dtype=np.int32)
    group[40] = bad
    assert _kernels.count_groups(p, y, group, 3) is None
    p[3] = np.nan
    assert _kernels.count_groups(p, y, np.zeros(100, dtype=np.int32), 3) is None


@pytest.mark.parametrize("groups", [1, 4])
def test_merging_equals_counting_at_once(rng, groups):
    p, y = rng.integers(0, 1001, 3000) / 1000, rng.integers(0, 2, 3000).astype(np.int8)
    group = rng.integers(0, groups, 3000).astype(np.int32)
    for cut in (0, 1, 1700, 3000):
        parts = [_kernels.count_groups(p[s], y[s], group[s], groups) for s in (slice(cut), slice(cut, None))]
        assert same(_kernels.merge_groups(*parts), _kernels.count_groups(p, y, group, groups))
        assert same(reference.merge_groups(*parts), _kernels.merge_groups(*parts))


@compiled_only
def test_merging_refuses_tables_that_do_not_fit():
    good = (np.array([0, 1]), np.array([0.5]), np.array([2]), np.array([1]))
    for start in ([0, 2], [1, 1], [0, 1, 1], [-1, 1], []):
        with pytest.raises(ValueError, match="start must rise"):
            _kernels.merge_groups((np.array(start, dtype=np.int64), *good[1:]), good)


@pytest.mark.parametrize("size", [0, 1, 2, 24, 25, 5_000, 70_000, 300_000])
@pytest.mark.parametrize("kind", ["uniform", "tied", "near", "rare", "ends"])
def test_rows_are_ordered_by_score_and_then_by_row(rng, size, kind):
    score = {
        "uniform": lambda: rng.random(size),
        "tied": lambda: rng.integers(0, 50, size) / 49,
        "near": lambda: 0.3 + rng.integers(-20, 20, size) * 2.0**-54,  # differ in the last bits only
        "rare": lambda: rng.random(size) ** 300,
        "ends": lambda: np.array([0.0, -0.0, 5e-324, 1 - 2.0**-53, 1.0])[rng.integers(0, 5, size)],
    }[kind]()
    order = _kernels.row_order(score)
    assert order.dtype == np.int32
    assert np.array_equal(order, np.argsort(score, kind="stable"))
    assert np.array_equal(order, reference.row_order(score))


@pytest.mark.parametrize("wrong", [np.nan, -5e-324, 1 + 2.0**-52, np.inf])
def test_rows_without_a_valid_score_have_no_order(wrong):
    for kernel in (_kernels, reference):
        with pytest.raises(ValueError, match="score must lie between 0 and 1"):
            kernel.row_order(np.array([0.5, wrong]))


@pytest.mark.parametrize("distinct", [1, 300, 5000])
def test_values_are_encoded_in_order_of_appearance(rng, distinct):
    values = rng.integers(0, 2**64, distinct, dtype=np.uint64)[rng.integers(0, distinct, 20_000)]
    first, code = _kernels.encode(values, 20_000)
    assert np.array_equal(values[first][code], values)
    assert (np.diff(first) > 0).all()
    assert np.unique(values).size == first.size
    assert same((first, code), reference.encode(values, 20_000))
    assert _kernels.encode(values, first.size - 1) is None
    assert _kernels.encode(values, first.size) is not None


@pytest.mark.skipif(_kernels.KERNEL != "compiled", reason="needs the compiled kernel")
def test_the_compiled_kernel_calls_no_function_of_the_reference():
    code = "import sys; from calibrant import _kernels; print([name for name in sys.modules if 'reference' in name])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "calibrant._kernels.reference" not in child.stdout
