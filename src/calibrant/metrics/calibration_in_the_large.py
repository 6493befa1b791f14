"""Calibration in the large: mean prediction against event rate, as a difference and as a ratio."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.errors import InputError
from calibrant.metrics.bins import EqualWidth
from calibrant.metrics.gce import GCE
from calibrant.metrics.losses import signed_gap
from calibrant.metrics.metric import Direction, UnbinnedMetric, metric_function
from calibrant.metrics.norms import weighted_mean
from calibrant.tables.score_table import ScoreTable

__all__ = ["Bias", "OERatio", "bias", "oe_ratio"]


class Bias(GCE):
    """Signed bias: mean prediction minus event rate; 0 is best, and a positive value means overestimation.

    See Also
    --------
    bias, OERatio

    Examples
    --------
    >>> round(bias([0, 0, 1, 1], [0.2, 0.4, 0.8, 0.9]), 4)
    0.075
    """

    def __init__(self) -> None:
        super().__init__(EqualWidth(1), signed_gap, weighted_mean, name="bias")


@dataclass(frozen=True)
class OERatio(UnbinnedMetric):
    """Ratio of observed to expected events; 1 is best, and a value below 1 means overestimation.

    Infinite where events are observed and none is expected.

    See Also
    --------
    oe_ratio, Bias

    Examples
    --------
    >>> round(oe_ratio([0, 1, 1, 0], [0.2, 0.9, 0.8, 0.6]), 4)
    0.8
    """

    name: ClassVar[str] = "oe_ratio"
    direction: ClassVar[Direction] = 1.0
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    min_class_size: ClassVar[int] = 1

    def value(self, table: ScoreTable) -> float:
        expected = float(EqualWidth(1)(table).total_score[0]) if len(table) else 0.0
        if expected == 0 and table.positives == 0:
            raise InputError("y_true must have observed or expected events for oe_ratio; got neither, so it is 0 / 0.")
        return float(table.positives / expected) if expected > 0 else math.inf

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`.

        Parameters
        ----------
        score : array
            Scores of the rows.
        label : array
            Outcomes of the rows, 0 or 1.

        Returns
        -------
        float or None
            Bitwise the value of the table of these rows.
        """
        sums = _kernels.row_sums(score, label, EqualWidth(1).row_edges())
        return None if sums is None or not 0 < sums[1][0] < label.size else float(sums[1][0] / sums[2][0])


bias = metric_function(Bias)
oe_ratio = metric_function(OERatio)
