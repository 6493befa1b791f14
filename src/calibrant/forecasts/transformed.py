"""Recalibrated forecasts: shifted and scaled, or with mapped levels."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant._support.lazy import cached_property
from calibrant.forecasts.distributions import Gaussian, Quantiles, Samples, as_levels, pinball_losses
from calibrant.forecasts.forecast_table import as_forecast
from calibrant.forecasts.protocol import Forecast

_CHUNK = 1 << 22  # cells of an intermediate array
_FARTHEST = 38.0  # normal scores beyond have no probability in a double


@dataclass(frozen=True, eq=False)
class Stretched(Forecast):
    """A forecast that is shifted, and scaled about its median: quantile q becomes m + shift s + factor (q - m).

    m is the median and s the distance from it to the 84 % quantile, a standard deviation of a normal forecast.

    Attributes
    ----------
    base : Forecast
        The forecast.
    factor, shift : float
        Factor of the width, and shift in standard deviations.

    See Also
    --------
    Warped, VarianceScaling, Forecast

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> wider = Stretched(Gaussian([1.0], 0.5), 2.0, 0.0)
    >>> wider.quantile([0.16, 0.5, 0.84]).round(2).tolist()
    [[0.01, 1.0, 1.99]]
    """

    base: Any
    factor: float
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.factor < math.inf:
            raise InputError(f"factor must be positive; got {self.factor!r}.", value=self.factor)
        object.__setattr__(self, "base", as_forecast(self.base))
        refuse_discrete(self.base)

    @property
    def index(self) -> Any:
        """Labels of the rows, those of the base forecast."""
        return getattr(self.base, "index", None)

    @property
    def point_is_mean(self) -> bool:
        return bool(self.base.point_is_mean)

    @cached_property
    def _middle(self) -> Floats:
        return np.asarray(self.base.quantile(0.5))

    @cached_property
    def _moved(self) -> Floats:
        unit = self.base.quantile(ONE_SD) - self._middle if self.shift else 0.0
        return self._middle + self.shift * unit

    def __len__(self) -> int:
        return len(self.base)

    def _back(self, y: Floats) -> Floats:
        return self._middle + (y - self._moved) / self.factor

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        cells: tuple[Floats, Floats] = self.base.cells(self._back(y))
        return cells

    def normal_score(self, y: Floats) -> Floats:
        """Return the standard normal value of each outcome's level.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
        """
        return normal_scores(self.base, self._back(y))

    def moved(self, values: Floats) -> Floats:
        """Transform values of the base; rows are the last axis.

        Parameters
        ----------
        values : array
            Values of the base, of shape (n,) or (k, n).

        Returns
        -------
        array
            Of the same shape.
        """
        return self._moved + self.factor * (values - self._middle)

    def at_score(self, z: Floats) -> Floats:
        """Return the quantiles at standard normal values.

        Parameters
        ----------
        z : array of k numbers
            Standard normal values.

        Returns
        -------
        array of shape (n, k)
        """
        return self.moved(self.base.at_score(z).T).T

    def at_row_score(self, z: Floats) -> Floats:
        return self.moved(self.base.at_row_score(z))

    def simulate(self, y: Floats, rng: Generator) -> tuple[Floats, Any]:
        outcomes, base = self.base.simulate(self._back(y), rng)
        # An ensemble exchanges its members with the outcomes: the new one is stretched about the same medians.
        return self.moved(outcomes), self if base is self.base else Samples(self.moved(base.ensemble.T).T)

    def quantile(self, level: Any) -> Floats:
        return self.moved(self.base.quantile(level).T).T

    def point(self) -> Floats:
        return self.moved(self.base.point())

    def log_density(self, y: Floats) -> Floats:
        return np.asarray(self.base.log_density(self._back(y)) - math.log(self.factor))

    def crps(self, y: Floats) -> Floats:
        return np.asarray(self.factor * self.base.crps(self._back(y)))

    def part(self, rows: Any) -> "Stretched":
        return replace(self, base=self.base.part(rows))


def stretch(forecast: Any, factor: float, shift: float = 0.0) -> Any:
    """Return the stretched forecast, of the same type where that can state it."""
    if forecast.is_normal:
        return Gaussian(forecast.mean + shift * forecast.sd, factor * forecast.sd, index=forecast.index)
    stretched = Stretched(forecast, factor, shift)
    if forecast.ensemble is not None:
        return Samples(stretched.moved(forecast.ensemble.T).T, index=forecast.index)
    if forecast.known_levels is not None:
        return Quantiles(forecast.known_levels, stretched.quantile(forecast.known_levels), index=forecast.index)
    return stretched


ONE_SD = 0.8413447460685429  # the standard normal distribution function at 1


@dataclass(frozen=True, eq=False)
class Warped(Forecast):
    """A forecast whose normal scores are transformed by a map, precise far in the tails.

    The distribution function must be known everywhere and continuous: `Gaussian`, `Frozen`, or a recalibrated one of
    these. CRPS and means are computed from 999 quantiles.

    Attributes
    ----------
    base : Forecast
        The forecast.
    warp : SinhArcsinh or another map of normal scores
        The map.

    See Also
    --------
    Stretched, PITRecalibrator, ParetoRecalibrator

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import Gaussian
    >>> class Half:
    ...     def __call__(self, score):
    ...         return score / 2
    ...     def inverse(self, value):
    ...         return 2 * value
    >>> warped = Warped(Gaussian([1.0], 0.5), Half())  # twice as wide
    >>> warped.quantile([0.16, 0.5, 0.84]).round(2), warped.normal_score(np.array([2.0]))
    (array([[0.01, 1.  , 1.99]]), array([1.]))
    """

    base: Any
    warp: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", as_forecast(self.base))
        need_scores(self.base)

    @property
    def index(self) -> Any:
        """Labels of the rows, those of the base forecast."""
        return getattr(self.base, "index", None)

    def __len__(self) -> int:
        return len(self.base)

    def normal_score(self, y: Floats) -> Floats:
        """Return the standard normal value of each outcome's level.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
        """
        return np.asarray(self.warp(normal_scores(self.base, y)))

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtr

        u: Floats = ndtr(self.normal_score(y))
        return u, u

    def at_score(self, z: Floats) -> Floats:
        """Return the quantiles at standard normal values.

        Parameters
        ----------
        z : array of k numbers
            Standard normal values.

        Returns
        -------
        array of shape (n, k)
        """
        return np.asarray(self.base.at_score(self.warp.inverse(z)))

    def at_row_score(self, z: Floats) -> Floats:
        return np.asarray(self.base.at_row_score(self.warp.inverse(z)))

    def quantile(self, level: Any) -> Floats:
        from scipy.special import ndtri

        levels, single = as_levels(level)
        found = self.at_score(ndtri(levels))
        return found[:, 0] if single else found

    def point(self) -> Floats:
        return _by_quantiles(self, lambda values, _: np.asarray(values.mean(axis=1)), np.zeros(len(self)))

    def log_density(self, y: Floats) -> Floats:
        density = self.base.log_density(y)
        possible = np.isfinite(density)
        # At the end of a bounded support the score is infinite; it is clipped.
        z = np.where(possible, np.clip(normal_scores(self.base, y), -_FARTHEST, _FARTHEST), 0.0)
        warped = self.warp.log_slope(z) + 0.5 * (z**2 - self.warp(z) ** 2)
        return np.asarray(np.where(possible, density + warped, density))

    def crps(self, y: Floats) -> Floats:
        def mean_losses(values: Floats, some: Floats) -> Floats:
            return np.asarray(2 * pinball_losses(some, values, _GRID).mean(axis=1))

        return _by_quantiles(self, mean_losses, y)

    def part(self, rows: Any) -> "Warped":
        return replace(self, base=self.base.part(rows))


_GRID = (np.arange(999) + 0.5) / 999


def _by_quantiles(forecast: Any, of: Callable[[Floats, Floats], Floats], y: Floats) -> Floats:
    size = max(1, _CHUNK // _GRID.size)
    runs = [slice(first, first + size) for first in range(0, len(forecast), size)]
    return np.concatenate([of(forecast.part(run).quantile(_GRID), y[run]) for run in runs])


def normal_scores(forecast: Any, y: Floats) -> Floats:
    """Return the standard normal value at the level of each outcome."""
    return np.asarray(forecast.normal_score(y))


def refuse_discrete(forecast: Any) -> None:
    """Raise an error for discrete distributions, which cannot be shifted or mapped."""
    if forecast.is_discrete:
        raise InputError(
            "forecast must be continuous to be shifted or mapped; got a discrete distribution.",
            hint="Use QuantileRecalibrator.",
        )


def need_scores(forecast: Any) -> None:
    """Raise an error unless the distribution function is continuous and known everywhere."""
    refuse_discrete(forecast)
    inner = forecast
    while hasattr(inner, "base"):
        inner = inner.base
    if not hasattr(inner, "at_score"):
        raise InputError(
            f"forecast must have a known distribution function for a map of levels; got {type(inner).__name__}.",
            hint="Use QuantileRecalibrator or VarianceScaling.",
        )
