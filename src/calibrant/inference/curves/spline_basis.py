"""Restricted cubic splines: knots at fixed quantiles, and the basis of R's rms."""

from collections.abc import Sequence

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count
from calibrant._support.typing import Floats
from calibrant.tables.score_table import ScoreTable

__all__ = ["knots", "restricted_cubic_basis"]

# Harrell (2015), table 2.3.
_SHARES = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: (0.025, 0.1833, 0.3417, 0.5, 0.6583, 0.8167, 0.975),
}


def knots(table: ScoreTable, x: Floats, n_knots: int) -> Floats:
    """Return the distinct knots: quantiles of the rows at Harrell's shares, where x are the values of the scores.

    Quantiles are those of R's ``quantile`` (type 7). With fewer than 100 rows the outer knots are the fifth value from
    each end, as in R's ``rcspline.eval``. With importance weights a quantile is the lowest value at which the
    cumulative weight reaches the share.
    """
    check_count("n_knots", n_knots, 7, least=3)
    upto = np.cumsum(table.n, dtype=np.float64)
    shares = np.array(_SHARES[n_knots])
    if table.importance:
        found = x[np.minimum(np.searchsorted(upto, shares * upto[-1] - 1e-12 * upto[-1]), x.size - 1)]
        return np.unique(found)
    place = shares * (upto[-1] - 1)
    if upto[-1] < 100:
        place[[0, -1]] = min(4, upto[-1] - 1), max(upto[-1] - 5, 0)
    low, high = (x[np.searchsorted(upto, whole, side="right")] for whole in (np.floor(place), np.ceil(place)))
    return np.unique(low + (place - np.floor(place)) * (high - low))


def restricted_cubic_basis(x: Floats, at: Sequence[float] | Floats) -> list[Floats]:
    """Return the columns of a spline that is cubic between knots and linear beyond them; the first is x itself.

    With knots t_1 < ... < t_k the others are, for j = 1 to k - 2, divided by (t_k - t_1)^2::

        (x - t_j)+^3 - (x - t_k-1)+^3 (t_k - t_j) / (t_k - t_k-1) + (x - t_k)+^3 (t_k-1 - t_j) / (t_k - t_k-1)

    >>> [column.round(3).tolist() for column in restricted_cubic_basis(np.array([0.0, 1.0, 3.0]), [0, 1, 2])]
    [[0.0, 1.0, 3.0], [0.0, 0.25, 3.0]]
    """
    t = np.asarray(at, dtype=np.float64)
    if t.size < 3:
        return [x]
    if not (np.diff(t) > 0).all():
        raise InputError(f"knots must be strictly increasing; got {t.tolist()}.", argument="knots")

    def cube(knot: float) -> Floats:
        found: Floats = np.maximum(x - knot, 0.0) ** 3
        return found

    last, before = t[-1], t[-2]
    columns = [
        cube(knot) - cube(before) * (last - knot) / (last - before) + cube(last) * (before - knot) / (last - before)
        for knot in t[:-2]
    ]
    return [x, *(column / (last - t[0]) ** 2 for column in columns)]
