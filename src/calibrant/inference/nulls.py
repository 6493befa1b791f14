"""Null distributions: values of a metric if the model is calibrated."""

from typing import Any, get_args

import numpy as np

from calibrant._support.arrays import Column, Floats, read_only
from calibrant._support.errors import InputError, check_option, check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.interval_methods import quantiles
from calibrant.inference.replicates import Replicates, resample_metrics
from calibrant.inference.samples import read_sample
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.results.uncertainty import Alternative, Null
from calibrant.tables.table_functions import row_options

__all__ = ["default_alternative", "null", "null_from_replicates", "null_pvalue", "resampling_pvalue"]


def null_from_replicates(replicates: Replicates, level: float, alternative: Alternative | None = None) -> Null:
    """Return the null distribution; NaN where no null replicates exist."""
    metric, values = replicates.metric, replicates.null
    side = default_alternative(metric) if alternative is None else alternative
    expected = low = high = pvalue = float("nan")
    if values.size:
        low, high = quantiles(values, ((1 - level) / 2, (1 + level) / 2))
        expected, pvalue = float(np.mean(values)), null_pvalue(replicates, side)
    return Null(
        metric=metric.name,
        value=replicates.value,
        expected=expected,
        low=low,
        high=high,
        pvalue=pvalue,
        alternative=side,
        level=level,
        unit=metric.unit,
        n_resamples=values.size,
        spec=metric.spec,
        notes=replicates.notes,
        replicates=read_only(values),
    )


def default_alternative(metric: Metric) -> Alternative:
    """Return which values are evidence against calibration: high ones for metrics of gaps, else extreme ones."""
    return "greater" if metric.measures_gaps else "two-sided"


def null_pvalue(replicates: Replicates, alternative: Alternative) -> float:
    """Return the p-value of the hypothesis that the model is calibrated."""
    above = resampling_pvalue(replicates.null, replicates.value)
    if alternative == "greater":
        return above
    return min(1.0, 2 * min(above, resampling_pvalue(-replicates.null, -replicates.value)))


def resampling_pvalue(simulated: Floats, observed: float) -> float:
    """Return the share of values at least as large as the observed one, which counts as one of them.

    Values that are smaller by at most 1e-12 (times the observed value, if that is above 1) count as equal.

    >>> resampling_pvalue(np.array([0.1, 0.2, 0.3]), 0.25)
    0.5
    """
    slack = 1e-12 * max(1.0, abs(observed))
    return float((1 + np.count_nonzero(simulated >= observed - slack)) / (1 + simulated.size))


@row_options
def null(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = None,
    alternative: Alternative | None = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Null:
    """Null distribution of a metric: its values if the model is calibrated, over the same kind of bins.

    Parameters
    ----------
    metric, y_true, forecast, n_resamples, random_state, progress
        See `interval`.
    confidence_level : float, default=0.95
        Level of the null range, the middle of the distribution.
    alternative : {"greater", "two-sided"}, optional
        Which values are evidence against calibration. By default high ones for metrics of gaps, extreme ones for all
        others: underconfident scores have a Brier score below that of a calibrated model.
    cluster : column, optional
        Outcomes of one cluster may depend on each other. Needs rows, not a table, and at least 10 clusters.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Null
        ``expected``, the null range ``low`` to ``high``, ``pvalue``, and ``excess``, the value minus ``expected``.

    See Also
    --------
    interval, consistency, Null

    Notes
    -----
    For counts, outcomes are simulated from the scores, and the p-value, (1 + replicates at least as extreme) /
    (1 + replicates), is exact: under the null the data are one more replicate. With importance weights or clusters,
    residuals keep their sizes and get random signs (one per score, one per cluster); the p-value is then approximate
    and holds for many rows or clusters. A metric that needs counts (TCE with the exact test, calbin) then has no null:
    its numbers are NaN, and a note gives the reason.

    Examples
    --------
    >>> from calibrant import TCE
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = null(TCE(), rng.random(2000) < p, p, random_state=0)
    >>> bool(found.low <= found.value <= found.high), found.pvalue > 0.05
    (True, True)
    """
    measured = as_metric(metric)
    if not declared(measured, "has_null"):
        raise InputError(
            f"metric must have a null distribution; got {measured.name}, which declares that none exists.",
            hint=getattr(measured, "null_hint", "Use calibrant.interval."),
            argument="metric",
            value=metric,
        )
    if alternative is not None:
        check_option("alternative", alternative, get_args(Alternative))
    level, seed = check_share("confidence_level", confidence_level), seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, rows)
    options: dict[str, Any] = {"seed": seed, "n_resamples": n_resamples, "show": progress}
    (found,) = resample_metrics([measured], sample, bootstrap=False, **options)
    return null_from_replicates(found, level, alternative)
