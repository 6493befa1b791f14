"""Sums per cluster: their covariance, and tests of sums of squares."""

import math
from typing import Any

import numpy as np

from calibrant._support.typing import Floats, Ints

__all__ = ["box_moments", "box_test", "share_covariance", "sum_covariance", "sums_by_cluster", "trace_of_square"]


def sums_by_cluster(cluster: Ints, labels: Ints, values: Any, n_labels: int) -> Floats:
    """Return sums of values (None: counts of rows) per cluster and label, of shape (clusters, labels)."""
    n_clusters = int(cluster.max()) + 1
    flat = np.bincount(cluster * n_labels + labels, weights=values, minlength=n_clusters * n_labels)
    return flat.reshape(n_clusters, n_labels).astype(np.float64)


def sum_covariance(sums: Floats) -> Floats:
    """Return the covariance of the column totals of independent rows."""
    away = sums - sums.mean(axis=0)
    found: Floats = len(sums) / max(len(sums) - 1, 1) * away.T @ away
    return found


def share_covariance(sums: Floats) -> Floats:
    """Return the covariance of the totals of cell counts less their expectation.

    The covariance around the mean makes few clusters reject too often, because a tail with few outcomes has a small
    variance too; the covariance around 0, which holds under calibration, makes ten clusters unable to reject. Their
    mean has the nominal level (docs/studies/regression_error_rates.csv).
    """
    found: Floats = (sum_covariance(sums) + sums.T @ sums) / 2
    return found


def trace_of_square(matrix: Floats, degrees: float) -> float:
    """Return an unbiased estimate of tr(M^2) for normal sums, from an estimated M and its degrees of freedom."""
    g = max(degrees, 2.0)
    trace = float(np.trace(matrix))
    return g**2 / ((g - 1) * (g + 2)) * (float(np.sum(matrix**2)) - trace**2 / g)


def box_test(statistic: float, covariance: Floats, clusters: int) -> tuple[float, float]:
    r"""Return statistic and p-value of a sum of squares of correlated sums, by an F approximation (Box, 1954).

    .. math::

       \frac{T}{\mathrm{tr} M} \sim F(\nu, \nu (G - 1)), \quad \nu = \frac{(\mathrm{tr} M)^2}{\mathrm{tr} M^2}

    with the estimate of :math:`\mathrm{tr} M^2` that is unbiased for normal sums of G clusters.
    """
    from scipy.special import fdtrc

    trace, df, nu = box_moments(covariance, clusters)
    if not trace > 0:
        return math.nan, math.nan
    return statistic / trace, float(fdtrc(nu, nu * df, statistic / trace))


def box_moments(covariance: Floats, clusters: int) -> tuple[float, float, float]:
    """Return trace, degrees of freedom of the estimate, and the equivalent number of independent squares."""
    trace, df = float(np.trace(covariance)), float(clusters - 1)
    square = trace_of_square(covariance, df)
    nu = trace**2 / square if square > 0 else float(len(covariance))
    return trace, df, float(np.clip(nu, 1.0, len(covariance)))
