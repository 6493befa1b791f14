"""`TableSample`: a score table and its rows in clusters, as inference resamples them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Bools
from calibrant._support.lazy import cached_property
from calibrant._support.workers import Submit, thread_count
from calibrant.inference.design import Design
from calibrant.inference.in_the_large import InTheLarge, in_the_large
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.paired_rows import MIN_CLUSTERS, PairedRows
from calibrant.inference.resampling import ReplicateValues, Sample, largest_unseen_rate
from calibrant.inference.table_replicates import (
    SignedResiduals,
    StoredReplicates,
    TableReplicates,
    bootstrap_clusters,
    bootstrap_weights,
    signed_null,
)
from calibrant.metrics.metric import BinnedMetric, Metric, declared, has_bins
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import (
    Partition,
    ScoreTable,
    bernoulli_variance,
    check_scores,
    count_checked,
    count_rows,
    squared_residuals,
)


@dataclass(frozen=True, eq=False)
class TableSample(Sample):
    """A table and, where rows are in clusters, the rows.

    Attributes
    ----------
    table : ScoreTable
    rows : PairedRows or None
        The rows, if they are in enough clusters for inference.
    few_clusters : int or None
        The number of clusters, if it is too small for inference.
    few_rows : PairedRows or None
        The rows, if they are in two or more clusters that are too few for inference.
    stored : StoredReplicates or None
        Bootstrap replicates that were drawn for several tables.
    partitions : mapping of bins to Partition
        Known partitions of the table.
    """

    table: ScoreTable
    rows: PairedRows | None = None
    few_clusters: int | None = None
    few_rows: PairedRows | None = None
    stored: StoredReplicates | None = None
    partitions: Mapping[Any, Partition] = field(default_factory=dict)

    is_drawn_by_kernel: ClassVar[bool] = True

    @classmethod
    def from_rows(cls, rows: Rows) -> "TableSample":
        """Validate and count rows."""
        if rows.cluster is None:
            return cls(count_rows(rows))
        used = check_scores(rows)
        if used.n_clusters < 2:
            return cls(count_checked(used), few_clusters=used.n_clusters)
        paired, (table,) = PairedRows.from_rows(rows)
        if used.n_clusters < MIN_CLUSTERS:
            return cls(table, few_clusters=used.n_clusters, few_rows=paired)
        return cls(table, paired)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return self.few_clusters if self.rows is None else self.rows.n_draws

    @property
    def clustered_rows(self) -> PairedRows | None:
        """The rows, if they are in two or more clusters."""
        return self.few_rows if self.rows is None else self.rows

    def without_clusters(self) -> "TableSample":
        """Return the same rows without their clusters, for estimates."""
        return TableSample(self.table)

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""
        return self.rows is not None

    def bootstrap(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""
        if self.stored is not None and self.stored.has(metrics):
            return partial(self.stored.lookup, metrics)
        if self.rows is not None:
            return bootstrap_clusters(self.table, self.rows, metrics, self.partitions)
        if self.table.importance:
            return bootstrap_weights(self.table, metrics, self.partitions)
        return self._replicates(metrics).bootstrap

    def null(self, metrics: Sequence[Metric]) -> ReplicateValues:
        """Return the function that computes the metrics of null replicates; NaN for those that have none."""
        if self.rows is not None:
            return signed_null(SignedResiduals.of_clusters(self.rows), metrics, self.partitions)
        if self.table.importance:
            return signed_null(SignedResiduals.of_weights(self.table), metrics, self.partitions)
        known = None if self.stored is None else self.stored.take(metrics)
        return (known or self._replicates(metrics)).null

    def start(self, metrics: Sequence[Metric], submit: Submit, *, n_resamples: int, seed: SeedSequence) -> None:
        """Begin to draw replicates of these metrics in other threads, if the kernel draws them and rows are few."""
        if self.has_exact_null and thread_count(self.table.size, "kernel") == 1:
            self._replicates(metrics).start(submit, n_resamples=n_resamples, seed=seed)

    def _replicates(self, metrics: Sequence[Metric]) -> TableReplicates:
        """Return the replicates of these metrics, which bootstrap and null share."""
        if not (self._last and self._last[0].metrics == list(metrics)):
            self._last[:] = [TableReplicates(self.table, metrics, partitions=self.partitions)]
        return self._last[0]

    @cached_property
    def _last(self) -> list[TableReplicates]:
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
    def design(self) -> Design:
        """How the rows depend on each other."""
        return Design(self.table, self.rows)

    @cached_property
    def n_rarer(self) -> float:
        """Independent observations of the rarer outcome: rows, effective rows, or clusters that contain it."""
        return self.design.effective_count

    def in_the_large(self, level: float) -> InTheLarge:
        """Return calibration in the large, with intervals."""
        return in_the_large(self.design, level)

    def influence_moments(self, metric: Any) -> tuple[float, float]:
        """Return standard error and skewness of a metric, from the influence of rows that it declares."""
        variance, skewness = self.design.influence_moments(*metric.influence(self.table))
        return float(np.sqrt(variance)) / float(self.table.size), skewness

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
        return LogOddsDeviation(self.design)

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
        if self.rows is not None:
            assert self.rows.cluster is not None
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
