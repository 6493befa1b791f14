"""Monitor: the outcome below, or above, the quantile of each level is an event; the status shows their coverage."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from calibrant._support.errors import Argument, InputError
from calibrant.forecasts.forecast_table import read_outcomes
from calibrant.kinds.windows import EventRows, as_rows
from calibrant.metrics.distribution import transforms
from calibrant.tables.rows import Rows

SETTINGS = ("levels",)
FORECASTS = "predictive distributions"
EXAMPLE = "kind='distribution'"
RATES = ("nominal", "observed", "coverage of the central interval")
TAKES: tuple[str, ...] = ()

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_LEVEL_TOLERANCE = 1e-6  # levels may be float32


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the levels, by default `LEVELS`."""
    levels = given.get("levels", LEVELS)
    try:
        numbers = tuple(float(level) for level in levels)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or any(a >= b for a, b in zip((0.0, *numbers), (*numbers, 1.0), strict=True)):
        raise InputError(
            Argument("levels") + f" must be numbers between 0 and 1, strictly increasing; got {levels!r}.", value=levels
        )
    return {"levels": numbers}


def labels(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the levels."""
    return tuple(settings["levels"])


def event_text(label: Any) -> str:
    """Return the event of a level in words.

    >>> event_text(0.9)
    'above the 90 % quantile'
    """
    return f"{'below' if label <= 0.5 else 'above'} the {100 * label:g} % quantile"


def read_rows(y: Any, forecast: Any, settings: Mapping[str, Any], pos_label: object = None) -> EventRows:
    """Read numbers and predictive distributions."""
    outcome, known = read_outcomes([y] if np.ndim(y) == 0 else y, forecast, "y")
    levels = settings["levels"]
    used = _nearest_levels(levels, known)
    content = (outcome, *known.cells(outcome))

    def events(random: Callable[[], Generator]) -> dict[Any, Rows]:
        # Where F(y) is known up to an interval, the value in it is random.
        u = transforms(outcome, known, random_state=random())
        low, high = used[0], used[-1]
        covered = (u > low) & (u <= high) if low < high else u <= low
        rows = {None: as_rows(covered, np.full(u.size, round(high - low, 9) if low < high else low))}
        for label, level in zip(levels, used, strict=True):
            happened, probability = (u <= level, level) if level <= 0.5 else (u > level, round(1 - level, 9))
            rows[label] = as_rows(happened, np.full(u.size, probability))
        return rows

    return EventRows(content, events, sort_keys=content)


def _nearest_levels(levels: tuple[float, ...], forecast: Any) -> tuple[float, ...]:
    """Return the levels as the forecast has them: quantile forecasts must have those of the model."""
    if forecast.known_levels is None or forecast.ensemble is not None:
        return levels
    nearest = [float(forecast.known_levels[np.argmin(np.abs(forecast.known_levels - level))]) for level in levels]
    missing = [q for q, near in zip(levels, nearest, strict=True) if abs(q - near) > _LEVEL_TOLERANCE]
    if missing:
        shown = ", ".join(f"{level:g}" for level in forecast.known_levels)
        raise InputError(
            Argument("p") + f" must have the quantiles of the levels of this model; {missing[0]:g} is missing, the "
            f"forecast has {shown}.",
            hint="Create the model with levels= of the quantiles that are predicted.",
        )
    return tuple(nearest)
