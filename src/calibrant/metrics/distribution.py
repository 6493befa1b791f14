"""Metrics of predictive distributions: log-likelihood, CRPS, interval score and coverage error."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._support.option_checks import check_share
from calibrant._support.typing import Floats
from calibrant.forecasts.forecast_table import ForecastTable, read_forecast_table
from calibrant.metrics.coverage import coverage_levels, is_covered
from calibrant.metrics.metric import Direction, UnbinnedMetric, metric_function
from calibrant.tables.table_functions import TableReader

__all__ = [
    "CRPS",
    "NLL",
    "CoverageError",
    "DistributionMetric",
    "IntervalScore",
    "coverage_error",
    "crps",
    "interval_score",
    "nll",
]


@dataclass(frozen=True)
class DistributionMetric(UnbinnedMetric):
    """A metric of predictive distributions, computed from a `ForecastTable`; see `calibrant.metrics.Metric`.

    It is a function (`combine`) of the means over rows of one number per row or several (`row_values`), so that a
    bootstrap replicate averages the values of the rows that it contains.

    See Also
    --------
    Metric, PointMetric, CRPS

    Examples
    --------
    >>> from calibrant.regression import CRPS, Gaussian
    >>> metric = CRPS()
    >>> isinstance(metric, DistributionMetric), metric.kind
    (True, 'distribution')
    >>> round(metric([1.0, 2.0], Gaussian([1.5, 1.5], 1.0)).value, 4)
    0.3314
    """

    kind: ClassVar[str] = "distribution"
    reader: ClassVar[TableReader[Any]] = read_forecast_table
    unit: ClassVar[str] = "y"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    # Whether cells between quantiles decide the value, so that it has a null distribution for `Quantiles`.
    needs_cells_only: ClassVar[bool] = False

    @abstractmethod
    def row_values(self, table: ForecastTable) -> Floats:
        """Return the number, or the numbers, of each row: (n,) or (n, k).

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array
        """

    def expected(self, table: ForecastTable) -> Floats:
        """Return the means of `row_values` if the forecasts are calibrated; only metrics of gaps know them.

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array
            One number per column of `row_values`.
        """
        raise NotImplementedError

    def combine(self, means: Floats, table: ForecastTable) -> float:
        """Return the value that belongs to the means of `row_values`.

        Parameters
        ----------
        means : array or float
            Means of `row_values` over rows.
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        float
        """
        return float(means)

    def value(self, table: ForecastTable) -> float:
        return self.combine(np.mean(self.row_values(table), axis=0), table)


@dataclass(frozen=True)
class NLL(DistributionMetric):
    """Mean negative log-likelihood of the outcomes; lower is better.

    It is infinite if a forecast gives an outcome density 0. Forecasts must have densities: `Gaussian`, distributions of
    scipy.stats, and recalibrated ones of these.

    See Also
    --------
    nll, CRPS

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(nll([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    2.6121
    """

    name: ClassVar[str] = "nll"
    unit: ClassVar[str] = "nat"
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def row_values(self, table: ForecastTable) -> Floats:
        return np.asarray(-table.forecast.log_density(table.y))


@dataclass(frozen=True)
class CRPS(DistributionMetric):
    """Mean continuous ranked probability score, in the unit of the outcomes; lower is better.

    The integral of (F(x) - 1{x >= y})^2 over x, which generalises the absolute error to distributions. `Samples` are
    read as a distribution with probability 1/m each; for `Quantiles` it is twice the mean pinball loss.

    See Also
    --------
    crps, NLL

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(crps([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    1.6865
    """

    name: ClassVar[str] = "crps"

    def row_values(self, table: ForecastTable) -> Floats:
        return np.asarray(table.forecast.crps(table.y))


@dataclass(frozen=True)
class IntervalScore(DistributionMetric):
    """Mean interval score of central intervals (Gneiting and Raftery, 2007); lower is better.

    The width of the interval, plus 2 / (1 - level) times the distance of an outcome outside it.

    Parameters
    ----------
    level : float, default=0.9
        Level of the intervals.

    See Also
    --------
    interval_score, CoverageError

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(interval_score([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 3)
    13.682
    """

    level: float = 0.9

    name: ClassVar[str] = "interval_score"

    def __post_init__(self) -> None:
        check_share("level", self.level)

    def row_values(self, table: ForecastTable) -> Floats:
        y, tail = table.y, (1 - self.level) / 2
        low, high = table.forecast.quantile([tail, (1 + self.level) / 2]).T
        beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        return np.asarray(high - low + 2 / (1 - self.level) * beyond)


@dataclass(frozen=True)
class CoverageError(DistributionMetric):
    """Mean absolute coverage error: distance of observed and nominal coverage of central intervals, over their levels.

    Parameters
    ----------
    levels : tuple of floats, optional
        Levels of the intervals; by default as for `calibrant.regression.coverage`.

    See Also
    --------
    coverage_error, coverage

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> coverage_error([9.0, 12.0, 13.5, 10.5], Gaussian([10.0] * 4, 2.0), levels=(0.5, 0.9))
    0.07500000000000001
    """

    levels: tuple[float, ...] | None = None

    name: ClassVar[str] = "coverage_error"
    unit: ClassVar[str] = "1"
    direction: ClassVar[Direction] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"
    needs_cells_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.levels is not None:
            levels: Iterable[float] = self.levels if isinstance(self.levels, Iterable) else [self.levels]
            object.__setattr__(self, "levels", tuple(check_share("levels", level) for level in levels))

    def expected(self, table: ForecastTable) -> Floats:
        """Return the nominal levels.

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array
            One number per column of `row_values`.
        """
        return coverage_levels(table.forecast, self.levels)

    def row_values(self, table: ForecastTable) -> Floats:
        """Return whether each row lies in its interval of each level.

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array of shape (n, k)
            1 inside the interval, 0 outside.
        """
        levels = self.expected(table)
        return np.column_stack([is_covered(table.y, table.forecast, level) for level in levels]).astype(np.float64)

    def combine(self, means: Floats, table: ForecastTable) -> float:
        """Return the mean distance from the nominal levels.

        Parameters
        ----------
        means : array or float
            Means of `row_values` over rows.
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        float
        """
        return float(np.mean(np.abs(means - self.expected(table))))


nll = metric_function(NLL)
crps = metric_function(CRPS)
interval_score = metric_function(IntervalScore)
coverage_error = metric_function(CoverageError)
