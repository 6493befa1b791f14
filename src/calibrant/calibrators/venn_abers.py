"""Venn-Abers calibration."""

from typing import Any, ClassVar

import numpy as np

from calibrant import _kernels, maps
from calibrant._typing import Floats
from calibrant.calibrators.score_map import ScoreMap
from calibrant.table import ScoreTable

__all__ = ["VennAbers"]


class VennAbers(ScoreMap):
    r"""Inductive Venn-Abers: isotonic regression that counts the new row too, once with each outcome.

    For a score the rows fitted on and the score itself are calibrated together, its own outcome taken to be 0, then 1.
    That gives two probabilities :math:`p_0 \le p_1`, of which one is perfectly calibrated, whatever the distribution;
    they are merged to :math:`p_1 / (1 - p_0 + p_1)`, which is best for the log loss. Any finite scores will do.

    Notes
    -----
    All places that a new score can take are computed once (two for every distinct score), so the calibrator is a step
    function like `Isotonic`, and as fast to apply, but of many more steps. The map is never 0 or 1. A new row
    counts as a row of weight 1.

    On eight real data sets it had the lowest log loss more often than any other calibrator; see "Repair" in the
    documentation.

    References
    ----------
    .. [1] Vovk, Petej & Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees of
       validity".

    Examples
    --------
    >>> VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1])([0.1, 0.9]).round(3)
    array([0.25, 0.75])
    """

    learns: ClassVar[tuple[str, ...]] = ("steps",)

    @property
    def takes_any_score(self) -> bool:
        return True

    def could_have_learned(self, map_: Any) -> bool:
        return bool(((map_.values > 0) & (map_.values < 1)).all())

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        low, high = _kernels.venn_abers(table.n, table.k)
        # Both rise, and so does what they are merged to, but for its rounding.
        return _compact(table.score, np.maximum.accumulate(high / (1 - low + high)))


def _compact(score: Floats, values: Floats) -> maps.Map:
    """Steps of the values before, at and after each score, of which those with equal values are one."""
    edges = np.empty(2 * score.size)
    edges[::2], edges[1::2] = score, np.nextafter(score, np.inf)
    # Between two scores that are neighbours as numbers there is no place.
    places = np.flatnonzero(np.append(True, np.diff(edges, append=np.inf) > 0))
    first = places[np.append(True, np.diff(values[places]) > 0)]
    return maps.Steps(edges[first[1:] - 1], values[first])
