"""Null distributions: values of a metric if the model is calibrated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant._support.arrays import read_only
from calibrant._support.errors import InputError, Note
from calibrant._support.json_values import number, plain
from calibrant._support.option_checks import check_option, check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.short_text import line_html
from calibrant._support.typing import Column, Floats
from calibrant.inference.interval_methods import quantiles
from calibrant.inference.replicates import Replicates, resample_metrics
from calibrant.inference.result_text import format_level, format_limits, format_pvalues
from calibrant.inference.samples import read_sample
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.tables.table_functions import row_options

__all__ = ["Alternative", "Null", "default_alternative", "null", "null_pvalue", "resampling_pvalue"]

Alternative: TypeAlias = Literal["greater", "two-sided"]


@dataclass(frozen=True, repr=False)
class Null:
    """Null distribution of a metric; see `null`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float
        Value of the metric.
    expected : float
        Mean of the null distribution.
    low, high : float
        Null range.
    pvalue : float
        p-value of calibration.
    alternative : {"greater", "two-sided"}
        Deviations that count against calibration.
    level : float
        Share of the null distribution in the range.
    unit : str
        "%" or "1".
    n_resamples : int
        Number of replicates.
    spec : mapping
        Specification of the metric.
    notes : tuple of Note
        Notes about the input.
    replicates : ndarray
        Values of the replicates.

    See Also
    --------
    null, NullDisplay

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.null("ece", table, n_resamples=199, random_state=0)
    >>> found.low <= found.expected <= found.high
    True
    """

    metric: str
    value: float
    expected: float
    low: float
    high: float
    pvalue: float
    alternative: Alternative
    level: float
    unit: str
    n_resamples: int
    spec: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    replicates: Floats = field(default_factory=lambda: np.empty(0), compare=False)

    @classmethod
    def from_replicates(cls, replicates: Replicates, level: float, alternative: Alternative | None = None) -> "Null":
        """Return the null distribution; NaN where no null replicates exist.

        Parameters
        ----------
        replicates : Replicates
            Null replicates of the metric.
        level : float
            Level of the null range.
        alternative : {"greater", "two-sided"}, optional
            Side of the p-value; by default that of the metric.

        Returns
        -------
        Null
        """
        metric, values = replicates.metric, replicates.null
        side = default_alternative(metric) if alternative is None else alternative
        expected = low = high = pvalue = float("nan")
        if values.size:
            low, high = quantiles(values, ((1 - level) / 2, (1 + level) / 2))
            expected, pvalue = float(np.mean(values)), null_pvalue(replicates, side)
        return cls(
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

    @property
    def excess(self) -> float:
        """The value minus the value expected if the model is calibrated."""
        return self.value - self.expected

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the replicates as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), **number("excess", self.excess)}

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits(self.unit, self.value, self.low, self.high, signed=self.low < 0)
        shown = f"{format_level(self.level, 'null range')} {limits}" if limits else "no null range"
        return f"Null({', '.join([f'{self.metric} = {value}', shown, *format_pvalues(self.pvalue)])})"


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
    return Null.from_replicates(found, level, alternative)
