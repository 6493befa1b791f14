"""Draws of rows for several predictions at once: one replicate for all of them, and the metrics of its tables."""

import numpy as np
import oracles
import pytest
from kernel_results import agree
from numpy.random import SeedSequence

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference_replicates
from calibrant._support.random_streams import Streams, stream_key
from calibrant.inference import binary_replicates, resampling
from calibrant.inference.binary_replicates import BinaryReplicates
from calibrant.inference.metric_values import metric_values
from calibrant.inference.paired import paired_replicates
from calibrant.inference.resampling import PairedRows
from calibrant.inference.shared_draws import SharedDraws, StoredReplicates

KERNELS = (_kernels, reference_replicates)


def rows(size, seed=0, digits=None):
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
    y, models = rows(400, digits=digits)
    metrics = [cb.Brier(), cb.ECE(), cb.ACE(), cb.TCE()]
    paired, tables = PairedRows.read(y, models)
    first = np.lexsort((np.arange(y.size), 1 - y, models["a"]))
    found = SharedDraws(paired, metrics)(Streams(7, 3, 5)).reshape(5, 3, 4)
    for r in range(5):
        drawn = np.repeat(first, oracles.draw(7, 3 + r, y.size))
        for i, p in enumerate(models.values()):
            limits = [metric_values(metrics[:3], cb.ScoreTable.from_arrays(y[drawn], p[drawn]))]
            assert found[r, i, :3] == pytest.approx(limits[0], rel=1e-12)
    alone = BinaryReplicates(tables[0], metrics).bootstrap(Streams(7, 3, 5))
    if resampling.samples_rows(tables[0]):
        assert np.array_equal(found[:, 0], alone)


def test_sums_of_gathered_draws_agree_on_both_kernels():
    y, models = rows(6000)
    order = np.random.default_rng(5).permutation(y.size).astype(np.int32)
    for p in (models["a"], models["a"].round(3), np.where(models["a"] < 0.1, 0.0, models["a"])):
        table = cb.ScoreTable.from_arrays(y, p)
        plan = _kernels.Plan(
            [cb.EqualWidth(7)(table).start],
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


def test_replicates_are_identical_for_any_number_of_threads(monkeypatch):
    y, models = rows(12_000)
    paired, _ = PairedRows.read(y, models)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(resampling, "available_cores", lambda cores=cores: cores)
        found.append(paired_replicates(paired, [cb.Brier(), cb.TCE()], n_resamples=40, seed=SeedSequence(1)))
    assert found[0].tobytes() == found[1].tobytes()


def test_a_rising_function_of_the_scores_has_the_order_of_the_first_table():
    y, models = rows(5000)
    paired, _ = PairedRows.read(y, {"a": models["a"], "b": models["a"] ** 2})
    draws = SharedDraws(paired, [cb.Brier(), cb.ACE(), cb.TCE()])
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
    y, models = rows(3000, digits=digits)
    models = with_same_and_other_orders(models)
    paired, _ = PairedRows.read(y, models)
    metrics = [cb.Brier(), cb.ECE(), cb.ACE(), cb.TCE(), cb.TCE(alpha=0.2), cb.LogLoss()]
    draws = SharedDraws(paired, metrics)
    assert draws.alike == [[0, 4], [1, 3], [2], [5]]
    found = draws(Streams(7, 3, 5)).reshape(5, len(models), len(metrics))
    for i, model in enumerate(draws.models):
        drawn = _kernels.draws(7, 3, 5, y.size)
        assert found[:, i].tobytes() == model.of_draws(Streams(7, 3, 5), drawn, draws.orders[i]).tobytes()


def test_models_with_many_bins_are_measured_one_by_one(monkeypatch):
    """Their sums over bins would be in memory at once; the values are the same."""
    y, models = rows(2000)
    paired, _ = PairedRows.read(y, {"a": models["a"], "b": models["a"] ** 2})
    found = []
    for most in (10**9, 0):
        monkeypatch.setattr(binary_replicates, "_MOST_BINS", most)
        found.append(SharedDraws(paired, [cb.ECE(n_bins=500), cb.ACE(), cb.TCE()])(Streams(7, 3, 5)))
    assert found[0].tobytes() == found[1].tobytes()


def test_tables_with_the_same_order_but_other_ties_are_not_measured_together():
    """Rounding up keeps the order of rows, events first, but merges scores."""
    y, p = np.array([1, 1, 0, 0]), np.array([0.1, 0.2, 0.3, 0.4])
    paired, _ = PairedRows.read(y, {"a": p, "b": np.ceil(p * 5) / 5})
    draws = SharedDraws(paired, [cb.Brier()])
    assert draws.orders == [None, None]
    assert draws.alike == [[0], [1]]


@pytest.mark.parametrize("digits", [None, 2])
def test_sums_of_tables_that_share_counts_are_those_of_each_table(digits):
    y, models = rows(6000, digits=digits)
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
                _kernels.Plan([cb.EqualWidth(7)(table).start], [5], blocks[:count], [(score**2, 1 - 2 * score)]),
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
    y, models = rows(300)
    paired, _ = PairedRows.read(y, models)
    key = stream_key(SeedSequence(2), 0)
    found = paired_replicates(paired, [cb.LogLoss(), cb.Brier()], n_resamples=19, seed=SeedSequence(2))
    first = np.argsort(models["a"])
    drawn = np.repeat(first, _kernels.draw(key, 4, y.size))
    for i, p in enumerate(models.values()):
        table = cb.ScoreTable.from_arrays(y[drawn], p[drawn])
        assert found[4, i] == pytest.approx([cb.LogLoss().value(table), cb.Brier().value(table)], rel=1e-12)


def test_intervals_of_the_first_model_are_those_it_has_alone():
    y, models = rows(3000)
    together = cb.compare(y, models, n_resamples=99, random_state=4).models["a"]
    alone = cb.evaluate(y, models["a"], n_resamples=99, random_state=4)
    for name, metric in alone.metrics.items():
        assert (metric.interval.low, metric.interval.high) == (
            together.metrics[name].interval.low,
            together.metrics[name].interval.high,
        )


def test_stored_replicates_are_found_by_metric():
    stored = StoredReplicates([cb.Brier(), cb.ECE()], np.arange(8.0).reshape(4, 2))
    assert stored.has([cb.ECE()])
    assert not stored.has([cb.ECE(), cb.TCE()])
    assert stored.lookup([cb.ECE(), cb.Brier()], Streams(0, 1, 2)).tolist() == [[3.0, 2.0], [5.0, 4.0]]
