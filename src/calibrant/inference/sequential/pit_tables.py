"""PIT values as a table of scores and events, so that predictive distributions can be tested over windows."""

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count
from calibrant._support.typing import Floats
from calibrant.tables.score_table import ScoreTable

__all__ = ["pit_table"]


def pit_table(pit: Floats, *, n_bins: int = 10) -> ScoreTable:
    """Return the table of PIT values whose likelihood is that of their counts in bins of equal width.

    A value passes through `n_bins` bins from below. In bin b = 0, 1, ... it stops with probability 1 / (n_bins - b) if
    it has come so far: that is the score of a row, and stopping there is its event. The last bin, where every value
    stops, is left out. The number of rows of a score depends on outcomes, so only likelihoods may use the table: not
    the forms of `EProcess` for windows with dependent rows.

    Parameters
    ----------
    pit : array
        Values of the predictive distribution functions at the outcomes, in [0, 1].
    n_bins : int, default 10
        Number of bins, [b / n_bins, (b + 1) / n_bins), the last one closed.

    Returns
    -------
    ScoreTable
        One score per bin but the last.

    See Also
    --------
    pit, EProcess

    Examples
    --------
    >>> table = pit_table(np.array([0.05, 0.15, 0.95]))
    >>> table.n[:3], table.k[:3]
    (array([3, 2, 1]), array([1, 1, 0]))
    """
    check_count("n_bins", n_bins, least=2)
    pit = np.asarray(pit, dtype=np.float64)
    if pit.ndim != 1 or not ((pit >= 0) & (pit <= 1)).all():
        raise InputError("pit must be a one-dimensional array of numbers in [0, 1].", argument="pit", value=pit)
    edges = np.arange(1, n_bins) / n_bins
    stopped = np.bincount(np.searchsorted(edges, pit, side="right"), minlength=n_bins)
    reached = pit.size - np.concatenate([[0], np.cumsum(stopped)[:-1]])
    used = reached[:-1] > 0
    return ScoreTable.from_counts(1 / np.arange(n_bins, 1, -1)[used], reached[:-1][used], stopped[:-1][used])
