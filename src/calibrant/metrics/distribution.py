"""Proper scores of predictive distributions: log-likelihood, CRPS, pinball loss and interval score."""

from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.option_checks import check_share
from calibrant._support.typing import Column
from calibrant.forecasts.distributions import pinball_losses
from calibrant.forecasts.reading import read_outcomes
from calibrant.tables.mean_table import ONE_COLUMN
from calibrant.tables.rows import Rows

__all__ = ["crps", "interval_score", "nll", "pinball"]


def nll(y_true: Column, forecast: Any) -> float:
    """Mean negative log-likelihood of the outcomes; lower is better.

    It is infinite if a forecast gives an outcome density 0. Forecasts must have densities: `Gaussian`, distributions of
    scipy.stats, and recalibrated ones of these.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(nll([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    2.6121
    """
    y, known = read_outcomes(y_true, forecast)
    return float(-np.mean(known.log_density(y)))


def crps(y_true: Column, forecast: Any) -> float:
    """Mean continuous ranked probability score, in the unit of the outcomes; lower is better.

    The integral of (F(x) - 1{x >= y})^2 over x, which generalises the absolute error to distributions. `Samples` are
    read as a distribution with probability 1/m each; for `Quantiles` it is twice the mean pinball loss.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(crps([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    1.6865
    """
    y, known = read_outcomes(y_true, forecast)
    return float(np.mean(known.crps(y)))


def pinball(y_true: Column, y_pred: Column, *, level: float) -> float:
    """Mean pinball loss of predicted quantiles: level (y - q) where y > q, (1 - level) (q - y) elsewhere.

    Examples
    --------
    >>> pinball([10.0, 24.0], [12.0, 20.0], level=0.75)
    1.75
    """
    check_share("level", level)
    rows = Rows.read(y_true, {"y_pred": y_pred}, hint=ONE_COLUMN)
    _columns.refuse_missing(rows.columns)
    used = rows.check(_columns.finite, _columns.finite).select()
    return float(np.mean(pinball_losses(used.y.values, used.forecasts[0].values[:, None], np.array([level]))))


def interval_score(y_true: Column, forecast: Any, *, level: float = 0.9) -> float:
    """Mean interval score of central intervals (Gneiting and Raftery, 2007); lower is better.

    The width of the interval, plus 2 / (1 - level) times the distance of an outcome outside it.

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(interval_score([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 3)
    13.682
    """
    check_share("level", level)
    y, known = read_outcomes(y_true, forecast)
    low, high = known.quantile([(1 - level) / 2, (1 + level) / 2]).T
    beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float(np.mean(high - low + 2 / (1 - level) * beyond))
