"""Recalibrators of predictive distributions: they learn from forecasts and outcomes, and repair other forecasts.

``Recalibrator().fit(forecast, y)`` learns, from rows that are new to the model behind the forecasts; calling it with
forecasts gives repaired ones.
"""

import inspect
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._support.errors import InputError, Note
from calibrant._support.option_checks import check_count, check_share
from calibrant._support.typing import Column, Floats
from calibrant.forecasts.distributions import Gaussian, Quantiles, Samples, levels_of
from calibrant.forecasts.reading import as_forecast, read_outcomes
from calibrant.forecasts.transformed import Stretched, Warped, need_scores, normal_scores, refuse_discrete

__all__ = ["PITRecalibrator", "QuantileRecalibrator", "VarianceScaling"]

_FEWEST = 10


class Recalibrator:
    """What recalibrators of distributions share: their settings, as scikit-learn asks for them, and a readable form."""

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The settings by name; `deep` changes nothing."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **settings: Any) -> Self:
        """Change settings."""
        for name, value in settings.items():
            if name not in self.get_params():
                raise InputError(f"{type(self).__name__} has no setting {name!r}.", argument=name)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = {n: v for n, v in self.get_params().items() if repr(v) != repr(defaults[n].default)}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"


def need_fit(fitted: object, name: str, attribute: str) -> None:
    """Refuses to be used before it has learned."""
    if not hasattr(fitted, attribute):
        raise InputError(f"This {name} has learned nothing yet.", hint="Call fit(forecast, y) first.")


@dataclass(frozen=True, eq=False)
class ScoreKnots:
    """A rising map of normal scores: straight lines through knots, the outermost going on beyond them."""

    z: Floats
    target: Floats

    def __call__(self, z: Floats) -> Floats:
        return _along(z, self.z, self.target)

    def inverse(self, z: Floats) -> Floats:
        return _along(z, self.target, self.z)

    def log_slope(self, z: Floats) -> Floats:
        """Logarithm of the slope; at a knot, of the piece to its right."""
        piece = np.clip(np.searchsorted(self.z, z, side="right") - 1, 0, self.z.size - 2)
        return np.log(np.diff(self.target) / np.diff(self.z))[piece]


def _along(values: Floats, x: Floats, y: Floats) -> Floats:
    """Linear interpolation that goes on along the outermost pieces."""
    piece = np.clip(np.searchsorted(x, values, side="right") - 1, 0, x.size - 2)
    slope = np.diff(y) / np.diff(x)
    found: Floats = y[piece] + slope[piece] * (values - x[piece])
    return found


class PITRecalibrator(Recalibrator):
    """Recalibration by the PIT: what the forecasts call a chance of p becomes the share of outcomes found there.

    The distribution function F becomes R(F), with R the (isotonic) distribution function of the PIT values of the rows
    that it learned from: the i-th smallest of n is at level i/(n+1), so that a new outcome falls below it with just
    that chance, whatever is wrong with the forecasts, as long as rows are exchangeable.
    Kuleshov, Fenner and Ermon (2018).

    Parameters
    ----------
    n_knots : int, default=20
        The map goes on straight lines, on the scale of normal scores, through its values at the levels 1/n_knots,
        2/n_knots, ... and, where at least ten rows lie beyond, at 2.5, 1 and 0.5 % from either end; so central
        intervals of 90 %, 95 %, ... are read off at knots. Very many knots follow every accident of the rows: intervals
        are as good, but densities useless.

    Attributes
    ----------
    map_ : the map of normal scores
    notes_ : tuple of Note

    Notes
    -----
    One map for all rows: it repairs how often intervals cover on average, not where. It needs forecasts whose
    distribution is known everywhere (normal ones, continuous ones of scipy); for quantiles, draws and whole numbers use
    `QuantileRecalibrator`.

    Examples
    --------
    >>> from calibrant.regression import Gaussian, coverage
    >>> y = np.random.default_rng(2).normal(size=2000)
    >>> timid = Gaussian(np.zeros(2000), 3.0)
    >>> cal = PITRecalibrator().fit(timid.part(slice(0, 1000)), y[:1000])
    >>> coverage(y[1000:], cal(timid.part(slice(1000, None))), levels=[0.9]).per_level["observed"].round(2)
    array([0.9])
    """

    def __init__(self, *, n_knots: int = 20) -> None:
        self.n_knots = n_knots

    def fit(self, forecast: Any, y: Column) -> Self:
        """Learn from forecasts and outcomes."""
        from scipy.special import ndtri

        outcomes, known = read_outcomes(y, forecast, "y")
        need_scores(known)
        if outcomes.size < _FEWEST:
            raise InputError(f"A map needs at least {_FEWEST} rows; there are {outcomes.size}.", argument="y")
        count = check_count("n_knots", self.n_knots)
        if count < 3:
            raise InputError(f"n_knots must be at least 3; it is {count}.", argument="n_knots", value=count)
        # Equal scores (whole numbers, zeros) share the middle of their levels, so that neither side is preferred.
        scores, times = np.unique(normal_scores(known, outcomes), return_counts=True)
        last = np.cumsum(times)
        position = (last - (times - 1) / 2) / (outcomes.size + 1)
        possible = np.isfinite(scores)
        self.notes_: tuple[Note, ...] = ()
        if not possible.all():
            text = "Outcomes that the forecasts hold to be impossible: {count}. No map of levels can repair these."
            self.notes_ = (Note("impossible", int(times[~possible].sum()), text),)
        scores, position = scores[possible], position[possible]
        level = _knot_levels(count, outcomes.size)
        level = level[(level >= position[:1].sum()) & (level <= position[-1:].sum())]
        if level.size < 2:
            raise InputError(
                "The PIT values are too much alike to learn a map from.",
                hint="Are outcomes and forecasts those of the same rows?",
                argument="y",
            )
        self.map_ = ScoreKnots(np.interp(level, position, scores), ndtri(level))
        return self

    def __call__(self, forecast: Any) -> Warped:
        """The repaired forecasts."""
        need_fit(self, type(self).__name__, "map_")
        return Warped(as_forecast(forecast), self.map_)


