"""Reading outcomes and predictive distributions of the same rows."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, Note, warn_notes
from calibrant.forecasts.distributions import Frozen, is_frozen
from calibrant.forecasts.protocol import Forecast
from calibrant.tables.mean_table import ONE_COLUMN
from calibrant.tables.rows import Missing, Rows, TableReader, declared_kind


def as_forecast(forecast: Any, rows: int | None = None) -> Any:
    """Return the forecast; frozen distributions of scipy are wrapped, and one row is repeated for all outcomes."""
    found = Frozen(forecast, rows) if is_frozen(forecast) else forecast
    if declared_kind(found) != Forecast.kind:
        raise InputError(
            f"forecast must be Gaussian, Quantiles, Samples, Poisson, NegativeBinomial or a frozen distribution of "
            f"scipy.stats; got "
            f"{type(forecast).__name__}.",
            hint="For example calibrant.regression.Gaussian(mean, sd).",
        )
    if rows == 0:
        raise InputError("y_true and forecast hold no rows; at least one is needed.", argument="y_true")
    return found.part(np.zeros(rows, dtype=np.int64)) if rows is not None and len(found) == 1 else found


def read_outcomes(y_true: Column, forecast: Any, name: str = "y_true") -> tuple[Floats, Any]:
    """Read finite outcomes and the forecasts of the same rows; missing outcomes are an error."""
    known = as_forecast(forecast, len(_columns.read(y_true, name, hint=ONE_COLUMN)))
    rows = Rows.read(y_true, {"forecast": known}, outcome=name, hint=ONE_COLUMN)
    _columns.refuse_missing(rows.columns)
    used = rows.check(_columns.finite, _columns.finite).select()
    used.forecasts[0].check_outcomes(used.y.values)
    warn_notes(used.notes, stacklevel=3)  # most callers return a number, which cannot carry notes
    return used.y.values, known


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

    kind: ClassVar[str] = "distribution"

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
        used.forecasts[-1].check_outcomes(used.y.values)
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
read_forecast_table: TableReader[ForecastTable] = TableReader(ForecastTable)
