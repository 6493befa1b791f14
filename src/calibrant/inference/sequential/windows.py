"""A window of a stream: counts per score, and the event rates that the null hypothesis allows."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.logits import expit, logit
from calibrant._support.typing import Floats
from calibrant.tables.score_table import ScoreTable

__all__ = ["CERTAIN", "Window"]

CERTAIN = 1e-6  # scores closer to 0 or 1 are moved here, and the null hypothesis extends to 0 or 1


@dataclass(frozen=True)
class Window:
    """The rows of a window, counted per score.

    `score` and `logit` have one entry per score; `low` and `high` are the event rates that the null hypothesis allows.
    `n` and `k` have one entry per score on the last axis; leading axes hold streams with the same scores.
    """

    score: Floats
    logit: Floats
    low: Floats
    high: Floats
    n: Floats
    k: Floats

    @classmethod
    def from_counts(cls, score: Floats, n: Floats, k: Floats, *, margin: float) -> "Window":
        """Return the window of these counts, with log-odds errors up to the margin allowed."""
        score = np.asarray(score, dtype=np.float64)
        whole = cls(score, logit(score, CERTAIN), score, score, *(np.asarray(a, dtype=np.float64) for a in (n, k)))
        return replace(whole, low=whole._lower(np.asarray(-margin)), high=whole._upper(np.asarray(margin)))

    @classmethod
    def from_table(cls, table: ScoreTable, *, margin: float) -> "Window":
        """Return the window of a table."""
        return cls.from_counts(table.score, table.n, table.k, margin=margin)

    def within(self, low: Floats, high: Floats) -> "Window":
        """Return the window with shifts from `low` to `high` allowed, one row per shift: a new axis before scores."""
        n, k = self.n[..., None, :], self.k[..., None, :]
        return replace(self, low=self._lower(low), high=self._upper(high), n=n, k=k)

    def shifted(self, shift: Floats) -> Floats:
        """Return the scores with shifted log-odds."""
        return expit(self.logit + shift)

    def _lower(self, shift: Floats) -> Floats:
        return np.where(self.score <= CERTAIN, 0.0, self.shifted(shift))

    def _upper(self, shift: Floats) -> Floats:
        return np.where(self.score >= 1 - CERTAIN, 1.0, self.shifted(shift))

    @property
    def size(self) -> Floats:
        """Number of rows."""
        return np.asarray(self.n.sum(axis=-1))
