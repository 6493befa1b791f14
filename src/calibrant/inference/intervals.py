"""From replicates of a metric to its confidence interval, null distribution and equivalence test.

A metric declares its method (`interval_method`). Upper limits lie above the value by the larger of the two distances
between the bootstrap's mean (or the value) and its quantiles, times a factor for small samples. All limits are clipped
to the range of the metric and contain the value. The coverage study (docs/inference) chose between the methods. With v
the value and u_0, u_1 the upper quantiles of null and bootstrap:

- ``anchored`` for means of gaps, which are biased upwards and whose bootstrap doubles that bias. Between the calibrated
  model (t = 0) and the data (t = 1) lies a population with t times the gaps, in which upper quantiles are about
  sqrt(u_0^2 + t^2 (u_1^2 - u_0^2)). The lower limit is the metric t v of the population whose upper quantile is v: 0
  where v is at most the upper quantile of a calibrated model. It is at most v less the bootstrap's bias and distance.
- ``triangle`` for largest gaps, isotonic fits and smooth ECE, whose bias the bootstrap does not show: by the triangle
  inequality the value exceeds the true one by at most the metric of the noise, so the lower limit is v - u_0.
- ``centred`` for estimates without bias whose bootstrap has one: distances are measured from the bootstrap's mean.
- ``arcsine`` for TCE: centred, on the scale of arcsin(sqrt(TCE / 100)), with 1.2 times the distance. Its target is its
  mean over samples of this size.
- ``inversion`` for the log-odds error: no replicates; see `calibrant.inference.log_odds_deviation`.
- ``bias`` and ``ratio`` for calibration in the large: no replicates; see `calibrant.inference.in_the_large`.
- ``influence`` for means of rows and the AUC: no replicates. The variance is that of the influence of the rows (of the
  AUC, that of DeLong, DeLong and Clarke-Pearson, 1988), of the sums of clusters where there are any. Reaches are those
  of Student's t with the observations of the rarer outcome, less 1, or longer on the side of the longer tail.
- ``symmetric`` for all others: distances are measured from the value.

Metrics of squared gaps (`degree` 2) are treated on the scale of their roots.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, read_only
from calibrant._support.errors import InputError, Note
from calibrant.inference.resampling import Replicates, Sample, largest_unseen_rate, resample_metrics
from calibrant.inference.tails import skewed_reaches
from calibrant.metrics.metric import Metric, declared, has_bins
from calibrant.results.uncertainty import Alternative, Equivalence, Interval, Null

# The bootstrap of TCE spreads too little where bins depend on the outcomes; the coverage study found this factor.
_ARCSINE_FACTOR = 1.2
_LEAST_PVALUE = 1e-9  # of equivalence tests without replicates


def bootstrap_metric(metric: Metric, sample: Sample, **options: Any) -> Replicates:
    """Return the bootstrap replicates of a metric, and null replicates where its interval needs them."""
    # Reasons that are known before resampling: too few rows of a class, or scores without ties.
    check_interval(Replicates(metric, float("nan"), np.empty(0), np.zeros(1), sample))
    method = interval_method(metric)
    options |= {"bootstrap": method not in CLOSED_METHODS, "null": method in NULL_METHODS}
    (found,) = resample_metrics([metric], sample, **options)
    check_interval(found)
    return found


def interval_from_replicates(replicates: Replicates, level: float) -> Interval:
    """Return the interval of this level; NaN limits and a note where none exists."""
    metric, notes = replicates.metric, replicates.notes
    refusal = interval_refusal(replicates)
    low, high = (float("nan"),) * 2 if refusal else existing_limits(replicates, level)
    method = "none" if refusal else interval_method(metric)
    if refusal:
        notes = (*notes, Note("no_interval", 1, refusal))
    size = 0 if method in CLOSED_METHODS else replicates.bootstrap.size
    return Interval(metric.name, replicates.value, low, high, level, method, metric.unit, size, metric.spec, notes)


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

    It is at least 1 / (1 + replicates), the smallest p-value of a resampling test; without replicates 1e-9.
    """
    is_closed = interval_method(replicates.metric) in CLOSED_METHODS
    least, most = _LEAST_PVALUE if is_closed else 1 / (1 + replicates.bootstrap.size), 0.5
    if _upper_bound(replicates, least) < margin:
        return least
    if _upper_bound(replicates, most) >= margin:
        return 1.0
    while most - least > min(1e-6, 1e-3 * most):
        middle = (least + most) / 2
        least, most = (least, middle) if _upper_bound(replicates, middle) < margin else (middle, most)
    return most


