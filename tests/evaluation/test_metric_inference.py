"""Inference reads and resamples rows by the kind of forecast that a metric declares."""

from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.metric_inference import read_sample
from calibrant.inference.resampling import Sample, one_by_one
from calibrant.inference.table_sample import TableSample
from calibrant.kinds import base
from calibrant.metrics import UnbinnedMetric

RNG = np.random.default_rng(3)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)


@dataclass(frozen=True)
class MeanAbsoluteError(UnbinnedMetric):
    """A metric of another kind: numbers and predicted numbers."""

    name: ClassVar[str] = "mae"
    kind: ClassVar[str] = "number"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def value(self, table):
        return float(np.mean(np.abs(table.error)))


@dataclass(frozen=True)
class Errors:
    error: np.ndarray
    notes: tuple = ()

    @property
    def size(self):
        return self.error.size


@dataclass(frozen=True)
class NumberSample(Sample):
    """A sample of that kind, with nothing that binary samples need."""

    table: Errors
    has_exact_null = True
    is_clustered = False

    @classmethod
    def read(cls, y_true, forecast, cluster, options):
        assert cluster is None
        assert options == {}
        return cls(Errors(np.asarray(y_true) - np.asarray(forecast)))

    @property
    def n_rarer(self):
        return float(self.table.size)

    def bootstrap(self, metrics):
        errors = self.table.error
        return one_by_one(lambda s: [m.value(Errors(s.generator().choice(errors, errors.size))) for m in metrics])

    def null(self, metrics):
        size = self.table.size
        return one_by_one(lambda s: [m.value(Errors(s.generator().standard_normal(size))) for m in metrics])


def test_a_kind_joins_inference_by_its_module_with_a_sample(monkeypatch):
    monkeypatch.setitem(base.KINDS, "number", SimpleNamespace(optional={"sample.read": NumberSample.read}.get))
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    options = {"n_resamples": 199, "random_state": 0}
    value = np.abs(y - x).mean()
    found = cb.interval(MeanAbsoluteError(), y, x, **options)
    assert found.value == value
    error = np.abs(y - x).std() / 20
    assert (found.low, found.high) == pytest.approx((value - 1.96 * error, value + 1.96 * error), abs=0.6 * error)
    null = cb.null(MeanAbsoluteError(), y, x, **options)
    assert null.expected == pytest.approx(np.sqrt(2 / np.pi), abs=0.01)
    assert null.alternative == "two-sided"
    assert cb.consistency(MeanAbsoluteError(), y, x, **options).pvalue == null.pvalue
    assert cb.equivalence(MeanAbsoluteError(), y, x, margin=1.0, **options).within
    assert not cb.equivalence(MeanAbsoluteError(), y, x, margin=value, **options).within


@pytest.mark.parametrize("function", [cb.interval, cb.null, cb.consistency, cb.equivalence])
def test_a_metric_of_an_unknown_kind_is_refused(function):
    options = {"margin": 0.1} if function is cb.equivalence else {}
    with pytest.raises(cb.InputError, match=r"metric must measure a kind .* \(binary.*got mae, whose kind is 'number'"):
        function(MeanAbsoluteError(), Y, P, n_resamples=19, **options)


def test_a_metric_without_a_declared_kind_is_binary():
    class Undeclared:
        name, unit, spec, measures_gaps = "undeclared", "1", MappingProxyType({}), False

        def value(self, table):
            return float(table.prevalence)

    sample = read_sample(Undeclared(), Y, P, None, {})
    assert isinstance(sample, TableSample)
    assert sample.table == cb.ScoreTable.from_arrays(Y, P)
    found = cb.interval(Undeclared(), Y, P, n_resamples=99, random_state=0)
    assert found.low < Y.mean() < found.high
    assert found.method == "symmetric"


def test_a_binary_sample_counts_independent_observations_of_the_rarer_outcome():
    assert read_sample(cb.ECE(), Y, P, None, {}).n_rarer == min(Y.sum(), (1 - Y).sum())
    weight = np.where(Y == 1, 2.0, 1.0)
    weighted = read_sample(cb.ECE(), Y, P, None, {"sample_weight": weight})
    assert weighted.n_rarer == pytest.approx(min(Y.sum(), (1 - Y).sum()))
    cluster = np.arange(300) % 20
    with_event = len(set(cluster[Y == 1]))
    clustered = read_sample(cb.ECE(), Y, P, cluster, {})
    assert clustered.n_rarer == min(with_event, len(set(cluster[Y == 0])))
    assert [s.has_exact_null for s in (weighted, clustered)] == [False, False]
