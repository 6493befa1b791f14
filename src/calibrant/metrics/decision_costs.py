"""The cost of decisions at a threshold: the Bayes threshold, and the mean cost as a metric."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant._support.workers import available_cores, map_in_threads
from calibrant.metrics.costs import Cost, check_cost, evaluate_cost, normalise_units, optimum
from calibrant.metrics.metric import UnbinnedMetric
from calibrant.tables.score_table import ScoreTable


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
            raise InputError(f"threshold must lie in [0, 1]; got {given!r}.", value=given)

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


_BLOCK = 20_000  # cells processed at once, which fit into the processor's cache
_GRID = 101  # points at which a cost without a declared optimum is evaluated, in addition to the samples
_REFINEMENTS = 6  # of the best point, each ten times finer
_TOLERANCE = 1e-13  # of bisection
_MIN_STEP = 4e-12  # width of an interval of steps whose middle differs from its ends
_CANDIDATES = 8


def optimal_prediction(samples: Any, cost: Cost) -> Floats:
    r"""Return for each row the probability q with the least mean cost over samples of the true probability.

    .. math::

       q^* = \arg\min_{q \in [0, 1]} \frac1R \sum_{r=1}^{R} C(q, a_r)

    Parameters
    ----------
    samples : array of shape (rows, samples)
        Samples a of the true probability, in [0, 1]: from bootstrapped models, or from a posterior.
    cost : cost object or callable
        Cost of the prediction q where the true probability is a, ``cost(q, a)``.

    Returns
    -------
    ndarray of shape (rows,)
        If there are several minima, the lowest of the candidates below.

    See Also
    --------
    LinearCost, CostRecalibrator, bayes_threshold

    Notes
    -----
    Equation (7) of [1]_, exact for every cost of the library, which declares how its minimum is found:

    * "quantile" (`LinearCost`): the k-th smallest sample, k = max(1, ⌈R under / (under + over)⌉) (Theorem 1), in
      rational arithmetic on the costs as decimal numbers;
    * "sample" (concave distances: `LogCost`, `PowerCost` with k < 1): between two samples the mean cost is concave, so
      its minimum is at a sample; all are compared. The paper starts one local search there, which ends up to 38 % above
      the minimum;
    * "root" (convex distances: `ExponentialCost`, `PowerCost` with k > 1): the derivative increases, and its root is
      found by bisection to 1e-13;
    * "step" (`StepCost`): the mean cost is constant between points where the distance to a sample passes a threshold;
      all such intervals are compared, and the middle of the cheapest is returned.

    For any other callable all samples and 101 points of [0, 1] are compared, and the best of them is refined to 1e-8,
    which is correct if the cost has no narrower local minima.

    References
    ----------
    .. [1] Yang & Bi (2025), "Cost-aware calibration of classifiers".

    Examples
    --------
    >>> from calibrant.metrics.costs import LinearCost, LogCost
    >>> draws = [[0.1, 0.2, 0.3, 0.4, 0.9]]
    >>> optimal_prediction(draws, LinearCost(over=1, under=1))
    array([0.3])
    >>> optimal_prediction(draws, LinearCost(over=1, under=5))  # underestimation costs five times as much
    array([0.9])
    >>> optimal_prediction(draws, LogCost(over=1, under=1))
    array([0.3])
    """
    check_cost(cost)
    draws = _check_samples(samples)
    search = _search(cost)
    rows = max(1, _BLOCK // draws.shape[1])
    blocks = [draws[start : start + rows] for start in range(0, len(draws), rows)]
    # NumPy releases the interpreter lock while it computes.
    return np.concatenate(list(map_in_threads(lambda block: search(np.sort(block, axis=1)), blocks, available_cores())))


def _check_samples(samples: Any) -> Floats:
    draws: Floats = np.asarray(samples, dtype=np.float64)
    if draws.ndim != 2 or 0 in draws.shape:
        raise InputError(
            f"samples must have a row for each prediction and a column for each sample; got the shape {draws.shape}."
        )
    bad = ~((draws >= 0) & (draws <= 1))
    if bad.any():
        row = int(np.argmax(bad.any(axis=1)))
        value = float(draws[row][bad[row]][0])
        raise InputError(f"samples must lie in [0, 1]; got {value:.6g} (row {row}).", row=row, value=value)
    return draws


def _search(cost: Cost) -> Callable[[Floats], Floats]:
    """Return the function from sorted samples to the best predictions, as the cost declares."""
    methods: dict[str, Callable[[Floats, Any], Floats]] = {
        "quantile": _best_rank,
        "sample": _best_sample,
        "root": _root_of_derivative,
        "step": _best_step,
    }
    declared = optimum(cost)
    method = methods.get(declared, _grid_search)
    used = cost if declared == "quantile" else normalise_units(cost)  # ranks use the decimal numbers as written
    return lambda draws: method(draws, used)


def _best_rank(draws: Floats, cost: Any) -> Floats:
    return draws[:, linear_rank(cost.over, cost.under, draws.shape[1]) - 1]


def linear_rank(over: float, under: float, n_draws: int) -> int:
    """Return k of Theorem 1: the rank of the best sample in increasing order, at least 1.

    Costs are decimal numbers, 0.1 is a tenth, so that the ratio of 0.1 to 0.3 is one to three.
    """
    low, high = Fraction(repr(float(over))), Fraction(repr(float(under)))
    return max(1, math.ceil(high * n_draws / (high + low)))


def _best_sample(draws: Floats, cost: Any) -> Floats:
    """Return the cheapest of the sorted samples; each distance between two of them is computed once."""
    total = np.zeros(draws.shape)
    for lag in range(1, draws.shape[1]):
        distance = cost.distance(draws[:, lag:] - draws[:, :-lag])
        total[:, :-lag] += cost.under * distance  # predicting the smaller one underestimates the larger one
        total[:, lag:] += cost.over * distance
    return _take_column(draws, total.argmin(axis=1))


def _root_of_derivative(draws: Floats, cost: Any) -> Floats:
    """Return the minimum of the mean cost, by bisection between the lowest and the highest sample."""
    # Powers of distances have the same minimum in any unit; in units of the row's range high powers do not underflow.
    spread = np.where(draws[:, -1] > draws[:, 0], draws[:, -1] - draws[:, 0], 1.0)[:, None]
    unit = spread if hasattr(cost, "degree") else np.ones_like(spread)
    scaled = draws / unit
    low, high = scaled[:, 0].copy(), scaled[:, -1].copy()
    while (high - low).max() > _TOLERANCE:
        middle = (low + high) / 2
        gap = middle[:, None] - scaled
        pull = cost.slope(np.abs(gap))
        pull *= np.where(gap > 0, cost.over, -cost.under)
        rising = pull.sum(axis=1) >= 0
        high, low = np.where(rising, middle, high), np.where(rising, low, middle)
    # If the distance has a kink at 0, a sample can be the minimum; so can the ends, if one of the unit costs is 0.
    near = np.abs(scaled - low[:, None]).argmin(axis=1)
    candidates = np.column_stack([_take_column(scaled, near), scaled[:, 0], low, high, scaled[:, -1]])
    best = _cheapest(candidates, scaled, cost)
    # The samples themselves, without the rounding of the change of unit.
    inside = np.clip(best * unit[:, 0], draws[:, 0], draws[:, -1])
    for scaled_draw, draw in zip(
        candidates.T[[0, 1, 4]], (_take_column(draws, near), draws[:, 0], draws[:, -1]), strict=True
    ):
        inside = np.where(best == scaled_draw, draw, inside)
    return inside


def _best_step(draws: Floats, cost: Any) -> Floats:
    """Return the middle of the cheapest interval between points where the distance to a sample passes a threshold."""
    thresholds, prices = np.array(cost.levels).T
    rises = np.diff(prices / prices[-1], prepend=0.0)
    # From left to right, the cost of a sample decreases at each threshold below it and increases at each above it.
    points = np.concatenate([draws - t for t in thresholds] + [draws + t for t in thresholds], axis=1)
    jumps = np.repeat(np.concatenate([-cost.under * rises, cost.over * rises]), draws.shape[1])
    order = points.argsort(axis=1, kind="stable")
    at = np.clip(np.take_along_axis(points, order, axis=1), 0.0, 1.0)
    after = np.cumsum(jumps[order], axis=1)
    start = np.zeros((len(draws), 1))
    edges = np.concatenate([start, at, start + 1], axis=1)
    level = np.concatenate([start, after], axis=1)
    wide = np.diff(edges, axis=1) > _MIN_STEP  # others lie outside [0, 1], or between equal points
    level = np.where(wide, level, np.inf)
    # Sums of large and small jumps are rounded, so the costs of the best few intervals are computed directly.
    few = np.argsort(level, axis=1, kind="stable")[:, :_CANDIDATES]
    left, right = (np.take_along_axis(edges, few + side, axis=1) for side in (0, 1))
    usable = np.take_along_axis(wide, few, axis=1)
    middle = np.where(usable, (left + right) / 2, ((left + right) / 2)[:, :1])
    return _cheapest(np.sort(middle, axis=1), draws, cost)


def _grid_search(draws: Floats, cost: Cost) -> Floats:
    """Compare the samples and a grid, then finer grids about the best of them."""
    grid = np.broadcast_to(np.linspace(0, 1, _GRID), (len(draws), _GRID))
    best = _cheapest(np.concatenate([draws, grid], axis=1), draws, cost)
    width = 1 / (_GRID - 1)
    for _ in range(_REFINEMENTS):
        near = best[:, None] + np.linspace(-width, width, 21)
        best = _cheapest(np.concatenate([best[:, None], np.clip(near, 0, 1)], axis=1), draws, cost)
        width /= 10
    return best


def _cheapest(candidates: Floats, draws: Floats, cost: Cost) -> Floats:
    """Return the candidate of least mean cost of each row, the first of equals."""
    columns = [evaluate_cost(cost, np.repeat(q[:, None], draws.shape[1], axis=1), draws) for q in candidates.T]
    if any(column.shape != draws.shape for column in columns):
        raise InputError("cost must return one number for each pair (p, a); got another shape.")
    total = np.column_stack([column.sum(axis=1) for column in columns])
    total = np.where(np.isnan(total), np.inf, total)  # NaN is never the minimum
    if not np.isfinite(total).any(axis=1).all():
        raise InputError("cost must be finite for some prediction; got infinity or NaN for all.")
    return _take_column(candidates, total.argmin(axis=1))


def _take_column(values: Floats, column: Any) -> Floats:
    return np.take_along_axis(values, column[:, None], axis=1)[:, 0]
