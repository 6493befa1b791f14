"""Predictive distributions, one a row: what a model that says how sure it is predicts of a number.

Four kinds, by what is known of each distribution: mean and spread (`Gaussian`), everything (`Frozen`, for scipy's),
some quantiles (`Quantiles`), draws (`Samples`). Recalibrators make more: `Stretched` and `Warped`. Wherever a
forecast is taken, a frozen distribution of `scipy.stats` may be given as it is.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from calibrant import _columns
from calibrant._typing import Column, Floats
from calibrant.errors import CalibrantWarning, InputError
from calibrant.regression.table import ONE_COLUMN

__all__ = ["Forecast", "Frozen", "Gaussian", "Quantiles", "Samples", "Stretched", "Warped", "as_forecast"]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_CHUNK = 1 << 22  # cells of an intermediate array
_MOST_STEPS = 100_000
_FARTHEST = 38.0  # normal scores beyond have no probability in a double


class Forecast(Protocol):
    """What every kind of forecast can do."""

    def __len__(self) -> int: ...

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        """Limits of what is known of F(y), for every row: equal where F is continuous and known."""
        ...

    def quantile(self, level: Any) -> Floats:
        """Quantiles of every row: of shape (n,) for one level, (n, k) for k of them."""
        ...

    def point(self) -> Floats:
        """The mean of every row, or the median where no mean is known."""
        ...

    def log_density(self, y: Floats) -> Floats:
        """Logarithm of the density (or of the probability, for whole numbers) at every outcome."""
        ...

    def crps(self, y: Floats) -> Floats:
        """Continuous ranked probability score of every row."""
        ...

    def part(self, rows: Any) -> "Forecast":
        """The forecasts of some of the rows: by a mask or by their places."""
        ...


def levels_of(level: Any) -> tuple[Floats, bool]:
    """Levels as a new array, and whether it was a single one; they lie strictly between 0 and 1."""
    try:
        levels = np.array(level, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.array(np.nan)
    if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
        raise InputError(f"A level must lie between 0 and 1; found {level!r}.", argument="level", value=level)
    return np.atleast_1d(levels), levels.ndim == 0


def _keep_index(forecast: Any, *columns: Any) -> None:
    """The index of pandas objects, to be compared with that of the outcomes, unless another is known."""
    for column in columns:
        index = getattr(column, "index", None)
        if forecast.index is None and hasattr(index, "equals"):
            object.__setattr__(forecast, "index", index)


def _some(index: Any, rows: Any) -> Any:
    return None if index is None else index[rows]


def _per_row(values: Any, name: str) -> _columns.Column:
    outside = np.atleast_1d(values) if np.ndim(values) == 0 else values
    column = _columns.finite(_columns.read(outside, name, hint=ONE_COLUMN))
    _columns.refuse_missing([column])
    return column


def _matrix(values: Any, name: str, columns: str) -> Floats:
    """Numbers of shape (rows, columns), all finite."""
    try:
        np.shape(values)
    except ValueError as error:
        raise InputError(f"{name} must have equally long rows.", argument=name) from error
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = _columns.as_array(values, name)
    if array.ndim != 2 or not array.size:
        raise InputError(f"{name} must have a row for each outcome and {columns}; its shape is {array.shape}.")
    flat = _columns.numbers(_columns.read(array.reshape(-1), name))
    array = flat.values.astype(np.float64).reshape(array.shape)
    if masked is not None:
        array = np.where(masked, np.nan, array)
    bad = ~np.isfinite(array)
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{name} must hold finite numbers; row {row}, column {place} is {array[row, place]}.",
            argument=name,
            row=row,
            value=float(array[row, place]),
        )
    return array


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Normal distributions: a mean and a standard deviation for every row (or one for all).

    Examples
    --------
    >>> forecast = Gaussian([10.0, 20.0], 2.0)
    >>> forecast.quantile(0.975).round(2)
    array([13.92, 23.92])
    """

    mean: Column
    sd: Column
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        mean, sd = _per_row(self.mean, "mean"), _per_row(self.sd, "sd")
        _keep_index(self, self.mean, self.sd)
        _columns.check_alignment({"mean": self.mean, "sd": self.sd})
        if 1 not in (len(mean), len(sd)):
            _columns.check_lengths([mean, sd])
        bad = sd.values <= 0
        if bad.any():
            row = int(np.argmax(bad))
            raise sd.error(
                f"must be positive; row {row} is {sd.values[row]:.6g}.",
                hint="A forecast that is sure has no density; give it a small spread.",
                row=row,
                value=float(sd.values[row]),
            )
        if not len(mean) or not len(sd):
            raise InputError("A forecast needs at least one row; there is none.", argument="mean")
        for name, values in zip(("mean", "sd"), np.broadcast_arrays(mean.values, sd.values), strict=True):
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return int(self.mean.size)

    def at_score(self, z: Floats) -> Floats:
        """Quantiles at the levels of these standard normal values, of shape (n, k)."""
        found: Floats = self.mean[:, None] + self.sd[:, None] * z
        return found

    def normal_score(self, y: Floats) -> Floats:
        """The standard normal value at the same place: (y - mean) / sd."""
        score: Floats = (y - self.mean) / self.sd
        return score

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtr

        u: Floats = ndtr(self.normal_score(y))
        return u, u

    def quantile(self, level: Any) -> Floats:
        from scipy.special import ndtri

        levels, single = levels_of(level)
        found = self.at_score(ndtri(levels))
        return found[:, 0] if single else found

    def point(self) -> Floats:
        return np.array(self.mean)

    def log_density(self, y: Floats) -> Floats:
        found: Floats = -0.5 * self.normal_score(y) ** 2 - np.log(self.sd) - _LOG_ROOT_2PI
        return found

    def crps(self, y: Floats) -> Floats:
        from scipy.special import ndtr

        z = self.normal_score(y)
        density = np.exp(-0.5 * z**2 - _LOG_ROOT_2PI)
        found: Floats = self.sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))
        return found

    def part(self, rows: Any) -> "Gaussian":
        return Gaussian(self.mean[rows], self.sd[rows], index=_some(self.index, rows))


