"""Tests of class proportions: is each class predicted as often as it occurs?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats
from calibrant.inference.multiplicity import holm, join_tests
from calibrant.inference.tails import binomial_two_sided, student_quantile, student_two_sided
from calibrant.results.verdict import Claim, Deviation, TestResult, Verdict
from calibrant.tables.class_table import ConfusionTable

# Classes with fewer mistakes (effective rows) are pooled in the omnibus test, whose distribution is asymptotic.
_FEWEST_MISTAKES = 10
_MARGINAL, _SINGLE = "marginal homogeneity", "single classes"


@dataclass(frozen=True)
class ClassProportion:
    """Predicted and actual share of one class.

    Attributes
    ----------
    label : object
    predicted, actual, difference : float
        Shares among predictions and outcomes, and predicted minus actual.
    low, high : float
        Confidence interval of the difference.
    pvalue, adjusted_pvalue : float
        Of "the class is predicted as often as it occurs", for this class alone and adjusted for all tests.

    See Also
    --------
    LabelsDetails, proportions

    Examples
    --------
    >>> import calibrant as cb
    >>> result = cb.evaluate(["a", "b"] * 200, cb.Labels(["a", "a", "b", "a"] * 100))
    >>> [(each.label, each.predicted, each.actual) for each in result.details.classes]
    [('a', 0.75, 0.5), ('b', 0.25, 0.5)]
    """

    label: Any
    predicted: float
    actual: float
    difference: float
    low: float
    high: float
    pvalue: float
    adjusted_pvalue: float

    def without_inference(self) -> "ClassProportion":
        """Return the shares without test and interval, for rows in too few clusters.

        Returns
        -------
        ClassProportion
            Limits and p-values are NaN.
        """
        nan = math.nan
        return replace(self, low=nan, high=nan, pvalue=nan, adjusted_pvalue=nan)

    @property
    def side(self) -> str:
        """Direction: "overestimates" where the class is predicted too often, "underestimates" where too rarely."""
        return "overestimates" if self.difference > 0 else "underestimates" if self.difference < 0 else ""

    def is_shown(self, alpha: float, factor: float = 1.0) -> bool:
        """Return whether the difference is significant.

        Parameters
        ----------
        alpha : float
            Significance level.
        factor : float, default=1
            Factor of the adjusted p-values, for several groups.

        Returns
        -------
        bool
        """
        return self.adjusted_pvalue * factor <= alpha


@dataclass(frozen=True, eq=False)
class _Differences:
    """Predicted minus actual share per class, each with its standard error, degrees of freedom and p-value.

    `mistakes` are the effective numbers of rows in which a class is predicted but not actual, and actual but not
    predicted; `size` is the effective number of all rows.
    """

    value: Floats
    centre: Floats
    error: Floats
    degrees: float
    pvalue: Floats
    mistakes: tuple[Floats, Floats]
    size: float

    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Return lower and upper limits of the differences, each one-sided at `level`.

        The wider of two: Agresti and Min's, and the square-and-add limits of two exact binomial shares, which few
        mistakes need.
        """
        reach = student_quantile(level, self.degrees) * self.error
        over, under = (each / self.size for each in self.mistakes)
        (low_over, high_over), (low_under, high_under) = (_exact_limits(k, self.size, level) for k in self.mistakes)
        down = np.hypot(over - low_over, high_under - under)
        up = np.hypot(high_over - over, under - low_under)
        low = np.minimum.reduce([self.centre - reach, self.value - down, self.value])
        high = np.maximum.reduce([self.centre + reach, self.value + up, self.value])
        return np.clip(low, -1, 1), np.clip(high, -1, 1)


