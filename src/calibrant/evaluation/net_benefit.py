"""Net benefit of decisions at thresholds, and its interval, from rows or from a table."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.tails import student_quantile
from calibrant.tables.score_table import ScoreTable, event_squares, row_squares

DEFAULT_STRATEGY = "the better of treating all and none"


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """Net benefit of one strategy at each threshold, with its confidence interval, and its gain over another one.

    Attributes
    ----------
    name : str
    value, low, high : ndarray
        Net benefit per row.
    gain, gain_low, gain_high : ndarray
        Net benefit less that of `reference`, on the same rows.
    reference : str
        The first model; for a recalibrated model the model itself; for the first model, and for all models of tables,
        the better of treating all and none at each threshold.

    See Also
    --------
    DecisionCurve, decision_curve

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import decision_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 4000)
    >>> model = decision_curve(rng.random(4000) < p, p, thresholds=[0.1, 0.2]).models[0]
    >>> model.value.round(3), model.gain.round(3), model.reference
    (array([0.167, 0.113]), array([0.014, 0.066]), 'the better of treating all and none')
    """

    name: str
    value: Floats
    low: Floats
    high: Floats
    gain: Floats
    gain_low: Floats
    gain_high: Floats
    reference: str


@dataclass(frozen=True, eq=False)
class BenefitRows:
    """Rows, or cells of rows with the same outcome and score, whose net benefit is computed at thresholds.

    Attributes
    ----------
    event : ndarray
        Outcome of each row or cell.
    weight, square : ndarray
        Sum of the weights of its rows, and of their squares.
    n_rows : float
    cluster : ndarray or None
    thresholds : ndarray
    quantile : float
        Multiple of the standard error in an interval.
    """

    event: Floats
    weight: Floats
    square: Floats
    n_rows: float
    cluster: Ints | None
    thresholds: Floats
    quantile: float

    @classmethod
    def from_rows(cls, rows: PairedRows, thresholds: Floats, level: float) -> "BenefitRows":
        """Return rows, each a cell of its own."""
        weight = np.ones(rows.event.size) if rows.weight is None else rows.weight.astype(np.float64)
        quantile = student_quantile((1 + level) / 2, math.inf if rows.cluster is None else rows.n_draws - 1)
        event = rows.event.astype(np.float64)
        return cls(event, weight, weight**2, float(event.size), rows.cluster, thresholds, quantile)

    @classmethod
    def from_table(cls, table: ScoreTable, thresholds: Floats, level: float) -> "BenefitRows":
        """Return two cells for each score: rows with the event, then rows without it."""
        event = np.repeat([1.0, 0.0], len(table))
        weight = np.concatenate([table.k, table.n - table.k]).astype(np.float64)
        squares = event_squares(table)
        square = np.concatenate([squares, row_squares(table) - squares]).astype(np.float64)
        n_rows = float(table.n_used if table.importance else table.size)
        return cls(event, weight, square, n_rows, None, thresholds, student_quantile((1 + level) / 2, math.inf))

    def compare(self, name: str, score: Floats, other: Floats | None, reference: str) -> NetBenefit:
        """Return the net benefit of a score, and its gain over another score, or over the better default strategy."""
        value, gain = np.empty((3, self.thresholds.size)), np.empty((3, self.thresholds.size))
        prevalence = np.sum(self.weight * self.event) / self.weight.sum()
        for i, t in enumerate(self.thresholds):
            act = score >= t
            value[:, i] = self._mean(act.astype(np.float64), t)
            default = np.full(act.size, float(prevalence >= t)) if other is None else (other >= t).astype(np.float64)
            gain[:, i] = self._mean(act - default, t)
        shown = DEFAULT_STRATEGY if other is None else reference
        return NetBenefit(name, value[0], value[1], value[2], gain[0], gain[1], gain[2], shown)

    def _mean(self, acts: Floats, t: float) -> tuple[float, float, float]:
        """Return mean and limits of the benefit of acting more often by `acts`: 1, 0 or -1 in each row."""
        total = float(self.weight.sum())
        benefit = acts * (self.event - (1 - self.event) * t / (1 - t))
        mean = float(np.sum(self.weight * benefit)) / total
        if self.cluster is not None:
            sums = np.bincount(self.cluster, weights=self.weight * (benefit - mean))
            variance = float(np.sum(sums**2)) * sums.size / (sums.size - 1)
        else:
            variance = float(np.sum(self.square * (benefit - mean) ** 2))
        # One more true and one more false positive, of the mean squared weight.
        variance += float(self.square.sum()) / self.n_rows * (1 + (t / (1 - t)) ** 2)
        reach = self.quantile * variance**0.5 / total
        return mean, mean - reach, mean + reach
