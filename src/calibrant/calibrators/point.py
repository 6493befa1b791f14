"""Recalibrators of point predictions: a line, an isotonic map and a smooth curve.

Each is a scikit-learn regressor with one column of predictions as input. Fit them on rows that the model of the
predictions was not fitted on. Each reports the change of squared error and bias by cross-validation.
"""

import math
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError, check_option, is_number
from calibrant.calibrators import maps
from calibrant.calibrators.point_map import PointMap
from calibrant.metrics.bins import Quantile
from calibrant.metrics.point import isotonic_means, variance
from calibrant.tables.mean_table import MeanTable

__all__ = ["IsotonicRecalibrator", "LinearRecalibrator", "LocalRecalibrator"]

_MOST_KNOTS = 500
_LEAST_GAP = 2e-4  # of the range of predictions


class LinearRecalibrator(PointMap):
    r"""Linear recalibration of Bella et al.: a straight line.

    Parameters
    ----------
    against : {"prediction", "outcome"}
        "prediction" regresses outcomes on predictions by least squares. This removes the linear bias by prediction, and
        no line has a lower squared error. "outcome" regresses predictions on outcomes and inverts that line. This
        removes the linear bias by outcome (high outcomes are no longer underestimated, nor low ones overestimated), and
        raises the squared error. This is the trade-off that the chapter describes.
    slope : bool, default=True
        False fits a shift only.
    cv : int or None, default=5
        Number of folds for `trade_off_`; None for no trade-off.
    random_state : int, default=0
        Seed of the folds.

    Attributes
    ----------
    slope_, intercept_ : float

    See Also
    --------
    IsotonicRecalibrator, LocalRecalibrator, RecalibratedModel

    Notes
    -----
    The line goes on beyond the predictions of the fit. Where all predictions (or, with ``against="outcome"``, all
    outcomes) are equal, only a shift is fitted. With ``against="outcome"`` predictions must rise with the outcome.

    Examples
    --------
    >>> cal = LinearRecalibrator(cv=None).fit([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])
    >>> cal.slope_, cal.intercept_, cal.predict([10.0])
    (2.0, 1.0, array([21.]))
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("linear",)

    def __init__(
        self,
        *,
        against: Literal["prediction", "outcome"] = "prediction",
        slope: bool = True,
        cv: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.against = against
        self.slope = slope
        self.cv = cv
        self.random_state = random_state

    def accepts_map(self, map_: Any) -> bool:
        return bool(self.slope or map_.slope == 1)

    def _fit_table(self, table: MeanTable) -> maps.Linear:
        check_option("against", self.against, ("prediction", "outcome"))
        slope = self._fit_slope(table) if self.slope else 1.0
        return maps.Linear(slope, table.mean_outcome - slope * table.mean_prediction)

    def _fit_slope(self, table: MeanTable) -> float:
        offset = table.prediction - table.mean_prediction
        together = table.average(offset * (table.mean - table.mean_outcome))
        if self.against == "prediction":
            return together / table.average(offset**2) if np.ptp(table.prediction) > 0 else 1.0
        outcomes = variance(table)
        if np.ptp(table.mean) == 0 and table.has_rows:
            return 1.0
        if together <= 0:
            raise InputError(
                "X must rise with y for a line against the outcome; it falls or is level.",
                hint="Use " + Argument("against", "prediction") + ".",
                argument="X",
            )
        return outcomes / together  # the inverse of the line of predictions on outcomes, of slope together / outcomes

    @property
    def slope_(self) -> float:
        """Slope of the line."""
        check_is_fitted(self)
        return float(self.map_.slope)

    @property
    def intercept_(self) -> float:
        """Intercept of the line."""
        check_is_fitted(self)
        return float(self.map_.intercept)


class IsotonicRecalibrator(PointMap):
    """Isotonic regression of the outcomes on the predictions (pool adjacent violators).

    Between two predictions of the fit the map is a straight line, beyond the first and the last it is level. On the
    rows of the fit it never raises the squared error. It equals scikit-learn's ``IsotonicRegression`` with
    ``out_of_bounds="clip"``.

    Parameters
    ----------
    cv, random_state
        See `LinearRecalibrator`.

    See Also
    --------
    LinearRecalibrator, LocalRecalibrator, RecalibratedModel

    Examples
    --------
    >>> cal = IsotonicRecalibrator(cv=None).fit([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 8.0])
    >>> cal.predict([2.0, 3.5, 9.0])
    array([2.5 , 5.25, 8.  ])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("segments",)
    is_increasing: ClassVar[bool] = True

    def __init__(self, *, cv: int | None = 5, random_state: int = 0) -> None:
        self.cv = cv
        self.random_state = random_state

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.domain == "real" and map_.beyond == "level")

    def _fit_table(self, table: MeanTable) -> maps.Segments:
        merged = table.merged()
        fitted = isotonic_means(merged)
        # The ends of each level piece determine the map.
        bend = np.concatenate([[True], fitted[1:] != fitted[:-1]])
        kept = bend | np.concatenate([bend[1:], [True]])
        return maps.Segments(merged.prediction[kept], fitted[kept])


