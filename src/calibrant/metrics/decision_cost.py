"""The cost of decisions at a threshold: the Bayes threshold, and the mean cost as a metric."""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from calibrant._support.errors import InputError
from calibrant.metrics.metric import UnbinnedMetric
from calibrant.tables.score_table import ScoreTable

__all__ = ["DecisionCost", "bayes_threshold"]


def bayes_threshold(false_positive: float, false_negative: float) -> float:
    """Return the threshold with the least expected cost for calibrated scores: act where p >= fp / (fp + fn).

    Parameters
    ----------
    false_positive, false_negative : float
        Cost of acting where the event does not occur, and of not acting where it does.

    Returns
    -------
    float
        The threshold, in [0, 1].

    See Also
    --------
    DecisionCost, optimal_prediction

    Examples
    --------
    >>> bayes_threshold(1, 4)
    0.2
    """
    costs = (false_positive, false_negative)
    if not all(isinstance(cost, Real) and 0 <= cost < math.inf for cost in costs) or not any(costs):
        raise InputError(
            "false_positive and false_negative must be finite, not negative and not both 0; "
            f"got {false_positive!r} and {false_negative!r}.",
            argument="false_positive and false_negative",
        )
    # Exact arithmetic on the decimal numbers, 0.1 as a tenth: scores of trees can equal such thresholds.
    low, high = (Fraction(repr(float(cost))) for cost in costs)
    return float(low / (low + high))


@dataclass(frozen=True)
class DecisionCost(UnbinnedMetric):
    """Mean cost of acting where the score is at least a threshold; lower is better.

    Parameters
    ----------
    false_positive, false_negative : float, default=1
        See `bayes_threshold`.
    threshold : float, optional
        In [0, 1]; by default the Bayes threshold.

    See Also
    --------
    bayes_threshold, decisions

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 1, 1, 0], [0.3, 0.1, 0.9, 0.1])
    >>> DecisionCost(false_positive=1, false_negative=4).value(table)
    1.25
    """

    false_positive: float = 1.0
    false_negative: float = 1.0
    threshold: float | None = None
    name: ClassVar[str] = "decision cost"
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)  # limits of intervals are not clipped

    def __post_init__(self) -> None:
        bayes_threshold(self.false_positive, self.false_negative)
        given = self.threshold
        if given is not None and not (isinstance(given, Real) and 0 <= given <= 1):
            raise InputError(f"threshold must lie in [0, 1]; got {given!r}.", argument="threshold", value=given)

    @property
    def cut(self) -> float:
        """The threshold in use."""
        return bayes_threshold(self.false_positive, self.false_negative) if self.threshold is None else self.threshold

    @property
    def spec(self) -> dict[str, Any]:
        """Name and settings, JSON-able."""
        return {**super().spec, "threshold": self.cut}

    def errors(self, table: ScoreTable) -> tuple[float, float]:
        """Return the number (or weight) of rows that are false positives, and false negatives.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.

        Returns
        -------
        tuple of two floats
            False positives, and false negatives.
        """
        acted = table.score >= self.cut
        return float(np.sum((table.n - table.k)[acted])), float(np.sum(table.k[~acted]))

    def value(self, table: ScoreTable) -> float:
        positives, negatives = self.errors(table)
        return float((self.false_positive * positives + self.false_negative * negatives) / table.size)
