"""Resampling: metrics of bootstrap replicates of rows, and of null replicates, which a calibrated model could produce.

`resample_metrics` asks a `Sample` for two functions, from the random streams of a block of replicates to the values of
the metrics, and `draw_replicates` calls them for all blocks. Replicate i of a purpose has a random stream of its own,
seeded by (random_state, purpose, i). Results are therefore bitwise identical for any number of threads, equal on both
kernels, and independent of other results with the same seed.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.random import SeedSequence

from calibrant import _kernels
from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError, Note, check_resample_count, join_notes
from calibrant._support.lazy import cached_property
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import Stream, Streams, stream_key
from calibrant._support.workers import map_in_threads, thread_count
from calibrant.metrics.metric import Metric, declared, has_bins
from calibrant.tables.score_table import Partition

PURPOSES = ("bootstrap", "null")

# From the random streams of replicates to the values of several metrics, one row per replicate.
ReplicateValues: TypeAlias = Callable[[Streams], Floats]

_BLOCKS_PER_THREAD = 2  # few: after each, Python reads the metrics from the sums, in one thread at a time
_ROWS_PER_BLOCK = 1.2e7  # of all replicates of a block
_MOST_ROWS_AT_ONCE = 5e8  # of the replicates in memory, about 6 bytes each
_LARGE = 10_000  # rows; the little memory of smaller tables is used again by the next one

_NO_NULL = "{name} needs counts, so with importance weights or clusters its null distribution is undefined."


class ErrorBounds(Protocol):
    """Bounds of an error without resampling, for metrics whose interval method is "inversion"."""

    def lower(self, alpha: float) -> float: ...
    def upper(self, alpha: float, margin: float | None = None) -> float: ...
    def pvalue(self, margin: float) -> float: ...


class Sample(Protocol):
    """Rows of one kind of forecast, as `interval`, `null`, `equivalence`, `consistency` and evaluations use them.

    A kind joins these functions by a class with these members in its module ``sample``; it inherits those that have a
    default.

    Attributes
    ----------
    table : table
        Argument of ``metric.value``, with `size` and `notes`.
    is_drawn_by_kernel : bool
        Whether the kernel does most of the work, so that threads pay off for fewer rows.
    """

    table: Any
    is_drawn_by_kernel: ClassVar[bool] = False

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent. By default those of the attribute `cluster`."""
        cluster = getattr(self, "cluster", None)
        return None if cluster is None else int(cluster.max()) + 1

    def without_clusters(self) -> Self:
        """Return the same rows without their clusters, for estimates."""
        rows: Any = self
        independent: Self = replace(rows, cluster=None)
        return independent

    @property
    def n_rarer(self) -> float:
        """Independent observations that limit the precision, such as rows of the rarer class."""
        ...

    @property
    def is_clustered(self) -> bool:
        """Whether rows are in clusters."""
        return self.n_clusters is not None

    @property
    def has_exact_null(self) -> bool:
        """Whether null replicates are data that could be observed; else metrics that need counts have no null."""
        return not (self.is_clustered or getattr(self.table, "importance", False))

    @property
    def noise_ratio(self) -> float:
        """Ratio of the noise of the data to that of the null, at least 1."""
        return 1.0

    @property
    def error_bounds(self) -> ErrorBounds:
        """Bounds for the interval method "inversion"."""
        raise InputError("metric must have an interval by resampling.", argument="metric")

    def in_the_large(self, level: float, /) -> Any:
        """Return bias and ratio with intervals, for the interval methods "bias" and "ratio"."""
        raise InputError("metric must have an interval by resampling.", argument="metric")

    def influence_moments(self, metric: Any, /) -> tuple[float, float]:
        """Return standard error and skewness of a metric by the influence of rows, for the method "influence"."""
        raise InputError("metric must have an interval by resampling.", argument="metric")

    def bootstrap(self, metrics: Sequence[Any], /) -> ReplicateValues:
        """Return the function that computes the metrics of bootstrap replicates."""
        ...

    def null(self, metrics: Sequence[Any], /) -> ReplicateValues:
        """Return the function that computes the metrics of null replicates; NaN for those that have none."""
        ...

    def null_refusal(self, metric: Any, /) -> str:
        """Return why the metric has no null distribution for this sample; empty where it has one."""
        return ""

    def interval_refusal(self, metric: Any, /) -> str:
        """Return why the metric has no interval for this sample; empty where it has one."""
        return ""

    def unseen_deviation(self, metric: Any, /) -> Callable[[float], float]:
        """Return a function of the tail probability: the deviation that the bootstrap cannot show."""
        return lambda tail: 0.0


