"""PIT values of discrete distributions without random numbers: each row is spread over its interval of F(y)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import generator

LEVELS = np.arange(1, 20) / 20
_MOST_ROWS = 2000  # that determine the covariance under calibration
_MOST_NUMBERS = 1 << 22  # of an intermediate array


def pit_shares(low: Floats, high: Floats, levels: Floats) -> Floats:
    """Return for each row and level the share of the interval (low, high) that lies below the level, of shape (n, k).

    It is the probability that a random number in the interval is at most the level (Czado, Gneiting and Held, 2009);
    its mean over calibrated forecasts is the level. Intervals of length 0 lie below levels that they do not exceed.
    """
    width = (high - low)[:, None]
    inside = np.divide(levels - low[:, None], width, out=np.zeros((low.size, levels.size)), where=width > 0)
    found: Floats = np.where(width > 0, np.clip(inside, 0.0, 1.0), (high[:, None] <= levels + 1e-12).astype(np.float64))
    return found


@dataclass(frozen=True)
class Shares:
    """Shares of rows below each level.

    Attributes
    ----------
    levels : ndarray
    mean : ndarray
        Mean share; the level if calibrated.
    covariance : ndarray
        Of one row, as observed.
    by_cluster : ndarray or None
        Sums of shares less levels, for each cluster.
    size : int
    """

    levels: Floats
    mean: Floats
    covariance: Floats
    by_cluster: Floats | None
    size: int

    @classmethod
    def from_cells(cls, low: Floats, high: Floats, levels: Floats, cluster: Ints | None) -> "Shares":
        """Average the shares of rows, a part of the rows at a time."""
        n, k = low.size, levels.size
        total, squares = np.zeros(k), np.zeros((k, k))
        sums = None if cluster is None else np.zeros((int(cluster.max()) + 1, k))
        step = max(1, _MOST_NUMBERS // k)
        for first in range(0, n, step):
            part = slice(first, first + step)
            away = pit_shares(low[part], high[part], levels) - levels
            total += away.sum(axis=0)
            squares += away.T @ away
            if sums is not None and cluster is not None:
                np.add.at(sums, cluster[part], away)
        mean = total / n
        covariance = (squares / n - np.outer(mean, mean)) * n / max(n - 1, 1)
        return cls(levels, levels + mean, covariance, sums, n)

    def combine(self, contrasts: Floats) -> "Shares":
        """Return linear combinations of the shares, one per row of `contrasts`."""
        sums = None if self.by_cluster is None else self.by_cluster @ contrasts.T
        covariance = contrasts @ self.covariance @ contrasts.T
        return Shares(contrasts @ self.levels, contrasts @ self.mean, covariance, sums, self.size)


def calibrated_covariance(forecast: Any, levels: Floats) -> Floats:
    """Return the mean covariance of the shares of a row if the forecasts are calibrated, from at most 2,000 rows.

    Two levels in one interval (a, b) of F have the covariance a + (u - a)(v - a) / (b - a) - u v, others u - u v for
    u <= v.
    """
    n = len(forecast)
    some = forecast if n <= _MOST_ROWS else forecast.part(np.sort(generator(0).choice(n, _MOST_ROWS, replace=False)))
    quantiles = some.quantile(levels)
    ends = [some.cells(quantile) for quantile in quantiles.T]
    a, b = (np.column_stack(side) for side in zip(*ends, strict=True))
    inside = np.clip(np.divide(levels - a, b - a, out=np.ones_like(a), where=b > a), 0.0, 1.0)
    covariance = np.empty((levels.size, levels.size))
    for i in range(levels.size):
        for j in range(i, levels.size):
            same = quantiles[:, i] == quantiles[:, j]
            both = np.where(same, a[:, i] + inside[:, i] * inside[:, j] * (b[:, i] - a[:, i]), levels[i])
            covariance[i, j] = covariance[j, i] = both.mean() - levels[i] * levels[j]
    return covariance
