"""Bins of equal information for tests over bins: coarse and fine."""

import numpy as np

from calibrant.metrics.bins import EqualInformation
from calibrant.metrics.log_odds import LogOddsBins, ScoreLogits
from calibrant.tables.residuals import event_squares

__all__ = ["MIN_WEIGHTED_EVENTS", "equal_information_bins", "fine_bin_count"]

# Least information per fine bin, and largest number of fine bins.
_MIN_FINE_INFORMATION = 8
_MAX_FINE_BINS = 512
MIN_WEIGHTED_EVENTS = 8  # effective events, and other rows, per bin of weighted rows


def fine_bin_count(information: float) -> int:
    """Return the number of fine bins for so much information."""
    return min(_MAX_FINE_BINS, int(information / _MIN_FINE_INFORMATION))


def equal_information_bins(scores: ScoreLogits, count: int) -> LogOddsBins:
    """Return at most `count` bins; weighted ones have at least 8 effective events and 8 other effective rows."""
    table = scores.table
    bins = scores.bins(EqualInformation(max(count, 1))(table).start)
    if table.w2 is None or len(bins) == 1:
        return bins
    squares = event_squares(table)
    columns = (table.k, squares, table.n - table.k, table.w2 - squares)
    sums = np.stack([bins.total(column) for column in columns], axis=1)
    start, inside = [0], np.zeros(len(columns))
    for begin, own in zip([*bins.start[1:].tolist(), None], sums, strict=True):
        inside = inside + own
        if begin is not None and _are_enough(*inside):
            start.append(begin)
            inside = np.zeros(len(columns))
    if len(start) > 1 and not _are_enough(*inside):  # merge the last bin with the one below
        start.pop()
    return scores.bins(np.array(start, dtype=np.int64))


def _are_enough(events: float, event_squares: float, others: float, other_squares: float) -> bool:
    return min(events**2 - MIN_WEIGHTED_EVENTS * event_squares, others**2 - MIN_WEIGHTED_EVENTS * other_squares) >= 0