@dataclass(frozen=True, eq=False)
class Frozen:
    """A frozen distribution of `scipy.stats` whose parameters are arrays, one value a row (or one for all rows).

    Continuous ones and those of whole numbers. CRPS is computed by quadrature of quantiles (relative error about
    1e-10 for smooth densities), for whole numbers by summing.

    Examples
    --------
    >>> from scipy import stats
    >>> forecast = Frozen(stats.gamma([2.0, 3.0], scale=2.0))
    >>> len(forecast), forecast.point()
    (2, array([4., 6.]))
    """

    distribution: Any
    rows: int | None = None

    def __post_init__(self) -> None:
        if not is_frozen(self.distribution):
            raise InputError(
                f"A frozen distribution of scipy.stats is needed, such as stats.gamma(shape); found "
                f"{self.distribution!r}.",
                argument="distribution",
            )
        shape = np.shape(self.distribution.median())
        if len(shape) > 1 or (shape and shape != (1,) and self.rows not in (None, *shape)):
            raise InputError(
                f"The distribution's parameters must have one value a row{f' of {self.rows}' if self.rows else ''}; "
                f"their shape is {shape}.",
                argument="distribution",
            )
        bad = ~np.isfinite(np.atleast_1d(self.distribution.median()))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"The distribution of row {row} does not exist: its median is no number.",
                hint="Look at its parameters; scales must be positive.",
                argument="distribution",
                row=row,
            )
        if self.discrete and (np.asarray(self.distribution.median()) % 1 != 0).any():
            raise InputError(
                "Distributions of whole numbers must not be shifted by a fraction.", argument="distribution"
            )
        object.__setattr__(self, "rows", shape[0] if shape and shape != (1,) else (self.rows or 1))

    def __len__(self) -> int:
        assert self.rows is not None
        return self.rows

    @property
    def discrete(self) -> bool:
        """Whether it is a distribution of whole numbers."""
        return hasattr(self.distribution, "pmf")

    def _full(self, values: Any) -> Floats:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), (len(self),))

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        high = self._full(self.distribution.cdf(y))
        if not self.discrete:
            return high, high
        return self._full(self.distribution.cdf(np.ceil(y) - 1)), high

    def normal_score(self, y: Floats) -> Floats:
        """The standard normal value at the same place, precise in both tails."""
        from scipy.special import ndtri

        low, high = self.distribution.cdf(y), self.distribution.sf(y)
        return self._full(np.where(low <= 0.5, ndtri(low), -ndtri(high)))

    def at_score(self, z: Floats) -> Floats:
        """Quantiles at the levels of these standard normal values, precise in both tails."""
        from scipy.special import ndtr

        d = self.distribution
        found: Floats = np.column_stack([self._full(d.ppf(ndtr(v)) if v <= 0 else d.isf(ndtr(-v))) for v in z])
        return found

    def quantile(self, level: Any) -> Floats:
        levels, single = levels_of(level)
        found: Floats = np.column_stack([self._full(self.distribution.ppf(each)) for each in levels])
        return found[:, 0] if single else found

    @property
    def point_is_mean(self) -> bool:
        """Whether all rows have a mean; else `point` gives medians."""
        return bool(np.isfinite(self.distribution.mean()).all())

    def point(self) -> Floats:
        return np.array(self._full(self.distribution.mean() if self.point_is_mean else self.distribution.median()))

    def log_density(self, y: Floats) -> Floats:
        d = self.distribution
        return self._full(d.logpmf(y) if self.discrete else d.logpdf(y))

    def crps(self, y: Floats) -> Floats:
        return self._crps_by_sums(y) if self.discrete else self._crps_by_quadrature(y)

    def _crps_by_quadrature(self, y: Floats) -> Floats:
        """2 int_0^1 of the pinball loss over levels, split at F(y), so that both parts are smooth up to their ends."""
        d = self.distribution
        below, above = self._full(d.cdf(y)), self._full(d.sf(y))
        total, end = np.zeros(len(self)), np.zeros(len(self))
        for step, (place, rest, weight) in enumerate(zip(*tanh_sinh(), strict=True)):
            # Levels below y are below * place, those above it above * place from the other end. Each is asked for from
            # the nearer end, and not at all where it is nothing.
            low, low_rest = below * place, above + below * rest
            high, high_rest = above * place, below + above * rest
            under = y - np.where(low <= 0.5, d.ppf(low), d.isf(low_rest))
            over = np.where(high <= 0.5, d.isf(high), d.ppf(high_rest)) - y
            under = 2 * weight * below**2 * place * np.where((below > 0) & np.isfinite(under), under, 0.0)
            over = 2 * weight * above**2 * place * np.where((above > 0) & np.isfinite(over), over, 0.0)
            total += under + over
            end = under + over if step == 0 else end
        # Where the outermost piece still counts, the integral has no end: tails as heavy as Levy's.
        return np.where(end > 1e-3 * total, np.inf, total)

    def _crps_by_sums(self, y: Floats) -> Floats:
        """Integral of (F(x) - 1{x >= y})^2, constant between whole numbers; beyond the distribution, a distance."""
        d = self.distribution
        first, last = self._ends()
        inside = np.clip(y, first, last)
        steps = float((last - first).max())
        total = np.abs(y - inside)
        for step in range(int(steps)):
            x = first + step
            share = self._full(d.cdf(x))
            # Between x and x + 1 the outcome may lie: to its left and to its right the other half counts.
            left = np.clip(inside - x, 0.0, 1.0)
            total += np.where(x < last, left * share**2 + (1 - left) * (1 - share) ** 2, 0.0)
        return total

    def _ends(self) -> tuple[Floats, Floats]:
        """Whole numbers beyond which a distribution of them has nothing left, found by doubling steps."""
        middle, d = self._full(self.distribution.median()), self.distribution
        ends = []
        for side, left in ((-1, d.cdf), (1, d.sf)):
            reach = 1
            while (self._full(left(middle + side * reach)) > 1e-13).any():
                reach *= 2
                if reach > _MOST_STEPS:
                    raise InputError(
                        f"CRPS of these distributions needs sums over more than {_MOST_STEPS:,} whole numbers.",
                        hint="Use draws (Samples) or quantiles.",
                        argument="forecast",
                    )
            ends.append(middle + side * reach)
        return ends[0], ends[1]

    def part(self, rows: Any) -> "Frozen":
        d = self.distribution
        size = np.arange(len(self))[rows].size

        def some(value: Any) -> Any:
            return np.broadcast_to(value, (len(self),))[rows] if np.ndim(value) else value

        kept = d.dist(*map(some, d.args), **{name: some(value) for name, value in d.kwds.items()})
        return Frozen(kept, size)


