"""Sums over rows in any order: bitwise those of tables, on all instruction sets; the reference has none."""

import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kernel_results import agree

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference

KERNELS = [_kernels] if _kernels.KERNEL == "reference" else [_kernels, reference]
compiled_only = pytest.mark.skipif(_kernels.KERNEL != "compiled", reason="needs the compiled kernel")
EDGES = [b / 10 for b in range(11)]
score = st.floats(0, 1) | st.sampled_from([*EDGES, *np.nextafter(EDGES[:-1], 2), *np.nextafter(EDGES[1:], 0), 1e-9])
LABELS = ("int64", "int32", "int16", "int8", "float64", "float32")


def edges_of(bins):
    return cb.bins.EqualWidth(bins).row_edges()


def same(left, right):
    if left is None or right is None:
        return left is right
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@st.composite
def rows(draw):
    width = draw(st.sampled_from([np.float64, np.float32]))
    p = draw(hnp.arrays(float, st.integers(2, 60), elements=score)).astype(width)
    y = draw(hnp.arrays(bool, p.size)).astype(draw(st.sampled_from(LABELS)))
    return p, y


@given(rows(), st.sampled_from([1, 2, 3, 7, 10, 15, 100, 999]), st.randoms())
def test_row_sums_are_those_of_the_table_in_any_order(given_rows, bins, random):
    p, y = given_rows
    order = list(range(p.size))
    random.shuffle(order)
    assert reference.row_sums(p, y, edges_of(bins)) is None
    found, shuffled = (_kernels.row_sums(*rows, edges_of(bins)) for rows in ((p, y), (p[order], y[order])))
    assert same(found, shuffled)
    if found is None:
        return
    n, k, total = found
    partition = cb.bins.EqualWidth(bins)(cb.ScoreTable.from_arrays(y, p))
    assert same((n[n > 0], k[n > 0]), (partition.n, partition.k))
    assert np.array_equal(total[n > 0], partition._sums[2])
    place = np.searchsorted(edges_of(bins)[1:-1], p.astype(float), side="right")
    exact = [float(sum(map(Fraction, p[place == b].tolist()))) for b in range(bins)]
    assert total == pytest.approx(exact, rel=1e-15, abs=0)


@given(rows())
def test_row_errors_are_those_of_the_table(given_rows):
    p, y = given_rows
    assert reference.row_squared_errors(p, y) is None
    table, found = cb.ScoreTable.from_arrays(y, p), _kernels.row_squared_errors(p, y)
    of_table = [kernel.squared_errors(table.score, table.n, table.k) for kernel in KERNELS]
    assert agree(of_table[0], of_table[-1])
    assert found in (None, (table.positives, of_table[0]))


@given(st.lists(st.floats(2.0**-20, 1), min_size=1, max_size=50))
def test_sums_are_the_nearest_doubles(values):
    """Numbers of at least 2^-20 are multiples of 2^-72, so nothing is lost before the sum is rounded."""
    total = sum(map(Fraction, values))
    table = cb.ScoreTable.from_counts(values, [1] * len(values), [0] * len(values))
    sums = [kernel.bin_sums(table.score, table.n, table.k, np.array([0])) for kernel in KERNELS]
    assert agree(sums[0], sums[-1])
    assert sums[0][2][0] == (float(total) if _kernels.KERNEL == "compiled" else pytest.approx(float(total)))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 2**29)), min_size=1, max_size=8))
def test_many_equal_rows_are_added_exactly(pairs):
    scores, counts = zip(*pairs, strict=True)
    table = cb.ScoreTable.from_counts(scores, counts, counts)
    sums = [kernel.bin_sums(table.score, table.n, table.k, np.array([0])) for kernel in KERNELS]
    assert agree(sums[0], sums[-1])
    total = float(sum(Fraction(p) * n for p, n in pairs))
    assert sums[0][2][0] == pytest.approx(total, rel=1e-15, abs=0)


@pytest.mark.parametrize("tiny", [2.0**-27, 1e-12, 1e-300])
def test_sums_of_tiny_scores_keep_their_precision(tiny):
    p, y = np.array([tiny, 3 * tiny, 0.7]), np.array([0, 1, 1])
    table = cb.ScoreTable.from_arrays(y, p)
    for kernel in KERNELS:
        assert kernel.row_sums(p, y, edges_of(10)) is None
        assert kernel.bin_sums(table.score, table.n, table.k, np.array([0, 2]))[2][0] == 4 * tiny
    assert cb.ece(y, p) == cb.ece(table)


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf, -np.inf, -1e-300])
@pytest.mark.parametrize("row", [0, 5, 2047, 2048, 4999])
def test_invalid_scores_are_left_to_the_table(bad, row):
    p, y = np.linspace(0.1, 0.9, 5000), np.arange(5000) % 2
    p[row] = bad
    for kernel in KERNELS:
        assert kernel.row_sums(p, y, edges_of(10)) is None
        assert kernel.row_squared_errors(p, y) is None


@pytest.mark.parametrize("dtype", LABELS)
@pytest.mark.parametrize("bad", [2, -1, 3])
def test_invalid_labels_are_left_to_the_table(dtype, bad):
    p, y = np.linspace(0.1, 0.9, 3000), (np.arange(3000) % 2).astype(dtype)
    y[2900] = bad
    for kernel in KERNELS:
        assert kernel.row_sums(p, y, edges_of(10)) is None
        assert kernel.row_squared_errors(p, y) is None


