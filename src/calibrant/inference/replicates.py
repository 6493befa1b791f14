"""Replicates of metrics: the bootstrap and null values behind intervals, nulls and equivalence tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats
from calibrant._support.errors import Note, join_notes
from calibrant._support.workers import cached_property
from calibrant.inference.metric_values import drop_missing, mostly_exist
from calibrant.inference.resampling import THREADS_FROM, map_blocks
from calibrant.inference.samples import Sample
from calibrant.metrics.metric import Metric, declared

__all__ = ["Replicates", "resample_metrics"]

_NO_NULL = "{name} needs counts, so with importance weights or clusters its null distribution is undefined."


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
    threads: bool | None = None,
    other_threads: int = 0,
    show: bool | None = None,
    skip_missing: bool = False,
) -> list[Replicates]:
    """Return the replicates of each metric, all from the same resamples; `values` are those of the sample, if known.

    Threads are used by default where rows are many; `other_threads` work meanwhile. A metric that exists in fewer than
    half of the replicates is an error, or, with `skip_missing`, marked by `exists`. Metrics that need counts have no
    null with weights or clusters.
    """
    common: dict[str, Any] = {
        "n_resamples": n_resamples,
        "seed": seed,
        "rows": sample.table.size,
        "threads": sample.table.size >= getattr(sample, "threads_from", THREADS_FROM) if threads is None else threads,
        "other_threads": other_threads,
        "show": show,
    }
    if values is None:
        values = [metric.value(sample.table) for metric in metrics]
    resampled = simulated = np.empty((0, len(metrics)))
    if bootstrap:
        resampled = map_blocks(sample.bootstrap(metrics), purpose="bootstrap", **common)
    if null:
        simulated = map_blocks(sample.null(metrics), purpose="null", **common)
    columns = zip(metrics, values, resampled.T, simulated.T, strict=True)
    if not (np.isnan(resampled).any() or np.isnan(simulated).any()):
        return [_complete_replicates(*each, sample) for each in columns]
    return [_replicates(*each, sample, skip_missing) for each in columns]


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
    if skip_missing and not (mostly_exist(bootstrap) and mostly_exist(null)):
        return Replicates(metric, value, bootstrap, null, sample, exists=False)
    (bootstrap, few), (null, more) = (drop_missing(values, metric.name) for values in (bootstrap, null))
    return Replicates(metric, value, bootstrap, null, sample, join_notes(sample.table.notes, few, more, notes))
