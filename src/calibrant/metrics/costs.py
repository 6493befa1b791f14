r"""Costs of a deviating probability: the cost of predicting p where the true rate is a.

.. math::

   C(p, a) = C_o \, d(p, a) \text{ if } p > a, \quad C_u \, d(p, a) \text{ otherwise}

`over` is the unit cost :math:`C_o` of overestimation, `under` that of underestimation. Yang and Bi (2025), equation (4)
and section 5. A cost is called with arrays, ``cost(p, a)``; any callable can be used. A cost may declare attributes:

``name`` : str
    Its name in results; by default that of the function, or the representation of the object.
``convex``, ``concave`` : bool
    Shape of d as a function of the distance.
``degree`` : float, default 1
    Power of the distance with which the cost grows.
``largest`` : float, default inf
    The largest cost of any two rates.
``optimum`` : str, optional
    How `optimal_prediction` finds the minimum of the mean cost over samples: "quantile", "sample", "root" or "step".
    The cost is then proportional to `over` and `under`. Subclasses do not inherit it, because they may be other
    functions.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError

__all__ = ["Cost", "ExponentialCost", "LinearCost", "LogCost", "PowerCost", "StepCost"]

Cost: TypeAlias = Callable[[Any, Any], Any]


def check_cost(cost: object) -> None:
    """Raise an `InputError` if a cost cannot be called with arrays (p, a)."""
    if not callable(cost) or isinstance(cost, type):
        raise InputError(
            f"cost must be a function or an object that is called with arrays (p, a); got {cost!r}.",
            hint="Use for example LinearCost(over=1, under=5).",
            value=cost,
        )


def cost_name(cost: Any) -> str:
    """Return the name of a cost in results: the one that it declares, that of a function, or its representation.

    >>> cost_name(LinearCost(over=1, under=5)), cost_name(PowerCost(2)), cost_name(max)
    ('over=1, under=5', 'PowerCost k=2, over=1.0, under=1.0', 'max')
    """
    declared = getattr(cost, "name", None)
    return declared if isinstance(declared, str) else str(getattr(cost, "__name__", repr(cost)))


def _unit_costs(cost: Any) -> str:
    return f"over={cost.over}, under={cost.under}"


def evaluate_cost(cost: Cost, p: Floats, a: Floats) -> Floats:
    """Return the costs of arrays p and a."""
    try:
        return np.asarray(cost(p, a), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cost must accept arrays (p, a); it failed with: {error}.",
            hint="Use np.where instead of if, or wrap the cost in np.vectorize.",
            value=cost,
        ) from error


def optimum(cost: Any) -> str:
    """Return the `optimum` that the class of a cost declares itself; empty where it declares none.

    >>> optimum(LinearCost()), optimum(PowerCost(2)), optimum(lambda p, a: (p - a) ** 4)
    ('quantile', 'root', '')
    """
    return str(cost.optimum) if "optimum" in vars(type(cost)) else ""


def normalise_units(cost: Any) -> Any:
    """Return the same cost with 1 as the larger of its unit costs: its minimum depends on their ratio only."""
    if not optimum(cost):
        return cost
    unit = max(cost.over, cost.under)
    return replace(cost, over=cost.over / unit, under=cost.under / unit)


class _SidedCost(ABC):
    """A cost per unit of overestimation and underestimation, times a function of the distance."""

    over: float
    under: float

    def __post_init__(self) -> None:
        over, under = self.over, self.under
        numbers = isinstance(over, Real) and isinstance(under, Real)
        if not (numbers and 0 <= over < math.inf and 0 <= under < math.inf and over + under > 0):
            raise InputError(
                f"over and under must be finite, not negative and not both 0; got {over!r} and {under!r}.",
                argument="over and under",
                value=(over, under),
            )

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{type(self).__name__} {_unit_costs(self)}"

    @abstractmethod
    def distance(self, d: Floats) -> Floats:
        """Return the cost of a distance, without the unit costs.

        Parameters
        ----------
        d : array
            Distances between predicted and actual rates, not negative.

        Returns
        -------
        array
            One number per distance; 0 at distance 0.
        """

    def __call__(self, p: ArrayLike, a: ArrayLike) -> Floats:
        """Return the cost of predicting p where the actual rate is a.

        Parameters
        ----------
        p, a : array
            Predicted and actual rates.

        Returns
        -------
        array
            `over` times d where p > a, `under` times d elsewhere.
        """
        gap = np.asarray(p, dtype=np.float64) - np.asarray(a, dtype=np.float64)
        return np.where(gap > 0, self.over, self.under) * self.distance(np.abs(gap))


@dataclass(frozen=True)
class LinearCost(_SidedCost):
    """Cost proportional to the distance, ``d = |p - a|``.

    Parameters
    ----------
    over, under : float, default=1
        Cost per unit of overestimation and of underestimation.

    See Also
    --------
    PowerCost, ExponentialCost, LogCost, StepCost

    Examples
    --------
    >>> LinearCost(over=1, under=5)(0.7, [0.6, 0.8]).round(3)
    array([0.1, 0.5])
    """

    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = True
    concave: ClassVar[bool] = True
    optimum: ClassVar[str] = "quantile"

    @property
    def name(self) -> str:
        """Name in results."""
        return _unit_costs(self)

    @property
    def largest(self) -> float:
        """The largest cost of any two rates."""
        return float(max(self.over, self.under))

    def distance(self, d: Floats) -> Floats:
        return d


@dataclass(frozen=True)
class PowerCost(_SidedCost):
    """``d = |p - a|^k``, k > 0: convex for k >= 1, concave for k <= 1.

    Parameters
    ----------
    k : float
        The power.
    over, under : float, default=1
        Factor of the cost of overestimation and of underestimation.

    See Also
    --------
    LinearCost, ExponentialCost, LogCost

    Examples
    --------
    >>> PowerCost(2, under=3)(0.5, [0.4, 0.6]).round(3)
    array([0.01, 0.03])
    """

    k: float
    over: float = 1.0
    under: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.k, Real) or not 0 < self.k < math.inf:
            raise InputError(f"k must be a positive number; got {self.k!r}.", value=self.k)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{type(self).__name__} k={self.k}, {_unit_costs(self)}"

    def distance(self, d: Floats) -> Floats:
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
        """Return the derivative of `distance`.

        Parameters
        ----------
        d : array
            Distances between predicted and actual rates, not negative.

        Returns
        -------
        array
            One number per distance.
        """
        return self.k * d ** (self.k - 1)

    @property
    def convex(self) -> bool:
        """Whether d is convex in the distance."""
        return self.k >= 1

    @property
    def concave(self) -> bool:
        """Whether d is concave in the distance."""
        return self.k <= 1

    @property
    def optimum(self) -> str:
        """How `optimal_prediction` finds the minimum."""
        return "quantile" if self.k == 1 else "sample" if self.concave else "root"


@dataclass(frozen=True)
class ExponentialCost(_SidedCost):
    """``d = exp(|p - a|) - 1``, convex: the cost of large gaps is more than proportional.

    Parameters
    ----------
    over, under : float, default=1
        Factor of the cost of overestimation and of underestimation.

    See Also
    --------
    PowerCost, LogCost, LinearCost

    Examples
    --------
    >>> ExponentialCost(under=2)(0.5, [0.4, 0.6]).round(3)
    array([0.105, 0.21 ])
    """

    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = True
    concave: ClassVar[bool] = False
    optimum: ClassVar[str] = "root"

    def distance(self, d: Floats) -> Floats:
        return np.expm1(d)

    def slope(self, d: Floats) -> Floats:
        """Return the derivative of `distance`.

        Parameters
        ----------
        d : array
            Distances between predicted and actual rates, not negative.

        Returns
        -------
        array
            One number per distance.
        """
        return np.exp(d)


@dataclass(frozen=True)
class LogCost(_SidedCost):
    """``d = ln(1 + |p - a|)``, concave: the cost of large gaps is less than proportional.

    Parameters
    ----------
    over, under : float, default=1
        Factor of the cost of overestimation and of underestimation.

    See Also
    --------
    PowerCost, ExponentialCost, LinearCost

    Examples
    --------
    >>> LogCost(under=2)(0.5, [0.4, 0.6]).round(3)
    array([0.095, 0.191])
    """

    over: float = 1.0
    under: float = 1.0
    convex: ClassVar[bool] = False
    concave: ClassVar[bool] = True
    optimum: ClassVar[str] = "sample"

    def distance(self, d: Floats) -> Floats:
        return np.log1p(d)


@dataclass(frozen=True)
class StepCost(_SidedCost):
    """A cost for each level of distance: 0 below the first threshold, then the cost of the level.

    Parameters
    ----------
    levels : sequence of (threshold, cost)
        d is the cost of the last level whose threshold the distance reaches (>=). Thresholds in (0, 1] increase
        strictly, costs are positive and do not decrease.
    over, under : float
        Unit costs of overestimation and underestimation.

    See Also
    --------
    LinearCost, DecisionCost

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
    optimum: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            levels = tuple((float(t), float(c)) for t, c in self.levels)
        except (TypeError, ValueError):
            levels = ()
        thresholds, costs = [t for t, _ in levels], [c for _, c in levels]
        rising = all(a < b for a, b in pairwise([0.0, *thresholds])) and all(t <= 1 for t in thresholds)
        priced = all(a <= b for a, b in pairwise(costs)) and all(0 < c < math.inf for c in costs)
        if not (levels and rising and priced):
            raise InputError(
                f"levels must be pairs (threshold, cost) with strictly increasing thresholds in (0, 1] and positive, "
                f"non-decreasing costs; got {self.levels!r}.",
                value=self.levels,
            )
        object.__setattr__(self, "levels", levels)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{type(self).__name__} {', '.join(f'{t:g}: {c:g}' for t, c in self.levels)}, {_unit_costs(self)}"

    def distance(self, d: Floats) -> Floats:
        thresholds, costs = np.array(self.levels).T
        steps = np.concatenate([[0.0], costs])
        # 0.3 - 0.2 is slightly below 0.1 and must reach a threshold of 0.1
        slack = min(1e-12, thresholds[0] / 2)
        return np.asarray(steps[np.searchsorted(thresholds, d + slack, side="right")])
