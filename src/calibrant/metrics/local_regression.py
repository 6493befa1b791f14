"""Local regression of outcomes on scores (loess), as a linear map of the events of each score."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.option_checks import is_number
from calibrant._support.typing import Floats, Ints
from calibrant.tables.score_table import ScoreTable

__all__ = ["MOST_SCORES", "LocalRegression", "group_scores", "score_groups"]

MOST_SCORES = 8192  # beyond, neighbouring scores are grouped


@dataclass(frozen=True)
class LocalRegression:
    """Loess: at each point a weighted least-squares polynomial of the outcomes near it (Cleveland 1979).

    The nearest ``floor(span * N)`` rows have tricube weights (1 - (d / h)^3)^3, where h is the distance of the farthest
    of them. These are the conventions of R's ``loess`` with ``family="gaussian"`` and ``surface="direct"``.
    Where tied scores or large weights leave fewer than ``degree + 1`` distinct scores with a weight, for which R has no
    value or an arbitrary one, h reaches the next scores.
    R's default surface interpolates between few points and differs in
    the third decimal. Importance weights multiply the tricube weights, and `span` is a share of their sum.

    Parameters
    ----------
    span : float, default=0.75
    degree : {1, 2}, default=2
        Of the local polynomial.

    See Also
    --------
    calibration_curve, loess_errors

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.5, 0.8], [50, 50, 50, 50], [9, 16, 27, 38])
    >>> LocalRegression(span=1.0, degree=1).fitted(table, np.array([0.2, 0.6])).round(3)
    array([0.256, 0.602])
    """

    span: float = 0.75
    degree: int = 2

    def __post_init__(self) -> None:
        if not (is_number(self.span) and 0 < self.span <= 1):
            raise InputError(
                f"span must be above 0 and at most 1; got {self.span!r}.", argument="span", value=self.span
            )
        if self.degree not in (1, 2):
            raise InputError(f"degree must be 1 or 2; got {self.degree!r}.", argument="degree", value=self.degree)

    def weights(self, table: ScoreTable, at: Floats) -> Floats:
        """Return for each point the numbers by which the events of each score are multiplied and added up.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.
        at : array of m numbers
            Points of the curve.

        Returns
        -------
        array of shape (m, number of distinct scores)
        """
        found = np.zeros((at.size, len(table)))
        reach = self._reach(table, at)
        for i, (x, h) in enumerate(zip(at, reach, strict=True)):
            first, last = np.searchsorted(table.score, (x - h, x + h), side="left")
            near = slice(int(first), min(int(last) + 1, len(table)))
            found[i, near] = self._row(table.score[near] - x, table.n[near].astype(np.float64), h)
        return found

    def fitted(self, table: ScoreTable, at: Floats) -> Floats:
        """Return the curve at these points.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.
        at : array of m numbers
            Points of the curve.

        Returns
        -------
        array of shape (m,)
        """
        found: Floats = self.weights(table, at) @ table.k.astype(np.float64)
        return found

    def fitted_scores(self, table: ScoreTable, points: int) -> Floats:
        """Return the curve at each score: exact for at most so many scores, else straight lines between so many.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.
        points : int
            Largest number of scores at which the curve is fitted.

        Returns
        -------
        array
            One value per distinct score.
        """
        ranks = np.unique(np.linspace(0, len(table) - 1, min(len(table), points)).astype(np.int64))
        at = table.score[ranks]
        found: Floats = np.interp(table.score, at, self.fitted(group_scores(table), at))
        return found

    def _reach(self, table: ScoreTable, at: Floats) -> Floats:
        """Return the distance h within which rows have a weight, at each point."""
        size = float(table.size)
        count = size * self.span if table.importance else max(np.floor(size * self.span + 1e-5), 1.0)
        before = np.concatenate([[0.0], np.cumsum(table.n, dtype=np.float64)])
        far = _nearest(*_windows(table.score, before, count), at)
        near = far * (1 - 1e-9)
        inside = np.searchsorted(table.score, at + near) - np.searchsorted(table.score, at - near, side="right")
        least = self.degree + 1
        if len(table) > least:
            wider = _nearest(table.score[:-least], table.score[least:], at)
            far = np.where(inside < least, np.maximum(far, 1.05 * wider), far)
        reach: Floats = np.maximum(far, 1e-300)
        return reach

    def _row(self, away: Floats, n: Floats, h: float) -> Floats:
        share = np.abs(away) / h
        kernel = n * np.where(share < 1, (1 - np.minimum(share, 1) ** 3) ** 3, 0.0)
        scaled = np.clip(away / h, -1, 1)  # powers of rows without a weight do not overflow
        basis = np.stack([scaled**j for j in range(self.degree + 1)])
        gram = (basis * kernel) @ basis.T
        size = np.linalg.eigvalsh(gram)
        if size[0] > 1e-9 * size[-1]:
            found: Floats = np.linalg.solve(gram, basis)[0] * (kernel / n)
            return found
        # Few distinct scores near the point do not determine a polynomial: the pseudo-inverse takes the shortest one
        # that fits, as R does.
        root = np.sqrt(kernel)
        shortest: Floats = np.linalg.pinv((basis * root).T, rcond=1e-10)[0] * root / n
        return shortest


def _nearest(low: Floats, high: Floats, at: Floats) -> Floats:
    """Return for each point the smallest distance that contains one of these ranges."""
    found: Floats = np.array([np.maximum(x - low, high - x).min() for x in at])
    return found


def _windows(score: Floats, before: Floats, count: float) -> tuple[Floats, Floats]:
    """Return lowest and highest score of the shortest runs of scores with `count` rows; `before` are rows below."""
    stop = np.searchsorted(before, before[:-1] + count - 1e-9)
    whole = stop < before.size
    return score[whole], score[stop[whole] - 1]


def score_groups(size: int, most: int) -> Ints:
    """Return the first scores of at most `most` groups of neighbouring scores, of equal numbers of scores."""
    return np.arange(min(most, size)) * size // min(most, size)


def group_scores(table: ScoreTable, most: int = MOST_SCORES) -> ScoreTable:
    """Return a table with at most `most` scores: the means of the groups of neighbouring scores."""
    if len(table) <= most:
        return table
    start = score_groups(len(table), most)
    n = np.add.reduceat(table.n, start)
    score = np.add.reduceat(table.n * table.score, start) / n
    squares = [None if column is None else np.add.reduceat(column, start) for column in (table.w2, table.k2)]
    return ScoreTable(score, n, np.add.reduceat(table.k, start), *squares)
