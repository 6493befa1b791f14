"""Rows of predicted probabilities of one event in an audit."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant._support.columns import ColumnData
from calibrant.kinds.residuals import assess_probabilities, bernoulli_terms
from calibrant.results.audit import ResidualTerms
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import check_scores

TERMS = ResidualTerms("log_odds_error", "the score")
# The features that describe the forecast, and the options that not all kinds have.
FEATURES: tuple[str, ...] = ("score",)
OPTIONS: tuple[str, ...] = ("pos_label",)
READING: Mapping[str, Any] = {}


assess, residual_terms = assess_probabilities, bernoulli_terms


def forecast_column(forecast: Any, classes: Sequence[Any] | None) -> tuple[Any, Sequence[Any]]:
    """Return the column of scores; it has no classes."""
    return forecast, ()


def batch_forecast(columns: Sequence[ColumnData]) -> Any:
    """Return the scores of a batch of rows."""
    return columns[0]


def check(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    """Return validated rows, and the columns that describe the forecast."""
    used = check_scores(rows)
    return used, [used.forecasts[0]]
