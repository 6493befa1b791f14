"""Venn-Abers calibration."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant import _kernels
from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.typing import Column, Floats
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.tables.score_table import ScoreTable

__all__ = ["VennAbers"]


class VennAbers(ScoreMap):
    r"""Inductive Venn-Abers: isotonic regression that counts the new row too, once with each outcome.

    For a score the rows fitted on and the score itself are calibrated together, its own outcome taken to be 0, then 1.
    That gives two probabilities :math:`p_0 \le p_1`, of which one is calibrated, whatever the distribution, if rows are
    independent. Calling the calibrator merges them to :math:`p_1 / (1 - p_0 + p_1)`, the minimax choice for the log
    loss; `pair` returns both. Scores may be any finite numbers.

    Notes
    -----
    The merged probability is not calibrated in general: it lies between the two, pulled towards 1/2. With few events
    the two are far apart, and the pull is large: with 8 events in 1,000 rows the mean prediction is about twice the
    true rate. Look at the width of `pair`, and use `Platt` or leave the scores as they are where it is large. The
    numbers are under "Few events" in the documentation of calibrators.

    All places that a new score can take are computed once (two for every distinct score), so the calibrator is a step
    function like `Isotonic`, and as fast to apply, but of many more steps. The map is never 0 or 1. A new row
    counts as a row of weight 1.

    References
    ----------
    .. [1] Vovk, Petej & Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees of
       validity".

    Examples
    --------
    >>> VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1])([0.1, 0.9]).round(3)
    array([0.25, 0.75])
    >>> low, high = VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1]).pair([0.1, 0.9])
    >>> low.round(3), high.round(3)
    (array([0.   , 0.667]), array([0.333, 1.   ]))
    """

    learns: ClassVar[tuple[str, ...]] = ("steps",)

    @property
    def takes_any_score(self) -> bool:
        return True

    def could_have_learned(self, map_: Any) -> bool:
        return bool(((map_.values > 0) & (map_.values < 1)).all())

    def pair(self, score: Column) -> tuple[Floats, Floats]:
        """Return both probabilities of each score: with its outcome taken to be 0, and to be 1.

        Parameters
        ----------
        score : column of n scores

        Returns
        -------
        p0, p1 : ndarray of shape (n,)
            ``p0 <= p1``. A large distance means that few rows decide the probability.

        Raises
        ------
        InputError
            If the calibrator was loaded from a file: files hold the merged probabilities only.
        """
        check_is_fitted(self)
        if not hasattr(self, "pair_"):
            raise InputError(
                "pair needs a calibrator that was fitted here; got one from a file, which holds merged probabilities.",
                hint="Fit VennAbers again.",
            )
        column = _columns.read(score, "X")
        _columns.refuse_missing([column])
        values = _columns.finite(column).values
        low, high = self.pair_
        return low(values), high(values)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        low, high = _kernels.venn_abers(table.n, table.k)
        # Both rise, and so does what they are merged to, but for its rounding.
        merged, low, high = (np.maximum.accumulate(each) for each in (high / (1 - low + high), low, high))
        # Sums of real weights leave [0, 1] by their rounding.
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        self.pair_ = _compact(table.score, low), _compact(table.score, high)
        return _compact(table.score, merged)


def _compact(score: Floats, values: Floats) -> maps.Map:
    """Steps of the values before, at and after each score, of which those with equal values are one."""
    edges = np.empty(2 * score.size)
    edges[::2], edges[1::2] = score, np.nextafter(score, np.inf)
    # Between two scores that are neighbours as numbers there is no place.
    places = np.flatnonzero(np.append(True, np.diff(edges, append=np.inf) > 0))
    first = places[np.append(True, np.diff(values[places]) > 0)]
    return maps.Steps(edges[first[1:] - 1], values[first])
