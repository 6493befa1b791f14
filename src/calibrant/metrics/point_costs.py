"""Means of bins of point predictions, with standard errors, tests and intervals that allow for skewness."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from calibrant._support.arrays import Column, Floats, Ints, Weights
from calibrant._support.errors import InputError, Note, check_share
from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import columns
from calibrant.metrics.bins import EqualSize, MeanBins, choose_bins
from calibrant.metrics.costs import Cost, LinearCost, check_cost, evaluate_cost
from calibrant.tables.mean_table import MeanPartition, MeanTable, need_rows, read_mean_table
from calibrant.tables.rows import WeightOptions


@dataclass(frozen=True, eq=False)
class BinMeans:
    r"""Means of bins, tested and given intervals by Student's t, corrected for skewness.

    Hall's (1992) transformation of the statistic t of a mean of m values with skewness :math:`\gamma`,

    .. math::

       g(t) = t + a t^2 + \tfrac13 a^2 t^3 + \tfrac12 a, \quad a = \gamma / (3 \sqrt m),

    has Student's distribution to a higher order than t itself: the t test of skewed errors (prices, amounts, counts)
    rejects far too often in bins of fifty rows.

    Attributes
    ----------
    mean, error, m : ndarray
        Mean, standard error and effective number of rows of each bin; the error is NaN for a single row.
    skewness : float or ndarray
        Median of the skewness of the bins; 0 where rows are merged. A column where means and errors have one row per
        replicate.
    """

    mean: Floats
    error: Floats
    m: Floats
    skewness: float | Floats

    @property
    def _a(self) -> Floats:
        return self.skewness / (3 * np.sqrt(self.m))

    def pvalue(self, expected: Floats) -> Floats:
        """Return two-sided p-values of the hypothesis that the means are `expected`; without spread, 0 or 1."""
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            t = (self.mean - expected) / self.error
            g = t + self._a * t**2 + self._a**2 * t**3 / 3 + self._a / 2
            pvalue = 2 * stdtr(self.m - 1, -np.abs(g))
        return np.asarray(np.where(self.error == 0, (self.mean == expected).astype(np.float64), pvalue))

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Return the limits of the confidence intervals: the values that the test does not reject."""
        from scipy.special import stdtrit

        with np.errstate(divide="ignore", invalid="ignore"):
            reach = stdtrit(self.m - 1, (1 + level) / 2)
            low, high = (self.mean - self._untransformed(side * reach) * self.error for side in (1, -1))
        return low, high

    def _untransformed(self, g: Floats) -> Floats:
        """The t whose transformation is g."""
        a = self._a
        bent = (np.cbrt(1 + 3 * a * (g - a / 2)) - 1) / np.where(a == 0, 1, a)
        return np.where(np.abs(a) < 1e-9, g, bent)


def bin_means(partition: MeanPartition, of: Callable[[slice], Floats], *, rounding: Floats | float = 0.0) -> BinMeans:
    """Return the means per bin of the values that `of` gives for a run of entries, with their standard errors.

    Outcomes inside a merged entry vary by their spread. Means and errors up to `rounding` are 0.
    """
    table, m, mean = partition.table, partition.effective_n, partition.mean(of)
    if table.importance:
        need_rows(table, "An interval or a test with importance weights")

    def away(run: slice) -> Floats:
        return of(run) - mean[partition.labels[run]]

    def squares(run: slice) -> Floats:
        if table.single:
            return away(run) ** 2
        return (table.n if table.w2 is None else table.w2)[run] * away(run) ** 2 + table.m2[run]

    with np.errstate(divide="ignore", invalid="ignore"):
        squared = partition.sums(squares)
        error = np.sqrt(m / (m - 1) * squared) / partition.n
    skewness = 0.0
    if table.has_rows:
        spread = squared if table.w2 is None else partition.weighted(lambda run: away(run) ** 2)
        skewness = _skewness(partition, away, spread)
    error = np.where(error <= rounding, 0.0, error)
    return BinMeans(np.where(np.abs(mean) <= rounding, 0.0, mean), np.where(m > 1, error, np.nan), m, skewness)


