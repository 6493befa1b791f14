"""Calibrators whose values are event rates of neighbouring scores: isotonic regression, Venn-Abers and bins."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant import _kernels
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.bins import PAVA, EqualSize
from calibrant.tables.score_table import Partition, ScoreTable


@dataclass(eq=False, repr=False, kw_only=True)
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
    any_score: ClassVar[bool] = True
    suits_each_class: ClassVar[bool] = True

    strict: bool = False
    extremes: bool = False

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
    kept = np.concatenate([[x[0] != x[1]], np.ones(x.size - 2, dtype=bool), [x[-1] != x[-2]]])
    return maps.Segments(x[kept], y[kept])


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
    any_score: ClassVar[bool] = True

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
        merged, low, high = map(np.maximum.accumulate, (high / (1 - low + high), low, high))
        # With real weights rounding error may leave [0, 1].
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        self.pair_: tuple[maps.Map, maps.Map] = _steps(table.score, low), _steps(table.score, high)
        return _steps(table.score, merged)


def _steps(score: Floats, values: Floats) -> maps.Map:
    """Return the step function of the values before, at and after each score; equal neighbours are merged."""
    edges = np.empty(2 * score.size)
    edges[::2], edges[1::2] = score, np.nextafter(score, np.inf)
    # There is no double between two adjacent doubles.
    places = np.flatnonzero(np.append(True, np.diff(edges, append=np.inf) > 0))
    first = places[np.append(True, np.diff(values[places]) > 0)]
    return maps.Steps(edges[first[1:] - 1], values[first])


@dataclass(eq=False, repr=False, kw_only=True)
class BinningAverage(ScoreMap):
    """Binning averaging (Zadrozny & Elkan): each score is mapped to the event rate of its bin.

    Bins have equal numbers of rows (`EqualSize`: equal scores share a bin). The edge of two bins is halfway between the
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
    any_score: ClassVar[bool] = True
    is_increasing: ClassVar[bool] = False

    n_bins: int = 10

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.values.size <= self.n_bins)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        bins = EqualSize(self.n_bins)(table)
        return maps.Steps(maps.between(table.score, bins.start), bins.rate)
