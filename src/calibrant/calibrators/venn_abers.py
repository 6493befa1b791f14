"""Venn-Abers calibration."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant import _kernels
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.tables.score_table import ScoreTable

__all__ = ["VennAbers"]


class VennAbers(ScoreMap):
    r"""Inductive Venn-Abers calibration: isotonic regression that includes the new row, once with each outcome.

    For each score, isotonic regression is fitted to the rows and the score itself, once with outcome 0 and once with
    outcome 1. This gives two probabilities :math:`p_0 \le p_1`; if rows are independent, one of them is calibrated for
    any distribution. Calling the calibrator merges them to :math:`p_1 / (1 - p_0 + p_1)`, the minimax choice for the
    log loss; `pair` returns both. Scores may be any finite numbers.

    Parameters
    ----------
    *args, **options
        The constructor takes no settings.

    See Also
    --------
    Isotonic

    Notes
    -----
    The merged probability is not calibrated in general: it lies between the two, pulled towards 1/2. With few events
    the two are far apart, and the pull is large: with 8 events in 1,000 rows the mean prediction is about twice the
    true rate. Check the width of `pair`; if it is large, use `Platt` or keep the scores. The section "Few events" of
    the page on calibrators has a simulation.

    The probabilities are computed once for all positions of a new score (two per distinct score), so the calibrator is
    a step function like `Isotonic`, as fast to apply, with more steps. Its values are never 0 or 1. A new row has
    weight 1.

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

    map_kinds: ClassVar[tuple[str, ...]] = ("steps",)

    @property
    def accepts_any_score(self) -> bool:
        return True

    def accepts_map(self, map_: Any) -> bool:
        return bool(((map_.values > 0) & (map_.values < 1)).all())

    def pair(self, score: Column) -> tuple[Floats, Floats]:
        """Return both probabilities of each score: with outcome 0 and with outcome 1.

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
        values = self._read_scores(score)
        low, high = self.pair_
        return low(values), high(values)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        low, high = _kernels.venn_abers(table.n, table.k)
        # Both increase, and so does the merged value, up to rounding error.
        merged, low, high = (np.maximum.accumulate(each) for each in (high / (1 - low + high), low, high))
        # With real weights rounding error may leave [0, 1].
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        self.pair_ = _steps(table.score, low), _steps(table.score, high)
        return _steps(table.score, merged)


def _steps(score: Floats, values: Floats) -> maps.Map:
    """Return the step function of the values before, at and after each score; equal neighbours are merged."""
    edges = np.empty(2 * score.size)
    edges[::2], edges[1::2] = score, np.nextafter(score, np.inf)
    # There is no double between two adjacent doubles.
    places = np.flatnonzero(np.append(True, np.diff(edges, append=np.inf) > 0))
    first = places[np.append(True, np.diff(values[places]) > 0)]
    return maps.Steps(edges[first[1:] - 1], values[first])
