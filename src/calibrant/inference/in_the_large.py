r"""Calibration in the large: bias, O/E and the shift of the log-odds, with intervals that do not assume calibration.

The three describe one quantity, the number of events beside the expected one, on different scales. With y the outcome
and p the score of a row, and q the score shifted by the estimate d, their errors are those of the means of

.. math::

   p - y, \qquad \frac{y - (O/E) \, p}{E}, \qquad \frac{y - q}{\sum q (1 - q)}

over rows, or over clusters: they hold for miscalibrated models, whose scores vary together with the residuals. No
variance is below that of calibrated outcomes with these means, which few events would underestimate. Limits have
Student's quantile with twice as many degrees of freedom as events, or other rows (with clusters at most their effective
number less 1), which is close to exact limits of a count. Those of the bias allow for the skewness of the residuals.

Intervals of the three contain the value of a calibrated model exactly where the test of calibration in the large, a
component of the omnibus test, has a p-value above 1 - level, so that they contradict neither it nor each other.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.arrays import Floats
from calibrant.inference.binary_components import MIN_EVENTS, in_the_large_test
from calibrant.inference.design import Design
from calibrant.inference.resampling import largest_unseen_rate
from calibrant.inference.tails import skewed_reaches, student_quantile
from calibrant.metrics.log_odds import mean_weight
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import TestResult

BIAS, RATIO, SHIFT = "bias", "O/E", "calibration in the large"


@dataclass(frozen=True)
class InTheLarge:
    """Estimates of calibration in the large, and its test.

    Attributes
    ----------
    bias : Estimate
        Mean score less event rate.
    ratio : Estimate or None
        Observed over expected events, with limits that are symmetric on the log scale; None without either of them.
    shift : Estimate or None
        The number to add to all log-odds to predict the number of events; None where one outcome does not occur.
    test : TestResult
    """

    bias: Estimate
    ratio: Estimate | None
    shift: Estimate | None
    test: TestResult


def in_the_large(design: Design, level: float) -> InTheLarge:
    """Return the estimates of a design, whose table has rows."""
    table, whole, test = design.table, design.logits.whole, in_the_large_test(design)
    size, observed = float(table.n.sum()), float(table.k.sum())
    p, expected, df = table.score, float(np.sum(table.n * table.score)), coefficient_degrees(design)
    quantile = student_quantile((1 + level) / 2, df)

    def estimate(name: str, value: float, variance: float, scale: float, skewness: float = 0.0) -> Estimate:
        error = math.sqrt(variance) / scale
        below, above = skewed_reaches(quantile, skewness)
        return Estimate(name, value, error, value - below * error, value + above * error, level, df, 0.0)

    bias = (expected - observed) / size
    variance, skewness = design.influence_moments(p - bias, p - 1 - bias)
    large = estimate(BIAS, bias, max(variance, float(whole.variance()[0])), size, skewness)
    low, high = _possible_biases(design, (1 - level) / 2, quantile)
    found = [replace(large, low=max(min(large.low, low[1]), low[0]), high=min(max(large.high, high[0]), high[1]))]
    if observed > 0 and expected > 0:
        share = observed / expected
        found.append(estimate(RATIO, math.log(share), _ratio_variance(design, share), observed))
    if float(whole.information[0]) > 0 and table.has_both_classes:
        q, curvature = whole.fitted, float(whole.fitted_curvature[0])
        variance = max(design.influence_variance(-q, 1 - q), float(whole.fitted_variance[0]))
        found.append(estimate(SHIFT, float(whole.error[0]), variance, curvature))
    few = min(observed, size - observed, expected, size - expected) < MIN_EVENTS
    agreed = {each.name: each for each in _agreeing(found, test.pvalue <= 1 - level, few)}
    ratio = agreed.get(RATIO)
    return InTheLarge(agreed[BIAS], None if ratio is None else _on_scale_of_ratio(ratio), agreed.get(SHIFT), test)


def _possible_biases(design: Design, tail: float, quantile: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the least and the largest lower limit of the bias, and those of its upper limit.

    Event rates lie between 0 and 1, so the bias does between the limits of the mean score and those less 1. Without an
    event the lower limit allows for the rate 1 - tail^(1 / n) (Clopper and Pearson), and so on.
    """
    table, m = design.table, design.effective_size
    mean = float(np.sum(table.n * table.score) / table.n.sum())
    away = table.score - mean
    reach = quantile * math.sqrt(design.influence_variance(away, away)) / float(table.n.sum())
    unseen, rate = largest_unseen_rate(m, tail), float(table.k.sum() / table.n.sum())
    lower = mean - unseen if rate == 0 else math.inf
    upper = mean - 1 + unseen if rate == 1 else -math.inf
    return (max(mean - reach - 1, -1.0), lower), (upper, min(mean + reach, 1.0))


def _agreeing(estimates: list[Estimate], is_significant: bool, few: bool) -> list[Estimate]:
    """Return estimates whose intervals all contain 0, or all do not: they do not where the test is significant.

    Limits beyond 0 end at 0 then. The test of few events is that of a count given the scores, and holds for calibrated
    models only; intervals then contain 0 unless they all do not by themselves.
    """
    if few:
        is_significant = is_significant and all(each.low > 0 or each.high < 0 for each in estimates)
    found = []
    for each in estimates:
        low, high = min(each.low, 0.0), max(each.high, 0.0)
        if is_significant:
            low, high = (max(each.low, 0.0), high) if each.value > 0 else (low, min(each.high, 0.0))
        found.append(replace(each, low=low, high=high))
    return found


def _on_scale_of_ratio(log: Estimate) -> Estimate:
    """Return the ratio of an estimate of its logarithm."""
    with np.errstate(over="ignore"):
        value, low, high = (float(np.exp(each)) for each in (log.value, log.low, log.high))
    return replace(log, value=value, standard_error=value * log.standard_error, low=low, high=high, null=1.0)


def coefficient_degrees(design: Design) -> float:
    """Return degrees of freedom of estimates: twice the observations of the rarer outcome, at most those of clusters.

    With importance weights the effective number of rows of the rarer outcome, less 1.
    """
    rarer = design.effective_count
    if design.table.importance and design.rows is None:
        return max(rarer - 1, 1.0)
    return max(min(2 * rarer, design.degrees), 1.0)


def _ratio_variance(design: Design, share: float) -> float:
    """Return the variance of the sum of y - share * p: that of rows, or of calibrated outcomes if it is larger."""
    table = design.table
    p: Floats = np.minimum(share * table.score, 1.0)
    model = mean_weight(table) * float(np.sum(table.n * p * (1 - p)))
    return max(design.influence_variance(-share * table.score, 1 - share * table.score), model)
