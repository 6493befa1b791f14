"""The calibrator that leaves scores as they are."""

from typing import Any, ClassVar

import numpy as np

from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.tables.score_table import ScoreTable

__all__ = ["Identity"]


class Identity(ScoreMap):
    """No change: each score is its own calibrated probability, bitwise.

    `AutoCalibrator` uses it if no calibrator is shown to improve the scores, so that its ``calibrator_`` can always be
    called, saved and exported.

    See Also
    --------
    AutoCalibrator, Platt

    Examples
    --------
    >>> Identity().fit([0.2, 0.7], [0, 1])([0.1, 0.3])
    array([0.1, 0.3])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("segments",)

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.x.tolist() == map_.y.tolist() == [0.0, 1.0] and map_.domain == "probability")

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        ends = np.array([0.0, 1.0])
        return maps.Segments(ends, ends, domain="probability")
