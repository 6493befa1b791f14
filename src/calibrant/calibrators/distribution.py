"""Recalibrators of predictive distributions: PIT recalibration, variance scaling and quantile shifts.

Each is a scikit-learn transformer of forecasts. Fit them on forecasts and outcomes of rows that the model of the
forecasts was not fitted on; a call with other forecasts returns recalibrated ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import Argument, InputError, Note, check_count, check_share, wrong_value
from calibrant.calibrators import maps
from calibrant.calibrators.calibrator import Calibrator
from calibrant.forecasts.distributions import Quantiles, as_levels
from calibrant.forecasts.forecast_table import as_forecast, read_outcomes
from calibrant.forecasts.transformed import (
    ONE_SD,
    Stretched,
    Warped,
    need_scores,
    normal_scores,
    refuse_discrete,
    stretch,
)

NORMAL = ("mean", "sd")  # the columns of a normal forecast


@dataclass(frozen=True, eq=False)
class QuantileForms:
    """A recalibrated quantile as a function of the columns of forecasts, for SQL and ONNX.

    A normal forecast has the columns mean and sd, a quantile forecast one column per level. The quantile is a weighted
    sum of the columns plus a shift, or, of several such sums, the one at `place` in rising order.

    Attributes
    ----------
    inputs : tuple
        Keys of the columns, in order: "mean" and "sd", or levels.
    weights : ndarray of shape (columns, sums)
    shifts : ndarray of shape (sums,)
    place : int
    """

    inputs: tuple[Any, ...]
    weights: Floats
    shifts: Floats
    place: int = 0

    @property
    def of_normal(self) -> bool:
        """Whether the columns are mean and standard deviation."""
        return self.inputs == NORMAL


class DistributionMap(TransformerMixin, Calibrator):  # type: ignore[misc]
    """A recalibrator of predictive distributions; a subclass fits its map in `_fit_rows`.

    Attributes
    ----------
    map_ : a map of `calibrant.calibrators.maps`
        The fitted map: all that `calibrant.save`, `to_sql` and `to_onnx` need.
    notes_ : tuple of Note
        Notes about the rows of the fit.

    See Also
    --------
    PITRecalibrator, ScoreMap

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import Gaussian, VarianceScaling
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> recalibrator = VarianceScaling().fit(Gaussian(np.zeros(1000), 3.0), y)
    >>> isinstance(recalibrator, DistributionMap), recalibrator(Gaussian([0.0], 3.0)).quantile(0.9).round(1)
    (True, array([1.2]))
    """

    kind: ClassVar[str] = "distribution"
    takes: ClassVar[Literal["column", "classes", "distributions"]] = "distributions"
    is_increasing: ClassVar[bool] = True

    def fit(self, X: Any, y: Column, sample_weight: Column | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of rows that the model of the forecasts was not fitted on.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Their sum is used as the number of rows: weight 2 equals two rows.

        Returns
        -------
        self
        """
        outcomes, forecast = read_outcomes(y, X, "y")
        weight = None
        if sample_weight is not None:
            weight = _columns.read_weights(sample_weight, _columns.read(outcomes, "y"))
            used = weight > 0
            if not used.any():
                raise InputError("sample_weight must be positive in at least one row; got 0 in all.", argument="X")
            outcomes, forecast, weight = outcomes[used], forecast.part(used), weight[used]
        with self._keeping_earlier_fit():
            self.notes_ = ()
            self.map_ = self._fit_rows(outcomes, forecast, weight)
        return self

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> Any:
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """Return the recalibrated forecasts.

        Parameters
        ----------
        X : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of new rows.

        Returns
        -------
        forecast
            One recalibrated distribution per row.
        """
        check_is_fitted(self)
        return self._recalibrate(as_forecast(X))

    def _recalibrate(self, forecast: Any) -> Any:
        raise NotImplementedError

    def _forms(self, inputs: tuple[Any, ...], level: float) -> QuantileForms:
        """Return the recalibrated quantile of the level as a function of the columns."""
        raise NotImplementedError

    def __call__(self, forecast: Any) -> Any:
        """Return the same as `transform`.

        Parameters
        ----------
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of new rows.

        Returns
        -------
        forecast
            One recalibrated distribution per row.
        """
        return self.transform(forecast)


