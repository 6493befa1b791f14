"""Values of several metrics of one table or of its replicates."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.random import SFC64

from calibrant import _kernels
from calibrant._support.errors import InputError, Note
from calibrant._support.typing import Floats
from calibrant.inference.resampling import bootstrap_sampler, samples_rows
from calibrant.metrics.metric import Metric, declared, has_bins
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["bootstrap_values", "drop_missing", "metric_values", "mostly_exist"]


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

    found = []
    for metric in metrics:
        try:
            found.append(value(metric))
        except InputError:
            found.append(float("nan"))
    return found


def bootstrap_values(table: ScoreTable, metrics: Sequence[Metric]) -> Callable[[SFC64], list[float]]:
    """Return the function from a random stream to the metrics of one bootstrap replicate.

    If all metrics need only sums over bins that are the same in every replicate (ECE, for one), the table of the
    replicate is not built.
    """
    fixed = [m for m in metrics if has_bins(m) and getattr(m.bins, "fixed", False) and declared(m, "needs_sums_only")]
    # One kind of bins only: the reference kernel advances its stream, so a second kind would see other rows.
    shared = len(fixed) == len(metrics) and len({metric.bins for metric in fixed}) == 1
    if not shared or table.importance or not samples_rows(table):
        sampler = bootstrap_sampler(table)
        return lambda bits: metric_values(metrics, sampler(bits))
    partition = fixed[0].bins(table)

    def values(bits: SFC64) -> list[float]:
        sums = _kernels.resample_bins(table.score, table.n, table.k, partition.start, bits)
        return [metric.value_over(partition.with_sums(*sums)) for metric in fixed]

    return values


def mostly_exist(values: Floats) -> bool:
    """Return whether at least half of the replicates have a value."""
    return bool(2 * np.count_nonzero(np.isnan(values)) <= values.size)


def drop_missing(values: Floats, metric: str) -> tuple[Floats, tuple[Note, ...]]:
    """Return the replicates that have a value, and a note if some have none."""
    kept = values[~np.isnan(values)]
    dropped = values.size - kept.size
    if not mostly_exist(values):
        raise InputError(
            f"{metric} must exist in at least half of the replicates; it is undefined in {dropped:,} of "
            f"{values.size:,}, because there are too few rows, or too few rows of one class.",
            hint="Collect more rows, or use another metric.",
        )
    if not dropped:
        return kept, ()
    return kept, (Note("no_value", dropped, f"Replicates dropped because {metric} is undefined there: {{count}}."),)
