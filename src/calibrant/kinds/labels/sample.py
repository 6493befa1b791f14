"""Rows of predicted classes, as they are evaluated."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import Argument
from calibrant.forecasts.predictions import Labels
from calibrant.inference.time_blocks import Errors, in_time_blocks
from calibrant.kinds.sample import GroupedSample, TimeBlocks
from calibrant.tables.class_table import ConfusionTable, read_labels, used_rows
from calibrant.tables.rows import Rows


@dataclass(frozen=True, eq=False)
class LabelsSample:
    """A confusion table and, if rows are in clusters, the sums of each cluster."""

    table: ConfusionTable
    cluster_sums: Floats | None = None
    cluster_sizes: Floats | None = None

    @classmethod
    def from_rows(cls, rows: Rows, labels: list[Any]) -> "LabelsSample":
        """Validate and count rows."""
        table = ConfusionTable.from_rows(rows, labels)
        used = used_rows(rows)
        code = used.cluster_codes
        if code is None:
            return cls(table)
        weight = np.ones(len(used)) if used.size is None else np.asarray(used.size, dtype=np.float64)
        shape = (int(code.max()) + 1, len(labels))
        actual, predicted = (
            np.bincount(
                code * len(labels) + _columns.codes(column, labels), weights=weight, minlength=shape[0] * shape[1]
            )
            .reshape(shape)
            .astype(np.float64)
            for column in (used.y, used.forecasts[0])
        )
        return cls(table, predicted - actual, np.bincount(code, weights=weight).astype(np.float64))

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return None if self.cluster_sums is None else len(self.cluster_sums)

    def without_clusters(self) -> "LabelsSample":
        """Return the same rows without their clusters, for estimates."""
        return LabelsSample(self.table)


def errors(used: Rows, labels: Sequence[Any]) -> list[Errors]:
    """Return for each model and class whether it occurs less whether it is predicted."""
    places = np.arange(len(labels))
    columns = [_columns.codes(column, list(labels))[:, None] == places for column in (used.y, *used.forecasts)]
    return [Errors(columns[0].astype(np.float64) - each, np.zeros(len(used))) for each in columns[1:]]


def time_blocks(labels: Sequence[Any]) -> TimeBlocks:
    """Return the function that puts rows with labels of these classes into blocks of their times."""
    return partial(in_time_blocks, check=used_rows, errors=partial(errors, labels=labels))


def read_groups(y_true: Column, forecast: Labels, **options: Any) -> GroupedSample[LabelsSample]:
    """Read rows of labels."""
    named = Argument("classes", python="Labels(y_pred, classes=[...])")
    rows, labels = read_labels(y_true, {"forecast": forecast.y_pred}, forecast.classes, named, **options)
    return GroupedSample.from_rows(rows, partial(LabelsSample.from_rows, labels=labels), time_blocks(labels))
