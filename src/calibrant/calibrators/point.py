"""Recalibrators of point predictions, and `TradeOff`: how they change squared error and bias.

Each is a scikit-learn regressor with one column of predictions as input. Fit them on rows that the model of the
predictions was not fitted on. Each reports the change of squared error and bias by cross-validation.
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import (
    Argument,
    InputError,
    Note,
    check_count,
    check_option,
    is_number,
    join_notes,
    wrong_value,
)
from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import number
from calibrant._support.random_streams import seed_sequence
from calibrant.calibrators import maps
from calibrant.calibrators.calibrator import Calibrator, need_target, refuse_beside_table
from calibrant.inference.estimates import from_influence
from calibrant.inference.regression.bias_by_bin import bias_by_bin
from calibrant.metrics import point
from calibrant.metrics.bins import EqualSize
from calibrant.metrics.costs import Cost, LinearCost, check_cost
from calibrant.metrics.point import ErrorTolerance, isotonic_means
from calibrant.metrics.point_costs import best_shifts, cost_by_bin, paid_by_row
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, need_rows

_MOST_KNOTS = 500
_LEAST_GAP = 2e-4  # of the range of predictions


@dataclass(frozen=True)
class TradeOff:
    """Squared error against bias, before and after recalibration, by cross-validation.

    Attributes
    ----------
    before, after : dict of float
        mse, relative_mse, mae, error_tolerance (90 % of absolute errors are at most that), mean_error,
        bias_by_prediction and bias_by_outcome: mean absolute bias over ten bins of the prediction, and of the outcome.
    mse_change : Estimate
        Squared error after less before, with interval and p-value; paired on the same rows.
    rows : int
    folds : int
        Each fold is recalibrated by a map that is fitted on the other folds.

    See Also
    --------
    PointMap

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import LinearRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.normal(size=300)
    >>> trade_off = LinearRecalibrator(cv=5).fit(p, 2 * p + rng.normal(size=300)).trade_off_
    >>> trade_off.after["mse"] < trade_off.before["mse"], trade_off.mse_change.pvalue < 0.001
    (True, True)
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    mse_change: Estimate
    rows: int
    folds: int

    def _cells(self) -> list[list[str]]:
        rows = [["", "before", "after"]]
        for name, value in self.before.items():
            rows.append([name.replace("_", " "), f"{value:.5g}", f"{self.after[name]:.5g}"])
        return rows

    def _summary(self) -> str:
        c = self.mse_change
        return (
            f"{self.rows:,} rows, {self.folds}-fold cross-validation: the squared error changes by {c.value:.4g} "
            f"({100 * c.level:g} % CI {c.low:.4g} to {c.high:.4g})"
        )

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *text_table(self._cells(), left=(0,))])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self._cells(), left=(0,))}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            "before": {k: v for name, value in self.before.items() for k, v in number(name, value).items()},
            "after": {k: v for name, value in self.after.items() for k, v in number(name, value).items()},
            "mse_change": self.mse_change.to_dict(),
            "rows": self.rows,
            "folds": self.folds,
        }


def cross_validated_trade_off(table: MeanTable, recalibrated: Floats, folds: int) -> TradeOff:
    """Return the trade-off of a table of rows, given the cross-validated prediction of each row."""
    after = table.map(lambda _: recalibrated)
    change = (recalibrated - table.mean) ** 2 - (table.prediction - table.mean) ** 2
    mean = table.average(change)
    estimate = from_influence("change of mse", mean, change - mean, table, null=0.0)
    return TradeOff(_measure(table), _measure(after), estimate, round(table.effective_size), folds)


def _measure(table: MeanTable) -> dict[str, float]:
    by_outcome = MeanTable(table.mean, table.n, table.prediction, table.m2, table.w2, single=table.single)
    spread, squared = point.variance(table), point.MSE().value(table)
    return {
        "mse": squared,
        "relative_mse": squared / spread if spread > 0 else math.nan,
        "mae": point.MAE().value(table),
        "error_tolerance": ErrorTolerance().value(table),
        "mean_error": point.MeanError().value(table),
        "bias_by_prediction": bias_by_bin(table).mean_absolute,
        "bias_by_outcome": bias_by_bin(by_outcome).mean_absolute,
    }