@dataclass(frozen=True, eq=False)
class Replicates:
    """The value of a metric of a sample, with its bootstrap and null replicates.

    Attributes
    ----------
    metric : Metric
    value : float
    bootstrap, null : ndarray
        Values of the replicates; empty where they were not computed or do not exist.
    sample : Sample
    notes : tuple of Note
    exists : bool
        Whether the metric exists in at least half of the replicates.
    """

    metric: Metric
    value: float
    bootstrap: Floats
    null: Floats
    sample: Sample
    notes: tuple[Note, ...] = ()
    exists: bool = True

    @cached_property
    def unseen_deviation(self) -> Callable[[float], float]:
        """Deviation that the bootstrap cannot show, by the tail probability."""
        return self.sample.unseen_deviation(self.metric)


def resample_metrics(
    metrics: Sequence[Metric],
    sample: Sample,
    *,
    seed: SeedSequence,
    n_resamples: int,
    bootstrap: bool = True,
    null: bool = True,
    values: Sequence[float] | None = None,
    show: bool | None = None,
    skip_missing: bool = False,
) -> list[Replicates]:
    """Return the replicates of each metric, all from the same resamples; `values` are those of the sample, if known.

    A metric that exists in fewer than half of the replicates is an error, or, with `skip_missing`, marked by `exists`.
    Metrics that need counts have no null with weights or clusters.
    """
    if values is None:
        values = [metric.value(sample.table) for metric in metrics]
    options: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed, "rows": sample.table.size, "show": show}
    options["in_kernel"] = getattr(sample, "is_drawn_by_kernel", False)
    resampled = simulated = np.empty((0, len(metrics)))
    if bootstrap:
        resampled = draw_replicates(sample.bootstrap(metrics), purpose="bootstrap", **options)
    if null:
        simulated = draw_replicates(sample.null(metrics), purpose="null", **options)
    columns = zip(metrics, values, resampled.T, simulated.T, strict=True)
    if not (np.isnan(resampled).any() or np.isnan(simulated).any()):
        return [_complete_replicates(*column, sample) for column in columns]
    return [_replicates(*column, sample, skip_missing) for column in columns]


def draw_replicates(
    function: ReplicateValues,
    *,
    purpose: str,
    n_resamples: int,
    seed: SeedSequence,
    rows: float,
    in_kernel: bool = False,
    show: bool | None = None,
) -> Floats:
    """Return the values of a function of blocks of replicates of so many rows, one row per replicate, in their order.

    A block is so small that an interruption takes effect within a fraction of a second, and so few blocks are computed
    at once that their replicates fit in memory.
    """
    threads = max(
        1, min(thread_count(rows, "kernel" if in_kernel else "Python"), int(_MOST_ROWS_AT_ONCE / max(rows, 1)))
    )
    blocks = replicate_blocks(purpose, n_resamples=n_resamples, seed=seed, rows=rows, threads=threads)
    try:
        values = map_in_threads(function, blocks, threads)
        return np.concatenate(list(progress_bar(values, len(blocks), f"resampling ({purpose})", show=show)))
    finally:
        if rows >= _LARGE:
            _kernels.free_memory()


