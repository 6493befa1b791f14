"""Comparison of probabilities of ordered classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.lazy import cached_property
from calibrant.forecasts.predictions import Ordinal
from calibrant.inference.squared_deviations import SampledRows
from calibrant.inference.time_blocks import Errors
from calibrant.kinds.differences import Deviations, ModelForecasts, RowLosses, column_name, scores_by_name
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.kinds.multiclass.differences import event_deviations
from calibrant.kinds.ordinal.sample import errors, read_proba
from calibrant.kinds.ordinal.verdict import NAME
from calibrant.metrics.multiclass import MulticlassLogLoss
from calibrant.metrics.ordinal import RPS, cumulative_probabilities
from calibrant.results.comparison import ComparisonTerms
from calibrant.tables.class_table import ClassTable, used_rows
from calibrant.tables.rows import Rows

TERMS = ComparisonTerms(
    decides=NAME,
    quantity=NAME,
    tests=("cumulative log-odds errors", "cumulative squared gaps"),
    unit="log-odds",
    scores=("RPS",),
    best="lower",
    ability="discriminates better",
)


@dataclass(frozen=True, eq=False)
class OrdinalModels(ModelForecasts[Ordinal]):
    """Probabilities of ordered classes of several models."""

    scores = scores_by_name(RPS(), MulticlassLogLoss())

    @cached_property
    def _read(self) -> dict[str, Any]:
        return {name: read_proba(each, column_name(name)) for name, each in self.models.items()}

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes in their order, which all models share."""
        orders = {labels for _, labels in self._read.values()}
        if len(orders) > 1:
            shown = " and ".join(map(str, map(list, orders)))
            raise InputError(
                f"forecasts must have the same classes in the same order; got {shown}.", argument="forecasts"
            )
        return next(iter(orders))

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the probabilities of each model."""
        return {column_name(name): proba for name, (proba, _) in self._read.items()}

    def check(self, rows: Rows) -> Rows:
        """Validate rows; return those that are used."""
        used = used_rows(rows)
        _columns.codes(used.y, list(self.labels), "classes")
        return used

    def errors(self, rows: Rows) -> list[Errors]:
        """Return the errors of each model."""
        return errors(rows, self.labels)

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return the deviations of the cumulative probabilities, and the losses of the scores."""
        code = _columns.codes(rows.y, list(self.labels), "classes")
        tables = [ClassTable(self.labels, each.matrix, code) for each in rows.forecasts]
        return self.with_scores([_deviations(table, sampled) for table in tables], tables)


MODELS = OrdinalModels


def _deviations(table: ClassTable, rows: SampledRows) -> Deviations:
    """Return the squared log-odds errors and gaps of the cumulative probabilities."""
    below = cumulative_probabilities(table)
    classes = ClassRows(table.proba, table.code, rows.weight, rows.weight is not None, rows.cluster)
    log_odds, gaps = event_deviations(classes, rows, ((table.code <= c, p) for c, p in enumerate(below.T)))
    weight, spread = classes.counts, np.sum(below * (1 - below), axis=1) / below.shape[1]
    information = float(weight @ spread) ** 2 / float(weight**2 @ spread) if spread.any() else 0.0
    return Deviations(log_odds, (gaps,), information=information)
