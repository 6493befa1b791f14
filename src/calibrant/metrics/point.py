"""Metrics of point predictions: mean error, ratio, squared, absolute and pinball error. The RD kind of calibration.

Point predictions are calibrated if the mean outcome of the rows with one prediction equals that prediction. All
functions take ``(y_true, y_pred)`` or one `MeanTable`.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support.errors import InputError, Note
from calibrant._support.option_checks import check_option, check_share
from calibrant._support.typing import Floats
from calibrant.metrics.metric import Direction, MetricValue, UnbinnedMetric, metric_function
from calibrant.tables.mean_table import MeanTable, need_rows, read_mean_table
from calibrant.tables.table_functions import TableReader

__all__ = [
    "MAE",
    "MSE",
    "RMSE",
    "MeanError",
    "MeanQuotient",
    "Pinball",
    "PointMetric",
    "Ratio",
    "RelativeMSE",
    "mae",
    "mean_error",
    "mean_quotient",
    "mse",
    "pinball",
    "ratio",
    "relative_mse",
    "rmse",
]


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

    name: ClassVar[str] = "mean_error"
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

    name: ClassVar[str] = "mean_quotient"
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
                argument="y_true",
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

    name: ClassVar[str] = "mse"
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

    name: ClassVar[str] = "rmse"

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

    name: ClassVar[str] = "mae"

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

    name: ClassVar[str] = "relative_mse"
    unit: ClassVar[str] = "1"

    def value(self, table: MeanTable) -> float:
        spread = variance(table)
        if spread == 0:
            raise InputError("y_true must hold different outcomes; all are equal.", hint="Use mse.", argument="y_true")
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


mean_error = metric_function(MeanError)
ratio = metric_function(Ratio)
mean_quotient = metric_function(MeanQuotient)
mse = metric_function(MSE)
rmse = metric_function(RMSE)
mae = metric_function(MAE)
relative_mse = metric_function(RelativeMSE)
pinball = metric_function(Pinball)


def variance(table: MeanTable) -> float:
    """Return the variance of the outcomes: the sum of squares divided by the number of rows."""
    return table.average((table.mean - table.mean_outcome) ** 2) + within_variance(table)


def within_variance(table: MeanTable) -> float:
    """Return the part of the variance that lies within the entries of a merged table."""
    return float(table.m2.sum() / table.size) if not table.single else 0.0