def _upper_bound(replicates: Replicates, tail: float) -> float:
    """Return the upper limit; for metrics with a sign that of the absolute value."""
    low, high = interval_limits(replicates, 1 - 2 * tail)
    return high if replicates.metric.measures_gaps else max(high, -low)


def interval_limits(replicates: Replicates, level: float) -> tuple[float, float]:
    """Return the lower and upper limit of the interval of this level; NaN where none exists."""
    return (math.nan, math.nan) if interval_refusal(replicates) else existing_limits(replicates, level)


def existing_limits(replicates: Replicates, level: float) -> tuple[float, float]:
    """Return the limits of an interval that exists: `interval_refusal` gives no reason against it."""
    low, high = METHODS[interval_method(replicates.metric)](replicates, (1 - level) / 2)
    metric = replicates.metric
    range_of = None if interval_method(metric) == "bias" else getattr(metric, "range_of", None)  # limits allow for it
    least, most = declared(metric, "range") if range_of is None else range_of(replicates.sample.table)
    low, high = (min(max(limit, least), most) for limit in (low, high))
    # An estimate may lie outside the range of its target.
    return min(low, replicates.value), max(high, replicates.value)


def interval_method(metric: Metric) -> str:
    """Return the method that a metric declares, or the default for its properties."""
    default = "anchored" if metric.measures_gaps else "symmetric"
    method = str(getattr(metric, "interval_method", default))
    if method not in METHODS:
        raise InputError(
            f"interval_method must be one of {', '.join(METHODS)}; got {method!r} of {metric.name}.",
            argument="metric",
            value=method,
        )
    return method


def interval_refusal(replicates: Replicates) -> str:
    """Return why no interval exists; empty where one does."""
    metric = replicates.metric
    reason = replicates.sample.interval_refusal(metric)
    if not reason and interval_method(metric) in NULL_METHODS and not replicates.null.size:
        return f"{metric.name} has no null distribution for weights or clusters, and so no interval."
    return reason


def check_interval(replicates: Replicates) -> None:
    """Raise an `InputError` with the reason if no interval exists."""
    reason = interval_refusal(replicates)
    if reason:
        raise InputError(reason, argument="metric", value=replicates.metric.name)


def _anchored(replicates: Replicates, tail: float) -> tuple[float, float]:
    value, null, low, high, reach = _on_gap_scale(replicates, tail)
    if value <= null:
        low = 0.0
    else:
        share = (value**2 - null**2) / (high**2 - null**2) if high**2 > null**2 else 1.0
        low = min(low, value * float(np.sqrt(min(share, 1.0))))
    return _from_gap_scale(replicates, low, value + reach, tail)


def _triangle(replicates: Replicates, tail: float) -> tuple[float, float]:
    value, null, _, _, reach = _on_gap_scale(replicates, tail)
    return _from_gap_scale(replicates, value - null, value + reach, tail)


def _on_gap_scale(replicates: Replicates, tail: float) -> tuple[float, float, float, float, float]:
    """Return value, null quantile, value less bias and reach, bootstrap quantile and reach, on the scale of gaps."""
    root = 1 / declared(replicates.metric, "degree")
    arrays = (replicates.value, replicates.bootstrap, replicates.null)
    value, resampled, simulated = (np.maximum(each, 0.0) ** root for each in arrays)
    (null,) = quantiles(simulated, (1 - tail,))
    low, high = quantiles(resampled, (tail, 1 - tail))
    mean = float(np.mean(resampled))
    reach = _small_sample_factor(replicates, tail) * max(mean - low, high - mean)
    bias = max(mean - float(value), 0.0)
    return float(value), replicates.sample.noise_ratio * null, float(value) - bias - reach, high, reach


def _from_gap_scale(replicates: Replicates, low: float, high: float, tail: float) -> tuple[float, float]:
    degree = declared(replicates.metric, "degree")
    return max(low, 0.0) ** degree, max(high, 0.0) ** degree + replicates.unseen_deviation(tail)


def _centred(replicates: Replicates, tail: float) -> tuple[float, float]:
    low, high = quantiles(replicates.bootstrap - np.mean(replicates.bootstrap), (tail, 1 - tail))
    reach = _small_sample_factor(replicates, tail) * max(-low, high) + replicates.unseen_deviation(tail)
    return replicates.value - reach, replicates.value + reach


def _arcsine(replicates: Replicates, tail: float) -> tuple[float, float]:
    angles = _to_arcsine(replicates.bootstrap)
    low, high = quantiles(angles - np.mean(angles), (tail, 1 - tail))
    factor = _small_sample_factor(replicates, tail) if replicates.sample.is_clustered else 1.0
    value, reach = float(_to_arcsine(replicates.value)), _ARCSINE_FACTOR * factor * max(-low, high)
    if np.ptp(replicates.bootstrap) == 0:  # at 0 or 100 %: the largest rate that this number of bins does not exclude
        reach = float(_to_arcsine(100 * largest_unseen_rate(_n_bins(replicates), tail)))
    return _from_arcsine(value - reach), _from_arcsine(value + reach)


