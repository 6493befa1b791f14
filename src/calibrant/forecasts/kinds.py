"""The kind of a forecast: binary, multiclass, labels, point or distribution."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.forecasts.distributions import is_frozen
from calibrant.tables.mean_table import MeanTable
from calibrant.tables.rows import declared_kind

__all__ = ["forecast_kind"]


def forecast_kind(y_true: Any, forecast: Any) -> str:
    """Return the kind of a forecast: declared by its type, or given by its dimensions; values are not looked at.

    >>> forecast_kind([0, 1], [0.2, 0.7]), forecast_kind([0, 1], [[0.8, 0.2], [0.3, 0.7]])
    ('binary', 'multiclass')
    """
    kind = declared_kind(forecast)
    if kind is not None:
        return kind
    if isinstance(y_true, MeanTable):
        return "point"
    if forecast is None or isinstance(forecast, Mapping):
        return "binary"
    if is_frozen(forecast):
        return "distribution"
    return "multiclass" if _n_columns(forecast) > 1 else "binary"


def _n_columns(forecast: Any) -> int:
    if hasattr(type(forecast), "columns"):
        return len(forecast.columns)
    shape = getattr(forecast, "shape", None)
    if shape is None:
        try:
            shape = np.shape(forecast)
        except ValueError:  # rows of unequal length: the reader states the error
            return 1
    return int(shape[1]) if len(shape) == 2 else 1
