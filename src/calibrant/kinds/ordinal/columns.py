"""Probabilities of ordered classes as columns of files: one column per class, from the lowest to the highest."""

from collections.abc import Mapping
from typing import Any

from calibrant._support.errors import Argument, InputError
from calibrant.kinds.columns import Fit, ForecastColumns, Model, NamesOfColumns, Option
from calibrant.kinds.multiclass.columns import (
    check_class_probabilities,
    class_arguments,
    columns_of_classes,
    find_class_models,
    model_columns,
)

_OPTION = "ordinal_score"


def _find_models(option: str, given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    models = find_class_models(option, given, names)
    for model in models:
        if len(model.keys) < 3:
            raise InputError(
                Argument(option) + f" must name at least three ordered classes; got {', '.join(model.keys)}.",
                hint="For the probability of one event use " + Argument("p") + ".",
            )
    return models


def _forecast(option: str, model: Model, values: Any) -> Any:
    from calibrant.forecasts.predictions import Ordinal

    return Ordinal(values, classes=list(model.keys))


def _metrics(y: Any, proba: Any, arguments: Mapping[str, Any]) -> dict[str, float | None]:
    from calibrant.metrics.multiclass import MulticlassLogLoss
    from calibrant.metrics.ordinal import RPS
    from calibrant.tables.class_table import ClassTable

    table = ClassTable.from_arrays(y, proba, **arguments)
    return {"RPS": RPS().value(table), "log loss": MulticlassLogLoss().value(table)}


COLUMNS = ForecastColumns(
    noun="probabilities of ordered classes",
    options=(
        Option(
            _OPTION,
            "Probabilities of ordered classes, lowest first: once per class, or one pattern such as 'p_*'.",
            metavar="LABEL=COLUMN",
        ),
    ),
    outcome="label",
    check=check_class_probabilities,
    forecast=_forecast,
    find_models=_find_models,
    is_one_column=False,
    headline_has_reason=False,
    fit=Fit(
        ("cumulative", "vector", "matrix", "dirichlet"),
        _metrics,
        arguments=class_arguments,
        kinds=("ordinal", "multiclass"),
    ),
    applied_columns=columns_of_classes,
    model_columns=model_columns,
)