class LocalRecalibrator(PointMap):
    """A smooth curve of the outcomes on the predictions, for bias that is neither linear nor monotone.

    The smoothing spline of scipy (`scipy.interpolate.make_smoothing_spline`), a natural cubic spline whose smoothness
    is set, or chosen by generalised cross-validation. Predictions are first averaged in at most 500 groups of equal
    size; neighbours within 1/5000 of their range are merged. Beyond the first and the last group the curve goes on
    along its tangents.

    Parameters
    ----------
    smoothness : float, optional
        Lambda of the spline, on predictions scaled to [0, 1]; larger is smoother. By default it is chosen.
    cv, random_state
        See `LinearRecalibrator`.

    See Also
    --------
    LinearRecalibrator, IsotonicRecalibrator

    Notes
    -----
    It needs at least five distinct predictions. As the chapter of Bella et al. says, this is less a calibration than a
    second model: look at `trade_off_`.

    Examples
    --------
    >>> x = np.arange(20) / 10
    >>> cal = LocalRecalibrator(cv=None).fit(x, x**2)
    >>> cal.predict([0.55, 1.0]).round(2)
    array([0.3, 1. ])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("cubic",)

    def __init__(self, *, smoothness: float | None = None, cv: int | None = 5, random_state: int = 0) -> None:
        self.smoothness = smoothness
        self.cv = cv
        self.random_state = random_state

    def _fit_table(self, table: MeanTable) -> maps.Cubic:
        if self.smoothness is not None and not (is_number(self.smoothness) and 0 <= self.smoothness < math.inf):
            raise InputError(
                Argument("smoothness") + f" must be a number of at least 0; got {self.smoothness!r}.",
                value=self.smoothness,
            )
        x, y, weight = _separated_means(table.merged())
        if x.size < 5:
            raise InputError(
                f"X must hold at least 5 distinct predictions for a smooth curve; got {x.size}.",
                hint="Use LinearRecalibrator or IsotonicRecalibrator.",
                argument="X",
            )
        return _smooth(x, y, weight, self.smoothness)


def _smooth(x: Floats, y: Floats, weight: Floats, smoothness: float | None) -> maps.Cubic:
    """Fit the smoothing spline, a cubic polynomial between each two of the points x."""
    from scipy.interpolate import make_smoothing_spline

    reach = x[-1] - x[0]
    unit = (x - x[0]) / reach
    # A linear trend costs the spline digits, so the spline fits the residuals of a line, in units of the largest one.
    slope, height = np.polyfit(unit, y, 1, w=np.sqrt(weight))
    residual = y - height - slope * unit
    spread = float(np.abs(residual).max()) or 1.0
    try:
        curve = make_smoothing_spline(unit, residual / spread, w=weight / weight.mean(), lam=smoothness)
    except ValueError as error:
        raise InputError(
            f"X must hold predictions through which a smooth curve can be computed; scipy: {error}.",
            hint="Set " + Argument("smoothness") + ", or use IsotonicRecalibrator.",
            argument="X",
        ) from error
    tangent = slope + spread * curve.derivative()(unit)
    return maps.Cubic(x, height + slope * unit + spread * curve(unit), tangent / reach)


def _separated_means(merged: MeanTable) -> tuple[Floats, Floats, Floats]:
    """Return mean prediction, mean outcome and size of groups of neighbours that are not too close to each other.

    Where gaps differ by more than four orders of magnitude, a spline cannot be computed.
    """
    partition = Quantile(_MOST_KNOTS)(merged)
    p, y = merged.prediction, merged.mean
    least = _LEAST_GAP * float(p[-1] - p[0])
    knots: list[tuple[float, float, float]] = []
    columns = (partition.mean(lambda run: p[run]), partition.mean(lambda run: y[run]), partition.n)
    for x, outcome, n in zip(*(column.tolist() for column in columns), strict=True):
        if knots and x - knots[-1][0] < least:
            x_before, y_before, n_before = knots.pop()
            share = n / (n + n_before)
            knots.append((x_before + share * (x - x_before), y_before + share * (outcome - y_before), n + n_before))
        else:
            knots.append((x, outcome, n))
    found = np.array(knots).T
    return found[0], found[1], found[2]
