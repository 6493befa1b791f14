"""`Partition`: a table cut into bins, consecutive runs of its entries."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints, Weights, read_only
from calibrant._support.errors import InputError
from calibrant._support.workers import cached_property
from calibrant.tables.score_table import ScoreTable

__all__ = ["BinTotals", "Partition"]


@dataclass(frozen=True, eq=False)
class BinTotals:
    """Sums of rows, events and n * score over bins, for losses that need no more; the last axis counts bins.

    A bin without rows has mean score and rate 0, and so no gap.
    """

    n: Weights
    k: Weights
    score: Floats

    @cached_property
    def rate(self) -> Floats:
        """Event rate of each bin."""
        return self.k / self._size

    @cached_property
    def mean_score(self) -> Floats:
        """Mean score of each bin."""
        return (self.score if self._is_full else np.where(self.n > 0, self.score, 0.0)) / self._size

    @cached_property
    def _size(self) -> Weights:
        return self.n if self._is_full else np.where(self.n > 0, self.n, 1.0)

    @cached_property
    def _is_full(self) -> bool:
        """Whether each bin has rows."""
        return bool((self.n > 0).all())


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """Consecutive runs of the entries of a table: no bin is empty, and equal scores share one.

    Made by a kind of bins (``EqualWidth()(table)``), from cuts or from labels.

    Attributes
    ----------
    table : ScoreTable
    start : ndarray of int64
        First entry of the table in each bin.
    lower, upper : ndarray of float64
        Edges of each bin: the nominal ones if the kind of bins has them, otherwise 0, the midpoints between
        neighbouring scores of two bins, and 1.
    n_empty : int
        Number of nominal bins without rows; they are not part of the partition.

    See Also
    --------
    Breakdown, ScoreTable, EqualWidth

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 1, 1], [0.1, 0.2, 0.8, 0.9])
    >>> halves = Partition.from_cuts(table, [2])
    >>> halves.n, halves.k, halves.rate
    (array([2, 2]), array([1, 2]), array([0.5, 1. ]))
    """

    table: ScoreTable
    start: Ints
    n_empty: int = 0
    _nominal: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", read_only(self.start))

    def __setstate__(self, state: dict[str, Any]) -> None:
        from calibrant.tables import storage

        storage.restore(self, state, storage.check_partition, keep=("_sums",))

    @classmethod
    def from_cuts(cls, table: ScoreTable, cuts: object, *, edges: Floats | None = None) -> "Partition":
        """Return bins that begin at entry 0 and at each of `cuts`.

        A repeated cut makes an empty bin, which is dropped.

        Parameters
        ----------
        table : ScoreTable
            Table to divide.
        cuts : sequence of int
            Entries at which bins begin; they must not decrease.
        edges : array, optional
            Nominal edges, one more than bins.

        Returns
        -------
        Partition
        """
        inner = np.asarray(cuts)
        if inner.size and inner.dtype.kind not in "iu":
            raise InputError(f"cuts must be whole numbers; got type {inner.dtype}.", argument="cuts", value=cuts)
        bounds = np.empty(inner.size + 2, dtype=np.int64)
        bounds[0], bounds[1:-1], bounds[-1] = 0, inner, len(table)
        sizes = bounds[1:] - bounds[:-1]
        if (sizes < 0).any():
            raise InputError(
                f"cuts must not decrease and must lie between 0 and {len(table)}; got {cuts!r}.",
                argument="cuts",
                value=cuts,
            )
        occupied = np.flatnonzero(sizes)
        nominal = None if edges is None else (edges[occupied], edges[occupied + 1])
        return cls(table, bounds[occupied], bounds.size - 1 - occupied.size, nominal)

    @classmethod
    def from_last(cls, table: ScoreTable, last: Floats, *, edges: Floats | None = None) -> "Partition":
        """Return bins that end with given scores; the last bin ends with the table.

        Parameters
        ----------
        table : ScoreTable
            Table to divide.
        last : array
            The last score of each bin but the last one; they must not decrease.
        edges : array, optional
            Nominal edges, one more than bins.

        Returns
        -------
        Partition
        """
        return cls.from_cuts(table, np.searchsorted(table.score, last, side="right"), edges=edges)

    @classmethod
    def from_labels(cls, table: ScoreTable, labels: object) -> "Partition":
        """Return bins of entries with equal labels, which must not decrease.

        Parameters
        ----------
        table : ScoreTable
            Table to divide.
        labels : sequence
            One label per entry; they must not decrease.

        Returns
        -------
        Partition
        """
        values = np.asarray(labels)
        if values.shape != (len(table),):
            raise InputError(
                f"labels must have one value for each of the {len(table):,} distinct scores; got shape {values.shape}.",
                argument="labels",
            )
        if (values[1:] < values[:-1]).any():
            raise InputError("labels must not decrease from one score to the next.", argument="labels")
        return cls.from_cuts(table, np.flatnonzero(values[1:] != values[:-1]) + 1)

    def __len__(self) -> int:
        """Number of bins."""
        return self.start.size

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        lower, upper = _midpoints(self.table.score, self.start) if self._nominal is None else self._nominal
        return read_only(lower), read_only(upper)

    @property
    def lower(self) -> Floats:
        """Lower edge of each bin."""
        return self._edges[0]

    @property
    def upper(self) -> Floats:
        """Upper edge of each bin."""
        return self._edges[1]

    @cached_property
    def _sums(self) -> tuple[Weights, Weights, Floats]:
        table = self.table
        n, k, score = _kernels.bin_sums(table.score, table.n, table.k, self.start)
        return read_only(n), read_only(k), read_only(score)

    def with_sums(self, n: Weights, k: Weights, score: Floats) -> "Partition":
        """Return the same bins with other sums of n, k and n * score; empty bins are dropped.

        Only losses that need sums alone can be computed on the result.

        Parameters
        ----------
        n, k, score : array
            Sums of rows, of events and of n * score, one per bin.

        Returns
        -------
        Partition
        """
        occupied = np.flatnonzero(n)
        other = Partition(self.table, self.start[occupied])
        other.__dict__["_sums"] = n[occupied], k[occupied], score[occupied]
        return other

    @classmethod
    def from_sums(cls, table: ScoreTable, n: Weights, k: Weights, score: Floats) -> "Partition":
        """Return bins that are known by their sums of n, k and n * score alone, for losses that need only these.

        Parameters
        ----------
        table : ScoreTable
            Table that the partition carries; its entries are not used.
        n, k, score : array
            Sums of rows, of events and of n * score, one per bin.

        Returns
        -------
        Partition
        """
        other = cls(table, np.arange(n.size))
        other.__dict__["_sums"] = n, k, score
        return other

    @property
    def n(self) -> Weights:
        """Number of rows in each bin."""
        return self._sums[0]

    @property
    def k(self) -> Weights:
        """Number of rows with the event in each bin."""
        return self._sums[1]

    @property
    def rate(self) -> Floats:
        """Event rate of each bin, equation (3) of the TCE paper."""
        return self.k / self.n

    @property
    def total_score(self) -> Floats:
        """Sum of n * score of each bin."""
        return self._sums[2]

    @property
    def mean_score(self) -> Floats:
        """Mean score of each bin."""
        return self.total_score / self.n

    @property
    def min_score(self) -> Floats:
        """Smallest score of each bin."""
        return self.table.score[self.start]

    @property
    def max_score(self) -> Floats:
        """Largest score of each bin."""
        return self.table.score[self._stop - 1]

    @cached_property
    def w2(self) -> Floats | None:
        """Sum of squared importance weights in each bin; None for counts."""
        return None if self.table.w2 is None else read_only(np.add.reduceat(self.table.w2, self.start))

    @cached_property
    def k2(self) -> Floats | None:
        """Sum of squared importance weights of the rows with the event in each bin; None for counts."""
        return None if self.table.k2 is None else read_only(np.add.reduceat(self.table.k2, self.start))

    @property
    def effective_n(self) -> Floats:
        """Size of a simple sample with as much information: n, or n^2 / sum of squared weights."""
        return self.n.astype(np.float64) if self.w2 is None else self.n**2 / self.w2

    @property
    def effective_k(self) -> Floats:
        """Events in a simple sample of the effective size: rate times `effective_n`."""
        size = self.effective_n
        # Exactly the size if all rows have the event, in spite of rounding.
        return np.where(self.k == self.n, size, np.minimum(self.k * (size / self.n), size))

    @property
    def labels(self) -> Ints:
        """For each entry of the table the number of its bin, from 0."""
        return np.repeat(np.arange(len(self)), self._stop - self.start)

    @property
    def _stop(self) -> Ints:
        return np.append(self.start[1:], len(self.table)).astype(np.int64)

    def __repr__(self) -> str:
        empty = f", {self.n_empty} empty" if self.n_empty else ""
        return f"Partition({len(self)} bins{empty}, of {self.table!r})"


def _midpoints(score: Floats, start: Ints) -> tuple[Floats, Floats]:
    if start.size == 0:
        return np.empty(0), np.empty(0)
    inner = (score[start[1:] - 1] + score[start[1:]]) / 2
    return np.concatenate([[0.0], inner]), np.concatenate([inner, [1.0]])