def _knot_levels(count: int, rows: int) -> Floats:
    """Equally spaced levels as far as rows reach, and in the tails some with at least ten rows beyond."""
    even, tails = np.arange(1, count) / count, np.array([0.005, 0.01, 0.025])
    even = even[(even >= 1 / (rows + 1)) & (even <= rows / (rows + 1))]
    tails = tails[tails * (rows + 1) >= 10]
    return np.unique(np.concatenate([even, tails, 1 - tails]).round(12))


class VarianceScaling(Recalibrator):
    """Makes every forecast wider or narrower by one factor.

    Parameters
    ----------
    level : float or None, default=0.9
        The least factor with which the central interval of that level covers the rows learned from, counted so that a
        new row is covered with at least that chance (split conformal prediction). None: the factor with the greatest
        likelihood; for normal forecasts sqrt(mean(z^2)), z the errors in standard deviations (Levi et al., 2022), and
        where there are no densities the factor with the least CRPS.
    shift : bool, default=False
        Also move all forecasts, by one number of their standard deviations.

    Attributes
    ----------
    factor_, shift_ : float

    Notes
    -----
    One factor cannot repair the form of a distribution: where errors have heavier tails than the forecasts, intervals
    of other levels than the one named stay wrong, and the greatest likelihood makes 90 % intervals too wide. For all
    levels at once use `PITRecalibrator`.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> cal = VarianceScaling(level=None).fit(Gaussian([0.0, 0.0, 0.0, 0.0], 2.0), [1.0, -1.0, 1.0, -1.0])
    >>> cal.factor_, cal(Gaussian([5.0], 3.0)).sd
    (0.5, array([1.5]))
    """

    def __init__(self, *, level: float | None = 0.9, shift: bool = False) -> None:
        self.level = level
        self.shift = shift

    def fit(self, forecast: Any, y: Column) -> Self:
        """Learn from forecasts and outcomes."""
        outcomes, known = read_outcomes(y, forecast, "y")
        refuse_discrete(known)
        if self.level is not None:
            check_share("level", self.level)
            moved = _median_shift(outcomes, known) if self.shift else 0.0
            self.factor_, self.shift_ = _covering(outcomes, known, self.level, moved), moved
        elif isinstance(known, Gaussian):
            z = known.normal_score(outcomes)
            self.shift_ = float(z.mean()) if self.shift else 0.0
            self.factor_ = float(np.sqrt(np.mean((z - self.shift_) ** 2)))
            if self.factor_ == 0:
                raise InputError("All outcomes equal their forecasts: there is no spread to learn.", argument="y")
        else:
            self.factor_, self.shift_ = _best_stretch(outcomes, known, self.shift)
        return self

    def __call__(self, forecast: Any) -> Any:
        """The repaired forecasts; of the same kind but for scipy's distributions."""
        need_fit(self, type(self).__name__, "factor_")
        known = as_forecast(forecast)
        if isinstance(known, Gaussian):
            return Gaussian(known.mean + self.shift_ * known.sd, self.factor_ * known.sd, index=known.index)
        stretched = Stretched(known, self.factor_, self.shift_)
        if isinstance(known, Quantiles):
            return Quantiles(known.levels, stretched.quantile(known.levels), index=known.index)
        if isinstance(known, Samples):
            return Samples(stretched.moved(known.draws.T).T, index=known.index)
        return stretched


