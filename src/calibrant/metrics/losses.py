"""Losses: from a `Partition` to one number per bin.

A loss declares the properties that inference uses, as attributes of the function or of its class. A loss of your own
that declares the same properties gets bitwise identical intervals, nulls and tests. All are optional:

``measures_gaps`` : bool, default False
    The loss is 0 without a gap between predicted and observed, and grows with gaps of either sign. Without it, values
    on both sides of the null range are evidence against calibration.
``keeps_sign`` : bool, default False
    The loss has the sign of the gap; its absolute value grows with gaps of either sign.
``needs_sums_only`` : bool, default False
    The loss uses only `n`, `k` and `mean_score` of each bin, so tables of replicates need not be built.
``is_elementwise`` : bool, default False
    The loss of a bin depends on `n`, `k`, `rate` and `mean_score` of that bin alone, also where these are arrays with
    one row per replicate.
``equals_gap`` : "signed" or "absolute", optional
    The loss is the mean score less the event rate, or its absolute value, so the kernel computes its mean over bins.
``degree`` : float, default 1
    Power of the gaps with which the loss grows: 2 for squares.
``needs_counts`` : bool, default False
    The loss tests counts of rows, so its null does not exist with importance weights or clusters.
``tests_scores`` : bool, default False
    The loss tests each score. It has ``alpha`` and ``rejects(partition, bins, score)``; see `RejectionRate`.
``range`` : pair of floats, default (0, inf) if the loss measures gaps, else (-inf, inf)
    Range of the metric in the population.
``range_of_scores`` : callable, optional
    From the lowest and the highest score to the bounds of the value of a population with scores between them.
``interval_method`` : str, default "anchored" if the loss measures gaps, else "symmetric"
    See `calibrant.interval`. A norm may declare another default.
``unit`` : str, default "1"
    Unit of the value, "1" or "%".

A loss with several numbers per bin may offer ``columns(partition)``, a mapping of names to arrays with the key "loss",
and ``notes(partition)``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints, Weights, read_only
from calibrant._support.errors import InputError, Note, check_callable, check_share, wrong_value
from calibrant.metrics import significance
from calibrant.metrics.costs import Cost, LinearCost, check_cost, evaluate_cost
from calibrant.metrics.metric import declare
from calibrant.metrics.significance import Test
from calibrant.tables.score_table import BinTotals, Partition

__all__ = [
    "CostLoss",
    "Loss",
    "RejectionRate",
    "absolute_gap",
    "debiased_squared_gap",
    "max_distance",
    "mean_distance",
    "signed_gap",
    "squared_gap",
]

Loss: TypeAlias = Callable[[Partition], Floats]


class ScoreTestLoss(Protocol):
    """A loss that tests each score against the outcomes of its bin, such as `RejectionRate`."""

    @property
    def alpha(self) -> float: ...
    def __call__(self, partition: Partition, /) -> Floats: ...
    def rejects(self, partition: Partition, bins: Ints, score: Floats, /) -> NDArray[np.bool_]: ...


def tests_scores(loss: Any) -> TypeGuard[ScoreTestLoss]:
    """Return whether a loss declares that it tests scores.

    >>> tests_scores(RejectionRate()), tests_scores(absolute_gap)
    (True, False)
    """
    return bool(getattr(loss, "tests_scores", False))


_WEIGHTED_TEST = Note(
    "weighted_test",
    1,
    "Importance weights: each score p is tested by z = (sum of w y - p sum of w) / sqrt(sum of w^2 (y - p)^2) instead "
    "of the exact binomial test. The variance is at least that implied by p; Student's t has (effective rows - 1) "
    "degrees of freedom.",
)


@declare(
    keeps_sign=True,
    needs_sums_only=True,
    is_elementwise=True,
    equals_gap="signed",
    range=(-1.0, 1.0),
    range_of_scores=lambda lowest, highest: (lowest - 1, highest),
)
def signed_gap(partition: Partition | BinTotals) -> Floats:
    """Mean score minus event rate: positive where predictions overestimate.

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.

    Returns
    -------
    ndarray
        One value per bin.

    See Also
    --------
    absolute_gap, squared_gap, GCE

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> bins = EqualWidth(2)(ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    >>> signed_gap(bins).round(3)
    array([-0.3, -0.3])
    """
    return partition.mean_score - partition.rate


@declare(
    measures_gaps=True,
    needs_sums_only=True,
    is_elementwise=True,
    equals_gap="absolute",
    range=(0.0, 1.0),
    range_of_scores=lambda lowest, highest: (0.0, max(1 - lowest, highest)),
)
def absolute_gap(partition: Partition | BinTotals) -> Floats:
    """Distance between mean score and event rate.

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.

    Returns
    -------
    ndarray
        One value per bin.

    See Also
    --------
    signed_gap, squared_gap, GCE

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> bins = EqualWidth(2)(ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    >>> absolute_gap(bins).round(3)
    array([0.3, 0.3])
    """
    return np.abs(signed_gap(partition))


@declare(
    measures_gaps=True,
    needs_sums_only=True,
    is_elementwise=True,
    degree=2,
    range=(0.0, 1.0),
    range_of_scores=lambda lowest, highest: (0.0, max(1 - lowest, highest) ** 2),
)
def squared_gap(partition: Partition | BinTotals) -> Floats:
    """Squared distance between mean score and event rate.

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.

    Returns
    -------
    ndarray
        One value per bin.

    See Also
    --------
    debiased_squared_gap, absolute_gap, GCE

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> bins = EqualWidth(2)(ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    >>> squared_gap(bins).round(3)
    array([0.09, 0.09])
    """
    return np.square(signed_gap(partition))


@declare(measures_gaps=True, degree=2, range=(0.0, 1.0), interval_method="centred")
def debiased_squared_gap(partition: Partition) -> Floats:
    """Squared gap less its expectation for a calibrated bin: (mean - rate)^2 - rate (1 - rate) / (n - 1).

    The estimator of Kumar, Liang and Ma (2019); it can be negative. With one row the expectation is unknown, and
    nothing is subtracted. Importance weights use the effective number of rows.

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.

    Returns
    -------
    ndarray
        One value per bin.

    See Also
    --------
    squared_gap, DebiasedSCE

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> bins = EqualWidth(2)(ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    >>> debiased_squared_gap(bins).round(3)
    array([-0.16,  0.09])
    """
    degrees = partition.effective_n - 1
    expected = partition.rate * (1 - partition.rate) / np.where(degrees > 0, degrees, np.inf)
    return squared_gap(partition) - expected


@declare(measures_gaps=True, range=(0.0, 1.0))
def mean_distance(partition: Partition) -> Floats:
    """Mean distance between the scores of a bin and its event rate.

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.

    Returns
    -------
    ndarray
        One value per bin.

    See Also
    --------
    max_distance, absolute_gap, GCE

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> bins = EqualWidth(2)(ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    >>> mean_distance(bins).round(3)
    array([0.3, 0.3])
    """
    labels, table = partition.labels, partition.table
    distance = np.abs(table.score - partition.rate[labels])
    return np.bincount(labels, weights=table.n * distance) / partition.n


@declare(measures_gaps=True, range=(0.0, 1.0))
def max_distance(partition: Partition) -> Floats:
    """Largest distance between the scores of a bin and its event rate: that of the lowest or the highest score.

    Parameters
    ----------
    partition : Partition
        The bins; see `calibrant.bins`.

    Returns
    -------
    ndarray
        One value per bin.

    See Also
    --------
    mean_distance, absolute_gap, GCE

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> bins = EqualWidth(2)(ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8]))
    >>> max_distance(bins).round(3)
    array([0.4, 0.4])
    """
    return np.maximum(np.abs(partition.min_score - partition.rate), np.abs(partition.max_score - partition.rate))


@dataclass(frozen=True)
class CostLoss:
    """Cost of the gap of a bin: cost(mean score, event rate), the loss of ECC.

    Cost-aware metrics reward deliberate bias towards the cheap side, so the signed gap is a column too.

    Parameters
    ----------
    cost : callable
        One of `calibrant.costs`, or any function of arrays (p, a): not negative, 0 where p equals a.

    See Also
    --------
    ECC, LinearCost, absolute_gap

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import EqualWidth
    >>> from calibrant.metrics.costs import LinearCost
    >>> table = ScoreTable.from_counts([0.2, 0.8], [10, 10], [4, 7])
    >>> CostLoss(LinearCost(over=1, under=5))(EqualWidth(2)(table)).round(3)
    array([1. , 0.1])
    """

    cost: Cost = LinearCost()  # noqa: RUF009  (frozen)
    measures_gaps: ClassVar[bool] = True
    needs_sums_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_cost(self.cost)

    def __call__(self, partition: Partition) -> Floats:
        """Return the cost of each bin.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        array
            One cost per bin.
        """
        predicted, actual = read_only(partition.mean_score), read_only(partition.rate)
        costs = evaluate_cost(self.cost, predicted, actual)
        if costs.shape != predicted.shape or not (np.isfinite(costs) & (costs >= 0)).all():
            raise wrong_value("cost", "must return one finite number that is not negative for each pair (p, a)", costs)
        if np.any(np.asarray(self.cost(actual, actual)) != 0):
            raise InputError("cost must be 0 where p equals a; got another value.")
        return costs

    @property
    def degree(self) -> float:
        """Power of the gaps with which the cost grows, if the cost declares it."""
        return float(getattr(self.cost, "degree", 1.0))

    @property
    def range(self) -> tuple[float, float]:
        """From 0 to the largest cost that the cost declares; without a declaration there is no upper bound."""
        return 0.0, getattr(self.cost, "largest", math.inf)

    def columns(self, partition: Partition) -> dict[str, Floats]:
        """Return the cost and the signed gap (positive: overestimation) of each bin.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        dict of arrays
            The columns that the metric adds to `per_bin`.
        """
        return {"loss": self(partition), "signed_gap": signed_gap(partition)}


@dataclass(frozen=True)
class RejectionRate:
    r"""Share of a bin's rows, in percent, whose score a test rejects: the loss of TCE.

    .. math::

       L(D_b) = \frac{100}{N_b} \sum_{x \in D_b} \mathbf 1\{\text{p-value of } (k_b, N_b) \text{ under } P(x)
       \le \alpha\}

    Each prediction of a bin is tested against the outcomes of the whole bin. Definition 2 of Matsubara et al. (2023);
    a p-value equal to alpha rejects.

    Parameters
    ----------
    test : callable
        One of `calibrant.significance`, or any function of arrays (k, n, p) that returns p-values. With
        `significance.binomial` each decision is that of `scipy.stats.binomtest`, but few p-values are computed.
        With importance weights `significance.weighted` replaces it, with a note; other tests use the effective number
        of rows.
    alpha : float
        Significance level, in (0, 1).

    See Also
    --------
    TCE, binomial

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from calibrant.metrics.bins import PAVA
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> RejectionRate()(PAVA()(table)).round()
    array([50.,  0.])
    """

    test: Test = significance.binomial
    alpha: float = 0.05
    unit: ClassVar[str] = "%"
    measures_gaps: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, 100.0)
    interval_method: ClassVar[str] = "arcsine"
    needs_counts: ClassVar[bool] = True
    tests_scores: ClassVar[bool] = True

    # In larger bins scipy tests each distinct score (`decidable` in the compiled kernel).
    largest_bin: ClassVar[int] = 10**9

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)
        check_callable("test", self.test)

    def __call__(self, partition: Partition) -> Floats:
        """Return the share of rejected rows of each bin, in percent.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        array
            One share per bin, from 0 to 100.
        """
        return self.columns(partition)["loss"]

    def columns(self, partition: Partition) -> dict[str, Floats]:
        """Return the loss and the number of rejected rows of each bin.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        dict of arrays
            The columns that the metric adds to `per_bin`.
        """
        rejected = self._rejected(partition)
        return {"loss": 100 * rejected / partition.n, "rejected": rejected}

    def notes(self, partition: Partition) -> tuple[Note, ...]:
        """Return a note if weights are tested, or if a bin is so large that scipy tests each score.

        Parameters
        ----------
        partition : Partition
            Bins of a table.

        Returns
        -------
        tuple of Note
        """
        if self._tests_weights(partition):
            return (_WEIGHTED_TEST,)
        count = int((partition.n > self.largest_bin).sum())
        if not self.is_exact or count == 0:
            return ()
        return (Note("large_bins", count, "Bins of more than 1e9 rows, in which scipy tested each score: {count}."),)

    @property
    def is_exact(self) -> bool:
        """Whether the test is the exact binomial one, which needs counts and which the kernel decides."""
        return getattr(self.test, "exact_binomial", False)

    def _rejected(self, partition: Partition) -> Weights:
        table = partition.table
        if self.is_exact and not table.importance:
            return _kernels.rejected(table.score, table.n, partition.start, partition.n, partition.k, self.alpha)
        labels = partition.labels
        rejected = np.where(self.rejects(partition, labels, table.score), table.n, 0)
        return np.bincount(labels, weights=rejected).astype(table.n.dtype)

    def rejects(self, partition: Partition, bins: Ints, score: Floats) -> NDArray[np.bool_]:
        """Return whether the outcomes of these bins (by index) reject these scores, one score per index.

        Parameters
        ----------
        partition : Partition
            Bins of a table.
        bins : array of int
            Positions of bins.
        score : array
            One score for each of these.

        Returns
        -------
        array of bool
            Whether the p-value is at most `alpha`.
        """
        w2, k2 = partition.w2, partition.k2
        if self._tests_weights(partition) and w2 is not None and k2 is not None:
            return significance.weighted_decisions((partition.k, partition.n, w2, k2), bins, score, self.alpha)
        if self.is_exact:
            one = np.ones(score.size, dtype=np.int64)
            each = np.arange(score.size)  # as if each score were a bin of its own
            return _kernels.rejected(score, one, each, partition.n[bins], partition.k[bins], self.alpha) > 0
        events, size = partition.effective_k, partition.effective_n
        return np.asarray(self.test(events[bins], size[bins], score) <= self.alpha)

    def _tests_weights(self, partition: Partition) -> bool:
        """Return whether `significance.weighted` replaces the exact test, which needs counts."""
        return self.is_exact and partition.table.importance
