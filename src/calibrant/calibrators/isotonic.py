"""Isotonic regression by pooling adjacent violators."""

from typing import Any, ClassVar

import numpy as np

from calibrant._support.typing import Floats, Ints
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.bins import PAVA
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

__all__ = ["Isotonic"]


class Isotonic(ScoreMap):
    """Isotonic regression: the rising step function that fits the outcomes best.

    Pools adjacent violators (PAV) over distinct scores, each with its count, so row order and ties change nothing.
    Scores between two blocks belong to the nearer one (halfway: to the upper one); any finite scores will do.

    Parameters
    ----------
    strict : bool, default=False
        Centred isotonic regression: straight lines between the blocks' mean scores instead of steps, so that scores
        keep their ranking. (Scores too near for a double to tell, and scores beyond those seen, may tie; with
        ``extremes=True`` so do all within a first block of rate 0 or a last one of rate 1.) From the first and the
        last of these points the line goes on to the lowest and the highest score seen (for scores in [0, 1], to 0 and
        1), where it lies one standard error of the block's rate further out, at most halfway to 0 and 1: less than the
        data can tell from level.
    extremes : bool, default=False
        The first and the last block, with k events among n rows, get (k + 1/2) / (n + 1), so no probability is ever 0
        or 1; if that breaks the order, the block joins its neighbour first. True gives plain PAV.

    Notes
    -----
    On the scores that it was fitted on, plain PAV equals scikit-learn's `IsotonicRegression`, which differs between
    blocks: it draws lines there. Plain PAV never raises the Brier score in sample, and calibrating twice changes
    nothing. The chapter of Bella et al. averages pairs of scores; PAV averages outcomes over blocks.

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

    learns: ClassVar[tuple[str, ...]] = ("steps", "segments")

    def __init__(self, *, strict: bool = False, extremes: bool = False) -> None:
        self.strict = strict
        self.extremes = extremes

    @property
    def takes_any_score(self) -> bool:
        return True

    def could_have_learned(self, map_: Any) -> bool:
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
        return _through_centres(blocks, values)


def _without_extremes(blocks: Partition) -> tuple[Partition, Floats]:
    """The blocks and their values, the first and the last one's moved off 0 and 1 by half a row of each kind."""
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


def _through_centres(blocks: Partition, values: Floats) -> maps.Map:
    centre, score = blocks.mean_score, blocks.table.score
    # Rounding must not move the mean of one score off it, nor means of different blocks together.
    centre = np.clip(centre, blocks.min_score, blocks.max_score)
    inside = bool(score[0] >= 0 and score[-1] <= 1)
    first, last = (0.0, 1.0) if inside else (score[0], score[-1])
    error = np.sqrt(values * (1 - values) / blocks.n)
    low = max(values[0] / 2, values[0] - error[0])
    high = min((1 + values[-1]) / 2, values[-1] + error[-1])
    x, y = np.concatenate([[first], centre, [last]]), np.concatenate([[low], values, [high]])
    kept = _apart(x)
    return maps.Segments(x[kept], y[kept])


def _apart(x: Floats) -> Ints:
    """The points to keep: a block's own where the end of the scale coincides with it."""
    drop = {0} if x[0] == x[1] else set()
    drop |= {x.size - 1} if x[-1] == x[-2] else set()
    return np.array([i for i in range(x.size) if i not in drop], dtype=np.int64)
