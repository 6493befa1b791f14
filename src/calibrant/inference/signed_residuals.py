"""`SignedResiduals`: null replicates of weighted or clustered rows, whose residuals get random signs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrant import _kernels
from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import Stream, Streams
from calibrant.tables.score_table import ScoreTable, residual_variance

__all__ = ["SignedResiduals"]


@dataclass(frozen=True, eq=False)
class SignedResiduals:
    """Residuals in order of score; those of one unit share a random sign.

    Attributes
    ----------
    place : ndarray of int64
        Entry of the table that each residual belongs to; it does not fall.
    residual : ndarray of float64
    unit : ndarray of int64 or None
        Unit of each residual; without them each has a sign of its own.
    n_units : int
    tied : ndarray of int64
        Entries of several weighted rows, of which sums alone are known: they get a standard normal variate.
    deviation : ndarray of float64
        Standard deviation of the residual sum of each of these.
    """

    place: Ints
    residual: Floats
    unit: Ints | None
    n_units: int
    tied: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    deviation: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of_weights(cls, table: ScoreTable) -> "SignedResiduals":
        """Return those of importance weights, which are not numbers of trials: they may depend on the outcome."""
        assert table.w2 is not None
        deviation = np.sqrt(residual_variance(table))
        single = table.n**2 <= table.w2 * (1 + 1e-9)
        tied, size = np.flatnonzero(~single), len(table)
        return cls(np.arange(size), np.where(single, deviation, 0.0), None, size, tied, deviation[tied])

    def moved(self, stream: Stream, entries: int) -> Floats:
        """Return the residual sum of each entry of the table in a replicate."""
        sign = _kernels.signs(stream.key, stream.replicate, self.n_units)
        signed = (sign if self.unit is None else sign[self.unit]) * self.residual
        found = np.bincount(self.place, weights=signed, minlength=entries).astype(np.float64)
        if self.tied.size:
            found[self.tied] += self._normal(stream)
        return found

    def sampler(self, table: ScoreTable) -> Callable[[Stream], ScoreTable]:
        """Return the sampler of tables with the same scores and weights, whose residuals get random signs."""
        score, n = table.score, table.n
        fitted = n * score
        w2, k2 = table.w2, table.k2
        return lambda stream: ScoreTable(score, n, fitted + self.moved(stream, score.size), w2, k2)

    def sums(self, start: Ints, terms: Sequence[Floats]) -> Callable[[Streams], Floats]:
        """Return the function from streams to sums of the residuals over parts of the table.

        Part b begins with entry ``start[b]``. The sums have the shape (replicates, parts, 1 + terms): of the residuals,
        and of the residuals times each term, which has one number per entry.
        """
        weighted = [self.residual, *(term[self.place] * self.residual for term in terms)]
        values = np.ascontiguousarray(np.column_stack(weighted))
        rows = np.searchsorted(self.place, start)

        def of_streams(streams: Streams) -> Floats:
            found = _kernels.signed_sums(streams.key, streams.first, streams.count, values, rows, self.unit)
            if self.tied.size:
                self._add_tied(found, streams, start, terms)
            return found

        return of_streams

    def _add_tied(self, sums: Floats, streams: Streams, start: Ints, terms: Sequence[Floats]) -> None:
        part = np.searchsorted(start, self.tied, side="right") - 1
        factors = [np.ones(self.tied.size), *(term[self.tied] for term in terms)]
        for found, stream in zip(sums, streams, strict=True):
            moved = self._normal(stream)
            for column, factor in enumerate(factors):
                found[:, column] += np.bincount(part, weights=moved * factor, minlength=start.size)

    def _normal(self, stream: Stream) -> Floats:
        return np.asarray(stream.generator().standard_normal(self.tied.size) * self.deviation)
