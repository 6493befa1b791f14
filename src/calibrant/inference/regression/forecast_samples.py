"""`PointSample` and `DistributionSample`: rows of point predictions and distributions, as inference resamples them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import InputError
from calibrant._support.random_streams import Stream, Streams
from calibrant.forecasts.forecast_table import ForecastTable, as_forecast, read_forecast_table
from calibrant.inference.metric_values import metric_values
from calibrant.inference.regression.row_means import RowMeans
from calibrant.inference.resampling import check_clusters, one_by_one
from calibrant.inference.samples import largest_unseen_rate
from calibrant.metrics.metric import Metric
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, check_means, need_rows, read_mean_table
from calibrant.tables.rows import Rows

__all__ = ["DistributionSample", "PointSample", "regression_sample"]

_MOST_DRAWS = 2**24  # rows; beyond, counts of equal rows are drawn by a multinomial distribution


@dataclass(frozen=True, eq=False)
class PointSample:
    """Outcomes and point predictions and, where rows are in clusters, the cluster of each row.

    There are no null replicates: a point prediction does not state the distribution of the outcome.
    """

    table: MeanTable
    cluster: Ints | None = None

    @classmethod
    def read(cls, y_true: Any, y_pred: Any, cluster: Column | None, options: Mapping[str, Any]) -> "PointSample":
        """Read rows, or take a `MeanTable` of rows; options as for `MeanTable.from_arrays`."""
        if cluster is None:
            table = read_mean_table(y_true, y_pred, options)
            need_rows(table, "interval")
            return cls(table)
        _refuse_table(y_true, MeanTable)
        predictions = {"y_pred": read_mean_table.column(y_pred)}
        used = check_means(Rows.read(y_true, predictions, cluster=cluster, hint=ONE_COLUMN, **options))
        return cls(MeanTable.from_rows(used), _checked_codes(used))

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""
        return self.cluster is not None

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are data that could be observed: there are none."""
        return False

    @property
    def n_rarer(self) -> float:
        """Independent observations: rows, effective rows, or clusters."""
        return float(self.table.effective_size) if self.cluster is None else float(self.cluster.max() + 1)

    @property
    def noise_ratio(self) -> float:
        """Ratio of the noise of the data to that of the null, which does not exist."""
        return 1.0

    @property
    def error_bounds(self) -> Any:
        """No metric of point predictions has the interval method "inversion"."""
        raise InputError("metric must have an interval by resampling.", argument="metric")

    def bootstrap(self, metrics: Sequence[Metric]) -> Callable[[Streams], Floats]:
        """Return the function that computes the metrics of bootstrap replicates."""
        return one_by_one(lambda stream: metric_values(metrics, self._replicate(stream)))

    def _replicate(self, stream: Stream) -> MeanTable:
        table = self.table
        w2, n = table.w2, table.n
        if self.cluster is None and not (table.single or table.importance):
            n = _drawn_frequencies(stream, n)
        else:
            times = _drawn(stream, len(table), self.cluster)
            n, w2 = times * n, None if w2 is None else times * w2
        used = n > 0
        columns = (table.prediction[used], n[used], table.mean[used], table.m2[used])
        return MeanTable(*columns, None if w2 is None else w2[used])

    def null(self, metrics: Sequence[Metric]) -> Callable[[Streams], Floats]:
        """Raise an error: point predictions have no null distribution."""
        raise InputError("metric must have a null distribution; point predictions have none.", argument="metric")

    def null_refusal(self, metric: Metric) -> str:
        """Return why the metric has no null distribution for this sample."""
        return f"{metric.name} has no null distribution: point predictions do not state that of the outcome."

    def interval_refusal(self, metric: Metric) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""
        return _too_few(metric, self.n_rarer)

    def unseen_deviation(self, metric: Metric) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation that the bootstrap cannot show."""
        return lambda tail: 0.0


@dataclass(frozen=True, eq=False)
class DistributionSample:
    """Outcomes and predictive distributions and, where rows are in clusters, the cluster of each row.

    Null replicates simulate the outcomes from the forecasts, so all metrics of a replicate see the same outcomes; the
    outcome and the members of an ensemble are exchanged. In clusters, outcomes may depend on each other: only metrics
    of gaps have a null there, with deviations of random sign for each cluster.
    """

    table: ForecastTable
    cluster: Ints | None = None

    @classmethod
    def read(
        cls, y_true: Any, forecast: Any, cluster: Column | None, options: Mapping[str, Any]
    ) -> "DistributionSample":
        """Read rows, or take a `ForecastTable`; the only option is `missing`."""
        for name, value in options.items():
            if name != "missing" and value is not None:
                raise InputError(
                    f"{name} must be omitted with predictive distributions, which have no weights; got a column.",
                    argument=name,
                )
        missing = {name: value for name, value in options.items() if name == "missing"}
        if cluster is None:
            return cls(read_forecast_table(y_true, forecast, missing))
        _refuse_table(y_true, ForecastTable)
        known = as_forecast(read_forecast_table.column(forecast), len(_columns.read(y_true, "y_true", hint=ONE_COLUMN)))
        rows = Rows.read(y_true, {"forecast": known}, cluster=cluster, hint=ONE_COLUMN, **missing)
        used = rows.check(_columns.finite, _columns.finite).select()
        return cls(ForecastTable.from_rows(used), _checked_codes(used))

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""
        return self.cluster is not None

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are data that could be observed."""
        return not self.is_clustered

    @property
    def n_rarer(self) -> float:
        """Independent observations: rows or clusters."""
        return float(len(self.table)) if self.cluster is None else float(self.cluster.max() + 1)

    @property
    def noise_ratio(self) -> float:
        """Ratio of the noise of the data to that of the null: shares of outcomes have the same noise."""
        return 1.0

    @property
    def error_bounds(self) -> Any:
        """No metric of distributions has the interval method "inversion"."""
        raise InputError("metric must have an interval by resampling.", argument="metric")

    def bootstrap(self, metrics: Sequence[Any]) -> Callable[[Streams], Floats]:
        """Return the function that computes the metrics of bootstrap replicates."""
        values = [metric.row_values(self.table) for metric in metrics]

        def combine(means: Sequence[Floats]) -> list[float]:
            return [metric.combine(mean, self.table) for metric, mean in zip(metrics, means, strict=True)]

        def one(stream: Stream) -> list[float]:
            times = _drawn(stream, len(self.table), self.cluster)
            return combine([_mean(rows, times) for rows in values])

        if not (values and RowMeans.can_hold(values)):
            return one_by_one(one)
        means = RowMeans(values, self.cluster)
        return lambda streams: np.array([combine(each) for each in means(streams)], dtype=np.float64)

    def null(self, metrics: Sequence[Any]) -> Callable[[Streams], Floats]:
        """Return the function that computes the metrics of null replicates."""
        refusals = [reason for reason in map(self.null_refusal, metrics) if reason]
        if refusals:
            raise InputError(refusals[0], argument="metric")
        if self.cluster is not None:
            return self._signed(metrics, self.cluster)
        return one_by_one(
            lambda stream: [metric.value(each) for each in [self._simulated(stream)] for metric in metrics]
        )

    def _simulated(self, stream: Stream) -> ForecastTable:
        return self.table.simulate(stream.generator())

    def _signed(self, metrics: Sequence[Any], cluster: Ints) -> Callable[[Streams], Floats]:
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
        return _too_few(metric, self.n_rarer)

    def unseen_deviation(self, metric: Any) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation at levels whose intervals cover all rows, or none.

        The bootstrap does not move a share of 0 or 1.
        """
        if not metric.measures_gaps:
            return lambda tail: 0.0
        share = float(np.mean(np.ptp(metric.row_values(self.table), axis=0) == 0))
        return lambda tail: share * largest_unseen_rate(self.n_rarer, tail)


def regression_sample(table: MeanTable, forecast: Any | None, cluster: Ints | None) -> PointSample | DistributionSample:
    """Return the sample of rows that were read: distributions where there are any, else point predictions."""
    if forecast is None:
        return PointSample(table, cluster)
    return DistributionSample(ForecastTable(table.mean, forecast, table.notes, table.n_in, table.n_dropped), cluster)


def _drawn(stream: Stream, size: int, cluster: Ints | None) -> Ints:
    """Return how often each row is drawn, alone or with its cluster."""
    if cluster is None:
        return _kernels.draw(stream.key, stream.replicate, size)
    times: Ints = _kernels.draw(stream.key, stream.replicate, int(cluster.max()) + 1)[cluster]
    return times


def _drawn_frequencies(stream: Stream, n: Ints) -> Ints:
    """Return how many of the rows that each entry stands for are drawn; each of them is drawn for itself."""
    size = int(n.sum())
    if size > _MOST_DRAWS:
        return np.asarray(stream.generator().multinomial(size, n / size))
    return np.add.reduceat(_kernels.draw(stream.key, stream.replicate, size), np.concatenate([[0], np.cumsum(n)[:-1]]))


def _mean(rows: Floats, times: Ints) -> Floats:
    drawn = times > 0  # an infinite value of a row that was not drawn counts as none
    return np.asarray(np.average(rows[drawn], weights=times[drawn], axis=0))


def _checked_codes(rows: Rows) -> Ints:
    codes = rows.cluster_codes
    assert codes is not None
    check_clusters(int(codes.max()) + 1)
    return codes


def _refuse_table(y_true: Any, kind: type[Any]) -> None:
    if isinstance(y_true, kind):
        raise InputError(
            f"cluster must be given with rows; got a {kind.__name__}, which does not contain the clusters.",
            hint="Pass outcomes, forecasts and cluster.",
            argument="cluster",
        )


def _too_few(metric: Metric, size: float) -> str:
    if size >= 2:
        return ""
    return f"{metric.name} needs at least 2 rows for an interval; got {size:.3g}. Collect more rows."
