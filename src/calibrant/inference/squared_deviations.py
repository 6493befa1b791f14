"""Debiased squared deviations from calibration, and paired tests of their difference."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot
from calibrant._support.lazy import cached_property
from calibrant.inference.paired import PairedDifference, SquaredPair

# Up to this number of blocks (classes), covariances between blocks are computed; for more they are bounded.
_MAX_JOINT_BLOCKS = 32
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class SampledRows:
    """How rows were sampled: their number, importance weights, and clusters.

    Attributes
    ----------
    size : int
    weight : ndarray or None
    cluster : ndarray of int or None
        Codes 0, 1, ... of the clusters, whose rows may depend on each other.
    """

    size: int
    weight: Floats | None = None
    cluster: Ints | None = None

    @cached_property
    def counts(self) -> Floats:
        """Weight of each row."""
        return np.ones(self.size) if self.weight is None else np.asarray(self.weight, dtype=np.float64)

    @cached_property
    def n_units(self) -> int:
        """Number of independent units."""
        return self.size if self.cluster is None else int(self.cluster.max()) + 1

    @cached_property
    def effective(self) -> float:
        """Number of units of equal weight with the same variance."""
        total = self.unit_sums(self.counts)
        return float(total.sum() ** 2 / (total @ total))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a variance; infinite for independent rows of equal weight."""
        return math.inf if self.weight is None and self.cluster is None else max(self.effective - 1, 1.0)

    @property
    def correction(self) -> float:
        """Factor that makes the variance of a sum over units unbiased."""
        return self.effective / max(self.effective - 1, 1.0)

    def unit_sums(self, values: Floats) -> Floats:
        """Return the sum over the rows of each unit."""
        if self.cluster is None:
            return values
        return np.bincount(self.cluster, weights=values, minlength=self.n_units).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SquaredDeviation:
    """A weighted mean of squared deviations, less the part that chance adds.

    Attributes
    ----------
    value, observed : float
        Without and with the part that chance adds.
    influence : ndarray
        First-order effect of each unit (row or cluster) on the value; the values sum to about 0.
    total : float
        Sum of the weights of the deviations.
    blocks : tuple of matrices
        For each unit its effect on each deviation, times the root of the weight of the deviation: the products of two
        such columns, summed over units, are covariances. A block has the deviations of one class, or all of them.
    """

    value: float
    observed: float
    influence: Floats
    total: float
    blocks: tuple[Any, ...]

    @cached_property
    def own_square(self) -> float:
        """Sum of the squared covariances of the weighted deviations."""
        return self.squared_covariance(self)

    def squared_covariance(self, other: "SquaredDeviation") -> float:
        """Return the sum of the squared covariances between the weighted deviations of two models.

        For many blocks (classes), only covariances within a block are computed, and those between classes are taken as
        for equally frequent classes: their share is 1 / K.
        """
        left, right = self.blocks, other.blocks
        if 1 < len(left) <= _MAX_JOINT_BLOCKS:
            from scipy.sparse import hstack

            left, right = (hstack(left, format="csr"),), (hstack(right, format="csr"),)
        found = sum(_sum_of_squares(a.T @ b) for a, b in zip(left, right, strict=True))
        return found / (self.total * other.total) * len(left) / max(len(left) - 1, 1)


class CellErrors(NamedTuple):
    """Errors of rows in cells, such as bins.

    Attributes
    ----------
    error : ndarray
        The error of each row.
    cell : ndarray of int
        The cell of each row.
    size : ndarray or None
        The size of each row, 1 if None. The sum of sizes is the weight of a cell.
    deviation : ndarray or None
        The deviation of each cell; if None, the sum of its errors divided by its weight. If it is given, `error` is the
        effect of each row on it, times the weight of the cell.
    further : ndarray or None
        Variance of each deviation that the errors do not have.
    """

    error: Floats
    cell: Ints
    size: Floats | None = None
    deviation: Floats | None = None
    further: Floats | None = None


def cell_deviation(parts: Iterable[CellErrors], rows: SampledRows, *, least: float = 0.0) -> SquaredDeviation:
    r"""Return the mean squared deviation over the cells of one or several partitions of the same rows.

    With errors e, weights w and sizes v, a cell has :math:`V_b = \sum w v`, :math:`d_b = \sum w e / V_b` and the
    variance :math:`s_b^2` of :math:`d_b`. The value is :math:`\sum_b a_b (d_b^2 - s_b^2) / \sum_b a_b` with
    :math:`a_b = V_b^2 / (V_b + \text{least})`. Cells with one row have no variance and add nothing.
    """
    total = value = noise = 0.0
    influence, share, blocks = np.zeros(rows.size), np.zeros(rows.size), []
    for part in parts:
        cells = _CellSums.of(part, rows, least)
        total += float(cells.weight.sum())
        value += float(cells.weight @ cells.mean**2)
        noise += _sum_of_squares(cells.block) + (0.0 if part.further is None else float(cells.weight @ part.further))
        influence += cells.influence
        share += cells.share
        blocks.append(cells.block)
    if not total > 0:
        return SquaredDeviation(math.nan, math.nan, np.zeros(rows.n_units), 0.0, ())
    influence = rows.unit_sums(rows.counts * (influence - value / total * share)) / total
    return SquaredDeviation((value - noise) / total, value / total, influence, total, tuple(blocks))


