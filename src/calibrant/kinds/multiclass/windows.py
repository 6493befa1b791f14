"""Monitor: each class is an event with its predicted probability; the status shows the most probable class."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import Argument, InputError
from calibrant.kinds.windows import EventRows, as_rows
from calibrant.tables.class_table import ClassProbabilities, ClassTable
from calibrant.tables.rows import Rows

SETTINGS = ("classes",)
FORECASTS = "class probabilities"
EXAMPLE = "classes=[...]"
RATES = ("mean confidence", "accuracy", "most probable class")
TAKES: tuple[str, ...] = ()

_MOST_CLASSES = 1_000


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes: text or whole numbers, which the store can hold."""
    classes = given.get("classes")
    if classes is None:
        raise InputError(
            Argument("classes")
            + f" must be given for the kind {given.get('kind')!r}: the class of each column of probabilities."
        )
    names = [name.item() if hasattr(name, "item") else name for name in _columns.check_classes(classes, "classes")]
    wrong = [name for name in names if isinstance(name, bool) or not isinstance(name, (str, int))]
    if wrong or len(names) > _MOST_CLASSES:
        got = repr(wrong[0]) if wrong else f"{len(names):,}"
        raise InputError(
            Argument("classes") + f" must be at most {_MOST_CLASSES:,} labels, text or whole numbers; got {got}.",
            value=classes,
        )
    return {"classes": tuple(names)}


def labels(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the classes."""
    return tuple(settings["classes"])


def event_text(label: Any) -> str:
    """Return a class in words."""
    return f"class {label}"


def read_rows(y: Any, forecast: Any, settings: Mapping[str, Any], pos_label: object = None) -> EventRows:
    """Read labels and class probabilities."""
    table = read_table(y, forecast, settings)
    events = {label: as_rows(table.code == i, table.proba[:, i]) for i, label in enumerate(settings["classes"])}
    return event_rows(table, events)


def read_table(y: Any, forecast: Any, settings: Mapping[str, Any]) -> ClassTable:
    """Return labels and class probabilities, whose columns are in the order of the classes of the settings."""
    if np.ndim(y) == 0 and np.ndim(forecast) == 1:
        y, forecast = [y], [forecast]
    read = ClassProbabilities.read(forecast, "p")
    rows = Rows.read(y, {"p": read}, outcome="y")
    _columns.refuse_missing(rows.columns)
    return ClassTable.from_rows(rows, tuple(read.class_names(settings["classes"])))


def event_rows(table: ClassTable, events: Mapping[Any, Rows]) -> EventRows:
    """Return rows with these events, and with whether the most probable class occurred as what a status shows."""
    shown = as_rows(table.code == table.best, table.confidence)
    content = (table.code.astype(np.float64), *table.proba.T)
    return EventRows(content, lambda random: {None: shown, **events}, sort_keys=content)


def request_columns(y: Any, forecast: Any, pos_label: object = None) -> dict[str, list[Any]]:
    """Return labels and rows of class probabilities as the body of a request has them."""
    proba = ClassProbabilities.read([forecast] if np.ndim(forecast) == 1 else forecast, "p")
    outcomes = [label.item() if isinstance(label, np.generic) else label for label in ([y] if np.ndim(y) == 0 else y)]
    if len(outcomes) != len(proba):
        raise InputError(
            Argument("y") + f" must have as many rows as p, {len(proba):,}; got {len(outcomes):,}.", argument="y"
        )
    return {"y": outcomes, "p": proba.matrix.tolist()}
