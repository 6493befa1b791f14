"""The calibration belt of Nattino, Finazzi and Bertolini, and its test."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Column, Floats, true_runs
from calibrant._support.errors import InputError, Note, check_count, check_sequence, check_share, join_notes
from calibrant._support.formatting import p_text
from calibrant._support.logistic import EPS, expit, logit
from calibrant._support.plain_data import columns, plain
from calibrant._support.roots import find_root
from calibrant.inference.curves.calibration_curves import CurveResult, curve_grid
from calibrant.inference.curves.fitted_curves import fit_columns, fit_logistic
from calibrant.inference.design import Design
from calibrant.inference.paired_rows import read_rows
from calibrant.metrics.log_odds import count_clipped
from calibrant.metrics.smooth_errors import SmoothErrors, smooth_errors
from calibrant.results.verdict import TestResult
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationBelt(CurveResult):
    """The calibration belt and its test; see `calibration_belt`.

    Attributes
    ----------
    score, estimate : ndarray
        Points of the grid, and the estimated event rate there.
    limits : mapping of level to (low, high)
        The belts, by confidence level.
    degree : int
        Of the polynomial in the logit of the score.
    test : TestResult
        Of the hypothesis that the model is calibrated.
    errors : SmoothErrors
    settings : mapping
    notes : tuple of Note
    crowds_end : bool
        Whether at least 80 % of the rows have scores within 0.1 of 0, or of 1: displays then choose logit axes.
    n_rows : int
        Number of rows.
    method : str
        Method of the belt.

    See Also
    --------
    calibration_belt, CalibrationCurve

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.inference import calibration_belt
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> belt = calibration_belt(rng.random(2000) < p**2, p)
    >>> belt.degree, belt.test.pvalue < 0.001, sorted(belt.limits)
    (1, True, [0.8, 0.95])
    """

    score: Floats
    estimate: Floats
    limits: Mapping[float, tuple[Floats, Floats]]
    degree: int
    test: TestResult
    errors: SmoothErrors
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_rows: float = 0
    notes: tuple[Note, ...] = ()
    crowds_end: bool = False
    method: str = "belt"

    @property
    def pvalue(self) -> float:
        """p-value of the test."""
        return self.test.pvalue

    @property
    def bands(self) -> dict[str, tuple[Floats, Floats]]:
        """The belts by name, from the widest to the narrowest."""
        return {f"{100 * level:g} % belt": self.limits[level] for level in sorted(self.limits, reverse=True)}

    @property
    def diagonal(self) -> Floats:
        """The event rate of a calibrated model at each point: its score, clipped as in the fit."""
        return np.clip(self.score, EPS, 1 - EPS)

    def deviations(self, level: float) -> list[tuple[float, float, str]]:
        """Return the ranges of scores where the belt of a level does not contain the diagonal, and its side.

        Each is (lowest point, highest point, "above" or "below"): above the diagonal events are more frequent than
        predicted.

        Parameters
        ----------
        level : float
            One of the levels of `limits`.

        Returns
        -------
        list of tuples
            Sorted by the lowest point; empty if the belt contains the diagonal.
        """
        if level not in self.limits:
            raise InputError(f"level must be one of {sorted(self.limits)}; got {level!r}.", argument="level")
        low, high = self.limits[level]
        sides = {"above": low > self.diagonal, "below": high < self.diagonal}
        runs = [(side, first, last) for side, outside in sides.items() for first, last in true_runs(outside)]
        return sorted((float(self.score[first]), float(self.score[last - 1]), side) for side, first, last in runs)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        parts = {"test": self.test.to_dict(), "errors": plain(self.errors)}
        return plain(self, skip=("limits", "test", "errors")) | columns(self._columns()) | parts

    def _columns(self) -> dict[str, Floats]:
        columns = {"score": self.score, "estimate": self.estimate}
        for level, (low, high) in sorted(self.limits.items()):
            columns |= {f"low_{100 * level:g}": low, f"high_{100 * level:g}": high}
        return columns

    def __repr__(self) -> str:
        return f"CalibrationBelt(degree {self.degree}, {p_text(self.pvalue)})"


def calibration_belt(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    levels: Sequence[float] = (0.8, 0.95),
    threshold: float = 0.95,
    max_degree: int = 4,
    at: Column | None = None,
    cluster: Column | None = None,
    **rows: Unpack[RowOptions],
) -> CalibrationBelt:
    r"""Calibration belt of Nattino, Finazzi and Bertolini, and its test of calibration.

    The logit of the event rate is a polynomial in the logit of the score:

    .. math::

       \operatorname{logit} P(y = 1) = \beta_0 + \beta_1 x + \dots + \beta_m x^m, \quad x = \operatorname{logit} p

    Its degree m starts at 1 and rises while a likelihood-ratio test of the next degree has a p-value below
    1 - `threshold`. The test of calibration is the likelihood ratio of the polynomial and the diagonal.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities of a model that was fitted on other rows; or one `ScoreTable`.
    levels : sequence of float, default=(0.8, 0.95)
        Confidence levels of the belts.
    threshold : float, default=0.95
        1 less the level of the tests that choose the degree.
    max_degree : int, default=4
        From 1 to 4.
    at : column of scores, optional
        Points of the grid; see `calibration_curve`.
    cluster : column, optional
        Rows of one cluster may depend on each other.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    CalibrationBelt

    See Also
    --------
    CalibrationBelt, calibration_curve

    Notes
    -----
    The statistic has no chi-squared distribution, because the degree depends on the outcomes. Given degree m it is
    asymptotically the sum of a chi-squared variable with 2 degrees of freedom and m - 1 with 1 degree, each above the
    quantile at `threshold`. The p-value is that of this distribution, as in R's ``givitiR`` with ``devel="external"``.

    A belt is the range of the curve over the coefficients that the test does not reject, by the quadratic approximation
    of the log likelihood: logit ± root(q V), V the variance of the curve and q the quantile of the distribution above.
    givitiR uses the likelihood itself; both agree for many rows. The 95 % belt contains the whole curve with
    probability 95 % if the curve is such a polynomial.

    With clusters or importance weights the likelihood ratios are replaced by robust score statistics of the powers of
    the logit, each orthogonal to those of lower degrees, and the belt uses the robust variance.

    References
    ----------
    .. [1] Nattino, Finazzi & Bertolini (2014), "A new calibration test and a reappraisal of the calibration belt for
       the assessment of prediction models based on dichotomous outcomes".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> belt = calibration_belt(rng.random(2000) < p**2, p)
    >>> belt
    CalibrationBelt(degree 1, p = 6e-83)
    >>> [(round(low, 2), round(high, 2), side) for low, high, side in belt.deviations(0.95)]
    [(0.0, 0.92, 'below'), (1.0, 1.0, 'above')]
    """
    check_count("max_degree", max_degree, 4)
    check_share("threshold", threshold)
    levels = [check_share("levels", level) for level in check_sequence("levels", levels)]
    design = Design(*read_rows(y_true, y_prob, cluster, rows))
    table, grid = design.table, curve_grid(design.table, at)
    x, points = logit(table.score, EPS), logit(grid, EPS)
    degree, statistic = _choose_degree(design, x, threshold, max_degree)
    test = TestResult(statistic, belt_tail(statistic, degree, threshold), "calibration belt", notes=table.notes)
    fit = fit_columns(design, _powers(x, degree), _powers(points, degree), {}, count_clipped(table, EPS)[1])
    limits = {}
    for level in levels:
        reach = _quantile(fit.degrees, degree, threshold, level) * fit.error
        limits[float(level)] = fit.probability(fit.value - reach), fit.probability(fit.value + reach)
    errors = smooth_errors(table, fit.at_scores, "belt")
    settings = fit.settings | {"threshold": threshold, "max_degree": max_degree}
    notes = join_notes(table.notes, fit.notes)
    estimate, end = fit.probability(fit.value), table.crowds_end
    return CalibrationBelt(grid, estimate, limits, degree, test, errors, settings, table.size, notes, end)


def _powers(x: Floats, degree: int) -> list[Floats]:
    return [x**j for j in range(1, degree + 1)]


def _choose_degree(design: Design, x: Floats, threshold: float, most: int) -> tuple[int, float]:
    """Return the degree of the polynomial, and the statistic of the test of calibration."""
    from scipy.special import chdtri

    fit_logistic(design, [x])  # an error where even the line does not exist
    least = float(chdtri(1, 1 - threshold))
    most = min(most, len(design.table) - 2) or 1
    gain = _likelihood_ratios if design.is_independent else _score_statistics
    total, degree = 0.0, 0
    for degree, statistic in enumerate(gain(design, x, most), start=1):
        if degree > 1 and statistic <= least:
            return degree - 1, total
        total += statistic
    return degree, total


def _likelihood_ratios(design: Design, x: Floats, most: int) -> Iterator[float]:
    """Yield the likelihood ratio of the line against the diagonal, then of each degree against the one below."""
    table = design.table
    n, k = table.n.astype(np.float64), table.k.astype(np.float64)
    last, start = logistic.log_likelihood(x, n, k), [1.0, 0.0]
    for degree in range(1, most + 1):
        basis = _powers(x, degree)
        coefficients = fit_logistic(design, basis, start)
        best = logistic.log_likelihood(coefficients @ np.stack([*basis, np.ones(x.size)]), n, k)
        yield max(2 * (best - last), 0.0)
        last, start = best, [*coefficients[:-1], 0.0, coefficients[-1]]


def _score_statistics(design: Design, x: Floats, most: int) -> Iterator[float]:
    """Yield the robust score statistic of intercept and slope, then of each power, given the fit of those below it."""
    table, scaled = design.table, (x - x.mean()) / (x.std() or 1.0)
    powers = np.stack([scaled**j for j in range(most + 1)])
    totals = powers[:2] @ (table.k - table.n * table.score)
    try:
        root = np.linalg.cholesky(design.score_covariance(powers[:2], table.score))
    except np.linalg.LinAlgError:
        raise _undetermined(2) from None
    yield _as_chi_squared(float(np.sum(np.linalg.solve(root, totals) ** 2)), 2, design.degrees)
    for degree in range(2, most + 1):
        yield _as_chi_squared(_power_statistic(design, powers[: degree + 1]), 1, design.degrees)


def _power_statistic(design: Design, powers: Floats) -> float:
    """Return the robust score statistic of the last power at the fit of the others, to which it is made orthogonal."""
    table, lower = design.table, powers[:-1]
    q = expit(fit_logistic(design, list(lower[1:])) @ np.stack([*lower[1:], lower[0]]))
    weighted = lower * (table.n * q * (1 - q))
    free = powers[-1] - np.linalg.lstsq(weighted @ lower.T, weighted @ powers[-1], rcond=None)[0] @ lower
    variance = float(design.score_covariance(free[None], q)[0, 0])
    if not variance > 0:
        raise _undetermined(len(powers))
    return float(free @ (table.k - table.n * q)) ** 2 / variance


def _undetermined(count: int) -> InputError:
    return InputError(
        f"The residuals must determine the variances of {count} coefficients; there are too few distinct scores or "
        "clusters.",
        hint="Use a lower max_degree, or more rows.",
        argument="max_degree",
    )


def _as_chi_squared(size: float, df: int, degrees: float) -> float:
    """Return the chi-squared value with the p-value of F: few clusters estimate their covariance poorly."""
    from scipy.special import chdtri, fdtrc

    if np.isinf(degrees):
        return size
    return float(chdtri(df, max(float(fdtrc(df, degrees, size / df)), 1e-300)))


def _quantile(degrees: float, degree: int, threshold: float, level: float) -> float:
    """Return the multiple of the standard error: the root of the quantile of the statistic, scaled as Student's."""
    from scipy.special import ndtr, ndtri, stdtrit

    root = find_root(lambda t: belt_tail(t, degree, threshold) - (1 - level), 1e-9, 1e3) ** 0.5
    if np.isinf(degrees):
        return float(root)
    tail = float(ndtr(-root))
    return float(-stdtrit(degrees, tail)) if tail > 0 else float(-ndtri(1e-300))


