"""Rows of point predictions in an audit."""

from calibrant.forecasts.predictions import Point
from calibrant.kinds.audit import AuditedForecasts, assess_numbers, described_by_itself, squared_terms
from calibrant.results.audit import ResidualTerms
from calibrant.tables.mean_table import ONE_COLUMN, check_means

AUDIT = AuditedForecasts(
    ResidualTerms("mean_error", "the prediction", is_share=False),
    features=("prediction",),
    check=described_by_itself(check_means),
    assess=assess_numbers,
    residual_terms=squared_terms,
    reading={"hint": ONE_COLUMN},
    forecast_column=lambda forecast, classes: (forecast.y_pred if isinstance(forecast, Point) else forecast, ()),
)
