"""Evaluation of predicted classes, from rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import class_labels
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count, check_share
from calibrant._support.random_streams import RandomState
from calibrant._support.typing import Column, Floats
from calibrant.evaluation.group_evaluation import evaluate_groups
from calibrant.evaluation.labels import PROPORTION_MARGIN, evaluate_confusion
from calibrant.evaluation.results import Evaluation
from calibrant.evaluation.settings import Settings, integer_seed
from calibrant.forecasts.labels import Labels
from calibrant.inference.resampling import check_clusters
from calibrant.metrics.labels import refuse_probabilities
from calibrant.tables.class_table import used_rows
from calibrant.tables.confusion_table import ConfusionTable
from calibrant.tables.rows import Missing, Rows

__all__ = ["evaluate_labels"]


@dataclass(frozen=True, eq=False)
class _Sample:
    """A confusion table and, if rows are in clusters, the sums of each cluster."""

    table: ConfusionTable
    cluster_sums: Floats | None = None
    cluster_sizes: Floats | None = None

    @classmethod
    def from_rows(cls, rows: Rows, labels: list[Any]) -> "_Sample":
        table = ConfusionTable.from_rows(rows, labels)
        used = used_rows(rows)
        code = used.cluster_codes
        if code is None:
            return cls(table)
        weight = np.ones(len(used)) if used.size is None else np.asarray(used.size, dtype=np.float64)
        shape = (int(code.max()) + 1, len(labels))
        actual, predicted = (
            np.bincount(
                code * len(labels) + class_labels.codes(column, labels), weights=weight, minlength=shape[0] * shape[1]
            )
            .reshape(shape)
            .astype(np.float64)
            for column in (used.y, used.forecasts[0])
        )
        return cls(table, predicted - actual, np.bincount(code, weights=weight).astype(np.float64))


def evaluate_labels(
    y_true: Column,
    forecast: Labels,
    *,
    by: Any = None,
    margin: Any = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    progress: bool | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    missing: Missing = "raise",
) -> Evaluation:
    """Evaluate predicted classes; see `calibrant.evaluate`. Nothing is resampled."""
    for name, column in (("y_true", y_true), ("forecast", forecast.y_pred)):
        refuse_probabilities(name, column)
    if n_resamples is not None:
        check_count("n_resamples", n_resamples)
    options: dict[str, Any] = {"sample_weight": sample_weight, "frequency": frequency, "missing": missing}
    rows = Rows.read(y_true, {"forecast": forecast.y_pred}, cluster=cluster, by=by, **options)
    labels = _class_names(rows, forecast)
    settings = Settings(
        _check_margin(margin),
        check_share("alpha", alpha),
        check_share("confidence_level", confidence_level),
        0,
        integer_seed(random_state),
    )

    def one(sample: _Sample) -> Evaluation:
        sums = {"cluster_sums": sample.cluster_sums, "cluster_sizes": sample.cluster_sizes}
        return evaluate_confusion(sample.table, settings, **sums)

    whole = _Sample.from_rows(rows, labels)
    if whole.cluster_sums is not None:
        check_clusters(len(whole.cluster_sums))
    if by is None:
        return one(whole)
    groups = {key: None if own.is_empty else _Sample.from_rows(own, labels) for key, own in rows.split().items()}
    return evaluate_groups(one(whole), groups, one, name=rows.group_name, progress=progress)


def _class_names(rows: Rows, forecast: Labels) -> list[Any]:
    """Return the classes: as given, else all labels of outcomes and predictions, sorted."""
    if forecast.classes is not None:
        return class_labels.check_classes(forecast.classes, "classes")
    both = [*class_labels.classes(rows.y), *class_labels.classes(rows.forecasts[0])]
    names = class_labels.classes(ColumnData("labels", np.fromiter(both, dtype=object, count=len(both))))
    if len(names) < 2:
        raise InputError(
            f"y_true and forecast must have at least two classes; got {names}.",
            hint="Name all classes: Labels(y_pred, classes=[...]).",
            argument="forecast",
        )
    return names


def _check_margin(margin: Any) -> float:
    chosen = PROPORTION_MARGIN if margin is None else margin
    if not isinstance(chosen, (int, float)) or isinstance(chosen, bool) or not 0 < chosen < math.inf:
        raise InputError(f"margin must be a positive difference of proportions; got {margin!r}.", argument="margin")
    return float(chosen)