class PointMap(RegressorMixin, Calibrator):  # type: ignore[misc]
    """A recalibrator of one column of point predictions; a subclass fits its map in `_fit_table`.

    Any finite prediction is taken. Beyond the predictions of the fit the map goes on as its class documents.

    Attributes
    ----------
    map_ : a map of `calibrant.calibrators.maps`
        The fitted map: all that `calibrant.save`, `to_sql` and `to_onnx` need.
    trade_off_ : TradeOff or None
        Squared error against bias, by cross-validation. None without `cv`, for merged tables, for fewer rows than two
        per fold, where a fold cannot be fitted, and after `calibrant.load`.
    notes_ : tuple of Note
        Notes about the rows of the fit.

    See Also
    --------
    ScoreMap, LinearRecalibrator

    Examples
    --------
    >>> from calibrant.regression import LinearRecalibrator
    >>> recalibrator = LinearRecalibrator(cv=None).fit([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])
    >>> isinstance(recalibrator, PointMap), recalibrator([10.0])
    (True, array([21.]))
    """

    kind: ClassVar[str] = "point"
    column_names: ClassVar[tuple[str, str]] = ("prediction", "recalibrated")
    needs_rows: ClassVar[bool] = False  # whether a merged table is refused
    cross_validated: ClassVar[tuple[str, ...]] = ("trade_off_",)  # results that files do not hold

    cv: int | None
    random_state: int
    trade_off_: TradeOff | None

    def fit(self, X: Column | MeanTable, y: Column | None = None, sample_weight: Column | None = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : column of n predictions, of shape (n,) or (n, 1), or a MeanTable
            A table holds outcomes and weights: give neither with it.
        y : column of n outcomes
        sample_weight : column of n weights, optional
            Their sum is used as the number of rows: weight 2 equals two rows.

        Returns
        -------
        self
        """
        table = self._read(X, y, sample_weight)
        map_ = self._fit_table(table.rows_by_weight())
        self.notes_ = table.notes
        self.trade_off_ = self._cross_validate(table)
        self.map_ = map_
        self.n_features_in_: int = 1
        return self

    def _fit_table(self, table: MeanTable) -> maps.Map:
        raise NotImplementedError

    def restore_state(self, state: dict[str, Any]) -> None:
        super().restore_state(state)
        self.n_features_in_ = 1
        for name in self.cross_validated:
            setattr(self, name, None)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> MeanTable:
        if isinstance(X, MeanTable):
            refuse_beside_table(X, y, sample_weight)
            table = X
        else:
            need_target(y, "This recalibrator", "Pass predictions and outcomes, or one MeanTable.")
            columns = [_columns.read(column, name, hint=ONE_COLUMN) for column, name in ((X, "X"), (y, "y"))]
            _columns.check_lengths(columns)
            _columns.refuse_missing(columns)
            table = MeanTable.from_arrays(y, X, sample_weight=sample_weight)
        if self.needs_rows:
            need_rows(table, type(self).__name__)
        return table

    def _cross_validate(self, table: MeanTable) -> TradeOff | None:
        """Return the trade-off on rows that are recalibrated by maps of other rows; None where it does not exist."""
        if self.cv is None or not table.has_rows:
            return None
        whole = isinstance(self.cv, (int, np.integer)) and not isinstance(self.cv, bool)
        if not (whole and self.cv >= 2):
            raise wrong_value("cv", "must be None or a whole number of at least 2", self.cv)
        folds = int(self.cv)
        if len(table) < 2 * folds:
            return None
        try:
            recalibrated = self._cross_fit(table, folds)
        except InputError as error:
            text = f"There is no trade-off, because a fold cannot be fitted: {error}"
            note = Note("no_trade_off", 1, text.replace("{", "(").replace("}", ")"))
            self.notes_ = join_notes(table.notes, [note])
            return None
        return self._report(table, recalibrated, folds)

    def _cross_fit(self, table: MeanTable, folds: int) -> Floats:
        """Return the prediction of each row by a map that is fitted on the other folds."""
        state = self.random_state
        rng = state if isinstance(state, np.random.Generator) else np.random.default_rng(seed_sequence(state))
        fold = rng.permutation(len(table)) % folds
        recalibrated = np.empty(len(table))
        for i in range(folds):
            held_out = fold == i
            recalibrated[held_out] = self._fit_table(table.part(~held_out))(table.prediction[held_out])
        return recalibrated

    def _report(self, table: MeanTable, recalibrated: Floats, folds: int) -> TradeOff:
        return cross_validated_trade_off(table, recalibrated, folds)

    def predict(self, X: Column) -> Floats:
        """Return the recalibrated predictions, in the order given.

        Parameters
        ----------
        X : column of n predictions
            Predictions before recalibration, finite and none missing.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        column = _columns.finite(_columns.read(X, "X", hint=ONE_COLUMN))
        _columns.refuse_missing([column])
        return np.asarray(self.map_(column.values))

    def __call__(self, prediction: Column) -> Floats:
        """Return the same as `predict`.

        Parameters
        ----------
        prediction : column of n predictions
            Predictions before recalibration, finite and none missing.

        Returns
        -------
        array of shape (n,)
        """
        return self.predict(prediction)


@dataclass(eq=False, repr=False, kw_only=True)
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

    against: Literal["prediction", "outcome"] = "prediction"
    slope: bool = True
    cv: int | None = 5
    random_state: int = 0

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
        outcomes = point.variance(table)
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


@dataclass(eq=False, repr=False, kw_only=True)
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

    cv: int | None = 5
    random_state: int = 0

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.domain == "real" and map_.beyond == "level")

    def _fit_table(self, table: MeanTable) -> maps.Segments:
        merged = table.merged()
        fitted = isotonic_means(merged)
        # The ends of each level piece determine the map.
        bend = np.concatenate([[True], fitted[1:] != fitted[:-1]])
        kept = bend | np.concatenate([bend[1:], [True]])
        return maps.Segments(merged.prediction[kept], fitted[kept])


