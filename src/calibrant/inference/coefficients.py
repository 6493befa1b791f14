"""Calibration in the large and calibration slope, with confidence intervals."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.logits import expit
from calibrant.inference.design import Design
from calibrant.inference.estimates import Estimate

__all__ = ["calibration_in_the_large", "coefficients"]


def coefficients(design: Design, level: float) -> tuple[Estimate, ...]:
    """Return calibration in the large, calibration slope and Cox's intercept, where they exist.

    Calibration in the large is the intercept of the logistic regression whose offset is the logit of the score: the
    number to add to all logits to predict the number of events. The slope and Cox's intercept are the coefficients of
    the logistic regression on the logits. Standard errors are robust (sandwich), by clusters where there are any. No
    p-values are computed: the joint test decides.
    """
    return (*calibration_in_the_large(design, level), *_slope_and_intercept(design, level))


def calibration_in_the_large(design: Design, level: float) -> tuple[Estimate, ...]:
    """Return calibration in the large, if both outcomes occur."""
    bins = design.logits.whole
    if not bins.information[0] > 0 or not design.table.has_both_classes:
        return ()
    d = float(bins.error[0])
    information = float(bins.fitted_curvature[0])
    variance = max(float(design.covariance(bins, None)[0, 0]), float(bins.fitted_variance[0]))
    reach = _quantile(design, level) * variance**0.5 / information
    error, df = variance**0.5 / information, design.degrees
    return (Estimate("calibration in the large", d, error, d - reach, d + reach, level, df, null=0.0),)


def _slope_and_intercept(design: Design, level: float) -> tuple[Estimate, ...]:
    try:
        line = design.cox_line
    except InputError:  # almost separated: the fit failed, though a maximum may exist
        line = None
    if line is None:
        return ()
    x = design.cox_logits.by_score
    q = expit(line[1] + line[0] * x)
    columns = np.stack([x, np.ones(x.size)])
    bread = design.score_information(columns, q)
    try:
        inverse = np.linalg.inv(bread)
    except np.linalg.LinAlgError:
        return ()
    variance = inverse @ design.score_covariance(columns, q, bread) @ inverse
    errors, quantile = np.sqrt(np.diag(variance)), _quantile(design, level)
    found = []
    for name, value, error, null in zip(("calibration slope", "Cox intercept"), line, errors, (1.0, 0.0), strict=True):
        reach = float(quantile * error)
        found.append(Estimate(name, value, float(error), value - reach, value + reach, level, design.degrees, null))
    return tuple(found)


def _quantile(design: Design, level: float) -> float:
    from scipy.special import ndtri, stdtrit

    share = (1 + level) / 2
    return float(ndtri(share) if np.isinf(design.degrees) else stdtrit(design.degrees, share))
