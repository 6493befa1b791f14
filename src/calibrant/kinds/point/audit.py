"""Rows of point predictions in an audit."""

from collections.abc import Sequence
from typing import Any

from calibrant._support.columns import ColumnData
from calibrant.forecasts.predictions import Point
from calibrant.kinds.residuals import AuditedForecasts, assess_numbers, squared_terms
from calibrant.results.audit import ResidualTerms
from calibrant.tables.mean_table import ONE_COLUMN, check_means
from calibrant.tables.rows import Rows


def _check(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    used = check_means(rows)
    return used, [used.forecasts[0]]


AUDIT = AuditedForecasts(
    ResidualTerms("mean_error", "the prediction", is_share=False),
    features=("prediction",),
    check=_check,
    assess=assess_numbers,
    residual_terms=squared_terms,
    reading={"hint": ONE_COLUMN},
    forecast_column=lambda forecast, classes: (forecast.y_pred if isinstance(forecast, Point) else forecast, ()),
)
