"""Estimates from standard errors, and from the influence of each row."""

import math

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot, power_of_two
from calibrant.inference.tails import skewed_reaches, skewed_statistic
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import MeanTable

FEWEST_EQUAL = 5  # rows without variation that show that there is none


def from_error(
    name: str,
    value: float,
    error: float,
    df: float,
    *,
    null: float | None = None,
    level: float = 0.95,
    skewness: float = 0.0,
) -> Estimate:
    """Return the estimate with this standard error; `skewness` is that of the estimate."""
    from scipy.special import stdtr, stdtrit

    if not (df > 0 and math.isfinite(error)):
        return Estimate(name, value, math.nan, math.nan, math.nan, level, max(df, 0.0), null)
    below, above = skewed_reaches(float(stdtrit(df, (1 + level) / 2)), skewness)
    pvalue = None
    if null is not None:
        away = value - null
        statistic = skewed_statistic(away / error, skewness) if error > 0 else 0.0
        pvalue = float(2 * stdtr(df, -statistic)) if error > 0 else float(away == 0)
    return Estimate(name, value, error, value - below * error, value + above * error, level, df, null, pvalue)


def from_influence(
    name: str,
    value: float,
    influence: Floats,
    table: MeanTable,
    *,
    cluster: Ints | None = None,
    null: float | None = None,
    level: float = 0.95,
) -> Estimate:
    r"""Return the estimate whose standard error is that of the mean of `influence`, one value per entry of the table.

    .. math::

       \mathrm{SE}^2 = \frac{m}{m - 1} \, \frac{\sum_i w_i^2 \psi_i^2}{W^2}

    with m rows, effective rows or clusters (within which the :math:`w_i \psi_i` are added up first) and m - 1 degrees
    of freedom. Values and errors of the size of rounding errors are set to 0 where the null is 0. Fewer than five equal
    values, such as errors of counts, do not determine a standard error. Limits reach further on the side of the longer
    tail; see `calibrant.inference.tails.skewed_reaches`.
    """
    total, unit = float(table.size), power_of_two(influence)
    influence = influence / unit
    if cluster is not None:
        sums = np.bincount(cluster, weights=table.n * influence)
        effective, squares, cubes = float(sums.size), dot(sums, sums), float(np.sum(sums**3))
    else:
        effective = float(table.effective_size)
        weight = table.n if table.w2 is None else table.w2
        squares = dot(weight, influence**2)
        mean_weight = 1.0 if table.w2 is None else table.w2 / table.n
        cubes = float(np.sum(weight * mean_weight * influence**3))
    if effective <= 1:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    error = unit * math.sqrt(effective / (effective - 1) * squares) / total
    if null == 0 and max(abs(value), error) <= table.rounding:
        value = error = 0.0
    if error == 0 and effective < FEWEST_EQUAL - 1e-9:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    skewness = cubes / squares**1.5 if squares > 0 else 0.0
    return from_error(name, value, error, effective - 1, null=null, level=level, skewness=skewness)
