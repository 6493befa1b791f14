"""Metrics of point predictions: mean error, ratio, squared, absolute and pinball error. The RD kind of calibration.

Point predictions are calibrated if the mean outcome of the rows with one prediction equals that prediction. All
functions take ``(y_true, y_pred)`` or one `MeanTable`.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Unpack

import numpy as np

from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, Note, check_option, check_share, is_number
from calibrant._support.formatting import line_html, short_repr
from calibrant._support.plain_data import plain
from calibrant.metrics.metric import Direction, MetricFunction, MetricValue, UnbinnedMetric, metric_function
from calibrant.tables.mean_table import MeanTable, need_rows, read_mean_table
from calibrant.tables.rows import TableReader, WeightOptions


@dataclass(frozen=True)
class PointMetric(UnbinnedMetric):
    """A metric of point predictions, computed from a `MeanTable`; see `calibrant.metrics.Metric`.

    It has no null distribution: a point prediction does not state the distribution of the outcome.

    See Also
    --------
    Metric, DistributionMetric, MSE

    Examples
    --------
    >>> from calibrant.regression import MSE
    >>> isinstance(MSE(), PointMetric), MSE()([1.0, 2.0], [1.5, 2.0]).value
    (True, 0.125)
    """

    kind: ClassVar[str] = "point"
    reader: ClassVar[TableReader[Any]] = read_mean_table
    unit: ClassVar[str] = "y"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    has_null: ClassVar[bool] = False
    null_hint: ClassVar[str] = (
        "Point predictions do not state the distribution of the outcome, so none can be simulated. Use "
        "calibrant.interval, or calibrant.evaluate for tests of the mean."
    )

    def __call__(  # type: ignore[override]  # the prediction has the name that it has in scikit-learn
        self, y_true: MeanTable | Column, y_pred: Column | None = None, **rows: Unpack[WeightOptions]
    ) -> MetricValue:
        """Measure a table, or rows of outcomes and predictions with the options of `MeanTable.from_arrays`.

        Parameters
        ----------
        y_true, y_pred : columns, or one MeanTable instead of both
        **rows
            Options of `MeanTable.from_arrays`: ``sample_weight``, ``frequency``, ``missing``.

        Returns
        -------
        MetricValue
            ``float(result)`` is the value.
        """
        return self.measured(read_mean_table(y_true, y_pred, rows))


@dataclass(frozen=True)
class MeanError(PointMetric):
    """Mean error, E(y_pred - y).

    Above 0 the predictions overestimate on average; it is 0 for a calibrated model.

    See Also
    --------
    mean_error, Ratio

    Examples
    --------
    >>> mean_error([1.0, 2.0, 6.0], [2.0, 3.0, 7.0])
    1.0
    """

    name: ClassVar[str] = "mean error"
    direction: ClassVar[Direction] = 0.0
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def value(self, table: MeanTable) -> float:
        return table.average(table.prediction - table.mean)


@dataclass(frozen=True)
class Ratio(PointMetric):
    """Ratio of the means, E(y_pred) / E(y).

    Above 1 the predictions overestimate in total; it is 1 for a calibrated model. The mean outcome must not be 0. For
    outcomes that can be negative use `mean_error`.

    See Also
    --------
    ratio, MeanError

    Examples
    --------
    >>> ratio([1.0, 2.0, 6.0], [2.0, 3.0, 7.0])
    1.3333333333333333
    """

    name: ClassVar[str] = "ratio"
    unit: ClassVar[str] = "1"
    direction: ClassVar[Direction] = 1.0
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def value(self, table: MeanTable) -> float:
        outcome = table.mean_outcome
        if outcome == 0:
            raise InputError(
                "The mean of y_true must not be 0; got 0.", hint="Use mean_error.", argument="y_true", value=0.0
            )
        return table.mean_prediction / outcome


@dataclass(frozen=True)
class MeanQuotient(PointMetric):
    """Mean quotient, E(y_pred / y), of Bella et al.

    Near 1 for accurate predictions of outcomes far from 0. Unlike `ratio` it exceeds 1 for many calibrated models,
    because small outcomes have large quotients. Rows with outcome 0 have no quotient.

    Parameters
    ----------
    zeros : {"raise", "drop"}
        Whether rows with outcome 0 are an error, or are dropped and counted in a note.

    See Also
    --------
    mean_quotient, MeanError

    Examples
    --------
    >>> mean_quotient([1.0, 2.0, 4.0], [2.0, 3.0, 5.0])
    1.5833333333333333
    """

    zeros: Literal["raise", "drop"] = "raise"

    name: ClassVar[str] = "mean quotient"
    unit: ClassVar[str] = "1"
    direction: ClassVar[Direction] = 1.0
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        check_option("zeros", self.zeros, ("raise", "drop"))

    def measured(self, table: MeanTable) -> MetricValue:
        """Return the value of a table; the notes count the rows dropped.

        Parameters
        ----------
        table : ScoreTable, MeanTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        MetricValue
        """
        kept, quotients, lost = self._quotients(table)
        return MetricValue(kept.average(quotients), self, table, table.notes + lost)

    def value(self, table: MeanTable) -> float:
        kept, quotients, _ = self._quotients(table)
        return kept.average(quotients)

    def _quotients(self, table: MeanTable) -> tuple[MeanTable, Floats, tuple[Note, ...]]:
        """Return the rows that have a quotient, the quotients, and a note with the number of rows dropped."""
        need_rows(table, "mean_quotient")
        good = table.mean != 0
        if good.all():
            return table, table.prediction / table.mean, ()
        if self.zeros == "raise" or not good.any():
            row = int(np.argmin(good))
            hint = "Pass zeros='drop' to drop such rows, or use ratio." if self.zeros == "raise" else "Use mean_error."
            raise InputError(
                f"y_true must not be 0 in a quotient; got 0 in {np.count_nonzero(~good):,} rows (the first is row "
                f"{row}).",
                hint=hint,
                row=row,
                value=0.0,
            )
        kept = table.part(good)
        lost = round(table.size - kept.size) if not table.importance else int(np.count_nonzero(~good))
        note = Note("zero_outcome", lost, "Rows dropped because their outcome is 0, which has no quotient: {count}.")
        return kept, kept.prediction / kept.mean, (note,)


@dataclass(frozen=True)
class MSE(PointMetric):
    """Mean squared error, E((y_pred - y)^2).

    See Also
    --------
    mse, RMSE

    Examples
    --------
    >>> mse([1.0, 2.0, 6.0], [2.0, 3.0, 9.0])
    3.6666666666666665
    """

    name: ClassVar[str] = "MSE"
    unit: ClassVar[str] = "y^2"

    def value(self, table: MeanTable) -> float:
        return table.average((table.prediction - table.mean) ** 2) + within_variance(table)


@dataclass(frozen=True)
class RMSE(PointMetric):
    """Root mean squared error, the root of E((y_pred - y)^2), in the unit of the outcome.

    See Also
    --------
    rmse, MSE

    Examples
    --------
    >>> rmse([1.0, 2.0, 6.0], [2.0, 4.0, 8.0])
    1.7320508075688772
    """

    name: ClassVar[str] = "RMSE"

    def value(self, table: MeanTable) -> float:
        return math.sqrt(MSE().value(table))


@dataclass(frozen=True)
class MAE(PointMetric):
    """Mean absolute error, E|y_pred - y|; not defined for merged tables.

    See Also
    --------
    mae, MSE

    Examples
    --------
    >>> mae([1.0, 2.0, 6.0], [2.0, 3.0, 9.0])
    1.6666666666666667
    """

    name: ClassVar[str] = "MAE"

    def value(self, table: MeanTable) -> float:
        need_rows(table, "mae")
        return table.average(np.abs(table.prediction - table.mean))


@dataclass(frozen=True)
class RelativeMSE(PointMetric):
    r"""Relative mean squared error: squared error over the variance of the outcomes, 1 - R^2.

    .. math::

       \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}

    0 is best; above 1 the mean outcome predicts better. Outcomes must not all be equal. (The chapter of Bella et al.
    prints a denominator without a square and without a sum.)

    See Also
    --------
    relative_mse, MSE

    Examples
    --------
    >>> round(relative_mse([1.0, 2.0, 6.0], [2.0, 3.0, 9.0]), 4)
    0.7857
    """

    name: ClassVar[str] = "relative MSE"
    unit: ClassVar[str] = "1"

    def value(self, table: MeanTable) -> float:
        spread = variance(table)
        if spread == 0:
            raise InputError("y_true must hold different outcomes; all are equal.", hint="Use mse.")
        return MSE().value(table) / spread


@dataclass(frozen=True)
class Pinball(PointMetric):
    """Mean pinball loss of predicted quantiles: level (y - q) where y > q, (1 - level) (q - y) elsewhere.

    Parameters
    ----------
    level : float, default=0.5
        Level of the predicted quantiles; 0.5 for medians, whose loss is half of the absolute error.

    See Also
    --------
    pinball, CRPS

    Examples
    --------
    >>> pinball([10.0, 24.0], [12.0, 20.0], level=0.75)
    1.75
    """

    level: float = 0.5

    name: ClassVar[str] = "pinball"

    def __post_init__(self) -> None:
        check_share("level", self.level)

    def value(self, table: MeanTable) -> float:
        need_rows(table, "pinball")
        away = table.mean - table.prediction
        return table.average(np.maximum(self.level * away, (self.level - 1) * away))


mean_error: MetricFunction = metric_function(MeanError)
ratio: MetricFunction = metric_function(Ratio)
mean_quotient: MetricFunction = metric_function(MeanQuotient)
mse: MetricFunction = metric_function(MSE)
rmse: MetricFunction = metric_function(RMSE)
mae: MetricFunction = metric_function(MAE)
relative_mse: MetricFunction = metric_function(RelativeMSE)
pinball: MetricFunction = metric_function(Pinball)


def variance(table: MeanTable) -> float:
    """Return the variance of the outcomes: the sum of squares divided by the number of rows."""
    return table.average((table.mean - table.mean_outcome) ** 2) + within_variance(table)


def within_variance(table: MeanTable) -> float:
    """Return the part of the variance that lies within the entries of a merged table."""
    return float(table.m2.sum() / table.size) if not table.single else 0.0


@dataclass(frozen=True)
class MSEDecomposition:
    """Miscalibration, discrimination and uncertainty: mse = mcb - dsc + unc.

    `bias` and `slope` are the parts of mcb that a shift, and then a straight line, would remove.

    Attributes
    ----------
    mcb, dsc, unc : float
        Miscalibration, discrimination and uncertainty.
    bias, slope : float
        Parts of mcb.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    mse_decomposition

    Examples
    --------
    >>> from calibrant.regression import mse_decomposition
    >>> parts = mse_decomposition([1.0, 2.0, 6.0, 7.0], [2.0, 3.0, 9.0, 8.0])
    >>> parts.mcb - parts.dsc + parts.unc, parts.bias
    (3.0, 2.25)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    mcb: float
    dsc: float
    unc: float
    bias: float
    slope: float
    notes: tuple[Note, ...] = ()

    @property
    def mse(self) -> float:
        """mcb - dsc + unc."""
        return self.mcb - self.dsc + self.unc

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), "mse": self.mse}


