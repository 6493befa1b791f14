"""Losses: a `Partition` to one number per bin.

A loss declares what inference needs to know, as attributes of the function or of its class. A loss of your own that
declares the same properties gets bitwise identical intervals, nulls and tests. All are optional:

``measures_gaps`` : bool, default False
    The loss is 0 without a gap between predicted and observed, and grows with gaps of either sign. Without it,
    readings on both sides speak against calibration.
``keeps_sign`` : bool, default False
    The absolute value of the loss measures gaps.
``needs_sums_only`` : bool, default False
    The loss uses only `n`, `k` and `mean_score` of each bin, so that replicates need not be written out.
``degree`` : float, default 1
    Power of the gaps with which the loss grows: 2 for squares.
``needs_counts`` : bool, default False
    The loss tests counts of rows, so its null does not exist with importance weights or clusters.
``range`` : pair of floats, default (0, inf) if the loss measures gaps, else (-inf, inf)
    Between which the value of the population lies.
``interval_method`` : str, default "anchored" if the loss measures gaps, else "symmetric"
    See `calibrant.interval`. A norm may declare another default.
``unit`` : str, default "1"
    Unit of the value, "1" or "%".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import read_only
from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.properties import declare
from calibrant._support.typing import Floats, Ints, Weights
from calibrant.metrics import significance
from calibrant.metrics.costs import Cost, LinearCost, called_on_arrays, check_cost
from calibrant.metrics.significance import Test
from calibrant.tables.partition import Partition

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

_WEIGHTED_TEST = Note(
    "weighted_test",
    1,
    "Importance weights: each score p is tested by z = (sum of w y - p sum of w) / sqrt(sum of w^2 (y - p)^2), the "
    "variance at least what p implies, with (effective rows - 1) degrees of freedom of Student's t, instead of the "
    "exact binomial test.",
)


@declare(keeps_sign=True, needs_sums_only=True, range=(-1.0, 1.0))
def signed_gap(partition: Partition) -> Floats:
    """Mean prediction minus rate of the event: positive where predictions are too high."""
    return partition.mean_score - partition.rate


@declare(measures_gaps=True, needs_sums_only=True, range=(0.0, 1.0))
def absolute_gap(partition: Partition) -> Floats:
    """Distance between mean prediction and rate of the event."""
    return np.abs(signed_gap(partition))


@declare(measures_gaps=True, needs_sums_only=True, degree=2, range=(0.0, 1.0))
def squared_gap(partition: Partition) -> Floats:
    """Square of the distance between mean prediction and rate of the event."""
    return np.square(signed_gap(partition))


@declare(measures_gaps=True, degree=2, range=(0.0, 1.0), interval_method="centred")
def debiased_squared_gap(partition: Partition) -> Floats:
    """Squared gap less what chance adds to it: (mean - rate)^2 - rate (1 - rate) / (n - 1).

    The estimator of Kumar, Liang and Ma (2019); it can be negative. With one row nothing is known of chance, and
    nothing is taken off. Importance weights use the effective number of rows.
    """
    degrees = partition.effective_n - 1
    chance = partition.rate * (1 - partition.rate) / np.where(degrees > 0, degrees, np.inf)
    return squared_gap(partition) - chance


@declare(measures_gaps=True, range=(0.0, 1.0))
def mean_distance(partition: Partition) -> Floats:
    """Mean distance of a bin's scores to its rate."""
    labels, table = partition.labels, partition.table
    distance = np.abs(table.score - partition.rate[labels])
    return np.bincount(labels, weights=table.n * distance) / partition.n


@declare(measures_gaps=True, range=(0.0, 1.0))
def max_distance(partition: Partition) -> Floats:
    """Largest distance of a bin's scores to its rate: scores are sorted, so that of the first or of the last."""
    return np.maximum(np.abs(partition.min_score - partition.rate), np.abs(partition.max_score - partition.rate))


@dataclass(frozen=True)
class CostLoss:
    """What a bin's gap costs: cost(mean prediction, rate), the loss of ECC.

    Cost-aware measures reward deliberate bias towards the cheap side, so the signed gap is a column beside it.

    Parameters
    ----------
    cost : callable
        One of `calibrant.costs`, or any function of arrays (p, a): not negative, 0 where p equals a.

    Examples
    --------
    >>> from calibrant import EqualWidth, LinearCost, ScoreTable
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
        predicted, actual = read_only(partition.mean_score), read_only(partition.rate)
        costs = called_on_arrays(self.cost, predicted, actual)
        if costs.shape != predicted.shape or not (np.isfinite(costs) & (costs >= 0)).all():
            raise InputError(
                "A cost must give one finite number that is not negative for every pair (p, a).",
                argument="cost",
                value=costs,
            )
        if np.any(np.asarray(self.cost(actual, actual)) != 0):
            raise InputError("A cost must be 0 where the prediction equals the rate.", argument="cost")
        return costs

    @property
    def degree(self) -> float:
        """Power of the gaps with which the cost grows, if the cost declares it."""
        return float(getattr(self.cost, "degree", 1.0))

    @property
    def range(self) -> tuple[float, float]:
        """From 0 to the largest cost that the cost declares; without a declaration, no upper end."""
        return 0.0, getattr(self.cost, "largest", math.inf)

    def columns(self, partition: Partition) -> dict[str, Floats]:
        """The cost and the signed gap (positive: too high) of every bin."""
        return {"loss": self(partition), "signed_gap": signed_gap(partition)}


@dataclass(frozen=True)
class RejectionRate:
    r"""Share of a bin's rows, in percent, whose score a test rejects: the loss of TCE.

    .. math::

       L(D_b) = \frac{100}{N_b} \sum_{x \in D_b} \mathbf 1\{\text{p-value of } (k_b, N_b) \text{ under } P(x)
       \le \alpha\}

    Every prediction of a bin is tested against the outcomes of the whole bin. Definition 2 of Matsubara et al. (2023);
    a p-value equal to alpha rejects.

    Parameters
    ----------
    test : callable
        One of `calibrant.significance`, or any function of arrays (k, n, p) that returns p-values. With
        `significance.binomial` every decision is that of `scipy.stats.binomtest`, at the cost of few tests.
        With importance weights `significance.weighted` takes its place, and a note says so; the other tests see the
        effective number of rows.
    alpha : float
        Significance level, in (0, 1).

    Examples
    --------
    >>> from calibrant import PAVA, ScoreTable
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
    needs_counts: ClassVar[bool] = True  # weights and clusters have no null of it

    # Bins larger than this ask scipy about every distinct score (the compiled kernel's kLargestBin).
    largest_bin: ClassVar[int] = 10**8

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(Argument("alpha") + f" must lie between 0 and 1; it is {self.alpha!r}.", value=self.alpha)

    def __call__(self, partition: Partition) -> Floats:
        return self.columns(partition)["loss"]

    def columns(self, partition: Partition) -> dict[str, Floats]:
        """The loss and the rows rejected, for every bin."""
        rejected = self._rejected(partition)
        return {"loss": 100 * rejected / partition.n, "rejected": rejected}

    def notes(self, partition: Partition) -> tuple[Note, ...]:
        """A note where weights are tested, or where a bin is so large that scipy alone decided."""
        if self._tests_weights(partition):
            return (_WEIGHTED_TEST,)
        count = int((partition.n > self.largest_bin).sum())
        if not self._exact or count == 0:
            return ()
        return (Note("large_bins", count, "Bins of more than 1e8 rows, tested score by score with scipy: {count}."),)

    @property
    def _exact(self) -> bool:
        """Whether the kernel decides: for the exact binomial test, which needs counts."""
        return getattr(self.test, "exact_binomial", False)

    def _rejected(self, partition: Partition) -> Weights:
        table = partition.table
        if self._exact and not table.importance:
            return _kernels.rejected(table.score, table.n, partition.start, partition.n, partition.k, self.alpha)
        labels = partition.labels
        rejected = np.where(self.rejects(partition, labels, table.score), table.n, 0)
        return np.bincount(labels, weights=rejected).astype(table.n.dtype)

    def rejects(self, partition: Partition, bins: Ints, score: Floats) -> NDArray[np.bool_]:
        """Whether the outcomes of the bins with these numbers reject these scores, one a bin."""
        w2, k2 = partition.w2, partition.k2
        if self._tests_weights(partition) and w2 is not None and k2 is not None:
            k, n = partition.k[bins], partition.n[bins]
            return significance.weighted(k, n, score, w2=w2[bins], k2=k2[bins]) <= self.alpha
        events, size = partition.effective_k, partition.effective_n
        return np.asarray(self.test(events[bins], size[bins], score) <= self.alpha)

    def _tests_weights(self, partition: Partition) -> bool:
        """Whether the exact test, which needs counts, gives way to `significance.weighted`."""
        return self._exact and partition.table.importance
