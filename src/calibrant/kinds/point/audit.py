"""Rows of point predictions in an audit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.columns import ColumnData
from calibrant.forecasts.predictions import Point
from calibrant.kinds.residuals import assess_numbers
from calibrant.results.audit import ResidualTerms
from calibrant.tables.mean_table import ONE_COLUMN, check_means
from calibrant.tables.rows import Rows

TERMS = ResidualTerms("mean_error", "the prediction", is_share=False)
# The features that describe the forecast, and the options that not all kinds have.
FEATURES: tuple[str, ...] = ("prediction",)
OPTIONS: tuple[str, ...] = ()
READING: Mapping[str, Any] = {"hint": ONE_COLUMN}


assess = assess_numbers


def residual_terms(prediction: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return the squared residuals as their variance, and their change by a shift of the prediction."""
    return residual**2, np.ones(prediction.size)


def forecast_column(forecast: Any, classes: Sequence[Any] | None) -> tuple[Any, Sequence[Any]]:
    """Return the column of predictions; it has no classes."""
    return (forecast.y_pred if isinstance(forecast, Point) else forecast), ()


def batch_forecast(columns: Sequence[ColumnData]) -> Any:
    """Return the predictions of a batch of rows."""
    return columns[0]


def check(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    """Return validated rows, and the columns that describe the forecast."""
    used = check_means(rows)
    return used, [used.forecasts[0]]
