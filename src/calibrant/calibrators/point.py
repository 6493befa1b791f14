"""Recalibrators of predicted numbers: scikit-learn regressors that repair one column of predictions, and models.

Each learns a map from predictions to better ones, by rows that the model behind the predictions did not learn from, and
reports what that trades: squared error against bias.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'Recalibrators need scikit-learn: pip install "calibrant[sklearn]".', name="sklearn"
    ) from error
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.option_checks import check_count
from calibrant._support.typing import Column, Floats
from calibrant.calibrators.trade_off import Trade, trade_of
from calibrant.metrics import point as means
from calibrant.metrics.bins import Quantile
from calibrant.metrics.costs import Cost, LinearCost, check_cost
from calibrant.metrics.point_costs import best_shifts, cost_by_bin, paid_by_row
from calibrant.metrics.point_decomposition import isotonic_means
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, need_rows

__all__ = [
    "CostRecalibrator",
    "IsotonicRecalibrator",
    "LinearRecalibrator",
    "LocalRecalibrator",
    "RecalibratedModel",
]

Map = Callable[[Floats], Floats]

_MOST_KNOTS = 500
_LEAST_GAP = 2e-4  # of the range of predictions


class Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What models and maps of numbers share."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of what is predicted: 1 less the relative squared error."""
        return float(super().score(X, y, sample_weight))


