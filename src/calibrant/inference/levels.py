"""Levels of calibration of Van Calster et al. (2016): coefficients with intervals, and the calibration curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.logistic import expit
from calibrant._support.plain_data import plain
from calibrant.inference.curves.calibration_curves import CalibrationCurve, spline_curve
from calibrant.inference.design import Design
from calibrant.inference.in_the_large import coefficient_degrees, in_the_large
from calibrant.inference.tails import student_quantile
from calibrant.metrics.log_odds import mean_weight
from calibrant.metrics.smooth_errors import group_scores
from calibrant.results.uncertainty import Estimate


def coefficients(design: Design, level: float) -> tuple[Estimate, ...]:
    """Return calibration in the large, calibration slope and Cox's intercept, where they exist.

    Calibration in the large is the intercept of the logistic regression whose offset is the logit of the score: the
    number to add to all logits to predict the number of events. The slope and Cox's intercept are the coefficients of
    the logistic regression on the logits. Standard errors are robust (sandwich), by clusters where there are any, so
    they hold for miscalibrated models. No p-values are computed: the omnibus test decides.
    """
    shift = in_the_large(design, level).shift
    return (*(() if shift is None else (shift,)), *_slope_and_intercept(design, level))


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
    robust, model = design.score_covariance(columns, q, bread), mean_weight(design.table) * bread
    variance = inverse @ (robust if np.trace(robust) >= np.trace(model) else model) @ inverse
    df = coefficient_degrees(design)
    errors, quantile = np.sqrt(np.diag(variance)), student_quantile((1 + level) / 2, df)
    estimates = []
    for name, value, error, null in zip(("calibration slope", "Cox intercept"), line, errors, (1.0, 0.0), strict=True):
        reach = float(quantile * error)
        estimates.append(Estimate(name, value, float(error), value - reach, value + reach, level, df, null))
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
    return CalibrationLevels(in_the_large(design, level).ratio, weak, curve, inside)
