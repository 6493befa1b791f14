"""`Forecast`: the protocol of predictive distributions, one distribution per row."""

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.random import Generator

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError

F = TypeVar("F", bound="Forecast")

# Levels of the central intervals that are reported where a forecast knows any.
INTERVAL_LEVELS = (0.5, 0.8, 0.9, 0.95)


class Forecast(Protocol):
    """Predictive distributions of numeric outcomes, one per row.

    A class of your own that derives from this one and has the abstract methods can be given wherever a forecast is
    taken. Properties declare what is known of the distributions; the defaults are those of a continuous distribution
    function that is known everywhere, with means.

    See Also
    --------
    Gaussian, Quantiles, Samples, Frozen

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import Gaussian
    >>> forecast = Gaussian([1.0, 2.0], 0.5)
    >>> forecast.point(), forecast.quantile(0.9).round(2)
    (array([1., 2.]), array([1.64, 2.64]))
    >>> low, high = forecast.cells(np.array([1.0, 2.5]))  # equal: the distribution is known and continuous
    >>> high.round(2)
    array([0.5 , 0.84])
    """

    kind: ClassVar[str] = "distribution"

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def cells(self, y: Floats) -> tuple[Floats, Floats]:
        """Return bounds of F(y) for each row; they are equal if F is continuous and known.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        tuple of two arrays
            Lower and upper bound, one per row.
        """

    @abstractmethod
    def quantile(self, level: Any) -> Floats:
        """Return the quantiles of each row: of shape (n,) for one level, (n, k) for k levels.

        Parameters
        ----------
        level : float or sequence of k floats
            Levels in (0, 1).

        Returns
        -------
        array
            Shape (n,) for one level, (n, k) for a sequence.
        """

    @abstractmethod
    def point(self) -> Floats:
        """Return the mean of each row, or the median if no mean is known.

        Returns
        -------
        array of shape (n,)
        """

    @abstractmethod
    def log_density(self, y: Floats) -> Floats:
        """Return the logarithm of the density (of the probability, for discrete distributions) at each outcome.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
        """

    @abstractmethod
    def crps(self, y: Floats) -> Floats:
        """Return the continuous ranked probability score of each row.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.

        Returns
        -------
        array of shape (n,)
            In the unit of the outcomes; lower is better.
        """

    @abstractmethod
    def part(self: F, rows: Any) -> F:
        """Return the forecasts of some of the rows: a slice, a mask, or their positions.

        Parameters
        ----------
        rows : slice or array
            Slice, mask or positions.

        Returns
        -------
        forecast
            Of the same type.
        """

    @property
    def known_levels(self) -> Floats | None:
        """Levels at which quantiles are known: those of `Quantiles`, the ranks of `Samples`; None if all are known."""
        return None

    @property
    def ensemble(self) -> Floats | None:
        """Members of an ensemble, (n, m) and rising in each row; None for other forecasts."""
        return None

    @property
    def point_is_mean(self) -> bool:
        """Whether `point` returns means, not medians."""
        return True

    @property
    def is_normal(self) -> bool:
        """Whether each distribution is normal, with the attributes `mean` and `sd`."""
        return False

    @property
    def is_discrete(self) -> bool:
        """Whether the distributions are discrete."""
        return False

    def interval_levels(self, wanted: Floats | None = None) -> Floats:
        """Return the levels of central intervals whose coverage can be measured, near those that are wanted.

        By default all that a forecast knows; none for quantiles without two that are the ends of a central interval.

        Parameters
        ----------
        wanted : array, optional
            Levels in (0, 1).

        Returns
        -------
        array
            Levels in (0, 1).
        """
        return np.array(INTERVAL_LEVELS) if wanted is None else wanted

    def spread(self) -> Floats:
        """Return how wide each distribution is: a number that orders the rows by their predicted width.

        By default the width of the widest of the usual central intervals.

        Returns
        -------
        array of shape (n,)
        """
        level = float(self.interval_levels().max())
        low, high = self.quantile([(1 - level) / 2, (1 + level) / 2]).T
        return np.asarray(high - low)

    def check_outcomes(self, y: Floats) -> None:
        """Raise an error where an outcome is impossible for every distribution of this type, such as a negative count.

        Parameters
        ----------
        y : array of n numbers
            Outcomes.
        """
        del y  # every number is possible

    def at_row_score(self, z: Floats) -> Floats:
        """Return the quantile of each row at the level of its own standard normal value.

        Parameters
        ----------
        z : array of n numbers
            Standard normal value of each row.

        Returns
        -------
        array of shape (n,)
        """
        raise InputError(
            f"forecast must have a known distribution function to simulate outcomes; got {type(self).__name__}.",
            hint="Use calibrant.interval.",
        )

    def simulate(self: F, y: Floats, rng: Generator) -> tuple[Floats, F]:
        """Return outcomes and forecasts of a replicate, in which the forecasts are calibrated.

        Outcomes are simulated from the forecasts. (The members of an ensemble and the outcome are exchanged.)

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
        return self.at_row_score(rng.standard_normal(len(self))), self

    def __getitem__(self: F, rows: Any) -> F:
        """Return the forecasts of some of the rows: one position, a slice, a mask, or several positions."""
        return self.part(row_positions(rows, len(self)))

    # Rows are selected, not iterated: NumPy would read a forecast as a nested sequence.
    __iter__: ClassVar[None] = None


def row_positions(rows: Any, size: int) -> Any:
    """Return a slice, a mask or positions of some of the rows; one position becomes a list of one."""
    if isinstance(rows, slice):
        return rows
    found = np.atleast_1d(np.asarray(rows))
    return np.arange(size)[found] if found.size else np.empty(0, dtype=np.int64)


def select_rows(column: Any, rows: Any) -> Any:
    """Return some of the rows of a column; a pandas Series stays one, with its index."""
    selected = row_positions(rows, len(column))
    if hasattr(column, "iloc"):
        return column.iloc[selected]
    return np.asarray(column)[selected] if isinstance(column, (list, tuple)) else column[selected]
