"""What comes as a forecast, and the outcomes beside it, read and checked."""

import warnings
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import CalibrantWarning, InputError
from calibrant._support.typing import Column, Floats
from calibrant.forecasts.frozen import Frozen, is_frozen
from calibrant.tables.mean_table import ONE_COLUMN

__all__ = ["as_forecast", "read_outcomes"]


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
