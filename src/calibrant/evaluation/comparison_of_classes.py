"""Class probabilities and predicted classes in a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support.cached_properties import cached_property
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError
from calibrant.evaluation.compared_models import RowLosses, column_name
from calibrant.forecasts.labels import Labels
from calibrant.inference.multiclass.design import ClassRows
from calibrant.inference.paired_deviations import class_deviations, proportion_deviations
from calibrant.inference.squared_deviations import SampledRows
from calibrant.metrics.multiclass import MulticlassBrier, MulticlassLogLoss
from calibrant.tables.class_probabilities import ClassProbabilities
from calibrant.tables.class_table import ClassTable, used_rows
from calibrant.tables.confusion_table import refuse_probabilities
from calibrant.tables.rows import Rows

__all__ = ["LabelModels", "ProbabilityModels"]


@dataclass(frozen=True, eq=False)
class ProbabilityModels:
    """Class probabilities of several models; the columns of all are in the order of the first."""

    models: Mapping[str, Any]
    classes: Sequence[Any] | None = None

    @cached_property
    def _read(self) -> dict[str, ClassProbabilities]:
        return {name: ClassProbabilities.read(each, column_name(name)) for name, each in self.models.items()}

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The classes, in the order of the columns of the first model."""
        return tuple(next(iter(self._read.values())).class_names(self.classes))

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the probabilities of each model."""
        return {column_name(name): self._ordered(name, each) for name, each in self._read.items()}

    def _ordered(self, name: str, read: ClassProbabilities) -> ClassProbabilities:
        own = read.class_names(self.classes)
        if tuple(own) == self.labels:
            return read
        if set(own) != set(self.labels):
            raise InputError(
                f"forecasts must have the same classes; got {list(self.labels)} for {next(iter(self.models))!r} and "
                f"{own} for {name!r}.",
                argument="forecasts",
            )
        return replace(read, matrix=read.matrix[:, [own.index(label) for label in self.labels]])

    def check(self, rows: Rows) -> Rows:
        """Validate rows; return those that are used."""
        used = used_rows(rows)
        class_labels.codes(used.y, list(self.labels), "classes")
        return used

    def forecasts(self, rows: Rows) -> dict[str, Any]:
        """Return the forecast of each model."""
        return dict(self.models)

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return class-wise and top-label deviations, and Brier score and log loss."""
        code = class_labels.codes(rows.y, list(self.labels), "classes")
        tables = [ClassTable(self.labels, each.matrix, code) for each in rows.forecasts]
        given = (sampled.weight, sampled.weight is not None, sampled.cluster)
        deviations = [class_deviations(ClassRows(table.proba, code, *given), sampled) for table in tables]
        scores = (MulticlassBrier(), MulticlassLogLoss())
        losses = {score.name: [score.row_losses(table)(code) for table in tables] for score in scores}
        return RowLosses(deviations, losses, {score.name: score.unit for score in scores})


@dataclass(frozen=True, eq=False)
class LabelModels:
    """Predicted classes of several models."""

    models: Mapping[str, Labels]

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the predicted classes of each model."""
        return {column_name(name): each.y_pred for name, each in self.models.items()}

    def check(self, rows: Rows) -> Rows:
        """Validate rows; return those that are used."""
        for column in (rows.y, *rows.forecasts):
            refuse_probabilities(column)
        used = used_rows(rows)
        for column in (used.y, *used.forecasts):
            class_labels.codes(column, self.labels(rows), "classes")
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
            return class_labels.check_classes(names, "classes")
        found = [label for column in (rows.y, *rows.forecasts) for label in class_labels.classes(column)]
        return class_labels.classes(ColumnData("labels", np.fromiter(found, dtype=object, count=len(found))))

    def forecasts(self, rows: Rows) -> dict[str, Any]:
        """Return the forecast of each model, all with the same classes."""
        names = self.labels(rows)
        classes = names if len(names) > 1 else None
        return {name: Labels(each.y_pred, classes=classes) for name, each in self.models.items()}

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return the differences of class proportions, and whether each prediction is correct."""
        names = self.labels(rows)
        actual, *predicted = (class_labels.codes(column, names) for column in (rows.y, *rows.forecasts))
        deviations = [proportion_deviations(actual, each, len(names), sampled) for each in predicted]
        hits = {"accuracy": [(each == actual).astype(np.float64) for each in predicted]}
        return RowLosses(deviations, hits, {"accuracy": "1"})