@pytest.mark.parametrize("bad", [0.5, np.nan])
def test_fractions_are_no_labels(bad):
    p, y = np.array([0.2, 0.3]), np.array([1.0, bad])
    for kernel in KERNELS:
        assert kernel.row_sums(p, y, edges_of(10)) is None
        assert kernel.row_squared_errors(p, y) is None


def digest():
    rng = np.random.default_rng(7)
    p = np.where(rng.random(20_001) < 0.2, rng.integers(0, 11, 20_001) / 10, rng.beta(0.5, 2, 20_001))
    y = (rng.random(p.size) < p).astype(np.int8)
    found = [
        _kernels.row_sums(p.astype(t), y.astype(u), edges_of(b)) for t in "df" for u in LABELS for b in (1, 10, 70)
    ]
    found += [_kernels.row_squared_errors(p.astype(t), y.astype(u)) for t in "df" for u in LABELS]
    return hashlib.sha256(b"".join(np.asarray(c).tobytes() for sums in found for c in sums)).hexdigest()


@compiled_only
@pytest.mark.parametrize("instructions", ["", "generic"])
def test_both_instruction_sets_give_the_same_bytes(instructions):
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_kernels_row_sums as t; print(t.digest())"
    here = Path(__file__).parent
    child = subprocess.run(
        [sys.executable, "-c", code, str(here), str(here.parent)],
        env={**os.environ, "CALIBRANT_INSTRUCTIONS": instructions},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == digest()


# The lower-case functions.

FUNCTIONS = (cb.ece, cb.metrics.mce, cb.metrics.rmsce, cb.metrics.ecc, cb.metrics.bias, cb.brier)
WITHOUT_ORDER = (*FUNCTIONS, cb.log_loss, cb.metrics.stratified_brier, cb.metrics.oe_ratio)


@pytest.fixture
def columns():
    rng = np.random.default_rng(3)
    p = np.round(rng.beta(0.8, 2, 5000), 3)
    return (rng.random(p.size) < p**1.2).astype(int), p


@pytest.mark.parametrize("function", WITHOUT_ORDER)
def test_functions_of_arrays_equal_those_of_tables_bitwise(function, columns, monkeypatch):
    y, p = columns
    expected = function(cb.ScoreTable.from_arrays(y, p))
    frequency = np.arange(y.size) % 3 + 1
    repeated = function(np.repeat(y, frequency), np.repeat(p, frequency))
    assert repeated == function(y, p, frequency=frequency)
    assert function(y, p, missing="raise") == function(list(y), list(p)) == expected
    if _kernels.KERNEL == "compiled":  # then the rest needs no table
        monkeypatch.setattr(cb.ScoreTable, "from_arrays", None)
        monkeypatch.setattr(_kernels, "count", None)
    assert (
        function(y, p) == function(y[::-1], p[::-1]) == function(y == 1, p) == function(y.astype("u2"), p) == expected
    )


@pytest.mark.filterwarnings("ignore::calibrant.CalibrantWarning")
@pytest.mark.parametrize("function", [cb.log_loss, cb.metrics.stratified_brier, cb.metrics.oe_ratio])
@given(rows())
def test_metrics_of_classes_equal_those_of_tables_for_all_scores(function, given_rows):
    p, y = given_rows
    y[:2] = 0, 1
    assert function(y, p) == function(cb.ScoreTable.from_arrays(y, p))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("y", "p", "text"),
    [
        ([0, 0, 0], [0.2, 0.5, 0.1], "no row has the event"),
        ([1, 1], [0.2, 0.5], "every row has the event"),
        ([0, 1, 1], [0.0, 1.0, 0.0], "hard labels"),
    ],
)
def test_notes_about_the_rows_are_kept(function, y, p, text):
    with pytest.warns(cb.CalibrantWarning, match=text):
        function(np.array(y), np.array(p))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_are_those_of_the_table(function, columns):
    y, p = columns
    with pytest.raises(cb.InputError, match=r"y_prob must lie in \[0, 1\]"):
        function(y, p * 100)
    with pytest.raises(cb.InputError, match="y_true"):
        function(y + 1, p)
    with pytest.raises(cb.InputError, match="equally long"):
        function(y[1:], p)
    with pytest.raises(cb.InputError, match="missing value"):
        function(y, np.where(p > 0.5, np.nan, p))


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("bins", [1, 3, 10, 49, 1000, 2000])
def test_edges_belong_to_the_same_bins_as_in_a_table(closed, bins):
    edges = np.arange(bins + 1) / bins
    p = np.concatenate([edges, np.nextafter(edges[:-1], 2), np.nextafter(edges[1:], -1), [0.123]])
    y = (np.arange(p.size) % 3 == 0).astype(int)
    chosen = cb.bins.EqualWidth(bins, closed=closed)
    assert cb.ece(y, p, bins=chosen) == cb.ECE(bins=chosen)(y, p).value


def test_wrong_settings_and_wrong_columns_are_refused(columns):
    y, p = columns
    with pytest.raises(cb.InputError, match="n_bins"):
        cb.ece(y, p, n_bins=0)
    with pytest.raises(cb.InputError, match="y_prob"):
        cb.ece(y, p * 100)
    with pytest.raises(TypeError, match="n_bin"):
        cb.ece(y, p, n_bin=3)
