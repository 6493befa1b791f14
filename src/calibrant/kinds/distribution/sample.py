"""Outcomes and predictive distributions: how they are read, grouped and resampled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError
from calibrant._support.random_streams import Stream, Streams
from calibrant.forecasts.forecast_table import ForecastTable, as_forecast, read_forecast_table
from calibrant.inference.resampling import ReplicateValues, Sample, largest_unseen_rate, one_by_one
from calibrant.inference.time_blocks import Errors, in_time_blocks, need_blocks
from calibrant.kinds.point.sample import drawn_rows, refuse_table, too_few_rows
from calibrant.kinds.sample import GroupedSample, with_enough_clusters
from calibrant.metrics.metric import Metric
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, check_means
from calibrant.tables.rows import Rows

_MOST_NUMBERS = 5_000_000  # each takes 24 bytes; means of more are computed one replicate at a time


@dataclass(frozen=True, eq=False)
class DistributionSample(Sample):
    """Outcomes and predictive distributions and, where rows are in clusters, the cluster of each row.

    Null replicates simulate the outcomes from the forecasts, so all metrics of a replicate see the same outcomes; the
    outcome and the members of an ensemble are exchanged. In clusters, outcomes may depend on each other: only metrics
    of gaps have a null there, with deviations of random sign for each cluster. `points` has the point predictions of
    the forecasts, if the rows are evaluated.
    """

    table: ForecastTable
    cluster: Ints | None = None
    points: MeanTable | None = None

    @classmethod
    def from_rows(cls, rows: Rows) -> "DistributionSample":
        """Validate rows, whose forecasts are point predictions and distributions."""
        used = check_means(rows)
        points = MeanTable.from_rows(used)
        used.forecasts[1].check_outcomes(points.mean)
        table = ForecastTable(points.mean, used.forecasts[1], points.notes, points.n_in, points.n_dropped)
        return cls(table, used.cluster_codes, points)

    @property
    def n_rarer(self) -> float:
        """Independent observations: rows or clusters."""
        return float(len(self.table) if self.n_clusters is None else self.n_clusters)

    def bootstrap(self, metrics: Sequence[Any]) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""
        values = [metric.row_values(self.table) for metric in metrics]

        def combine(means: Sequence[Floats]) -> list[float]:
            return [metric.combine(mean, self.table) for metric, mean in zip(metrics, means, strict=True)]

        def one(stream: Stream) -> list[float]:
            times = drawn_rows(stream, len(self.table), self.cluster)
            return combine([_mean(rows, times) for rows in values])

        few = sum(rows.size for rows in values) <= _MOST_NUMBERS
        if not (values and few and all(np.isfinite(rows).all() for rows in values)):
            return one_by_one(one)
        means = row_means(values, self.cluster)
        return lambda streams: np.array([combine(of_replicate) for of_replicate in means(streams)], dtype=np.float64)

    def null(self, metrics: Sequence[Any]) -> ReplicateValues:
        """Return the function that computes the metrics of null replicates."""
        refusals = [reason for reason in map(self.null_refusal, metrics) if reason]
        if refusals:
            raise InputError(refusals[0], argument="metric")
        if self.cluster is not None:
            return self._signed(metrics, self.cluster)

        def one(stream: Stream) -> list[float]:
            simulated = self.table.simulate(stream.generator())
            return [metric.value(simulated) for metric in metrics]

        return one_by_one(one)

    def _signed(self, metrics: Sequence[Any], cluster: Ints) -> ReplicateValues:
        """Return the null of metrics of gaps, with deviations of random sign for each cluster."""
        expected = [metric.expected(self.table) for metric in metrics]
        sums = [
            np.column_stack([np.bincount(cluster, weights=column) for column in (metric.row_values(self.table) - e).T])
            for metric, e in zip(metrics, expected, strict=True)
        ]

        def one(stream: Stream) -> list[float]:
            sign = 2.0 * stream.generator().integers(0, 2, int(cluster.max()) + 1) - 1.0
            means = [e + sign @ total / len(self.table) for e, total in zip(expected, sums, strict=True)]
            return [metric.combine(mean, self.table) for metric, mean in zip(metrics, means, strict=True)]

        return one_by_one(one)

    def null_refusal(self, metric: Any) -> str:
        """Return why the metric has no null distribution for this sample; empty where it has one."""
        forecast = self.table.forecast
        if self.is_clustered and not metric.measures_gaps:
            return (
                f"{metric.name} has no null distribution for clusters: outcomes of one cluster depend on each other in "
                "a way that forecasts do not state. Use calibrant.interval."
            )
        partly = forecast.known_levels is not None and forecast.ensemble is None
        if partly and not metric.needs_cells_only:
            return (
                f"{metric.name} has no null distribution for Quantiles: the forecasts do not state how outcomes are "
                "distributed between and beyond the quantiles. Use coverage_error, or calibrant.interval."
            )
        return ""

    def interval_refusal(self, metric: Metric) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""
        return too_few_rows(metric, self.n_rarer)

    def unseen_deviation(self, metric: Any) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation at levels whose intervals cover all rows, or none.

        The bootstrap does not move a share of 0 or 1.
        """
        if not metric.measures_gaps:
            return lambda tail: 0.0
        share = float(np.mean(np.ptp(metric.row_values(self.table), axis=0) == 0))
        return lambda tail: share * largest_unseen_rate(self.n_rarer, tail)


