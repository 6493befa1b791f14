"""The prediction that costs least, when the true probability is known by draws of it only."""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats
from calibrant.metrics.costs import (
    Cost,
    ExponentialCost,
    LinearCost,
    LogCost,
    PowerCost,
    StepCost,
    called_on_arrays,
    check_cost,
    normalised,
)

__all__ = ["optimal_prediction"]

_BLOCK = 20_000  # cells worked on at once: they stay in the processor's cache
_GRID = 101  # points at which a cost of unknown shape is tried, beside the samples
_ZOOMS = 6  # refinements of the best of them, each ten times finer
_CLOSE = 1e-13  # where bisection ends
_NARROWEST = 4e-12  # an interval of steps in which a distance can be told from its ends
_FINALISTS = 8


def optimal_prediction(samples: Any, cost: Cost) -> Floats:
    r"""The probability q that costs least on average over draws of the true one, for every row.

    .. math::

       q^* = \arg\min_{q \in [0, 1]} \frac1R \sum_{r=1}^{R} C(q, a_r)

    Parameters
    ----------
    samples : array of shape (rows, draws)
        Draws a of the true probability, in [0, 1]: by bootstrapped models, or from a posterior.
    cost : cost object or callable
        What it costs to say q where the truth is a, ``cost(q, a)``.

    Returns
    -------
    ndarray of shape (rows,)
        Of several minima the lowest that is a candidate below.

    Notes
    -----
    Equation (7) of [1]_, exact for every cost of the library:

    * linear: the k-th smallest draw, k = max(1, ⌈R under / (under + over)⌉) (Theorem 1), in rational arithmetic on the
      costs as they are written;
    * concave distances (`LogCost`, `PowerCost` with k < 1): between two draws the mean cost is concave, so a draw is
      best; all are tried. The paper starts one local search there, which ends up to 38 % above the minimum;
    * convex distances (`ExponentialCost`, `PowerCost` with k > 1): the derivative rises, and its zero is bisected to
      1e-13;
    * `StepCost`: the mean cost is constant between points where a draw passes a threshold; all such intervals are
      compared, and the middle of the cheapest is taken.

    For any other callable all draws and 101 points of [0, 1] are tried, and the best of them is refined to 1e-8: right
    if the cost has no narrower valleys than that.

    References
    ----------
    .. [1] Yang & Bi (2025), "Cost-aware calibration of classifiers".

    Examples
    --------
    >>> from calibrant import LinearCost, LogCost
    >>> draws = [[0.1, 0.2, 0.3, 0.4, 0.9]]
    >>> optimal_prediction(draws, LinearCost(over=1, under=1))
    array([0.3])
    >>> optimal_prediction(draws, LinearCost(over=1, under=5))  # too low costs five times too high
    array([0.9])
    >>> optimal_prediction(draws, LogCost(over=1, under=1))
    array([0.3])
    """
    check_cost(cost)
    draws = _checked(samples)
    search = _search(cost)
    rows = max(1, _BLOCK // draws.shape[1])
    blocks = [draws[start : start + rows] for start in range(0, len(draws), rows)]
    if len(blocks) == 1:
        return search(np.sort(blocks[0], axis=1))
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # NumPy lets go of the interpreter while it works
        return np.concatenate(list(pool.map(lambda block: search(np.sort(block, axis=1)), blocks)))


def _checked(samples: Any) -> Floats:
    draws: Floats = np.asarray(samples, dtype=np.float64)
    if draws.ndim != 2 or 0 in draws.shape:
        raise InputError(
            f"samples must have a row for every example and a column for every draw; its shape is {draws.shape}.",
            argument="samples",
        )
    bad = ~((draws >= 0) & (draws <= 1))
    if bad.any():
        row = int(np.argmax(bad.any(axis=1)))
        value = float(draws[row][bad[row]][0])
        raise InputError(
            f"samples must lie in [0, 1]; row {row} holds {value:.6g}.", argument="samples", row=row, value=value
        )
    return draws


def _search(cost: Cost) -> Callable[[Floats], Floats]:
    """The way to find the best prediction of sorted draws."""
    # By the type itself: a cost that inherits from these may be another function.
    if type(cost) is LinearCost or (type(cost) is PowerCost and cost.k == 1):
        return lambda draws: draws[:, linear_rank(cost.over, cost.under, draws.shape[1]) - 1]
    scaled = normalised(cost)
    if type(scaled) is StepCost:
        return lambda draws: _of_steps(draws, scaled)
    if type(scaled) is LogCost or (type(scaled) is PowerCost and scaled.concave):
        return lambda draws: _best_draw(draws, scaled)
    if type(scaled) is ExponentialCost or type(scaled) is PowerCost:
        return lambda draws: _zero_of_derivative(draws, scaled)
    return lambda draws: _refined(draws, scaled)


def linear_rank(over: float, under: float, n_draws: int) -> int:
    """k of Theorem 1: which draw, in rising order, is best. At least 1, also where predicting too low costs nothing.

    Costs are taken as they are written, 0.1 for a tenth, so that 0.1 and 0.3 are one to three.
    """
    low, high = Fraction(repr(float(over))), Fraction(repr(float(under)))
    return max(1, math.ceil(high * n_draws / (high + low)))


def _best_draw(draws: Floats, cost: Any) -> Floats:
    """Of sorted draws the one that costs least, by all distances between two of them, each worked out once."""
    total = np.zeros(draws.shape)
    for lag in range(1, draws.shape[1]):
        distance = cost.distance(draws[:, lag:] - draws[:, :-lag])
        total[:, :-lag] += cost.under * distance  # the earlier one, said where the later one is true, is too low
        total[:, lag:] += cost.over * distance
    return _chosen(draws, total.argmin(axis=1))


def _zero_of_derivative(draws: Floats, cost: Any) -> Floats:
    """Where the mean cost stops falling: bisection between the lowest and the highest draw."""
    # Powers of distances have the same minimum in any unit: in that of the row's range high powers do not vanish.
    spread = np.where(draws[:, -1] > draws[:, 0], draws[:, -1] - draws[:, 0], 1.0)[:, None]
    unit = spread if isinstance(cost, PowerCost) else np.ones_like(spread)
    scaled = draws / unit
    low, high = scaled[:, 0].copy(), scaled[:, -1].copy()
    while (high - low).max() > _CLOSE:
        middle = (low + high) / 2
        gap = middle[:, None] - scaled
        pull = cost.slope(np.abs(gap))
        pull *= np.where(gap > 0, cost.over, -cost.under)
        rising = pull.sum(axis=1) >= 0
        high, low = np.where(rising, middle, high), np.where(rising, low, middle)
    # Where a distance has a kink at 0 a draw can be the minimum; so can the ends, where one of the costs is 0.
    near = np.abs(scaled - low[:, None]).argmin(axis=1)
    candidates = np.column_stack([_chosen(scaled, near), scaled[:, 0], low, high, scaled[:, -1]])
    best = _cheapest(candidates, scaled, cost)
    # Draws as they are, not as they come back from the unit.
    inside = np.clip(best * unit[:, 0], draws[:, 0], draws[:, -1])
    for scaled_draw, draw in zip(
        candidates.T[[0, 1, 4]], (_chosen(draws, near), draws[:, 0], draws[:, -1]), strict=True
    ):
        inside = np.where(best == scaled_draw, draw, inside)
    return inside


def _of_steps(draws: Floats, cost: StepCost) -> Floats:
    """The middle of the cheapest interval between points where the distance to a draw passes a threshold."""
    thresholds, prices = np.array(cost.levels).T
    rises = np.diff(prices / prices[-1], prepend=0.0)
    # From left to right, a draw's cost falls at each threshold below it, and rises at each above it.
    points = np.concatenate([draws - t for t in thresholds] + [draws + t for t in thresholds], axis=1)
    jumps = np.repeat(np.concatenate([-cost.under * rises, cost.over * rises]), draws.shape[1])
    order = points.argsort(axis=1, kind="stable")
    at = np.clip(np.take_along_axis(points, order, axis=1), 0.0, 1.0)
    after = np.cumsum(jumps[order], axis=1)
    start = np.zeros((len(draws), 1))
    edges = np.concatenate([start, at, start + 1], axis=1)
    level = np.concatenate([start, after], axis=1)
    wide = np.diff(edges, axis=1) > _NARROWEST  # others lie outside [0, 1], or between equal points
    level = np.where(wide, level, np.inf)
    # Sums of large and small jumps are rounded: the best few are asked for their cost itself.
    few = np.argsort(level, axis=1, kind="stable")[:, :_FINALISTS]
    left, right = (np.take_along_axis(edges, few + side, axis=1) for side in (0, 1))
    usable = np.take_along_axis(wide, few, axis=1)
    middle = np.where(usable, (left + right) / 2, ((left + right) / 2)[:, :1])
    return _cheapest(np.sort(middle, axis=1), draws, cost)


def _refined(draws: Floats, cost: Cost) -> Floats:
    """Draws and a grid, and ever finer grids about the best of them."""
    grid = np.broadcast_to(np.linspace(0, 1, _GRID), (len(draws), _GRID))
    best = _cheapest(np.concatenate([draws, grid], axis=1), draws, cost)
    width = 1 / (_GRID - 1)
    for _ in range(_ZOOMS):
        near = best[:, None] + np.linspace(-width, width, 21)
        best = _cheapest(np.concatenate([best[:, None], np.clip(near, 0, 1)], axis=1), draws, cost)
        width /= 10
    return best


def _cheapest(candidates: Floats, draws: Floats, cost: Cost) -> Floats:
    """Of every row's candidates the one of least mean cost, the first of equals."""
    columns = [called_on_arrays(cost, np.repeat(q[:, None], draws.shape[1], axis=1), draws) for q in candidates.T]
    if any(column.shape != draws.shape for column in columns):
        raise InputError("A cost must give one number for every pair (p, a).", argument="cost")
    total = np.column_stack([column.sum(axis=1) for column in columns])
    total = np.where(np.isnan(total), np.inf, total)  # what costs no number is not cheap
    if not np.isfinite(total).any(axis=1).all():
        raise InputError("The cost is infinite or no number wherever it was tried.", argument="cost")
    return _chosen(candidates, total.argmin(axis=1))


def _chosen(values: Floats, column: Any) -> Floats:
    return np.take_along_axis(values, column[:, None], axis=1)[:, 0]
