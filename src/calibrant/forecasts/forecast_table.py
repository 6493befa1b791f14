"""`ForecastTable`: outcomes and predictive distributions of the same rows."""

from dataclasses import dataclass, replace
from typing import Any

from numpy.random import Generator

from calibrant._support import columns as _columns
from calibrant._support.errors import Note
from calibrant._support.typing import Column, Floats
from calibrant.forecasts.reading import as_forecast
from calibrant.tables.mean_table import ONE_COLUMN
from calibrant.tables.rows import Missing, Rows
from calibrant.tables.table_functions import TableReader

__all__ = ["ForecastTable", "read_forecast_table"]


@dataclass(frozen=True, eq=False, repr=False)
class ForecastTable:
    """Outcomes and predictive distributions of the same rows, as metrics of distributions measure them.

    Attributes
    ----------
    y : ndarray
        Outcomes.
    forecast : Forecast
        One distribution per row.
    notes : tuple of Note
    n_in, n_dropped : int
        Number of rows read, and of those that were dropped because a value is missing.

    See Also
    --------
    Forecast, pit, coverage

    Examples
    --------
    >>> from calibrant import Gaussian
    >>> ForecastTable.from_arrays([10.0, 24.0], Gaussian([10.0, 20.0], 2.0))
    ForecastTable(2 rows, Gaussian)
    """

    y: Floats
    forecast: Any
    notes: tuple[Note, ...] = ()
    n_in: int = 0
    n_dropped: int = 0

    @classmethod
    def from_arrays(cls, y_true: Column, forecast: Any, *, missing: Missing = "raise") -> "ForecastTable":
        """Read rows.

        Parameters
        ----------
        y_true : column of finite numbers
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
            Matched with the outcomes by position; one distribution may stand for all rows.
        missing : {"raise", "drop"}
            How rows with a missing outcome are treated: an error, or dropped and counted.

        Returns
        -------
        ForecastTable
        """
        known = as_forecast(forecast, len(_columns.read(y_true, "y_true", hint=ONE_COLUMN)))
        return cls.from_rows(Rows.read(y_true, {"forecast": known}, missing=missing, hint=ONE_COLUMN))

    @classmethod
    def from_rows(cls, rows: Rows) -> "ForecastTable":
        """Validate rows of outcomes and forecasts (the last of them), and return their table.

        Parameters
        ----------
        rows : Rows
            Columns of outcomes and forecasts.

        Returns
        -------
        ForecastTable
        """
        used = rows.check(_columns.finite, _columns.finite).select()
        return cls(used.y.values, used.forecasts[-1], used.notes, used.n_in, used.n_dropped)

    def __len__(self) -> int:
        return self.y.size

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self)

    def simulate(self, rng: Generator) -> "ForecastTable":
        """Return a replicate in which the forecasts are calibrated.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        ForecastTable
        """
        y, forecast = self.forecast.simulate(self.y, rng)
        return replace(self, y=y, forecast=forecast)

    def __repr__(self) -> str:
        return f"ForecastTable({len(self):,} rows, {type(self.forecast).__name__})"


# Reads the table of a metric of predictive distributions.
read_forecast_table = TableReader(ForecastTable, ForecastTable.from_arrays, "distribution")
