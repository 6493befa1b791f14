"""Replicates of weighted and clustered rows: sums of the kernel, and the law of the draws."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_results import agree
from numpy.random import SeedSequence
from scipy.stats import poisson, t

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference_replicates
from calibrant._support.random_streams import Streams
from calibrant.inference import replicate_plans, resampling
from calibrant.inference.metric_values import metric_values
from calibrant.inference.replicates import resample_metrics
from calibrant.inference.resampling import PairedRows, PoissonSampler, bootstrap_sampler, null_sampler
from calibrant.inference.samples import BinarySample
from calibrant.metrics.losses import max_distance
from calibrant.metrics.norms import sup

STREAMS = Streams(5, 3, 12)
METRICS = [
    cb.METRICS["bias"](),
    cb.ECE(),
    cb.ECE(n_bins=4),
    cb.ACE(),
    cb.ACE(n_bins=3),
    cb.MCE(),
    cb.TCE(),
    cb.TCE(alpha=0.2, bins=cb.PAVABC(n_min=30, n_max=90)),
    cb.TCE(bins=cb.PAVABC.consistent()),
    cb.TCE(bins=cb.PAVABC(n_max=70)),
    cb.TCE(bins=cb.PAVA()),
    cb.TCE(bins=cb.EqualWidth(5)),
    cb.ECC(cb.LinearCost(under=3)),
    cb.Brier(),
    cb.METRICS["log_loss"](),
    cb.METRICS["auc"](),
    cb.GCE(cb.EqualWidth(3), max_distance, sup),
]


def rows(size=600, digits=None, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    p = p if digits is None else p.round(digits)
    y = (rng.random(size) < p**1.2).astype(int)
    return y, p, 0.2 + 2 * rng.random(size), rng.integers(0, 60, size)


def sample(kind, digits=None):
    y, p, weight, cluster = rows(digits=digits)
    options = {
        "weights": {"sample_weight": weight},
        "clusters": {"cluster": cluster},
        "weighted clusters": {"sample_weight": weight, "cluster": cluster},
        "frequencies in clusters": {"frequency": 1 + cluster % 3, "cluster": cluster},
    }[kind]
    cluster = options.pop("cluster", None)
    return BinarySample.read(y, p, cluster, options)


KINDS = ["weights", "clusters", "weighted clusters", "frequencies in clusters"]


@pytest.mark.parametrize("digits", [None, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_bootstrap_values_are_those_of_the_tables_of_replicates(kind, digits):
    found = sample(kind, digits)
    draw = bootstrap_sampler(found.table) if found.rows is None else lambda stream: found.rows(stream)[0]
    wanted = np.array([metric_values(METRICS, draw(stream)) for stream in STREAMS])
    assert found.bootstrap(METRICS)(STREAMS) == pytest.approx(wanted, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("digits", [None, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_null_values_are_those_of_the_tables_of_replicates(kind, digits):
    """Metrics that test counts have none. The log loss of a table leaves out sums of events below 0."""
    found = sample(kind, digits)
    draw = null_sampler(found.table, found.rows)
    values = found.null(METRICS)(STREAMS)
    tested = np.array(["TCE" in metric.name for metric in METRICS])
    assert np.isnan(values[:, tested]).all()
    kept = [metric for metric, is_tested in zip(METRICS, tested, strict=True) if not is_tested]
    wanted = np.array([metric_values(kept, draw(stream)) for stream in STREAMS])
    same = np.array([metric.name != "log_loss" for metric in kept])
    assert values[:, ~tested][:, same] == pytest.approx(wanted[:, same], rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("kind", ["weights", "clusters"])
def test_the_null_of_the_log_loss_has_the_entropy_of_the_scores_as_mean(kind):
    found = sample(kind)
    table, p = found.table, found.table.score
    values = found.null([cb.METRICS["log_loss"]()])(Streams(5, 0, 2000))[:, 0]
    entropy = float(np.sum(table.n * -(p * np.log(p) + (1 - p) * np.log1p(-p))) / table.size)
    assert values.mean() == pytest.approx(entropy, abs=5 * values.std() / np.sqrt(2000))


def test_the_scale_of_weights_does_not_matter():
    y, p, weight, _ = rows()
    kept = [cb.ECE(), cb.ACE(), cb.MCE(), cb.TCE(), cb.TCE(bins=cb.PAVA()), cb.Brier(), cb.METRICS["log_loss"]()]
    values = [
        BinarySample.read(y, p, None, {"sample_weight": scale * weight}).bootstrap(kept)(STREAMS)
        for scale in (1.0, 2.0**-12)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-12)


def test_units_of_mean_1_are_drawn_by_the_kernel_and_others_by_numpy():
    table = cb.ScoreTable.from_arrays([1, 0, 1, 1, 0], [0.2, 0.2, 0.5, 0.5, 0.9], sample_weight=[2, 1, 1, 3, 2.5])
    sampler = PoissonSampler(table)
    assert sampler.rows.tolist() == [2, 1, 1]
    assert sampler.event.tolist() == [1, 0, 1, 0]
    assert sampler.mean == pytest.approx([1, 1, 16 / 10, 1])
    assert sampler.weight == pytest.approx([2, 1, 10 / 4, 2.5])
    drawn = np.concatenate([sampler.draws(Streams(5, 0, 6000))])
    assert drawn.dtype == np.int32
    assert drawn.mean(axis=0) == pytest.approx(sampler.mean, abs=0.08)
    assert drawn.var(axis=0) == pytest.approx(sampler.mean, abs=0.15)


@pytest.mark.parametrize("kernel", [_kernels, reference_replicates])
def test_poisson_draws_have_their_distribution(kernel):
    drawn = kernel.poisson_draws(3, 0, 4, 50_000).ravel()
    expected = poisson.pmf(np.arange(7), 1.0) * drawn.size
    found = np.bincount(drawn, minlength=7)[:7]
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected.max())
    assert np.sum((found - expected) ** 2 / expected) < 30  # 7 degrees of freedom: p-value 1e-4


def test_very_many_weighted_rows_of_a_score_are_drawn_one_replicate_at_a_time():
    n = np.array([4e9, 8e9, 4e9])
    k = n * [0.1, 0.5, 0.9]
    table = cb.ScoreTable(np.array([0.1, 0.5, 0.9]), n, k, n, k)
    assert not PoissonSampler(table).is_drawn_by_kernel
    values = BinarySample(table).bootstrap([cb.ECE(), cb.Brier()])(STREAMS)
    wanted = [metric_values([cb.ECE(), cb.Brier()], bootstrap_sampler(table)(stream)) for stream in STREAMS]
    assert values == pytest.approx(np.array(wanted))


def test_a_replicate_without_rows_counts_as_the_table():
    table = cb.ScoreTable.from_arrays([1], [0.7], sample_weight=[2.0])
    values = BinarySample(table).bootstrap([cb.Brier(), cb.ECE()])(Streams(5, 0, 30))
    assert values[:, 0] == pytest.approx(np.full(30, 0.09))
    assert values[:, 1] == pytest.approx(np.full(30, 0.3))


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1e-4])
def test_critical_values_are_interpolated_to_ten_digits(alpha):
    critical, step = replicate_plans._critical_squares(alpha)
    degrees = np.concatenate([np.linspace(3, 60, 400), np.geomspace(60, 1e9, 200)])
    blocks = _kernels.WeightedBlocks(0, 0, 0, -1, 1, critical, step)
    found = [reference_replicates._critical_square(blocks, 1 / (each + 1)) for each in degrees]
    assert found == pytest.approx(t.isf(alpha / 2, degrees) ** 2, rel=3e-10)


def arguments(size, tied, seed=0):
    rng = np.random.default_rng(seed)
    score = np.sort(rng.random(size)) if size < 1000 else np.concatenate([[0.0], np.sort(rng.random(size - 2)), [1.0]])
    counts = rng.integers(1, 4, size) if tied else np.ones(size, dtype=np.int64)
    weight = 0.1 + rng.random(counts.sum())
    event = (rng.random(weight.size) < np.repeat(score, counts)).astype(np.uint8)
    critical, step = replicate_plans._critical_squares(0.05)
    blocks = [
        _kernels.WeightedBlocks(-1, 1 / 20, 0, -1, 1 / 5, critical, step),
        _kernels.WeightedBlocks(-1, 0, 1, -1, 1 / 5, critical, step),
        _kernels.WeightedBlocks(0, 0, 0, -1, 1, critical, step),
    ]
    plan = _kernels.Plan([np.array([0, size // 3, size // 3, size])], [10, 3], blocks, [(score**2, 1 - 2 * score)])
    return score, counts, weight, event, plan


@pytest.mark.parametrize(("size", "tied"), [(1, False), (70, True), (900, False), (900, True), (6000, False)])
def test_sums_of_weighted_rows_agree_on_both_kernels(size, tied):
    given = arguments(size, tied)
    ours, its = (kernel.weighted_replicates(*given) for kernel in (_kernels, reference_replicates))
    count = given[2].size
    order = np.random.default_rng(1).integers(0, 50, count).astype(np.int32)
    drawn = _kernels.poisson_draws(5, 0, 4, count)
    for draws, each in ((drawn, None), (drawn.astype(np.int32), None), (_kernels.draws(5, 0, 4, 50), order)):
        a, b = (kernel(draws, each) for kernel in (ours, its))
        assert agree(a, b)
        assert size < 900 or (a.rejected >= 0).any()


def bytes_of_weighted_sums():
    found = _kernels.poisson_draws(1, 0, 3, 5000).tobytes() + _kernels.signs(1, 2, 9000).tobytes()
    cumulative = np.cumsum(np.random.default_rng(0).random((999, 20)), axis=1)
    found += _kernels.class_draws(1, 0, 3, cumulative).tobytes()
    for tied in (False, True):
        given = arguments(6000, tied)
        sums = _kernels.weighted_replicates(*given)(_kernels.poisson_draws(1, 0, 3, given[2].size), None)
        found += b"".join(each.tobytes() for each in sums)
    return hashlib.sha256(found).hexdigest()


@pytest.mark.skipif(_kernels.KERNEL != "compiled", reason="needs the compiled kernel")
@pytest.mark.parametrize("instructions", ["generic", "avx2", "avx512"])
def test_all_instruction_sets_give_the_same_bytes(instructions):
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/inference']; import test_weighted_replicates as t;"
        "from calibrant._kernels import _core; print(_core.instruction_set(), t.bytes_of_weighted_sums())"
    )
    environment = {**os.environ, "CALIBRANT_INSTRUCTIONS": instructions}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    if "this processor must have it" in child.stderr:
        pytest.skip(f"this processor lacks {instructions}")
    assert child.stdout.split() == [instructions, bytes_of_weighted_sums()], child.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_replicates_are_identical_for_any_number_of_threads(kind, monkeypatch):
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(resampling, "available_cores", lambda cores=cores: cores)
        each = resample_metrics(
            [cb.ECE(), cb.ACE(), cb.TCE(), cb.Brier()], sample(kind), seed=SeedSequence(1), n_resamples=40, threads=True
        )
        found.append(b"".join(part.bootstrap.tobytes() + part.null.tobytes() for part in each))
    assert found[0] == found[1]


@pytest.mark.parametrize("kernel", [_kernels, reference_replicates])
def test_signs_are_those_of_signed_sums(kernel):
    values = np.arange(1.0, 201.0).reshape(-1, 1)
    sums = kernel.signed_sums(7, 4, 2, values, np.arange(200), None)[:, :, 0]
    assert np.array_equal(sums, [kernel.signs(7, r, 200) * values[:, 0] for r in (4, 5)])


def test_clusters_of_different_sizes_have_the_limits_of_their_replicate():
    """PAVA-BC of a replicate with more rows has larger bins."""
    rng = np.random.default_rng(0)
    size = rng.integers(1, 60, 40)
    cluster = np.repeat(np.arange(40), size)
    p = rng.random(cluster.size)
    found = BinarySample.read((rng.random(p.size) < p).astype(int), p, cluster, {})
    wanted = [cb.TCE().value(found.rows(stream)[0]) for stream in STREAMS]
    assert len({found.rows(stream)[0].size // 20 for stream in STREAMS}) > 1
    assert found.bootstrap([cb.TCE()])(STREAMS)[:, 0] == pytest.approx(wanted)


def test_many_rows_of_a_score_in_one_cluster_are_counted():
    """Each row occurs as often as its cluster: more than 255 rows of a score may."""
    p = np.repeat(np.linspace(0.1, 0.9, 12), 200)
    y = (np.random.default_rng(0).random(p.size) < p).astype(int)
    found = BinarySample.read(y, p, np.repeat(np.arange(24), 100), {})
    metrics = [cb.ECE(), cb.Brier(), cb.TCE()]
    wanted = [metric_values(metrics, found.rows(stream)[0]) for stream in STREAMS]
    assert found.bootstrap(metrics)(STREAMS) == pytest.approx(np.array(wanted))


def test_paired_rows_keep_their_sampler():
    y, p, weight, cluster = rows()
    paired, (table,) = PairedRows.read(y, [p], cluster=cluster, sample_weight=weight)
    residuals = paired.signed_residuals()
    assert (np.diff(residuals.place) >= 0).all()
    assert np.bincount(residuals.place, weights=residuals.residual) == pytest.approx(table.k - table.n * table.score)
