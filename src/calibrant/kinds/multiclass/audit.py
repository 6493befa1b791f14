"""Rows of class probabilities in an audit: the top label, and whether it occurred."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.columns import ColumnData
from calibrant.kinds.audit import AuditedForecasts
from calibrant.results.audit import ResidualTerms
from calibrant.tables.class_table import ClassProbabilities, used_rows
from calibrant.tables.rows import Rows


def _forecast_column(forecast: Any, classes: Sequence[Any] | None) -> tuple[Any, Sequence[Any]]:
    """Return the class probabilities, and their classes."""
    proba = ClassProbabilities.read(forecast)
    return proba, proba.class_names(classes)


def _batch_forecast(columns: Sequence[ColumnData]) -> Any:
    """Return the class probabilities of a batch of rows, one column per class."""
    matrix = [np.where(c.mask, np.nan, c.values) for c in map(_columns.numbers, columns)]
    return ClassProbabilities.read(np.column_stack(matrix), "p")


def _check(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    """Return validated rows of the top label, and the columns that describe it."""
    used = used_rows(rows)
    top, described = _top_label_rows(used, classes)
    return replace(top, forecasts=(*top.forecasts, *used.forecasts[1:])), described


def _top_label_rows(used: Rows, labels: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    """Return rows of the top label, whose outcome is whether it occurred, and the features that describe it."""
    matrix = used.forecasts[0].matrix
    best = np.argmax(matrix, axis=1)
    code = _columns.codes(used.y, list(labels))
    names = np.empty(len(labels), dtype=object)
    names[:] = list(labels)
    score = ColumnData("top-label probability", matrix[np.arange(best.size), best], None, used.forecasts[0].marks.notes)
    y = replace(used.y, values=(code == best).astype(np.int8))
    return replace(used, y=y, forecasts=(score,)), [ColumnData("predicted label", names[best], None), score]


AUDIT = AuditedForecasts(
    ResidualTerms("log_odds_error", "the top label"),
    features=("predicted label", "top-label probability"),
    check=_check,
    options=("classes",),
    forecast_column=_forecast_column,
    batch_forecast=_batch_forecast,
)
