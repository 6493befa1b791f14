"""Recalibrators of predictive distributions: PIT recalibration, variance scaling and quantile shifts.

Each is a scikit-learn transformer of forecasts. Fit them on forecasts and outcomes of rows that the model of the
forecasts was not fitted on; a call with other forecasts returns recalibrated ones.
"""

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import Argument, InputError, Note, check_count, check_share
from calibrant.calibrators import maps
from calibrant.calibrators.distribution_map import (
    DistributionMap,
    check_total,
    total_weight,
    weighted_median,
    weighted_quantiles,
)
from calibrant.forecasts.distributions import Quantiles, as_levels
from calibrant.forecasts.transformed import Stretched, Warped, need_scores, normal_scores, refuse_discrete, stretch

__all__ = ["PITRecalibrator", "QuantileRecalibrator", "VarianceScaling"]

_FEWEST = 10


class PITRecalibrator(DistributionMap):
    """Recalibration by the PIT: each level of the forecasts becomes the observed share of outcomes below it.

    The distribution function F becomes R(F), with R the (isotonic) distribution function of the PIT values of the fit.
    The i-th smallest of n PIT values is at level i/(n+1), so a new outcome falls below it with exactly that
    probability, whatever the forecasts, if rows are exchangeable. Kuleshov, Fenner and Ermon (2018).

    Parameters
    ----------
    n_knots : int, default=20
        The map is piecewise linear on the scale of normal scores. Its knots are at the levels 1/n_knots, 2/n_knots, ...
        and, where at least ten rows lie beyond, at 2.5, 1 and 0.5 % from both ends, so the ends of central intervals of
        90 %, 95 %, ... are knots. Many knots follow the noise of the rows: intervals stay valid, but densities do not.

    See Also
    --------
    VarianceScaling, QuantileRecalibrator, ParetoRecalibrator

    Notes
    -----
    One map serves all rows: it corrects the average coverage, not that of each row. Beyond the outermost knots the
    outermost lines go on. Forecasts must have a continuous distribution function that is known everywhere (normal ones,
    continuous ones of scipy); for quantiles, samples and discrete distributions use `QuantileRecalibrator`.

    Examples
    --------
    >>> from calibrant.regression import Gaussian, coverage
    >>> y = np.random.default_rng(2).normal(size=2000)
    >>> too_wide = Gaussian(np.zeros(2000), 3.0)
    >>> cal = PITRecalibrator().fit(too_wide.part(slice(0, 1000)), y[:1000])
    >>> coverage(y[1000:], cal(too_wide.part(slice(1000, None))), levels=[0.9]).per_level["observed"].round(2)
    array([0.9])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("segments",)

    def __init__(self, *, n_knots: int = 20) -> None:
        self.n_knots = n_knots

    def accepts_map(self, map_: Any) -> bool:
        rises = map_.is_increasing and bool((np.diff(map_.y) > 0).all())
        return rises and map_.domain == "real" and map_.beyond == "line" and map_.x.size <= self.n_knots + 5

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> maps.Segments:
        from scipy.special import ndtri

        need_scores(forecast)
        total = total_weight(y, weight)
        check_total("PITRecalibrator", total, _FEWEST)
        count = check_count("n_knots", self.n_knots)
        if count < 3:
            raise InputError(Argument("n_knots") + f" must be at least 3; got {count}.", value=count)
        # Equal scores (whole numbers, zeros) share the middle of their levels, so that neither side is preferred.
        scores, row, times = np.unique(normal_scores(forecast, y), return_inverse=True, return_counts=True)
        if weight is not None:
            times = np.bincount(row, weights=weight)
        position = (np.cumsum(times) - (times - 1) / 2) / (total + 1)
        possible = np.isfinite(scores)
        if not possible.all():
            text = "Outcomes outside the support of their forecasts: {count}. No map of levels can recalibrate these."
            self.notes_ = (Note("impossible", round(float(times[~possible].sum())), text),)
        scores, position = scores[possible], position[possible]
        level = _knot_levels(count, total)
        level = level[(level >= position[:1].sum()) & (level <= position[-1:].sum())]
        knots = np.interp(level, position, scores)
        distinct = np.append(True, np.diff(knots) > 0)[: knots.size]
        if np.count_nonzero(distinct) < 2:
            raise InputError(
                "The PIT values must differ enough for a map of levels; they are almost equal.",
                hint="Are outcomes and forecasts those of the same rows?",
                argument="y",
            )
        return maps.Segments(knots[distinct], ndtri(level[distinct]), beyond="line")

    def _recalibrate(self, forecast: Any) -> Warped:
        return Warped(forecast, self.map_)


def _knot_levels(count: int, rows: float) -> Floats:
    """Return equally spaced levels as far as rows reach, and some in the tails with at least ten rows beyond."""
    even, tails = np.arange(1, count) / count, np.array([0.005, 0.01, 0.025])
    even = even[(even >= 1 / (rows + 1)) & (even <= rows / (rows + 1))]
    tails = tails[tails * (rows + 1) >= 10]
    return np.unique(np.concatenate([even, tails, 1 - tails]).round(12))


class VarianceScaling(DistributionMap):
    """Variance scaling: one factor for the width of all forecasts.

    Parameters
    ----------
    level : float or None, default=0.9
        The least factor with which the central intervals of this level cover the outcomes of the fit, counted so that a
        new outcome is covered with at least that probability (split conformal prediction). None: the factor of maximum
        likelihood; for normal forecasts sqrt(mean(z^2)), z the errors in standard deviations (Levi et al., 2022), and
        for forecasts without densities the factor of least CRPS.
    shift : bool, default=False
        Whether to shift all forecasts too, by a multiple of their standard deviation.

    Attributes
    ----------
    factor_, shift_ : float
        Slope and intercept of `map_`, a line on the scale of standard deviations.

    See Also
    --------
    PITRecalibrator, QuantileRecalibrator

    Notes
    -----
    One factor does not change the shape of a distribution. If errors have heavier tails than the forecasts, intervals
    of other levels stay miscalibrated, and maximum likelihood makes 90 % intervals too wide. For all levels at once use
    `PITRecalibrator`.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> cal = VarianceScaling(level=None).fit(Gaussian([0.0, 0.0, 0.0, 0.0], 2.0), [1.0, -1.0, 1.0, -1.0])
    >>> cal.factor_, cal(Gaussian([5.0], 3.0)).sd
    (0.5, array([1.5]))
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("linear",)

    def __init__(self, *, level: float | None = 0.9, shift: bool = False) -> None:
        self.level = level
        self.shift = shift

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.slope > 0 and (self.shift or map_.intercept == 0))

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> maps.Linear:
        refuse_discrete(forecast)
        if self.level is not None:
            check_share("level", self.level)
            shift = _median_shift(y, forecast, weight) if self.shift else 0.0
            return maps.Linear(_covering_factor(y, forecast, self.level, shift, weight), shift)
        if not forecast.is_normal:
            return maps.Linear(*_best_stretch(y, forecast, self.shift, weight))
        z = forecast.normal_score(y)
        shift = float(np.average(z, weights=weight)) if self.shift else 0.0
        factor = float(np.sqrt(np.average((z - shift) ** 2, weights=weight)))
        if factor == 0:
            raise InputError("y must differ from the forecasts to fit a factor; all outcomes equal them.", argument="y")
        return maps.Linear(factor, shift)

    @property
    def factor_(self) -> float:
        """Factor of the width."""
        check_is_fitted(self)
        return float(self.map_.slope)

    @property
    def shift_(self) -> float:
        """Shift, in standard deviations."""
        check_is_fitted(self)
        return float(self.map_.intercept)

    def _recalibrate(self, forecast: Any) -> Any:
        """Return forecasts of the same kind, except for distributions of scipy."""
        return stretch(forecast, self.factor_, self.shift_)