def decide_proportions(
    table: ConfusionTable,
    cluster_sums: Floats | None = None,
    cluster_sizes: Floats | None = None,
    *,
    margin: float,
    alpha: float,
    confidence_level: float,
) -> tuple[Verdict, tuple[ClassProportion, ...]]:
    """Test whether each class is predicted as often as it occurs, and whether each lies within the margin.

    Parameters
    ----------
    table : ConfusionTable
    cluster_sums : ndarray of shape (clusters, K), optional
        Predicted minus actual weight of each class in each cluster, where rows are in clusters.
    cluster_sizes : ndarray of shape (clusters,), optional
        Total weight of each cluster.

    Notes
    -----
    A class is tested by the rows in which it is either predicted or actual, not both: if proportions are equal, both
    directions are equally likely (McNemar, exact). Importance weights and clusters have a robust variance. The omnibus
    test is that of Stuart and Maxwell, over classes with at least ten such rows; the others count as one class. With
    clusters it is Hotelling's. The confidence interval of a difference adds
    half a row to each cell (Agresti and Min 2005), and is at least as wide as the square-and-add interval of two exact
    binomial shares (Newcombe 1998), so that few mistakes do not make it too narrow.
    """
    found = _clustered(table, cluster_sums, cluster_sizes) if cluster_sums is not None else _independent(table)
    assert cluster_sums is None or cluster_sizes is not None
    # Two classes have one difference between them.
    single = found.pvalue if len(table) == 2 else holm(found.pvalue)
    whole = _marginal_homogeneity(table) if cluster_sums is None else _hotelling(table, cluster_sums)
    z = np.divide(found.value, found.error, out=np.zeros_like(found.value), where=found.error > 0)
    largest = TestResult(float(np.max(np.abs(z))), float(single.min()), _SINGLE)
    omnibus = join_tests([whole, largest])
    claims = np.minimum(single * len(omnibus.components), 1.0)
    low, high = found.limits((1 + confidence_level) / 2)
    classes = _classes(table, found.value, low, high, found.pvalue, claims)
    deviation = _largest_difference(found, margin, alpha)
    return Verdict(
        omnibus, deviation, alpha, tuple(Claim(c.side, c.adjusted_pvalue) for c in classes if c.side)
    ), classes


def _classes(table: ConfusionTable, *columns: Floats) -> tuple[ClassProportion, ...]:
    """Return predicted and actual share of each class, with columns from the difference to the adjusted p-value."""
    shares = (table.n.sum(axis=0) / table.size, table.n.sum(axis=1) / table.size)
    rows = np.stack([*shares, *columns], axis=1).tolist()
    return tuple(ClassProportion(label, *row) for label, row in zip(table.labels, rows, strict=True))


def _largest_difference(found: _Differences, margin: float, alpha: float) -> Deviation:
    """Return the largest difference: it lies within the margin if each class passes two one-sided tests."""
    lower, upper = found.limits(1 - alpha)
    value = float(np.abs(found.value).max())
    low, high = max(float(np.maximum(lower, -upper).max()), 0.0), float(np.maximum(upper, -lower).max())
    return Deviation.from_bounds(
        "largest difference of a class proportion", "", value, min(low, value), high, margin, alpha
    )


def _exact_limits(count: Floats, size: float, level: float) -> tuple[Floats, Floats]:
    """Return Clopper and Pearson's one-sided limits of shares; counts may be fractions (effective rows)."""
    from scipy.special import betaincinv

    rest = np.maximum(size - count, 0.0)
    low = np.where(count > 0, betaincinv(np.maximum(count, 1e-300), rest + 1, 1 - level), 0.0)
    high = np.where(rest > 0, betaincinv(count + 1, np.maximum(rest, 1e-300), level), 1.0)
    return low, high


def _mistakes(matrix: Floats) -> tuple[Floats, Floats]:
    """Sums over rows in which a class is predicted but not actual, and actual but not predicted."""
    right = np.diag(matrix)
    return matrix.sum(axis=0) - right, matrix.sum(axis=1) - right


def _independent(table: ConfusionTable) -> _Differences:
    n, n2 = table.n.astype(np.float64), (table.n if table.w2 is None else table.w2).astype(np.float64)
    over, under = _mistakes(n)
    squares: Floats = np.sum(_mistakes(n2), axis=0)
    size = float(n.sum())
    unit = float(n2.sum()) / size  # mean weight of a row, by weight; 1 for counts
    total = size + 2 * unit
    centre = (over - under) / total
    # Half a row in each of the four cells of a class: predicted or not, actual or not.
    variance = squares + unit**2 - centre**2 * float(n2.sum())
    error = np.sqrt(np.maximum(variance, unit**2)) / total
    degrees = math.inf if table.w2 is None else max(size**2 / float(n2.sum()) - 1, 1.0)
    tested = [_class_pvalue(*cell, counts=table.w2 is None) for cell in zip(over, under, squares, strict=True)]
    mistakes = (over / unit, under / unit)
    return _Differences((over - under) / size, centre, error, degrees, np.array(tested), mistakes, size / unit)