class NumberMap(Regressor):
    """A recalibrator of one column of predictions; a kind of it says in `_learn` which map it learns.

    Attributes
    ----------
    map_ : callable
        What was learned: arrays of predictions to arrays of repaired ones.
    trade_ : Trade or None
        What it trades, by cross-validation; None without `cv`, for merged tables, for fewer rows than two a
        fold, and where a part of the rows is not enough to learn from.
    notes_ : tuple of Note
    """

    cv: int | None
    random_state: int
    map_: Map
    needs_rows: ClassVar[bool] = False

    def fit(self, X: Column | MeanTable, y: Column | None = None, sample_weight: Column | None = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : column of n predictions, of shape (n,) or (n, 1), or a MeanTable
            A table has outcomes and weights inside: give nothing else with it.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Their sum plays the number of rows: weight 2 equals two rows.
        """
        table = self._read(X, y, sample_weight)
        learned = self._learn(table.rows_by_weight())
        self.notes_: tuple[Note, ...] = table.notes
        try:
            self.trade_ = self._trade(table)
        except InputError as error:
            if table.has_rows and self.cv is not None and error.argument != "cv":
                self.trade_ = None
                text = f"No trade: a part of the rows is not enough to learn from ({error})"
                self.notes_ = join_notes(table.notes, [Note("no_trade", 1, text.replace("{", "(").replace("}", ")"))])
            else:
                raise
        self.map_, self.n_features_in_ = learned, 1
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> MeanTable:
        if isinstance(X, MeanTable):
            if y is not None or sample_weight is not None:
                raise InputError("A MeanTable was given, and y or sample_weight with it.", hint="A table has both.")
            table = X
        elif y is None:
            raise InputError(
                "This recalibrator requires y to be passed, but the target y is None.",
                hint="Pass predictions and outcomes, or one MeanTable.",
                argument="y",
            )
        else:
            read = [_columns.read(c, name, hint=ONE_COLUMN) for c, name in ((X, "X"), (y, "y"))]
            _columns.check_lengths(read)
            _columns.refuse_missing(read)
            table = MeanTable.from_arrays(y, X, sample_weight=sample_weight)
        if self.needs_rows:
            need_rows(table, type(self).__name__)
        return table

    def _learn(self, table: MeanTable) -> Map:
        raise NotImplementedError

    def _trade(self, table: MeanTable) -> Trade | None:
        if self.cv is None or not table.has_rows:
            return None
        whole = isinstance(self.cv, (int, np.integer)) and not isinstance(self.cv, bool)
        if not (whole and self.cv >= 2):
            raise InputError(
                f"cv must be None or a whole number of at least 2; it is {self.cv!r}.", argument="cv", value=self.cv
            )
        folds = int(self.cv)
        if len(table) < 2 * folds:
            return None
        return self._report(table, self._cross_fitted(table, folds), folds)

    def _report(self, table: MeanTable, repaired: Floats, folds: int) -> Trade:
        """What changed on rows that the maps behind `repaired` did not learn from."""
        return trade_of(table, repaired, folds)

    def _cross_fitted(self, table: MeanTable, folds: int) -> Floats:
        """Predictions of every row, repaired by a map that was learned from the other folds."""
        fold = np.random.default_rng(self.random_state).permutation(len(table)) % folds
        repaired = np.empty(len(table))
        for i in range(folds):
            held = fold == i
            repaired[held] = self._learn(table.part(~held))(table.prediction[held])
        return repaired

    def predict(self, X: Column) -> Floats:
        """The repaired predictions, in the order given."""
        check_is_fitted(self)
        column = _columns.finite(_columns.read(X, "X", hint=ONE_COLUMN))
        _columns.refuse_missing([column])
        return self.map_(column.values)

    def __call__(self, prediction: Column) -> Floats:
        """The same as `predict`."""
        return self.predict(prediction)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


@dataclass(frozen=True)
class Line:
    """intercept + slope x."""

    slope: float
    intercept: float

    def __call__(self, x: Floats) -> Floats:
        return self.intercept + self.slope * x


@dataclass(frozen=True, eq=False)
class Polyline:
    """Straight lines through points, level beyond the outermost."""

    x: Floats
    y: Floats

    def __call__(self, x: Floats) -> Floats:
        return np.interp(x, self.x, self.y)


class LinearRecalibrator(NumberMap):
    r"""A straight line from predictions to better ones: the recalibration of Bella et al.

    Parameters
    ----------
    against : {"prediction", "outcome"}
        "prediction" fits outcomes on predictions by least squares: afterwards there is no bias at any prediction, as
        far as a line can tell, and no line has a lower squared error. "outcome" fits predictions on outcomes and turns
        that line around: afterwards there is no bias at any outcome (high ones are not predicted too low, nor low ones
        too high), at the price of a higher squared error. This is the trade that the chapter describes.
    slope : bool, default=True
        False learns a shift alone.
    cv, random_state
        Folds for `trade_`, None for no trade; which row goes into which fold.

    Notes
    -----
    Where all predictions (or all outcomes) are equal only a shift can be learned, and is. With ``against="outcome"``
    predictions that do not rise with the outcome cannot be turned around, which is an error.

    Examples
    --------
    >>> cal = LinearRecalibrator(cv=None).fit([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])
    >>> cal.slope_, cal.intercept_, cal.predict([10.0])
    (2.0, 1.0, array([21.]))
    """

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

    def _learn(self, table: MeanTable) -> Line:
        if self.against not in ("prediction", "outcome"):
            raise InputError(
                f"against must be 'prediction' or 'outcome'; it is {self.against!r}.",
                argument="against",
                value=self.against,
            )
        slope = self._slope(table) if self.slope else 1.0
        return Line(slope, table.mean_outcome - slope * table.mean_prediction)

    def _slope(self, table: MeanTable) -> float:
        offset = table.prediction - table.mean_prediction
        together = table.average(offset * (table.mean - table.mean_outcome))
        if self.against == "prediction":
            return together / table.average(offset**2) if np.ptp(table.prediction) > 0 else 1.0
        outcomes = means.variance(table)
        if np.ptp(table.mean) == 0 and table.has_rows:
            return 1.0
        if together <= 0:
            raise InputError(
                "Predictions do not rise with the outcome: the line cannot be turned around.",
                hint="Use against='prediction'.",
                argument="X",
            )
        return outcomes / together  # predicted = a + b outcome with b = together / outcomes, turned around

    @property
    def slope_(self) -> float:
        """Slope of the line."""
        return self._line.slope

    @property
    def intercept_(self) -> float:
        """Intercept of the line."""
        return self._line.intercept

    @property
    def _line(self) -> Line:
        check_is_fitted(self)
        assert isinstance(self.map_, Line)
        return self.map_


class IsotonicRecalibrator(NumberMap):
    """The rising map of predictions that fits outcomes best (pool adjacent violators).

    Between two predictions that were seen it goes on a straight line, beyond the outermost it stays level; on rows that
    it learned from it never raises the squared error. The same as scikit-learn's `IsotonicRegression` with
    ``out_of_bounds="clip"``.

    Parameters
    ----------
    cv, random_state
        See `LinearRecalibrator`.

    Examples
    --------
    >>> cal = IsotonicRecalibrator(cv=None).fit([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 8.0])
    >>> cal.predict([2.0, 3.5, 9.0])
    array([2.5 , 5.25, 8.  ])
    """

    def __init__(self, *, cv: int | None = 5, random_state: int = 0) -> None:
        self.cv = cv
        self.random_state = random_state

    def _learn(self, table: MeanTable) -> Polyline:
        merged = table.merged()
        fitted = isotonic_means(merged)
        # The ends of every level piece say all.
        bend = np.concatenate([[True], fitted[1:] != fitted[:-1]])
        kept = bend | np.concatenate([bend[1:], [True]])
        return Polyline(merged.prediction[kept], fitted[kept])


@dataclass(frozen=True, eq=False)
class Spline:
    """A smooth curve within the predictions that were seen, its end tangents beyond them."""

    curve: Any
    low: float
    high: float
    slope: float
    height: float
    spread: float

    def __call__(self, x: Floats) -> Floats:
        unit = (x - self.low) / (self.high - self.low)
        inside = np.clip(unit, 0.0, 1.0)
        tangent = self.curve.derivative()(np.where(unit < 0, 0.0, 1.0))
        bent = self.curve(inside) + (unit - inside) * tangent
        found: Floats = self.height + self.slope * unit + self.spread * bent
        return found


class LocalRecalibrator(NumberMap):
    """A smooth curve from predictions to outcomes: for bias that is neither a line nor rising.

    Scipy's smoothing spline (`scipy.interpolate.make_smoothing_spline`), a natural cubic spline whose smoothness is
    chosen by generalised cross-validation or set. Predictions are first averaged in at most 500 groups of equal size,
    and neighbours within 1/5000 of their range are one. Beyond the predictions that were seen the curve goes on along
    its tangents.

    Parameters
    ----------
    smoothness : float, optional
        The spline's lambda, on predictions scaled to [0, 1]; larger is smoother. By default it is chosen.
    cv, random_state
        See `LinearRecalibrator`.

    Notes
    -----
    Needs at least five distinct predictions. As the chapter of Bella et al. says, this is less a calibration than a
    second model; mind `trade_`.

    Examples
    --------
    >>> x = np.arange(20) / 10
    >>> cal = LocalRecalibrator(cv=None).fit(x, x**2)
    >>> cal.predict([0.55, 1.0]).round(2)
    array([0.3, 1. ])
    """

    def __init__(self, *, smoothness: float | None = None, cv: int | None = 5, random_state: int = 0) -> None:
        self.smoothness = smoothness
        self.cv = cv
        self.random_state = random_state

    def _learn(self, table: MeanTable) -> Spline:
        from scipy.interpolate import make_smoothing_spline

        if self.smoothness is not None and not 0 <= self.smoothness < math.inf:
            raise InputError(
                f"smoothness must be a number of at least 0; it is {self.smoothness!r}.",
                argument="smoothness",
                value=self.smoothness,
            )
        x, y, weight = _apart(table.merged())
        if x.size < 5:
            raise InputError(
                f"LocalRecalibrator needs at least 5 distinct predictions; there are {x.size}.",
                hint="Use LinearRecalibrator or IsotonicRecalibrator.",
                argument="X",
            )
        low, high = float(x[0]), float(x[-1])
        unit = (x - low) / (high - low)
        # What a line explains costs the spline digits: it bends the rest, in units of its spread.
        slope, height = np.polyfit(unit, y, 1, w=np.sqrt(weight))
        left = y - height - slope * unit
        spread = float(np.abs(left).max()) or 1.0
        try:
            curve = make_smoothing_spline(unit, left / spread, w=weight / weight.mean(), lam=self.smoothness)
        except ValueError as error:
            raise InputError(
                f"No smooth curve can be computed through these predictions: {error}.",
                hint="Set smoothness, or use IsotonicRecalibrator.",
                argument="X",
            ) from error
        return Spline(curve, low, high, float(slope), float(height), spread)


def _apart(merged: MeanTable) -> tuple[Floats, Floats, Floats]:
    """Mean prediction, mean outcome and size of groups of neighbours: not too many, and none too near to the next.

    Where gaps differ by more than four orders of magnitude, a spline cannot be computed.
    """
    groups = Quantile(_MOST_KNOTS)(merged)
    p, y = merged.prediction, merged.mean
    least = _LEAST_GAP * float(p[-1] - p[0])
    knots: list[tuple[float, float, float]] = []
    columns = (groups.mean(lambda run: p[run]), groups.mean(lambda run: y[run]), groups.n)
    for x, outcome, n in zip(*(column.tolist() for column in columns), strict=True):
        if knots and x - knots[-1][0] < least:
            before = knots.pop()
            share = n / (n + before[2])
            knots.append(
                (before[0] + share * (x - before[0]), before[1] + share * (outcome - before[1]), n + before[2])
            )
        else:
            knots.append((x, outcome, n))
    found = np.array(knots).T
    return found[0], found[1], found[2]


@dataclass(frozen=True, eq=False)
class Shifts:
    """Adds to each prediction the shift of its bin: above one cut, up to and with the next."""

    cuts: Floats
    shift: Floats

    def __call__(self, x: Floats) -> Floats:
        found: Floats = x + self.shift[_kernels.locate(np.nextafter(self.cuts, np.inf), x)]
        return found


class CostRecalibrator(NumberMap):
    """Shifts predictions to where they cost least, if too high and too low cost differently.

    Cost-aware recalibration (Yang and Bi, 2025) of a number. In each bin of the prediction one shift: for linear costs
    a quantile of the errors, so that predictions become quantiles of the outcome on purpose. In sample it never costs
    more than doing nothing. Biased afterwards, as costs want it: see `trade_` and `cost_`.

    Parameters
    ----------
    cost : cost object, default=LinearCost(over=1, under=1)
        See `calibrant.regression.cost_by_bin`.
    n_bins : int, optional
        Bins of equal size; by default one for every 200 rows, at most 10.
    cv, random_state
        See `LinearRecalibrator`.

    Attributes
    ----------
    cost_ : dict
        Mean cost of a row ``before`` and ``after``, by cross-validation; or None as for `trade_`.

    Examples
    --------
    >>> from calibrant import LinearCost
    >>> cal = CostRecalibrator(LinearCost(over=1, under=3), cv=None)
    >>> cal.fit([5.0, 5.0, 5.0, 5.0], [4.0, 5.0, 6.0, 7.0]).predict([5.0])
    array([6.])
    """

    needs_rows: ClassVar[bool] = True

    def __init__(
        self,
        cost: Cost = LinearCost(over=1, under=1),  # noqa: B008  (frozen)
        *,
        n_bins: int | None = None,
        cv: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.cost = cost
        self.n_bins = n_bins
        self.cv = cv
        self.random_state = random_state

    def _learn(self, table: MeanTable) -> Shifts:
        check_cost(self.cost)
        count = (
            int(np.clip(table.effective_size // 200, 1, 10))
            if self.n_bins is None
            else check_count("n_bins", self.n_bins)
        )
        groups = Quantile(count)(table)
        shift, labels = best_shifts(groups, self.cost), groups.labels
        paid, then = (
            paid_by_row(self.cost, p, table.mean) for p in (table.prediction, table.prediction + shift[labels])
        )
        saves = groups.weighted(lambda run: then[run] - paid[run]) < 0
        return Shifts(groups.upper[:-1], np.where(saves, shift, 0.0))

    def _trade(self, table: MeanTable) -> Trade | None:
        self.cost_: dict[str, float] | None = None
        return super()._trade(table)

    def _report(self, table: MeanTable, repaired: Floats, folds: int) -> Trade:
        read = {"before": table, "after": table.map(lambda _: repaired)}
        self.cost_ = {name: cost_by_bin.of_table(each, cost=self.cost, n_bins=1).value for name, each in read.items()}
        return super()._report(table, repaired, folds)


class RecalibratedModel(MetaEstimatorMixin, Regressor):  # type: ignore[misc]
    """A regressor and a recalibrator of what it predicts, fitted together on the same rows without cheating.

    The recalibrator learns from out-of-fold predictions: every row is predicted by a copy of the regressor that did not
    learn from it. The regressor used in the end learns from all rows.

    Parameters
    ----------
    estimator : regressor
        One that is already fitted goes into ``sklearn.frozen.FrozenEstimator``: then all rows given to `fit` serve the
        recalibrator, and must be new to it.
    recalibrator : recalibrator of numbers, default=LinearRecalibrator()
    cv : int, splitter or iterable, default=5
        Folds that test every row once.
    n_jobs : int, optional

    Attributes
    ----------
    estimator_, recalibrator_
        Both fitted. ``recalibrator_.trade_`` says what was traded.
    table_ : MeanTable
        The out-of-fold predictions before repair, for the measures of this module.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = RecalibratedModel(RandomForestRegressor(20, random_state=0)).fit(X, y)
    >>> bool(model.recalibrator_.slope_ > 1)  # forests shrink towards the mean
    True
    """

    def __init__(
        self, estimator: Any, recalibrator: NumberMap | None = None, *, cv: Any = 5, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit regressor and recalibrator; weights go to both, to the regressor if it takes them."""
        if y is None:
            raise InputError("RecalibratedModel requires y to be passed, but the target y is None.", argument="y")
        recalibrator = LinearRecalibrator() if self.recalibrator is None else self.recalibrator
        if not isinstance(recalibrator, NumberMap):
            raise InputError(
                f"recalibrator must be one of calibrant.regression's for numbers; it is {recalibrator!r}.",
                argument="recalibrator",
                value=recalibrator,
            )
        y = column_or_1d(y, warn=True)
        if np.iscomplexobj(y):
            raise InputError("Complex data not supported: y must hold real numbers.", argument="y")
        column = _columns.finite(_columns.read(y, "y", hint=ONE_COLUMN))
        _columns.refuse_missing([column])
        weight = None if sample_weight is None else _columns.read_weights(sample_weight, column)
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_ = self.estimator
            predicted = self.estimator.predict(X)
        else:
            takes = weight is not None and has_fit_parameter(self.estimator, "sample_weight")
            params = {"sample_weight": weight} if takes else {}
            predicted = cross_val_predict(
                self.estimator, X, column.values, cv=self.cv, n_jobs=self.n_jobs, params=params or None
            )
            self.estimator_ = clone(self.estimator).fit(X, column.values, **params)
        self.table_ = MeanTable.from_arrays(column.values, predicted, sample_weight=weight)
        self.recalibrator_ = clone(recalibrator).fit(self.table_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any) -> Floats:
        """Repaired predictions."""
        check_is_fitted(self)
        repaired: Floats = self.recalibrator_.predict(self.estimator_.predict(X))
        return repaired

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags
