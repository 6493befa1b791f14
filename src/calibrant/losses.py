"""Losses: a `Partition` to one number a bin."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from calibrant import _kernels, significance
from calibrant._typing import Floats, Weights
from calibrant.errors import InputError, Note
from calibrant.partition import Partition
from calibrant.significance import Test

__all__ = ["Loss", "RejectionRate", "absolute_gap", "signed_gap", "squared_gap"]

Loss: TypeAlias = Callable[[Partition], Floats]


def signed_gap(partition: Partition) -> Floats:
    """Mean prediction minus rate of the event: positive where predictions are too high."""
    return partition.mean_score - partition.rate


def absolute_gap(partition: Partition) -> Floats:
    """Distance between mean prediction and rate of the event."""
    return np.abs(signed_gap(partition))


def squared_gap(partition: Partition) -> Floats:
    """Square of the distance between mean prediction and rate of the event."""
    return np.square(signed_gap(partition))


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
        With importance weights the others see the effective number of rows.
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

    # Bins larger than this ask scipy about every distinct score (the compiled kernel's kLargestBin).
    largest_bin: ClassVar[int] = 10**8

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise InputError(
                f"alpha must lie between 0 and 1; it is {self.alpha!r}.", argument="alpha", value=self.alpha
            )

    def __call__(self, partition: Partition) -> Floats:
        return self.columns(partition)["loss"]

    def columns(self, partition: Partition) -> dict[str, Floats]:
        """The loss and the rows rejected, for every bin."""
        rejected = self._rejected(partition)
        return {"loss": 100 * rejected / partition.n, "rejected": rejected}

    def notes(self, partition: Partition) -> tuple[Note, ...]:
        """A note where a bin is so large that scipy alone decided."""
        count = int((partition.n > self.largest_bin).sum())
        if self.test is not significance.binomial or count == 0:
            return ()
        return (Note("large_bins", count, "Bins of more than 1e8 rows, tested score by score with scipy: {count}."),)

    def _rejected(self, partition: Partition) -> Weights:
        table = partition.table
        if self.test is significance.binomial:
            if table.importance:
                raise InputError(
                    "The exact binomial test needs counts; this table holds importance weights.",
                    hint="Use test=calibrant.significance.score, which takes effective sizes.",
                    argument="test",
                )
            return _kernels.rejected(table.score, table.n, partition.start, partition.n, partition.k, self.alpha)
        labels, size = partition.labels, partition.effective_n
        # k n_eff / n, which rounding must not keep from n_eff where every row has the event
        events = np.where(partition.k == partition.n, size, np.minimum(partition.k * (size / partition.n), size))
        pvalue = self.test(events[labels], size[labels], table.score)
        return np.bincount(labels, weights=np.where(pvalue <= self.alpha, table.n, 0)).astype(table.n.dtype)
