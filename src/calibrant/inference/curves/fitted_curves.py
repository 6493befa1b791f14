"""Fits of calibration curves: values and covariance at the points of a grid; logistic regression on splines."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._support import logistic
from calibrant._support.errors import InputError, Note
from calibrant._support.logits import EPS, expit, logit
from calibrant._support.typing import Floats
from calibrant.inference.curves.spline_basis import knots, restricted_cubic_basis
from calibrant.inference.design import Design
from calibrant.metrics.slope_intercept import count_clipped

__all__ = [
    "FittedCurve",
    "covariance_root",
    "few_clusters",
    "fit_columns",
    "fit_logistic",
    "fit_most_knots",
    "fit_spline",
    "spline_columns",
]

_KNOTS = 5


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
        found: Floats = np.sqrt(np.sum(self.factor**2, axis=1))
        return found

    def probability(self, value: Floats) -> Floats:
        """Return values of the scale as probabilities, clipped to [0, 1]."""
        found: Floats = np.clip((1 + 2 * self.offset) * expit(value) - self.offset, 0.0, 1.0)
        return found


def fit_most_knots(design: Design, at: Floats) -> FittedCurve:
    """Fit the spline with 5 knots or, where the outcomes do not determine it, with 4 or 3."""
    for n_knots in (_KNOTS, 4):
        try:
            found = fit_spline(design, at, n_knots)
        except InputError:
            continue
        return found if n_knots == _KNOTS else replace(found, notes=(*found.notes, _fewer_knots(n_knots)))
    found = fit_spline(design, at, 3)
    return replace(found, notes=(*found.notes, _fewer_knots(3)))


def _fewer_knots(n_knots: int) -> Note:
    text = "Knots of the spline, fewer than 5 because a part of the curve would separate the outcomes: {count}."
    return Note("fewer_knots", n_knots, text)


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
    basis, grid = spline_columns(table.score, inner), spline_columns(at, inner)
    settings = {"knots": expit(inner).tolist(), "basis": "restricted cubic spline of logit(score)"}
    return fit_columns(design, basis, grid, settings, notes)


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
    found: Floats = axes * np.sqrt(np.maximum(size, 0.0))
    return found
