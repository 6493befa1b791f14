"""Reading outcomes and predictive distributions of the same rows."""

import warnings
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import CalibrantWarning, InputError
from calibrant._support.typing import Column, Floats
from calibrant.forecasts.frozen import Frozen, is_frozen
from calibrant.tables.mean_table import ONE_COLUMN
from calibrant.tables.rows import Rows

__all__ = ["as_forecast", "read_outcomes"]


def as_forecast(forecast: Any, rows: int | None = None) -> Any:
    """Return the forecast; frozen distributions of scipy are wrapped, and one row is repeated for all outcomes."""
    found = Frozen(forecast, rows) if is_frozen(forecast) else forecast
    if getattr(found, "kind", None) != "distribution":
        raise InputError(
            f"forecast must be Gaussian, Quantiles, Samples or a frozen distribution of scipy.stats; got "
            f"{type(forecast).__name__}.",
            hint="For example calibrant.regression.Gaussian(mean, sd).",
            argument="forecast",
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
    for note in used.notes:  # most callers return a number, which cannot carry notes
        warnings.warn(note.text, CalibrantWarning, stacklevel=3)
    return used.y.values, known
