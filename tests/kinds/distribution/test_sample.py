"""Means of rows in bootstrap replicates, against averages of the rows that were drawn."""

import numpy as np
import pytest

import calibrant as cb
from calibrant import _kernels
from calibrant import regression as rg
from calibrant._support.random_streams import Streams
from calibrant.forecasts.forecast_table import ForecastTable
from calibrant.kinds.distribution import sample as module
from calibrant.kinds.distribution.sample import DistributionSample
from calibrant.metrics.registry import as_metric

STREAMS = Streams(5, 3, 6)
METRICS = [as_metric(rg.crps), as_metric(rg.nll), as_metric(rg.coverage_error), as_metric(rg.interval_score)]
CLUSTER = np.random.default_rng(1).integers(0, 30, 400)


def table(size=400, first=None):
    rng = np.random.default_rng(0)
    m = rng.standard_normal(size)
    y = m + rng.standard_normal(size)
    y[0] = y[0] if first is None else first
    return ForecastTable(y, cb.Gaussian(m, np.full(size, 1.2)))


@pytest.mark.parametrize("cluster", [None, CLUSTER], ids=["rows", "clusters"])
def test_values_are_those_of_the_rows_that_were_drawn(cluster):
    rows = table()
    found = DistributionSample(rows, cluster).bootstrap(METRICS)(STREAMS)
    for values, stream in zip(found, STREAMS, strict=True):
        times = _kernels.draw(stream.key, stream.replicate, 400 if cluster is None else 30)
        times = times if cluster is None else times[cluster]
        means = [np.average(metric.row_values(rows), weights=times, axis=0) for metric in METRICS]
        wanted = [metric.combine(mean, rows) for metric, mean in zip(METRICS, means, strict=True)]
        assert values == pytest.approx(wanted, rel=1e-12)


def test_many_numbers_and_infinite_ones_are_averaged_one_replicate_at_a_time(monkeypatch):
    sample = DistributionSample(table())
    found = sample.bootstrap(METRICS)(STREAMS)
    called = []
    with monkeypatch.context() as patch:
        patch.setattr(module, "row_means", lambda *rows: called.append(rows))
        infinite = DistributionSample(table(first=np.inf)).bootstrap([as_metric(rg.crps)])(STREAMS)
        patch.setattr(module, "_MOST_NUMBERS", 10)
        assert sample.bootstrap(METRICS)(STREAMS) == pytest.approx(found, rel=1e-12)
    assert not called
    drawn = [_kernels.draw(stream.key, stream.replicate, 400)[0] > 0 for stream in STREAMS]
    assert np.isinf(infinite[:, 0]).tolist() == drawn
