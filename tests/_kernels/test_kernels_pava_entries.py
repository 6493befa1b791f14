"""PAVA-BC over replicates, whose absent scores have n = 0, and over tables with many rows per block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import _kernels
from calibrant._kernels import reference

if _kernels.KERNEL != "compiled":
    pytest.skip("needs the compiled kernel", allow_module_level=True)

from calibrant._kernels import _core


def without_absent(n, k, n_min, n_max):
    """The blocks of the table without absent entries, as indices of entries."""
    present = np.flatnonzero(n > 0)
    return present[reference.pava_bc(n[present], k[present], n_min, n_max)].tolist()


def check(n, k, n_min, n_max):
    n, k = np.asarray(n, dtype=np.int64), np.asarray(k, dtype=np.int64)
    wanted = without_absent(n, k, n_min, n_max)
    assert _core.pava_bc_entries(n, k, n_min, n_max).tolist() == wanted
    for counts, largest in ((np.uint8, 255), (np.uint16, 65_535)):
        if n.max(initial=0) <= largest:
            assert _core.pava_bc_entries(n.astype(counts), k.astype(counts), n_min, n_max).tolist() == wanted


# runs of equal entries, long enough to fill whole blocks of 64
runs = st.lists(
    st.tuples(st.integers(1, 150), st.integers(0, 3), st.integers(0, 3)).map(lambda r: (r[0], r[1], min(r[1], r[2]))),
    max_size=12,
)


@given(runs, st.integers(0, 400), st.integers(0, 800))
def test_runs_of_equal_entries_give_the_blocks_of_the_reference(parts, n_min, extra):
    n = np.repeat([n for _, n, _ in parts], [size for size, _, _ in parts]).astype(np.int64)
    k = np.repeat([k for _, _, k in parts], [size for size, _, _ in parts]).astype(np.int64)
    check(n, k, n_min, n_min + extra)


SHAPES = {
    "uniform": lambda p: p,
    "rare": lambda p: 0.03 * p**2,
    "common": lambda p: 1 - 0.05 * (1 - p),
    "falling": lambda p: 0.6 - 0.3 * p,
    "constant": lambda p: np.full(p.size, 0.5),
    "nearly constant": lambda p: 0.3 + 0.02 * p,
    "waves": lambda p: 0.5 + 0.3 * np.sin(25 * p),
    "certain at both ends": lambda p: np.clip(3 * p - 1, 0, 1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 700, 6000])
def test_replicates_give_the_blocks_of_the_reference(rng, shape, rows):
    p = np.linspace(0, 1, rows)
    for n in (
        np.ones(rows, dtype=np.int64),
        rng.poisson(1.0, rows),
        rng.poisson(0.05, rows),
        rng.integers(0, 40, rows),
    ):
        k = rng.binomial(1, SHAPES[shape](p)) * n if rng.random() < 0.7 else rng.binomial(n, SHAPES[shape](p))
        total = int(n.sum())
        for n_min in {0, 1, 10, 33, int(total**0.5) + 1, total // 20, total // 3, total, total + 1}:
            for n_max in {n_min, n_min + 40, 2 * n_min + 1, total // 5, total}:
                check(n, k, n_min, n_max)


def test_counts_whose_products_need_more_than_64_bits(rng):
    for _ in range(60):
        n = rng.integers(0, 6, 300) * 2**33
        k = rng.binomial(5, np.linspace(0, 1, 300)) * (n // 5)
        n_min = int(rng.integers(0, n.sum() // 3))
        check(n, k, n_min, n_min + int(rng.integers(0, n.sum())))


def test_an_entry_with_more_events_than_rows_gives_some_blocks():
    """Wrong counts may give wrong blocks, but do not run forever: the products of this entry exceed 32 bits."""
    n = np.zeros(1024 + 64 * 20, dtype=np.uint8)
    k = n.copy()
    n[:1024], k[:1024] = 255, 200
    for j in range(12):
        n[1024 + 2 * j :: 64] = 1
    k[1024 + 63] = 150
    n[-64:] = 9
    assert _core.pava_bc_entries(n, k, 400, 10**9).tolist()[0] == 0


def test_a_window_without_rows_beside_a_block_of_many():
    n = np.concatenate([np.full(2200 * 64, 255), np.zeros(640), np.ones(64)])
    check(n, n // 2, 10, 10**9)


@pytest.mark.parametrize("size", [0, 1, 64, 200])
def test_a_replicate_without_rows_has_no_blocks(size):
    nothing = np.zeros(size, dtype=np.uint8)
    for n_min in (0, 5):
        assert _core.pava_bc_entries(nothing, nothing, n_min, 10).size == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_give_the_blocks_of_the_reference(rng, shape):
    """The sizes and limits at which the table is read in blocks, and those at which it is read row by row."""
    for rows in (500, 512, 5000):
        n = rng.choice([1, 1, 1, 2, 5], rows)
        k = rng.binomial(n, SHAPES[shape](np.linspace(0, 1, rows)))
        for n_min, n_max in ((0, rows), (15, 100), (16, 100), (rows // 20, rows // 5), (rows, rows)):
            assert np.array_equal(_kernels.pava_bc(n, k, n_min, n_max), reference.pava_bc(n, k, n_min, n_max))
