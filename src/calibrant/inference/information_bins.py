"""Bins of equal information for tests over bins: as many as a design allows, coarse and fine."""

import numpy as np

from calibrant.inference.design import Design
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.tables.residuals import event_squares

__all__ = ["coarse_bins", "fine_bin_count", "fine_bins"]

# Least information per fine bin, and largest number of fine bins.
_MIN_FINE_INFORMATION = 8
_MAX_FINE_BINS = 512
_CLUSTERS_PER_BIN = 5
MIN_WEIGHTED_EVENTS = 8  # effective events, and other rows, per bin of weighted rows


def coarse_bins(design: Design) -> LogOddsBins:
    """Return bins of equal information, as many as `metrics.bins.information_bins` gives and the design allows."""
    return _equal_information(design, information_bins(design.information))


def fine_bins(design: Design) -> LogOddsBins | None:
    """Return fine bins of equal information; None where they would be at most twice as many as coarse ones."""
    coarse = _limit(design, information_bins(design.information))
    count = _limit(design, fine_bin_count(design.information))
    if count <= 2 * coarse:
        return None
    fine = _equal_information(design, count)
    return fine if len(fine) > 2 * coarse else None


def fine_bin_count(information: float) -> int:
    """Return the number of fine bins for so much information."""
    return min(_MAX_FINE_BINS, int(information / _MIN_FINE_INFORMATION))


def _limit(design: Design, count: int) -> int:
    """Return at most `count` bins, and at most one per five clusters."""
    return count if design.n_clusters is None else min(count, design.n_clusters // _CLUSTERS_PER_BIN)


def _equal_information(design: Design, count: int) -> LogOddsBins:
    """Return at most `count` bins; weighted ones have at least 8 effective events and 8 other effective rows."""
    table = design.table
    bins = LogOddsBins(table, EqualInformation(max(_limit(design, count), 1))(table).start)
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
    return LogOddsBins(table, np.array(start, dtype=np.int64))


def _are_enough(events: float, event_squares: float, others: float, other_squares: float) -> bool:
    return min(events**2 - MIN_WEIGHTED_EVENTS * event_squares, others**2 - MIN_WEIGHTED_EVENTS * other_squares) >= 0
