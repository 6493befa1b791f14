"""Replicates of class probabilities: the kernel's sums of all classes against tables made by hand."""

import numpy as np
import pytest
from numpy.random import SeedSequence

import calibrant as cb
from calibrant import _kernels
from calibrant._kernels import reference_replicates
from calibrant._support.random_streams import Streams
from calibrant.inference import resampling
from calibrant.inference.resampling import resample_metrics
from calibrant.kinds.multiclass import sample as module
from calibrant.kinds.multiclass.sample import MulticlassSample
from calibrant.metrics import ClasswiseMetric, MulticlassBrier, MulticlassLogLoss, TopLabelMetric
from calibrant.tables.class_table import ClassTable

STREAMS = Streams(5, 3, 8)
BINARY = [cb.ECE(), cb.metrics.ACE(), cb.TCE(), cb.metrics.Brier(), cb.METRICS["auc"]()]
METRICS = [
    *(ClasswiseMetric(metric) for metric in BINARY),
    *(TopLabelMetric(metric) for metric in BINARY),
    MulticlassBrier(),
    MulticlassLogLoss(),
]


class ShareOfSure:
    """A metric that needs the rows of each replicate."""

    name, unit, measures_gaps, kind = "share of sure", "1", False, "multiclass"

    @property
    def spec(self):
        return {"name": self.name}

    def measure(self, table):
        def value(code, weight):
            own = table.code if code is None else code
            used = table.weight if weight is None else weight
            return float(np.average(table.proba[np.arange(len(table)), own] > 0.5, weights=used))

        return value


def make(size=500, classes=4, digits=None, weight=None, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(classes), size)
    code = (rng.random((size, 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
    if digits is not None:
        proba = proba.round(digits)
        proba[:, -1] = 1 - proba[:, :-1].sum(axis=1)
        proba = np.abs(proba)
    return ClassTable(tuple(range(classes)), proba, code, weight)


OPTIONS = {
    "rows": {},
    "ties": {"digits": 2},
    "weights": {"weight": 0.3 + np.random.default_rng(1).random(500)},
    "ties with weights": {"digits": 1, "weight": 0.3 + np.random.default_rng(1).random(500)},
}
CLUSTER = np.random.default_rng(2).integers(0, 45, 500)


@pytest.mark.parametrize("cluster", [None, CLUSTER], ids=["no clusters", "clusters"])
@pytest.mark.parametrize("kind", OPTIONS)
def test_bootstrap_values_are_those_of_the_rows_that_were_drawn(kind, cluster):
    table = make(**OPTIONS[kind])
    metrics = [*METRICS, ShareOfSure()]
    found = MulticlassSample(table, cluster).bootstrap(metrics)(STREAMS)
    draws = len(table) if cluster is None else 45
    for values, stream in zip(found, STREAMS, strict=True):
        times = _kernels.draw(stream.key, stream.replicate, draws)
        times = times if cluster is None else times[cluster]
        weight = times if table.weight is None else times * table.weight
        assert values == pytest.approx([metric.measure(table)(None, weight) for metric in metrics], rel=1e-10)


@pytest.mark.parametrize("kind", ["rows", "ties"])
def test_null_values_are_those_of_the_classes_that_were_drawn(kind):
    table = make(**OPTIONS[kind])
    metrics = [*METRICS, ShareOfSure()]
    found = MulticlassSample(table).null(metrics)(STREAMS)
    codes = _kernels.class_draws(STREAMS.key, STREAMS.first, STREAMS.count, np.cumsum(table.proba, axis=1))
    for values, code in zip(found, codes, strict=True):
        wanted = [metric.measure(table)(code.astype(np.int64), None) for metric in metrics]
        assert values == pytest.approx(wanted, rel=1e-10)


def test_frequencies_are_repeated_rows_in_all_replicates():
    frequency = np.arange(500) % 3 + 1
    table = make(weight=frequency)
    plain = make()
    repeated = plain.part(np.repeat(np.arange(500), frequency))
    left, right = (MulticlassSample(each) for each in (table, repeated))
    for name in ("bootstrap", "null"):
        a, b = (getattr(sample, name)(METRICS)(STREAMS) for sample in (left, right))
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kernel", [_kernels, reference_replicates])
def test_classes_are_drawn_with_their_probabilities(kernel):
    proba = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 1.0, 0.0, 0.0], [0.1, 0.1, 0.0, 0.0]])
    drawn = kernel.class_draws(9, 0, 1, np.cumsum(np.repeat(proba, 20_000, axis=0), axis=1))[0].reshape(3, -1)
    shares = np.array([np.bincount(each, minlength=4) for each in drawn]) / 20_000
    assert shares[0] == pytest.approx(proba[0], abs=0.015)
    assert shares[1].tolist() == [0, 1, 0, 0]
    assert shares[2] == pytest.approx([0.5, 0.5, 0, 0], abs=0.015)