@dataclass(eq=False, repr=False, kw_only=True)
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

    smoothness: float | None = None
    cv: int | None = 5
    random_state: int = 0

    def _fit_table(self, table: MeanTable) -> maps.Cubic:
        if self.smoothness is not None and not (is_number(self.smoothness) and 0 <= self.smoothness < math.inf):
            raise wrong_value("smoothness", "must be a number of at least 0", self.smoothness)
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
    partition = EqualSize(_MOST_KNOTS)(merged)
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
    x_mean, y_mean, size = np.array(knots).T
    return x_mean, y_mean, size


@dataclass(eq=False, repr=False)
class CostRecalibrator(PointMap):
    """Shifts predictions to the values of least cost, where over- and underestimates cost differently.

    Cost-aware recalibration (Yang and Bi, 2025) of point predictions: one shift per bin of the prediction. For linear
    costs the shift is a quantile of the errors, so the predictions become quantiles of the outcome. In sample the cost
    never rises. The result is biased on purpose: see `trade_off_` and `cost_`.

    Parameters
    ----------
    cost : cost object, default=LinearCost(over=1, under=1)
        See `calibrant.regression.cost_by_bin`.
    n_bins : int, optional
        Number of bins of equal size; by default one per 200 rows, at most 10.
    cv, random_state
        See `LinearRecalibrator`.

    Attributes
    ----------
    cost_ : dict or None
        Mean cost per row ``before`` and ``after``, by cross-validation; None where `trade_off_` is None.

    See Also
    --------
    cost_by_bin, LinearCost

    Notes
    -----
    The shifts of the first and the last bin hold for all predictions below and above.

    Examples
    --------
    >>> from calibrant.metrics.costs import LinearCost
    >>> cal = CostRecalibrator(LinearCost(over=1, under=3), cv=None)
    >>> cal.fit([5.0, 5.0, 5.0, 5.0], [4.0, 5.0, 6.0, 7.0]).predict([5.0])
    array([6.])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("shifts",)
    needs_rows: ClassVar[bool] = True
    cross_validated: ClassVar[tuple[str, ...]] = ("trade_off_", "cost_")

    cost: Cost = LinearCost(over=1, under=1)  # noqa: RUF009  (frozen)
    _: KW_ONLY
    n_bins: int | None = None
    cv: int | None = 5
    random_state: int = 0

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.shifts.size <= (10 if self.n_bins is None else self.n_bins))

    def _fit_table(self, table: MeanTable) -> maps.Shifts:
        check_cost(self.cost)
        if self.n_bins is None:
            n_bins = int(np.clip(table.effective_size // 200, 1, 10))
        else:
            n_bins = check_count("n_bins", self.n_bins)
        partition = EqualSize(n_bins)(table)
        shift = best_shifts(partition, self.cost)
        paid, then = (
            paid_by_row(self.cost, p, table.mean)
            for p in (table.prediction, table.prediction + shift[partition.labels])
        )
        saves = partition.weighted(lambda run: then[run] - paid[run]) < 0
        # A bin includes its last prediction; the next bin begins with the next double.
        return maps.Shifts(np.nextafter(partition.upper[:-1], np.inf), np.where(saves, shift, 0.0))

    def _cross_validate(self, table: MeanTable) -> TradeOff | None:
        self.cost_: dict[str, float] | None = None
        return super()._cross_validate(table)

    def _report(self, table: MeanTable, recalibrated: Floats, folds: int) -> TradeOff:
        tables = {"before": table, "after": table.map(lambda _: recalibrated)}
        self.cost_ = {name: cost_by_bin(rows, cost=self.cost, n_bins=1).value for name, rows in tables.items()}
        return super()._report(table, recalibrated, folds)
