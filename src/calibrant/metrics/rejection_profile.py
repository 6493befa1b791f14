"""`RejectionProfile`: where within each bin the test of TCE rejects a score, for the test-based diagram."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Bools, Floats
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.losses import tests_scores

__all__ = ["MAX_BINS", "RejectionProfile", "cells_per_bin"]

MAX_BINS = 1_000  # the test-based diagram shows at most as many
_MAX_CELLS = 800  # of all bins together, which keeps image files small


@dataclass(frozen=True, eq=False)
class RejectionProfile:
    """Decisions of the test of TCE at scores from the lowest to the highest of each bin.

    Attributes
    ----------
    score : ndarray
        Per bin its lowest score, the midpoints of cells of equal length, and its highest score; two scores if these are
        equal.
    rejected : ndarray of bool
        Whether the outcomes of the bin reject that score.

    See Also
    --------
    TCE, RejectionRate

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.results import RejectionProfile
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> profile = RejectionProfile.measure(cb.TCE(bins=cb.Quantile(1))(table))  # one bin, with an event rate of 0.41
    >>> kept = profile.score[~profile.rejected]
    >>> round(float(kept.min()), 2), round(float(kept.max()), 2)
    (0.37, 0.46)
    """

    score: Floats
    rejected: Bools

    @classmethod
    def measure(cls, breakdown: Breakdown) -> "RejectionProfile | None":
        """Test the scores of a test-based breakdown; None with more than 1,000 bins.

        Parameters
        ----------
        breakdown : Breakdown
            Result of TCE, or of another metric whose loss is a `RejectionRate`.

        Returns
        -------
        RejectionProfile or None
            Decisions at scores of each bin.
        """
        partition, loss = breakdown.partition, breakdown.definition.loss
        assert tests_scores(loss)
        if len(partition) > MAX_BINS:
            return None
        cells = cells_per_bin(len(partition))
        ends = zip(partition.min_score, partition.max_score, strict=True)
        scores = [_cell_scores(low, high, cells) for low, high in ends]
        bins = np.repeat(np.arange(len(scores)), [each.size for each in scores])
        score = np.concatenate(scores)
        return cls(score, loss.rejects(partition, bins, score))


def cells_per_bin(n_bins: int) -> int:
    """Return the number of cells into which the diagram divides each bin."""
    return int(np.clip(_MAX_CELLS // n_bins, 3, 48))


def _cell_scores(low: float, high: float, cells: int) -> Floats:
    if low == high:
        return np.array([low, high])
    edges = np.linspace(low, high, cells + 1)
    return np.concatenate([[low], (edges[1:] + edges[:-1]) / 2, [high]])