def _class_pvalue(over: float, under: float, squares: float, *, counts: bool) -> float:
    """p-value of equal sums in both directions: exact for counts; of effective rows for weights."""
    if not squares > 0:
        return 1.0
    share = 1.0 if counts else (over + under) / squares
    exact = binomial_two_sided(over * share, (over + under) * share, 0.5)
    if counts:
        return exact
    effective = (over + under) * share
    return max(exact, student_two_sided((over - under) / math.sqrt(squares), max(effective - 1, 1.0)))


def _clustered(table: ConfusionTable, sums: Floats, sizes: Floats | None) -> _Differences:
    """Differences with the variance of cluster sums, or of independent rows where that is larger."""
    assert sizes is not None
    alone = _independent(table)
    count = len(sums)
    residual = sums - np.outer(sizes, alone.value)
    error = np.sqrt(count / (count - 1) * np.sum(residual**2, axis=0)) / float(sizes.sum())
    spread = np.std(sums, axis=0, ddof=1)
    t = np.divide(math.sqrt(count) * sums.mean(axis=0), spread, out=np.zeros(spread.size), where=spread > 0)
    pvalue = [max(student_two_sided(float(each), count - 1), p) for each, p in zip(t, alone.pvalue, strict=True)]
    wider = np.maximum(error, alone.error)
    return replace(alone, error=wider, degrees=count - 1.0, pvalue=np.array(pvalue))


def _pooled(table: ConfusionTable) -> Sequence[int]:
    """Return the group of each class: its own where it has enough mistakes, else that of the rare classes."""
    n2 = (table.n if table.w2 is None else table.w2).astype(np.float64)
    sums, squares = np.sum(_mistakes(table.n.astype(np.float64)), axis=0), np.sum(_mistakes(n2), axis=0)
    effective = np.divide(np.square(sums), squares, out=np.zeros(len(table)), where=squares > 0)
    common = np.flatnonzero(effective >= _FEWEST_MISTAKES).tolist()
    return [common.index(c) if c in common else len(common) for c in range(len(table))]


def _indicator(group: Sequence[int]) -> Floats:
    """Return the matrix that adds up the classes of each group."""
    return np.eye(max(group) + 1)[list(group)]


def _marginal_homogeneity(table: ConfusionTable) -> TestResult | None:
    """Stuart and Maxwell's test over at least three (pooled) classes; None for fewer."""
    from scipy.special import chdtrc

    group = _pooled(table)
    if max(group) < 2:
        return None
    indicator, w2 = _indicator(group), table.n if table.w2 is None else table.w2
    over, under = _mistakes(indicator.T @ table.n.astype(np.float64) @ indicator)
    n2 = indicator.T @ w2.astype(np.float64) @ indicator
    off = n2 - np.diag(np.diag(n2))
    covariance = np.diag(off.sum(axis=0) + off.sum(axis=1)) - off - off.T
    keep = np.flatnonzero(np.diag(covariance) > 0)[:-1]  # differences sum to 0
    if keep.size < 2:
        return None
    difference = (over - under)[keep]
    inside = covariance[np.ix_(keep, keep)]
    rank = int(np.linalg.matrix_rank(inside))
    statistic = float(difference @ np.linalg.pinv(inside, hermitian=True) @ difference)
    return TestResult(statistic, float(chdtrc(rank, statistic)), _MARGINAL, float(rank))


def _hotelling(table: ConfusionTable, sums: Floats) -> TestResult | None:
    """Hotelling's test of cluster sums over pooled classes; None where there are fewer than five clusters per class."""
    from scipy.special import fdtrc

    pooled = (sums @ _indicator(_pooled(table)))[:, :-1]
    clusters, size = pooled.shape
    if size < 2 or clusters < 5 * (size + 1):
        return None
    covariance = np.cov(pooled, rowvar=False)
    mean = pooled.mean(axis=0)
    statistic = clusters * float(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean)
    pvalue = float(fdtrc(size, clusters - size, statistic * (clusters - size) / (size * (clusters - 1))))
    return TestResult(statistic, pvalue, _MARGINAL, float(size))
