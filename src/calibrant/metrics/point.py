"""Errors of point predictions: mean error, ratio, squared and absolute error. The RD kind of calibration.

Point predictions are calibrated if the mean outcome of the rows with one prediction equals that prediction. All
functions take ``(y_true, y_pred)`` or one `MeanTable`.
"""

import warnings
from typing import Any, Literal

import numpy as np

from calibrant._support.errors import CalibrantWarning, InputError, Note
from calibrant._support.option_checks import check_option
from calibrant._support.typing import Floats
from calibrant.tables.mean_table import MeanTable, as_number, need_rows, read_mean_table

__all__ = ["mae", "mean_error", "mean_quotient", "mse", "ratio", "relative_mse"]


@as_number
def mean_error(table: MeanTable) -> float:
    """Mean error, E(y_pred - y).

    Above 0 the predictions overestimate on average; it is 0 for a calibrated model.

    Examples
    --------
    >>> mean_error([1.0, 2.0, 6.0], [2.0, 3.0, 7.0])
    1.0
    """
    return table.average(table.prediction - table.mean)


@as_number
def ratio(table: MeanTable) -> float:
    """Ratio of the means, E(y_pred) / E(y).

    Above 1 the predictions overestimate in total; it is 1 for a calibrated model. The mean outcome must not be 0. For
    outcomes that can be negative use `mean_error`.

    Examples
    --------
    >>> ratio([1.0, 2.0, 6.0], [2.0, 3.0, 7.0])
    1.3333333333333333
    """
    outcome = table.mean_outcome
    if outcome == 0:
        raise InputError(
            "The mean of y_true must not be 0; got 0.", hint="Use mean_error.", argument="y_true", value=0.0
        )
    return table.mean_prediction / outcome


@read_mean_table.row_options
def mean_quotient(y_true: Any, y_pred: Any = None, *, zeros: Literal["raise", "drop"] = "raise", **rows: Any) -> float:
    """Mean quotient, E(y_pred / y), of Bella et al.

    Near 1 for accurate predictions of outcomes far from 0. Unlike `ratio` it exceeds 1 for many calibrated models,
    because small outcomes have large quotients. Rows with outcome 0 have no quotient: they are an error, or with
    ``zeros="drop"`` they are dropped and counted in a warning.

    Examples
    --------
    >>> mean_quotient([1.0, 2.0, 4.0], [2.0, 3.0, 5.0])
    1.5833333333333333
    """
    table = read_mean_table(y_true, y_pred, rows)
    table, quotients, lost = compute_quotients(table, zeros)
    for note in table.notes + lost:
        warnings.warn(note.text, CalibrantWarning, stacklevel=3)
    return table.average(quotients)


def compute_quotients(table: MeanTable, zeros: Literal["raise", "drop"]) -> tuple[MeanTable, Floats, tuple[Note, ...]]:
    """Return the rows that have a quotient, the quotients, and a note with the number of rows dropped."""
    need_rows(table, "mean_quotient")
    check_option("zeros", zeros, ("raise", "drop"))
    good = table.mean != 0
    if good.all():
        return table, table.prediction / table.mean, ()
    if zeros == "raise" or not good.any():
        row = int(np.argmin(good))
        hint = "Pass zeros='drop' to drop such rows, or use ratio." if zeros == "raise" else "Use mean_error."
        raise InputError(
            f"y_true must not be 0 in a quotient; got 0 in {np.count_nonzero(~good):,} rows (the first is row {row}).",
            hint=hint,
            argument="y_true",
            row=row,
            value=0.0,
        )
    kept = table.part(good)
    lost = round(table.size - kept.size) if not table.importance else int(np.count_nonzero(~good))
    note = Note("zero_outcome", lost, "Rows dropped because their outcome is 0, which has no quotient: {count}.")
    return kept, kept.prediction / kept.mean, (note,)


@as_number
def mse(table: MeanTable) -> float:
    """Mean squared error, E((y_pred - y)^2).

    Examples
    --------
    >>> mse([1.0, 2.0, 6.0], [2.0, 3.0, 9.0])
    3.6666666666666665
    """
    return table.average((table.prediction - table.mean) ** 2) + within_variance(table)


@as_number
def mae(table: MeanTable) -> float:
    """Mean absolute error, E|y_pred - y|; not defined for merged tables.

    Examples
    --------
    >>> mae([1.0, 2.0, 6.0], [2.0, 3.0, 9.0])
    1.6666666666666667
    """
    need_rows(table, "mae")
    return table.average(np.abs(table.prediction - table.mean))


@as_number
def relative_mse(table: MeanTable) -> float:
    r"""Relative mean squared error: squared error over the variance of the outcomes, 1 - R^2.

    .. math::

       \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}

    0 is best; above 1 the mean outcome predicts better. Outcomes must not all be equal. (The chapter of Bella et al.
    prints a denominator without a square and without a sum.)

    Examples
    --------
    >>> round(relative_mse([1.0, 2.0, 6.0], [2.0, 3.0, 9.0]), 4)
    0.7857
    """
    spread = variance(table)
    if spread == 0:
        raise InputError("y_true must hold different outcomes; all are equal.", hint="Use mse.", argument="y_true")
    return float(mse.of_table(table) / spread)


def variance(table: MeanTable) -> float:
    """Return the variance of the outcomes: the sum of squares divided by the number of rows."""
    return table.average((table.mean - table.mean_outcome) ** 2) + within_variance(table)


def within_variance(table: MeanTable) -> float:
    """Return the part of the variance that lies within the entries of a merged table."""
    return float(table.m2.sum() / table.size) if not table.single else 0.0