def _median_shift(y: Floats, forecast: Any) -> float:
    middle, unit = forecast.quantile(0.5), Stretched(forecast, 1.0, 1.0).quantile(0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = (y - middle) / (unit - middle)
    return float(np.median(away[np.isfinite(away)])) if np.isfinite(away).any() else 0.0


def _covering(y: Floats, forecast: Any, level: float, shift: float) -> float:
    """The least factor whose central intervals hold ceil((n + 1) level) of the n outcomes."""
    rank = math.ceil((y.size + 1) * level - 1e-9)
    if rank > y.size:
        raise InputError(
            f"Intervals of {100 * level:g} % need at least {math.ceil(level / (1 - level) - 1e-9)} rows; there are "
            f"{y.size}.",
            argument="y",
        )
    low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
    middle = forecast.quantile(0.5)
    away = y - Stretched(forecast, 1.0, shift).quantile(0.5)
    room = np.where(away > 0, high - middle, middle - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(away == 0, 0.0, np.abs(away) / room)
    factor = float(np.sort(needed)[rank - 1])
    if not 0 < factor < math.inf:
        raise InputError(
            f"No factor makes intervals cover {100 * level:g} % of these outcomes: "
            + ("most forecasts have no width." if factor else "most outcomes equal their forecasts."),
            argument="forecast",
        )
    return factor


def _best_stretch(y: Floats, forecast: Any, shift: bool) -> tuple[float, float]:
    """Factor and shift with the greatest likelihood, or with the least CRPS where there is no density.

    Looked for around the factor with which half of the outcomes lie within half of each forecast.
    """
    from scipy.optimize import minimize, minimize_scalar

    def loss(log_factor: float, moved: float = 0.0) -> float:
        stretched = Stretched(forecast, math.exp(log_factor), moved)
        try:
            found = float(-np.mean(stretched.log_density(y)))
        except InputError:
            found = float(np.mean(stretched.crps(y)))
        return found if math.isfinite(found) else 1e300

    low, middle, high = forecast.quantile([0.25, 0.5, 0.75]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.abs(y - middle) / np.where(y > middle, high - middle, middle - low)
    room = room[np.isfinite(room) & (room > 0)]
    if not room.size:
        raise InputError(
            "No factor can be learned: the forecasts have no width, or the outcomes equal them.", argument="forecast"
        )
    near = math.log(float(np.median(room)))
    with np.errstate(all="ignore"):
        start = minimize_scalar(loss, bounds=(near - 7, near + 7), method="bounded", options={"xatol": 1e-9})
        if loss(start.x) >= 1e300 or abs(start.x - near) > 6.9:
            raise InputError(
                "No factor makes these outcomes likely: some lie where the forecasts hold nothing to be possible.",
                hint="Name a level, or use QuantileRecalibrator.",
                argument="forecast",
            )
        if not shift:
            return math.exp(start.x), 0.0
        found = minimize(lambda theta: loss(theta[0], theta[1]), [start.x, 0.0], method="Nelder-Mead")
    return math.exp(found.x[0]), float(found.x[1])


class QuantileRecalibrator(Recalibrator):
    """Moves each predicted quantile so that the right share of outcomes falls below it.

    For each level one shift: the quantile of that level of outcome less prediction, among the rows that it learned from
    (the i-th smallest of n is at level i/(n+1), so that a new outcome falls below with just that chance). Conformalised
    quantile regression (Romano, Patterson and Candes, 2019), a level at a time; quantiles that cross afterwards are
    sorted.

    Parameters
    ----------
    levels : numbers between 0 and 1, optional
        Which quantiles to repair; by default those of quantile forecasts, and 0.05, 0.1, ..., 0.95 of others.

    Attributes
    ----------
    levels_, shifts_ : ndarray

    Examples
    --------
    >>> from calibrant.regression import Quantiles
    >>> cal = QuantileRecalibrator().fit(Quantiles([0.5], [[1.0], [2.0], [3.0]]), [2.0, 3.0, 7.0])
    >>> cal.shifts_, cal(Quantiles([0.5], [[10.0]])).values
    (array([1.]), array([[11.]]))
    """

    def __init__(self, *, levels: Column | None = None) -> None:
        self.levels = levels

    def fit(self, forecast: Any, y: Column) -> Self:
        """Learn from forecasts and outcomes."""
        outcomes, known = read_outcomes(y, forecast, "y")
        levels = self._levels(known)
        least = min(float(levels.min()), 1 - float(levels.max()))
        if (outcomes.size + 1) * least < 1 - 1e-9:
            raise InputError(
                f"The level {levels.min() if levels.min() == least else levels.max():g} needs at least "
                f"{math.ceil(1 / least - 1 - 1e-9)} rows; there are {outcomes.size}.",
                hint="Pass more rows, or levels nearer to 1/2.",
                argument="y",
            )
        missing = outcomes[:, None] - known.quantile(levels)
        self.levels_ = levels
        self.shifts_: Floats = np.array(
            [np.quantile(missing[:, i], level, method="weibull") for i, level in enumerate(levels)]
        )
        return self

    def _levels(self, forecast: Any) -> Floats:
        if self.levels is not None:
            levels = np.sort(levels_of(np.asarray(self.levels, dtype=np.float64))[0])
            if not levels.size or (np.diff(levels) == 0).any():
                raise InputError("levels must be different numbers between 0 and 1.", argument="levels")
            return levels
        return np.array(forecast.levels) if isinstance(forecast, Quantiles) else np.arange(1, 20) / 20

    def __call__(self, forecast: Any) -> Quantiles:
        """The repaired forecasts, as quantiles."""
        need_fit(self, type(self).__name__, "shifts_")
        known = as_forecast(forecast)
        moved = np.sort(known.quantile(self.levels_) + self.shifts_, axis=1)
        return Quantiles(self.levels_, moved, index=getattr(known, "index", None))
