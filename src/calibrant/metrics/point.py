"""Measures of predicted numbers: bias, ratio, squared error and its parts, error tolerance. The RD kind of calibration.

A model is calibrated in this sense if among rows with one prediction the mean outcome is that prediction. All take
``(y_true, y_pred)`` or one `MeanTable`.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant._support.errors import CalibrantWarning, InputError, Note, join_notes
from calibrant._support.json_values import plain
from calibrant._support.options import check_share
from calibrant._support.typing import Floats, Ints
from calibrant.inference.estimates import Estimate, from_error
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.tables.mean_table import MeanTable, as_number, need_rows, table_of, take_rows

__all__ = [
    "LinearFit",
    "MSEDecomposition",
    "RECCurve",
    "corp_decomposition",
    "error_tolerance",
    "mae",
    "mean_error",
    "mean_quotient",
    "mse",
    "mse_decomposition",
    "ratio",
    "rec_curve",
    "relative_mse",
    "slope_intercept",
]


@as_number
def mean_error(table: MeanTable) -> float:
    """Mean error E(y_pred - y): above 0 where predictions are too high on average, 0 for a calibrated model.

    Examples
    --------
    >>> mean_error([1.0, 2.0, 6.0], [2.0, 3.0, 7.0])
    1.0
    """
    return table.average(table.prediction - table.mean)


@as_number
def ratio(table: MeanTable) -> float:
    """Ratio of the means, E(y_pred) / E(y): above 1 where predictions are too high in total, 1 for a calibrated model.

    It must be possible to divide by the mean outcome: with a mean of 0, or a variable that can be negative, use
    `mean_error`.

    Examples
    --------
    >>> ratio([1.0, 2.0, 6.0], [2.0, 3.0, 7.0])
    1.3333333333333333
    """
    outcome = table.mean_outcome
    if outcome == 0:
        raise InputError("The mean outcome is 0: there is no ratio to it.", hint="Use mean_error.", argument="y_true")
    return table.mean_prediction / outcome


def mean_quotient(y_true: Any, y_pred: Any = None, *, zeros: Literal["raise", "drop"] = "raise", **rows: Any) -> float:
    """Mean quotient E(y_pred / y) of Bella et al.: near 1 for good predictions of numbers far from 0.

    Rows whose outcome is 0 have no quotient: they are an error, or with ``zeros="drop"`` left out and counted in a
    warning. Unlike `mean_error` and `ratio` this is not 1 for every calibrated model: where outcomes scatter around a
    right prediction, the quotients of small ones weigh most, and the mean exceeds 1.

    Examples
    --------
    >>> mean_quotient([1.0, 2.0, 4.0], [2.0, 3.0, 5.0])
    1.5833333333333333
    """
    table = table_of(y_true, y_pred, rows)
    table, quotients, lost = quotients_of(table, zeros)
    for note in table.notes + lost:
        warnings.warn(note.text, CalibrantWarning, stacklevel=2)
    return table.average(quotients)


def quotients_of(table: MeanTable, zeros: Literal["raise", "drop"]) -> tuple[MeanTable, Floats, tuple[Note, ...]]:
    """The rows that have a quotient, the quotients, and a note of how many have none."""
    need_rows(table, "mean_quotient")
    if zeros not in ("raise", "drop"):
        raise InputError(f"zeros must be 'raise' or 'drop'; it is {zeros!r}.", argument="zeros", value=zeros)
    good = table.mean != 0
    if good.all():
        return table, table.prediction / table.mean, ()
    if zeros == "raise" or not good.any():
        row = int(np.argmin(good))
        hint = "Pass zeros='drop' to leave such rows out, or use ratio." if zeros == "raise" else "Use mean_error."
        raise InputError(
            f"y_true must not be 0 where a quotient is taken; {np.count_nonzero(~good):,} values are, the first at "
            f"row {row}.",
            hint=hint,
            argument="y_true",
            row=row,
            value=0.0,
        )
    kept = table.part(good)
    lost = round(table.size - kept.size) if not table.importance else int(np.count_nonzero(~good))
    note = Note("zero_outcome", lost, "Rows left out because their outcome is 0, which has no quotient: {count}.")
    return kept, kept.prediction / kept.mean, (note,)


@as_number
def mse(table: MeanTable) -> float:
    """Mean squared error E((y_pred - y)^2).

    Examples
    --------
    >>> mse([1.0, 2.0, 6.0], [2.0, 3.0, 9.0])
    3.6666666666666665
    """
    return table.average((table.prediction - table.mean) ** 2) + _within(table)


@as_number
def mae(table: MeanTable) -> float:
    """Mean absolute error, of y_pred - y; needs rows, not merged ones.

    Examples
    --------
    >>> mae([1.0, 2.0, 6.0], [2.0, 3.0, 9.0])
    1.6666666666666667
    """
    need_rows(table, "mae")
    return table.average(np.abs(table.prediction - table.mean))


@as_number
def relative_mse(table: MeanTable) -> float:
    r"""Relative mean squared error: that of the predictions over that of the mean outcome, 1 - R^2.

    .. math::

       \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}

    (The chapter of Bella et al. prints a denominator without a square and without a sum.) 0 is best; above 1 the mean
    outcome would predict better. Outcomes must not all be equal.

    Examples
    --------
    >>> round(relative_mse([1.0, 2.0, 6.0], [2.0, 3.0, 9.0]), 4)
    0.7857
    """
    spread = variance(table)
    if spread == 0:
        raise InputError(
            "All outcomes are equal, so no error is relative to their spread.", hint="Use mse.", argument="y_true"
        )
    return float(mse.of_table(table) / spread)


def variance(table: MeanTable) -> float:
    """Variance of the outcomes, divided by the number of rows."""
    return table.average((table.mean - table.mean_outcome) ** 2) + _within(table)


def _within(table: MeanTable) -> float:
    return float(table.m2.sum() / table.size) if not table.single else 0.0


# Parts of the squared error


@dataclass(frozen=True)
class MSEDecomposition:
    """Miscalibration, discrimination and uncertainty, which add up to the squared error: mse = mcb - dsc + unc.

    `bias` and `slope` are the parts of mcb that a shift, and then a straight line, would remove.
    """

    mcb: float
    dsc: float
    unc: float
    bias: float
    slope: float
    notes: tuple[Note, ...] = ()

    @property
    def mse(self) -> float:
        """mcb - dsc + unc."""
        return self.mcb - self.dsc + self.unc

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {**plain(self), "mse": self.mse}


@take_rows
def mse_decomposition(table: MeanTable) -> MSEDecomposition:
    r"""CORP decomposition of the squared error, by isotonic recalibration: mse = mcb - dsc + unc.

    mcb is what the best rising map of the predictions would save (0 is best), dsc what the predictions so repaired save
    over the mean outcome (higher is better), unc the variance of the outcomes. Of mcb, :math:`(E \hat y - E y)^2` is
    removed by a shift (`bias`) and :math:`\mathrm{Var}(\hat y)(1 - b)^2`, with b the slope of the regression of
    outcomes on predictions, by a rising line (`slope`; where b < 0 the line is level).

    Examples
    --------
    >>> parts = mse_decomposition([1.0, 2.0, 6.0, 7.0], [2.0, 3.0, 9.0, 8.0])
    >>> parts.mcb, parts.dsc, parts.unc, parts.mse
    (2.875, 6.375, 6.5, 3.0)
    """
    merged = table.merged()
    fitted = isotonic_means(merged)
    error = mse.of_table(merged)
    best = merged.average((fitted - merged.mean) ** 2) + _within(merged)
    unc = variance(merged)
    bias = mean_error.of_table(merged)
    offset = merged.prediction - merged.mean_prediction
    spread = merged.average(offset**2)
    together = merged.average(offset * (merged.mean - merged.mean_outcome))
    # Of the lines that rise: from slope 1 down or up to the best one, or down to 0 where the best one falls.
    saved = spread * (1 - together / spread) ** 2 if together > 0 and spread > 0 else spread - 2 * together
    return MSEDecomposition(error - best, unc - best, unc, bias**2, saved, table.notes)


corp_decomposition = mse_decomposition  # by the name that its sister for probabilities has


def isotonic_means(merged: MeanTable) -> Floats:
    """For each entry of a merged table the value of the rising map that fits the outcomes best."""
    from scipy.optimize import isotonic_regression

    fitted: Floats = isotonic_regression(merged.mean, weights=merged.n.astype(np.float64)).x
    return fitted


@dataclass(frozen=True)
class LinearFit:
    """The line of outcomes on predictions; see `slope_intercept`."""

    slope: Estimate
    intercept: Estimate
    test: TestResult

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {name: getattr(self, name).to_dict() for name in ("slope", "intercept", "test")}


@take_rows
def slope_intercept(table: MeanTable, *, confidence_level: float = 0.95) -> LinearFit:
    """The line y = intercept + slope y_pred, and the test that it is y = y_pred (Mincer and Zarnowitz, 1969).

    Least squares, with standard errors that allow for errors of different spread (HC3). A slope below 1 means that
    predictions spread too widely, above 1 too little. The joint test is the F test of slope 1 and intercept 0.

    Examples
    --------
    >>> fit = slope_intercept([1.0, 2.0, 4.0, 4.0, 6.0], [2.0, 3.0, 4.0, 5.0, 6.0])
    >>> round(fit.slope.value, 3), round(fit.intercept.value, 3)
    (1.2, -1.4)
    """
    check_share("confidence_level", confidence_level)
    return fitted_line(table, level=confidence_level)


def fitted_line(table: MeanTable, *, level: float, cluster: Ints | None = None) -> LinearFit:
    """The line, with errors of rows or of clusters.

    Fitted to outcome less prediction, on centred predictions in units of their reach: that line is 0 for a right model,
    so neither the unit nor the origin of the numbers costs digits.
    """
    from scipy.special import fdtrc

    if np.ptp(table.prediction) == 0:
        raise InputError("All predictions are equal: no line can be drawn through one point.", argument="y_pred")
    if table.importance:
        need_rows(table, "The line of a table with importance weights")
    centre = table.mean_prediction
    reach = float(np.abs(table.prediction - centre).max())
    design = np.column_stack([np.ones(len(table)), (table.prediction - centre) / reach])
    missing = table.mean - table.prediction
    weight = table.n.astype(np.float64)
    bread: Floats = np.linalg.inv(design.T @ (weight[:, None] * design)).astype(np.float64)
    beta = bread @ (design.T @ (weight * missing))
    left = missing - design @ beta
    cover, df = _sandwich(table, design, bread, left, cluster)
    exact = float(np.abs(left).max()) <= table.rounding
    # From the centred and scaled line to the one in the predictions' own unit.
    turn = np.array([[1.0, -centre / reach], [0.0, 1 / reach]])
    line, spread = turn @ beta + np.array([0.0, 1.0]), turn @ cover @ turn.T
    intercept, slope = (
        from_error(name, float(line[i]), float(np.sqrt(max(spread[i, i], 0.0))), df, null=float(i), level=level)
        for i, name in enumerate(("intercept", "slope"))
    )
    statistic = pvalue = np.nan
    notes = table.notes
    size = np.sqrt(np.diag(cover))
    known = df > (0 if cluster is None else 1) and bool((size > 0).all())
    if known:  # as correlations, whose unit does not matter
        known = float(np.linalg.eigvalsh(cover / np.outer(size, size))[0]) > 1e-9
    if exact:  # the points lie on a line: is it the right one?
        right = float(np.abs(beta).max()) <= table.rounding
        statistic, pvalue = (0.0, 1.0) if right else (np.inf, 0.0)
    elif known:
        # Of G clusters two numbers take one degree of freedom more than one (Hotelling).
        left_over = df if cluster is None else df - 1
        statistic = float(beta @ np.linalg.solve(cover, beta) / 2) * left_over / df
        pvalue = float(fdtrc(2, left_over, statistic))
    else:
        text = "The line cannot be tested: there are too few rows or clusters, or most outcomes are equal."
        notes = join_notes(notes, [Note("no_line_test", 1, text)])
    test = TestResult(statistic, pvalue, "slope 1 and intercept 0", df=df, notes=notes)
    return LinearFit(slope, intercept, test)


def _sandwich(
    table: MeanTable, design: Floats, bread: Floats, left: Floats, cluster: Ints | None
) -> tuple[Floats, float]:
    """Covariance of the coefficients and its degrees of freedom: HC3, or with clusters CR1."""
    if cluster is not None:
        scores = (table.n * left)[:, None] * design
        sums = np.column_stack([np.bincount(cluster, weights=scores[:, k]) for k in (0, 1)])
        count = len(sums)
        return count / max(count - 1, 1) * bread @ (sums.T @ sums) @ bread, float(count - 1)
    leverage = np.einsum("ij,jk,ik->i", design, bread, design) * (1 if table.w2 is None else table.n)
    squares = (table.n if table.w2 is None else table.w2) * left**2 + table.m2
    squares = squares / np.maximum(1 - leverage, 1e-8) ** 2
    return bread @ (design.T @ (squares[:, None] * design)) @ bread, float(table.effective_size) - 2


# How often errors stay within a tolerance


@dataclass(frozen=True, eq=False)
class RECCurve:
    """Regression error characteristic; see `rec_curve`."""

    tolerance: Floats
    accuracy: Floats
    area_over: float
    loss: str
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        points = {"tolerance": self.tolerance.tolist(), "accuracy": self.accuracy.tolist()}
        return {**plain(self), **points}

    def at(self, tolerance: float) -> float:
        """The share of rows whose error is at most the tolerance."""
        place = int(np.searchsorted(self.tolerance, tolerance, side="right"))
        return float(self.accuracy[place - 1]) if place else 0.0

    def needed(self, share: float) -> float:
        """The least tolerance that covers this share of the rows."""
        if not 0 < share <= 1:
            raise InputError(f"share must lie in (0, 1]; it is {share!r}.", argument="share", value=share)
        place = int(np.searchsorted(self.accuracy, share * (1 - 1e-12)))
        return float(self.tolerance[min(place, self.tolerance.size - 1)])


@take_rows
def rec_curve(table: MeanTable, *, loss: Literal["absolute", "squared"] = "absolute") -> RECCurve:
    """Regression error characteristic: for every tolerance the share of rows whose error is at most that.

    The counterpart of the ROC curve (Bi and Bennett, 2003). The area over the curve is the mean error itself: MAE, or
    MSE with squared errors. One point for each error that occurs.

    Examples
    --------
    >>> curve = rec_curve([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0])
    >>> curve.tolerance, curve.accuracy, curve.area_over
    (array([0., 1., 3.]), array([0.25, 0.75, 1.  ]), 1.25)
    >>> curve.at(2), curve.needed(0.9)
    (0.75, 3.0)
    """
    if loss not in ("absolute", "squared"):
        raise InputError(f"loss must be 'absolute' or 'squared'; it is {loss!r}.", argument="loss", value=loss)
    need_rows(table, "rec_curve")
    error = np.abs(table.prediction - table.mean)
    error = error if loss == "absolute" else error**2
    tolerance, place = np.unique(error, return_inverse=True)
    share = np.bincount(place, weights=table.n) / table.size
    accuracy = np.minimum(np.cumsum(share), 1.0)
    accuracy[-1] = 1.0
    return RECCurve(tolerance, accuracy, table.average(error), loss, table.notes)


@as_number
def error_tolerance(table: MeanTable, *, share: float = 0.9) -> float:
    """The least tolerance that covers this share of the rows' absolute errors: "90 % of errors are at most ...".

    Examples
    --------
    >>> error_tolerance([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0], share=0.75)
    1.0
    """
    return float(rec_curve.of_table(table).needed(share))
