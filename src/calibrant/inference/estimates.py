"""A number with its interval: how sure an average over rows is."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.json_values import plain
from calibrant._support.typing import Floats, Ints
from calibrant.tables.mean_table import MeanTable

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval and, where a calibrated model has a known value, the test against it.

    Attributes
    ----------
    name : str
    value, standard_error, low, high, level : float
        The interval is value -+ t standard_error, with Student's t of `df` degrees of freedom. (Where rows are too few
        to tell, standard_error, low and high are NaN.)
    df : float
    null, pvalue : float or None
        Value expected if calibrated, and the two-sided p-value of the hypothesis that it is the true one.
    """

    name: str
    value: float
    standard_error: float
    low: float
    high: float
    level: float
    df: float
    null: float | None = None
    pvalue: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return plain(self)


def from_error(
    name: str, value: float, error: float, df: float, *, null: float | None = None, level: float = 0.95
) -> Estimate:
    """The estimate with this standard error."""
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
    r"""The estimate whose error is that of a mean of `influence`, what each entry of the table adds to it.

    .. math::

       \mathrm{SE}^2 = \frac{m}{m - 1} \, \frac{\sum_i w_i^2 \psi_i^2}{W^2}

    with m rows, effective rows or clusters (within which the :math:`w_i \psi_i` are added up first) and m - 1 degrees
    of freedom. What is rounding is 0.
    """
    total = float(table.size)
    if cluster is not None:
        sums = np.bincount(cluster, weights=table.n * influence)
        effective, squares = float(sums.size), float(sums @ sums)
    else:
        effective = float(table.effective_size)
        weight = table.n if table.w2 is None else table.w2
        squares = float(weight @ influence**2)
    if effective <= 1:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    error = math.sqrt(effective / (effective - 1) * squares) / total
    if null == 0 and max(abs(value), error) <= table.rounding:
        value = error = 0.0
    return from_error(name, value, error, effective - 1, null=null, level=level)
