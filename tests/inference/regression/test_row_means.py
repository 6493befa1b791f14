"""Means of rows in bootstrap replicates, against averages of the rows that were drawn."""

import numpy as np
import pytest

import calibrant as cb
from calibrant import _kernels
from calibrant import regression as rg
from calibrant._support.random_streams import Streams
from calibrant.forecasts.forecast_table import ForecastTable
from calibrant.inference.regression import row_means
from calibrant.inference.regression.forecast_samples import DistributionSample
from calibrant.metrics.registry import as_metric

STREAMS = Streams(5, 3, 6)
METRICS = [as_metric(rg.crps), as_metric(rg.nll), as_metric(rg.coverage_error), as_metric(rg.interval_score)]
CLUSTER = np.random.default_rng(1).integers(0, 30, 400)


def table(size=400):
    rng = np.random.default_rng(0)
    m = rng.standard_normal(size)
    return ForecastTable(m + rng.standard_normal(size), cb.Gaussian(m, np.full(size, 1.2)))


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
    assert not row_means.RowMeans.can_hold([np.array([1.0, np.inf])])
    sample = DistributionSample(table())
    found = sample.bootstrap(METRICS)(STREAMS)
    monkeypatch.setattr(row_means, "_MOST_NUMBERS", 10)
    assert sample.bootstrap(METRICS)(STREAMS) == pytest.approx(found, rel=1e-12)
