"""Levels of calibration of Van Calster et al. (2016): coefficients with intervals, and the calibration curve."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.logistic import expit
from calibrant._support.plain_data import plain
from calibrant.inference.curves.calibration_curves import CalibrationCurve, spline_curve
from calibrant.inference.design import Design
from calibrant.inference.tails import student_quantile
from calibrant.metrics.smooth_errors import group_scores
from calibrant.results.uncertainty import Estimate


def coefficients(design: Design, level: float) -> tuple[Estimate, ...]:
    """Return calibration in the large, calibration slope and Cox's intercept, where they exist.

    Calibration in the large is the intercept of the logistic regression whose offset is the logit of the score: the
    number to add to all logits to predict the number of events. The slope and Cox's intercept are the coefficients of
    the logistic regression on the logits. Standard errors are robust (sandwich), by clusters where there are any. No
    p-values are computed: the omnibus test decides.
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
    reach = student_quantile((1 + level) / 2, design.degrees) * variance**0.5 / information
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
    errors, quantile = np.sqrt(np.diag(variance)), student_quantile((1 + level) / 2, design.degrees)
    estimates = []
    for name, value, error, null in zip(("calibration slope", "Cox intercept"), line, errors, (1.0, 0.0), strict=True):
        reach = float(quantile * error)
        estimates.append(Estimate(name, value, float(error), value - reach, value + reach, level, design.degrees, null))
    return tuple(estimates)


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationLevels:
    """Levels of calibration of Van Calster et al. (2016), from the weakest to moderate.

    Strong calibration, P(event given all features) = score, cannot be shown; groups (``evaluate(by=...)``) and `audit`
    find deviations from it.

    Attributes
    ----------
    mean : Estimate or None
        Observed over expected events (O/E).
    weak : tuple of Estimate
        Calibration in the large, calibration slope and Cox's intercept, where they exist.
    moderate : CalibrationCurve or None
        The spline curve with its simultaneous band, with 5 knots or, where the outcomes do not determine it, 4 or 3;
        None where there is none.
    contains_diagonal : bool or None
        Whether the band contains the curve of a calibrated model.

    See Also
    --------
    BinaryDetails, slope_intercept

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> levels = cb.evaluate(rng.random(2000) < p**2, p).details.levels
    >>> round(levels.mean.value, 2), [estimate.name for estimate in levels.weak], levels.contains_diagonal
    (0.66, ['calibration in the large', 'calibration slope', 'Cox intercept'], False)
    """

    mean: Estimate | None
    weak: tuple[Estimate, ...]
    moderate: CalibrationCurve | None
    contains_diagonal: bool | None

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain data for JSON; the curve by its errors and whether its band has the diagonal.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        curve = self.moderate
        errors = None if curve is None else plain(curve.errors) | {"contains_diagonal": self.contains_diagonal}
        mean = None if self.mean is None else self.mean.to_dict()
        return {"mean": mean, "weak": [estimate.to_dict() for estimate in self.weak], "moderate": errors}

    def __repr__(self) -> str:
        mean = "" if self.mean is None else f"O/E {self.mean.value:.3f}; "
        curve = "no curve" if self.moderate is None else f"curve with ICI {self.moderate.errors.ici:.4f}"
        return f"CalibrationLevels({mean}{len(self.weak)} coefficients; {curve})"


def calibration_levels(design: Design, weak: tuple[Estimate, ...], level: float) -> CalibrationLevels:
    """Return the levels of calibration of a design; `weak` are its coefficients.

    With independent rows and more than 8,192 scores the curve is that of 8,192 groups of neighbouring scores.
    """
    small = design if design.rows is not None else Design(group_scores(design.table))
    curve = spline_curve(small, level)
    inside = None if curve is None else curve.contains_diagonal
    return CalibrationLevels(_observed_over_expected(design, level), weak, curve, inside)


def _observed_over_expected(design: Design, level: float) -> Estimate | None:
    """Return O/E with an interval that is symmetric on the log scale, given the scores."""
    table = design.table
    expected, observed = float(np.sum(table.n * table.score)), float(table.positives)
    shift = calibration_in_the_large(design, level)
    if not shift or not expected > 0 or not observed > 0:
        return None
    # The standard error of the shift is root(V) / information, V the variance of the number of events.
    variance = (shift[0].standard_error * float(design.logits.whole.fitted_curvature[0])) ** 2
    error = math.sqrt(variance) / observed
    reach = error * (shift[0].high - shift[0].value) / shift[0].standard_error
    value = observed / expected
    with np.errstate(over="ignore"):
        limits = value * float(np.exp(-reach)), value * float(np.exp(reach))
    return Estimate("O/E", value, value * error, *limits, level, design.degrees, null=1.0)
