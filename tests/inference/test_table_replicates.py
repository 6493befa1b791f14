"""Replicates of tables of weighted and clustered rows, and of several predictions of the same rows."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracles
import pytest
from kernel_results import agree
from numpy.random import SeedSequence
from scipy.stats import poisson, t

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference_replicates
from calibrant._support.random_streams import Streams, stream_key
from calibrant.inference import metric_plans, resampling, table_replicates
from calibrant.inference.paired import paired_replicates
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resampling import metric_values, resample_metrics
from calibrant.inference.table_replicates import (
    PoissonRows,
    SharedDraws,
    SignedResiduals,
    StoredReplicates,
    TableReplicates,
    bootstrap_sampler,
    draws_rows,
    null_sampler,
)
from calibrant.inference.table_sample import TableSample
from calibrant.kinds.binary.sample import read
from calibrant.metrics.losses import max_distance
from calibrant.metrics.norms import sup

KERNELS = (_kernels, reference_replicates)
STREAMS = Streams(5, 3, 12)
METRICS = [
    cb.METRICS["bias"](),
    cb.ECE(),
    cb.ECE(n_bins=4),
    cb.metrics.ACE(),
    cb.metrics.ACE(n_bins=3),
    cb.metrics.MCE(),
    cb.TCE(),
    cb.TCE(alpha=0.2, bins=cb.bins.PAVABC(n_min=30, n_max=90)),
    cb.TCE(bins=cb.bins.PAVABC.consistent()),
    cb.TCE(bins=cb.bins.PAVABC(sizes="grades")),
    cb.TCE(bins=cb.bins.PAVABC(n_max=70)),
    cb.TCE(bins=cb.bins.PAVA()),
    cb.TCE(bins=cb.bins.EqualWidth(5)),
    cb.metrics.ECC(cb.costs.LinearCost(under=3)),
    cb.metrics.Brier(),
    cb.METRICS["log_loss"](),
    cb.METRICS["auc"](),
    cb.GCE(cb.bins.EqualWidth(3), max_distance, sup),
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
    return read(y, p, cluster, options)


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
    same = np.array([metric != cb.METRICS["log_loss"]() for metric in kept])
    assert values[:, ~tested][:, same] == pytest.approx(wanted[:, same], rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_each_score_of_a_few_is_a_bin_in_all_replicates(kind):
    """A replicate may lack scores: the rule of its bins is that of the table."""
    y, p, weight, cluster = rows(size=300)
    grade = np.floor(p * 12) / 12 + 0.01
    options = {"sample_weight": weight} if "weight" in kind else {}
    found = read(y, grade, None if kind == "weights" else cluster, options)
    metric = cb.TCE(bins=cb.bins.PAVABC(sizes="grades"))
    draw = bootstrap_sampler(found.table) if found.rows is None else lambda stream: found.rows(stream)[0]
    tables = [draw(stream) for stream in STREAMS]
    wanted = [[cb.TCE(bins=cb.bins.PAVABC(0, 0))(table).value] for table in tables]
    assert found.bootstrap([metric])(STREAMS) == pytest.approx(np.array(wanted), rel=1e-10)


@pytest.mark.parametrize("kind", ["weights", "clusters"])
def test_the_null_of_the_log_loss_has_the_entropy_of_the_scores_as_mean(kind):
    found = sample(kind)
    table, p = found.table, found.table.score
    values = found.null([cb.METRICS["log_loss"]()])(Streams(5, 0, 2000))[:, 0]
    entropy = float(np.sum(table.n * -(p * np.log(p) + (1 - p) * np.log1p(-p))) / table.size)
    assert values.mean() == pytest.approx(entropy, abs=5 * values.std() / np.sqrt(2000))


def test_the_scale_of_weights_does_not_matter():
    y, p, weight, _ = rows()
    kept = [
        cb.ECE(),
        cb.metrics.ACE(),
        cb.metrics.MCE(),
        cb.TCE(),
        cb.TCE(bins=cb.bins.PAVA()),
        cb.metrics.Brier(),
        cb.METRICS["log_loss"](),
    ]
    values = [read(y, p, None, {"sample_weight": scale * weight}).bootstrap(kept)(STREAMS) for scale in (1.0, 2.0**-12)]
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-12)


def test_units_of_mean_1_are_drawn_by_the_kernel_and_others_by_numpy():
    table = cb.ScoreTable.from_arrays([1, 0, 1, 1, 0], [0.2, 0.2, 0.5, 0.5, 0.9], sample_weight=[2, 1, 1, 3, 2.5])
    sampler = PoissonRows(table)
    assert sampler.rows.counts.tolist() == [2, 1, 1]
    assert sampler.rows.event.tolist() == [1, 0, 1, 0]
    assert sampler.mean == pytest.approx([1, 1, 16 / 10, 1])
    assert sampler.rows.weight == pytest.approx([2, 1, 10 / 4, 2.5])
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
    assert not PoissonRows(table).is_drawn_by_kernel
    values = TableSample(table).bootstrap([cb.ECE(), cb.metrics.Brier()])(STREAMS)
    wanted = [metric_values([cb.ECE(), cb.metrics.Brier()], bootstrap_sampler(table)(stream)) for stream in STREAMS]
    assert values == pytest.approx(np.array(wanted))


def test_a_replicate_without_rows_counts_as_the_table():
    table = cb.ScoreTable.from_arrays([1], [0.7], sample_weight=[2.0])
    values = TableSample(table).bootstrap([cb.metrics.Brier(), cb.ECE()])(Streams(5, 0, 30))
    assert values[:, 0] == pytest.approx(np.full(30, 0.09))
    assert values[:, 1] == pytest.approx(np.full(30, 0.3))


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1e-4])
def test_critical_values_are_interpolated_to_ten_digits(alpha):
    critical, step = metric_plans._critical_squares(alpha)
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
    critical, step = metric_plans._critical_squares(0.05)
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
        "import sys; sys.path[:0] = ['tests', 'tests/inference']; import test_table_replicates as t;"
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
        monkeypatch.setattr(resampling, "thread_count", lambda rows, work, cores=cores: cores)
        each = resample_metrics(
            [cb.ECE(), cb.metrics.ACE(), cb.TCE(), cb.metrics.Brier()],
            sample(kind),
            seed=SeedSequence(1),
            n_resamples=40,
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
    found = read((rng.random(p.size) < p).astype(int), p, cluster, {})
    wanted = [cb.TCE().value(found.rows(stream)[0]) for stream in STREAMS]
    assert len({found.rows(stream)[0].size // 20 for stream in STREAMS}) > 1
    assert found.bootstrap([cb.TCE()])(STREAMS)[:, 0] == pytest.approx(wanted)


def test_many_rows_of_a_score_in_one_cluster_are_counted():
    """Each row occurs as often as its cluster: more than 255 rows of a score may."""
    p = np.repeat(np.linspace(0.1, 0.9, 12), 200)
    y = (np.random.default_rng(0).random(p.size) < p).astype(int)
    found = read(y, p, np.repeat(np.arange(24), 100), {})
    metrics = [cb.ECE(), cb.metrics.Brier(), cb.TCE()]
    wanted = [metric_values(metrics, found.rows(stream)[0]) for stream in STREAMS]
    assert found.bootstrap(metrics)(STREAMS) == pytest.approx(np.array(wanted))


def test_signed_residuals_of_clusters_are_in_order_of_score():
    y, p, weight, cluster = rows()
    paired, (table,) = PairedRows.read(y, [p], cluster=cluster, sample_weight=weight)
    residuals = SignedResiduals.of_clusters(paired)
    assert (np.diff(residuals.place) >= 0).all()
    assert np.bincount(residuals.place, weights=residuals.residual) == pytest.approx(table.k - table.n * table.score)


# Several predictions of the same rows


def several(size, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    p = rng.random(size)
    y = (rng.random(size) < p).astype(int)
    other = np.clip(p + 0.1 * rng.standard_normal(size), 0, 1)
    if digits is not None:
        p, other = p.round(digits), other.round(digits)
    return y, {"a": p, "b": other, "c": p[::-1].copy()}


@pytest.mark.parametrize("size", [1, 30, 5000])
def test_draws_are_those_of_single_replicates(size):
    for kernel in KERNELS:
        found = kernel.draws(3, 2, 4, size)
        assert found.dtype == np.uint8
        assert np.array_equal(found, [oracles.draw(3, r, size) for r in range(2, 6)] if size < 100 else found)
        assert np.array_equal(found, [kernel.draw(3, r, size) for r in range(2, 6)])


@pytest.mark.parametrize("digits", [None, 2, 1])
def test_a_model_is_measured_on_the_rows_that_were_drawn(digits):
    """By hand: repeat the rows, in the order of the first table, and build the table of each model."""
    y, models = several(400, digits=digits)
    metrics = [cb.metrics.Brier(), cb.ECE(), cb.metrics.ACE(), cb.TCE()]
    paired, tables = PairedRows.read(y, models)
    first = np.lexsort((np.arange(y.size), 1 - y, models["a"]))
    found = SharedDraws(paired, metrics)(Streams(7, 3, 5)).reshape(5, 3, 4)
    for r in range(5):
        drawn = np.repeat(first, oracles.draw(7, 3 + r, y.size))
        for i, p in enumerate(models.values()):
            limits = [metric_values(metrics[:3], cb.ScoreTable.from_arrays(y[drawn], p[drawn]))]
            assert found[r, i, :3] == pytest.approx(limits[0], rel=1e-12)
    alone = TableReplicates(tables[0], metrics).bootstrap(Streams(7, 3, 5))
    if draws_rows(tables[0]):
        assert np.array_equal(found[:, 0], alone)


def test_sums_of_gathered_draws_agree_on_both_kernels():
    y, models = several(6000)
    order = np.random.default_rng(5).permutation(y.size).astype(np.int32)
    for p in (models["a"], models["a"].round(3), np.where(models["a"] < 0.1, 0.0, models["a"])):
        table = cb.ScoreTable.from_arrays(y, p)
        plan = _kernels.Plan(
            [cb.bins.EqualWidth(7)(table).start],
            [5],
            [_kernels.TestedBlocks(300, 1200, 0.05)],
            [(table.score**2, 1 - 2 * table.score)],
        )
        drawn = _kernels.draws(1, 0, 3, y.size)
        for each in (order, None):
            ours, its = (
                kernel.replicates(table.score, table.n, table.k, plan).resample_drawn(drawn, each) for kernel in KERNELS
            )
            assert agree(ours, its)
        same = _kernels.replicates(table.score, table.n, table.k, plan).resample(1, 0, 3)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, same, strict=True))


@pytest.mark.skipif(_kernels.KERNEL != "compiled", reason="only the compiled kernel checks them")
def test_rows_outside_the_data_are_refused():
    table = cb.ScoreTable.from_arrays([0, 1, 1], [0.1, 0.2, 0.3])
    kernel = _kernels.replicates(table.score, table.n, table.k, _kernels.Plan())
    drawn = np.ones((1, 3), dtype=np.uint8)
    for order in ([0, 1, 3], [0, 1], [0, -1, 2]):
        with pytest.raises(ValueError, match="order must"):
            kernel.resample_drawn(drawn, np.array(order, dtype=np.int32))
    with pytest.raises(ValueError, match="one column per row"):
        kernel.resample_drawn(np.ones((1, 4), dtype=np.uint8), None)


def test_paired_replicates_are_identical_for_any_number_of_threads(monkeypatch):
    y, models = several(12_000)
    paired, _ = PairedRows.read(y, models)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(resampling, "thread_count", lambda rows, work, cores=cores: cores)
        found.append(paired_replicates(paired, [cb.metrics.Brier(), cb.TCE()], n_resamples=40, seed=SeedSequence(1)))
    assert found[0].tobytes() == found[1].tobytes()


def test_a_rising_function_of_the_scores_has_the_order_of_the_first_table():
    y, models = several(5000)
    paired, _ = PairedRows.read(y, {"a": models["a"], "b": models["a"] ** 2})
    draws = SharedDraws(paired, [cb.metrics.Brier(), cb.metrics.ACE(), cb.TCE()])
    assert draws.orders == [None, None]
    assert draws.alike == [[0, 1]]
    found = draws(Streams(7, 3, 5))
    draws.alike, draws.orders = [[0], [1]], [None, np.arange(y.size, dtype=np.int32)]
    assert found.tobytes() == draws(Streams(7, 3, 5)).tobytes()


def with_same_and_other_orders(models):
    """Add models that order the rows as "a" does, as "b" does, and as neither."""
    halved = {"half of b": models["b"] / 2, "quarter of a": models["a"] / 4}
    return models | halved | {"ties": np.minimum(models["a"], 0.7)}


@pytest.mark.parametrize("digits", [None, 2, 1])
def test_models_that_order_the_rows_alike_are_measured_together(digits):
    y, models = several(3000, digits=digits)
    models = with_same_and_other_orders(models)
    paired, _ = PairedRows.read(y, models)
    metrics = [cb.metrics.Brier(), cb.ECE(), cb.metrics.ACE(), cb.TCE(), cb.TCE(alpha=0.2), cb.metrics.LogLoss()]
    draws = SharedDraws(paired, metrics)
    assert draws.alike == [[0, 4], [1, 3], [2], [5]]
    found = draws(Streams(7, 3, 5)).reshape(5, len(models), len(metrics))
    for i, model in enumerate(draws.models):
        drawn = _kernels.draws(7, 3, 5, y.size)
        assert found[:, i].tobytes() == model.of_draws(Streams(7, 3, 5), drawn, draws.orders[i]).tobytes()


def test_models_with_many_bins_are_measured_one_by_one(monkeypatch):
    """Their sums over bins would be in memory at once; the values are the same."""
    y, models = several(2000)
    paired, _ = PairedRows.read(y, {"a": models["a"], "b": models["a"] ** 2})
    found = []
    for most in (10**9, 0):
        monkeypatch.setattr(table_replicates, "_MOST_BINS", most)
        found.append(SharedDraws(paired, [cb.ECE(n_bins=500), cb.metrics.ACE(), cb.TCE()])(Streams(7, 3, 5)))
    assert found[0].tobytes() == found[1].tobytes()


def test_tables_with_the_same_order_but_other_ties_are_not_measured_together():
    """Rounding up keeps the order of rows, events first, but merges scores."""
    y, p = np.array([1, 1, 0, 0]), np.array([0.1, 0.2, 0.3, 0.4])
    paired, _ = PairedRows.read(y, {"a": p, "b": np.ceil(p * 5) / 5})
    draws = SharedDraws(paired, [cb.metrics.Brier()])
    assert draws.orders == [None, None]
    assert draws.alike == [[0], [1]]


@pytest.mark.parametrize("digits", [None, 2])
def test_sums_of_tables_that_share_counts_are_those_of_each_table(digits):
    y, models = several(6000, digits=digits)
    table = cb.ScoreTable.from_arrays(y, models["a"])
    drawn = _kernels.draws(1, 0, 7, y.size)
    order = np.random.default_rng(5).permutation(y.size).astype(np.int32)
    blocks = [_kernels.TestedBlocks(300, 1200, 0.05), _kernels.TestedBlocks(78, 1200, 0.05)]
    for kernel in KERNELS:
        makes = [
            kernel.replicates(
                score,
                table.n,
                table.k,
                _kernels.Plan([cb.bins.EqualWidth(7)(table).start], [5], blocks[:count], [(score**2, 1 - 2 * score)]),
            )
            for score, count in ((table.score, 2), (table.score / 3, 2), (table.score**2, 1))
        ]
        for each in (order, None):
            together = makes[0].resample_together(makes[1:], drawn, each)
            for found, make in zip(together, makes, strict=True):
                alone = make.resample_drawn(drawn, each)
                assert all(a.tobytes() == b.tobytes() for a, b in zip(found, alone, strict=True))


def test_metrics_without_sums_are_measured_on_the_same_rows():
    """The log loss of a score of 0 is infinite, so the kernel does not add it up."""
    y, models = several(300)
    paired, _ = PairedRows.read(y, models)
    key = stream_key(SeedSequence(2), 0)
    found = paired_replicates(paired, [cb.metrics.LogLoss(), cb.metrics.Brier()], n_resamples=19, seed=SeedSequence(2))
    first = np.argsort(models["a"])
    drawn = np.repeat(first, _kernels.draw(key, 4, y.size))
    for i, p in enumerate(models.values()):
        table = cb.ScoreTable.from_arrays(y[drawn], p[drawn])
        assert found[4, i] == pytest.approx(
            [cb.metrics.LogLoss().value(table), cb.metrics.Brier().value(table)], rel=1e-12
        )


def test_intervals_of_the_first_model_are_those_it_has_alone():
    y, models = several(3000)
    together = cb.compare(y, models, n_resamples=99, random_state=4).models["a"]
    alone = cb.evaluate(y, models["a"], n_resamples=99, random_state=4)
    for name, metric in alone.metrics.items():
        assert (metric.interval.low, metric.interval.high) == (
            together.metrics[name].interval.low,
            together.metrics[name].interval.high,
        )


def test_stored_replicates_are_found_by_metric():
    stored = StoredReplicates([cb.metrics.Brier(), cb.ECE()], np.arange(8.0).reshape(4, 2))
    assert stored.has([cb.ECE()])
    assert not stored.has([cb.ECE(), cb.TCE()])
    assert stored.lookup([cb.ECE(), cb.metrics.Brier()], Streams(0, 1, 2)).tolist() == [[3.0, 2.0], [5.0, 4.0]]
