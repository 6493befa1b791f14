"""Bootstrap replicates of several predictions of the same rows: one draw of rows for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import Streams
from calibrant.inference.binary_replicates import BinaryReplicates, of_same_draws
from calibrant.inference.resampling import PairedRows
from calibrant.metrics.metric import Metric
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["SharedDraws", "StoredReplicates"]


class SharedDraws:
    """Metrics of bootstrap replicates of independent rows with several predictions.

    Rows are drawn in the order of the first table, whose replicates are therefore those that it has alone. For another
    prediction, the numbers of draws are gathered in the order of its own table; the kernel adds them up. Predictions
    that order the rows alike are measured together. `partitions` of the table of each prediction are those that are
    known, by bins.
    """

    def __init__(
        self,
        rows: PairedRows,
        metrics: Sequence[Metric],
        partitions: Sequence[Mapping[Any, Partition]] | None = None,
    ) -> None:
        self.size = rows.event.size
        tables = [_table(*each, rows.event) for each in zip(rows.scores, rows.places, strict=True)]
        first = _rows_in_order(tables[0], rows.places[0], rows.event)
        rank = np.empty(self.size, dtype=np.int32)
        rank[first] = np.arange(self.size, dtype=np.int32)
        others = zip(tables[1:], rows.places[1:], strict=True)
        self.orders = [None, *(_or_none(rank[_rows_in_order(table, place, rows.event)]) for table, place in others)]
        self.alike = _alike(tables, self.orders)
        for one, *others_alike in self.alike:  # they share the arrays of their counts
            for i in others_alike:
                tables[i] = ScoreTable(tables[i].score, tables[one].n, tables[one].k)
        known = partitions or [{}] * len(tables)
        self.models = [
            BinaryReplicates(table, metrics, takes_draws=True, partitions=each)
            for table, each in zip(tables, known, strict=True)
        ]

    def __call__(self, streams: Streams) -> Floats:
        """Return the metrics of the first model, then those of the second one, and so on, one row per replicate."""
        drawn = _kernels.draws(streams.key, streams.first, streams.count, self.size)
        found: dict[int, Floats] = {}
        for group in self.alike:
            values = of_same_draws([self.models[i] for i in group], streams, drawn, self.orders[group[0]])
            found |= zip(group, values, strict=True)
        return np.hstack([found[i] for i in range(len(self.models))])


def _alike(tables: Sequence[ScoreTable], orders: Sequence[_kernels.Order | None]) -> list[list[int]]:
    """Return groups of tables with the same rows in the same order.

    A strictly increasing function of the scores, such as most recalibrations, does not change the order.
    """

    def belongs(i: int, first: int) -> bool:
        pairs = ((orders[i], orders[first]), (tables[i].n, tables[first].n), (tables[i].k, tables[first].k))
        return all(_equal(*pair) for pair in pairs)

    groups: list[list[int]] = []
    for i in range(len(tables)):
        group = next((group for group in groups if belongs(i, group[0])), None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return groups


def _equal(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _or_none(order: _kernels.Order) -> _kernels.Order | None:
    """Return the order of rows; None where it is that of the first table, as for a rising function of its scores."""
    return None if (order == np.arange(order.size)).all() else order


def _table(score: Floats, place: Ints, event: Ints) -> ScoreTable:
    if score.size == event.size:  # one row per score
        k = np.empty_like(event)
        k[place] = event
        return ScoreTable(score, np.ones_like(event), k)
    n, k = (np.bincount(which, minlength=score.size) for which in (place, place[event == 1]))
    return ScoreTable(score, n, k)


def _rows_in_order(table: ScoreTable, place: Ints, event: Ints) -> Ints:
    """Return the rows in order of score, events first."""
    if len(table) == event.size:  # the place of a row is its rank
        rows = np.empty(event.size, dtype=np.int64)
        rows[place] = np.arange(event.size)
        return rows
    # Rows of equal score and outcome stay in their order. Sorting distinct numbers takes a fifth of a stable argsort.
    key = (2 * place + (1 - event)) * event.size + np.arange(event.size)
    return np.remainder(np.sort(key), event.size)


@dataclass(frozen=True, eq=False)
class StoredReplicates:
    """Values of metrics in bootstrap replicates, one row each, from the first one on.

    `kept` may hold the object that drew them, for null replicates of the same metrics; who takes it removes it.
    """

    metrics: Sequence[Metric]
    values: Floats
    kept: list[BinaryReplicates] = field(default_factory=list)

    def has(self, metrics: Sequence[Metric]) -> bool:
        """Return whether the values of all these metrics are stored."""
        return all(metric in self.metrics for metric in metrics)

    def take(self, metrics: Sequence[Metric]) -> BinaryReplicates | None:
        """Return the object that drew replicates of these metrics, once."""
        return self.kept.pop() if self.kept and self.kept[0].metrics == list(metrics) else None

    def of(self, metric: Metric) -> Floats:
        """Return the values of one metric."""
        return self.values[:, list(self.metrics).index(metric)]

    def lookup(self, metrics: Sequence[Metric], streams: Streams) -> Floats:
        """Return the values of the replicates of these streams."""
        which = slice(streams.first, streams.first + streams.count)
        return np.column_stack([self.of(metric)[which] for metric in metrics])