def _symmetric(replicates: Replicates, tail: float) -> tuple[float, float]:
    value = replicates.value
    low, high = quantiles(replicates.bootstrap, (tail, 1 - tail))
    if not np.isfinite(value):
        return min(low, value), max(high, value)
    reach = _small_sample_factor(replicates, tail) * max(value - low, high - value) + replicates.unseen_deviation(tail)
    return value - reach, value + reach


def _inversion(replicates: Replicates, tail: float) -> tuple[float, float]:
    bounds = replicates.sample.error_bounds
    return bounds.lower(tail), bounds.upper(tail)


def _bias(replicates: Replicates, tail: float) -> tuple[float, float]:
    found = replicates.sample.in_the_large(1 - 2 * tail).bias
    return found.low, found.high


def _ratio(replicates: Replicates, tail: float) -> tuple[float, float]:
    found = replicates.sample.in_the_large(1 - 2 * tail).ratio
    return (math.nan, math.nan) if found is None else (found.low, found.high)


def _influence(replicates: Replicates, tail: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    metric, value = replicates.metric, replicates.value
    if not math.isfinite(value):  # a log loss that is infinite for a sample is infinite for its population
        return value, value
    error, skewness = replicates.sample.influence_moments(metric)
    quantile = float(stdtrit(max(replicates.sample.n_rarer - 1, 1.0), 1 - tail))
    below, above = skewed_reaches(quantile, skewness)
    unseen = replicates.unseen_deviation(tail)
    return value - below * error - unseen, value + above * error + unseen


METHODS: Mapping[str, Callable[[Replicates, float], tuple[float, float]]] = MappingProxyType(
    {
        "inversion": _inversion,
        "bias": _bias,
        "ratio": _ratio,
        "influence": _influence,
        "anchored": _anchored,
        "triangle": _triangle,
        "centred": _centred,
        "arcsine": _arcsine,
        "symmetric": _symmetric,
    }
)
# Methods without replicates.
CLOSED_METHODS = ("inversion", "bias", "ratio", "influence")
# Methods that need null replicates.
NULL_METHODS = ("anchored", "triangle")


def _small_sample_factor(replicates: Replicates, tail: float) -> float:
    """Return the factor of all distances: the bootstrap spreads too little where the rarer outcome was seen few times.

    m observations have m - 1 degrees of freedom (Student), and exact limits of a count of m are about 1 + 1 / sqrt(m)
    times as far away as normal ones. Clusters that contain the outcome are at most all clusters, so few clusters widen
    the limits at least by Student's quantile.
    """
    return _factor_of_count(max(replicates.sample.n_rarer, 1.0), tail)


@lru_cache(maxsize=1024)
def _factor_of_count(m: float, tail: float) -> float:
    from scipy.special import ndtri, stdtrit

    student = float(stdtrit(max(m - 1, 1.0), 1 - tail) / ndtri(1 - tail)) if tail < 0.5 else 1.0
    return max(student, 1 + 1 / float(np.sqrt(m)))


def _n_bins(replicates: Replicates) -> int:
    metric = replicates.metric
    return len(metric.bins(replicates.sample.table)) if has_bins(metric) else 1


def _to_arcsine(percent: Any) -> Any:
    """Return percentages on the scale on which their variance does not depend on them."""
    return np.arcsin(np.sqrt(np.clip(percent, 0, 100) / 100))


def _from_arcsine(angle: float) -> float:
    return float(100 * np.sin(np.clip(angle, 0, np.pi / 2)) ** 2)


def quantiles(values: Floats, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return quantiles by linear interpolation; where some values are infinite (log loss), the nearest value.

    >>> quantiles(np.array([3.0, 1.0, 2.0, 5.0]), (0.0, 0.5, 0.9))
    (1.0, 2.5, 4.4)
    """
    ordered = np.sort(values)
    if not (math.isfinite(ordered[0]) and math.isfinite(ordered[-1])):
        return tuple(float(v) for v in np.quantile(ordered, shares, method="nearest"))
    return tuple(_interpolate(ordered, share * (ordered.size - 1)) for share in shares)


def _interpolate(ordered: Floats, place: float) -> float:
    """Return the value at a place between two values, with the rounding of NumPy."""
    first = min(int(place), ordered.size - 1)
    a, b, t = float(ordered[first]), float(ordered[min(first + 1, ordered.size - 1)]), place - first
    return a + (b - a) * t if t < 0.5 else b - (b - a) * (1 - t)
