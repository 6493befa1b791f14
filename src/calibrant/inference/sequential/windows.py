"""A window of a stream: counts per score, and the event rates that the null hypothesis allows."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.logits import expit, logit
from calibrant._support.typing import Floats
from calibrant.tables.score_table import ScoreTable

__all__ = ["Window"]

CERTAIN = 1e-6  # scores closer to 0 or 1 are moved here, and the null hypothesis extends to 0 or 1


@dataclass(frozen=True)
class Window:
    """The rows of a window, counted per score.

    `logit`, `low` and `high` have one entry per score: its log-odds and the event rates within the margin, in log-odds.
    `n` and `k` have one entry per score on the last axis; leading axes hold streams with the same scores.
    """

    logit: Floats
    low: Floats
    high: Floats
    n: Floats
    k: Floats

    @classmethod
    def from_counts(cls, score: Floats, n: Floats, k: Floats, *, margin: float) -> "Window":
        """Return the window of these counts."""
        log_odds = logit(score, CERTAIN)
        low, high = expit(log_odds - margin), expit(log_odds + margin)
        low[score <= CERTAIN] = 0.0
        high[score >= 1 - CERTAIN] = 1.0
        return cls(log_odds, low, high, np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64))

    @classmethod
    def from_table(cls, table: ScoreTable, *, margin: float) -> "Window":
        """Return the window of a table."""
        return cls.from_counts(table.score, table.n, table.k, margin=margin)

    @property
    def size(self) -> Floats:
        """Number of rows."""
        return np.asarray(self.n.sum(axis=-1))
