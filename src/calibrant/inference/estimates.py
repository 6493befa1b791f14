"""Estimates with standard errors and confidence intervals."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import power_of_two
from calibrant._support.json_values import plain
from calibrant._support.short_text import line_html
from calibrant._support.typing import Floats, Ints
from calibrant.inference.result_text import format_level, format_limits, format_pvalues
from calibrant.tables.mean_table import MeanTable

__all__ = ["FEWEST_EQUAL", "Estimate"]

FEWEST_EQUAL = 5  # rows without variation that show that there is none


@dataclass(frozen=True, repr=False)
class Estimate:
    """An estimate with its confidence interval and, where a calibrated model has a known value, the test against it.

    Attributes
    ----------
    name : str
    value, standard_error, low, high, level : float
        The interval is value -+ t standard_error, with Student's t of `df` degrees of freedom. With too few rows
        standard_error, low and high are NaN.
    df : float
        Infinite where the standard error is treated as known.
    null, pvalue : float or None
        Value expected if calibrated, and the two-sided p-value of the hypothesis that it is the true value.

    See Also
    --------
    Interval, TestResult

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> slope = next(each for each in cb.evaluate(table).coefficients if each.name == "calibration slope")
    >>> round(slope.value, 2), round(slope.low, 2), round(slope.high, 2)
    (0.78, 0.59, 0.97)
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
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self)

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits("", self.value, self.low, self.high)
        shown = f"{format_level(self.level, 'CI')} {limits}" if limits else "no interval"
        return f"Estimate({', '.join([f'{self.name} = {value}', shown, *self._pvalues()])})"

    def _pvalues(self) -> list[str]:
        return [] if self.pvalue is None else format_pvalues(self.pvalue)


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
        effective, squares = float(sums.size), float(sums @ sums)
    else:
        effective = float(table.effective_size)
        weight = table.n if table.w2 is None else table.w2
        squares = float(weight @ influence**2)
    if effective <= 1:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    error = unit * math.sqrt(effective / (effective - 1) * squares) / total
    if null == 0 and max(abs(value), error) <= table.rounding:
        value = error = 0.0
    if error == 0 and effective < FEWEST_EQUAL - 1e-9:
        return from_error(name, value, math.nan, 0.0, null=null, level=level)
    return from_error(name, value, error, effective - 1, null=null, level=level)
