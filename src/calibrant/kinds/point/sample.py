"""Outcomes and point predictions: how they are read, grouped and resampled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Column, Ints
from calibrant._support.errors import Argument, InputError
from calibrant._support.random_streams import Stream
from calibrant.forecasts.predictions import Point
from calibrant.inference.resampling import ReplicateValues, Sample, metric_values, one_by_one
from calibrant.inference.time_blocks import Errors, in_time_blocks, need_blocks
from calibrant.kinds.sample import GroupedSample, with_enough_clusters
from calibrant.metrics.metric import Metric
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, check_means, need_rows, read_mean_table
from calibrant.tables.rows import Missing, Rows

_MOST_DRAWS = 2**24  # rows; beyond, counts of equal rows are drawn by a multinomial distribution


@dataclass(frozen=True, eq=False)
class PointSample(Sample):
    """Outcomes and point predictions and, where rows are in clusters, the cluster of each row.

    There are no null replicates: a point prediction does not state the distribution of the outcome.
    """

    table: MeanTable
    cluster: Ints | None = None

    @classmethod
    def from_rows(cls, rows: Rows) -> "PointSample":
        """Validate rows."""
        used = check_means(rows)
        return cls(MeanTable.from_rows(used), used.cluster_codes)

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are data that could be observed: there are none."""
        return False

    @property
    def n_rarer(self) -> float:
        """Independent observations: rows, effective rows, or clusters."""
        return float(self.table.effective_size if self.n_clusters is None else self.n_clusters)

    def bootstrap(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""
        return one_by_one(lambda stream: metric_values(metrics, self._replicate(stream)))

    def _replicate(self, stream: Stream) -> MeanTable:
        table = self.table
        w2, n = table.w2, table.n
        if self.cluster is None and not (table.single or table.importance):
            n = _drawn_frequencies(stream, n)
        else:
            times = drawn_rows(stream, len(table), self.cluster)
            n, w2 = times * n, None if w2 is None else times * w2
        used = n > 0
        columns = (table.prediction[used], n[used], table.mean[used], table.m2[used])
        return MeanTable(*columns, None if w2 is None else w2[used])

    def null(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Raise an error: point predictions have no null distribution."""
        raise InputError("metric must have a null distribution; point predictions have none.", argument="metric")

    def null_refusal(self, metric: Metric) -> str:
        """Return why the metric has no null distribution for this sample."""
        return f"{metric.name} has no null distribution: point predictions do not state that of the outcome."

    def interval_refusal(self, metric: Metric) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""
        return too_few_rows(metric, self.n_rarer)


def errors(used: Rows) -> list[Errors]:
    """Return the errors of the predictions of each model."""
    predictions = [column.values.astype(np.float64) for column in used.forecasts]
    return [Errors((used.y.values - p)[:, None], p) for p in predictions]


TIME_BLOCKS = partial(in_time_blocks, check=check_means, errors=errors)


def _drawn_frequencies(stream: Stream, n: Ints) -> Ints:
    """Return how many of the rows that each entry stands for are drawn; each of them is drawn for itself."""
    size = int(n.sum())
    if size > _MOST_DRAWS:
        return np.asarray(stream.generator().multinomial(size, n / size))
    return np.add.reduceat(_kernels.draw(stream.key, stream.replicate, size), np.concatenate([[0], np.cumsum(n)[:-1]]))


def read(y_true: Any, y_pred: Any, cluster: Column | None, options: Mapping[str, Any]) -> PointSample:
    """Read the rows for one metric, or take a `MeanTable` of rows; options as for `MeanTable.from_arrays`."""
    if cluster is None and "time" not in options:
        table = read_mean_table(y_true, y_pred, options)
        need_rows(table, "interval")
        return PointSample(table)
    refuse_table(y_true, MeanTable)
    predictions = {"y_pred": read_mean_table.column(y_pred)}
    rows, serial = TIME_BLOCKS(Rows.read(y_true, predictions, cluster=cluster, hint=ONE_COLUMN, **options))
    need_blocks(serial)
    return with_enough_clusters(PointSample.from_rows(rows))


def drawn_rows(stream: Stream, size: int, cluster: Ints | None) -> Ints:
    """Return how often each row is drawn, alone or with its cluster."""
    if cluster is None:
        return _kernels.draw(stream.key, stream.replicate, size)
    times: Ints = _kernels.draw(stream.key, stream.replicate, int(cluster.max()) + 1)[cluster]
    return times


def refuse_table(y_true: Any, kind: type[Any]) -> None:
    """Refuse a table with clusters."""
    if isinstance(y_true, kind):
        raise InputError(
            f"cluster must be given with rows; got a {kind.__name__}, which does not contain the clusters.",
            hint="Pass outcomes, forecasts and cluster.",
            argument="cluster",
        )


def too_few_rows(metric: Metric, size: float) -> str:
    """Return why rows are too few for an interval; empty where they are enough."""
    if size >= 2:
        return ""
    return f"{metric.name} needs at least 2 rows for an interval; got {size:.3g}. Collect more rows."


def read_groups(
    y_true: Column | MeanTable, y_pred: Any = None, *, missing: Missing = "raise", **options: Any
) -> GroupedSample[PointSample]:
    """Read rows, or take one table."""
    if isinstance(y_true, MeanTable):
        beside = [name for name, value in {"y_pred": y_pred, **options}.items() if value is not None]
        if beside:
            raise InputError(f"{', '.join(beside)} must be omitted with a MeanTable; got both.", argument=beside[0])
        need_rows(y_true, "evaluate")
        return GroupedSample(PointSample(y_true))
    y_pred = y_pred.y_pred if isinstance(y_pred, Point) else y_pred
    if y_pred is None or isinstance(y_pred, Mapping):
        found = "is missing" if y_pred is None else "must be one column or one forecast; got a mapping"
        raise InputError(Argument("y_pred") + f" {found}.", hint="Pass one column, one forecast, or a MeanTable.")
    rows = Rows.read(y_true, {"y_pred": y_pred}, missing=missing, **options, hint=ONE_COLUMN)
    return GroupedSample.from_rows(rows, PointSample.from_rows, TIME_BLOCKS)
