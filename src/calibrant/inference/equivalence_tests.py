"""Equivalence tests: is a metric shown to lie within a margin?"""

from typing import Any

from calibrant._support.arrays import Column
from calibrant._support.errors import InputError, check_share, is_number
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.interval_methods import check_interval, interval_limits, interval_method
from calibrant.inference.intervals import bootstrap_metric
from calibrant.inference.replicates import Replicates
from calibrant.inference.resampling import check_resamples
from calibrant.inference.samples import read_sample
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.results.uncertainty import Equivalence
from calibrant.tables.table_functions import row_options

__all__ = ["equivalence", "equivalence_from_replicates"]


def equivalence_from_replicates(replicates: Replicates, margin: float, alpha: float) -> Equivalence:
    """Return the equivalence test at a margin; an error where no interval exists."""
    check_interval(replicates)
    metric = replicates.metric
    if interval_method(metric) == "inversion":
        bounds = replicates.sample.error_bounds
        pvalue, bound = bounds.pvalue(margin), bounds.upper(alpha, margin)
    else:
        pvalue, bound = _equivalence_pvalue(replicates, margin), _upper_bound(replicates, alpha)
    size, notes = replicates.bootstrap.size, replicates.notes
    return Equivalence(
        metric.name, replicates.value, margin, pvalue, alpha, bound, metric.unit, size, metric.spec, notes
    )


def _equivalence_pvalue(replicates: Replicates, margin: float) -> float:
    """Return the smallest tail probability whose limits lie within the margin, by bisection.

    It is at least 1 / (1 + replicates), the smallest p-value of a resampling test.
    """
    least, most = 1 / (1 + replicates.bootstrap.size), 0.5
    if _upper_bound(replicates, least) < margin:
        return least
    if _upper_bound(replicates, most) >= margin:
        return 1.0
    while most - least > 1e-6:
        middle = (least + most) / 2
        least, most = (least, middle) if _upper_bound(replicates, middle) < margin else (middle, most)
    return most


def _upper_bound(replicates: Replicates, tail: float) -> float:
    """Return the upper limit; for metrics with a sign that of the absolute value."""
    low, high = interval_limits(replicates, 1 - 2 * tail)
    return high if replicates.metric.measures_gaps else max(high, -low)


@row_options
def equivalence(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    margin: float,
    alpha: float = 0.05,
    n_resamples: int = 999,
    random_state: RandomState = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> Equivalence:
    """Equivalence test: the hypothesis is that the metric is at least as large as the margin.

    With many rows every model has a significant deviation, however small; a small p-value here shows that the metric
    lies within the margin.

    Parameters
    ----------
    metric, y_true, forecast, n_resamples, random_state, cluster, progress
        See `interval`.
    margin : float
        In the unit of the metric: 0.01 for ECE is one percentage point, 10 for TCE is 10 %. A metric with a sign, such
        as the bias, must lie between -margin and margin.
    alpha : float, default=0.05
        Level of the test, below 0.5.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Equivalence
        ``pvalue``; ``within``, whether it is at most alpha; ``bound``, the upper limit at level 1 - alpha, which is
        below the margin where `within` holds, up to the resolution of the replicates.

    See Also
    --------
    interval, null, Equivalence, AbsoluteMargin

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [30_000, 30_000, 30_000], [6_050, 15_020, 24_060])
    >>> equivalence(ECE(), table, margin=0.01, random_state=0).within
    True
    """
    measured = as_metric(metric)
    _check_options(margin, alpha, n_resamples)
    seed = seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, rows)
    found = bootstrap_metric(measured, sample, seed=seed, n_resamples=n_resamples, show=progress)
    return equivalence_from_replicates(found, margin, alpha)


def _check_options(margin: float, alpha: float, n_resamples: int) -> None:
    if not (is_number(margin) and margin > 0):
        raise InputError(f"margin must be a positive number; got {margin!r}.", argument="margin", value=margin)
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(f"alpha must lie below 0.5; got {alpha!r}.", argument="alpha", value=alpha)
    check_resamples(n_resamples, alpha)
