"""`MeanPartition`: a table of point predictions cut into bins of the prediction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import _kernels
from calibrant._support.cached_properties import cached_property
from calibrant._support.typing import Floats, Ints, Weights
from calibrant.tables.mean_table import ROUNDING, MeanTable
from calibrant.tables.validation import check_mean_partition, restore

__all__ = ["MeanPartition"]

_RUN = 1 << 15  # entries at a time: temporary arrays of this size stay in the processor's cache


@dataclass(frozen=True, eq=False)
class MeanPartition:
    """Entries of a table in bins of their prediction: no bin is empty, and equal predictions share one.

    Made by a kind of bins (``Quantile(10)(table)``). The entries stay in their order; `labels` has the bin of each.

    Attributes
    ----------
    table : MeanTable
    labels : ndarray of int64
        For each entry of the table the number of its bin, from 0.
    lower, upper : ndarray of float64
        Edges of each bin: the nominal ones where the kind of bins has such. Otherwise a bin holds predictions above
        `lower`, up to and including `upper`; the first bin includes its `lower`.

    Examples
    --------
    >>> from calibrant import Quantile
    >>> table = MeanTable.from_arrays([1.0, 2.0, 5.0, 9.0], [1.0, 3.0, 4.0, 8.0])
    >>> halves = Quantile(2)(table)
    >>> halves.n, halves.mean(lambda run: table.mean[run]), halves.upper
    (array([2., 2.]), array([1.5, 7. ]), array([3., 8.]))
    """

    table: MeanTable
    labels: Ints
    lower: Floats
    upper: Floats

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state, check_mean_partition)

    @classmethod
    def from_last(cls, table: MeanTable, last: Floats, *, edges: Floats | None = None) -> "MeanPartition":
        """Return bins that end with the predictions `last`, which must not fall; the last bin ends with the table.

        `edges`, one more than bins, are nominal edges.
        """
        low, high = table.extremes
        if edges is None:
            last = np.unique(last[(last >= low) & (last < high)])
            labels = _above(last, table.prediction)
            return cls(table, labels, np.concatenate([[low], last]), np.concatenate([last, [high]]))
        labels = _above(last, table.prediction)
        occupied = np.bincount(labels, minlength=last.size + 1) > 0
        return cls(table, (np.cumsum(occupied) - 1)[labels], edges[:-1][occupied], edges[1:][occupied])

    def __len__(self) -> int:
        """Return the number of bins."""
        return self.lower.size

    def sums(self, of: Callable[[slice], Floats | Weights] | None = None) -> Floats:
        """Return the sums per bin of the values that `of` gives for a run of entries; without it, counts of entries."""
        total = np.zeros(len(self))
        for first in range(0, len(self.table), _RUN):
            run = slice(first, first + _RUN)
            values = None if of is None else of(run)
            total += np.bincount(self.labels[run], weights=values, minlength=total.size)
        return total

    def weighted(self, of: Callable[[slice], Floats]) -> Floats:
        """Return the sums per bin of values that count once per row, or by weight."""
        return self.sums(of if self.table.single else lambda run: self.table.n[run] * of(run))

    def mean(self, of: Callable[[slice], Floats]) -> Floats:
        """Return the means per bin of the values that `of` gives for a run of entries."""
        return self.weighted(of) / self.n

    @cached_property
    def n(self) -> Floats:
        """Rows in each bin, or their weight."""
        return self.sums(None if self.table.single else lambda run: self.table.n[run])

    @cached_property
    def effective_n(self) -> Floats:
        """Size of a simple sample with as much information: n, or n^2 / sum of squared weights."""
        w2 = self.table.w2
        return self.n if w2 is None else self.n**2 / self.sums(lambda run: w2[run])

    @property
    def rounding(self) -> Floats:
        """Differences of predictions and outcomes up to this size are rounding."""
        return ROUNDING * np.maximum(np.abs(self.lower), np.abs(self.upper))


def _above(last: Floats, prediction: Floats) -> Ints:
    """For each prediction the number of values that it exceeds."""
    # `locate` counts edges that do not exceed a value, so the edges are the next doubles after the last predictions.
    return _kernels.locate(np.nextafter(last, np.inf), prediction)
