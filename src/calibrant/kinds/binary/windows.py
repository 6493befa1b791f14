"""Monitor: each row is one event, with the outcomes 0 and 1 and a score."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant.kinds.windows import EventRows
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import check_scores

SETTINGS = ()
FORECASTS = "scores"
EXAMPLE = "kind='binary'"
RATES = ("predicted", "observed", "event rate")
TAKES: tuple[str, ...] = ()


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return no settings: scores need none."""
    return {}


def labels(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return no labels: there is one event."""
    return ()


def event_text(label: Any) -> str:
    """Return the event in words."""
    return "the event"


def read_rows(y: Any, forecast: Any, settings: Mapping[str, Any], pos_label: object = None) -> EventRows:
    """Read outcomes and scores."""
    y, forecast = ([column] if np.ndim(column) == 0 else column for column in (y, forecast))
    read = Rows.read(y, {"p": forecast}, outcome="y", pos_label=pos_label)
    _columns.refuse_missing(read.columns)
    rows = check_scores(read)
    outcome, score = (column.values.astype(np.float64) for column in (rows.y, rows.forecasts[0]))
    return EventRows((score, outcome), lambda random: {None: rows}, sort_keys=(outcome, score))


def request_columns(y: Any, forecast: Any, pos_label: object = None) -> dict[str, list[Any]]:
    """Return outcomes and scores as the body of a request has them."""
    score, outcome = read_rows(y, forecast, {}, pos_label).content
    return {"y": outcome.astype(int).tolist(), "p": score.tolist()}
