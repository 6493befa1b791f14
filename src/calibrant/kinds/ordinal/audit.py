"""Rows of ordered classes in an audit: the mean predicted class, and the class that occurred, counted from 0."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.columns import ColumnData
from calibrant._support.errors import Argument, InputError
from calibrant.kinds.audit import AuditedForecasts
from calibrant.kinds.ordinal.sample import read_proba
from calibrant.kinds.point.audit import assess_numbers, squared_terms
from calibrant.results.audit import ResidualTerms
from calibrant.tables.class_table import used_rows
from calibrant.tables.rows import Rows

_FEATURE = "mean predicted class"


def _batch_forecast(columns: Sequence[ColumnData]) -> Any:
    """Refuse files: their columns do not state the order of the classes."""
    raise InputError(
        Argument("forecast") + " must be in memory for an audit of ordered classes; got columns of files.",
        hint="Read the files, and pass cb.Ordinal(proba, classes=[...]) to cb.audit.",
    )


def _check(rows: Rows, classes: Sequence[Any]) -> tuple[Rows, list[ColumnData]]:
    """Return validated rows with the mean predicted class and the class that occurred, and this mean as a feature."""
    used = used_rows(rows)
    proba = used.forecasts[0]
    code = _columns.codes(used.y, list(classes), "classes")
    mean = ColumnData(_FEATURE, proba.matrix @ np.arange(len(classes)), None, proba.marks.notes)
    outcome = replace(used.y, values=code.astype(np.float64))
    return replace(used, y=outcome, forecasts=(mean, *used.forecasts[1:])), [mean]


AUDIT = AuditedForecasts(
    ResidualTerms("mean_error", "the mean predicted class", is_share=False),
    features=(_FEATURE,),
    check=_check,
    assess=assess_numbers,
    residual_terms=squared_terms,
    forecast_column=lambda forecast, classes: read_proba(forecast),
    batch_forecast=_batch_forecast,
)
