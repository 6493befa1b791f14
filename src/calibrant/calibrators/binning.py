"""Binning averaging: the event rate of bins with equal numbers of rows."""

from typing import Any, ClassVar

from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.bins import Quantile
from calibrant.tables.score_table import ScoreTable

__all__ = ["BinningAverage"]


class BinningAverage(ScoreMap):
    """Binning averaging (Zadrozny & Elkan): each score is mapped to the event rate of its bin.

    Bins have equal numbers of rows (`Quantile`: equal scores share a bin). The edge of two bins is halfway between the
    neighbouring scores and belongs to the upper bin. Scores may be any finite numbers.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins; the paper uses 10.

    See Also
    --------
    Isotonic, Platt

    Notes
    -----
    The example in the chapter of Bella et al. averages the scores of a bin; the method of Zadrozny & Elkan and this
    class average its outcomes. The map need not be increasing, and a bin with one class is mapped to 0 or 1.

    References
    ----------
    .. [1] Zadrozny & Elkan (2001), "Obtaining calibrated probability estimates from decision trees and naive Bayesian
       classifiers".

    Examples
    --------
    >>> cal = BinningAverage(n_bins=2).fit([0.1, 0.2, 0.6, 0.8], [0, 1, 1, 1])
    >>> cal([0.15, 0.7])
    array([0.5, 1. ])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("steps",)
    is_increasing: ClassVar[bool] = False

    def __init__(self, *, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    @property
    def accepts_any_score(self) -> bool:
        return True

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.values.size <= self.n_bins)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        bins = Quantile(self.n_bins)(table)
        return maps.Steps(maps.between(table.score, bins.start), bins.rate)
