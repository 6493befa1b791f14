"""What both kernels share about replicates: the plan of sums, their results, and the Poisson numbers of draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._support.typing import Floats, Ints

__all__ = ["Bytes", "Order", "Plan", "ReplicateSums", "TableReplicates", "TestedBlocks", "poisson_shares"]

Bytes: TypeAlias = NDArray[np.uint8]
Order: TypeAlias = NDArray[np.int32]

# With fewer rows, they are drawn one by one.
_FEWEST_FOR_POISSON = 4096
# Poisson numbers of draws have a total that lies so many standard deviations below the number of rows.
_DEVIATIONS_BELOW = 6.0


class TestedBlocks(NamedTuple):
    """Bins of PAVA-BC with these limits, whose scores are tested at this level."""

    n_min: int
    n_max: int
    alpha: float


@dataclass(frozen=True)
class Plan:
    """The sums that are needed of each replicate.

    Attributes
    ----------
    fixed : sequence of ndarray of int64
        First entry of each bin, for bins that are the same in all replicates.
    quantiles : sequence of int
        Numbers of bins of equal size, which are cut anew in each replicate; see `calibrant.Quantile`.
    blocks : sequence of TestedBlocks
    linear : sequence of pairs of ndarray
        Coefficients (a, b) of each entry; the sum of n a + k b is needed.
    """

    fixed: Sequence[Ints] = ()
    quantiles: Sequence[int] = ()
    blocks: Sequence[TestedBlocks] = ()
    linear: Sequence[tuple[Floats, Floats]] = ()

    @property
    def n_bins(self) -> int:
        """Number of bins of all partitions."""
        return sum(starts.size for starts in self.fixed) + sum(self.quantiles)


class ReplicateSums(NamedTuple):
    """Sums of replicates, one row each.

    `n`, `k` and `score` have a column per bin (those of `fixed` first), `linear` and `rejected` one per pair of
    coefficients and per entry of `blocks`; `rejected` is -1 where a decision needs SciPy.
    """

    n: Ints
    k: Ints
    score: Floats
    linear: Floats
    rejected: Ints


class TableReplicates(Protocol):
    """Replicates of a table and the sums that a plan needs.

    Row i of replicate r uses the same random numbers on both kernels, with any number of threads and for any plan.
    """

    def simulated(self, key: int, replicate: int) -> Ints:
        """Return the events of a null replicate: outcomes drawn with the scores as probabilities.

        A row is an event if a random number of 16 bits is below 65536 score; if it equals the whole part, 53 further
        bits decide against the fraction.
        """

    def resampled(self, key: int, replicate: int) -> tuple[Ints, Ints]:
        """Return the rows and the events of a bootstrap replicate; the first k of the n rows of a score are events."""

    def simulate(self, key: int, first: int, count: int) -> ReplicateSums:
        """Return the sums of null replicates."""

    def resample(self, key: int, first: int, count: int) -> ReplicateSums:
        """Return the sums of bootstrap replicates."""

    def resample_drawn(self, drawn: Bytes, order: Order | None) -> ReplicateSums:
        """Return the sums of replicates whose rows were drawn together with those of other tables.

        `drawn` says how often each row of the data occurs, one row per replicate. Row i of the table, in order of score
        with events first, is row ``order[i]`` of the data; without an order, they are the same.
        """

    def measure(self, n: Ints, k: Ints) -> ReplicateSums:
        """Return the sums of replicates with these counts, one row each."""


def poisson_shares(size: int) -> Floats:
    """Return the distribution function of the number of draws of a row, a Poisson number; empty for few rows.

    The mean is so far below 1 that the numbers of all rows hardly ever add up to more than `size`.
    """
    if size < _FEWEST_FOR_POISSON:
        return np.empty(0)
    mean = 1 - _DEVIATIONS_BELOW / math.sqrt(size)
    term, total, found = math.exp(-mean), 0.0, list[float]()
    while total + term > total and total + term < 1:
        total += term
        found.append(total)
        term *= mean / len(found)
    return np.array(found)
