"""Comparison of point predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import Note
from calibrant.forecasts.predictions import Point
from calibrant.inference.regression.bias_by_bin import usual_bins
from calibrant.inference.regression.point_components import bin_sums
from calibrant.inference.squared_deviations import CellErrors, SampledRows, cell_deviation
from calibrant.inference.time_blocks import Errors
from calibrant.kinds.differences import Deviations, ModelForecasts, RowLosses, column_name
from calibrant.kinds.point.sample import errors
from calibrant.metrics import point as means
from calibrant.metrics.bins import EqualSize
from calibrant.results.comparison import ComparisonTerms
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable
from calibrant.tables.rows import Rows

TERMS = ComparisonTerms(
    decides="bias by bin",
    quantity="bias by bin (in standard deviations of the outcome)",
    meaning="Better calibrated means a smaller bias by bin: the mean error over bins of the prediction.",
    unit="standard deviations of the outcome",
    scores=("MSE",),
    best="lower",
    ability="discriminates better",
)

_SKEWED = "No difference can be shown: the errors of a model are too skewed for the number of rows."


@dataclass(frozen=True, eq=False)
class PointModels(ModelForecasts[Point]):
    """Point predictions of several models."""

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the predictions of each model."""
        return {
            column_name(name): _columns.read(each.y_pred, column_name(name), hint=ONE_COLUMN)
            for name, each in self.models.items()
        }

    def errors(self, rows: Rows) -> list[Errors]:
        """Return the errors of each model."""
        return errors(rows)

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return the bias by bin, in standard deviations of the outcome, and squared and absolute errors."""
        tables = [MeanTable.from_rows(replace(rows, forecasts=(each,))) for each in rows.forecasts]
        spread = math.sqrt(max(means.variance(tables[0]), 0.0)) or 1.0
        errors = [table.prediction - table.mean for table in tables]
        losses = {"MSE": [error**2 for error in errors], "MAE": [np.abs(error) for error in errors]}
        skewed = Note("skewed", 1, _SKEWED) if are_too_skewed(tables, sampled) else None
        return RowLosses(bias_deviations(tables, sampled, spread), losses, {"MSE": "y^2", "MAE": "y"}, skewed)


MODELS = PointModels


def bias_deviations(tables: Sequence[MeanTable], rows: SampledRows, spread: float) -> list[Deviations]:
    """Return for each model the squared bias by bin of its predictions, in units of `spread`.

    All models have the same number of quantile bins: ten, or fewer so that each has fifty effective rows and five
    clusters.
    """
    bins = usual_bins(tables[0], None if rows.cluster is None else rows.n_units)
    return [
        Deviations(cell_deviation([CellErrors((table.prediction - table.mean) / spread, bins(table).labels)], rows))
        for table in tables
    ]


def are_too_skewed(tables: Sequence[MeanTable], rows: SampledRows) -> bool:
    """Return whether the errors of a model are so skewed that even their mean over all rows is hardly known."""
    return any(bin_sums(table, rows.cluster, EqualSize(1)).limited for table in tables)
