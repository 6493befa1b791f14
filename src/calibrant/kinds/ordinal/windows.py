"""Monitor: the outcome at or below each class is an event; the status shows the most probable class."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._support.errors import Argument, InputError
from calibrant.forecasts.predictions import Ordinal
from calibrant.kinds.multiclass import windows
from calibrant.kinds.windows import EventRows, as_rows

SETTINGS = windows.SETTINGS
FORECASTS = "probabilities of ordered classes"
EXAMPLE = "kind='ordinal', classes=[...]"
RATES = windows.RATES
TAKES = ("multiclass",)  # the settings state the order of the columns


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes, from the lowest to the highest."""
    settings = windows.read_settings(given)
    if len(settings["classes"]) < 3:
        raise InputError(
            Argument("classes") + f" must be at least three ordered classes; got {len(settings['classes'])}.",
            hint="For two classes monitor the probability of the higher one.",
        )
    return settings


def labels(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the classes but the highest, which each outcome is at or below."""
    return tuple(settings["classes"][:-1])


def event_text(label: Any) -> str:
    """Return the event of a class in words."""
    return f"at most {label}"


def read_rows(y: Any, forecast: Any, settings: Mapping[str, Any], pos_label: object = None) -> EventRows:
    """Read labels and probabilities of ordered classes."""
    if isinstance(forecast, Ordinal):
        given, classes = forecast.classes, list(settings["classes"])
        if given is not None and list(given) != classes:
            raise InputError(Argument("p") + f" must have the classes of this model, {classes}; got {list(given)}.")
        forecast = forecast.proba
    table = windows.read_table(y, forecast, settings)
    below = np.minimum(np.cumsum(table.proba, axis=1), 1.0).T
    return windows.event_rows(
        table, {label: as_rows(table.code <= k, below[k]) for k, label in enumerate(labels(settings))}
    )
