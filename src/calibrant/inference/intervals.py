"""Confidence intervals of any metric."""

from typing import Any

import numpy as np

from calibrant._support.arrays import Column
from calibrant._support.errors import Note, check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.interval_methods import (
    NULL_METHODS,
    check_interval,
    existing_limits,
    interval_method,
    interval_refusal,
)
from calibrant.inference.replicates import Replicates, resample_metrics
from calibrant.inference.samples import Sample, read_sample
from calibrant.metrics.metric import Metric
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.results.uncertainty import Interval
from calibrant.tables.table_functions import row_options

__all__ = ["bootstrap_metric", "interval", "interval_from_replicates"]


@row_options
def interval(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Interval:
    """Confidence interval of a metric, by the bootstrap.

    Parameters
    ----------
    metric : metric object, its function or class, or a name in `METRICS`
        ``ECE(n_bins=15)``, ``brier``, ``"brier"``.
    y_true, forecast : columns
        Outcomes and forecasts of the kind that the metric measures; for predicted probabilities also one `ScoreTable`
        instead of both.
    confidence_level : float, default=0.95
    n_resamples : int, default=999
        Number of bootstrap replicates; metrics of gaps use as many null replicates.
    random_state : int, Generator or None
        The same seed gives bitwise identical results on any number of threads, and the same draws on both kernels.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are resampled together. Needs rows, not a table, and at least 10
        clusters.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Interval
        ``low``, ``high``, ``level``, ``method``, ``value``.

    See Also
    --------
    null, equivalence, Interval

    Notes
    -----
    The target: for metrics over bins (ECE, ACE, MCE ...) the value of the population over the bins of the sample that
    contain rows; for TCE, whose population value depends on the number of rows, its mean over samples of this size; for
    all others the value of the population. The metric declares its method (``interval_method``), chosen by a study of
    coverage: see "Inference" in the documentation. Limits are clipped to the range that the metric declares, ECE to at
    most 1, and contain the value. Gaps are clipped to those that the scores allow: the bias of scores with the mean
    0.05 is at most 0.05, where the event rate is 0.

    A metric without a valid interval raises an `InputError` with the reason: `auc` with fewer than 10 rows of a class,
    `stratified_brier` with fewer than 20, `log_loss` and `oe_ratio` with none, `calloss` where more than 10 % of rows
    have a score of their own.

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [300, 300, 300], [100, 160, 210])
    >>> interval(ECE(), table, random_state=0)
    Interval(ECE = 0.0889, 95% CI 0.0561 to 0.1212)
    """
    measured = as_metric(metric)
    level, seed = check_share("confidence_level", confidence_level), seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, rows)
    found = bootstrap_metric(measured, sample, seed=seed, n_resamples=n_resamples, show=progress)
    return interval_from_replicates(found, level)


def interval_from_replicates(replicates: Replicates, level: float) -> Interval:
    """Return the interval of this level; NaN limits and a note where none exists."""
    metric, notes = replicates.metric, replicates.notes
    refusal = interval_refusal(replicates)
    low, high = (float("nan"),) * 2 if refusal else existing_limits(replicates, level)
    method = "none" if refusal else interval_method(metric)
    if refusal:
        notes = (*notes, Note("no_interval", 1, refusal))
    size = replicates.bootstrap.size
    return Interval(metric.name, replicates.value, low, high, level, method, metric.unit, size, metric.spec, notes)


def bootstrap_metric(metric: Metric, sample: Sample, **options: Any) -> Replicates:
    """Return the bootstrap replicates of a metric, and null replicates where its interval needs them."""
    # Reasons that are known before resampling: too few rows of a class, or scores without ties.
    check_interval(Replicates(metric, float("nan"), np.empty(0), np.zeros(1), sample))
    method = interval_method(metric)
    options |= {"bootstrap": method != "inversion", "null": method in NULL_METHODS}
    (found,) = resample_metrics([metric], sample, **options)
    check_interval(found)
    return found
