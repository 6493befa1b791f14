"""Levels of calibration: mean, weak and moderate (Van Calster et al. 2016)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.json_values import plain
from calibrant.inference.coefficients import calibration_in_the_large
from calibrant.inference.curves.calibration_curves import CalibrationCurve, spline_curve
from calibrant.inference.design import Design
from calibrant.inference.estimates import Estimate
from calibrant.metrics.local_regression import group_scores

__all__ = ["CalibrationLevels", "calibration_levels"]


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
    >>> round(levels.mean.value, 2), [each.name for each in levels.weak], levels.contains_diagonal
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
        return {"mean": mean, "weak": [each.to_dict() for each in self.weak], "moderate": errors}

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
    known = calibration_in_the_large(design, level)
    if not known or not expected > 0 or not observed > 0:
        return None
    # The standard error of the shift is root(V) / information, V the variance of the number of events.
    variance = (known[0].standard_error * float(design.logits.whole.fitted_curvature[0])) ** 2
    error = math.sqrt(variance) / observed
    reach = error * (known[0].high - known[0].value) / known[0].standard_error
    value = observed / expected
    with np.errstate(over="ignore"):
        limits = value * float(np.exp(-reach)), value * float(np.exp(reach))
    return Estimate("O/E", value, value * error, *limits, level, design.degrees, null=1.0)
