"""Fits of calibration curves at the points of a grid: restricted cubic splines, and local regression."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError, Note, check_count
from calibrant._support.logistic import EPS, expit, logit
from calibrant.inference.design import Design
from calibrant.metrics.log_odds import count_clipped
from calibrant.metrics.smooth_errors import MOST_SCORES, LocalRegression, group_scores, score_groups
from calibrant.tables.score_table import ScoreTable, row_squares

# Harrell (2015), table 2.3.
_SHARES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: (0.025, 0.1833, 0.3417, 0.5, 0.6583, 0.8167, 0.975),
}


def knots(table: ScoreTable, x: Floats, n_knots: int) -> Floats:
    """Return the distinct knots: quantiles of the rows at Harrell's shares, where x are the values of the scores.

    Quantiles are those of R's ``quantile`` (type 7). With fewer than 100 rows the outer knots are the fifth value from
    each end, as in R's ``rcspline.eval``. With importance weights a quantile is the lowest value at which the
    cumulative weight reaches the share.
    """
    check_count("n_knots", n_knots, 7, least=3)
    upto = np.cumsum(table.n, dtype=np.float64)
    shares = np.array(_SHARES[n_knots])
    if table.importance:
        return np.unique(x[np.minimum(np.searchsorted(upto, shares * upto[-1] - 1e-12 * upto[-1]), x.size - 1)])
    place = shares * (upto[-1] - 1)
    if upto[-1] < 100:
        place[[0, -1]] = min(4, upto[-1] - 1), max(upto[-1] - 5, 0)
    low, high = (x[np.searchsorted(upto, whole, side="right")] for whole in (np.floor(place), np.ceil(place)))
    return np.unique(low + (place - np.floor(place)) * (high - low))


def restricted_cubic_basis(x: Floats, at: Sequence[float] | Floats) -> list[Floats]:
    """Return the columns of a spline that is cubic between knots and linear beyond them; the first is x itself.

    With knots t_1 < ... < t_k the others are, for j = 1 to k - 2, divided by (t_k - t_1)^2::

        (x - t_j)+^3 - (x - t_k-1)+^3 (t_k - t_j) / (t_k - t_k-1) + (x - t_k)+^3 (t_k-1 - t_j) / (t_k - t_k-1)

    >>> [column.round(3).tolist() for column in restricted_cubic_basis(np.array([0.0, 1.0, 3.0]), [0, 1, 2])]
    [[0.0, 1.0, 3.0], [0.0, 0.25, 3.0]]
    """
    t = np.asarray(at, dtype=np.float64)
    if t.size < 3:
        return [x]
    if not (np.diff(t) > 0).all():
        raise InputError(f"knots must be strictly increasing; got {t.tolist()}.", argument="knots")

    def cube(knot: float) -> Floats:
        return np.asarray(np.maximum(x - knot, 0.0) ** 3)

    last, before = t[-1], t[-2]
    columns = [
        cube(knot) - cube(before) * (last - knot) / (last - before) + cube(last) * (before - knot) / (last - before)
        for knot in t[:-2]
    ]
    return [x, *(column / (last - t[0]) ** 2 for column in columns)]


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """A curve, and the centre of its bands on a scale on which the error is close to normal.

    The scale of a probability q is log((q + d) / (1 - q + d)): log-odds where the offset d is 0, and close to the
    probability itself where d is large.

    Attributes
    ----------
    estimate : ndarray
        Probability at each point of the grid.
    value : ndarray
        Centre of the bands on the scale.
    factor : ndarray
        Root of the covariance: ``factor @ factor.T`` is the covariance of the values.
    at_scores : ndarray
        Probability at each score of the table.
    degrees : float
        Of freedom of the covariance.
    settings : dict
    notes : tuple of Note
    offset : ndarray or float
    """

    estimate: Floats
    value: Floats
    factor: Floats
    at_scores: Floats
    degrees: float
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    offset: Floats | float = 0.0

    @property
    def error(self) -> Floats:
        """Standard error at each point."""
        return np.asarray(np.sqrt(np.sum(self.factor**2, axis=1)))

    def probability(self, value: Floats) -> Floats:
        """Return values of the scale as probabilities, clipped to [0, 1]."""
        return np.asarray(np.clip((1 + 2 * self.offset) * expit(value) - self.offset, 0.0, 1.0))


def fit_spline(design: Design, at: Floats, n_knots: int | None = None) -> FittedCurve:
    """Fit the logistic regression on a restricted cubic spline of the logit of the score.

    By default with 5 knots or, where the outcomes do not determine the curve, with 4 or 3.
    """
    table = design.table
    x = logit(table.score, EPS)
    for count in (5, 4, 3) if n_knots is None else (n_knots,):
        inner = knots(table, x, count)
        basis, grid = spline_columns(table.score, inner), spline_columns(at, inner)
        settings = {"knots": expit(inner).tolist(), "basis": "restricted cubic spline of logit(score)"}
        try:
            fit = fit_columns(design, basis, grid, settings, count_clipped(table, EPS)[1])
        except InputError:
            if count in (3, n_knots):
                raise
            continue
        break
    notes = fit.notes
    if inner.size < count:
        shape = "the curve is a line in the logit." if inner.size < 3 else "the curve is less flexible."
        text = f"Distinct knots of the spline, because of ties: {{count}} instead of {count}; {shape}"
        notes += (Note("tied_knots", int(inner.size), text),)
    if n_knots is None and count < 5:
        text = "Knots of the spline, fewer than 5 because a part of the curve would separate the outcomes: {count}."
        notes += (Note("fewer_knots", count, text),)
    return replace(fit, notes=notes)


def spline_columns(score: Floats, inner: Floats) -> list[Floats]:
    """Return the columns of the spline at scores; fewer than three knots give a line in the logit."""
    return restricted_cubic_basis(logit(score, EPS), inner)


def fit_columns(
    design: Design, basis: list[Floats], grid: list[Floats], settings: dict[str, Any], notes: tuple[Note, ...]
) -> FittedCurve:
    """Fit the logistic regression on columns of the scores; `grid` holds the same columns at the points."""
    table = design.table
    coefficients = fit_logistic(design, basis)
    columns = np.stack([*basis, np.ones(len(table))])
    fitted = expit(coefficients @ columns)
    try:
        inverse = np.linalg.inv(design.score_information(columns, fitted)).astype(np.float64)
    except np.linalg.LinAlgError:  # fitted probabilities of 0 and 1 leave no information
        raise _undetermined(len(basis)) from None
    variance, degrees = inverse, np.inf
    if not design.is_independent:
        variance = inverse @ design.score_covariance(columns, fitted) @ inverse
        inflation, degrees = few_clusters(design, len(columns))
        variance = variance * inflation
    points = np.stack([*grid, np.ones(grid[0].size)])
    settings = settings | {"coefficients": coefficients.tolist()}
    value = coefficients @ points
    factor = points.T @ covariance_root(variance)
    return FittedCurve(expit(value), value, factor, fitted, degrees, settings, notes)


def fit_logistic(design: Design, basis: list[Floats], start: list[float] | None = None) -> Floats:
    """Return the coefficients of the columns, then the intercept; an error where the likelihood has no maximum."""
    table = design.table
    n, k = table.n.astype(np.float64), table.k.astype(np.float64)
    exists = len(table) > len(basis) and table.has_both_classes and not any(logistic.find_separation(n, k))
    try:
        if exists:
            return logistic.fit(basis, n, k, start=start or [1.0, *(0.0 for _ in basis)])
    except logistic.NotConvergedError:  # a part of the curve separates the outcomes
        pass
    raise _undetermined(len(basis))


def _undetermined(n_columns: int) -> InputError:
    return InputError(
        f"y_true and y_prob must have both outcomes, more than {n_columns} distinct scores, and no part of the scores "
        "in which the curve separates the outcomes; they do not.",
        hint="Use fewer knots or a lower degree, method='isotonic', or more rows.",
        argument="y_prob",
    )


def few_clusters(design: Design, parameters: int) -> tuple[float, float]:
    """Return the factor of a robust variance, and its degrees of freedom, for so many fitted parameters.

    Residuals of fitted rows are too small: G / (G - parameters) for G clusters. Simulations (docs/studies/curves.csv)
    showed that independent and weighted rows need no factor.
    """
    if design.rows is None:
        return 1.0, design.degrees
    left = max(design.rows.n_draws - parameters, 1)
    return design.rows.n_draws / left, max(design.degrees - (parameters - 1), 1.0)


def covariance_root(covariance: Floats) -> Floats:
    """Return R with R @ R.T equal to a covariance, which may be singular."""
    size, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(axes * np.sqrt(np.maximum(size, 0.0)))


_POINTS = 201  # between which straight lines give the curve at the scores
_FEW_ROWS = 200  # of the rarer outcome, below which the band of the spline is taken
_SPLINE_BAND = "The band is that of a spline. Rows of the rarer outcome, too few for another band: {count}."
_NO_PILOT = "The band does not account for the bias of local regression, because the outcomes determine no spline."


def fit_local(design: Design, at: Floats, span: float, degree: int) -> FittedCurve:
    """Fit local regression of the outcomes on the scores, with bands around the estimate without its bias.

    The bands are those of a spline m plus the local regression of the residuals y - m, which has the bias of the
    smoother only in what the spline leaves. Their scale has the standard error of that second part as offset: errors of
    the spline multiply the odds, errors of the local regression add to the rate.
    """
    smoother, table = LocalRegression(span, degree), design.table
    grouped = group_scores(table)
    weights = smoother.weights(grouped, at)
    pilot = _Pilot.fit(design, at, grouped)
    estimate = weights @ grouped.k.astype(np.float64)
    added = weights @ (grouped.k - grouped.n * pilot.at_groups)
    inner, correction = pilot.influence(grouped, weights)
    variance = _covariance(design, grouped, inner + correction, pilot)
    if not (np.isfinite(estimate).all() and np.isfinite(variance).all()):
        raise InputError(
            f"y_prob must have enough distinct scores for local curves of degree {degree}; {len(table)} are too few.",
            hint="Use method='isotonic', a smaller degree, or more rows.",
            argument="y_prob",
        )
    offset = np.sqrt(np.maximum(correction**2 @ (row_squares(grouped) * pilot.variance), 1e-24))
    rate = pilot.at_points
    slope = 1 / (rate + offset) + 1 / (1 - rate + offset)
    inflation, degrees = few_clusters(design, pilot.n_parameters)
    factor = _floored(covariance_root(variance * inflation), design, grouped, inner + correction, pilot)
    curve = FittedCurve(
        np.clip(estimate, 0.0, 1.0),
        np.log((rate + offset) / (1 - rate + offset)) + slope * added,
        slope[:, None] * factor,
        smoother.fitted_scores(table, _POINTS),
        degrees,
        {"span": span, "degree": degree, "pilot_knots": expit(pilot.knots).tolist()},
        () if pilot.basis else (Note("no_pilot", 1, _NO_PILOT),),
        offset,
    )
    return _with_spline_band(curve, design, at)


def _with_spline_band(curve: FittedCurve, design: Design, at: Floats) -> FittedCurve:
    """Return the curve with the band of a spline where one outcome is rare and determines one.

    The band of local regression is normal on a scale that suits many rows; with few it covers too little.
    """
    table = design.table
    unit = float(row_squares(table).sum()) / float(table.size)
    rarer = int(min(float(table.positives), float(table.size - table.positives)) / unit)
    if rarer >= _FEW_ROWS:
        return curve
    try:
        spline = fit_spline(design, at)
    except InputError:
        return curve
    notes = (*curve.notes, Note("spline_band", rarer, _SPLINE_BAND))
    return replace(
        curve, value=spline.value, factor=spline.factor, degrees=spline.degrees, offset=spline.offset, notes=notes
    )


@dataclass(frozen=True, eq=False)
class _Pilot:
    """The spline around which residuals are smoothed; without columns the constant event rate.

    Attributes
    ----------
    knots : ndarray
        In log-odds; empty for a line or a constant.
    basis, grid : list of ndarray
        Its columns at the groups of scores, and at the points.
    at_groups, at_points, at_scores : ndarray
        Its event rate.
    """

    knots: Floats
    basis: list[Floats]
    grid: list[Floats]
    at_groups: Floats
    at_points: Floats
    at_scores: Floats

    @classmethod
    def fit(cls, design: Design, at: Floats, grouped: ScoreTable) -> "_Pilot":
        """Fit the spline with 5, 4 or 3 knots, a line, or a constant: the first that the outcomes determine."""
        table, none = design.table, np.empty(0)
        x = logit(table.score, EPS)
        for inner in (*(knots(table, x, count) for count in (5, 4, 3)), none):
            try:
                coefficients = fit_logistic(design, spline_columns(table.score, inner))
            except InputError:
                continue
            columns = [spline_columns(score, inner) for score in (grouped.score, at, table.score)]
            rates = (expit(coefficients @ np.stack([*basis, np.ones(basis[0].size)])) for basis in columns)
            return cls(inner, columns[0], columns[1], *rates)
        # Two events and two other rows more, of the mean weight, as Agresti and Coull add them to a proportion.
        unit = float(row_squares(table).sum()) / float(table.size)
        shrunk = (float(table.positives) + 2 * unit) / (float(table.size) + 4 * unit)
        return cls(none, [], [], *(np.full(count, shrunk) for count in (len(grouped), at.size, len(table))))

    @property
    def variance(self) -> Floats:
        """Bernoulli variance at the groups of scores."""
        return self.at_groups * (1 - self.at_groups)

    @property
    def n_parameters(self) -> int:
        """Number of fitted coefficients; at least 1."""
        return len(self.basis) + 1

    def influence(self, grouped: ScoreTable, weights: Floats) -> tuple[Floats, Floats]:
        """Return the factors of the residuals of each group of scores: in the spline, and in the local regression.

        A residual changes the spline, hence also all residuals that the local regression smooths.
        """
        if not self.basis:
            return np.zeros(weights.shape), weights
        columns = np.stack([*self.basis, np.ones(len(grouped))])
        points = np.stack([*self.grid, np.ones(self.at_points.size)])
        share = grouped.n * self.variance
        solved = np.linalg.pinv((columns * share) @ columns.T, hermitian=True) @ columns
        inner = (points * (self.at_points * (1 - self.at_points))).T @ solved
        return inner, weights - (weights * share) @ columns.T @ solved


def _covariance(design: Design, grouped: ScoreTable, weights: Floats, pilot: _Pilot) -> Floats:
    if design.rows is not None:
        size = len(design.table)
        label = np.searchsorted(score_groups(size, MOST_SCORES), np.arange(size), side="right") - 1
        return design.cluster_score_covariance((row[label] for row in weights), pilot.at_scores)
    counted = Design(grouped)
    if design.is_independent:
        return counted.score_information(weights, pilot.at_groups)
    return counted.score_covariance(weights, pilot.at_groups)


def _floored(factor: Floats, design: Design, grouped: ScoreTable, weights: Floats, pilot: _Pilot) -> Floats:
    """Return the root of a covariance by clusters, each standard error at least that of independent rows.

    Few clusters have rows at the ends of the scores, and their sums may happen to be equal.
    """
    if design.rows is None:
        return factor
    least = np.sqrt(weights**2 @ (row_squares(grouped) * pilot.variance))
    error = np.sqrt(np.sum(factor**2, axis=1))
    return np.asarray(factor * np.where(error > 0, np.maximum(least / np.maximum(error, 1e-300), 1.0), 1.0)[:, None])
