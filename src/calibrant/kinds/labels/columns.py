"""Predicted classes as columns of files."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant.kinds.columns import ForecastColumns, Model, Option

if TYPE_CHECKING:
    from calibrant.kinds.file_rows import FileRows


def _check(rows: "FileRows") -> "FileRows":
    """Read labels that are text as numbers if those of the outcomes and of all forecasts are."""
    from calibrant.kinds.file_rows import text_as_labels

    if not rows.is_text:
        return rows
    names = rows.forecast_names
    y, *forecasts = text_as_labels([rows.y, *(rows.columns[name] for name in names)])
    return replace(rows, y=y, columns={**rows.columns, **dict(zip(names, forecasts, strict=True))})


def _forecast(option: str, model: Model, values: Any) -> Any:
    from calibrant.forecasts.predictions import Labels

    return Labels(values)


COLUMNS = ForecastColumns(
    noun="predicted classes",
    options=(Option("predicted_label", "Predicted classes."),),
    outcome="label",
    check=_check,
    forecast=_forecast,
    holds_labels=True,
    margin=("labels 0.01", "Labels: difference of a class proportion."),
)