def mse_decomposition(
    y_true: MeanTable | Column, y_pred: Column | None = None, **rows: Unpack[WeightOptions]
) -> MSEDecomposition:
    r"""CORP decomposition of the squared error, by isotonic recalibration: mse = mcb - dsc + unc.

    mcb is the reduction of the squared error by the best rising map of the predictions (0 is best), dsc the further
    reduction against the mean outcome (higher is better), unc the variance of the outcomes. A shift would remove
    :math:`(E \hat y - E y)^2` of mcb (`bias`), and a rising line :math:`\mathrm{Var}(\hat y)(1 - b)^2` (`slope`), with
    b the slope of the regression of outcomes on predictions; where b < 0 the line is level.

    Parameters
    ----------
    y_true, y_pred : columns
        Outcomes and predictions; or one `MeanTable` instead of both.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    MSEDecomposition
        The terms.

    See Also
    --------
    CorpDecomposition, murphy_decomposition, mcb, brier

    Examples
    --------
    >>> parts = mse_decomposition([1.0, 2.0, 6.0, 7.0], [2.0, 3.0, 9.0, 8.0])
    >>> parts.mcb, parts.dsc, parts.unc, parts.mse
    (2.875, 6.375, 6.5, 3.0)
    """
    table = read_mean_table(y_true, y_pred, rows)
    merged = table.merged()
    fitted = isotonic_means(merged)
    error = MSE().value(merged)
    best = merged.average((fitted - merged.mean) ** 2) + within_variance(merged)
    unc = variance(merged)
    bias = MeanError().value(merged)
    offset = merged.prediction - merged.mean_prediction
    spread = merged.average(offset**2)
    together = merged.average(offset * (merged.mean - merged.mean_outcome))
    # Among rising lines: from slope 1 to the best slope, or to 0 where the best slope is negative.
    saved = spread * (1 - together / spread) ** 2 if together > 0 and spread > 0 else spread - 2 * together
    return MSEDecomposition(error - best, unc - best, unc, bias**2, saved, table.notes)


