"""Values of several metrics of one table or of its replicates."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError, Note
from calibrant.metrics.metric import Metric, has_bins
from calibrant.tables.partition import Partition

__all__ = ["drop_missing", "metric_values", "mostly_exist"]


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
