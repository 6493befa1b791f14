"""Rows of class probabilities: each class against the rest as a table, and sums over pairs of classes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.lazy import cached_property
from calibrant.inference.design import Design
from calibrant.inference.paired_rows import PairedRows, check_clusters
from calibrant.tables.score_table import ScoreTable

# Scores of a class are counted in cells of this width of the logit, so that its table is small. Scores of 0 and 1 have
# cells of their own. Beyond these logits scores share one cell: means of finer cells near 1 would not differ.
_CELLS_PER_LOGIT = 64
_LOWEST, _HIGHEST = -36 * _CELLS_PER_LOGIT, 30 * _CELLS_PER_LOGIT
_BELOW_ONE = 1 - 2.0**-53
# Numbers in a block of rows or of columns: 8 MB.
_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Class probabilities with labels: what the tests of a multiclass forecast sum over.

    Attributes
    ----------
    proba : ndarray of shape (n, K)
        Rows sum to 1.
    code : ndarray of int
        The column of each row's class.
    weight : ndarray or None
        Importance weights, or frequencies; None where each row counts once.
    importance : bool
        Whether weights are importance weights.
    cluster : ndarray of int or None
        Codes 0, 1, ... of the clusters.
    """

    proba: Floats
    code: Ints
    weight: Floats | Ints | None = None
    importance: bool = False
    cluster: Ints | None = None

    @classmethod
    def from_arrays(
        cls, proba: Floats, code: Ints, weight: Floats | None, frequency: Ints | None, cluster: Ints | None
    ) -> "ClassRows":
        """Return the rows of checked columns without those of weight or frequency 0."""
        given = frequency if weight is None else weight
        if given is not None and (given == 0).any():
            kept = given > 0
            proba, code, given = proba[kept], code[kept], given[kept]
            cluster = None if cluster is None else cluster[kept]
        if cluster is not None:
            cluster = np.unique(cluster, return_inverse=True)[1]
            check_clusters(int(cluster.max()) + 1)
        return cls(proba, code, given, weight is not None, cluster)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.proba.shape[1])

    @cached_property
    def n_rows(self) -> int:
        """Number of rows; a row with frequency 5 counts as five, one with an importance weight as one."""
        return self.code.size if self.weight is None or self.importance else int(self.weight.sum())

    @cached_property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return None if self.cluster is None else int(self.cluster.max()) + 1

    @cached_property
    def counts(self) -> Floats:
        """Weight of each row."""
        return np.ones(self.code.size) if self.weight is None else self.weight.astype(np.float64)

    @cached_property
    def squares(self) -> Floats:
        """Weight of each row in a variance: its square for importance weights, else its frequency."""
        return self.counts**2 if self.importance else self.counts

    @cached_property
    def mean_weights(self) -> Floats:
        """Mean weight of the rows of each class, by weight: weights may depend on the outcome. 1 for counts."""
        if not self.importance:
            return np.ones(self.n_classes)
        weight, square = (np.bincount(self.code, each, self.n_classes) for each in (self.counts, self.squares))
        overall = float(square.sum() / weight.sum())
        # A class borrows the mean weight of all rows as that of one row.
        return np.asarray((square + overall**2) / (weight + overall), dtype=np.float64)

    @cached_property
    def expected(self) -> Floats:
        """Sum of the probabilities of each class, by weight."""
        return sum((self.counts[rows] @ p for rows, p in self.blocks()), np.zeros(self.n_classes))

    @cached_property
    def own(self) -> Floats:
        """Probability of each row's own class."""
        return self.proba[np.arange(self.code.size), self.code]

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield runs of rows with their probabilities, about 8 MB each."""
        size = max(_BLOCK // self.n_classes, 1)
        for start in range(0, self.code.size, size):
            rows = slice(start, start + size)
            yield rows, np.asarray(self.proba[rows], dtype=np.float64)

    def columns(self) -> Iterator[tuple[int, Floats]]:
        """Yield each class with its probabilities, read in blocks of columns."""
        size = max(_BLOCK // max(self.code.size, 1), 1)
        for start in range(0, self.n_classes, size):
            block = np.ascontiguousarray(self.proba[:, start : start + size].T, dtype=np.float64)
            yield from enumerate(block, start)

    def design(self, event: Bools, p: Floats) -> tuple[Design, Ints]:
        """Return the design of a binary event with probabilities `p`, and the place of each row in its table."""
        filled, place = _compressed(_cells(p))
        event_rows = np.flatnonzero(event)

        def total(values: Floats, rows: Ints | slice = slice(None)) -> Floats:
            return np.bincount(place[rows], values[rows], filled.size).astype(np.float64)

        n, k = total(self.counts), total(self.counts, event_rows)
        score = np.clip(total(self.counts * p) / n, 0.0, _BELOW_ONE)
        score[filled == _ONE] = 1.0
        if self.importance:
            table = ScoreTable(score, n, k, total(self.squares), total(self.squares, event_rows))
        else:
            table = ScoreTable(score, n.astype(np.int64), k.astype(np.int64))
        if self.cluster is None or self.n_clusters is None:
            return Design(table), place
        rows = PairedRows((score,), (place,), event.astype(np.int64), self.weight, self.cluster, self.n_clusters)
        return Design(table, rows), place

    @cached_property
    def products(self) -> Floats:
        """Sum of weight * P_c * P_d for each pair of classes."""
        found = np.zeros((self.n_classes, self.n_classes))
        for rows, p in self.blocks():
            scaled = p if self.weight is None else p * np.sqrt(self.counts[rows, None])
            found += scaled.T @ scaled
        return found

    @cached_property
    def class_covariance(self) -> Floats:
        """Covariance of the residual sums of classes if calibrated: the sum of w^2 (diag(P) - P P').

        Squared weights are replaced by weight times the mean weight of the outcome's class.
        """
        mean, products = self.mean_weights, self.products
        if not self.importance:
            found = -products
            found[np.diag_indices_from(found)] += self.expected
            return found
        typical = np.zeros_like(products)
        for rows, p in self.blocks():
            typical += (p * (self.counts[rows] * (p @ mean))[:, None]).T @ p
        found = typical - (mean[:, None] + mean) * products
        found[np.diag_indices_from(found)] += mean * self.expected
        return found

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of a variance: effective clusters, or effective rows, less 1; infinite for counts."""
        if self.cluster is None and not self.importance:
            return float("inf")
        if self.cluster is not None:
            share = np.bincount(self.cluster, self.counts * (1 - self.sums_of_squares)).astype(np.float64)
        else:
            share = self.squares * np.maximum(1 - 2 * self.own + self.sums_of_squares, 0.0)
        total = float(np.sum(share**2))
        return max(float(share.sum()) ** 2 / total - 1, 1.0) if total > 0 else 1.0

    @cached_property
    def sums_of_squares(self) -> Floats:
        """Sum of P_c^2 of each row."""
        return np.concatenate([np.einsum("ij,ij->i", p, p) for _, p in self.blocks()])

    def cluster_sums(self, values: Floats) -> Floats:
        """Return the sum of weight * value over the rows of each cluster."""
        assert self.cluster is not None
        return np.bincount(self.cluster, self.counts * values).astype(np.float64)


_ONE = _HIGHEST - _LOWEST + 3


def _cells(p: Floats) -> Ints:
    """Return the cell of each probability: 0 for 0, the last for 1, between them cells of equal width of the logit."""
    inside = (p > 0) & (p < 1)
    safe = np.where(inside, p, 0.5)
    logit = np.log(safe) - np.log1p(-safe)
    cell = np.clip(np.floor(logit * _CELLS_PER_LOGIT), _LOWEST, _HIGHEST).astype(np.int64) - (_LOWEST - 1)
    return cell if inside.all() else np.where(inside, cell, np.where(p > 0, _ONE, 0)).astype(np.int64)


def _compressed(cell: Ints) -> tuple[Ints, Ints]:
    """Return the cells that occur, and the place of each row among them."""
    occurs = np.bincount(cell, minlength=_ONE + 1) > 0
    place = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), place[cell]
