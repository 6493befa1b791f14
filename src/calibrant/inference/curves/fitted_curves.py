"""Fits of calibration curves: values and covariance at the points of a grid, by splines or local regression."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._support import logistic
from calibrant._support.errors import InputError, Note
from calibrant._support.logits import EPS, expit, logit
from calibrant._support.typing import Floats
from calibrant.inference.curves.spline_basis import knots, restricted_cubic_basis
from calibrant.inference.design import Design
from calibrant.metrics.local_regression import MOST_SCORES, LocalRegression, group_scores, score_groups
from calibrant.metrics.slope_intercept import count_clipped

__all__ = ["FittedCurve", "fit_columns", "fit_local", "fit_logistic", "fit_spline"]

_POINTS = 201  # of a local regression, between which straight lines give its values at the scores


@dataclass(frozen=True, eq=False)
class FittedCurve:
    """A curve on the scale on which its error is close to normal.

    Attributes
    ----------
    value : ndarray
        At the points of the grid: log-odds of a spline, probabilities of a local regression.
    factor : ndarray
        Root of the covariance: ``factor @ factor.T`` is the covariance of the values.
    at_scores : ndarray
        Probability at each score of the table.
    is_logit : bool
    degrees : float
        Of freedom of the covariance.
    settings : dict
    notes : tuple of Note
    """

    value: Floats
    factor: Floats
    at_scores: Floats
    is_logit: bool
    degrees: float
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def error(self) -> Floats:
        """Standard error at each point."""
        found: Floats = np.sqrt(np.sum(self.factor**2, axis=1))
        return found

    def probability(self, value: Floats) -> Floats:
        """Return values of the curve's scale as probabilities, clipped to [0, 1]."""
        return expit(value) if self.is_logit else np.clip(value, 0.0, 1.0)


def fit_spline(design: Design, at: Floats, n_knots: int) -> FittedCurve:
    """Fit the logistic regression on a restricted cubic spline of the logit of the score."""
    table = design.table
    x = logit(table.score, EPS)
    inner = knots(table, x, n_knots)
    notes = count_clipped(table, EPS)[1]
    if inner.size < n_knots:
        shape = "the curve is a line in the logit." if inner.size < 3 else "the curve is less flexible."
        text = f"Distinct knots of the spline, because of ties: {{count}} instead of {n_knots}; {shape}"
        notes += (Note("tied_knots", int(inner.size), text),)
    basis, grid = restricted_cubic_basis(x, inner), restricted_cubic_basis(logit(at, EPS), inner)
    settings = {"knots": expit(inner).tolist(), "basis": "restricted cubic spline of logit(score)"}
    return fit_columns(design, basis, grid, settings, notes)


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
        inflation, degrees = _few_clusters(design, len(columns))
        variance = variance * inflation
    points = np.stack([*grid, np.ones(grid[0].size)])
    settings = settings | {"coefficients": coefficients.tolist()}
    return FittedCurve(coefficients @ points, points.T @ _root(variance), fitted, True, degrees, settings, notes)


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


def fit_local(design: Design, at: Floats, span: float, degree: int) -> FittedCurve:
    """Fit local regression of the outcomes on the scores; see `LocalRegression`."""
    smoother, table = LocalRegression(span, degree), design.table
    grouped = group_scores(table)
    weights = smoother.weights(grouped, at)
    at_scores = smoother.fitted_scores(table, _POINTS)
    fitted = np.clip(at_scores, 0.0, 1.0)
    if design.rows is not None:
        label = np.searchsorted(score_groups(len(table), MOST_SCORES), np.arange(len(table)), side="right") - 1
        variance = design.cluster_score_covariance((row[label] for row in weights), fitted)
    else:
        counted, rate = Design(grouped), np.interp(grouped.score, table.score, fitted)
        if design.is_independent:
            # Two events and two other rows more near each point, as Agresti and Coull add them to a proportion: a curve
            # that touches 0 or 1 has an error too.
            near = span * table.size / 2
            variance = counted.score_information(weights, (near * rate + 2) / (near + 4))
        else:
            variance = counted.score_covariance(weights, rate)
    inflation, degrees = _few_clusters(design, degree + 1)
    value: Floats = weights @ grouped.k.astype(np.float64)
    if not (np.isfinite(value).all() and np.isfinite(variance).all()):
        raise InputError(
            f"y_prob must have enough distinct scores for local curves of degree {degree}; {len(table)} are too few.",
            hint="Use method='isotonic', a smaller degree, or more rows.",
            argument="y_prob",
        )
    settings = {"span": span, "degree": degree}
    return FittedCurve(value, _root(variance * inflation), at_scores, False, degrees, settings)


def _few_clusters(design: Design, parameters: int) -> tuple[float, float]:
    """Return the factor of a robust variance, and its degrees of freedom, for so many fitted parameters.

    Residuals of fitted rows are too small: G / (G - parameters) for G clusters. Simulations (docs/studies/curves.csv)
    showed that independent and weighted rows need no factor.
    """
    if design.rows is None:
        return 1.0, design.degrees
    left = max(design.rows.n_draws - parameters, 1)
    return design.rows.n_draws / left, max(design.degrees - (parameters - 1), 1.0)


def _root(covariance: Floats) -> Floats:
    """Return R with R @ R.T equal to a covariance, which may be singular."""
    size, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    found: Floats = axes * np.sqrt(np.maximum(size, 0.0))
    return found
