"""Debiased squared deviations from calibration with their influence per row, and paired tests of their difference."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._support.typing import Floats, Ints
from calibrant.inference.paired import PairedDifference

__all__ = ["SquaredDeviation", "cell_deviation", "deviation_difference", "mean_loss_difference", "share_deviation"]


@dataclass(frozen=True, eq=False)
class SquaredDeviation:
    """A weighted mean of squared deviations, less the part that chance adds.

    Attributes
    ----------
    value : float
    influence : ndarray
        First-order effect of each row on the value; the values sum to about 0.
    remainder : float
        Variance of the second-order part, which is all there is if the model is calibrated.
    """

    value: float
    influence: Floats
    remainder: float


def cell_deviation(error: Floats, cell: Ints, weight: Floats | None = None) -> SquaredDeviation:
    r"""Mean over rows of the squared mean error of the row's cell, such as a bin.

    With :math:`d_b` the mean error of cell b and :math:`s_b^2` the variance of its errors,
    :math:`\sum_b n_b d_b^2 / N - \sum_b s_b^2 / N`. Cells with one row have no variance and add nothing.
    """
    w = np.ones(error.size) if weight is None else np.asarray(weight, dtype=np.float64)
    n, n2 = (np.bincount(cell, weights=each) for each in (w, w**2))
    total = float(w.sum())
    mean = np.divide(np.bincount(cell, weights=w * error), n, out=np.zeros(n.size), where=n > 0)
    residual = error - mean[cell]
    effective = np.divide(n**2, n2, out=np.ones(n.size), where=n2 > 0)
    unbiased = np.divide(effective, effective - 1, out=np.zeros(n.size), where=effective > 1)
    # Variance of a cell's mean, times the weight of the cell.
    noise = np.divide(np.bincount(cell, weights=(w * residual) ** 2) * unbiased, n, out=np.zeros(n.size), where=n > 0)
    known = effective > 1
    square = np.where(known, mean**2, 0.0)
    value = float(n @ square) / total
    influence = w * (2 * np.where(known, mean, 0.0)[cell] * residual + square[cell] - value) / total
    return SquaredDeviation(value - float(noise.sum()) / total, influence, 2 * float(noise @ noise) / total**2)


def share_deviation(hits: Floats, levels: Floats, weight: Floats | None = None) -> SquaredDeviation:
    """Mean over columns of the squared difference between the mean of a column and its level.

    `hits` has a column per level: whether the outcome lies at or below a predicted quantile, or predicted minus actual
    class with the level 0.
    """
    w = np.ones(len(hits)) if weight is None else np.asarray(weight, dtype=np.float64)
    total, columns = float(w.sum()), hits.shape[1]
    share = w @ hits / total
    d = share - levels
    centred = hits - share
    effective = total**2 / float(w @ w)
    scaled = centred * (w / total)[:, None]
    covariance = scaled.T @ scaled * (effective / max(effective - 1, 1.0))
    value = float(d @ d) / columns
    return SquaredDeviation(
        value - float(np.trace(covariance)) / columns,
        scaled @ (2 * d) / columns,
        2 * float(np.sum(covariance**2)) / columns**2,
    )


def deviation_difference(
    model: SquaredDeviation, baseline: SquaredDeviation, cluster: Ints | None = None
) -> PairedDifference:
    """Return the difference of two squared deviations of the same rows with its variance.

    Remainders are added as if they were uncorrelated or negatively correlated, so that the variance is not too small.
    """
    terms = model.influence - baseline.influence
    if cluster is not None:
        terms = np.bincount(cluster, weights=terms).astype(np.float64)
    count = terms.size
    first = float(terms @ terms) * (count / max(count - 1, 1))
    variance = first + model.remainder + baseline.remainder
    degrees = count - 1.0 if cluster is not None else math.inf
    return PairedDifference(model.value - baseline.value, variance, degrees)


def mean_loss_difference(
    losses: Sequence[Floats], weight: Floats | None = None, cluster: Ints | None = None
) -> PairedDifference:
    """Return the difference of two mean losses of the same rows: a paired t test, of cluster sums with clusters."""
    difference = losses[0] - losses[1]
    if not np.isfinite(difference).all():
        return PairedDifference(math.nan, math.nan, math.inf)
    w = np.ones(difference.size) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    value = float(w @ difference) / total
    terms = w * (difference - value) / total
    effective = total**2 / float(w @ w)
    if cluster is not None:
        terms = np.bincount(cluster, weights=terms).astype(np.float64)
        effective = float(terms.size)
    if effective <= 1:
        return PairedDifference(value, 0.0, math.inf)
    return PairedDifference(value, float(terms @ terms) * effective / (effective - 1), effective - 1)
