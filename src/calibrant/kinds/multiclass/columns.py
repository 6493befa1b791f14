"""Class probabilities as columns of files: one column per class."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calibrant._support.errors import Argument, InputError
from calibrant.kinds.columns import (
    Fit,
    ForecastColumns,
    Model,
    NamesOfColumns,
    Option,
    keyed_models,
    parse_label,
)

if TYPE_CHECKING:
    from calibrant.kinds.file_rows import FileRows


def find_class_models(option: str, given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    """Return models of the probabilities of at least two classes, whose keys are the text of the classes."""
    models = keyed_models(option, given, names, name="class probabilities", form="LABEL=COLUMN", key="class", read=str)
    for model in models:
        if len(model.keys) < 2:
            raise InputError(
                Argument(option) + f" must name at least two classes; got {model.keys[0]!r} alone.",
                hint="For the probability of one event use " + Argument("p") + ".",
                value=model.keys[0],
            )
    return models


def check_class_probabilities(rows: "FileRows") -> "FileRows":
    """Check the probabilities, and replace the text of classes by labels of the outcomes."""
    from calibrant._support.columns import numbers, scores
    from calibrant.kinds.file_rows import text_as_labels

    if rows.is_text:
        rows = replace(rows, y=text_as_labels([rows.y])[0])
    rows = replace(rows, models=_with_labels(rows))
    for name in rows.forecast_names:
        scores(rows.columns[name], squash="a softmax")
    return rows.map_forecasts(numbers)


def class_arguments(model: Model) -> dict[str, Any]:
    """Return the argument `classes`."""
    return {"classes": list(model.keys)}


def _with_labels(rows: "FileRows") -> tuple[Model, ...]:
    """Return the models with labels of the outcomes as classes, all in the order of the first model."""
    from calibrant._support.columns import codes

    first, *others = rows.models
    for model in others:
        if set(model.keys) != set(first.keys):
            raise InputError(
                f"All models must have the same classes; {first.name!r} has {', '.join(first.keys)}, "
                f"{model.name!r} has {', '.join(model.keys)}.",
                argument=rows.option,
            )
    labels = {key: _label(key, rows.y.values.dtype.kind) for key in first.keys}
    if len(set(labels.values())) < len(labels):
        raise InputError(
            f"The classes must be different labels; got {', '.join(labels)}, some of which are the same number.",
            argument=rows.option,
        )
    codes(rows.y, list(labels.values()), rows.option)
    columns = [dict(zip(model.keys, model.columns, strict=True)) for model in rows.models]
    return tuple(
        Model(model.name, tuple(column[key] for key in labels), tuple(labels.values()))
        for model, column in zip(rows.models, columns, strict=True)
    )


def _label(text: str, kind: str) -> Any:
    """Return a class as a label of outcomes of a kind of type: a number or truth value where they are such, or text."""
    label = parse_label(text)
    return text if label is None or kind not in ("b" if isinstance(label, bool) else "iuf") else label


def _metrics(y: Any, proba: Any, arguments: Mapping[str, Any]) -> dict[str, float | None]:
    from calibrant.metrics.multiclass import MulticlassBrier, MulticlassLogLoss
    from calibrant.tables.class_table import ClassTable

    table = ClassTable.from_arrays(y, proba, **arguments)
    return {"Brier score": MulticlassBrier().value(table), "log loss": MulticlassLogLoss().value(table)}


def _in_order_of_labels(proba: Any, y: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the columns in the order of the sorted labels of the outcomes."""
    import numpy as np

    labels, classes = np.unique(y).tolist(), arguments["classes"]
    missing = [label for label in classes if label not in labels]
    if missing:
        raise InputError(
            Argument("method") + f" auto needs rows of each class; got none of {missing[0]!r}.", value=missing[0]
        )
    return proba[:, [classes.index(label) for label in labels]]


def columns_of_classes(calibrator: Any, option: str, model: Model) -> list[str]:
    """Return the columns in the order of the calibrator's classes."""
    positions = {label: position for position, label in enumerate(calibrator.classes_.tolist())}
    columns: dict[int, str] = {}
    for key, column in zip(model.keys, model.columns, strict=True):
        position = positions.get(key, positions.get(parse_label(key)))
        if position is None:
            classes = ", ".join(map(str, positions))
            raise InputError(
                Argument(option) + f" must name classes of the calibrator, which are {classes}; got {key!r}.", value=key
            )
        columns[position] = column
    missing = [str(label) for label, position in positions.items() if position not in columns]
    if missing:
        raise InputError(Argument(option) + f" must name each class of the calibrator; got none of {missing[0]!r}.")
    return [columns[position] for position in sorted(columns)]


def model_columns(calibrator: Any) -> tuple[list[str], list[str]]:
    """Return the columns that a calibrator takes and returns: one per class."""
    names = [str(label) for label in calibrator.classes_.tolist()]
    return names, names


COLUMNS = ForecastColumns(
    noun="class probabilities",
    options=(
        Option(
            "class_score",
            "Probabilities of classes: once per class, or one pattern such as 'p_*'; * is the label.",
            metavar="LABEL=COLUMN",
        ),
    ),
    outcome="label",
    check=check_class_probabilities,
    forecast=lambda option, model, values: values,
    find_models=find_class_models,
    is_one_column=False,
    arguments=class_arguments,
    diagram=("top-label ACE", "mean top-label probability", "accuracy"),
    headline_has_reason=False,
    audited=lambda model: dict(zip(model.keys, model.columns, strict=True)),
    fit=Fit(
        (
            "softmax_temperature",
            "structured",
            "vector",
            "matrix",
            "dirichlet",
            "spline",
            "one_vs_rest",
            "pairwise",
            "auto",
        ),
        _metrics,
        sorted_columns=_in_order_of_labels,
        arguments=class_arguments,
    ),
    applied_columns=columns_of_classes,
    model_columns=model_columns,
)
