"""Point predictions as columns of files."""

from collections.abc import Mapping
from typing import Any

from calibrant.kinds.columns import Fit, ForecastColumns, Model, Option, check_numbers


def _forecast(option: str, model: Model, values: Any) -> Any:
    from calibrant.forecasts.predictions import Point

    return Point(values)


def _metrics(y: Any, prediction: Any, weights: Mapping[str, Any]) -> dict[str, float | None]:
    from calibrant.metrics.point import mae, mse

    return {"MSE": mse(y, prediction, **weights), "MAE": mae(y, prediction, **weights)}


COLUMNS = ForecastColumns(
    noun="point predictions",
    options=(Option("point", "Point predictions of a number."),),
    outcome="number",
    check=check_numbers,
    forecast=_forecast,
    special_options=("relative_margin",),
    margin=(
        "point predictions 0.05",
        "Point predictions: bias by bin in standard deviations of the outcome; by default for non-negative outcomes "
        "also 5 % of their mean.",
    ),
    audited=lambda model: _forecast("point", model, model.columns[0]),
    fit=Fit(("linear", "isotonic", "local", "cost"), _metrics, registry="RECALIBRATORS", number_format=".5g"),
    model_columns=lambda calibrator: (["prediction"], ["prediction"]),
)
