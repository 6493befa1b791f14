"""Replicates: the same bytes on both kernels and any number of threads, and the right distribution."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import SFC64, SeedSequence
from strategies import tables

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference
from calibrant._support.random_streams import seed_sequence
from calibrant.inference.metric_values import bootstrap_values, drop_missing, metric_values
from calibrant.inference.resampling import (
    MIN_CLUSTERS,
    PairedRows,
    bootstrap_sampler,
    check_clusters,
    map_replicates,
    null_sampler,
)
from calibrant.metrics.losses import max_distance
from calibrant.metrics.norms import sup
from calibrant.tables.residuals import event_squares, residual_variance

compiled_only = pytest.mark.skipif(
    _kernels.KERNEL != "compiled", reason=f"needs the compiled kernel; {_kernels.KERNEL} runs"
)

seeds = st.integers(0, 2**32 - 1)
KERNELS = (_kernels, reference)


@given(seeds, st.integers(1, 150))
def test_resampling_equals_resampling_by_hand(seed, size):
    wanted = oracles.draw(SFC64(seed).random_raw(75), size)
    assert wanted.sum() == size
    for kernel in KERNELS:
        drawn = kernel.draw(SFC64(seed), size)
        assert drawn.dtype == np.int64
        assert np.array_equal(drawn, wanted)


@given(tables, seeds)
def test_a_replicate_is_the_table_of_its_resampled_rows(table, seed):
    rows = [(s, j < k) for s, n, k in zip(table.score, table.n, table.k, strict=True) for j in range(n)]
    times = oracles.draw(SFC64(seed).random_raw(len(rows)), len(rows))
    drawn = [row for row, t in zip(rows, times, strict=True) for _ in range(t)]
    wanted = cb.ScoreTable.from_arrays([y for _, y in drawn], [p for p, _ in drawn])
    for kernel in KERNELS:
        assert cb.ScoreTable(*kernel.resample(table.score, table.n, table.k, SFC64(seed))) == wanted


@given(tables, seeds)
def test_null_events_are_rows_with_a_uniform_variate_below_the_score(table, seed):
    uniform = iter((SFC64(seed).random_raw(int(table.size)) >> np.uint64(11)) * 2.0**-53)
    wanted = [sum(next(uniform) < p for _ in range(n)) for p, n in zip(table.score, table.n, strict=True)]
    for kernel in KERNELS:
        assert kernel.redraw(table.score, table.n, SFC64(seed)).tolist() == wanted


@given(tables, seeds, st.integers(1, 12))
def test_sums_over_fixed_bins_are_those_of_the_replicate(table, seed, n_bins):
    metrics = [cb.ECE(n_bins=n_bins), cb.RMSCE(n_bins=n_bins), cb.ECC(cb.LinearCost(under=3), n_bins=n_bins)]
    replicate = cb.ScoreTable(*reference.resample(table.score, table.n, table.k, SFC64(seed)))
    wanted = [metric.value(replicate) for metric in metrics]
    assert bootstrap_values(table, metrics)(SFC64(seed)) == wanted
    start = cb.EqualWidth(n_bins)(table).start
    arguments = (table.score, table.n, table.k, start)
    ours, its = (kernel.resample_bins(*arguments, SFC64(seed)) for kernel in KERNELS)
    assert all(np.array_equal(a, b) for a, b in zip(ours, its, strict=True))


def test_metrics_that_need_more_than_sums_get_a_replicate():
    table = cb.ScoreTable.from_counts([0.1, 0.5, 0.7], [5, 5, 2], [1, 2, 2])
    for metrics in (
        [cb.ECE(), cb.TCE()],
        [cb.ACE()],
        [cb.ECE(), cb.ECE(n_bins=5)],
        [cb.GCE(cb.EqualWidth(3), max_distance, sup)],
    ):
        replicate = bootstrap_sampler(table)(SFC64(3))
        assert bootstrap_values(table, metrics)(SFC64(3)) == [m.value(replicate) for m in metrics]


@compiled_only
def test_unsupported_resampling_is_refused():
    core = importlib.import_module("calibrant._kernels._core")
    table = cb.ScoreTable.from_counts([0.1, 0.5], [5, 5], [1, 2])
    with pytest.raises(ValueError, match="four words"):
        core.resample(table.score, table.n, table.k, np.zeros(3, dtype=np.uint64))
    with pytest.raises(ValueError, match="k must lie between 0 and n"):
        core.resample(table.score, table.k, table.n, np.zeros(4, dtype=np.uint64))
    with pytest.raises(ValueError, match="at most 2"):
        core.draw(np.zeros(4, dtype=np.uint64), 2**32)


def sampled(make, table, count=3000):
    sampler = make(table)
    drawn = [sampler(SFC64(SeedSequence(7, spawn_key=(i,)))) for i in range(count)]
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
        moved = null_sampler(table)(SFC64(seed)).k - table.n * table.score
        assert np.abs(moved) == pytest.approx([2.5 * 0.8, 0.5 * 0.7])


def test_squared_weights_of_events_decide_the_variance():
    """Events of weight 4 beside others of weight 1: one score, so that proportions would be wrong."""
    table = cb.ScoreTable.from_arrays([1, 0, 0, 0, 0], [0.5] * 5, sample_weight=[4.5, 1, 1, 1, 1])
    assert event_squares(table) == pytest.approx(4.5**2)
    assert residual_variance(table) == pytest.approx(4.5**2 * 0.25 + 4 * 0.25)
    drawn = np.array([bootstrap_sampler(table)(SFC64(i)).positives for i in range(4000)])
    assert drawn.mean() == pytest.approx(4.5, rel=0.1)
    assert drawn.var() == pytest.approx(4.5**2, rel=0.15)


def test_scores_of_0_and_1_do_not_reject_a_calibrated_model():
    table = cb.ScoreTable.from_counts([0.0, 1.0], [10, 10], [5, 5])
    drawn = null_sampler(table)(SFC64(0))
    assert drawn.k.tolist() == [0, 10]


def replicates(threads):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    table = cb.ScoreTable.from_arrays(rng.random(300) < p, p)
    sampler = bootstrap_sampler(table)
    return map_replicates(
        lambda bits: metric_values([cb.ECE(), cb.TCE()], sampler(bits)),
        purpose="bootstrap",
        n_resamples=40,
        seed=SeedSequence(3),
        threads=threads,
    )


def test_results_with_threads_are_bitwise_identical():
    assert np.array_equal(replicates(threads=True), replicates(threads=False))


def test_both_kernels_give_the_same_bytes():
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/inference']; import test_resampling as t;"
        "print(t.replicates(False).tobytes().hex())"
    )
    environment = {**os.environ, "CALIBRANT_KERNEL": "reference"}
    root = Path(__file__).parents[2]
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    assert child.stdout.strip() == replicates(threads=False).tobytes().hex(), child.stderr


def test_metrics_with_equal_bins_share_them():
    calls = []

    class Counting(cb.Quantile):
        def __call__(self, table):
            calls.append(1)
            return super().__call__(table)

    table = cb.ScoreTable.from_counts([0.1, 0.5], [5, 5], [1, 2])
    metrics = [cb.ACE(bins=Counting(2)), cb.MCE(bins=Counting(2)), cb.METRICS["auc"]()]
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
    left, right = paired(SFC64(1))
    assert left.size == right.size == 400
    assert left.positives == right.positives
    assert np.allclose(np.sort(1 - right.score), left.score)
    assert np.array_equal(right.n[::-1], left.n)
    assert tables[0] == cb.ScoreTable.from_arrays(y, p)


def test_clusters_are_resampled_as_a_whole():
    y, _, cluster = rows()
    paired, _ = PairedRows.read(y, [cluster / 100 + 0.005], cluster=cluster)  # the score names the cluster
    (drawn,) = paired(SFC64(2))
    size = {round(c / 100 + 0.005, 6): int(np.sum(cluster == c)) for c in range(40)}
    assert all(n % size[round(float(s), 6)] == 0 for s, n in zip(drawn.score, drawn.n, strict=True))


def test_the_null_of_clusters_flips_their_residuals_together():
    """Sums of residuals per cluster keep their sizes: the score names the cluster."""
    y, p, cluster = rows()
    paired, (table,) = PairedRows.read(y, [p], cluster=cluster)
    by_hand = np.zeros((40, len(table)))
    np.add.at(by_hand, (cluster, paired.places[0]), y - p)
    sampler = null_sampler(table, paired)
    moved = np.array([sampler(SFC64(i)).k - table.n * table.score for i in range(3000)])
    assert moved.mean(axis=0) == pytest.approx(0, abs=0.2)
    covariance = by_hand.T @ by_hand
    assert (moved.T @ moved / len(moved)) == pytest.approx(covariance, abs=0.35)
    signs = np.linalg.lstsq(by_hand.T, moved[0], rcond=None)[0]
    assert np.abs(signs) == pytest.approx(np.ones(40))


def test_the_null_of_weighted_clusters_weighs_residuals():
    y, p, cluster = rows()
    weight = 0.5 + p
    paired, (table,) = PairedRows.read(y, [p], cluster=cluster, sample_weight=weight)
    drawn = null_sampler(table, paired)(SFC64(0))
    assert drawn.n == pytest.approx(table.n)
    assert drawn.w2 == pytest.approx(table.w2)
    total = np.bincount(cluster, weights=weight * (y - p))
    sums = [null_sampler(table, paired)(SFC64(i)).positives - np.sum(table.n * table.score) for i in range(3000)]
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
    assert paired(SFC64(3))[0] == repeated(SFC64(3))[0]
    assert not tables[0].importance


@pytest.mark.parametrize("option", ["sample_weight", "frequency"])
def test_rows_of_weight_or_frequency_0_are_ignored(option):
    y, p, cluster = rows(60)
    w = np.arange(60) % 3
    weighted, _ = PairedRows.read(y, [p], **{option: w})
    kept, _ = PairedRows.read(y[w > 0], [p[w > 0]], **{option: w[w > 0]})
    assert weighted(SFC64(1))[0] == kept(SFC64(1))[0]
    grouped, _ = PairedRows.read(y, [p], **{option: w}, cluster=cluster)
    assert grouped.n_draws == len(set(cluster[w > 0]))
    assert len(grouped(SFC64(1))[0]) > 0


def test_importance_weights_stay_weights():
    y, p, _ = rows(50)
    for weight in (np.linspace(0.1, 2, 50), np.arange(1, 51)):
        paired, _ = PairedRows.read(y, [p], sample_weight=weight)
        (drawn,) = paired(SFC64(3))
        assert drawn.importance
        assert (drawn.k <= drawn.n + 1e-12).all()
        assert (drawn.k2 <= drawn.w2 + 1e-12).all()


def test_frequencies_in_clusters_count():
    y, p, cluster = rows(50)
    paired, _ = PairedRows.read(y, [p], frequency=np.full(50, 2), cluster=cluster)
    (drawn,) = paired(SFC64(3))
    assert drawn.n.dtype == np.int64
    assert (drawn.n % 2 == 0).all()