class WarpedMap(DistributionMap):
    """The base of recalibrators by one increasing map of normal scores."""

    def _recalibrate(self, forecast: Any) -> Warped:
        return Warped(forecast, self.map_)

    def _forms(self, inputs: tuple[Any, ...], level: float) -> QuantileForms:
        from scipy.special import ndtri

        if inputs != NORMAL:
            raise InputError(
                f"A {self.map_.kind} map of normal scores has no closed form for quantile forecasts, whose "
                "distribution is not known between the levels.",
                hint="Use QuantileRecalibrator or VarianceScaling.",
                argument="columns",
            )
        score = self.map_.inverse(np.array([ndtri(level)]))
        return QuantileForms(inputs, np.vstack([np.ones(1), score]), np.zeros(1))


def quantile_forms(calibrator: DistributionMap, keys: Sequence[Any], level: float | None) -> QuantileForms:
    """Return the recalibrated quantile of a level as a function of the columns with these keys."""
    if level is None:
        raise InputError(
            Argument("level") + f" must be given for {type(calibrator).__name__}: the level of the quantile to export."
        )
    check_share("level", level)
    if sorted(map(str, keys)) == sorted(NORMAL):
        return calibrator._forms(NORMAL, level)
    try:
        levels = tuple(sorted(float(key) for key in keys))
        Quantiles(levels, np.zeros((1, len(levels))))  # checks the levels
    except (TypeError, ValueError) as error:
        raise InputError(
            Argument("columns") + f" must have the keys 'mean' and 'sd', or levels of quantiles; got {list(keys)!r}."
        ) from error
    return calibrator._forms(levels, level)


def _forecast_weights(inputs: tuple[Any, ...], level: Any) -> Floats:
    """Return the weights with which the columns give the quantiles of the forecast itself, one column per level."""
    from scipy.special import ndtri

    levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
    if inputs == NORMAL:
        return np.vstack([np.ones(levels.size), ndtri(levels)])
    # Quantiles are linear in the values, so differences of the quantiles of step vectors are the weights.
    corners = np.triu(np.ones((len(inputs), len(inputs))))  # zeros, then ones: rows that do not fall
    steps: Floats = Quantiles(inputs, corners).quantile(levels)
    return -np.diff(steps, axis=0, append=np.zeros((1, levels.size)))


def total_weight(y: Floats, weight: Floats | None) -> float:
    """Return the number of rows, or the sum of the weights that stands for it."""
    return y.size if weight is None else float(weight.sum())


def check_total(name: str, total: float, least: float) -> None:
    """Refuse a fit on fewer rows than `least`."""
    if total < least:
        raise InputError(f"y must hold at least {least:g} rows for {name}; got {total:g}.")


def weighted_quantiles(values: Floats, levels: Floats, weight: Floats | None) -> Floats:
    """Return the quantiles in which the i-th smallest of n values is at level i/(n+1), with lines between.

    Weight 2 equals two rows: a value covers the ranks from the sum of the weights below it, plus 1 (or plus its weight,
    if that is less), to the sum including its own.
    """
    if weight is None:
        return np.array([np.quantile(values, level, method="weibull") for level in levels])
    order = np.argsort(values, kind="stable")
    sorted_weight = weight[order]
    upto = np.cumsum(sorted_weight)
    ranks = np.column_stack([upto - sorted_weight + np.minimum(sorted_weight, 1.0), upto]).reshape(-1)
    return np.asarray(np.interp(levels * (upto[-1] + 1), ranks, np.repeat(values[order], 2)))


def weighted_median(values: Floats, weight: Floats | None) -> float:
    """Return the median; of two middle values their mean."""
    if weight is None:
        return float(np.median(values))
    return float(weighted_quantiles(values, np.array([0.5]), weight)[0])


_FEWEST = 10


