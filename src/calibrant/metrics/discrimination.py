"""Discrimination: the area under the ROC curve."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.metrics.metric import Direction, UnbinnedMetric, metric_function
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import need_both_classes

__all__ = ["AUC", "auc"]


@dataclass(frozen=True)
class AUC(UnbinnedMetric):
    """Area under the ROC curve: the probability that an event has a higher score than a non-event; ties count half.

    Insensitive to calibration; higher is better. Needs rows of both classes.

    See Also
    --------
    auc

    Examples
    --------
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.9])
    0.875
    """

    name: ClassVar[str] = "auc"
    direction: ClassVar[Direction] = "higher"
    min_class_size: ClassVar[int] = 10

    def value(self, table: ScoreTable) -> float:
        need_both_classes(table, "auc")
        others = table.n - table.k
        below = np.cumsum(others) - others
        pairs = np.sum(table.k * (below + others / 2.0))
        return float(pairs / float(np.sum(table.k)) / float(np.sum(others)))


auc = metric_function(AUC)
