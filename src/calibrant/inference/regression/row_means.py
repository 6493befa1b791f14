"""`RowMeans`: means of numbers of rows in many bootstrap replicates at once."""

from collections.abc import Sequence

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import Streams

__all__ = ["RowMeans"]

_MOST_NUMBERS = 5_000_000  # each takes 24 bytes; more are averaged one replicate at a time


class RowMeans:
    """Means over the rows that bootstrap replicates draw, alone or with their clusters.

    Parameters
    ----------
    values : sequence of arrays of shape (n,) or (n, k)
        Finite numbers of the rows.
    cluster : array of int64, optional
        Cluster of each row.
    """

    def __init__(self, values: Sequence[Floats], cluster: Ints | None) -> None:
        size = len(values[0])
        columns = [np.ascontiguousarray(column) for each in values for column in each.reshape(size, -1).T]
        self._ends = np.cumsum([each.reshape(size, -1).shape[1] for each in values])[:-1]
        self._shapes = [each.shape[1:] for each in values]
        zeros, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
        plan = _kernels.Plan(linear=[(column.astype(np.float64), zeros) for column in columns])
        self._kernel = _kernels.replicates(zeros, counts + 1, counts, plan)
        self._order = None if cluster is None else cluster.astype(np.int32)
        self._size, self._rows = size, None if cluster is None else np.bincount(cluster)

    @staticmethod
    def can_hold(values: Sequence[Floats]) -> bool:
        """Return whether numbers are finite and few enough for memory."""
        return sum(each.size for each in values) <= _MOST_NUMBERS and all(np.isfinite(each).all() for each in values)

    def __call__(self, streams: Streams) -> list[list[Floats]]:
        """Return the means of each of the values, for each replicate."""
        draws = self._size if self._rows is None else self._rows.size
        drawn = _kernels.draws(streams.key, streams.first, streams.count, draws)
        sizes = self._size if self._rows is None else (drawn @ self._rows)[:, None]
        means = self._kernel.resample_drawn(drawn, self._order).linear / sizes
        parts = np.split(means, self._ends, axis=1)
        return [
            [part[i].reshape(shape) for part, shape in zip(parts, self._shapes, strict=True)]
            for i in range(streams.count)
        ]