def _skewness(partition: MeanPartition, away: Callable[[slice], Floats], squared: Floats) -> float:
    """Median of the skewness of the bins: one bin has too few rows for it, and extreme errors dominate the mean."""

    def cubes(run: slice) -> Floats:
        away_here = away(run)
        return away_here * away_here * away_here  # a power takes ten times as long

    with np.errstate(divide="ignore", invalid="ignore"):
        found = partition.weighted(cubes) / partition.n / (squared / partition.n) ** 1.5
    found = found[np.isfinite(found) & (partition.effective_n >= 3)]
    return float(np.median(found)) if found.size else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class CostByBin:
    """Costs of errors in each bin of the prediction; see `cost_by_bin`.

    Attributes
    ----------
    per_bin : dict of arrays
        lower, upper, n, mean_prediction, cost (mean cost per row), low and high (its confidence interval), shift (the
        shift of the predictions with the least cost), least (the mean cost after it) and avoidable (cost less least).
    level : float
        Confidence level.
    size : float
        Number of rows, or sum of weights.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    cost_by_bin

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.regression import cost_by_bin
    >>> result = cost_by_bin([4.0, 5.0, 6.0, 7.0], [5.0] * 4, cost=cb.costs.LinearCost(over=1, under=3), n_bins=1)
    >>> result.per_bin["cost"], result.per_bin["least"], result.avoidable
    (array([2.5]), array([1.5]), 1.0)
    """

    per_bin: Mapping[str, Any]
    level: float
    size: float
    notes: tuple[Note, ...] = ()

    @property
    def value(self) -> float:
        """Mean cost per row."""
        return float(self.per_bin["n"] @ self.per_bin["cost"] / self.size)

    @property
    def avoidable(self) -> float:
        """Reduction of the mean cost per row by the best shift of each bin: the part due to miscalibration."""
        return float(self.per_bin["n"] @ self.per_bin["avoidable"] / self.size)

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; undefined values are null.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            **{name: getattr(self, name) for name in ("size", "level", "value", "avoidable")},
            "per_bin": columns(self.per_bin),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _cells(self) -> list[list[str]]:
        b = self.per_bin
        rows = [["prediction", "rows", "cost", f"{100 * self.level:g} % interval", "best shift", "avoidable"]]
        for i in range(b["n"].size):
            span = f"{b['low'][i]:.4g} to {b['high'][i]:.4g}" if np.isfinite(b["low"][i]) else "unknown"
            numbers = [f"{b[name][i]:.4g}" for name in ("shift", "avoidable")]
            place = f"{b['lower'][i]:.4g} to {b['upper'][i]:.4g}"
            rows.append([place, f"{b['n'][i]:,.6g}", f"{b['cost'][i]:.4g}", span, *numbers])
        return rows

    def _summary(self) -> str:
        return f"Cost of {self.value:.4g} per row, {self.avoidable:.4g} of it avoidable ({self.size:,.6g} rows)"

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *text_table(self._cells())])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self._cells())}"


