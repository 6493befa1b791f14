"""Samples: the rows that inference resamples, one class for each kind of forecast."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Bools, Column, Floats, Ints
from calibrant._support.errors import InputError
from calibrant._support.random_streams import Streams
from calibrant._support.workers import Submit, cached_property
from calibrant.inference.binary_replicates import BinaryReplicates
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.resampling import (
    THREADS_FROM_IN_KERNEL,
    PairedRows,
    read_rows,
)
from calibrant.inference.shared_draws import StoredReplicates
from calibrant.inference.signed_residuals import SignedResiduals
from calibrant.inference.weighted_replicates import SignedReplicates, bootstrap_clusters, bootstrap_weights
from calibrant.metrics.metric import BinnedMetric, Metric, declared, has_bins
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable, bernoulli_variance, event_squares, squared_residuals
from calibrant.tables.table_functions import read_score_forecast

__all__ = ["READERS", "BinarySample", "Sample", "read_sample"]

# From the random streams of replicates to the values of several metrics, one row per replicate.
ReplicateValues: TypeAlias = Callable[[Streams], Floats]


class ErrorBounds(Protocol):
    """Bounds of an error without resampling, for metrics whose interval method is "inversion"."""

    def lower(self, alpha: float) -> float: ...
    def upper(self, alpha: float, margin: float | None = None) -> float: ...
    def pvalue(self, margin: float) -> float: ...


class Sample(Protocol):
    """Rows of one kind of forecast, as `interval`, `null`, `equivalence` and `consistency` use them.

    A kind joins these functions by a class with these members and an entry in `READERS`. It may declare `threads_from`,
    the number of rows from which threads are worth their price.
    """

    @property
    def table(self) -> Any:
        """Argument of ``metric.value``, with `size` and `notes`."""

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are data that could be observed; else metrics that need counts have no null."""

    @property
    def n_rarer(self) -> float:
        """Independent observations that limit the precision, such as rows of the rarer class."""

    @property
    def noise_ratio(self) -> float:
        """Ratio of the noise of the data to that of the null, at least 1."""

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""

    @property
    def error_bounds(self) -> ErrorBounds:
        """Bounds for the interval method "inversion"."""

    def bootstrap(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""

    def null(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of null replicates."""

    def interval_refusal(self, metric: Metric) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""

    def unseen_deviation(self, metric: Metric) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation that the bootstrap cannot show."""


@dataclass(frozen=True, eq=False)
class BinarySample:
    """Outcomes and predicted probabilities: a table and, where rows are in clusters, the rows."""

    table: ScoreTable
    rows: PairedRows | None = None
    stored: StoredReplicates | None = None  # bootstrap replicates that were drawn for several tables
    partitions: Mapping[Any, Partition] = field(default_factory=dict)  # of the table, by bins, where they are known

    @classmethod
    def read(cls, y_true: Any, y_prob: Any, cluster: Column | None, options: Mapping[str, Any]) -> "BinarySample":
        """Read rows, or take a table; options as for `ScoreTable.from_arrays`."""
        return cls(*read_rows(y_true, y_prob, cluster, dict(options), read_score_forecast))

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""
        return self._cluster is not None

    @property
    def threads_from(self) -> int:
        """Number of rows from which threads are worth their price: few, since the kernel does most of the work."""
        return THREADS_FROM_IN_KERNEL

    @property
    def _cluster(self) -> Ints | None:
        return None if self.rows is None else self.rows.cluster

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are counts of events; with weights or clusters residuals get random signs."""
        return not (self.table.importance or self.is_clustered)

    def bootstrap(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""
        if self.stored is not None and self.stored.has(metrics):
            return partial(self.stored.lookup, metrics)
        if self.has_exact_null:
            return self._replicates(metrics).bootstrap
        if self.rows is not None and self.is_clustered:
            return bootstrap_clusters(self.table, self.rows, metrics, self.partitions)
        return bootstrap_weights(self.table, metrics, self.partitions)

    def start(self, metrics: Sequence[Metric], submit: Submit, *, n_resamples: int, seed: SeedSequence) -> None:
        """Begin to draw replicates of these metrics in other threads, if the kernel draws them and rows are few."""
        if self.has_exact_null and self.table.size < THREADS_FROM_IN_KERNEL:
            self._replicates(metrics).start(submit, n_resamples=n_resamples, seed=seed)

    def null(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of null replicates; NaN for those that have none."""
        if self.has_exact_null:
            known = None if self.stored is None else self.stored.take(metrics)
            return (known or self._replicates(metrics)).null
        table, residuals = self.table, None
        if self.rows is not None and self.is_clustered:
            table, residuals = self.rows.fitted_table(), self.rows.signed_residuals()
        residuals = residuals or SignedResiduals.of_weights(table)
        defined = np.array([not declared(metric, "needs_counts") for metric in metrics], dtype=bool)
        kept = [metric for metric, is_defined in zip(metrics, defined, strict=True) if is_defined]
        replicates = SignedReplicates(table, kept, residuals, self.partitions)

        def values(streams: Streams) -> Floats:
            found = np.full((streams.count, len(metrics)), np.nan)
            found[:, defined] = replicates(streams)
            return found

        return values

    def _replicates(self, metrics: Sequence[Metric]) -> BinaryReplicates:
        """Return the replicates of these metrics, which bootstrap and null share."""
        if not (self._last and self._last[0].metrics == list(metrics)):
            self._last[:] = [BinaryReplicates(self.table, metrics, partitions=self.partitions)]
        return self._last[0]

    @cached_property
    def _last(self) -> list[BinaryReplicates]:
        return []

    def interval_refusal(self, metric: Metric) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""
        fewest = declared(metric, "min_class_size")
        if self.n_rarer < fewest:
            unit = "clusters with and without the event" if self.is_clustered else "rows of each class"
            return (
                f"{metric.name} needs {unit} for an interval, at least {fewest}; got {self.n_rarer:.3g} of the rarer "
                "kind. Collect more rows, or report the value alone."
            )
        return str(getattr(metric, "interval_refusal", lambda table: "")(self.table))

    @cached_property
    def n_rarer(self) -> float:
        """Independent observations of the rarer outcome: rows, effective rows, or clusters that contain it."""
        if self.rows is not None and self.rows.cluster is not None:
            with_event, without = (self.rows.cluster[self.rows.event == outcome] for outcome in (1, 0))
            return float(min(np.unique(with_event).size, np.unique(without).size))
        k, n = float(self.table.positives), float(self.table.size)
        if self.table.w2 is None:
            return min(k, n - k)
        k2, w2 = float(np.sum(event_squares(self.table))), float(np.sum(self.table.w2))
        pairs = ((k, k2), (n - k, w2 - k2))
        return min(total**2 / squares if squares > 0 else 0.0 for total, squares in pairs)

    @cached_property
    def noise_ratio(self) -> float:
        """Ratio of the noise of the data to that of a calibrated model, at least 1.

        Outcomes of a model that underestimates vary more than its scores imply, by the ratio of the Brier score to its
        expectation. The null of weights and clusters has the variance of the data.
        """
        p = self.table.score
        expected = float(np.sum(bernoulli_variance(self.table.n, p)))
        # Where almost no noise is expected, null replicates have none, and the quotient may overflow.
        if not self.has_exact_null or expected < 1e-200:
            return 1.0
        return float(np.sqrt(max(1.0, np.sum(squared_residuals(self.table, p)) / max(expected, 1e-290))))

    @cached_property
    def error_bounds(self) -> LogOddsDeviation:
        """Bounds of the log-odds error."""
        return LogOddsDeviation(Design(self.table, self.rows if self.is_clustered else None))

    def unseen_deviation(self, metric: Metric) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation of bins with one outcome only.

        The bootstrap does not move the rate of a bin without events, or with events only. The rate of n rows without an
        event is below 1 - tail^(1/n) (Clopper and Pearson); rows of all such bins count as one group. A metric that
        needs more than sums over bins is treated as if it had one bin.
        """
        if has_bins(metric) and metric.measures_gaps and declared(metric, "needs_sums_only"):
            return self._unseen_in_bins(metric)
        if self.n_rarer > 0 or not np.isfinite(declared(metric, "range")).all():
            return lambda tail: 0.0
        size, degree = self._independent_size(np.ones(len(self.table), dtype=bool)), declared(metric, "degree")
        return lambda tail: float(largest_unseen_rate(size, tail) ** degree)

    def _unseen_in_bins(self, metric: BinnedMetric) -> Callable[[float], float]:
        bins = self.partitions.get(metric.bins) or metric.bins(self.table)
        kinds = [pure for pure in (bins.k == 0, bins.k == bins.n) if pure.any()]
        sizes = [(pure, self._independent_size(pure[bins.labels])) for pure in kinds]
        return lambda tail: _pure_bin_deviation(metric, bins, sizes, tail) if sizes else 0.0

    def _independent_size(self, scores: Bools) -> float:
        """Return the number of independent observations with these scores: rows, effective rows, or clusters."""
        if self.rows is not None and self.rows.cluster is not None:
            return float(np.unique(self.rows.cluster[scores[self.rows.places[0]]]).size)
        n, w2 = self.table.n[scores], self.table.w2
        return float(n.sum() if w2 is None else n.sum() ** 2 / w2[scores].sum())


def _pure_bin_deviation(
    metric: BinnedMetric, bins: Partition, sizes: Sequence[tuple[Bools, float]], tail: float
) -> float:
    """Return the metric of bins with one outcome only whose rates lie at their limits, and no gap in other bins."""
    limit = np.zeros(len(bins))
    for pure, size in sizes:
        limit[pure] = largest_unseen_rate(size, tail)
    # Gaps of that size: a score of 0 in bins without an event, of 1 in bins with events only.
    everything = bins.k == bins.n
    rate = np.where(everything, 1 - limit, limit)
    rate[limit == 0] = 0.0
    moved = bins.with_sums(bins.n, bins.n * rate, bins.n * everything * (limit > 0))
    return float(metric.norm(metric.loss(moved), moved.n))


def largest_unseen_rate(size: float, tail: float) -> float:
    """Return the event rate at which `size` rows have no event with the probability `tail`."""
    return float(1 - tail ** (1 / size))


def _read_multiclass(y_true: Any, proba: Any, cluster: Column | None, options: Mapping[str, Any]) -> Sample:
    from calibrant.inference.multiclass.sample import MulticlassSample

    return MulticlassSample.read(y_true, proba, cluster, options)


def _read_points(y_true: Any, y_pred: Any, cluster: Column | None, options: Mapping[str, Any]) -> Sample:
    from calibrant.inference.regression.forecast_samples import PointSample

    return PointSample.read(y_true, y_pred, cluster, options)


def _read_distributions(y_true: Any, forecast: Any, cluster: Column | None, options: Mapping[str, Any]) -> Sample:
    from calibrant.inference.regression.forecast_samples import DistributionSample

    return DistributionSample.read(y_true, forecast, cluster, options)


# How rows of each kind of forecast are read: from (y_true, forecast, cluster, options) to a `Sample`.
READERS: Mapping[str, Callable[[Any, Any, Column | None, Mapping[str, Any]], Sample]] = MappingProxyType(
    {
        "binary": BinarySample.read,
        "multiclass": _read_multiclass,
        "point": _read_points,
        "distribution": _read_distributions,
    }
)


def read_sample(
    metric: Metric, y_true: Any, forecast: Any, cluster: Column | None, options: Mapping[str, Any]
) -> Sample:
    """Read the rows for a metric, as its kind of forecast requires."""
    kind = declared(metric, "kind")
    if kind not in READERS:
        raise InputError(
            f"metric must measure a kind of forecast that can be resampled ({', '.join(READERS)}); got {metric.name}, "
            f"whose kind is {kind!r}.",
            argument="metric",
            value=kind,
        )
    return READERS[kind](y_true, forecast, cluster, options)
