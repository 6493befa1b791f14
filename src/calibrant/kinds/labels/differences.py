"""Comparison of predicted classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Ints
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError
from calibrant.forecasts.predictions import Labels
from calibrant.inference.squared_deviations import SampledRows, share_deviation
from calibrant.inference.time_blocks import Errors
from calibrant.kinds.differences import Deviations, ModelForecasts, RowLosses, column_name
from calibrant.kinds.labels.sample import errors
from calibrant.results.comparison import ComparisonTerms
from calibrant.tables.class_table import refuse_probabilities, used_rows
from calibrant.tables.rows import Rows

TERMS = ComparisonTerms(
    decides="error of class proportions",
    quantity="error of class proportions (mean over classes)",
    meaning="Better calibrated means that classes are predicted in proportions nearer to those of the outcomes.",
    unit="proportion",
    scores=("accuracy",),
    best="higher",
    ability="predicts more rows correctly",
)


@dataclass(frozen=True, eq=False)
class LabelModels(ModelForecasts[Labels]):
    """Predicted classes of several models."""

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the predicted classes of each model."""
        return {column_name(name): each.y_pred for name, each in self.models.items()}

    def check(self, rows: Rows) -> Rows:
        """Validate rows; return those that are used."""
        for column in (rows.y, *rows.forecasts):
            refuse_probabilities(column)
        used = used_rows(rows)
        for column in (used.y, *used.forecasts):
            _columns.codes(column, self.labels(rows))
        return used

    def labels(self, rows: Rows) -> list[Any]:
        """Return the classes: as given, else all labels of outcomes and predictions, sorted."""
        given = {name: list(each.classes) for name, each in self.models.items() if each.classes is not None}
        if given:
            (first, names), *others = given.items()
            for name, own in others:
                if set(own) != set(names):
                    raise InputError(
                        f"forecasts must have the same classes; got {names} for {first!r} and {own} for {name!r}.",
                        argument="forecasts",
                    )
            return _columns.check_classes(names)
        found = [label for column in (rows.y, *rows.forecasts) for label in _columns.classes(column)]
        return _columns.classes(ColumnData("labels", np.fromiter(found, dtype=object, count=len(found))))

    def forecasts(self, rows: Rows) -> dict[str, Any]:
        """Return the forecast of each model, all with the same classes."""
        names = self.labels(rows)
        classes = names if len(names) > 1 else None
        return {name: Labels(each.y_pred, classes=classes) for name, each in self.models.items()}

    def errors(self, rows: Rows) -> list[Errors]:
        """Return the errors of each model."""
        return errors(rows, self.labels(rows))

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return the differences of class proportions, and whether each prediction is correct."""
        names = self.labels(rows)
        actual, *predicted = (_columns.codes(column, names) for column in (rows.y, *rows.forecasts))
        deviations = [proportion_deviations(actual, each, len(names), sampled) for each in predicted]
        hits = {"accuracy": [(each == actual).astype(np.float64) for each in predicted]}
        return RowLosses(deviations, hits, {"accuracy": "1"})


MODELS = LabelModels


def proportion_deviations(actual: Ints, predicted: Ints, n_classes: int, rows: SampledRows) -> Deviations:
    """Return the mean over classes of the squared difference between predicted and actual proportion."""
    from scipy.sparse import csr_array

    place, one = np.arange(rows.size), np.ones(rows.size)
    both = (np.concatenate([one, -one]), (np.tile(place, 2), np.concatenate([predicted, actual])))
    found = csr_array(both, shape=(rows.size, n_classes))
    return Deviations(share_deviation(found, np.zeros(n_classes), rows))
