"""What both kernels share: types of arguments and results, plans of sums, and the Poisson numbers of draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._support.arrays import Floats, Ints, Weights

Bytes: TypeAlias = NDArray[np.uint8]
Order: TypeAlias = NDArray[np.int32]
# The number of the group of each row.
Codes: TypeAlias = NDArray[np.int32]
# Where the table of each group begins, and the end; then scores, n and k of all tables, one after the other.
GroupTables: TypeAlias = tuple[Ints, Floats, Ints, Ints]

# With fewer rows, they are drawn one by one.
_FEWEST_FOR_POISSON = 4096
# Poisson numbers of draws have a total that lies so many standard deviations below the number of rows.
_DEVIATIONS_BELOW = 6.0


class TestedBlocks(NamedTuple):
    """Bins of PAVA-BC with these limits, whose scores are tested at this level."""

    n_min: int
    n_max: int
    alpha: float


class WeightedBlocks(NamedTuple):
    """Bins of PAVA-BC with real weights, whose scores are tested by Student's t.

    A limit below 0 is not given: then n_min is ``share_min`` of the total weight plus ``root_min`` times its square
    root, and n_max is ``share_max`` of it, or n_min if that is larger. `critical` has the squares of critical values at
    the nodes 0, `step`, 2 `step`, ... of 1 / (degrees of freedom + 1).
    """

    n_min: float
    share_min: float
    root_min: float
    n_max: float
    share_max: float
    critical: Floats
    step: float


@dataclass(frozen=True)
class Plan:
    """The sums that are needed of each replicate.

    Attributes
    ----------
    fixed : sequence of ndarray of int64
        First entry of each bin, for bins that are the same in all replicates.
    quantiles : sequence of int
        Numbers of bins of equal size, which are cut anew in each replicate; see `calibrant.bins.EqualSize`.
    blocks : sequence of TestedBlocks, or of WeightedBlocks for weighted rows
    linear : sequence of pairs of ndarray
        Coefficients (a, b) of each entry; the sum of n a + k b is needed.
    gaps : sequence of pairs (partition, is_absolute)
        The mean of absolute or of signed gaps over one of the partitions, the fixed ones first. A gap is the mean score
        of a bin less its event rate, weighted by rows. Weighted rows have none.
    keeps_sums : bool
        Whether sums over bins are returned; without them, columns of bins are empty. Those of weighted rows always are.
    """

    fixed: Sequence[Ints] = ()
    quantiles: Sequence[int] = ()
    blocks: Sequence[TestedBlocks] | Sequence[WeightedBlocks] = ()
    linear: Sequence[tuple[Floats, Floats]] = ()
    gaps: Sequence[tuple[int, bool]] = ()
    keeps_sums: bool = True

    @property
    def n_bins(self) -> int:
        """Number of bins of all partitions."""
        return sum(starts.size for starts in self.fixed) + sum(self.quantiles)

    @property
    def bytes_per_replicate(self) -> int:
        """Size of the sums of a replicate."""
        of_bins = 3 * self.n_bins if self.keeps_sums else 0
        return 8 * (of_bins + len(self.linear) + len(self.blocks) + len(self.gaps))


class ReplicateSums(NamedTuple):
    """Sums of replicates, one row each.

    `n`, `k` and `score` have a column per bin (those of `fixed` first), `linear` and `rejected` one per pair of
    coefficients and per entry of `blocks`; `rejected` is -1 where a decision needs SciPy. `gaps` is NaN for a replicate
    without rows. Weighted rows have real sums, and no gaps.
    """

    n: Weights
    k: Weights
    score: Floats
    linear: Floats
    rejected: Weights
    gaps: Floats = np.empty((0, 0))


class TableSums(Protocol):
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

    def resample_drawn(self, drawn: Bytes, order: Order | None, limits: Ints | None = None) -> ReplicateSums:
        """Return the sums of replicates whose rows were drawn together with those of other tables, or in clusters.

        `drawn` says how often each row of the data (or each cluster) occurs, one row per replicate. Row i of the table,
        in order of score with events first, has column ``order[i]``; without an order, columns are rows of the table.
        `limits` replaces n_min and n_max of all blocks, side by side, by those of each replicate.
        """

    def resample_together(self, others: Sequence[Self], drawn: Bytes, order: Order | None) -> list[ReplicateSums]:
        """Return the sums of this table and of others for the same draws; see `resample_drawn`.

        The tables differ only in scores and plans: they share the arrays of their counts.
        """

    def simulate_drawn(self, drawn: Bytes, order: Order | None) -> ReplicateSums:
        """Return the sums of null replicates whose outcomes, 0 or 1, were drawn with those of other tables."""

    def measure(self, n: Ints, k: Ints) -> ReplicateSums:
        """Return the sums of replicates with these counts, one row each."""


# From how often each weighted row (or each cluster) occurs in replicates, one row each, and the order of
# `TableSums.resample_drawn` to their sums.
WeightedSums: TypeAlias = Callable[[Bytes | Order, Order | None], ReplicateSums]


def poisson_shares(size: int) -> Floats:
    """Return the distribution function of the number of draws of a row, a Poisson number; empty for few rows.

    The mean is so far below 1 that the numbers of all rows hardly ever add up to more than `size`.
    """
    if size < _FEWEST_FOR_POISSON:
        return np.empty(0)
    return _poisson_distribution(1 - _DEVIATIONS_BELOW / math.sqrt(size))


def unit_poisson_shares() -> Floats:
    """Return the distribution function of a Poisson number with mean 1."""
    return _poisson_distribution(1.0)


def _poisson_distribution(mean: float) -> Floats:
    term, total, shares = math.exp(-mean), 0.0, list[float]()
    while total + term > total and total + term < 1:
        total += term
        shares.append(total)
        term *= mean / len(shares)
    return np.array(shares)
