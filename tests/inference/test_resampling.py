"""Replicates: the same bytes on both kernels and any number of threads, and the right distribution."""

import hashlib
import importlib
import math
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_results import TOLERANCE, agree
from numpy.random import SeedSequence
from strategies import tables

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference_replicates
from calibrant._kernels.interface import poisson_shares
from calibrant._support.random_streams import Stream, Streams, seed_sequence
from calibrant.inference import resampling
from calibrant.inference.paired_rows import MIN_CLUSTERS, PairedRows, check_clusters, compact
from calibrant.inference.resampling import draw_replicates, drop_missing, metric_values, one_by_one
from calibrant.inference.table_replicates import TableReplicates, bootstrap_sampler, null_sampler
from calibrant.metrics.losses import absolute_gap, max_distance, signed_gap
from calibrant.metrics.metric import declare
from calibrant.metrics.norms import sup, weighted_l1, weighted_mean
from calibrant.tables.score_table import BinTotals, event_squares, residual_variance

compiled_only = pytest.mark.skipif(
    _kernels.KERNEL != "compiled", reason=f"needs the compiled kernel; {_kernels.KERNEL} runs"
)

KERNELS = (_kernels, reference_replicates)
keys = st.integers(0, 2**64 - 1)
numbers = st.integers(0, 2**32 - 1)


