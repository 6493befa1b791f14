"""Estimates from standard errors, and from the influence of each row."""

import math

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot, power_of_two
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import MeanTable

FEWEST_EQUAL = 5  # rows without variation that show that there is none


def from_error(
    name: str, value: float, error: float, df: float, *, null: float | None = None, level: float = 0.95
) -> Estimate:
    """Return the estimate with this standard error."""
    from scipy.special import stdtr, stdtrit

    if not (df > 0 and math.isfinite(error)):
        return Estimate(name, value, math.nan, math.nan, math.nan, level, max(df, 0.0), null)
    reach = float(stdtrit(df, (1 + level) / 2)) * error
    pvalue = None
    if null is not None:
        away = abs(value - null)
        pvalue = float(2 * stdtr(df, -away / error)) if error > 0 else float(away == 0)
    return Estimate(name, value, error, value - reach, value + reach, level, df, null, pvalue)


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
    values, such as errors of counts, do not determine a standard error.
    """
    total, unit = float(table.size), power_of_two(influence)
    influence = influence / unit
    if cluster is not None:
        sums = np.bincount(cluster, weights=table.n * influence)
        effective, squares = float(sums.size), dot(sums, sums)
    else:
        effective = float(table.effective_size)
        weight = table.n if table.w2 is None else table.w2
        squares = dot(weight, influence**2)
    if effective <= 1:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    error = unit * math.sqrt(effective / (effective - 1) * squares) / total
    if null == 0 and max(abs(value), error) <= table.rounding:
        value = error = 0.0
    if error == 0 and effective < FEWEST_EQUAL - 1e-9:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    return from_error(name, value, error, effective - 1, null=null, level=level)
