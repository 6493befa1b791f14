"""Local regression of outcomes on scores, with bands that account for its bias."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.errors import InputError, Note
from calibrant._support.logits import EPS, expit, logit
from calibrant._support.typing import Floats
from calibrant.inference.curves.fitted_curves import (
    FittedCurve,
    covariance_root,
    few_clusters,
    fit_logistic,
    fit_most_knots,
    spline_columns,
)
from calibrant.inference.curves.spline_basis import knots
from calibrant.inference.design import Design
from calibrant.metrics.local_regression import MOST_SCORES, LocalRegression, group_scores, score_groups
from calibrant.tables.residuals import row_squares
from calibrant.tables.score_table import ScoreTable

__all__ = ["fit_local"]

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
    found = FittedCurve(
        np.clip(estimate, 0.0, 1.0),
        np.log((rate + offset) / (1 - rate + offset)) + slope * added,
        slope[:, None] * factor,
        smoother.fitted_scores(table, _POINTS),
        degrees,
        {"span": span, "degree": degree, "pilot_knots": expit(pilot.knots).tolist()},
        () if pilot.basis else (Note("no_pilot", 1, _NO_PILOT),),
        offset,
    )
    return _with_spline_band(found, design, at)


def _with_spline_band(found: FittedCurve, design: Design, at: Floats) -> FittedCurve:
    """Return the curve with the band of a spline where one outcome is rare and determines one.

    The band of local regression is normal on a scale that suits many rows; with few it covers too little.
    """
    table = design.table
    unit = float(row_squares(table).sum()) / float(table.size)
    rarer = int(min(float(table.positives), float(table.size - table.positives)) / unit)
    if rarer >= _FEW_ROWS:
        return found
    try:
        spline = fit_most_knots(design, at)
    except InputError:
        return found
    notes = (*found.notes, Note("spline_band", rarer, _SPLINE_BAND))
    return replace(
        found, value=spline.value, factor=spline.factor, degrees=spline.degrees, offset=spline.offset, notes=notes
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
                found = fit_logistic(design, spline_columns(table.score, inner))
            except InputError:
                continue
            columns = [spline_columns(score, inner) for score in (grouped.score, at, table.score)]
            rates = (expit(found @ np.stack([*each, np.ones(each[0].size)])) for each in columns)
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
    found: Floats = factor * np.where(error > 0, np.maximum(least / np.maximum(error, 1e-300), 1.0), 1.0)[:, None]
    return found
