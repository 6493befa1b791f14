"""`ParetoRecalibrator`: a Pareto front of recalibrations, from the sharpest to the best calibrated."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Column, Floats
from calibrant._support.errors import Argument, InputError, check_count
from calibrant._support.formatting import text_table
from calibrant.calibrators import maps
from calibrant.calibrators.distribution import WarpedMap, check_total, total_weight
from calibrant.calibrators.maps import SinhArcsinh
from calibrant.forecasts.forecast_table import read_outcomes
from calibrant.forecasts.transformed import need_scores, normal_scores
from calibrant.inference.regression.uniformity import ad_pvalue

Choice: TypeAlias = Literal["knee", "sharp", "calibrated"] | int


@dataclass(frozen=True)
class FrontPoint:
    """One recalibration: its map, and the mean negative log-likelihood and A^2 of the rows of the fit.

    Attributes
    ----------
    nll, a_squared : float
        The two objectives.
    pvalue : float
        p-value of the Anderson-Darling test.
    map : SinhArcsinh
        The map.

    See Also
    --------
    Front

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import Gaussian, ParetoRecalibrator
    >>> y = np.random.default_rng(0).standard_t(3, size=500)
    >>> point = ParetoRecalibrator(n_points=4).fit(Gaussian(np.zeros(500), 1.0), y).front_[-1]
    >>> point.pvalue > 0.05, type(point.map).__name__
    (True, 'SinhArcsinh')
    """

    nll: float
    a_squared: float
    pvalue: float
    map: SinhArcsinh


@dataclass(frozen=True)
class Front:
    """Recalibrations of which none is better than another in both objectives, from sharpest to best calibrated.

    Attributes
    ----------
    points : tuple of FrontPoint
        From the sharpest to the best calibrated.
    before : FrontPoint
        The forecast without recalibration.

    See Also
    --------
    FrontPoint, ParetoRecalibrator

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import Gaussian, ParetoRecalibrator
    >>> y = np.random.default_rng(0).standard_t(3, size=500)
    >>> front = ParetoRecalibrator(n_points=4).fit(Gaussian(np.zeros(500), 1.0), y).front_
    >>> front[0].nll < front.before.nll, front[-1].a_squared < front.before.a_squared
    (True, True)
    """

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
        """Mean negative log-likelihood of each point."""
        return np.array([point.nll for point in self.points])

    @property
    def a_squared(self) -> Floats:
        """Anderson-Darling statistic of each point."""
        return np.array([point.a_squared for point in self.points])

    @property
    def knee(self) -> int:
        """Position of the point nearest to the minimum of both objectives, each scaled to its range on the front."""
        away = [(values - values.min()) / max(np.ptp(values), 1e-300) for values in (self.nll, self.a_squared)]
        return int(np.argmin(np.hypot(*away)))

    def __repr__(self) -> str:
        cells = [["", "NLL", "A^2", "p", "location", "scale", "skewness", "tails"]]
        for name, point in [("before", self.before), *((str(i), point) for i, point in enumerate(self.points))]:
            m = point.map
            shape = [f"{v:.3g}" for v in (m.location, m.scale, m.skewness, m.tails)]
            mark = " (knee)" if name == str(self.knee) else ""
            cells.append([name + mark, f"{point.nll:.5g}", f"{point.a_squared:.4g}", f"{point.pvalue:.2g}", *shape])
        return "\n".join([f"Pareto front of {len(self)} recalibrations", *text_table(cells, left=(0,))])


def not_dominated(*objectives: Column) -> Bools:
    """Return which candidates are not dominated: no other is at most as high in each objective and lower in one.

    Equal candidates do not dominate each other.

    Parameters
    ----------
    *objectives : array_like
        One array per objective, with one value per candidate; lower is better.

    Returns
    -------
    ndarray of bool
        One value per candidate.

    See Also
    --------
    ParetoRecalibrator

    Examples
    --------
    >>> not_dominated([1.0, 2.0, 3.0], [5.0, 6.0, 4.0])
    array([ True, False,  True])
    """
    columns = [_columns.numbers(_columns.read(column, f"objective {i}")) for i, column in enumerate(objectives, 1)]
    if not columns:
        raise InputError("At least one objective must be given; got none.", argument="objectives")
    _columns.check_lengths(columns)
    _columns.refuse_missing(columns)
    values = np.column_stack([column.values.astype(np.float64) for column in columns])
    no_higher = (values[:, None, :] <= values[None, :, :]).all(axis=2)
    lower = (values[:, None, :] < values[None, :, :]).any(axis=2)
    return np.asarray(~(no_higher & lower).any(axis=0))


@dataclass(eq=False, repr=False, kw_only=True)
class ParetoRecalibrator(WarpedMap):
    r"""Recalibration of predictive distributions with two objectives: sharpness (NLL) against calibration (A^2).

    After Carney and Cunningham (2006), who train networks in this way: likelihood alone may leave forecasts
    miscalibrated, and calibration alone may make them less sharp. Here a smooth map of four numbers (location, scale,
    skewness, tails; `SinhArcsinh`) recalibrates any forecast with a density. The front reaches from the map of least
    NLL to that of least A^2; between them A^2 is minimised with NLL below equally spaced bounds.

    Parameters
    ----------
    choice : {"knee", "sharp", "calibrated"} or int, default="knee"
        Which point of the front to use: the one nearest to the minimum of both objectives, that of least NLL, that of
        least A^2, or one by its position. `choose` changes it later.
    n_points : int, default=12
        Number of points to search; dominated ones are dropped.

    Attributes
    ----------
    front_ : Front
        ``front_.points`` from sharp to calibrated, ``front_.before`` the forecasts before recalibration. Values are in
        sample; `measure` returns those of other rows.
    map_ : SinhArcsinh
        The chosen map.

    See Also
    --------
    Front, PITRecalibrator, ParetoDisplay

    Notes
    -----
    p-values of the front are optimistic, because the maps were fitted to the same rows.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_t(3, size=1000)
    >>> cal = ParetoRecalibrator().fit(Gaussian(np.zeros(1000), 1.0), y)
    >>> bool(cal.front_[0].nll <= cal.front_[-1].nll), bool(cal.front_[0].a_squared >= cal.front_[-1].a_squared)
    (True, True)
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("sinh_arcsinh",)

    choice: Choice = "knee"
    n_points: int = 12

    def _fit_rows(self, y: Floats, forecast: Any, weight: Floats | None) -> SinhArcsinh:
        need_scores(forecast)
        count = check_count("n_points", self.n_points, least=2)
        check_total("a map of four numbers", total_weight(y, weight), 20)
        objectives = _Objectives(y, forecast, weight)
        self.front_: Front = Front(tuple(_search(objectives, count)), objectives.point(np.zeros(4)))
        return self._chosen(self.choice)

    def _chosen(self, choice: Choice) -> SinhArcsinh:
        places = {"knee": self.front_.knee, "sharp": 0, "calibrated": len(self.front_) - 1}
        place = places.get(choice, choice) if isinstance(choice, str) else choice
        if not isinstance(place, (int, np.integer)) or isinstance(place, bool) or not 0 <= place < len(self.front_):
            raise InputError(
                Argument("choice")
                + f" must be 'knee', 'sharp', 'calibrated' or a position from 0 to {len(self.front_) - 1}; got "
                f"{choice!r}.",
                value=choice,
            )
        return self.front_[int(place)].map

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_ == self._chosen(self.choice))

    def to_state(self) -> dict[str, Any]:
        points = (self.front_.before, *self.front_)
        return super().to_state() | {"front": [vars(point) | {"map": maps.to_dict(point.map)} for point in points]}

    def restore_state(self, state: dict[str, Any]) -> None:
        plain = state.pop("front", None)
        try:
            before, *points = map(_read_point, plain)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"front of ParetoRecalibrator must be a list of points; got {plain!r:.80}.") from error
        if not points:
            raise InputError("front of ParetoRecalibrator must hold at least one point; got none.")
        self.front_ = Front(tuple(points), before)
        super().restore_state(state)

    def choose(self, choice: Choice) -> Self:
        """Return a recalibrator with the same front and another point of it.

        Parameters
        ----------
        choice : {"knee", "sharp", "calibrated"} or int
            As for the class.

        Returns
        -------
        ParetoRecalibrator
            A copy; this recalibrator does not change.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.choice, other.map_ = choice, self._chosen(choice)
        return other

    def measure(self, forecast: Any, y: Column) -> Front:
        """Return the front with the objectives of other rows, on which some points may be dominated.

        Parameters
        ----------
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Forecasts of rows that were not in the fit.
        y : column
            Their outcomes.

        Returns
        -------
        Front
            The same maps with other objectives.
        """
        check_is_fitted(self)
        objectives = _Objectives(*read_outcomes(y, forecast, "y"), None)
        points = tuple(objectives.measure(point.map) for point in self.front_)
        return Front(points, objectives.point(np.zeros(4)))


def _read_point(plain: dict[str, Any]) -> FrontPoint:
    numbers = {name: plain[name] for name in ("nll", "a_squared", "pvalue")}
    map_ = maps.from_dict(plain["map"])
    numeric = all(isinstance(value, float) for value in numbers.values())
    if len(plain) != 4 or not numeric or not isinstance(map_, SinhArcsinh):
        raise TypeError
    return FrontPoint(**numbers, map=map_)


def _map_from(theta: Floats) -> SinhArcsinh:
    """Return the map of location, ln scale, skewness and ln tails, each of which may be any number."""
    location, scale, skewness, tails = theta.tolist()
    return SinhArcsinh(location, math.exp(scale), skewness, math.exp(tails))


class _Objectives:
    """NLL and A^2 of rows as functions of the map. A rising map keeps the order of rows, so they are sorted once."""

    def __init__(self, y: Floats, forecast: Any, weight: Floats | None) -> None:
        base = -forecast.log_density(y)
        z = normal_scores(forecast, y)
        impossible = ~(np.isfinite(z) & np.isfinite(base))
        if impossible.any():
            row = int(np.argmax(impossible))
            raise InputError(
                f"y must lie in the support of its forecast; got {y[row]:.6g} outside (row {row}).",
                hint="Widen such forecasts first, for example with VarianceScaling.",
                row=row,
                value=float(y[row]),
            )
        order = np.argsort(z, kind="stable")
        self.z, self.weight = z[order], None if weight is None else weight[order]
        self.total = total_weight(y, weight)
        self.constant = float(np.average(base, weights=weight)) - 0.5 * float(np.average(z**2, weights=weight))
        self.place = (2 * np.arange(1, z.size + 1) - 1) / z.size

    def nll(self, theta: Floats) -> float:
        m = _map_from(theta)
        return float(self.constant + np.average(0.5 * m(self.z) ** 2 - m.log_slope(self.z), weights=self.weight))

    def a_squared(self, theta: Floats) -> float:
        from scipy.special import log_ndtr

        warped = _map_from(theta)(self.z)
        if self.weight is None:
            return float(-self.z.size - self.place @ (log_ndtr(warped) + log_ndtr(-warped[::-1])))
        # A value of weight w stands for the ranks between two sums of weights: the sum of 2 i - 1 over the ranks up to
        # i is i^2.
        upto = np.cumsum(self.weight)
        below, above = upto - self.weight, self.total - upto
        left, right = upto**2 - below**2, (above + self.weight) ** 2 - above**2
        return float(-self.total - (left @ log_ndtr(warped) + right @ log_ndtr(-warped)) / self.total)

    def point(self, theta: Floats) -> FrontPoint:
        a2 = self.a_squared(theta)
        return FrontPoint(self.nll(theta), a2, ad_pvalue(a2, max(1, round(self.total))), _map_from(theta))

    def measure(self, m: SinhArcsinh) -> FrontPoint:
        return self.point(np.array([m.location, math.log(m.scale), m.skewness, math.log(m.tails)]))


def _search(objectives: _Objectives, count: int) -> list[FrontPoint]:
    """Return the front: both ends, and between them the least A^2 at each bound of the NLL."""
    from scipy.optimize import minimize

    limits = [(-20.0, 20.0), (-6.0, 6.0), (-10.0, 10.0), (-2.5, 2.5)]
    # Start with a shift and a scale.
    z, weight = objectives.z, objectives.weight
    mean = np.average(z, weights=weight)
    spread = float(z.std()) if weight is None else math.sqrt(float(np.average((z - mean) ** 2, weights=weight)))
    start = np.clip(np.array([mean, math.log(max(spread, 1e-3)), 0.0, 0.0]), *np.array(limits).T)
    sharp = minimize(objectives.nll, start, method="L-BFGS-B", bounds=limits).x
    ends = [minimize(objectives.a_squared, theta, method="L-BFGS-B", bounds=limits).x for theta in (sharp, start)]
    calibrated = min(ends, key=objectives.a_squared)
    thetas = [sharp, calibrated]
    low, high = objectives.nll(sharp), objectives.nll(calibrated)
    for share in np.linspace(0, 1, count)[1:-1] if high > low else []:
        bound = low + share * (high - low)
        near = sharp + share * (calibrated - sharp)
        sharp_enough = {"type": "ineq", "fun": lambda theta, most=bound: most - objectives.nll(theta)}
        thetas.append(minimize(objectives.a_squared, near, method="SLSQP", bounds=limits, constraints=sharp_enough).x)
    points = sorted((objectives.point(theta) for theta in thetas), key=lambda point: (point.nll, point.a_squared))
    kept = not_dominated([p.nll for p in points], [p.a_squared for p in points])
    distinct: dict[tuple[float, float], FrontPoint] = {
        (point.nll, point.a_squared): point for point, good in zip(points, kept, strict=True) if good
    }
    return list(distinct.values())
