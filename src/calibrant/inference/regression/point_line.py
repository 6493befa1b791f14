"""The line of outcomes on point predictions, with intervals and the test of slope 1 and intercept 0."""

import math
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from calibrant._support.arrays import Column, Floats, Ints, gram
from calibrant._support.errors import InputError, Note, check_share, join_notes
from calibrant.inference.estimates import FEWEST_EQUAL, from_error
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import TestResult
from calibrant.tables.mean_table import MeanTable, need_rows, read_mean_table
from calibrant.tables.rows import WeightOptions

_TEST = "slope 1 and intercept 0"


@dataclass(frozen=True)
class LinearFit:
    """Line of outcomes on predictions; see `slope_intercept`.

    Attributes
    ----------
    slope, intercept : Estimate
        Coefficients with confidence intervals.
    test : TestResult
        Test of slope 1 and intercept 0.

    See Also
    --------
    slope_intercept

    Examples
    --------
    >>> from calibrant.regression import slope_intercept
    >>> fit = slope_intercept([1.0, 2.0, 4.0, 4.0, 6.0], [2.0, 3.0, 4.0, 5.0, 6.0])
    >>> round(fit.slope.value, 2), round(fit.intercept.value, 2), round(fit.test.pvalue, 3)
    (1.2, -1.4, 0.04)
    """

    slope: Estimate
    intercept: Estimate
    test: TestResult

    def without_inference(self) -> "LinearFit":
        """Return the coefficients without intervals and test, for rows in too few clusters.

        Returns
        -------
        LinearFit
            Limits and p-values are NaN.
        """
        test = replace(self.test, statistic=math.nan, pvalue=math.nan)
        return LinearFit(self.slope.without_inference(), self.intercept.without_inference(), test)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {name: getattr(self, name).to_dict() for name in ("slope", "intercept", "test")}


def slope_intercept(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    confidence_level: float = 0.95,
    **rows: Unpack[WeightOptions],
) -> LinearFit:
    """Fit the line y = intercept + slope y_pred and test that it is y = y_pred (Mincer and Zarnowitz, 1969).

    Least squares, with heteroscedasticity-consistent standard errors (HC3). A slope below 1 means that the predictions
    spread too widely, above 1 too little. The omnibus test is the F test of slope 1 and intercept 0.

    Parameters
    ----------
    y_true, y_pred : columns
        Outcomes and predictions; or one `MeanTable` instead of both.
    confidence_level : float, default=0.95
        Level of the intervals of slope and intercept.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    LinearFit
        Slope and intercept with intervals, and the omnibus test.

    See Also
    --------
    slope_intercept_test, bias, log_odds_error

    Examples
    --------
    >>> fit = slope_intercept([1.0, 2.0, 4.0, 4.0, 6.0], [2.0, 3.0, 4.0, 5.0, 6.0])
    >>> round(fit.slope.value, 3), round(fit.intercept.value, 3)
    (1.2, -1.4)
    """
    table = read_mean_table(y_true, y_pred, rows)
    check_share("confidence_level", confidence_level)
    return fitted_line(table, level=confidence_level)


