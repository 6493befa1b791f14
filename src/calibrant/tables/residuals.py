"""Sums of squared weights and squared residuals of the scores of a table."""

from calibrant._support.pieces import in_pieces
from calibrant._support.typing import Floats, Weights
from calibrant.tables.score_table import ScoreTable

__all__ = ["bernoulli_variance", "event_squares", "residual_variance", "row_squares", "squared_residuals"]


def row_squares(table: ScoreTable) -> Weights:
    """Return the sum of squared weights of each score; for counts the rows."""
    return table.n if table.w2 is None else table.w2


def event_squares(table: ScoreTable) -> Weights:
    """Return the sum of squared weights of events of each score; for counts the events."""
    return table.k if table.k2 is None else table.k2


def squared_residuals(table: ScoreTable, fitted: Floats) -> Floats:
    """Return the sum of w^2 (y - fitted)^2 of each score.

    Its sum over independent rows is the variance of the sum of w (y - fitted). It holds for miscalibrated models, and
    where weights depend on outcomes.

    >>> import numpy as np
    >>> squared_residuals(ScoreTable.from_counts([0.5], [4], [1]), np.array([0.5]))
    array([1.])
    """

    def of_piece(events: Weights, rows: Weights, fitted: Floats) -> Floats:
        return events * (1 - fitted) ** 2 + (rows - events) * fitted**2

    return in_pieces(of_piece, event_squares(table), row_squares(table), fitted)


def residual_variance(table: ScoreTable) -> Floats:
    """Return the variance of the sum of w (y - score) of each score if the model is calibrated.

    Counts have the Bernoulli variance. Importance weights have the sum of squared residuals, which holds where weights
    depend on outcomes.
    """
    if table.importance:
        return squared_residuals(table, table.score)
    return bernoulli_variance(table.n, table.score)


def bernoulli_variance(n: Weights, p: Floats) -> Floats:
    """Return n p (1 - p)."""
    return in_pieces(lambda n, p: n * p * (1 - p), n, p)