def _median_shift(y: Floats, forecast: Any, weight: Floats | None) -> float:
    middle, unit = forecast.quantile(0.5), Stretched(forecast, 1.0, 1.0).quantile(0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (y - middle) / (unit - middle)
    known = np.isfinite(away)
    return weighted_median(away[known], None if weight is None else weight[known]) if known.any() else 0.0


def _covering_factor(y: Floats, forecast: Any, level: float, shift: float, weight: Floats | None) -> float:
    """Return the least factor whose central intervals cover ceil((n + 1) level) of n outcomes."""
    total = total_weight(y, weight)
    rank = (total + 1) * level - 1e-9
    if rank > total:
        check_total(f"intervals of {100 * level:g} %", total, math.ceil(level / (1 - level) - 1e-9))
    low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
    middle = forecast.quantile(0.5)
    away = y - Stretched(forecast, 1.0, shift).quantile(0.5)
    room = np.where(away > 0, high - middle, middle - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(away == 0, 0.0, np.abs(away) / room)
    order = np.argsort(needed, kind="stable")
    held = np.cumsum(np.ones(y.size) if weight is None else weight[order])
    factor = float(needed[order][min(int(np.searchsorted(held, rank)), y.size - 1)])
    if not 0 < factor < math.inf:
        raise InputError(
            f"X must hold forecasts whose intervals a factor can widen to cover {100 * level:g} % of the outcomes; "
            + ("most forecasts have no width." if factor else "most outcomes equal their forecasts."),
            argument="X",
        )
    return factor


def _best_stretch(y: Floats, forecast: Any, shift: bool, weight: Floats | None) -> tuple[float, float]:
    """Return factor and shift of maximum likelihood, or of least CRPS where there is no density.

    The search starts at the factor with which half of the outcomes lie within the central half of their forecasts.
    """
    from scipy.optimize import minimize, minimize_scalar

    def loss(log_factor: float, moved: float = 0.0) -> float:
        stretched = Stretched(forecast, math.exp(log_factor), moved)
        try:
            found = float(-np.average(stretched.log_density(y), weights=weight))
        except InputError:
            found = float(np.average(stretched.crps(y), weights=weight))
        return found if math.isfinite(found) else 1e300

    low, middle, high = forecast.quantile([0.25, 0.5, 0.75]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.abs(y - middle) / np.where(y > middle, high - middle, middle - low)
    known = np.isfinite(room) & (room > 0)
    if not known.any():
        raise InputError(
            "X must hold forecasts with a width, and other values than y, to fit a factor; it holds none.", argument="X"
        )
    near = math.log(weighted_median(room[known], None if weight is None else weight[known]))
    with np.errstate(all="ignore"):
        start = minimize_scalar(loss, bounds=(near - 7, near + 7), method="bounded", options={"xatol": 1e-9})
        if loss(start.x) >= 1e300 or abs(start.x - near) > 6.9:
            raise InputError(
                "No factor gives all outcomes a positive density: some lie outside the support of their forecasts.",
                hint="Pass " + Argument("level") + ", or use QuantileRecalibrator.",
                argument="X",
            )
        if not shift:
            return math.exp(start.x), 0.0
        found = minimize(lambda theta: loss(theta[0], theta[1]), [start.x, 0.0], method="Nelder-Mead")
    return math.exp(found.x[0]), float(found.x[1])


class QuantileRecalibrator(DistributionMap):
    """Shifts the predicted quantiles of each level so that the nominal share of outcomes falls below them.

    The shift of a level is the quantile of that level of outcome less predicted quantile, over the rows of the fit. The
    i-th smallest of n is at level i/(n+1), so a new outcome falls below with exactly that probability. This is
    conformalised quantile regression (Romano, Patterson and Candes, 2019) for each level; quantiles that cross
    afterwards are sorted.

    Parameters
    ----------
    levels : numbers between 0 and 1, optional
        Levels of the quantiles; by default those of quantile forecasts, and 0.05, 0.1, ..., 0.95 of others.

    Attributes
    ----------
    levels_, shifts_ : ndarray

    See Also
    --------
    PITRecalibrator, VarianceScaling

    Examples
    --------
    >>> from calibrant.regression import Quantiles
    >>> cal = QuantileRecalibrator().fit(Quantiles([0.5], [[1.0], [2.0], [3.0]]), [2.0, 3.0, 7.0])
    >>> cal.shifts_, cal(Quantiles([0.5], [[10.0]])).values
    (array([1.]), array([[11.]]))
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("quantile_shifts",)

    def __init__(self, *, levels: Column | None = None) -> None:
        self.levels = levels

    def accepts_map(self, map_: Any) -> bool:
        return self.levels is None or np.array_equal(map_.levels, _sorted_levels(self.levels))

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> maps.QuantileShifts:
        levels = self._levels(forecast)
        least = min(float(levels.min()), 1 - float(levels.max()))
        total = total_weight(y, weight)
        if (total + 1) * least < 1 - 1e-9:
            extreme = levels.min() if levels.min() == least else levels.max()
            check_total(f"the level {extreme:g}", total, math.ceil(1 / least - 1 - 1e-9))
        away = y[:, None] - forecast.quantile(levels)
        shifts = [weighted_quantiles(away[:, i], levels[i : i + 1], weight)[0] for i in range(levels.size)]
        return maps.QuantileShifts(levels, np.array(shifts))

    def _levels(self, forecast: Any) -> Floats:
        if self.levels is not None:
            return _sorted_levels(self.levels)
        known = forecast.known_levels if forecast.ensemble is None else None
        return np.arange(1, 20) / 20 if known is None else np.array(known)

    @property
    def levels_(self) -> Floats:
        """Levels of the quantiles."""
        check_is_fitted(self)
        levels: Floats = self.map_.levels
        return levels

    @property
    def shifts_(self) -> Floats:
        """Shift of each level."""
        check_is_fitted(self)
        shifts: Floats = self.map_.shifts
        return shifts

    def _recalibrate(self, forecast: Any) -> Quantiles:
        """Return the recalibrated forecasts as quantiles."""
        moved = self.map_(forecast.quantile(self.levels_))
        return Quantiles(self.levels_, moved, index=getattr(forecast, "index", None))


def _sorted_levels(levels: Column) -> Floats:
    found = np.sort(as_levels(np.asarray(levels, dtype=np.float64))[0])
    if not found.size or (np.diff(found) == 0).any():
        raise InputError(
            Argument("levels") + f" must be different numbers between 0 and 1; got {levels!r}.", value=levels
        )
    return found