def belt_tail(statistic: float, degree: int, threshold: float) -> float:
    """Return the probability that the statistic of the belt is at least this large, given its degree.

    >>> round(belt_tail(5.991464547107979, 1, 0.95), 6)
    0.05
    """
    from scipy.special import chdtri

    least = float(chdtri(1, 1 - threshold))
    if statistic <= (degree - 1) * least:
        return 1.0
    tail = _joint_tail(np.array([statistic]), degree - 1, float(np.sqrt(least)))[0] / (1 - threshold) ** (degree - 1)
    return float(np.clip(tail, 0.0, 1.0))


def _joint_tail(total: Floats, count: int, least: float) -> Floats:
    """Return P(X + sum of D_j >= total and all D_j > least^2), X chi-squared with 2 degrees, `count` D_j with 1.

    Given D = u^2 the rest is the same probability with one variable fewer: an integral of the normal density of u,
    by Gauss and Legendre's rule up to the root of the total, and the tail of u beyond it.
    """
    from scipy.special import ndtr

    if count == 0:
        return np.asarray(np.exp(-np.maximum(total, 0.0) / 2))
    end = np.sqrt(np.maximum(total - (count - 1) * least**2, least**2))
    half = (end - least) / 2
    u = least + half[:, None] * (1 + _NODES)
    density = 2 * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    inner = _joint_tail((total[:, None] - u**2).ravel(), count - 1, least).reshape(u.shape)
    others = (2 * ndtr(-least)) ** (count - 1)
    return np.asarray(half * np.sum(_WEIGHTS * density * inner, axis=1) + others * 2 * ndtr(-end))