def errors(used: Rows) -> list[Errors]:
    """Return the errors of the point predictions of each model, its PIT values, and their distance from 1/2."""
    y = used.y.values
    found = []
    for forecast in used.forecasts:
        if not isinstance(forecast, ColumnData):  # point predictions are read with the distributions
            point, u = forecast.point(), np.add(*forecast.cells(y)) / 2
            found.append(Errors((y - point)[:, None], point, (u, np.abs(u - 0.5))))
    return found


TIME_BLOCKS = partial(in_time_blocks, check=check_means, errors=errors)


def read(y_true: Any, forecast: Any, cluster: Column | None, options: Mapping[str, Any]) -> DistributionSample:
    """Read the rows for one metric, or take a `ForecastTable`; the only option is `missing`."""
    for name, value in options.items():
        if name not in ("missing", "time") and value is not None:
            raise InputError(
                f"{name} must be omitted with predictive distributions, which have no weights; got a column.",
                argument=name,
            )
    missing = {name: value for name, value in options.items() if name in ("missing", "time")}
    if cluster is None and "time" not in options:
        return DistributionSample(read_forecast_table(y_true, forecast, missing))
    refuse_table(y_true, ForecastTable)
    known = as_forecast(read_forecast_table.column(forecast), len(_columns.read(y_true, "y_true", hint=ONE_COLUMN)))
    rows, serial = TIME_BLOCKS(Rows.read(y_true, {"forecast": known}, cluster=cluster, hint=ONE_COLUMN, **missing))
    need_blocks(serial)
    used = rows.check(_columns.finite, _columns.finite).select()
    return with_enough_clusters(DistributionSample(ForecastTable.from_rows(used), used.cluster_codes))


def read_groups(y_true: Column, forecast: Any, **options: Any) -> GroupedSample[DistributionSample]:
    """Read rows; weights are refused."""
    for name in ("sample_weight", "frequency"):
        if options.get(name) is not None:
            raise InputError(
                Argument(name) + " must be omitted with predictive distributions, which have no weights; got a column."
            )
    known = as_forecast(forecast, len(_columns.read(y_true, "y_true", hint=ONE_COLUMN)))
    rows = Rows.read(y_true, {"y_pred": known.point(), "forecast": known}, **options, hint=ONE_COLUMN)
    return GroupedSample.from_rows(rows, DistributionSample.from_rows, TIME_BLOCKS)


def _mean(rows: Floats, times: Ints) -> Floats:
    drawn = times > 0  # an infinite value of a row that was not drawn counts as none
    return np.asarray(np.average(rows[drawn], weights=times[drawn], axis=0))


def row_means(values: Sequence[Floats], cluster: Ints | None) -> Callable[[Streams], list[list[Floats]]]:
    """Return the function that computes means over the rows that bootstrap replicates draw, alone or in clusters.

    Parameters
    ----------
    values : sequence of arrays of shape (n,) or (n, k)
        Finite numbers of the rows.
    cluster : array of int64, optional
        Cluster of each row.

    Returns
    -------
    callable
        From streams to the means of each of the values, for each replicate.
    """
    size = len(values[0])
    matrices = [rows.reshape(size, -1) for rows in values]
    columns = [np.ascontiguousarray(column, dtype=np.float64) for matrix in matrices for column in matrix.T]
    ends, shapes = np.cumsum([matrix.shape[1] for matrix in matrices])[:-1], [rows.shape[1:] for rows in values]
    zeros, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
    kernel = _kernels.replicates(
        zeros, counts + 1, counts, _kernels.Plan(linear=[(column, zeros) for column in columns])
    )
    order, sizes = (None, None) if cluster is None else (cluster.astype(np.int32), np.bincount(cluster))

    def means(streams: Streams) -> list[list[Floats]]:
        drawn = _kernels.draws(streams.key, streams.first, streams.count, size if sizes is None else sizes.size)
        totals = size if sizes is None else (drawn @ sizes)[:, None]
        parts = np.split(kernel.resample_drawn(drawn, order).linear / totals, ends, axis=1)
        return [
            [part[i].reshape(shape) for part, shape in zip(parts, shapes, strict=True)] for i in range(streams.count)
        ]

    return means