def is_frozen(value: Any) -> bool:
    """Whether it is a frozen distribution of `scipy.stats`."""
    return all(hasattr(value, name) for name in ("dist", "args", "kwds", "cdf", "ppf", "median"))


def tanh_sinh() -> tuple[Floats, Floats, Floats]:
    """Places, 1 less the places, and weights of double-exponential quadrature over (0, 1), for singular ends."""
    t = np.arange(-32, 33) / 10
    inner = 0.5 * math.pi * np.sinh(t)
    places = 1 / (1 + np.exp(-2 * inner))
    weights = 0.1 * 0.25 * math.pi * np.cosh(t) / np.cosh(inner) ** 2
    return places, 1 / (1 + np.exp(2 * inner)), weights


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Quantile forecasts: for every row the values below which the outcome lies with each of the levels' chances.

    Parameters
    ----------
    levels : k numbers between 0 and 1, strictly rising
    values : (n, k) numbers, not falling from left to right

    Notes
    -----
    Of F(y) only the cell is known, the levels between which it lies. y counts as below a quantile if y <= it. Quantiles
    at other levels are interpolated on a line; there are none beyond the outermost levels.

    Examples
    --------
    >>> forecast = Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0], [0.0, 5.0, 6.0]])
    >>> forecast.cells(np.array([3.0, 9.0]))
    (array([0.5, 0.9]), array([0.9, 1. ]))
    """

    levels: Column
    values: Any
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        levels, _ = levels_of(np.asarray(self.levels, dtype=np.float64))
        values = _matrix(self.values, "values", "a column for each level")
        if not (np.diff(levels) > 0).all() or values.shape[1] != levels.size:
            raise InputError(
                f"levels must rise strictly, one for each column of values; there are {levels.size} levels "
                f"({', '.join(f'{v:g}' for v in levels[:5])}{', ...' if levels.size > 5 else ''}) and "
                f"{values.shape[1]} columns.",
                argument="levels",
            )
        falls = np.diff(values, axis=1) < 0
        if falls.any():
            row = int(np.argwhere(falls)[0, 0])
            raise InputError(
                f"The quantiles of a row must not fall; {int(falls.any(axis=1).sum()):,} rows cross, the first is row "
                f"{row}.",
                hint="Sort them (np.sort(values, axis=1)): that never makes a forecast worse.",
                argument="values",
                row=row,
            )
        _keep_index(self, self.values)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        known = np.concatenate([[0.0], self.levels, [1.0]])
        below = np.count_nonzero(self.values < y[:, None], axis=1)
        upto = np.count_nonzero(self.values <= y[:, None], axis=1)
        return known[below], known[np.maximum(below + 1, upto)]

    def quantile(self, level: Any) -> Floats:
        levels, single = levels_of(level)
        first, last = self.levels[0], self.levels[-1]
        slack = 1e-6  # levels may have been written as float32
        if (levels < first - slack).any() or (levels > last + slack).any():
            raise InputError(
                f"These forecasts know the levels {first:g} to {last:g}; {levels.min():g} to {levels.max():g} was "
                "asked for.",
                hint="Predict further quantiles, or ask for levels between these.",
                argument="level",
                value=level,
            )
        levels = np.clip(levels, first, last)
        right = np.clip(np.searchsorted(self.levels, levels), 1, max(self.levels.size - 1, 1))
        if self.levels.size == 1:
            found = np.repeat(self.values, levels.size, axis=1)
        else:
            share = (levels - self.levels[right - 1]) / (self.levels[right] - self.levels[right - 1])
            found = (1 - share) * self.values[:, right - 1] + share * self.values[:, right]
        return found[:, 0] if single else found

    def point(self) -> Floats:
        return self.quantile(0.5)

    def log_density(self, y: Floats) -> Floats:
        raise InputError(
            "Quantile forecasts have no density, so there is no likelihood.",
            hint="Use crps or pinball.",
            argument="forecast",
        )

    def crps(self, y: Floats) -> Floats:
        """Twice the mean pinball loss over the levels: CRPS as far as equally spaced levels show it."""
        found: Floats = 2 * pinball_losses(y, self.values, self.levels).mean(axis=1)
        return found

    def part(self, rows: Any) -> "Quantiles":
        return Quantiles(self.levels, self.values[rows], index=_some(self.index, rows))


def pinball_losses(y: Floats, values: Floats, levels: Floats) -> Floats:
    """Pinball loss of every quantile: level (y - q) if y > q, (1 - level) (q - y) otherwise."""
    away = y[:, None] - values
    found: Floats = np.maximum(levels * away, (levels - 1) * away)
    return found


@dataclass(frozen=True, eq=False)
class Samples:
    """Draws from the predictive distribution of every row: an ensemble, or what a Bayesian model simulates.

    Parameters
    ----------
    draws : (n, m) numbers

    Notes
    -----
    Of F(y) the rank of y among the draws is known: with r of m draws below it, F(y) lies in r/(m+1) to (r+1)/(m+1),
    further if draws tie with it. These ranks are uniform if y and the draws come from one distribution. Quantiles lie
    on lines between the draws, the i-th at i/(m+1); there are none beyond 1/(m+1) and m/(m+1).

    Examples
    --------
    >>> forecast = Samples([[1.0, 2.0, 4.0]])
    >>> forecast.cells(np.array([3.0]))
    (array([0.5]), array([0.75]))
    """

    draws: Any
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _keep_index(self, self.draws)
        object.__setattr__(self, "draws", np.sort(_matrix(self.draws, "draws", "a column for each draw"), axis=1))

    def __len__(self) -> int:
        return int(self.draws.shape[0])

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        m = self.draws.shape[1]
        below = np.count_nonzero(self.draws < y[:, None], axis=1)
        upto = np.count_nonzero(self.draws <= y[:, None], axis=1)
        return below / (m + 1), (upto + 1) / (m + 1)

    def quantile(self, level: Any) -> Floats:
        levels, single = levels_of(level)
        least = 1 / (self.draws.shape[1] + 1)
        if (levels < least - 1e-9).any() or (levels > 1 - least + 1e-9).any():
            raise InputError(
                f"{self.draws.shape[1]} draws know the levels {least:.4g} to {1 - least:.4g}; {levels.min():g} to "
                f"{levels.max():g} was asked for.",
                hint="Draw more, or ask for levels between these.",
                argument="level",
                value=level,
            )
        found: Floats = np.quantile(self.draws, levels, axis=1, method="weibull").T
        return found[:, 0] if single else found

    def point(self) -> Floats:
        mean: Floats = self.draws.mean(axis=1)
        return mean

    def log_density(self, y: Floats) -> Floats:
        raise InputError(
            "Draws have no density, so there is no likelihood.",
            hint="Use crps, or Gaussian(draws.mean(axis=1), draws.std(axis=1)).",
            argument="forecast",
        )

    def crps(self, y: Floats) -> Floats:
        """CRPS of the draws' own distribution: E|X - y| - E|X - X'| / 2, each draw with the chance 1/m."""
        m = self.draws.shape[1]
        rank = np.arange(1, m + 1) - 0.5
        above = self.draws > y[:, None]
        found: Floats = 2 / m**2 * np.sum((self.draws - y[:, None]) * (m * above - rank), axis=1)
        return found

    def part(self, rows: Any) -> "Samples":
        return Samples(self.draws[rows], index=_some(self.index, rows))


@dataclass(frozen=True, eq=False)
class Stretched:
    """Another forecast moved and stretched about its median: quantile q becomes m + shift s + factor (q - m).

    m is the median and s the distance from it to the 84 % quantile, a standard deviation of a normal forecast.
    """

    base: Any
    factor: float
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.factor < math.inf:
            raise InputError(f"factor must be positive; it is {self.factor!r}.", argument="factor", value=self.factor)
        object.__setattr__(self, "base", as_forecast(self.base))
        refuse_discrete(self.base)

    @property
    def index(self) -> Any:
        return getattr(self.base, "index", None)

    @property
    def point_is_mean(self) -> bool:
        return is_mean(self.base)

    @cached_property
    def _middle(self) -> Floats:
        middle: Floats = self.base.quantile(0.5)
        return middle

    @cached_property
    def _moved(self) -> Floats:
        unit = self.base.quantile(_ONE_SD) - self._middle if self.shift else 0.0
        return self._middle + self.shift * unit

    def __len__(self) -> int:
        return len(self.base)

    def _back(self, y: Floats) -> Floats:
        return self._middle + (y - self._moved) / self.factor

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        cells: tuple[Floats, Floats] = self.base.cells(self._back(y))
        return cells

    def normal_score(self, y: Floats) -> Floats:
        return normal_scores(self.base, self._back(y))

    def moved(self, values: Floats) -> Floats:
        """What values of the base become; the last axis of the array is that of the rows."""
        found: Floats = self._moved + self.factor * (values - self._middle)
        return found

    def at_score(self, z: Floats) -> Floats:
        return self.moved(self.base.at_score(z).T).T

    def quantile(self, level: Any) -> Floats:
        return self.moved(self.base.quantile(level).T).T

    def point(self) -> Floats:
        return self.moved(self.base.point())

    def log_density(self, y: Floats) -> Floats:
        found: Floats = self.base.log_density(self._back(y)) - math.log(self.factor)
        return found

    def crps(self, y: Floats) -> Floats:
        found: Floats = self.factor * self.base.crps(self._back(y))
        return found

    def part(self, rows: Any) -> "Stretched":
        return replace(self, base=self.base.part(rows))


_ONE_SD = 0.8413447460685429  # the standard normal distribution function at 1


class Warp(Protocol):
    """A smooth rising map of normal scores."""

    def __call__(self, z: Floats) -> Floats: ...
    def inverse(self, z: Floats) -> Floats: ...
    def log_slope(self, z: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Warped:
    """Another forecast whose normal scores go through a map: precise however far in the tails an outcome lies.

    The distribution function must be known everywhere, and continuous: `Gaussian`, `Frozen`, or a repaired one of
    these. CRPS and means are computed from 999 quantiles.
    """

    base: Any
    warp: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", as_forecast(self.base))
        need_scores(self.base)

    @property
    def index(self) -> Any:
        return getattr(self.base, "index", None)

    def __len__(self) -> int:
        return len(self.base)

    def normal_score(self, y: Floats) -> Floats:
        score: Floats = self.warp(normal_scores(self.base, y))
        return score

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtr

        u: Floats = ndtr(self.normal_score(y))
        return u, u

    def at_score(self, z: Floats) -> Floats:
        found: Floats = self.base.at_score(self.warp.inverse(z))
        return found

    def quantile(self, level: Any) -> Floats:
        from scipy.special import ndtri

        levels, single = levels_of(level)
        found = self.at_score(ndtri(levels))
        return found[:, 0] if single else found

    def point(self) -> Floats:
        return _means(self)

    def log_density(self, y: Floats) -> Floats:
        density = self.base.log_density(y)
        possible = np.isfinite(density)
        # At the end of a bounded support the score is infinite: as far as scores go is near enough.
        z = np.where(possible, np.clip(normal_scores(self.base, y), -_FARTHEST, _FARTHEST), 0.0)
        warped = self.warp.log_slope(z) + 0.5 * (z**2 - self.warp(z) ** 2)
        found: Floats = np.where(possible, density + warped, density)
        return found

    def crps(self, y: Floats) -> Floats:
        return _crps(self, y)

    def part(self, rows: Any) -> "Warped":
        return replace(self, base=self.base.part(rows))


_GRID = (np.arange(999) + 0.5) / 999


def _means(forecast: Any) -> Floats:
    """Means of all rows, by many quantiles."""
    return _by_quantiles(forecast, lambda values, _: np.asarray(values.mean(axis=1)), np.zeros(len(forecast)))


def _crps(forecast: Any, y: Floats) -> Floats:
    """CRPS of all rows, by the pinball losses of many quantiles."""
    return _by_quantiles(
        forecast, lambda values, some: np.asarray(2 * pinball_losses(some, values, _GRID).mean(axis=1)), y
    )


def _by_quantiles(forecast: Any, of: Callable[[Floats, Floats], Floats], y: Floats) -> Floats:
    size = max(1, _CHUNK // _GRID.size)
    runs = [slice(first, first + size) for first in range(0, len(forecast), size)]
    return np.concatenate([of(forecast.part(run).quantile(_GRID), y[run]) for run in runs])


def normal_scores(forecast: Any, y: Floats) -> Floats:
    """For every outcome the standard normal value at the same level."""
    scores: Floats = forecast.normal_score(y)
    return scores


def refuse_discrete(forecast: Any) -> None:
    """What moves or maps a distribution would break one of whole numbers."""
    if getattr(forecast, "discrete", False):
        raise InputError(
            "Distributions of whole numbers cannot be moved or mapped: what comes out is none.",
            hint="Use QuantileRecalibrator.",
            argument="forecast",
        )


def need_scores(forecast: Any) -> None:
    """The distribution function must be known everywhere, and continuous."""
    refuse_discrete(forecast)
    inner = forecast
    while hasattr(inner, "base"):
        inner = inner.base
    if not hasattr(inner, "at_score"):
        raise InputError(
            f"{type(inner).__name__} forecasts are not known at every level: a map of levels has nothing to land on.",
            hint="Use QuantileRecalibrator or VarianceScaling.",
            argument="forecast",
        )


def is_mean(forecast: Any) -> bool:
    """Whether `point` gives means; of quantiles, and where means are infinite, it gives medians."""
    return bool(getattr(forecast, "point_is_mean", not isinstance(forecast, Quantiles)))


def as_forecast(forecast: Any, rows: int | None = None) -> Any:
    """The forecast, a frozen distribution of scipy wrapped; as many rows as there are outcomes."""
    found = Frozen(forecast, rows) if is_frozen(forecast) else forecast
    if not all(hasattr(found, name) for name in ("cells", "quantile", "part")):
        raise InputError(
            f"A forecast must be Gaussian, Quantiles, Samples or a frozen distribution of scipy.stats; it is "
            f"{type(forecast).__name__}.",
            hint="For example calibrant.regression.Gaussian(mean, sd).",
            argument="forecast",
        )
    if rows is not None and len(found) != rows:
        if len(found) == 1:
            return found.part(np.zeros(rows, dtype=np.int64))
        raise InputError(
            f"forecast has {len(found):,} rows, y_true has {rows:,}; they must be equally long.", argument="forecast"
        )
    return found


def read_outcomes(y_true: Column, forecast: Any, name: str = "y_true") -> tuple[Floats, Any]:
    """Outcomes as finite numbers, none missing, and the forecasts of as many rows."""
    column = _columns.finite(_columns.read(y_true, name, hint=ONE_COLUMN))
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError(f"{name} holds no rows; at least one is needed.", argument=name)
    for note in column.notes:  # most callers return a bare number, which cannot carry notes
        warnings.warn(note.text, CalibrantWarning, stacklevel=3)
    _columns.check_alignment({name: y_true, "forecast": forecast})
    return column.values, as_forecast(forecast, len(column))
