r"""Costs of a wrong probability: what it costs to predict p where the true rate is a.

.. math::

   C(p, a) = C_o \, d(p, a) \text{ if } p > a, \quad C_u \, d(p, a) \text{ otherwise}

`over` is the unit cost :math:`C_o` of predicting too high, `under` that of predicting too low. Yang and Bi (2025),
equation (4) and section 5. A cost is called with arrays, ``cost(p, a)``; any callable may stand in its place. `convex`
and `concave` say what d is as a function of the distance.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant._support.errors import InputError
from calibrant._support.typing import Floats

__all__ = [
    "Cost",
    "ExponentialCost",
    "LinearCost",
    "LogCost",
    "PowerCost",
    "StepCost",
    "called_on_arrays",
    "check_cost",
    "normalised",
]

Cost: TypeAlias = Callable[[Any, Any], Any]


def _check_units(over: float, under: float) -> None:
    numbers = isinstance(over, Real) and isinstance(under, Real)
    if not (numbers and 0 <= over < math.inf and 0 <= under < math.inf and over + under > 0):
        raise InputError(
            f"over and under must be finite, not negative and not both 0; they are {over!r} and {under!r}.",
            argument="over and under",
            value=(over, under),
        )


def check_cost(cost: object) -> None:
    """A cost is an object or function that is called with arrays (p, a)."""
    if not callable(cost) or isinstance(cost, type):
        raise InputError(
            f"A cost must be called with arrays (p, a); {cost!r} cannot be.",
            hint="For example LinearCost(over=1, under=5).",
            argument="cost",
            value=cost,
        )


def called_on_arrays(cost: Cost, p: Floats, a: Floats) -> Floats:
    """What the cost says, as an array of the shape of p and a; a cost of your own may fail on arrays."""
    try:
        return np.asarray(cost(p, a), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The cost failed on arrays (p, a): {error}",
            hint="Write it for arrays (np.where in the place of if), or wrap it in np.vectorize.",
            argument="cost",
            value=cost,
        ) from error


def normalised(cost: Cost) -> Cost:
    """The same cost with the larger of its units 1: what minimises it depends on their ratio alone."""
    if type(cost) not in (LinearCost, PowerCost, ExponentialCost, LogCost, StepCost):
        return cost
    assert isinstance(cost, (LinearCost, PowerCost, ExponentialCost, LogCost, StepCost))
    unit = max(cost.over, cost.under)
    return replace(cost, over=cost.over / unit, under=cost.under / unit)


def _sided(p: ArrayLike, a: ArrayLike, over: float, under: float, distance: Callable[[Floats], Floats]) -> Floats:
    gap = np.asarray(p, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    return np.where(gap > 0, over, under) * distance(np.abs(gap))


@dataclass(frozen=True)
class LinearCost:
    """Cost in proportion to the distance, ``d = |p - a|``.

    Examples
    --------
    >>> LinearCost(over=1, under=5)(0.7, [0.6, 0.8]).round(3)
    array([0.1, 0.5])
    """

    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = True
    concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_units(self.over, self.under)

    @property
    def largest(self) -> float:
        """The largest cost of any two rates."""
        return float(max(self.over, self.under))

    def distance(self, d: Floats) -> Floats:
        """What a distance costs, before `over` or `under`."""
        return d

    def __call__(self, p: ArrayLike, a: ArrayLike) -> Floats:
        return _sided(p, a, self.over, self.under, self.distance)


@dataclass(frozen=True)
class PowerCost:
    """``d = |p - a|^k``, k > 0: convex for k >= 1, concave for k <= 1.

    Examples
    --------
    >>> PowerCost(2, under=3)(0.5, [0.4, 0.6]).round(3)
    array([0.01, 0.03])
    """

    k: float
    over: float = 1.0
    under: float = 1.0

    def __post_init__(self) -> None:
        _check_units(self.over, self.under)
        if not isinstance(self.k, Real) or not 0 < self.k < math.inf:
            raise InputError(f"k must be a positive number; it is {self.k!r}.", argument="k", value=self.k)

    def distance(self, d: Floats) -> Floats:
        """What a distance costs, before `over` or `under`."""
        return np.sqrt(d) if self.k == 0.5 else d**self.k

    @property
    def degree(self) -> float:
        """Power of the distance with which the cost grows."""
        return float(self.k)

    @property
    def largest(self) -> float:
        """The largest cost of any two rates."""
        return float(max(self.over, self.under))

    def slope(self, d: Floats) -> Floats:
        """The derivative of `distance`."""
        return self.k * d ** (self.k - 1)

    def __call__(self, p: ArrayLike, a: ArrayLike) -> Floats:
        return _sided(p, a, self.over, self.under, self.distance)

    @property
    def convex(self) -> bool:
        """Whether d is convex in the distance."""
        return self.k >= 1

    @property
    def concave(self) -> bool:
        """Whether d is concave in the distance."""
        return self.k <= 1


@dataclass(frozen=True)
class ExponentialCost:
    """``d = exp(|p - a|) - 1``, convex: large gaps cost more than their share."""

    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = True
    concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_units(self.over, self.under)

    def distance(self, d: Floats) -> Floats:
        """What a distance costs, before `over` or `under`."""
        return np.expm1(d)

    def slope(self, d: Floats) -> Floats:
        """The derivative of `distance`."""
        return np.exp(d)

    def __call__(self, p: ArrayLike, a: ArrayLike) -> Floats:
        return _sided(p, a, self.over, self.under, self.distance)


@dataclass(frozen=True)
class LogCost:
    """``d = ln(1 + |p - a|)``, concave: large gaps cost less than their share."""

    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = False
    concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_units(self.over, self.under)

    def distance(self, d: Floats) -> Floats:
        """What a distance costs, before `over` or `under`."""
        return np.log1p(d)

    def __call__(self, p: ArrayLike, a: ArrayLike) -> Floats:
        return _sided(p, a, self.over, self.under, self.distance)


@dataclass(frozen=True)
class StepCost:
    """A cost for each level of distance: nothing below the first threshold, then what each level costs.

    Parameters
    ----------
    levels : sequence of (threshold, cost)
        d is the cost of the last level whose threshold the distance reaches (>=). Thresholds in (0, 1] rise strictly,
        costs are positive and do not fall.
    over, under : float
        Unit costs of predicting too high and too low.

    Examples
    --------
    >>> StepCost([(0.05, 1), (0.2, 10)])(0.5, [0.48, 0.4, 0.25])
    array([ 0.,  1., 10.])
    """

    levels: Sequence[tuple[float, float]]
    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = False
    concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_units(self.over, self.under)
        try:
            levels = tuple((float(t), float(c)) for t, c in self.levels)
        except (TypeError, ValueError):
            levels = ()
        thresholds, costs = [t for t, _ in levels], [c for _, c in levels]
        rising = all(a < b for a, b in pairwise([0.0, *thresholds])) and all(t <= 1 for t in thresholds)
        priced = all(a <= b for a, b in pairwise(costs)) and all(0 < c < math.inf for c in costs)
        if not (levels and rising and priced):
            raise InputError(
                f"levels must be pairs (threshold, cost): thresholds in (0, 1] that rise strictly, positive costs that "
                f"do not fall; they are {self.levels!r}.",
                argument="levels",
                value=self.levels,
            )
        object.__setattr__(self, "levels", levels)

    def __call__(self, p: ArrayLike, a: ArrayLike) -> Floats:
        thresholds, costs = np.array(self.levels).T
        steps = np.concatenate([[0.0], costs])
        # 0.3 - 0.2 is 0.1 less a bit, and must reach a threshold of 0.1
        slack = min(1e-12, thresholds[0] / 2)

        def distance(d: Floats) -> Floats:
            return np.asarray(steps[np.searchsorted(thresholds, d + slack, side="right")])

        return _sided(p, a, self.over, self.under, distance)