def fitted_line(table: MeanTable, *, level: float, cluster: Ints | None = None) -> LinearFit:
    """Fit the line with standard errors of rows or of clusters.

    It is fitted to outcome less prediction, on predictions that are centred and scaled to [-1, 1]. That line is 0 for a
    calibrated model, so neither the unit nor the origin of the numbers costs digits.
    """
    if np.ptp(table.prediction) == 0:
        raise InputError("y_pred must hold different predictions for a line; all are equal.", argument="y_pred")
    if table.importance:
        need_rows(table, "The line of a table with importance weights")
    centre = table.mean_prediction
    reach = float(np.abs(table.prediction - centre).max())
    design = np.column_stack([np.ones(len(table)), (table.prediction - centre) / reach])
    missing = table.mean - table.prediction
    weight = table.n.astype(np.float64)
    bread: Floats = np.linalg.inv(gram(design, weight[:, None] * design)).astype(np.float64)
    beta = bread @ gram(design, (weight * missing)[:, None])[:, 0]
    left = missing - design @ beta
    cover, df = _sandwich(table, design, bread, left, cluster)
    # From the centred and scaled line to the one in the unit of the predictions.
    turn = np.array([[1.0, -centre / reach], [0.0, 1 / reach]])
    line, spread = turn @ beta + np.array([0.0, 1.0]), turn @ cover @ turn.T
    intercept, slope = (
        from_error(name, float(line[i]), float(np.sqrt(max(spread[i, i], 0.0))), df, null=float(i), level=level)
        for i, name in enumerate(("intercept", "slope"))
    )
    if not determines_line(table, left):
        test = _no_test(df, table.notes)
    elif float(np.abs(left).max()) <= table.rounding:  # the points lie on a line
        identity = float(np.abs(missing).max()) <= table.rounding
        test = TestResult(*((0.0, 1.0) if identity else (np.inf, 0.0)), _TEST, df=df, notes=table.notes)
    else:
        test = _wald_test(beta, cover, df, cluster is not None, table.notes)
    return LinearFit(slope, intercept, test)


def determines_line(table: MeanTable, residuals: Floats) -> bool:
    """Return whether rows are enough to test a line that leaves these residuals.

    Two points always lie on a line, and a few rows of counts often do. A line without residuals is therefore tested
    only with at least five rows and three distinct predictions, unless all outcomes equal their predictions.
    """
    if float(np.abs(residuals).max()) > table.rounding:
        return table.effective_size >= 3 - 1e-9
    if float(np.abs(table.mean - table.prediction).max()) <= table.rounding:
        return True
    return table.effective_size >= FEWEST_EQUAL - 1e-9 and np.unique(table.prediction).size > 2


def _no_test(df: float, notes: tuple[Note, ...]) -> TestResult:
    text = "The line cannot be tested: there are too few rows or clusters, or most outcomes are equal."
    return TestResult(np.nan, np.nan, _TEST, df=df, notes=join_notes(notes, [Note("no_line_test", 1, text)]))


def _wald_test(beta: Floats, cover: Floats, df: float, clustered: bool, notes: tuple[Note, ...]) -> TestResult:
    """Return the F test that both coefficients are 0; NaN where their covariance is not known."""
    from scipy.special import fdtrc

    size = np.sqrt(np.diag(cover))
    known = df > (1 if clustered else 0) and bool((size > 0).all())
    if known:  # as correlations, whose unit does not matter
        known = float(np.linalg.eigvalsh(cover / np.outer(size, size))[0]) > 1e-9
    if not known:
        return _no_test(df, notes)
    # With clusters, two coefficients take one degree of freedom more than one (Hotelling).
    left_over = df - 1 if clustered else df
    statistic = float(beta @ np.linalg.solve(cover, beta) / 2) * left_over / df
    return TestResult(statistic, float(fdtrc(2, left_over, statistic)), _TEST, df=df, notes=notes)


def _sandwich(
    table: MeanTable, design: Floats, bread: Floats, left: Floats, cluster: Ints | None
) -> tuple[Floats, float]:
    """Return the covariance of the coefficients and its degrees of freedom: HC3, or with clusters CR1."""
    if cluster is not None:
        scores = (table.n * left)[:, None] * design
        sums = np.column_stack([np.bincount(cluster, weights=scores[:, k]) for k in (0, 1)])
        count = len(sums)
        return count / max(count - 1, 1) * bread @ gram(sums, sums) @ bread, float(count - 1)
    leverage = np.einsum("ij,jk,ik->i", design, bread, design) * (1 if table.w2 is None else table.n)
    squares = (table.n if table.w2 is None else table.w2) * left**2 + table.m2
    squares = squares / np.maximum(1 - leverage, 1e-8) ** 2
    return bread @ gram(design, squares[:, None] * design) @ bread, float(table.effective_size) - 2
