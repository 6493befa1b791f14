"""Isotonic regression by pooling adjacent violators (PAV)."""

from typing import Any, ClassVar

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.bins import PAVA
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["Isotonic"]


class Isotonic(ScoreMap):
    """Isotonic regression: the increasing step function with the least squared error.

    Adjacent violators are pooled (PAV) over distinct scores with their counts, so the result does not depend on the
    order of rows or ties. A score between two blocks belongs to the nearer one, a score halfway to the upper one.
    Scores may be any finite numbers.

    Parameters
    ----------
    strict : bool, default=False
        Centred isotonic regression: linear interpolation between the mean scores of the blocks instead of steps, which
        preserves the ranking of scores. (Scores that differ by rounding error, and scores beyond the fitted range, may
        become equal; with ``extremes=True`` also those within a first block of rate 0 or a last block of rate 1.)
        Beyond the first and the last mean score the line continues to the lowest and the highest fitted score (for
        scores in [0, 1], to 0 and 1). Its end value differs by one standard error from the rate of the block, and is at
        most halfway to 0 or 1.
    extremes : bool, default=False
        False: the first and the last block, with k events among n rows, have the value (k + 1/2) / (n + 1), so that no
        probability is 0 or 1; if the values are then not increasing, the block is merged with its neighbour first.
        True: plain PAV.

    See Also
    --------
    VennAbers, Beta, Platt

    Notes
    -----
    At the fitted scores plain PAV equals scikit-learn's ``IsotonicRegression``; between blocks scikit-learn
    interpolates linearly. Plain PAV does not increase the Brier score of the fitted rows, and it is idempotent. The
    chapter of Bella et al. averages pairs of scores; PAV averages outcomes over blocks.

    References
    ----------
    .. [1] Ayer, Brunk, Ewing, Reid & Silverman (1955), "An empirical distribution function for sampling with incomplete
       information".
    .. [2] Oron & Flournoy (2017), "Centered isotonic regression".

    Examples
    --------
    >>> cal = Isotonic(extremes=True).fit([0.1, 0.3, 0.4, 0.8], [0, 1, 0, 1])
    >>> cal([0.1, 0.3, 0.4, 0.8])
    array([0. , 0.5, 0.5, 1. ])
    >>> Isotonic().fit([0.1, 0.3, 0.4, 0.8], [0, 1, 0, 1])([0.1, 0.3, 0.4, 0.8])
    array([0.25, 0.5 , 0.5 , 0.75])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("steps", "segments")

    def __init__(self, *, strict: bool = False, extremes: bool = False) -> None:
        self.strict = strict
        self.extremes = extremes

    @property
    def accepts_any_score(self) -> bool:
        return True

    def accepts_map(self, map_: Any) -> bool:
        values = map_.y if map_.kind == "segments" else map_.values
        inside = self.extremes or bool(((values > 0) & (values < 1)).all())
        return inside and (map_.kind == "segments") == self.strict

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        blocks = PAVA()(table)
        if self.extremes:
            values = blocks.rate
        else:
            blocks, values = _without_extremes(blocks)
        if not self.strict:
            return maps.Steps(maps.between(table.score, blocks.start), values)
        return _interpolate_means(blocks, values)


def _without_extremes(blocks: Partition) -> tuple[Partition, Floats]:
    """Return the blocks and their values; half an event and half a non-event are added to the first and last block."""
    start: list[int] = blocks.start.tolist()
    while True:
        blocks = Partition(blocks.table, np.array(start, dtype=np.int64))
        values = blocks.rate.copy()
        for end in (0, -1):
            values[end] = (blocks.k[end] + 0.5) / (blocks.n[end] + 1)
        if len(start) > 1 and values[0] >= values[1]:
            del start[1]
        elif len(start) > 1 and values[-1] <= values[-2]:
            del start[-1]
        else:
            return blocks, values


def _interpolate_means(blocks: Partition, values: Floats) -> maps.Map:
    centre, score = blocks.mean_score, blocks.table.score
    # Rounding error must not move the mean of a block outside its scores, nor make two means equal.
    centre = np.clip(centre, blocks.min_score, blocks.max_score)
    inside = bool(score[0] >= 0 and score[-1] <= 1)
    first, last = (0.0, 1.0) if inside else (score[0], score[-1])
    error = np.sqrt(values * (1 - values) / blocks.n)
    low = max(values[0] / 2, values[0] - error[0])
    high = min((1 + values[-1]) / 2, values[-1] + error[-1])
    x, y = np.concatenate([[first], centre, [last]]), np.concatenate([[low], values, [high]])
    kept = _distinct_points(x)
    return maps.Segments(x[kept], y[kept])


def _distinct_points(x: Floats) -> Ints:
    """Return the indices of points without the ends of the scale that coincide with the mean of a block."""
    drop = {0} if x[0] == x[1] else set()
    drop |= {x.size - 1} if x[-1] == x[-2] else set()
    return np.array([i for i in range(x.size) if i not in drop], dtype=np.int64)