@pytest.mark.parametrize("classes", [1, 2, 16, 17, 50])
def test_classes_are_bitwise_identical_on_both_kernels(classes):
    rng = np.random.default_rng(classes)
    cumulative = np.cumsum(rng.random((333, classes)) * (rng.random((333, classes)) < 0.7) + 1e-12, axis=1)
    found = [kernel.class_draws(7, 2, 3, cumulative).tobytes() for kernel in (_kernels, reference_replicates)]
    assert found[0] == found[1]


def test_the_null_of_a_replicate_has_the_law_of_the_predicted_classes():
    """Mean and variance of class-wise sums, against those of multinomial outcomes."""
    table = make(300)
    values = MulticlassSample(table).null([MulticlassBrier()])(Streams(5, 0, 4000))[:, 0]
    losses = np.array([((table.proba - np.eye(4)[c]) ** 2).sum(axis=1) for c in range(4)]).T
    mean = np.sum(table.proba * losses, axis=1)
    variance = np.sum(table.proba * losses**2, axis=1) - mean**2
    assert values.mean() == pytest.approx(mean.mean(), abs=5 * np.sqrt(variance.sum()) / 300 / np.sqrt(4000))
    assert values.var() == pytest.approx(variance.sum() / 300**2, rel=0.12)


def test_a_class_of_probability_0_that_occurs_makes_the_log_loss_infinite():
    table = make(60)
    proba = table.proba.copy()
    row = int(np.flatnonzero(table.code == 0)[0])
    proba[row] = [0.0, 0.5, 0.25, 0.25]
    found = MulticlassSample(ClassTable(table.labels, proba, table.code)).bootstrap([MulticlassLogLoss()])(STREAMS)
    drawn = [_kernels.draw(stream.key, stream.replicate, 60)[row] > 0 for stream in STREAMS]
    assert np.isinf(found[:, 0]).tolist() == drawn
    assert any(drawn)
    assert not all(drawn)


def test_a_class_of_probability_0_that_never_occurs_costs_nothing(monkeypatch):
    table = make(200)
    proba = np.column_stack([table.proba, np.zeros(200)])
    wide = ClassTable((*table.labels, "never"), proba, table.code)
    monkeypatch.setattr(module._ClassTerm, "value", None)  # no table of a replicate is measured
    a, b = (MulticlassSample(each).bootstrap([MulticlassLogLoss()])(STREAMS) for each in (table, wide))
    assert a == pytest.approx(b)


def test_many_entries_are_measured_one_replicate_at_a_time(monkeypatch):
    table = make(100)
    found = MulticlassSample(table).bootstrap(METRICS)(STREAMS)
    monkeypatch.setattr(module, "_MOST_ENTRIES", 10)
    assert not module.MulticlassReplicates.can_hold(table)
    assert MulticlassSample(table).bootstrap(METRICS)(STREAMS) == pytest.approx(found, rel=1e-10)
    assert MulticlassSample(table).null(METRICS)(STREAMS).shape == (8, len(METRICS))


@pytest.mark.parametrize("entries", [10, 5_000_000], ids=["one by one", "in the kernel"])
def test_equal_rows_draw_classes_of_their_own(entries, monkeypatch):
    """The variance of the Brier score of n rows of equal probabilities is that of n draws, not of one."""
    monkeypatch.setattr(module, "_MOST_ENTRIES", entries)
    proba, frequency = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]), np.array([400, 200])
    table = ClassTable(("a", "b", "c"), proba, np.array([0, 1]), frequency)
    values = MulticlassSample(table).null([MulticlassBrier()])(Streams(5, 0, 1500))[:, 0]
    losses = np.array([((proba - np.eye(3)[c]) ** 2).sum(axis=1) for c in range(3)]).T
    mean = np.sum(proba * losses, axis=1)
    variance = frequency @ (np.sum(proba * losses**2, axis=1) - mean**2) / 600**2
    assert values.mean() == pytest.approx(frequency @ mean / 600, abs=5 * np.sqrt(variance / 1500))
    assert values.var() == pytest.approx(variance, rel=0.2)


def test_replicates_are_identical_for_any_number_of_threads(monkeypatch):
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(resampling, "thread_count", lambda rows, work, cores=cores: cores)
        parts = resample_metrics(METRICS, MulticlassSample(make()), seed=SeedSequence(1), n_resamples=30)
        found.append(b"".join(each.bootstrap.tobytes() + each.null.tobytes() for each in parts))
    assert found[0] == found[1]
