"""Rows of class probabilities, as they are evaluated."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibrant._support.arrays import Column, Ints
from calibrant.kinds.grouped_sample import GroupedSample
from calibrant.tables.class_table import ClassProbabilities, ClassTable, used_rows
from calibrant.tables.rows import Rows

__all__ = ["Sample", "read"]

_MANY = 10_000_000  # probabilities


@dataclass(frozen=True, eq=False)
class Sample:
    """A class table and, if rows are in clusters, the cluster of each row."""

    table: ClassTable
    cluster: Ints | None

    @classmethod
    def from_rows(cls, rows: Rows, labels: tuple[Any, ...]) -> "Sample":
        """Validate and count rows."""
        cluster = used_rows(rows).cluster_codes
        return cls(ClassTable.from_rows(rows, labels), cluster)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return None if self.cluster is None else int(self.cluster.max()) + 1


def read(y_true: Column, proba: Any, *, classes: Sequence[Any] | None = None, **options: Any) -> GroupedSample[Sample]:
    """Read rows; without `classes` they are the names of a frame's columns, else 0 to K - 1."""
    read = ClassProbabilities.read(proba)
    labels = tuple(read.class_names(classes))
    rows = Rows.read(y_true, {read.name: read}, **options)
    return GroupedSample.from_rows(rows, partial(Sample.from_rows, labels=labels), is_large=read.matrix.size > _MANY)