def cost_by_bin(
    y_true: MeanTable | Column,
    y_pred: Column | None = None,
    *,
    cost: Cost = LinearCost(over=1, under=1),  # noqa: B008  (frozen)
    n_bins: int | None = None,
    bins: MeanBins | None = None,
    confidence_level: float = 0.95,
    **rows: Unpack[WeightOptions],
) -> CostByBin:
    r"""Mean cost of errors by bins of the prediction, where over- and underestimation cost differently.

    Cost-aware calibration (Yang and Bi, 2025) of point predictions: a prediction :math:`\hat y` of the outcome y costs
    :math:`C_o (\hat y - y)` if it overestimates and :math:`C_u (y - \hat y)` if it underestimates, or by another cost
    function. Each bin has its mean cost with confidence interval, and the shift of its predictions with the least cost:
    for linear costs the :math:`C_u / (C_o + C_u)` quantile of y - y_pred.

    Parameters
    ----------
    y_true, y_pred : columns
        Or one `MeanTable` of rows.
    cost : cost object, default=LinearCost(over=1, under=1)
        Of `calibrant.costs`, or any function of arrays (y_pred, y) that is convex in the difference. Costs with a
        scale, such as ExponentialCost, are made for probabilities: their result depends on the unit of the outcome.
    n_bins, bins, confidence_level
        See `bias_by_bin`.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    CostByBin
        The bins with their costs.

    See Also
    --------
    CostByBin, CostRecalibrator

    Examples
    --------
    >>> from calibrant.metrics.costs import LinearCost
    >>> result = cost_by_bin([4.0, 5.0, 6.0, 7.0], [5.0, 5.0, 5.0, 5.0], cost=LinearCost(over=1, under=3), n_bins=1)
    >>> result.value, result.per_bin["shift"], result.avoidable
    (2.5, array([1.]), 1.0)
    """
    table = read_mean_table(y_true, y_pred, rows)
    check_cost(cost)
    check_share("confidence_level", confidence_level)
    need_rows(table, "cost_by_bin")
    partition = choose_bins(EqualSize, n_bins, bins)(table)
    paid = paid_by_row(cost, table.prediction, table.mean)
    means = bin_means(partition, lambda run: paid[run])
    mean, (low, high) = means.mean, means.limits(confidence_level)
    shift = best_shifts(partition, cost)
    paid_then = paid_by_row(cost, table.prediction + shift[partition.labels], table.mean)
    least = partition.mean(lambda run: paid_then[run])
    per_bin = {
        "lower": partition.lower,
        "upper": partition.upper,
        "n": partition.n,
        "mean_prediction": partition.mean(lambda run: table.prediction[run]),
        "cost": mean,
        "low": low,
        "high": high,
        "shift": np.where(least < mean, shift, 0.0),
        "least": np.minimum(least, mean),
        "avoidable": np.maximum(mean - least, 0.0),
    }
    return CostByBin(per_bin, confidence_level, float(table.size), table.notes)


def paid_by_row(cost: Cost, p: Floats, y: Floats) -> Floats:
    """Return the cost of each row."""
    found = evaluate_cost(cost, p, y)
    if found.shape != p.shape:
        raise InputError(
            f"cost must return a number for each row; got an array of shape {found.shape} for rows of shape {p.shape}.",
            value=cost,
        )
    return found


def best_shifts(partition: MeanPartition, cost: Cost) -> Floats:
    """Return the shift of the predictions of each bin with the least cost.

    For linear costs it is a quantile of outcome less prediction, the lowest of equally good ones. For other costs,
    convex in the difference, it is found by golden-section search between the least and the largest difference.
    """
    table = partition.table
    missing, weight = table.mean - table.prediction, table.n
    order = np.lexsort((missing, partition.labels))
    start = np.searchsorted(partition.labels[order], np.arange(len(partition) + 1))
    bins = [order[a:b] for a, b in pairwise(start)]
    if type(cost) is LinearCost:
        tau = cost.under / (cost.over + cost.under)
        return np.array([quantile(missing[rows], weight[rows], tau) for rows in bins])
    return np.array([_least(cost, table, rows, missing) for rows in bins])


def quantile(values: Floats, weight: Weights, share: float) -> float:
    """Return the lowest of the rising values with at least this share of the weight up to it."""
    held = np.cumsum(weight)
    return float(values[min(int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))), values.size - 1)])


def _least(cost: Cost, table: MeanTable, rows: Ints, missing: Floats) -> float:
    from scipy.optimize import minimize_scalar

    low, high = float(missing[rows[0]]), float(missing[rows[-1]])
    if low == high:
        return low
    p, y, weight = table.prediction[rows], table.mean[rows], table.n[rows]
    found = minimize_scalar(
        lambda shift: float(weight @ evaluate_cost(cost, p + shift, y)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-9 * (high - low)},
    )
    return float(found.x)