@dataclass(eq=False, repr=False, kw_only=True)
class PITRecalibrator(WarpedMap):
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

    n_knots: int = 20

    def accepts_map(self, map_: Any) -> bool:
        rises = map_.is_increasing and bool((np.diff(map_.y) > 0).all())
        return rises and map_.domain == "real" and map_.beyond == "line" and map_.x.size <= self.n_knots + 5

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> maps.Segments:
        from scipy.special import ndtri

        need_scores(forecast)
        total = total_weight(y, weight)
        check_total("PITRecalibrator", total, _FEWEST)
        count = check_count("n_knots", self.n_knots, least=3)
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
        even, tails = np.arange(1, count) / count, np.array([0.005, 0.01, 0.025])
        even = even[(even >= 1 / (total + 1)) & (even <= total / (total + 1))]
        tails = tails[tails * (total + 1) >= 10]
        level = np.unique(np.concatenate([even, tails, 1 - tails]).round(12))
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


@dataclass(eq=False, repr=False, kw_only=True)
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

    level: float | None = 0.9
    shift: bool = False

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
            raise InputError("y must differ from the forecasts to fit a factor; all outcomes equal them.")
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

    def _forms(self, inputs: tuple[Any, ...], level: float) -> QuantileForms:
        middle = _forecast_weights(inputs, 0.5)
        weights = middle + self.factor_ * (_forecast_weights(inputs, level) - middle)
        if self.shift_:
            weights = weights + self.shift_ * (_forecast_weights(inputs, ONE_SD) - middle)
        return QuantileForms(inputs, weights, np.zeros(1))


def _median_shift(y: Floats, forecast: Any, weight: Floats | None) -> float:
    middle, unit = forecast.quantile(0.5), Stretched(forecast, 1.0, 1.0).quantile(0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (y - middle) / (unit - middle)
    finite = np.isfinite(away)
    return weighted_median(away[finite], None if weight is None else weight[finite]) if finite.any() else 0.0


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
    upto = np.cumsum(np.ones(y.size) if weight is None else weight[order])
    factor = float(needed[order][min(int(np.searchsorted(upto, rank)), y.size - 1)])
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
            value = float(-np.average(stretched.log_density(y), weights=weight))
        except InputError:
            value = float(np.average(stretched.crps(y), weights=weight))
        return value if math.isfinite(value) else 1e300

    low, middle, high = forecast.quantile([0.25, 0.5, 0.75]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.abs(y - middle) / np.where(y > middle, high - middle, middle - low)
    usable = np.isfinite(room) & (room > 0)
    if not usable.any():
        raise InputError(
            "X must hold forecasts with a width, and other values than y, to fit a factor; it holds none.", argument="X"
        )
    near = math.log(weighted_median(room[usable], None if weight is None else weight[usable]))
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
        best = minimize(lambda theta: loss(theta[0], theta[1]), [start.x, 0.0], method="Nelder-Mead").x
    return math.exp(best[0]), float(best[1])


@dataclass(eq=False, repr=False, kw_only=True)
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

    levels: Column | None = None

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
        levels = forecast.known_levels if forecast.ensemble is None else None
        return np.arange(1, 20) / 20 if levels is None else np.array(levels)

    @property
    def levels_(self) -> Floats:
        """Levels of the quantiles."""
        check_is_fitted(self)
        return np.asarray(self.map_.levels)

    @property
    def shifts_(self) -> Floats:
        """Shift of each level."""
        check_is_fitted(self)
        return np.asarray(self.map_.shifts)

    def _recalibrate(self, forecast: Any) -> Quantiles:
        """Return the recalibrated forecasts as quantiles."""
        moved = self.map_(forecast.quantile(self.levels_))
        return Quantiles(self.levels_, moved, index=getattr(forecast, "index", None))

    def _forms(self, inputs: tuple[Any, ...], level: float) -> QuantileForms:
        place = np.flatnonzero(np.isclose(self.levels_, level, rtol=0, atol=1e-9))
        if not place.size:
            levels = ", ".join(f"{known:g}" for known in self.levels_)
            raise InputError(
                Argument("level") + f" must be one of the recalibrated levels {levels}; got {level:g}.", value=level
            )
        return QuantileForms(inputs, _forecast_weights(inputs, self.levels_), self.shifts_, int(place[0]))


def _sorted_levels(levels: Column) -> Floats:
    rising = np.sort(as_levels(np.asarray(levels, dtype=np.float64))[0])
    if not rising.size or (np.diff(rising) == 0).any():
        raise wrong_value("levels", "must be different numbers between 0 and 1", levels)
    return rising
