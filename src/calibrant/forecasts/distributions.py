"""Predictive distributions of numeric outcomes, one per row.

Four kinds, by what is known of each distribution: mean and spread (`Gaussian`), the distribution function (`Frozen`,
for scipy), some quantiles (`Quantiles`), samples (`Samples`). Recalibrators return `Stretched` and `Warped`. A frozen
distribution of `scipy.stats` may be given wherever a forecast is taken.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, check_share
from calibrant._support.formatting import short_repr
from calibrant.forecasts.protocol import INTERVAL_LEVELS, Forecast
from calibrant.tables.mean_table import ONE_COLUMN

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def as_levels(level: Any) -> tuple[Floats, bool]:
    """Return levels as a new array, and whether one number was given; levels lie strictly between 0 and 1."""
    try:
        levels = np.array(level, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.array(np.nan)
    if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
        raise InputError(f"level must lie between 0 and 1; got {level!r}.", value=level)
    return np.atleast_1d(levels), levels.ndim == 0


def keep_index(forecast: Any, *columns: Any) -> None:
    """Keep the index of pandas objects, to compare it with that of the outcomes."""
    for column in columns:
        index = getattr(column, "index", None)
        if forecast.index is None and hasattr(index, "equals"):
            object.__setattr__(forecast, "index", index)


def some_index(index: Any, rows: Any) -> Any:
    return None if index is None else index[rows]


def per_row(values: Any, name: str) -> _columns.ColumnData:
    outside = np.atleast_1d(values) if np.ndim(values) == 0 else values
    column = _columns.finite(_columns.read(outside, name, hint=ONE_COLUMN))
    _columns.refuse_missing([column])
    return column


def _matrix(values: Any, name: str, columns: str) -> Floats:
    """Read finite numbers of shape (rows, columns)."""
    try:
        np.shape(values)
    except ValueError as error:
        raise InputError(f"{name} must have equally long rows.", argument=name) from error
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = _columns.as_array(values, name)
    if array.ndim != 2 or not array.size:
        raise InputError(f"{name} must have a row for each outcome and {columns}; got shape {array.shape}.")
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
class Gaussian(Forecast):
    """Normal distributions: a mean and a standard deviation for each row, or one for all rows.

    Parameters
    ----------
    mean, sd : column or float
        Means and standard deviations.
    index : column, optional
        Labels of the rows, to align them with the outcomes.

    See Also
    --------
    Quantiles, Samples, Frozen, Point

    Examples
    --------
    >>> forecast = Gaussian([10.0, 20.0], 2.0)
    >>> forecast.quantile(0.975).round(2)
    array([13.92, 23.92])
    """

    __repr__ = short_repr

    mean: Column
    sd: Column
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        mean, sd = per_row(self.mean, "mean"), per_row(self.sd, "sd")
        keep_index(self, self.mean, self.sd)
        _columns.check_alignment({"mean": self.mean, "sd": self.sd})
        if 1 not in (len(mean), len(sd)):
            _columns.check_lengths([mean, sd])
        hint = "A forecast without spread has no density; use a small standard deviation."
        sd.refuse(sd.values <= 0, "must be positive", hint=hint)
        if not len(mean) or not len(sd):
            raise InputError("A forecast must have at least one row; got none.", argument="mean")
        for name, values in zip(("mean", "sd"), np.broadcast_arrays(mean.values, sd.values), strict=True):
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return int(self.mean.size)

    @property
    def is_normal(self) -> bool:
        return True

    def spread(self) -> Floats:
        return np.asarray(self.sd)

    def at_score(self, z: Floats) -> Floats:
        """Return the quantiles at the levels of standard normal values, of shape (n, k).

        Parameters
        ----------
        z : array of k numbers
            Standard normal values.

        Returns
        -------
        array of shape (n, k)
        """
        return np.asarray(self.mean[:, None] + self.sd[:, None] * z)

    def at_row_score(self, z: Floats) -> Floats:
        return np.asarray(self.mean + self.sd * z)

    def normal_score(self, y: Floats) -> Floats:
        """Return the standard normal value at the same level: (y - mean) / sd.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
        """
        with np.errstate(over="ignore"):  # infinite if sd is tiny
            score: Floats = (y - self.mean) / self.sd
        return score

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        from scipy.special import ndtr

        u: Floats = ndtr(self.normal_score(y))
        return u, u

    def quantile(self, level: Any) -> Floats:
        from scipy.special import ndtri

        levels, single = as_levels(level)
        found = self.at_score(ndtri(levels))
        return found[:, 0] if single else found

    def point(self) -> Floats:
        return np.array(self.mean)

    def log_density(self, y: Floats) -> Floats:
        with np.errstate(over="ignore"):
            found: Floats = -0.5 * self.normal_score(y) ** 2 - np.log(self.sd) - _LOG_ROOT_2PI
        return found

    def crps(self, y: Floats) -> Floats:
        from scipy.special import ndtr

        z = self.normal_score(y)
        with np.errstate(over="ignore"):
            density = np.exp(-0.5 * z**2 - _LOG_ROOT_2PI)
        found: Floats = self.sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))
        far = np.isinf(z)  # there the limit for large z is exact
        return np.where(far, np.abs(y - self.mean) - self.sd / math.sqrt(math.pi), found) if far.any() else found

    def part(self, rows: Any) -> "Gaussian":
        return Gaussian(self.mean[rows], self.sd[rows], index=some_index(self.index, rows))


@dataclass(frozen=True, eq=False)
class Quantiles(Forecast):
    """Quantile forecasts: for each row the values below which the outcome lies with the probabilities `levels`.

    Parameters
    ----------
    levels : k numbers between 0 and 1, strictly increasing
    values : (n, k) numbers, not decreasing within a row
    index : column, optional
        Labels of the rows, to align them with the outcomes.

    See Also
    --------
    Samples, Gaussian, Frozen, Point

    Notes
    -----
    F(y) is known up to the two levels between which it lies; y is below a quantile q if y <= q. Quantiles at other
    levels are interpolated linearly; beyond the outermost levels they are undefined.

    Examples
    --------
    >>> forecast = Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0], [0.0, 5.0, 6.0]])
    >>> forecast.cells(np.array([3.0, 9.0]))
    (array([0.5, 0.9]), array([0.9, 1. ]))
    """

    __repr__ = short_repr

    levels: Column
    values: Any
    index: Any = field(default=None, repr=False, kw_only=True)

    @classmethod
    def from_intervals(
        cls, intervals: Mapping[float, tuple[Column, Column]], *, median: Column | None = None
    ) -> "Quantiles":
        """Return the quantile forecasts that central prediction intervals state.

        Parameters
        ----------
        intervals : mapping of level to (low, high)
            The lower and the upper end of each row. The ends of the central interval of level L are the quantiles at
            (1 - L) / 2 and (1 + L) / 2. Intervals of higher levels contain those of lower ones.
        median : column, optional
            Predicted medians.

        Returns
        -------
        Quantiles

        Examples
        --------
        >>> forecast = Quantiles.from_intervals({0.9: ([1.0, 0.0], [4.0, 6.0]), 0.5: ([2.0, 3.0], [3.0, 5.0])})
        >>> forecast.levels, forecast.values[0]
        (array([0.05, 0.25, 0.75, 0.95]), array([1., 2., 3., 4.]))
        """
        columns = _interval_columns(intervals)
        if median is not None:
            columns[0.5] = per_row(median, "median")
        given = [column for ends in intervals.values() for column in ends] + [median]
        _columns.check_lengths(list(columns.values()))
        _columns.check_alignment({str(place): column for place, column in enumerate(given) if column is not None})
        levels = sorted(columns)
        for lower, upper in pairwise(levels):
            _check_order(columns[lower], columns[upper])
        found = cls(levels, np.column_stack([columns[level].values for level in levels]))
        keep_index(found, *given)
        return found

    def __post_init__(self) -> None:
        if np.ndim(self.levels) > 1:
            raise InputError(
                f"levels must be one sequence of numbers between 0 and 1; got shape {np.shape(self.levels)}.",
                hint="Pass Quantiles(levels, values), in this order.",
            )
        levels, _ = as_levels(self.levels)
        values = _matrix(self.values, "values", "a column for each level")
        if not (np.diff(levels) > 0).all() or values.shape[1] != levels.size:
            raise InputError(
                f"levels must increase strictly, one for each column of values; got {levels.size} levels "
                f"({', '.join(f'{v:g}' for v in levels[:5])}{', ...' if levels.size > 5 else ''}) and "
                f"{values.shape[1]} columns."
            )
        falls = np.diff(values, axis=1) < 0
        if falls.any():
            row = int(np.argwhere(falls)[0, 0])
            raise InputError(
                f"values must not decrease within a row; {int(falls.any(axis=1).sum()):,} rows cross, the first is row "
                f"{row}.",
                hint="Sort them (np.sort(values, axis=1)), which never makes a forecast worse.",
                row=row,
            )
        keep_index(self, self.values)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def known_levels(self) -> Floats:
        return np.asarray(self.levels)

    @property
    def point_is_mean(self) -> bool:
        return False

    def interval_levels(self, wanted: Floats | None = None) -> Floats:
        if wanted is not None:
            return wanted
        q = self.levels
        return np.unique([round(float(1 - 2 * v), 12) for v in q if v < 0.5 - 1e-9 and np.isclose(q, 1 - v).any()])

    def simulate(self, y: Floats, rng: Generator) -> "tuple[Floats, Quantiles]":
        """Return simulated outcomes, with the probability of each cell between quantiles that the levels state.

        Within a cell the position is uniform; beyond the outermost quantiles, where no distribution is known, outcomes
        lie next to them. Metrics that depend on more than cells have no null distribution.

        Parameters
        ----------
        y : array of n numbers
            Observed outcomes; only ensembles use them.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        tuple of array and forecast
            Simulated outcomes, and the forecasts that belong to them.
        """
        rows, u = np.arange(len(self)), rng.random((2, len(self)))
        cell = np.searchsorted(self.levels, u[0])
        low, high = (self.values[rows, np.clip(cell + step, 0, self.levels.size - 1)] for step in (-1, 0))
        inside = low + u[1] * (high - low)
        below, above = np.nextafter(self.values[:, 0], -np.inf), np.nextafter(self.values[:, -1], np.inf)
        return np.where(cell == 0, below, np.where(cell == self.levels.size, above, inside)), self

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        known = np.concatenate([[0.0], self.levels, [1.0]])
        below = np.count_nonzero(self.values < y[:, None], axis=1)
        upto = np.count_nonzero(self.values <= y[:, None], axis=1)
        return known[below], known[np.maximum(below + 1, upto)]

    def quantile(self, level: Any) -> Floats:
        levels, single = as_levels(level)
        first, last = self.levels[0], self.levels[-1]
        slack = 1e-6  # levels may be float32
        if (levels < first - slack).any() or (levels > last + slack).any():
            raise InputError(
                f"level must lie between {first:g} and {last:g}, as those of the forecasts; got {levels.min():g} to "
                f"{levels.max():g}.",
                hint="Predict further quantiles, or use levels between these.",
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
        if not self.levels[0] <= 0.5 <= self.levels[-1]:
            raise InputError(
                "Quantiles must have the level 0.5, or levels on both sides of it, to be evaluated; got "
                f"{', '.join(f'{level:g}' for level in self.levels)}.",
                hint="Predict the median too. For these levels alone use coverage or pinball.",
                argument="forecast",
            )
        return self.quantile(0.5)

    def log_density(self, y: Floats) -> Floats:
        raise InputError(
            "Quantile forecasts have no density, so the likelihood is undefined.",
            hint="Use crps or pinball.",
            argument="forecast",
        )

    def crps(self, y: Floats) -> Floats:
        """Return twice the mean pinball loss over the levels, which approximates CRPS if levels are equally spaced.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
            In the unit of the outcomes; lower is better.
        """
        return np.asarray(2 * pinball_losses(y, self.values, self.levels).mean(axis=1))

    def part(self, rows: Any) -> "Quantiles":
        return Quantiles(self.levels, self.values[rows], index=some_index(self.index, rows))


def _interval_columns(intervals: Any) -> dict[float, _columns.ColumnData]:
    """Read the ends of central intervals; return them by their level as quantiles."""
    if not isinstance(intervals, Mapping) or not intervals:
        raise InputError(
            f"intervals must be a mapping of levels to (low, high), not empty; got {intervals!r}.",
            hint="For example {0.9: (low, high)}.",
        )
    columns: dict[float, _columns.ColumnData] = {}
    for level, ends in intervals.items():
        tail = round((1 - check_share("intervals", level)) / 2, 12)
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise InputError(
                f"intervals must hold a pair (low, high) for each level; got {type(ends).__name__} for {level:g}."
            )
        for quantile, column, end in zip((tail, round(1 - tail, 12)), ends, ("low", "high"), strict=True):
            columns[quantile] = per_row(column, f"{end} of level {level:g}")
    return columns


def _check_order(lower: _columns.ColumnData, upper: _columns.ColumnData) -> None:
    """Raise an error where an interval ends below its start, or leaves the interval of a higher level."""
    bad = lower.values > upper.values
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"intervals must be nested and not end below their start; {lower.name} exceeds {upper.name} in "
            f"{np.count_nonzero(bad):,} rows, the first is row {row} ({lower.values[row]:.6g} and "
            f"{upper.values[row]:.6g}).",
            hint="Sort the ends of each row, or check the levels.",
            row=row,
        )


def pinball_losses(y: Floats, values: Floats, levels: Floats) -> Floats:
    """Return the pinball loss of each quantile: level (y - q) if y > q, (1 - level) (q - y) otherwise."""
    away = y[:, None] - values
    return np.maximum(levels * away, (levels - 1) * away)


@dataclass(frozen=True, eq=False)
class Samples(Forecast):
    """Samples of the predictive distribution of each row: an ensemble, or simulations of a Bayesian model.

    Parameters
    ----------
    members : (n, m) numbers
    index : column, optional
        Labels of the rows, to align them with the outcomes.

    See Also
    --------
    Quantiles, Gaussian, Frozen, Point

    Notes
    -----
    F(y) is known up to the rank of y among the members: with r of m members below y, it lies between r/(m+1) and
    (r+1)/(m+1), or above if members equal y. The ranks are uniform if y and the members have one distribution.
    Quantiles are interpolated linearly, the i-th member at i/(m+1); beyond 1/(m+1) and m/(m+1) they are undefined.

    Examples
    --------
    >>> forecast = Samples([[1.0, 2.0, 4.0]])
    >>> forecast.cells(np.array([3.0]))
    (array([0.5]), array([0.75]))
    """

    __repr__ = short_repr

    members: Any
    index: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        keep_index(self, self.members)
        members = _matrix(self.members, "members", "a column for each member")
        object.__setattr__(self, "members", np.sort(members, axis=1))

    def __len__(self) -> int:
        return int(self.members.shape[0])

    @property
    def ensemble(self) -> Floats:
        return np.asarray(self.members)

    @property
    def known_levels(self) -> Floats:
        m = self.members.shape[1]
        return np.asarray(np.arange(1, m + 1) / (m + 1))

    def interval_levels(self, wanted: Floats | None = None) -> Floats:
        """Return the nearest levels of intervals from the i-th lowest to the i-th highest member.

        Parameters
        ----------
        wanted : array, optional
            Levels in (0, 1); by default the usual levels that the number of members allows.

        Returns
        -------
        array
            Rising levels.
        """
        m = self.members.shape[1]
        if wanted is None:
            widest = 1 - 2 / (m + 1)
            usual = [level for level in INTERVAL_LEVELS if level <= widest + 1e-9]
            wanted = np.array(usual or [max(widest, 1e-6)])
        rank = np.clip(np.rint((m + 1) * (1 - wanted) / 2), 1, max((m + 1) // 2 - (m % 2), 1))
        return np.unique(np.maximum(1 - 2 * rank / (m + 1), 1e-9))

    def simulate(self, y: Floats, rng: Generator) -> "tuple[Floats, Samples]":
        """Return the outcome and the members of each row in random roles: one of all m + 1 becomes the outcome.

        If the ensemble is calibrated, all m + 1 values are exchangeable, so replicates have the distribution of the
        data.

        Parameters
        ----------
        y : array of n numbers
            Observed outcomes; only ensembles use them.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        tuple of array and forecast
            Simulated outcomes, and the forecasts that belong to them.
        """
        rows, m = np.arange(len(self)), self.members.shape[1]
        everything = np.column_stack([self.members, y])
        place = rng.integers(0, m + 1, len(self))
        drawn = everything[rows, place]
        everything[rows, place] = y
        return drawn, Samples(everything[:, :m], index=self.index)

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        m = self.members.shape[1]
        below = np.count_nonzero(self.members < y[:, None], axis=1)
        upto = np.count_nonzero(self.members <= y[:, None], axis=1)
        return below / (m + 1), (upto + 1) / (m + 1)

    def quantile(self, level: Any) -> Floats:
        levels, single = as_levels(level)
        least = 1 / (self.members.shape[1] + 1)
        if (levels < least - 1e-9).any() or (levels > 1 - least + 1e-9).any():
            raise InputError(
                f"level must lie between {least:.4g} and {1 - least:.4g} for {self.members.shape[1]} members; got "
                f"{levels.min():g} to {levels.max():g}.",
                hint="Use more members, or levels between these.",
                value=level,
            )
        found: Floats = np.quantile(self.members, levels, axis=1, method="weibull").T
        return found[:, 0] if single else found

    def point(self) -> Floats:
        return np.asarray(self.members.mean(axis=1))

    def log_density(self, y: Floats) -> Floats:
        raise InputError(
            "Samples have no density, so the likelihood is undefined.",
            hint="Use crps, or Gaussian(members.mean(axis=1), members.std(axis=1)).",
            argument="forecast",
        )

    def crps(self, y: Floats) -> Floats:
        """Return the CRPS of the empirical distribution of the members: E|X - y| - E|X - X'| / 2.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
            In the unit of the outcomes; lower is better.
        """
        m = self.members.shape[1]
        rank = np.arange(1, m + 1) - 0.5
        above = self.members > y[:, None]
        return np.asarray(2 / m**2 * np.sum((self.members - y[:, None]) * (m * above - rank), axis=1))

    def part(self, rows: Any) -> "Samples":
        return Samples(self.members[rows], index=some_index(self.index, rows))


_MOST_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class Frozen(Forecast):
    """A frozen distribution of `scipy.stats` whose parameters are arrays with one value per row, or one for all rows.

    Continuous and discrete distributions. CRPS is computed by quadrature of quantiles (relative error about 1e-10 for
    smooth densities), for discrete distributions by summation.

    Parameters
    ----------
    distribution : frozen distribution of scipy.stats
        The distribution.
    rows : ndarray of int, optional
        Rows to use.

    See Also
    --------
    Gaussian, Quantiles, Samples, Forecast

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
                f"distribution must be a frozen distribution of scipy.stats, such as stats.gamma(shape); got "
                f"{self.distribution!r}."
            )
        shape = np.shape(self.distribution.median())
        if len(shape) > 1 or (shape and shape != (1,) and self.rows not in (None, *shape)):
            raise InputError(
                f"distribution must have parameters with one value per row{f' of {self.rows}' if self.rows else ''}; "
                f"got shape {shape}."
            )
        bad = ~np.isfinite(np.atleast_1d(self.distribution.median()))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"distribution must exist in each row; the median of row {row} is not finite.",
                hint="Check its parameters; scales must be positive.",
                row=row,
            )
        if self.is_discrete and (np.asarray(self.distribution.median()) % 1 != 0).any():
            raise InputError("A discrete distribution must not be shifted by a fraction.", argument="distribution")
        object.__setattr__(self, "rows", shape[0] if shape and shape != (1,) else (self.rows or 1))

    def __len__(self) -> int:
        assert self.rows is not None
        return self.rows

    @property
    def is_discrete(self) -> bool:
        """Whether the distribution is discrete."""
        return hasattr(self.distribution, "pmf")

    def _full(self, values: Any) -> Floats:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), (len(self),))

    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        high = self._full(self.distribution.cdf(y))
        if not self.is_discrete:
            return high, high
        return self._full(self.distribution.cdf(np.ceil(y) - 1)), high

    def normal_score(self, y: Floats) -> Floats:
        """Return the standard normal value at the same level, precise in both tails.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
        """
        from scipy.special import ndtri

        low, high = self.distribution.cdf(y), self.distribution.sf(y)
        return self._full(np.where(low <= 0.5, ndtri(low), -ndtri(high)))

    def at_score(self, z: Floats) -> Floats:
        """Return the quantiles at the levels of standard normal values, precise in both tails.

        Parameters
        ----------
        z : array of k numbers
            Standard normal values.

        Returns
        -------
        array of shape (n, k)
        """
        from scipy.special import ndtr

        d = self.distribution
        return np.column_stack([self._full(d.ppf(ndtr(v)) if v <= 0 else d.isf(ndtr(-v))) for v in z])

    def at_row_score(self, z: Floats) -> Floats:
        from scipy.special import ndtr

        d = self.distribution
        return self._full(np.where(z <= 0, d.ppf(ndtr(z)), d.isf(ndtr(-z))))

    def quantile(self, level: Any) -> Floats:
        levels, single = as_levels(level)
        found: Floats = np.column_stack([self._full(self.distribution.ppf(each)) for each in levels])
        return found[:, 0] if single else found

    @property
    def point_is_mean(self) -> bool:
        """Whether all rows have a mean; otherwise `point` returns medians."""
        return bool(np.isfinite(self.distribution.mean()).all())

    def spread(self) -> Floats:
        found = self._full(self.distribution.std())
        return found if np.isfinite(found).all() else super().spread()

    def point(self) -> Floats:
        return np.array(self._full(self.distribution.mean() if self.point_is_mean else self.distribution.median()))

    def log_density(self, y: Floats) -> Floats:
        d = self.distribution
        return self._full(d.logpmf(y) if self.is_discrete else d.logpdf(y))

    def crps(self, y: Floats) -> Floats:
        return self._crps_by_sums(y) if self.is_discrete else self._crps_by_quadrature(y)

    def _crps_by_quadrature(self, y: Floats) -> Floats:
        """Integrate twice the pinball loss over levels, split at F(y), so that both parts are smooth."""
        d = self.distribution
        below, above = self._full(d.cdf(y)), self._full(d.sf(y))
        total, end = np.zeros(len(self)), np.zeros(len(self))
        for step, (place, rest, weight) in enumerate(zip(*tanh_sinh(), strict=True)):
            # Levels below F(y) are below * place, those above it above * place from the other end. Each quantile is
            # computed from the nearer end.
            low, low_rest = below * place, above + below * rest
            high, high_rest = above * place, below + above * rest
            under = y - np.where(low <= 0.5, d.ppf(low), d.isf(low_rest))
            over = np.where(high <= 0.5, d.isf(high), d.ppf(high_rest)) - y
            under = 2 * weight * below**2 * place * np.where((below > 0) & np.isfinite(under), under, 0.0)
            over = 2 * weight * above**2 * place * np.where((above > 0) & np.isfinite(over), over, 0.0)
            total += under + over
            end = under + over if step == 0 else end
        # If the outermost piece is not negligible, the integral diverges: tails as heavy as those of Levy.
        return np.where(end > 1e-3 * total, np.inf, total)

    def _crps_by_sums(self, y: Floats) -> Floats:
        """Integrate (F(x) - 1{x >= y})^2, which is constant between whole numbers."""
        d = self.distribution
        first, last = self._ends()
        inside = np.clip(y, first, last)
        steps = float((last - first).max())
        total = np.abs(y - inside)
        for step in range(int(steps)):
            x = first + step
            share = self._full(d.cdf(x))
            # The outcome may lie between x and x + 1: the integrand differs left and right of it.
            left = np.clip(inside - x, 0.0, 1.0)
            total += np.where(x < last, left * share**2 + (1 - left) * (1 - share) ** 2, 0.0)
        return total

    def _ends(self) -> tuple[Floats, Floats]:
        """Return whole numbers beyond which the probability is negligible, found by doubling steps."""
        middle, d = self._full(self.distribution.median()), self.distribution
        ends = []
        for side, left in ((-1, d.cdf), (1, d.sf)):
            reach = 1
            while (self._full(left(middle + side * reach)) > 1e-13).any():
                reach *= 2
                if reach > _MOST_STEPS:
                    raise InputError(
                        f"CRPS of discrete distributions must need at most {_MOST_STEPS:,} terms; got more.",
                        hint="Use Samples or Quantiles.",
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
    """Return whether a value is a frozen distribution of `scipy.stats`."""
    return all(hasattr(value, name) for name in ("dist", "args", "kwds", "cdf", "ppf", "median"))


def tanh_sinh() -> tuple[Floats, Floats, Floats]:
    """Return nodes, 1 - nodes, and weights of double-exponential quadrature over (0, 1), for singular ends."""
    t = np.arange(-32, 33) / 10
    inner = 0.5 * math.pi * np.sinh(t)
    places = 1 / (1 + np.exp(-2 * inner))
    weights = 0.1 * 0.25 * math.pi * np.cosh(t) / np.cosh(inner) ** 2
    return places, 1 / (1 + np.exp(2 * inner)), weights
