"""`ParetoRecalibrator`: sharpness against calibration, a front of repairs to choose from."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count
from calibrant._support.text_tables import text_table
from calibrant._support.typing import Bools, Column, Floats
from calibrant.calibrators.distribution import Recalibrator, need_fit
from calibrant.forecasts.reading import as_forecast, read_outcomes
from calibrant.forecasts.transformed import Warped, need_scores, normal_scores
from calibrant.inference.uniformity import ad_pvalue

__all__ = ["Front", "FrontPoint", "ParetoRecalibrator", "SinhArcsinh", "not_dominated"]

Choice: TypeAlias = Literal["knee", "sharp", "calibrated"] | int


@dataclass(frozen=True)
class SinhArcsinh:
    r"""The map of normal scores :math:`z \mapsto \sinh(\delta \sinh^{-1}((z - \xi) / \eta) - \epsilon)`.

    Jones and Pewsey (2009): location, scale, skewness and weight of the tails, one number each. (0, 1, 0, 1) leaves
    everything as it is.
    """

    location: float = 0.0
    scale: float = 1.0
    skewness: float = 0.0
    tails: float = 1.0

    def __call__(self, z: Floats) -> Floats:
        found: Floats = np.sinh(self.tails * np.arcsinh((z - self.location) / self.scale) - self.skewness)
        return found

    def inverse(self, z: Floats) -> Floats:
        found: Floats = self.location + self.scale * np.sinh((np.arcsinh(z) + self.skewness) / self.tails)
        return found

    def log_slope(self, z: Floats) -> Floats:
        x = (z - self.location) / self.scale
        inner = self.tails * np.arcsinh(x) - self.skewness
        # ln cosh without overflow
        found: Floats = (
            math.log(self.tails / self.scale) + np.logaddexp(inner, -inner) - math.log(2) - 0.5 * np.log1p(x**2)
        )
        return found


@dataclass(frozen=True)
class FrontPoint:
    """One repair: mean negative log-likelihood and A^2 of the rows learned from, and the map behind them."""

    nll: float
    a_squared: float
    pvalue: float
    map: SinhArcsinh


@dataclass(frozen=True)
class Front:
    """Repairs of which none is better than another in both ways, from the sharpest to the best calibrated."""

    points: tuple[FrontPoint, ...]
    before: FrontPoint

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[FrontPoint]:
        return iter(self.points)

    def __getitem__(self, place: int) -> FrontPoint:
        return self.points[place]

    @property
    def nll(self) -> Floats:
        return np.array([point.nll for point in self.points])

    @property
    def a_squared(self) -> Floats:
        return np.array([point.a_squared for point in self.points])

    @property
    def knee(self) -> int:
        """The point nearest to the (unreachable) best of both, each objective scaled to its range on the front."""
        away = [(values - values.min()) / max(np.ptp(values), 1e-300) for values in (self.nll, self.a_squared)]
        return int(np.argmin(np.hypot(*away)))

    def __repr__(self) -> str:
        cells = [["", "NLL", "A^2", "p", "location", "scale", "skewness", "tails"]]
        for name, point in [("before", self.before), *((str(i), each) for i, each in enumerate(self.points))]:
            m = point.map
            shape = [f"{v:.3g}" for v in (m.location, m.scale, m.skewness, m.tails)]
            mark = " (knee)" if name == str(self.knee) else ""
            cells.append([name + mark, f"{point.nll:.5g}", f"{point.a_squared:.4g}", f"{point.pvalue:.2g}", *shape])
        return "\n".join([f"Pareto front of {len(self)} repairs", *text_table(cells, left=(0,))])


def not_dominated(*objectives: Column) -> Bools:
    """Which of several candidates no other beats: at least as low in every objective, and lower in one.

    Of equal ones all are kept. For example the models whose forecasts are worth a choice, by `nll` and A^2.

    Examples
    --------
    >>> not_dominated([1.0, 2.0, 3.0], [5.0, 6.0, 4.0])
    array([ True, False,  True])
    """
    columns = [_columns.numbers(_columns.read(column, f"objective {i}")) for i, column in enumerate(objectives, 1)]
    if not columns:
        raise InputError("There are no objectives; at least one is needed.", argument="objectives")
    _columns.check_lengths(columns)
    _columns.refuse_missing(columns)
    values = np.column_stack([column.values.astype(np.float64) for column in columns])
    no_higher = (values[:, None, :] <= values[None, :, :]).all(axis=2)
    lower = (values[:, None, :] < values[None, :, :]).any(axis=2)
    return np.asarray(~(no_higher & lower).any(axis=0))


class ParetoRecalibrator(Recalibrator):
    r"""Recalibration of predictive distributions with two objectives: sharpness (NLL) against calibration (A^2).

    After Carney and Cunningham (2006), who train networks so: likelihood alone may leave forecasts miscalibrated, and
    calibration alone may blur them; neither objective is traded for the other in secret. Here a smooth map of four
    numbers (location, scale, skewness, tails; `SinhArcsinh`) repairs any forecast with a density. The front reaches
    from the map of least NLL to that of least A^2; between them, A^2 is minimised with NLL held below equally spaced
    bounds.

    Parameters
    ----------
    choice : {"knee", "sharp", "calibrated"} or int, default="knee"
        Which repair of the front to use: that nearest to the best of both, that of least NLL, that of least A^2, or one
        by its place. `choose` changes it later.
    n_points : int, default=12
        Points of the front to look for; dominated ones are left out.

    Attributes
    ----------
    front_ : Front
        ``front_.points`` from sharp to calibrated, ``front_.before`` the forecasts as they were. Values are in sample;
        `on` measures all points on other rows.
    map_ : the chosen map

    Notes
    -----
    p-values of the front are optimistic: the maps were fitted to the same rows.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_t(3, size=1000)
    >>> cal = ParetoRecalibrator().fit(Gaussian(np.zeros(1000), 1.0), y)
    >>> bool(cal.front_[0].nll <= cal.front_[-1].nll), bool(cal.front_[0].a_squared >= cal.front_[-1].a_squared)
    (True, True)
    """

    def __init__(self, *, choice: Choice = "knee", n_points: int = 12) -> None:
        self.choice: Choice = choice
        self.n_points = n_points

    def fit(self, forecast: Any, y: Column) -> Self:
        """Learn the front from forecasts and outcomes."""
        outcomes, known = read_outcomes(y, forecast, "y")
        need_scores(known)
        count = check_count("n_points", self.n_points)
        if count < 2:
            raise InputError("n_points must be at least 2: a front has two ends.", argument="n_points", value=count)
        if outcomes.size < 20:
            raise InputError(f"A map of four numbers needs at least 20 rows; there are {outcomes.size}.", argument="y")
        objectives = _Objectives(outcomes, known)
        self.front_ = Front(tuple(_search(objectives, count)), objectives.point(np.zeros(4)))
        self.map_ = self._chosen(self.choice)
        return self

    def _chosen(self, choice: Choice) -> SinhArcsinh:
        places = {"knee": self.front_.knee, "sharp": 0, "calibrated": len(self.front_) - 1}
        place = places.get(choice, choice) if isinstance(choice, str) else choice
        if not isinstance(place, (int, np.integer)) or isinstance(place, bool) or not 0 <= place < len(self.front_):
            raise InputError(
                f"choice must be 'knee', 'sharp', 'calibrated' or a place from 0 to {len(self.front_) - 1}; it is "
                f"{choice!r}.",
                argument="choice",
                value=choice,
            )
        return self.front_[int(place)].map

    def choose(self, choice: Choice) -> "ParetoRecalibrator":
        """The same front, another point of it."""
        need_fit(self, type(self).__name__, "front_")
        other = copy.copy(self)
        other.choice, other.map_ = choice, self._chosen(choice)
        return other

    def on(self, forecast: Any, y: Column) -> Front:
        """The same repairs, measured on other rows (on which some may be dominated)."""
        need_fit(self, type(self).__name__, "front_")
        objectives = _Objectives(*read_outcomes(y, forecast, "y"))
        points = tuple(objectives.of_map(point.map) for point in self.front_)
        return Front(points, objectives.point(np.zeros(4)))

    def __call__(self, forecast: Any) -> Warped:
        """The repaired forecasts."""
        need_fit(self, type(self).__name__, "map_")
        return Warped(as_forecast(forecast), self.map_)


def _map_of(theta: Floats) -> SinhArcsinh:
    """From location, ln scale, skewness and ln tails, each of which may be any number."""
    location, scale, skewness, tails = theta.tolist()
    return SinhArcsinh(location, math.exp(scale), skewness, math.exp(tails))


class _Objectives:
    """NLL and A^2 of rows as functions of the map. A rising map keeps the order of rows: it is found once."""

    def __init__(self, y: Floats, forecast: Any) -> None:
        self.base = -forecast.log_density(y)
        z = normal_scores(forecast, y)
        impossible = ~(np.isfinite(z) & np.isfinite(self.base))
        if impossible.any():
            row = int(np.argmax(impossible))
            raise InputError(
                f"The forecast of row {row} holds its outcome, {y[row]:.6g}, to be impossible: no map can repair that.",
                hint="Widen such forecasts first, for example with VarianceScaling.",
                argument="forecast",
                row=row,
                value=float(y[row]),
            )
        self.z = np.sort(z)
        self.constant = float(self.base.mean()) - 0.5 * float(np.mean(z**2))
        self.weight = (2 * np.arange(1, z.size + 1) - 1) / z.size

    def nll(self, theta: Floats) -> float:
        m = _map_of(theta)
        return float(self.constant + np.mean(0.5 * m(self.z) ** 2 - m.log_slope(self.z)))

    def a_squared(self, theta: Floats) -> float:
        from scipy.special import log_ndtr

        warped = _map_of(theta)(self.z)
        return float(-self.z.size - self.weight @ (log_ndtr(warped) + log_ndtr(-warped[::-1])))

    def point(self, theta: Floats) -> FrontPoint:
        a2 = self.a_squared(theta)
        return FrontPoint(self.nll(theta), a2, ad_pvalue(a2, self.z.size), _map_of(theta))

    def of_map(self, m: SinhArcsinh) -> FrontPoint:
        return self.point(np.array([m.location, math.log(m.scale), m.skewness, math.log(m.tails)]))


def _search(objectives: _Objectives, count: int) -> list[FrontPoint]:
    """The front: both ends, and between them the best calibration at each bound of the likelihood."""
    from scipy.optimize import minimize

    limits = [(-20.0, 20.0), (-6.0, 6.0), (-10.0, 10.0), (-2.5, 2.5)]
    # From a shift and a scale to all four numbers.
    z = objectives.z
    start = np.array([z.mean(), math.log(max(float(z.std()), 1e-3)), 0.0, 0.0])
    start = np.clip(start, *np.array(limits).T)
    sharp = minimize(objectives.nll, start, method="L-BFGS-B", bounds=limits).x
    ends = [minimize(objectives.a_squared, theta, method="L-BFGS-B", bounds=limits).x for theta in (sharp, start)]
    calibrated = min(ends, key=objectives.a_squared)
    found = [sharp, calibrated]
    low, high = objectives.nll(sharp), objectives.nll(calibrated)
    for share in np.linspace(0, 1, count)[1:-1] if high > low else []:
        bound = low + share * (high - low)
        near = sharp + share * (calibrated - sharp)
        held = {"type": "ineq", "fun": lambda theta, most=bound: most - objectives.nll(theta)}
        found.append(minimize(objectives.a_squared, near, method="SLSQP", bounds=limits, constraints=held).x)
    points = sorted((objectives.point(theta) for theta in found), key=lambda point: (point.nll, point.a_squared))
    kept = not_dominated([p.nll for p in points], [p.a_squared for p in points])
    distinct: dict[tuple[float, float], FrontPoint] = {
        (point.nll, point.a_squared): point for point, good in zip(points, kept, strict=True) if good
    }
    return list(distinct.values())