def replicate_blocks(
    purpose: str, *, n_resamples: int, seed: SeedSequence, rows: float, threads: int = 1
) -> list[Streams]:
    """Return the streams of the replicates of a table of so many rows, in blocks for so many threads."""
    key, count = stream_key(seed, PURPOSES.index(purpose)), check_resample_count(n_resamples)
    least = _BLOCKS_PER_THREAD * threads if threads > 1 else 1
    block = max(1, min(int(_ROWS_PER_BLOCK / max(rows, 1)), -(-count // least)))
    return [Streams(key, first, min(block, count - first)) for first in range(0, count, block)]


def one_by_one(function: Callable[[Stream], Sequence[float] | Floats]) -> ReplicateValues:
    """Return the function of a block of replicates that calls a function of the random stream of each."""
    return lambda streams: np.array([function(stream) for stream in streams], dtype=np.float64)


def check_resamples(n_resamples: int, alpha: float) -> int:
    """Return the number of replicates; raise if it is too small for a p-value of alpha."""
    if check_resample_count(n_resamples) + 1 < 1 / alpha - 1e-9:
        raise InputError(
            Argument("n_resamples")
            + f" must be at least {math.ceil(1 / alpha - 1e-9) - 1:,} for a p-value of {alpha:g}; got {n_resamples}.",
            value=n_resamples,
        )
    return int(n_resamples)


def metric_values(metrics: Sequence[Metric], table: Any) -> list[float]:
    """Return the values; NaN where a metric does not exist, such as AUC of a replicate with one class.

    Metrics with equal bins share them: binning a table costs as much as measuring it.
    """
    partitions: dict[Hashable, Partition] = {}

    def value(metric: Metric) -> float:
        if not (has_bins(metric) and isinstance(metric.bins, Hashable)):
            return metric.value(table)
        if metric.bins not in partitions:
            partitions[metric.bins] = metric.bins(table)
        return metric.value_over(partitions[metric.bins])

    values = []
    for metric in metrics:
        try:
            values.append(value(metric))
        except InputError:
            values.append(float("nan"))
    return values


def drop_missing(values: Floats, metric: str) -> tuple[Floats, tuple[Note, ...]]:
    """Return the replicates that have a value, and a note if some have none."""
    kept = values[~np.isnan(values)]
    dropped = values.size - kept.size
    if not _mostly_exist(values):
        raise InputError(
            f"{metric} must exist in at least half of the replicates; it is undefined in {dropped:,} of "
            f"{values.size:,}, because there are too few rows, or too few rows of one class.",
            hint="Collect more rows, or use another metric.",
        )
    if not dropped:
        return kept, ()
    return kept, (Note("no_value", dropped, f"Replicates dropped because {metric} is undefined there: {{count}}."),)


def largest_unseen_rate(size: float, tail: float) -> float:
    """Return the event rate at which `size` rows have no event with the probability `tail`."""
    return float(1 - tail ** (1 / size))


def _mostly_exist(values: Floats) -> bool:
    """Return whether at least half of the replicates have a value."""
    return bool(2 * np.count_nonzero(np.isnan(values)) <= values.size)


def _complete_replicates(metric: Metric, value: float, bootstrap: Floats, null: Floats, sample: Sample) -> Replicates:
    """Return replicates that all have a value."""
    notes = sample.table.notes
    if not sample.has_exact_null and declared(metric, "needs_counts"):
        null, notes = np.empty(0), join_notes(notes, _without_null(metric))
    return Replicates(metric, value, np.ascontiguousarray(bootstrap), np.ascontiguousarray(null), sample, notes)


def _without_null(metric: Metric) -> tuple[Note, ...]:
    return (Note("no_null", 1, _NO_NULL.format(name=metric.name)),)


def _replicates(
    metric: Metric, value: float, bootstrap: Floats, null: Floats, sample: Sample, skip_missing: bool
) -> Replicates:
    notes = tuple[Note, ...]()
    if not sample.has_exact_null and (declared(metric, "needs_counts") or np.isnan(null).any()):
        null, notes = np.empty(0), _without_null(metric)
    if skip_missing and not (_mostly_exist(bootstrap) and _mostly_exist(null)):
        return Replicates(metric, value, bootstrap, null, sample, exists=False)
    (bootstrap, few), (null, more) = (drop_missing(values, metric.name) for values in (bootstrap, null))
    return Replicates(metric, value, bootstrap, null, sample, join_notes(sample.table.notes, few, more, notes))
