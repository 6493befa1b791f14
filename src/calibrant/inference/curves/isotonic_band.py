"""The confidence band of Dimitriadis, Dümbgen, Henzi, Puke and Ziegel for rising calibration curves."""

import numpy as np

from calibrant._support.typing import Floats, Ints
from calibrant.metrics.local_regression import score_groups
from calibrant.tables.score_table import ScoreTable

__all__ = ["isotonic_band"]

_MOST_GROUPS = 400


def isotonic_band(table: ScoreTable, at: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the limits at each point of a band that contains the whole curve, if the curve rises.

    For each run of neighbouring scores the exact (Clopper and Pearson) limits of its event rate hold jointly with
    probability `level`, by Bonferroni over all m (m + 1) limits of m scores. A rising curve lies above the lower limit
    of each run that ends at or before the point, and below the upper limit of each run that starts at or after it.
    With more than 400 scores the runs are those of 400 groups of neighbouring scores, which depend on no outcome; the
    band stays valid. Runs that start or end without an event cannot give the highest lower limit, and are skipped.
    """
    start = score_groups(len(table), _MOST_GROUPS)
    n, k = np.add.reduceat(table.n, start), np.add.reduceat(table.k, start)
    first, last = table.score[start], table.score[np.append(start[1:], len(table)) - 1]
    tail = (1 - level) / (start.size * (start.size + 1))
    lowest = _highest_lower_limits(n, k, tail)
    mirrored = _highest_lower_limits(n[::-1], (n - k)[::-1], tail)[::-1]
    below = np.searchsorted(last, at, side="right") - 1  # the last group that ends at or before the point
    above = np.searchsorted(first, at, side="left")  # the first group that starts at or after it
    low = np.where(below >= 0, lowest[np.maximum(below, 0)], 0.0)
    high = np.where(above < start.size, 1 - mirrored[np.minimum(above, start.size - 1)], 1.0)
    return low, high


def _highest_lower_limits(n: Ints, k: Ints, tail: float) -> Floats:
    """Return for each group the highest lower limit of runs that end with it or before it."""
    from scipy.special import betaincinv

    found = np.zeros(n.size)
    ends = np.flatnonzero(k > 0)
    rows, events = (np.concatenate([[0], np.cumsum(column)]) for column in (n, k))
    for end in ends:
        starts = ends[ends <= end]
        total, hits = rows[end + 1] - rows[starts], events[end + 1] - events[starts]
        found[end] = float(betaincinv(hits, total - hits + 1, tail).max())
    highest: Floats = np.maximum.accumulate(found)
    return highest