class _CellSums(NamedTuple):
    """Sums over the cells of one partition, not yet divided by the total weight."""

    weight: Floats
    mean: Floats
    influence: Floats
    share: Floats
    block: Any

    @classmethod
    def of(cls, part: CellErrors, rows: SampledRows, least: float) -> "_CellSums":
        error, cell, w = part.error, part.cell, rows.counts
        size = np.ones(rows.size) if part.size is None else part.size
        count = int(cell.max()) + 1

        def total(values: Floats) -> Floats:
            return np.bincount(cell, weights=values, minlength=count).astype(np.float64)

        v, squares = total(w * size), total((w * size) ** 2)
        effective = np.divide(v**2, squares, out=np.zeros(count), where=squares > 0)
        known = effective > 1 + 1e-9
        weight = np.where(known, v**2 / np.maximum(v + least, 1e-300), 0.0)
        residual, mean = error, part.deviation
        if mean is None:
            mean = np.divide(total(w * error), v, out=np.zeros(count), where=known)
            residual = error - mean[cell] * size
        # Clusters are corrected as a whole, rows cell by cell.
        unbiased = np.full(count, rows.correction)
        if rows.cluster is None:
            unbiased = np.divide(effective, effective - 1, out=np.zeros(count), where=known)
        scale = np.sqrt(weight * unbiased) / np.where(known, v, 1.0)
        share = (weight / np.where(known, v, 1.0))[cell] * size
        influence = (weight / np.where(known, v, 1.0) * 2 * mean)[cell] * residual + share * mean[cell] ** 2
        return cls(weight, mean, influence, share, _matrix(w * residual * scale[cell], cell, rows, count))


def _matrix(values: Floats, cell: Ints, rows: SampledRows, count: int) -> Any:
    """Return the sums of values per unit and cell, a sparse matrix."""
    from scipy.sparse import csr_array

    if rows.cluster is None:
        return csr_array((values, cell, np.arange(rows.size + 1)), shape=(rows.size, count))
    found = csr_array((values, (rows.cluster, cell)), shape=(rows.n_units, count))
    found.sum_duplicates()
    return found


def share_deviation(hits: Any, levels: Floats, rows: SampledRows) -> SquaredDeviation:
    """Return the mean over columns of the squared difference between the weighted mean of a column and its level.

    `hits` has a column per level: whether the outcome lies at or below a predicted quantile; or predicted less actual
    class, with the level 0. Sparse ones are not centred for their variance, which differs by a share of 1 / n.
    """
    columns = hits.shape[1]
    scaled = rows.counts / rows.counts.sum()
    raw = _matrix(scaled, np.arange(rows.size), rows, rows.size) @ hits
    weight, share = rows.unit_sums(scaled), scaled @ hits
    d = share - levels
    influence = (np.asarray(raw @ d) - weight * float(share @ d)) * 2 / columns
    if isinstance(hits, np.ndarray) or rows.cluster is not None:
        raw = (raw if isinstance(raw, np.ndarray) else raw.toarray()) - np.outer(weight, share)
    block = raw * math.sqrt(rows.correction / columns)
    observed = float(d @ d) / columns
    return SquaredDeviation(observed - _sum_of_squares(block), observed, influence, 1.0, (block,))


def deviation_difference(model: SquaredDeviation, baseline: SquaredDeviation, rows: SampledRows) -> PairedDifference:
    r"""Return the difference of two squared deviations of the same rows with its variance.

    The variance is that of :math:`d' W d` as in `log_odds_difference`: with F the variance by the first-order influence
    of units and :math:`S = 2 \operatorname{tr}((W C)^2)`, the larger of F - S and S, which is that of two calibrated
    models. It is at least the variance of two models with equal squared deviations, their pooled estimate: F depends on
    the estimates, and a deviation that is small by chance has a small variance.
    """
    if math.isnan(model.value) or math.isnan(baseline.value):  # probabilities of 0 and 1 alone
        return PairedDifference(math.nan, math.nan, math.inf, 0.0)
    terms = model.influence - baseline.influence
    cross = model.squared_covariance(baseline)
    second = 2 * (model.own_square + baseline.own_square - 2 * cross)
    first = dot(terms, terms) * rows.correction
    equal = _variance_if_equal(model, baseline, rows) + second
    value, scale = model.value - baseline.value, model.observed + baseline.observed
    # Errors that do not vary: a difference above rounding is certain.
    least = (_ROUNDING * scale) ** 2 if abs(value) > 1e3 * _ROUNDING * scale else 0.0
    squares = SquaredPair((model.value, baseline.value), first, scale, max(second, least))
    return PairedDifference(value, max(first - second, second, equal, least), rows.degrees, squares=squares)


def _variance_if_equal(model: SquaredDeviation, baseline: SquaredDeviation, rows: SampledRows) -> float:
    """Return the first-order variance of the difference if both squared deviations equal their pooled estimate.

    The first-order variance of a squared deviation T is 4 L T, where L, a mean variance of deviations, is estimated by
    F / (4 T) without removing chance from T. Estimates are pooled with the weights 1 / L.
    """
    both = (model, baseline)
    first = [dot(each.influence, each.influence) * rows.correction for each in both]
    if not min(*first, *(each.observed for each in both)) > 0:
        return 0.0
    rate = [f / (4 * each.observed) for f, each in zip(first, both, strict=True)]
    pooled = sum(each.value / r for r, each in zip(rate, both, strict=True)) / sum(1 / r for r in rate)
    a, b = (4 * r * max(pooled, 0.0) for r in rate)
    covariance = dot(model.influence, baseline.influence) * rows.correction
    return a + b - 2 * covariance * math.sqrt(a * b / (first[0] * first[1]))


def _sum_of_squares(matrix: Any) -> float:
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    return float(np.sum(np.square(values)))
