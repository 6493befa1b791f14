"""Predictive distributions of counts, one per row: `Poisson` and `NegativeBinomial`."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError
from calibrant._support.formatting import short_repr
from calibrant.forecasts.distributions import as_levels, keep_index, per_row, some_index
from calibrant.forecasts.protocol import Forecast

# Steps in the logarithm of the frequency of the integral of a mean difference, whose error is about exp(-9.87 / step).
_STEP, _REACH = 0.2, 32.0


class CountForecast(Forecast):
    """What `Poisson` and `NegativeBinomial` share: distributions of the numbers 0, 1, 2, ...

    See Also
    --------
    Poisson, NegativeBinomial, Forecast

    Examples
    --------
    >>> isinstance(Poisson([0.5, 2.0]), CountForecast)
    True
    """

    mean: Any

    @abstractmethod
    def cdf(self, k: Floats) -> Floats:
        """Return the probability of at most k events in each row.

        Parameters
        ----------
        k : array of whole numbers, shape (n,)
            Counts; negative ones have the probability 0.

        Returns
        -------
        array of shape (n,)
        """

    @abstractmethod
    def sf(self, k: Floats) -> Floats:
        """Return the probability of more than k events in each row, precise in the upper tail.

        Parameters
        ----------
        k : array of whole numbers, shape (n,)
            Counts; negative ones have the probability 1.

        Returns
        -------
        array of shape (n,)
        """

    @property
    @abstractmethod
    def variance(self) -> Floats:
        """Variance of the count of each row."""

    @abstractmethod
    def mean_difference(self) -> Floats:
        """Return the mean distance of two independent counts of the distribution of each row.

        Returns
        -------
        array of shape (n,)
        """

    def __len__(self) -> int:
        return int(self.mean.size)

    @property
    def is_discrete(self) -> bool:
        return True

    def spread(self) -> Floats:
        return np.sqrt(self.variance)

    def check_outcomes(self, y: Floats) -> None:
        bad = (y < 0) | (y != np.floor(y))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"y_true must hold counts (whole numbers from 0) for {type(self).__name__}; {np.count_nonzero(bad):,} "
                f"of {y.size:,} rows do not, the first is row {row}: {y[row]:.6g}.",
                hint="Pass counts as outcomes, and the time or number at risk as exposure=.",
                argument="y_true",
                row=row,
                value=float(y[row]),
            )

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        return self.cdf(np.ceil(y) - 1), self.cdf(np.floor(y))

    def quantile(self, level: Any) -> Floats:
        levels, single = as_levels(level)
        found = np.column_stack([self._quantile(np.full(len(self), each)) for each in levels])
        return found[:, 0] if single else found

    def at_row_score(self, z: Floats) -> Floats:
        from scipy.special import ndtr

        return self._quantile(ndtr(z))

    def _quantile(self, level: Floats) -> Floats:
        """Return the smallest count of each row whose probability of at most that many events reaches its level.

        From a normal approximation with a correction for skewness, steps that double enclose the count, and halves
        find it.
        """
        from scipy.special import ndtri

        level = np.clip(level, 1e-300, 1 - 2.0**-53)
        z, sd = np.maximum(ndtri(level), -40.0), np.sqrt(self.variance)
        skewness = np.divide(2 * self.variance / np.maximum(self.mean, 1e-300) - 1, sd, out=0 * sd, where=sd > 0)
        guess = np.floor(np.maximum(self.mean + sd * (z + skewness * (z**2 - 1) / 6), 0.0))
        low, high = guess - 1, guess.copy()  # P(at most low) < level <= P(at most high)
        step = 1.0
        while (below := self.cdf(high) < level).any():
            low, high, step = np.where(below, high, low), np.where(below, high + step, high), 2 * step
        step = 1.0
        while (above := (low >= 0) & (self.cdf(low) >= level)).any():
            high, low, step = np.where(above, low, high), np.where(above, np.maximum(low - step, -1), low), 2 * step
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            reached = self.cdf(middle) >= level
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.asarray(high)

    def point(self) -> Floats:
        return np.array(self.mean)

    def crps(self, y: Floats) -> Floats:
        """Return the CRPS of each row, E|X - y| - E|X - X'| / 2, without approximation.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
            In the unit of the outcomes; lower is better.
        """
        k = np.floor(y)
        # E|X - y| = (y - mean) (2 F(y) - 1) + 2 * (mean - E[X; X <= y] / F(y)) F(y), by the partial mean.
        return np.asarray(
            (y - self.mean) * (2 * self.cdf(k) - 1) + 2 * self.partial_mean(k) - self.mean_difference() / 2
        )

    @abstractmethod
    def partial_mean(self, k: Floats) -> Floats:
        """Return mean * P(X <= k) - E[X; X <= k] of each row.

        Parameters
        ----------
        k : array of whole numbers, shape (n,)
            Counts.

        Returns
        -------
        array of shape (n,)
        """


def _read_counts(forecast: Any, names: tuple[str, ...], positive: tuple[str, ...]) -> None:
    """Read the columns of a forecast of counts, and multiply the means by the exposures."""
    given = {name: getattr(forecast, name) for name in (*names, "exposure") if getattr(forecast, name) is not None}
    read = {name: per_row(values, name) for name, values in given.items()}
    keep_index(forecast, *given.values())
    _columns.check_alignment(given)
    _columns.check_lengths([column for column in read.values() if len(column) != 1] or list(read.values()))
    for name, column in read.items():
        if not len(column):
            raise InputError("A forecast must have at least one row; got none.", argument=name)
        strict = name in positive
        column.refuse(
            column.values <= 0 if strict else column.values < 0,
            f"must {'be positive' if strict else 'not be negative'}",
        )
    exposure = read.pop("exposure", None)
    values = np.broadcast_arrays(
        *(column.values for column in read.values()), 1.0 if exposure is None else exposure.values
    )
    for name, each in zip(read, values[:-1], strict=True):
        object.__setattr__(forecast, name, np.array(each, dtype=np.float64))
    object.__setattr__(forecast, "mean", forecast.mean * values[-1])
    object.__setattr__(forecast, "exposure", None)


@dataclass(frozen=True, eq=False)
class Poisson(CountForecast):
    """Poisson distributions of counts: a mean for each row, or a rate and an exposure.

    Parameters
    ----------
    mean : column or float
        Means; with `exposure` the rates per unit of exposure. The attribute `mean` has their product.
    exposure : column or float, optional
        Time, number at risk or area in which the events of a row are counted.
    index : column, optional
        Labels of the rows, to align them with the outcomes.

    See Also
    --------
    NegativeBinomial, Gaussian, Point, RelativeMargin

    Notes
    -----
    Outcomes are counts. F(y) is known up to the interval from P(X < y) to P(X <= y); tests and diagrams of PIT values
    spread the row over it (Czado, Gneiting and Held, 2009), so they need no random numbers.

    Examples
    --------
    >>> forecast = Poisson([0.1, 0.2], exposure=[1.0, 10.0])
    >>> forecast.mean, forecast.quantile(0.9)
    (array([0.1, 2. ]), array([0., 4.]))
    """

    __repr__ = short_repr

    mean: Column
    exposure: Column | None = field(default=None, repr=False, kw_only=True)
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _read_counts(self, ("mean",), ("exposure",))

    @property
    def variance(self) -> Floats:
        return np.asarray(self.mean)

    def cdf(self, k: Floats) -> Floats:
        from scipy.special import pdtr

        return np.where(k < 0, 0.0, pdtr(np.maximum(k, 0), self.mean))

    def sf(self, k: Floats) -> Floats:
        from scipy.special import pdtrc

        return np.where(k < 0, 1.0, pdtrc(np.maximum(k, 0), self.mean))

    def partial_mean(self, k: Floats) -> Floats:
        return np.asarray(self.mean * np.exp(self.log_density(k)))

    def mean_difference(self) -> Floats:
        from scipy.special import ive

        return np.asarray(2 * self.mean * (ive(0, 2 * self.mean) + ive(1, 2 * self.mean)))

    def log_density(self, y: Floats) -> Floats:
        from scipy.special import gammaln, xlogy

        found = xlogy(y, self.mean) - self.mean - gammaln(np.maximum(y, 0) + 1)
        return np.where((y < 0) | (y != np.floor(y)), -np.inf, found)

    def part(self, rows: Any) -> "Poisson":
        return Poisson(self.mean[rows], index=some_index(self.index, rows))


@dataclass(frozen=True, eq=False)
class NegativeBinomial(CountForecast):
    """Negative binomial distributions of counts: a mean and a dispersion for each row, or one for all rows.

    The variance is mean + dispersion * mean^2 (type "NB2" of generalised linear models). As the dispersion goes to 0
    the distribution becomes Poisson's.

    Parameters
    ----------
    mean : column or float
        Means; with `exposure` the rates per unit of exposure. The attribute `mean` has their product.
    dispersion : column or float
        Positive. It is 1 / size, or 1 / theta, of other parametrisations.
    exposure : column or float, optional
        Time, number at risk or area in which the events of a row are counted.
    index : column, optional
        Labels of the rows, to align them with the outcomes.

    See Also
    --------
    Poisson, Gaussian, Point, RelativeMargin

    Examples
    --------
    >>> forecast = NegativeBinomial([2.0, 5.0], 0.5)
    >>> forecast.variance, forecast.quantile(0.9)
    (array([ 4. , 17.5]), array([ 5., 11.]))
    """

    __repr__ = short_repr

    mean: Column
    dispersion: Column
    exposure: Column | None = field(default=None, repr=False, kw_only=True)
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _read_counts(self, ("mean", "dispersion"), ("dispersion", "exposure"))

    @property
    def variance(self) -> Floats:
        return np.asarray(self.mean * (1 + self.dispersion * self.mean))

    @property
    def _odds(self) -> Floats:
        return np.asarray(self.dispersion * self.mean)

    def cdf(self, k: Floats) -> Floats:
        return np.where(k < 0, 0.0, self._tail(np.maximum(k, 0), upper=False))

    def sf(self, k: Floats) -> Floats:
        return np.where(k < 0, 1.0, self._tail(np.maximum(k, 0), upper=True))

    def _tail(self, k: Floats, upper: bool) -> Floats:
        """Return the probability of at most or of more than k events, from the smaller one of both success rates."""
        from scipy.special import betainc, betaincc

        size, c = 1 / self.dispersion, self._odds
        small = c < 1
        found = np.empty(len(self))
        cases = ((small, k + 1, size, c / (1 + c), upper), (~small, size, k + 1, 1 / (1 + c), not upper))
        for rows, a, b, rate, below in cases:
            found[rows] = (betainc if below else betaincc)(a[rows], b[rows], rate[rows])
        return found

    def partial_mean(self, k: Floats) -> Floats:
        # mean F(k) - E[X; X <= k] = (k + 1) (1 + c) f(k + 1)
        return np.where(k < 0, 0.0, (k + 1) * (1 + self._odds) * np.exp(self.log_density(np.maximum(k, 0) + 1)))

    def mean_difference(self) -> Floats:
        r"""Return the mean distance of two independent counts, by its Fourier integral.

        With s = tan(t / 2) and c = dispersion * mean it is

        .. math::

           \frac{1}{\pi} \int_0^\infty \frac{1 - (1 + 4 c (1 + c) \frac{s^2}{1 + s^2})^{-1 / \alpha}}{s^2} ds

        whose integrand is analytic in log s, so the trapezoidal rule is exact to rounding for every dispersion.

        Returns
        -------
        array of shape (n,)
        """
        c, sd = self._odds, np.sqrt(self.variance)
        total = np.zeros(len(self))
        unit = np.divide(1.0, sd, out=np.ones_like(sd), where=sd > 0)
        for x in np.arange(-_REACH, _REACH + _STEP / 2, _STEP):
            s = unit * math.exp(x)
            share = s / (s + 1 / s)  # s^2 / (1 + s^2)
            total += -np.expm1(-np.log1p(4 * c * (1 + c) * share) / self.dispersion) / s
        return np.asarray(_STEP / math.pi * total)

    def log_density(self, y: Floats) -> Floats:
        from scipy.special import betaln, xlog1py, xlogy

        size, c = 1 / self.dispersion, self._odds
        k = np.maximum(np.floor(y), 0)
        # binomial coefficient: 1 / (k B(size, k)), or 1 for k = 0
        choose = np.where(k > 0, -np.log(np.maximum(k, 1)) - betaln(size, np.maximum(k, 1)), 0.0)
        found = choose + xlogy(k, c / (1 + c)) - xlog1py(size, c)
        return np.where((y < 0) | (y != np.floor(y)), -np.inf, found)

    def part(self, rows: Any) -> "NegativeBinomial":
        return NegativeBinomial(self.mean[rows], self.dispersion[rows], index=some_index(self.index, rows))
