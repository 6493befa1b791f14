"""Pairs of classes that are confused: one occurs more often than predicted where the other has high probability."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.plain_data import PlainResult
from calibrant.inference.multiplicity import holm
from calibrant.inference.residual_tests import cluster_degrees
from calibrant.kinds.multiclass.design import ClassRows

# Pairs whose excess is below this number of standard errors are not tested further.
_MIN_ERRORS = 2.0


@dataclass(frozen=True)
class Confusion(PlainResult):
    """A pair of classes: `label` occurs more often than predicted where `predicted_label` has high probability.

    Attributes
    ----------
    label, predicted_label : int
        Columns of the two classes.
    predicted, observed : float
        Mean probability and rate of `label`, over rows weighted by the probability of `predicted_label`.
    standard_error : float
        Of observed - predicted.
    pvalue, adjusted_pvalue : float
        One-sided, and adjusted by Holm over all ordered pairs; at least the p-value of the omnibus test.

    See Also
    --------
    MulticlassDetails, ClassDeviation

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 1000)
    >>> y = (proba.cumsum(axis=1) > rng.random((1000, 1)) ** 2).argmax(axis=1)
    >>> pair = cb.evaluate(y, proba, n_resamples=99).details.confusions[0]
    >>> pair.observed > pair.predicted, pair.adjusted_pvalue < 0.05
    (True, True)
    """

    label: int
    predicted_label: int
    predicted: float
    observed: float
    standard_error: float
    pvalue: float
    adjusted_pvalue: float


def confusions(rows: ClassRows, omnibus_pvalue: float, alpha: float) -> list[Confusion]:
    """Return the significant pairs, the most significant first.

    The sum of P_d (1{y = c} - P_c) is tested for each pair (c, d). Its variance is the larger of that of a calibrated
    model and that of squared residuals. Its tail is that of a Poisson variable of this variance whose jumps are the
    largest weight P_d of a row, the most skewed such sum; with clusters, Student's too.
    """
    if omnibus_pvalue > alpha:
        return []
    observed, squared = _grouped(rows)
    excess = observed - rows.products
    variance = _variance(rows, squared)
    pvalue = _tails(rows, excess, variance)
    away = ~np.eye(rows.n_classes, dtype=bool)
    adjusted = np.ones(pvalue.shape)
    adjusted[away] = np.maximum(holm(pvalue[away]), omnibus_pvalue)
    total = rows.expected
    found = [
        Confusion(
            int(c),
            int(d),
            float(rows.products[c, d] / total[d]),
            float(observed[c, d] / total[d]),
            float(variance[c, d] ** 0.5 / total[d]),
            float(pvalue[c, d]),
            float(adjusted[c, d]),
        )
        for c, d in np.argwhere(away & (adjusted <= alpha))
    ]
    return sorted(found, key=lambda each: (each.pvalue, each.label, each.predicted_label))


def _grouped(rows: ClassRows) -> tuple[Floats, Floats]:
    """Return sums over the rows of each class c: of weight * P_d, and of what they add to squared residuals."""
    from scipy.sparse import csr_array

    count = rows.n_classes
    observed, squared = np.zeros((2, count, count))
    share = rows.squares * (1 - 2 * rows.own)
    for block, p in rows.blocks():
        code, place = rows.code[block], np.arange(len(p))
        shape = (count, len(p))
        observed += csr_array((rows.counts[block], (code, place)), shape) @ p
        squared += csr_array((share[block], (code, place)), shape) @ p**2
    return observed, squared


def _variance(rows: ClassRows, squared: Floats) -> Floats:
    """Return the variance of each sum: the larger of that of calibrated probabilities and that of squared residuals."""
    model, products = np.zeros((2, rows.n_classes, rows.n_classes))
    for block, p in rows.blocks():
        single = p.astype(np.float32)  # a few digits of a variance suffice
        squares = single**2
        rest = single - squares
        weighted = squares
        if rows.weight is not None:
            rest *= rows.counts[block, None].astype(np.float32)
            weighted = squares * rows.squares[block, None].astype(np.float32)
        model += rest.T @ squares
        products += weighted.T @ squares
    found: Floats = np.maximum(model * rows.mean_weights[:, None], squared + products)
    return found


def _tails(rows: ClassRows, excess: Floats, variance: Floats) -> Floats:
    """Return the p-value of each sum; 1 where it is at most two standard errors."""
    from scipy.special import gammainc, stdtr

    found = np.ones(excess.shape)
    tested = (excess > 0) & (variance > 0)
    tested[tested] = excess[tested] > _MIN_ERRORS * np.sqrt(variance[tested])
    jump = np.broadcast_to(_largest_weights(rows), excess.shape)[tested]
    mean = variance[tested] / jump**2
    found[tested] = gammainc(mean + excess[tested] / jump, mean)
    if rows.cluster is not None and tested.any():
        spread = _cluster_variance(rows, excess)[tested]
        degrees = cluster_degrees(int(rows.degrees) + 1)
        found[tested] = np.maximum(found[tested], stdtr(degrees, -excess[tested] / np.sqrt(spread)))
    return found


def _largest_weights(rows: ClassRows) -> Floats:
    """Return the largest probability of each class, times the row's importance weight."""
    found = np.zeros(rows.n_classes)
    for block, p in rows.blocks():
        found = np.maximum(found, (p * rows.counts[block, None] if rows.importance else p).max(axis=0))
    return found


def _cluster_variance(rows: ClassRows, excess: Floats) -> Floats:
    """Return the variance of the sums by those of clusters."""
    assert rows.cluster is not None
    assert rows.n_clusters is not None
    order = np.argsort(rows.cluster, kind="stable")
    squares = np.zeros(excess.shape)
    for own in np.split(order, np.cumsum(np.bincount(rows.cluster))[:-1]):
        p = rows.proba[own]
        residual = -p
        residual[np.arange(own.size), rows.code[own]] += 1
        squares += (residual.T @ (p * rows.counts[own, None])) ** 2
    count = rows.n_clusters
    found: Floats = (squares - excess**2 / count) * (count / (count - 1))
    return np.maximum(found, 1e-300)