def test_random_words_are_those_of_the_authors():
    """Known answers of Philox4x32-10 in the authors' Random123 library."""
    assert oracles.philox(0, 0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    words = reference_replicates.philox(0, 0, 0, np.zeros(1, dtype=np.uint64))
    assert [int(word[0]) for word in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@given(keys, numbers, st.integers(1, 300))
def test_resampling_equals_resampling_by_hand(key, replicate, size):
    wanted = oracles.draw(key, replicate, size)
    assert wanted.sum() == size
    for kernel in KERNELS:
        drawn = kernel.draw(key, replicate, size)
        assert drawn.dtype == np.int64
        assert np.array_equal(drawn, wanted)


@settings(max_examples=10)
@given(keys, numbers, st.integers(4096, 9000))
def test_many_rows_are_drawn_by_poisson_numbers_and_the_rest_one_by_one(key, replicate, size):
    shares = poisson_shares(size)
    exact = [
        (u + oracles.uniform(key, 1, replicate, i)) / 65536
        for i, u in enumerate(oracles.random_numbers(key, 0, replicate, size, 16))
    ]
    times = np.array([int(np.sum(shares <= u)) for u in exact])
    missing = size - times.sum()
    assert 0 <= missing < 13 * np.sqrt(size)
    for number in oracles.random_numbers(key, 2, replicate, missing, 32):
        times[number * size // 2**32] += 1
    for kernel in KERNELS:
        assert np.array_equal(kernel.draw(key, replicate, size), times)


def test_too_many_poisson_draws_are_drawn_again(monkeypatch):
    """Only then: here their mean is 1, so that half of the totals exceed the number of rows."""

    def shares(size):
        return np.cumsum([np.exp(-1.0) / math.factorial(i) for i in range(12)])

    for module in ("compiled", "reference_replicates"):
        if module != "compiled" or _kernels.KERNEL == "compiled":
            monkeypatch.setattr(importlib.import_module(f"calibrant._kernels.{module}"), "poisson_shares", shares)
    for replicate in range(6):
        drawn = [kernel.draw(1, replicate, 5000) for kernel in KERNELS]
        assert drawn[0].sum() == 5000
        assert np.array_equal(*drawn)


def test_poisson_shares_are_a_distribution_with_the_stated_mean():
    shares = poisson_shares(10**6)
    chance = np.diff(shares, prepend=0.0)
    assert np.sum(chance * np.arange(chance.size)) == pytest.approx(1 - 6e-3, rel=1e-12)
    assert (np.diff(shares) > 0).all()
    assert shares[-1] < 1
    assert poisson_shares(4095).size == 0


def made(kernel, table, plan=None):
    return kernel.replicates(table.score, table.n, table.k, plan or _kernels.Plan())


@given(tables, keys, numbers)
def test_a_replicate_is_the_table_of_its_resampled_rows(table, key, replicate):
    rows = [(s, j < k) for s, n, k in zip(table.score, table.n, table.k, strict=True) for j in range(n)]
    times = oracles.draw(key, replicate, len(rows))
    drawn = [row for row, t in zip(rows, times, strict=True) for _ in range(t)]
    wanted = cb.ScoreTable.from_arrays([y for _, y in drawn], [p for p, _ in drawn])
    for kernel in KERNELS:
        assert compact(table.score, *made(kernel, table).resampled(key, replicate)) == wanted


@given(tables, keys, numbers)
def test_null_events_are_rows_with_a_uniform_variate_below_the_score(table, key, replicate):
    scores = np.repeat(table.score, table.n).tolist()
    events = oracles.simulated_events(key, replicate, scores)
    wanted = np.add.reduceat(np.array(events, dtype=int), np.concatenate([[0], np.cumsum(table.n)[:-1]])).tolist()
    for kernel in KERNELS:
        assert made(kernel, table).simulated(key, replicate).tolist() == wanted


def plan_of(table, n_bins=7):
    size = int(table.size)
    score = table.score
    return _kernels.Plan(
        [cb.bins.EqualWidth(n_bins)(table).start, np.zeros(1, dtype=np.int64)],
        [n_bins, 3],
        [
            _kernels.TestedBlocks(size // 20, max(1, size // 5), 0.05),
            _kernels.TestedBlocks(0, size, 0.2),
            _kernels.TestedBlocks(math.isqrt(size), max(1, size // 5), 0.05),
        ],
        [(score**2, 1 - 2 * score), (np.sqrt(score), score)],
        [(i, is_absolute) for i in range(4) for is_absolute in (True, False)],
    )


def equal_sums(a, b):
    """Return whether sums of two kernels agree; decisions that one leaves to SciPy are not compared."""
    decided = a.rejected >= 0
    return agree(a._replace(rejected=a.rejected[decided]), b._replace(rejected=b.rejected[decided]))


@given(tables, keys, st.integers(1, 12))
def test_sums_of_both_kernels_agree(table, key, n_bins):
    plan = plan_of(table, n_bins)
    ours, its = (made(kernel, table, plan) for kernel in KERNELS)
    counts = [np.stack(columns) for columns in zip(*(its.resampled(key, i) for i in range(3)), strict=True)]
    for name, arguments in {"simulate": (key, 5, 3), "resample": (key, 5, 3), "measure": counts}.items():
        a, b = (getattr(kernel, name)(*arguments) for kernel in (ours, its))
        assert equal_sums(a, b)
        without = [made(kernel, table, replace(plan, keeps_sums=False)) for kernel in KERNELS]
        c, d = (getattr(kernel, name)(*arguments) for kernel in without)
        assert equal_sums(c, d)
        assert c.n.shape == c.k.shape == c.score.shape == (3, 0)
        assert np.array_equal(a.gaps, c.gaps)


@pytest.mark.parametrize("n_bins", [1, 2, 7, 8, 9, 10, 15, 16, 17, 100, 128, 129, 130, 257, 1000])
@pytest.mark.parametrize("kernel", KERNELS, ids=["ours", "its"])
def test_mean_gaps_are_bitwise_those_of_losses_and_norms(kernel, n_bins):
    """Also where bins are empty, and where NumPy adds up in halves."""
    rng = np.random.default_rng(n_bins)
    table = cb.ScoreTable.from_arrays(rng.random(700) < 0.4, rng.random(700))
    starts, bins = np.sort(rng.integers(0, 700, n_bins)), [n_bins]
    starts[0] = 0
    pairs = [(partition, is_absolute) for partition in (0, 1) for is_absolute in (True, False)]
    plan = _kernels.Plan([starts], bins, gaps=pairs)
    sums = made(kernel, table, plan).resample(4, 0, 30)
    for column, (partition, is_absolute) in zip(sums.gaps.T, pairs, strict=True):
        which = slice(partition * n_bins, (partition + 1) * n_bins)
        totals = BinTotals(sums.n[:, which], sums.k[:, which], sums.score[:, which])
        loss, norm = (absolute_gap, weighted_l1) if is_absolute else (signed_gap, weighted_mean)
        wanted = norm(loss(totals), totals.n)
        assert column.tobytes() == wanted.tobytes()


@dataclass(frozen=True)
class Tolerant:
    """A loss with a setting of its own, which is not a declaration."""

    gap: float = 0.05
    equals_gap: str = "tolerant"
    measures_gaps: ClassVar[bool] = True
    needs_sums_only: ClassVar[bool] = True
    is_elementwise: ClassVar[bool] = True

    def __call__(self, bins):
        return np.maximum(np.abs(bins.mean_score - bins.rate) - self.gap, 0)


@declare(is_mean=True, takes_rows=True)
def positive_part(values, sizes):
    """A norm that is the mean of values that are not negative, but not of others."""
    return np.sum(np.maximum(values, 0) * sizes, axis=-1) / np.sum(sizes, axis=-1)


class OwnQuantile(cb.bins.EqualSize):
    """Bins of a class that is derived from `EqualSize`."""


@pytest.mark.parametrize(
    "metric",
    [
        cb.GCE(cb.bins.EqualWidth(10), Tolerant(), weighted_l1),
        cb.GCE(cb.bins.EqualWidth(10), signed_gap, positive_part),
        cb.GCE(cb.bins.EqualSize(10), signed_gap, weighted_l1),
        cb.GCE(OwnQuantile(5), absolute_gap, weighted_l1),
    ],
    ids=["own setting", "own norm", "signed gaps under a norm of absolute values", "derived bins"],
)
def test_the_kernel_computes_only_the_gaps_that_are_declared(metric):
    found = TableReplicates(UNTIED, [metric, cb.ECE()])
    for values, sampler in ((found.bootstrap, bootstrap_sampler(UNTIED)), (found.null, null_sampler(UNTIED))):
        wanted = [metric.value(sampler(stream)) for stream in Streams(5, 0, 20)]
        assert values(Streams(5, 0, 20))[:, 0] == pytest.approx(wanted, rel=1e-12)


def test_sums_that_need_much_memory_are_not_started_ahead():
    """Several groups wait for their turn, each with the sums of all replicates."""
    for metric, is_started in (
        (cb.ECE(n_bins=1000), True),
        (cb.metrics.RMSCE(), True),
        (cb.metrics.RMSCE(n_bins=1000), False),
    ):
        submitted = []
        found = TableReplicates(UNTIED, [metric])
        found.start(lambda work, submitted=submitted: submitted.append(work), n_resamples=499, seed=SeedSequence(0))
        assert bool(submitted) == is_started


def test_a_loss_that_declares_no_gap_has_the_same_replicates():
    """The kernel computes the gaps of one, NumPy those of the other."""

    @declare(measures_gaps=True, needs_sums_only=True, is_elementwise=True)
    def own(partition):
        return np.abs(partition.mean_score - partition.rate)

    for bins in (cb.bins.EqualWidth(10), cb.bins.EqualSize(10)):
        metrics = [cb.GCE(bins, loss, weighted_l1) for loss in (absolute_gap, own)]
        for table in (UNTIED, COARSE):
            found = TableReplicates(table, metrics)
            for values in (found.bootstrap(Streams(5, 0, 50)), found.null(Streams(5, 0, 50))):
                assert np.array_equal(values[:, 0], values[:, 1])


LARGE = np.random.default_rng(3).random(20_000)
LARGE_TABLES = {
    "one row per score": cb.ScoreTable.from_arrays(np.random.default_rng(4).random(20_000) < LARGE, LARGE),
    "a few rows per score": cb.ScoreTable.from_arrays(np.random.default_rng(4).random(20_000) < LARGE, LARGE.round(4)),
    "up to 100 rows of a score": cb.ScoreTable.from_arrays(
        np.random.default_rng(4).random(20_000) < LARGE, np.where(LARGE < 0.99, LARGE.round(4), 0.995)
    ),
    "60,100 rows of a score": cb.ScoreTable.from_counts([0.2, 0.5, 0.51], [3, 60_100, 1], [1, 30_000, 1]),
}


@pytest.mark.parametrize("kind", LARGE_TABLES)
def test_sums_of_large_tables_agree_on_both_kernels(kind):
    table = LARGE_TABLES[kind]
    ours, its = (made(kernel, table, plan_of(table)) for kernel in KERNELS)
    for name in ("simulate", "resample"):
        a, b = (getattr(kernel, name)(11, 2, 2) for kernel in (ours, its))
        assert (a.rejected >= 0).any()
        assert equal_sums(a, b)


@compiled_only
@pytest.mark.parametrize("instructions", ["generic", "avx2", "avx512"])
def test_all_instruction_sets_give_the_same_bytes(instructions):
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/inference']; import test_resampling as t;"
        "from calibrant._kernels import _core; print(_core.instruction_set(), t.bytes_of_sums())"
    )
    child = run_python(code, CALIBRANT_INSTRUCTIONS=instructions)
    if "this processor must have it" in child.stderr:
        pytest.skip(f"this processor lacks {instructions}")
    assert child.stdout.split() == [instructions, bytes_of_sums()], child.stderr


def bytes_of_sums():
    found = b""
    for table in LARGE_TABLES.values():
        kernel = made(_kernels, table, plan_of(table))
        found += b"".join(
            each.tobytes() for sums in (kernel.simulate(1, 0, 3), kernel.resample(1, 0, 3)) for each in sums
        )
    start = np.arange(0, LARGE.size, 777)
    found += _kernels.signed_sums(1, 0, 3, np.column_stack([LARGE] * 5), start, None).tobytes()
    return hashlib.sha256(found).hexdigest()


@compiled_only
def test_an_unknown_instruction_set_is_refused():
    child = run_python("from calibrant._kernels import _core; _core.instruction_set()", CALIBRANT_INSTRUCTIONS="mmx")
    assert "CALIBRANT_INSTRUCTIONS must be generic, avx2 or avx512" in child.stderr


def run_python(code, **environment):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env={**os.environ, **environment}, cwd=root, capture_output=True, text=True, check=False
    )


METRICS = [
    cb.METRICS["bias"](),
    cb.ECE(),
    cb.ECE(n_bins=4),
    cb.metrics.ACE(),
    cb.metrics.ACE(n_bins=3),
    cb.metrics.MCE(),
    cb.metrics.RMSCE(),
    cb.TCE(),
    cb.TCE(alpha=0.2, bins=cb.bins.PAVABC(n_min=3, n_max=9)),
    cb.TCE(bins=cb.bins.PAVA()),
    cb.TCE(bins=cb.bins.EqualWidth(5)),
    cb.GCE(cb.bins.PAVABC(), cb.losses.RejectionRate(), sup),
    cb.metrics.ECC(cb.costs.LinearCost(under=3)),
    cb.metrics.Brier(),
    cb.METRICS["log_loss"](),
    cb.METRICS["auc"](),
    cb.GCE(cb.bins.EqualWidth(3), max_distance, sup),
]
UNTIED = cb.ScoreTable.from_arrays(np.random.default_rng(6).random(500) < 0.4, np.random.default_rng(5).random(500))
COARSE = cb.ScoreTable.from_arrays(
    np.random.default_rng(6).random(900) < 0.4, np.random.default_rng(5).random(900).round(1)
)


@pytest.mark.parametrize("table", [UNTIED, UNTIED.round(0.01), COARSE], ids=["no ties", "ties", "by scores"])
def test_values_are_those_of_the_tables_of_replicates(table):
    """The sums of the kernel against the metrics of the tables that the samplers return."""
    streams = Streams(5, 3, 20)
    found = TableReplicates(table, METRICS)
    for values, sampler in ((found.bootstrap, bootstrap_sampler(table)), (found.null, null_sampler(table))):
        wanted = [metric_values(METRICS, sampler(stream)) for stream in streams]
        assert values(streams) == pytest.approx(np.array(wanted), rel=1e-12, abs=1e-14)


def test_tables_of_any_number_of_rows_have_replicates():
    """Their counts are drawn, not their rows, which would not fit in memory."""
    score = np.array([0.2, 0.5, 0.8])
    for size in (10**6, 10**10, 10**15):
        n = np.full(3, size)
        table = cb.ScoreTable.from_counts(score, n, np.rint(n * score).astype(np.int64))
        found = TableReplicates(table, [cb.ECE(), cb.metrics.ACE(), cb.metrics.Brier()])
        for values in (found.bootstrap(Streams(5, 0, 50)), found.null(Streams(5, 0, 50))):
            assert values[:, 2] == pytest.approx(np.mean(score * (1 - score)), abs=5 / np.sqrt(size))
            assert (values[:, 0] > 0).all()
            assert (values[:, 0] < 5 / np.sqrt(size)).all()


def test_a_decision_that_needs_scipy_is_made_on_the_table():
    """With alpha of 0.9995 the kernel leaves all decisions to SciPy."""
    metric = cb.TCE(alpha=0.9995)
    found = TableReplicates(UNTIED, [metric, cb.ECE()]).null(Streams(5, 3, 4))
    wanted = [metric.value(null_sampler(UNTIED)(stream)) for stream in Streams(5, 3, 4)]
    assert found[:, 0] == pytest.approx(wanted)


@compiled_only
def test_unsupported_resampling_is_refused():
    core = importlib.import_module("calibrant._kernels._core")
    table = cb.ScoreTable.from_counts([0.1, 0.5], [5, 5], [1, 2])
    none = np.empty(0)
    with pytest.raises(ValueError, match="k must lie between 0 and n"):
        core.Replicates(table.score, table.k, table.n, none, [], [], [], [])
    with pytest.raises(ValueError, match="at most 2"):
        core.draw(1, 0, 2**32, none)
    with pytest.raises(ValueError, match="only with by_rows"):
        core.Replicates(table.score, table.n, table.k, none, [], [], [], [], by_rows=False).simulate(1, 0, 1)
    with pytest.raises(ValueError, match="must not fall"):
        core.Replicates(table.score, table.n, table.k, none, [np.array([0, 5])], [], [], [])
    with pytest.raises(ValueError, match="as long as the table"):
        core.Replicates(table.score, table.n, table.k, none, [], [], [], [(none, none)])


def sampled(make, table, count=3000):
    sampler = make(table)
    drawn = [sampler(stream) for stream in Streams(7, 0, count)]
    whole = np.zeros((count, 2, len(table)))
    for i, replicate in enumerate(drawn):
        place = np.searchsorted(table.score, replicate.score)
        whole[i, 0, place], whole[i, 1, place] = replicate.n, replicate.k
    return whole, drawn


TIED = cb.ScoreTable.from_counts([0.1, 0.4, 0.8], [200, 500, 300], [30, 180, 250])  # drawn by scores
LOOSE = cb.ScoreTable.from_counts([0.1, 0.4, 0.8], [2, 5, 3], [1, 2, 3])  # drawn row by row
WEIGHTED = cb.ScoreTable.from_arrays(
    [0, 1, 0, 1, 1, 0], [0.2, 0.2, 0.5, 0.5, 0.9, 0.9], sample_weight=[0.5, 1.5, 2.5, 1.0, 3.5, 0.7]
)


@pytest.mark.parametrize("table", [TIED, LOOSE], ids=["by scores", "row by row"])
def test_bootstrap_counts_are_multinomial(table):
    whole, drawn = sampled(bootstrap_sampler, table)
    n, k = whole[:, 0], whole[:, 1]
    assert (n.sum(axis=1) == table.size).all()
    assert all((t.n > 0).all() and (t.k <= t.n).all() for t in drawn)
    share = table.n / table.size
    error = 5 / np.sqrt(len(whole))
    assert n.mean(axis=0) == pytest.approx(table.n, abs=error * np.sqrt(table.n.max()))
    assert n.var(axis=0) == pytest.approx(table.size * share * (1 - share), rel=0.2)
    assert k.mean(axis=0) == pytest.approx(table.k, abs=error * np.sqrt(table.n.max()))


@pytest.mark.parametrize("table", [TIED, LOOSE], ids=["by scores", "row by row"])
def test_null_counts_are_binomial(table):
    whole, _ = sampled(null_sampler, table)
    assert (whole[:, 0] == table.n).all()
    expected, variance = table.n * table.score, table.n * table.score * (1 - table.score)
    assert whole[:, 1].mean(axis=0) == pytest.approx(expected, abs=5 * np.sqrt(variance.max() / len(whole)))
    assert whole[:, 1].var(axis=0) == pytest.approx(variance, rel=0.2)


def test_importance_weights_keep_mean_and_variance_of_sums():
    whole, drawn = sampled(bootstrap_sampler, WEIGHTED, 8000)
    assert all(t.importance for t in drawn)
    assert whole[:, 0].mean(axis=0) == pytest.approx(WEIGHTED.n, rel=0.06)
    assert whole[:, 0].var(axis=0) == pytest.approx(WEIGHTED.w2, rel=0.12)
    assert np.mean([t.k2.sum() for t in drawn]) == pytest.approx(WEIGHTED.k2.sum(), rel=0.06)


def test_the_null_of_importance_weights_has_the_variance_of_the_residuals():
    """Not that of so many trials: weights may depend on outcomes."""
    null, _ = sampled(null_sampler, WEIGHTED)
    assert (null[:, 0] == WEIGHTED.n).all()
    variance = residual_variance(WEIGHTED)
    error = 5 * np.sqrt(variance.max() / len(null))
    assert null[:, 1].mean(axis=0) == pytest.approx(WEIGHTED.n * WEIGHTED.score, abs=error)
    assert null[:, 1].var(axis=0) == pytest.approx(variance, rel=0.15)


def test_a_single_weighted_row_keeps_the_size_of_its_residual():
    table = cb.ScoreTable.from_arrays([1, 0], [0.2, 0.7], sample_weight=[2.5, 0.5])
    for seed in range(20):
        moved = null_sampler(table)(Stream(7, seed)).k - table.n * table.score
        assert np.abs(moved) == pytest.approx([2.5 * 0.8, 0.5 * 0.7])


def test_squared_weights_of_events_decide_the_variance():
    """Events of weight 4 beside others of weight 1: one score, so that proportions would be wrong."""
    table = cb.ScoreTable.from_arrays([1, 0, 0, 0, 0], [0.5] * 5, sample_weight=[4.5, 1, 1, 1, 1])
    assert event_squares(table) == pytest.approx(4.5**2)
    assert residual_variance(table) == pytest.approx(4.5**2 * 0.25 + 4 * 0.25)
    drawn = np.array([bootstrap_sampler(table)(Stream(7, i)).positives for i in range(4000)])
    assert drawn.mean() == pytest.approx(4.5, rel=0.1)
    assert drawn.var() == pytest.approx(4.5**2, rel=0.15)


def test_scores_of_0_and_1_do_not_reject_a_calibrated_model():
    table = cb.ScoreTable.from_counts([0.0, 1.0], [10, 10], [5, 5])
    drawn = null_sampler(table)(Stream(7, 0))
    assert drawn.k.tolist() == [0, 10]


def replicates():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    table = cb.ScoreTable.from_arrays(rng.random(300) < p, p)
    sampler = bootstrap_sampler(table)
    return draw_replicates(
        one_by_one(lambda stream: metric_values([cb.ECE(), cb.TCE()], sampler(stream))),
        purpose="bootstrap",
        n_resamples=40,
        seed=SeedSequence(3),
        rows=table.size,
    )


def test_results_with_threads_are_bitwise_identical(monkeypatch):
    alone = replicates()
    monkeypatch.setattr(resampling, "thread_count", lambda rows, work: 3)
    assert np.array_equal(replicates(), alone)


def test_metrics_of_replicates_agree_on_both_kernels():
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/inference']; import test_resampling as t;"
        "print(t.replicates().tobytes().hex())"
    )
    child = run_python(code, CALIBRANT_KERNEL="reference")
    found = np.frombuffer(bytes.fromhex(child.stdout)).reshape(-1, 2)
    assert found == pytest.approx(replicates(), rel=TOLERANCE, abs=TOLERANCE), child.stderr


def test_metrics_with_equal_bins_share_them():
    calls = []

    class Counting(cb.bins.EqualSize):
        def __call__(self, table):
            calls.append(1)
            return super().__call__(table)

    table = cb.ScoreTable.from_counts([0.1, 0.5], [5, 5], [1, 2])
    metrics = [cb.metrics.ACE(bins=Counting(2)), cb.metrics.MCE(bins=Counting(2)), cb.METRICS["auc"]()]
    assert metric_values(metrics, table) == [m.value(table) for m in metrics]
    assert len(calls) == 1 + 2


def test_an_undefined_metric_is_nan_and_noted():
    table = cb.ScoreTable.from_counts([0.1, 0.5], [5, 5], [0, 0])
    assert np.isnan(metric_values([cb.METRICS["auc"]()], table)[0])
    kept, notes = drop_missing(np.array([0.1, np.nan, 0.2]), "auc")
    assert (kept.size, notes[0].count) == (2, 1)
    with pytest.raises(
        cb.InputError, match="auc must exist in at least half of the replicates; it is undefined in 2 of 3"
    ):
        drop_missing(np.array([np.nan, np.nan, 0.2]), "auc")


@pytest.mark.parametrize("state", [-1, 1.5, "seed", True])
def test_a_random_state_must_be_one(state):
    with pytest.raises(cb.InputError, match="random_state"):
        seed_sequence(state)


def test_a_generator_advances_and_a_seed_does_not():
    rng = np.random.default_rng(0)
    assert seed_sequence(rng).entropy != seed_sequence(rng).entropy
    assert seed_sequence(5).entropy == seed_sequence(5).entropy == 5


# rows that belong together


def rows(size=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(size).round(2)
    return (rng.random(size) < p).astype(int), p, rng.integers(0, 40, size)


def test_paired_rows_are_resampled_together():
    y, p, _ = rows()
    paired, tables = PairedRows.read(y, [p, 1 - p])
    left, right = paired(Stream(7, 1))
    assert left.size == right.size == 400
    assert left.positives == right.positives
    assert np.allclose(np.sort(1 - right.score), left.score)
    assert np.array_equal(right.n[::-1], left.n)
    assert tables[0] == cb.ScoreTable.from_arrays(y, p)


def test_clusters_are_resampled_as_a_whole():
    y, _, cluster = rows()
    paired, _ = PairedRows.read(y, [cluster / 100 + 0.005], cluster=cluster)  # the score names the cluster
    (drawn,) = paired(Stream(7, 2))
    size = {round(c / 100 + 0.005, 6): int(np.sum(cluster == c)) for c in range(40)}
    assert all(n % size[round(float(s), 6)] == 0 for s, n in zip(drawn.score, drawn.n, strict=True))


def test_the_null_of_clusters_flips_their_residuals_together():
    """Sums of residuals per cluster keep their sizes: the score names the cluster."""
    y, p, cluster = rows()
    paired, (table,) = PairedRows.read(y, [p], cluster=cluster)
    by_hand = np.zeros((40, len(table)))
    np.add.at(by_hand, (cluster, paired.places[0]), y - p)
    sampler = null_sampler(table, paired)
    moved = np.array([sampler(Stream(7, i)).k - table.n * table.score for i in range(3000)])
    assert moved.mean(axis=0) == pytest.approx(0, abs=0.2)
    covariance = by_hand.T @ by_hand
    assert (moved.T @ moved / len(moved)) == pytest.approx(covariance, abs=0.35)
    signs = np.linalg.lstsq(by_hand.T, moved[0], rcond=None)[0]
    assert np.abs(signs) == pytest.approx(np.ones(40))


def test_the_null_of_weighted_clusters_weighs_residuals():
    y, p, cluster = rows()
    weight = 0.5 + p
    paired, (table,) = PairedRows.read(y, [p], cluster=cluster, sample_weight=weight)
    drawn = null_sampler(table, paired)(Stream(7, 0))
    assert drawn.n == pytest.approx(table.n)
    assert drawn.w2 == pytest.approx(table.w2)
    total = np.bincount(cluster, weights=weight * (y - p))
    sums = [null_sampler(table, paired)(Stream(7, i)).positives - np.sum(table.n * table.score) for i in range(3000)]
    assert np.var(sums) == pytest.approx(np.sum(total**2), rel=0.1)


@pytest.mark.parametrize("count", [0, 1, 9])
def test_few_clusters_are_refused(count):
    with pytest.raises(cb.InputError, match=f"at least 10 distinct values for inference; got {count}"):
        check_clusters(count)
    assert check_clusters(MIN_CLUSTERS) == 10


def test_frequencies_are_rows():
    y, p, _ = rows(50)
    w = np.arange(50) % 3 + 1
    paired, tables = PairedRows.read(y, [p], frequency=w)
    repeated, _ = PairedRows.read(np.repeat(y, w), [np.repeat(p, w)])
    assert paired(Stream(7, 3))[0] == repeated(Stream(7, 3))[0]
    assert not tables[0].importance


@pytest.mark.parametrize("option", ["sample_weight", "frequency"])
def test_rows_of_weight_or_frequency_0_are_ignored(option):
    y, p, cluster = rows(60)
    w = np.arange(60) % 3
    weighted, _ = PairedRows.read(y, [p], **{option: w})
    kept, _ = PairedRows.read(y[w > 0], [p[w > 0]], **{option: w[w > 0]})
    assert weighted(Stream(7, 1))[0] == kept(Stream(7, 1))[0]
    grouped, _ = PairedRows.read(y, [p], **{option: w}, cluster=cluster)
    assert grouped.n_draws == len(set(cluster[w > 0]))
    assert len(grouped(Stream(7, 1))[0]) > 0


def test_importance_weights_stay_weights():
    y, p, _ = rows(50)
    for weight in (np.linspace(0.1, 2, 50), np.arange(1, 51)):
        paired, _ = PairedRows.read(y, [p], sample_weight=weight)
        (drawn,) = paired(Stream(7, 3))
        assert drawn.importance
        assert (drawn.k <= drawn.n + 1e-12).all()
        assert (drawn.k2 <= drawn.w2 + 1e-12).all()


def test_frequencies_in_clusters_count():
    y, p, cluster = rows(50)
    paired, _ = PairedRows.read(y, [p], frequency=np.full(50, 2), cluster=cluster)
    (drawn,) = paired(Stream(7, 3))
    assert drawn.n.dtype == np.int64
    assert (drawn.n % 2 == 0).all()