corp_decomposition = mse_decomposition  # the name of the same decomposition for probabilities


def isotonic_means(merged: MeanTable) -> Floats:
    """Return the isotonic regression of the outcomes at each entry of a merged table."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(merged.mean, weights=merged.n.astype(np.float64)).x)


def _check_share(share: float) -> None:
    if not (is_number(share) and 0 < share <= 1):
        raise InputError(f"share must lie in (0, 1]; got {share!r}.", value=share)


@dataclass(frozen=True, eq=False)
class RECCurve:
    """Regression error characteristic; see `rec_curve`.

    Attributes
    ----------
    tolerance, accuracy : ndarray
        Each error that occurs, and the share of rows with at most that error.
    area_over : float
        Area over the curve: the mean error.
    loss : str
        absolute or squared.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    rec_curve

    Examples
    --------
    >>> from calibrant.regression import rec_curve
    >>> curve = rec_curve([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0])
    >>> curve.at(2), curve.needed(0.9), curve.area_over
    (0.75, 3.0, 1.25)
    """

    tolerance: Floats
    accuracy: Floats
    area_over: float
    loss: str
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        points = {"tolerance": self.tolerance.tolist(), "accuracy": self.accuracy.tolist()}
        return {**plain(self), **points}

    def at(self, tolerance: float) -> float:
        """Return the share of rows whose error is at most the tolerance.

        Parameters
        ----------
        tolerance : float
            Absolute or squared error, as the curve has it.

        Returns
        -------
        float
            In [0, 1].
        """
        place = int(np.searchsorted(self.tolerance, tolerance, side="right"))
        return float(self.accuracy[place - 1]) if place else 0.0

    def needed(self, share: float) -> float:
        """Return the least tolerance that covers this share of the rows.

        Parameters
        ----------
        share : float
            Share of the rows, in (0, 1].

        Returns
        -------
        float
            An error that occurs.
        """
        _check_share(share)
        place = int(np.searchsorted(self.accuracy, share * (1 - 1e-12)))
        return float(self.tolerance[min(place, self.tolerance.size - 1)])


def rec_curve(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    loss: Literal["absolute", "squared"] = "absolute",
    **rows: Unpack[WeightOptions],
) -> RECCurve:
    """Regression error characteristic: for each tolerance the share of rows whose error is at most that.

    The counterpart of the ROC curve (Bi and Bennett, 2003). The area over the curve is the mean error: MAE, or MSE
    with squared errors. The curve has one point for each error that occurs.

    Parameters
    ----------
    y_true, y_pred : columns
        Outcomes and predictions; or one `MeanTable` instead of both.
    loss : {"absolute", "squared"}, default="absolute"
        Error of a row.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    RECCurve
        Tolerances and shares of rows.

    See Also
    --------
    RECCurve, RECDisplay, error_tolerance

    Examples
    --------
    >>> curve = rec_curve([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0])
    >>> curve.tolerance, curve.accuracy, curve.area_over
    (array([0., 1., 3.]), array([0.25, 0.75, 1.  ]), 1.25)
    >>> curve.at(2), curve.needed(0.9)
    (0.75, 3.0)
    """
    table = read_mean_table(y_true, y_pred, rows)
    check_option("loss", loss, ("absolute", "squared"))
    need_rows(table, "rec_curve")
    error = np.abs(table.prediction - table.mean)
    error = error if loss == "absolute" else error**2
    tolerance, place = np.unique(error, return_inverse=True)
    share = np.bincount(place, weights=table.n) / table.size
    accuracy = np.minimum(np.cumsum(share), 1.0)
    accuracy[-1] = 1.0
    return RECCurve(tolerance, accuracy, table.average(error), loss, table.notes)


@dataclass(frozen=True)
class ErrorTolerance(PointMetric):
    """Error tolerance: the least tolerance that covers this share of the absolute errors.

    Parameters
    ----------
    share : float, default=0.9
        Share of the rows, in (0, 1].

    See Also
    --------
    error_tolerance, rec_curve

    Examples
    --------
    >>> error_tolerance([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0], share=0.75)
    1.0
    """

    share: float = 0.9

    name: ClassVar[str] = "error tolerance"

    def __post_init__(self) -> None:
        _check_share(self.share)

    def value(self, table: MeanTable) -> float:
        found: RECCurve = rec_curve(table)
        return found.needed(self.share)


error_tolerance: MetricFunction = metric_function(ErrorTolerance)
